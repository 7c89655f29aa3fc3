"""Attention in one kernel: the scores are never stored.

Source of the algorithm: online softmax (M. Milakov and N. Gimelshein, 2018) as used by T. Dao et al., FlashAttention,
2022. A block takes some queries and walks over the keys; the running maximum, the running sum and the output so far are
carried, and rescaled when the maximum grows.

Shows: two `dot`s, values carried through a loop with runtime bounds, causal masks that end the loop early.
"""

import numpy as np
from common import arguments, check, compare

import girih
import girih.language as tl


@girih.jit
def attention(
    Q, K, V, out_ptr, length, scale, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr
):
    start_m = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1) * length * HEAD  # this batch and head
    m, d = start_m + tl.arange(0, BLOCK_M), tl.arange(0, HEAD)
    q_at = base + m[:, None] * HEAD + d[None, :]
    q = tl.load(Q + q_at, mask=m[:, None] < length, other=0.0)

    best = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), tl.float32)
    last = min(start_m + BLOCK_M, length) if CAUSAL else length
    for start_n in range(0, last, BLOCK_N):
        n = start_n + tl.arange(0, BLOCK_N)
        kv_at = base + n[:, None] * HEAD + d[None, :]
        k = tl.load(K + kv_at, mask=n[:, None] < length, other=0.0)
        v = tl.load(V + kv_at, mask=n[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        seen = n[None, :] < length
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        new_best = tl.maximum(best, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_best[:, None])
        shrink = tl.exp(best - new_best)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        best = new_best
    tl.store(out_ptr + q_at, acc / total[:, None], mask=m[:, None] < length)


def reference(q, k, v, scale, causal):
    scores = q @ k.transpose(0, 2, 1) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True) @ v


def main():
    options = arguments(__doc__)
    heads, length, head = (2, 40, 16) if options.small else (8, 500, 64)
    q, k, v = np.random.default_rng(0).standard_normal((3, heads, length, head), dtype=np.float32)
    out = np.empty_like(q)
    block = 16 if options.small else 64
    scale = head**-0.5
    for causal in (False, True):

        def run(causal=causal):
            attention[(girih.cdiv(length, block), heads)](
                q, k, v, out, length, scale, HEAD=head, BLOCK_M=block, BLOCK_N=block, CAUSAL=causal, device=options.device
            )

        run()
        name = "attention, causal" if causal else "attention"
        check(name, out, reference(*(x.astype(np.float64) for x in (q, k, v)), scale, causal), 1e-5)
        if options.time:
            compare(name, run, lambda causal=causal: reference(q, k, v, scale, causal))


if __name__ == "__main__":
    main()
