"""A linear layer whose products are a cuTile kernel, with gradients: y = x Wᵀ + b."""
import cuda.tile as ct
import torch

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def matmul(a, b, c, turn_a: ct.Constant[bool], turn_b: ct.Constant[bool], tm: ct.Constant[int],
           tn: ct.Constant[int], tk: ct.Constant[int]):
    """C = op(A) op(B), op being the transposition where the flag says so."""
    i, j = ct.bid(0), ct.bid(1)
    inner = a.shape[0] if turn_a else a.shape[1]
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    for k in range(ct.cdiv(inner, tk)):
        x = ct.load(a, (i, k), (tm, tk), order="F" if turn_a else "C", padding_mode=ZERO)
        y = ct.load(b, (k, j), (tk, tn), order="F" if turn_b else "C", padding_mode=ZERO)
        acc = ct.mma(x, y, acc)
    ct.store(c, (i, j), acc.astype(c.dtype))


def product(a, b, turn_a=False, turn_b=False):
    m = a.shape[1] if turn_a else a.shape[0]
    n = b.shape[0] if turn_b else b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (ct.cdiv(m, 32), ct.cdiv(n, 32))
    ct.launch(torch.cuda.current_stream(), grid, matmul, (a, b, c, turn_a, turn_b, 32, 32, 16))
    return c


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return product(x, weight, turn_b=True)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad = grad.contiguous()
        return product(grad, weight), product(grad, x, turn_a=True)


def main():
    torch.manual_seed(1)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-2), (torch.bfloat16, 1e-1)):
        for m, n, k in ((64, 64, 32), (50, 70, 33)):
            x = torch.randn(m, k, device="cuda", dtype=dtype, requires_grad=True)
            w = torch.randn(n, k, device="cuda", dtype=dtype, requires_grad=True)
            b = torch.randn(n, device="cuda", dtype=dtype)
            seed = torch.randn(m, n, device="cuda", dtype=dtype)
            y = Linear.apply(x, w) + b
            y.backward(seed)
            wide_x, wide_w = (t.detach().double().requires_grad_() for t in (x, w))
            want = torch.nn.functional.linear(wide_x, wide_w, b.double())
            want.backward(seed.double())
            for got, expected in ((y, want), (x.grad, wide_x.grad), (w.grad, wide_w.grad)):
                scale = expected.abs().max().item()
                torch.testing.assert_close(got.double(), expected, rtol=0, atol=tolerance * scale)


if __name__ == "__main__":
    main()
