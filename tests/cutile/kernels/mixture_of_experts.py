"""Mixture of experts: every token goes through a few of many weight matrices.

The host sorts (token, expert) pairs by expert and pads every expert's stretch to whole tiles, so that a tile of rows
belongs to one expert. The kernel gathers the tokens' rows, multiplies by that expert's matrix and scatters the result to
the pair's own row; a second kernel adds up each token's pairs."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def expert_matmul(tokens, weights, out, factors, pair_ids, expert_ids, per_token: ct.Constant[int],
                  scaled: ct.Constant[bool], tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    pairs = ct.gather(pair_ids, i * tm + ct.arange(tm, dtype=ct.int32))
    # Padding pairs are past the end: gathers give zeros for them and scatters leave them out.
    rows = pairs // per_token
    expert = ct.load(expert_ids, (i,), shape=())
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    for k in range(ct.cdiv(tokens.shape[1], tk)):
        inner = k * tk + ct.arange(tk, dtype=ct.int32)
        x = ct.gather(tokens, (rows[:, None], inner[None, :]))
        w = ct.load(weights, (expert, j, k), (1, tn, tk), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, w.reshape((tn, tk)).transpose(), acc)
    if scaled:
        acc = acc * ct.gather(factors, pairs)[:, None]
    cols = j * tn + ct.arange(tn, dtype=ct.int32)
    ct.scatter(out, (pairs[:, None], cols[None, :]), acc.astype(out.dtype))


@ct.kernel
def sum_pairs(pairs, out, per_token: ct.Constant[int], tn: ct.Constant[int]):
    token, j = ct.bid(0), ct.bid(1)
    x = ct.load(pairs, (token, 0, j), (1, per_token, tn), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, (token, j), ct.sum(x.astype(ct.float32), axis=1).astype(out.dtype))


def sort_by_expert(chosen, n_experts, tm):
    """Pair numbers by expert, each expert's padded to tiles of `tm` with a number past the end; each tile's expert."""
    flat = chosen.reshape(-1)
    pairs, experts = [], []
    for expert in range(n_experts):
        mine = np.flatnonzero(flat == expert)
        tiles = -(-len(mine) // tm)
        padded = np.full(tiles * tm, flat.size)
        padded[: len(mine)] = mine
        pairs.append(padded)
        experts += [expert] * tiles
    return np.concatenate(pairs).astype(np.int32), np.array(experts, dtype=np.int32)


def main():
    rng = np.random.default_rng(13)
    stream = cp.cuda.get_current_stream()
    tm, tn, tk = 16, 32, 32
    for n_tokens, n_experts, per_token, n_in, n_out in ((40, 4, 2, 64, 64), (7, 8, 2, 50, 70), (33, 3, 1, 17, 40)):
        for dtype, tolerance in ((np.float32, 3e-6), (np.float16, 2e-3)):
            x = rng.standard_normal((n_tokens, n_in)).astype(dtype)
            w = (rng.standard_normal((n_experts, n_out, n_in)) / np.sqrt(n_in)).astype(dtype)
            logits = rng.standard_normal((n_tokens, n_experts))
            chosen = np.argsort(-logits, axis=1)[:, :per_token]
            factors = np.exp(np.take_along_axis(logits, chosen, 1))
            factors = (factors / factors.sum(axis=1, keepdims=True)).astype(np.float32)
            pairs, experts = sort_by_expert(chosen, n_experts, tm)

            each = cp.zeros((n_tokens * per_token, n_out), dtype=np.float32)
            out = cp.zeros((n_tokens, n_out), dtype=dtype)
            ct.launch(stream, (len(experts), ct.cdiv(n_out, tn)), expert_matmul,
                      (cp.asarray(x), cp.asarray(w), each, cp.asarray(factors.reshape(-1)), cp.asarray(pairs),
                       cp.asarray(experts), per_token, True, tm, tn, tk))
            ct.launch(stream, (n_tokens, ct.cdiv(n_out, 64)), sum_pairs,
                      (each.reshape(n_tokens, per_token, n_out), out, per_token, 64))
            products = np.einsum("ti,tpoi->tpo", x.astype(np.float64), w[chosen].astype(np.float64))
            want = (products * factors[..., None]).sum(axis=1)
            np.testing.assert_allclose(cp.asnumpy(each).reshape(products.shape), products * factors[..., None],
                                       rtol=0, atol=2e-5)
            np.testing.assert_allclose(cp.asnumpy(out), want, rtol=tolerance, atol=2e-5 + tolerance)


if __name__ == "__main__":
    main()
