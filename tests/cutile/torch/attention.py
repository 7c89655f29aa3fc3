"""Attention as an autograd function: a fused forward kernel that keeps the logarithms of the sums, and a backward pass
of cuTile kernels that use them. Compared with PyTorch's own."""
import math

import cuda.tile as ct
import torch

ZERO = ct.PaddingMode.ZERO


def scores_of(queries, keys, rows, cols, n_keys, scale, causal):
    scores = ct.mma(queries, keys, ct.zeros((queries.shape[0], keys.shape[1]), ct.float32)) * scale
    seen = (cols < n_keys) & (rows >= cols) if causal else (cols < n_keys) & (rows >= 0)
    return ct.where(seen, scores, -math.inf)


@ct.kernel
def forward(q, k, v, out, log_sum, scale, t: ct.Constant[int], d: ct.Constant[int], causal: ct.Constant[bool]):
    i, head = ct.bid(0), ct.bid(1)
    rows = (i * t + ct.arange(t, dtype=ct.int32))[:, None]
    queries = ct.load(q, (head, i, 0), (1, t, d), padding_mode=ZERO).reshape((t, d))
    top = ct.full((t, 1), -math.inf, dtype=ct.float32)
    total = ct.zeros((t, 1), dtype=ct.float32)
    acc = ct.zeros((t, d), dtype=ct.float32)
    n_keys = k.shape[1]
    for j in range(ct.cdiv(min(n_keys, (i + 1) * t) if causal else n_keys, t)):
        cols = (j * t + ct.arange(t, dtype=ct.int32))[None, :]
        keys = ct.load(k, (head, 0, j), (1, d, t), order=(0, 2, 1), padding_mode=ZERO).reshape((d, t))
        values = ct.load(v, (head, j, 0), (1, t, d), padding_mode=ZERO).reshape((t, d))
        scores = scores_of(queries, keys, rows, cols, n_keys, scale, causal)
        new_top = ct.maximum(top, ct.max(scores, axis=1, keepdims=True))
        p = ct.exp(scores - new_top)
        shrink = ct.exp(top - new_top)
        total = total * shrink + ct.sum(p, axis=1, keepdims=True)
        acc = ct.mma(p.astype(v.dtype), values, acc * shrink)
        top = new_top
    ct.store(out, (head, i, 0), (acc / total).reshape((1, t, d)).astype(out.dtype))
    ct.store(log_sum, (head, i), (top + ct.log(total)).reshape((1, t)))


@ct.kernel
def backward(q, k, v, out, grad, log_sum, dq, dk, dv, scale, t: ct.Constant[int], d: ct.Constant[int],
             causal: ct.Constant[bool]):
    """A block owns some keys; what it finds for the queries it adds to what the others found."""
    j, head = ct.bid(0), ct.bid(1)
    keys = ct.load(k, (head, j, 0), (1, t, d), padding_mode=ZERO).reshape((t, d))
    values = ct.load(v, (head, j, 0), (1, t, d), padding_mode=ZERO).reshape((t, d))
    cols = (j * t + ct.arange(t, dtype=ct.int32))[None, :]
    sum_k = ct.zeros((t, d), dtype=ct.float32)
    sum_v = ct.zeros((t, d), dtype=ct.float32)
    for i in range(j if causal else 0, ct.num_tiles(q, 1, (1, t, d))):
        queries = ct.load(q, (head, i, 0), (1, t, d), padding_mode=ZERO).reshape((t, d))
        g = ct.load(grad, (head, i, 0), (1, t, d), padding_mode=ZERO).reshape((t, d))
        o = ct.load(out, (head, i, 0), (1, t, d), padding_mode=ZERO).reshape((t, d))
        # Rows past the end have a sum that makes all their weights zero.
        ls = ct.load(log_sum, (head, i), (1, t), padding_mode=ct.PaddingMode.POS_INF).reshape((t, 1))
        delta = ct.sum(o.astype(ct.float32) * g, axis=1, keepdims=True)
        rows = (i * t + ct.arange(t, dtype=ct.int32))[:, None]
        p = ct.exp(scores_of(queries, keys.transpose(), rows, cols, k.shape[1], scale, causal) - ls)
        sum_v = ct.mma(p.astype(g.dtype).transpose(), g, sum_v)
        dp = ct.mma(g, values.transpose(), ct.zeros((t, t), ct.float32))
        ds = (p * (dp - delta) * scale).astype(q.dtype)
        sum_k = ct.mma(ds.transpose(), queries, sum_k)
        share = ct.mma(ds, keys, ct.zeros((t, d), ct.float32))
        lanes = ct.arange(d, dtype=ct.int32)[None, :]
        ct.atomic_add(dq, (head, rows, lanes), share, memory_order=ct.MemoryOrder.RELAXED)
    ct.store(dk, (head, j, 0), sum_k.reshape((1, t, d)).astype(dk.dtype))
    ct.store(dv, (head, j, 0), sum_v.reshape((1, t, d)).astype(dv.dtype))


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal):
        heads, n, d = q.shape
        out, log_sum = torch.empty_like(q), torch.empty(heads, n, device=q.device)
        ctx.constants = (1 / math.sqrt(d), 32, d, causal)
        grid = (ct.cdiv(n, 32), heads)
        ct.launch(torch.cuda.current_stream(), grid, forward, (q, k, v, out, log_sum, *ctx.constants))
        ctx.save_for_backward(q, k, v, out, log_sum)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, log_sum = ctx.saved_tensors
        dq = torch.zeros(q.shape, device=q.device)
        dk, dv = torch.empty_like(k), torch.empty_like(v)
        grid = (ct.cdiv(k.shape[1], 32), k.shape[0])
        ct.launch(torch.cuda.current_stream(), grid, backward,
                  (q, k, v, out, grad.contiguous(), log_sum, dq, dk, dv, *ctx.constants))
        return dq.to(q.dtype), dk, dv, None


def main():
    torch.manual_seed(2)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 4e-2)):
        for heads, n, d in ((2, 64, 32), (3, 45, 16)):
            for causal in (False, True):
                q, k, v = (torch.randn(heads, n, d, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
                seed = torch.randn(heads, n, d, device="cuda", dtype=dtype)
                out = Attention.apply(q, k, v, causal)
                out.backward(seed)
                wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
                want = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=causal)
                want.backward(seed.double())
                pairs = [(out, want)] + [(t.grad, w.grad) for t, w in zip((q, k, v), wide)]
                for got, expected in pairs:
                    scale = max(1.0, expected.abs().max().item())
                    torch.testing.assert_close(got.double(), expected, rtol=0, atol=tolerance * scale)


if __name__ == "__main__":
    main()
