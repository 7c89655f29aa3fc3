"""The k largest of every row with their places: k times the largest of what is left; and a choice of experts on top,
with the softmax over the chosen."""
import math

import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def top_k(x, values, places, k: ct.Constant[int], tm: ct.Constant[int], tn: ct.Constant[int]):
    i = ct.bid(0)
    left = ct.load(x, (i, 0), (tm, tn), padding_mode=ct.PaddingMode.NEG_INF)
    cols = ct.arange(tn, dtype=ct.int32)[None, :]
    rows = i * tm + ct.arange(tm, dtype=ct.int32)
    for j in range(k):
        place = ct.argmax(left, axis=1)
        ct.scatter(values, (rows, j), ct.max(left, axis=1))
        ct.scatter(places, (rows, j), place.astype(ct.int32))
        left = ct.where(cols == place[:, None], -math.inf, left)


@ct.kernel
def route(logits, factors, experts, k: ct.Constant[int], n: ct.Constant[int]):
    row = ct.bid(0)
    left = ct.load(logits, (row, 0), (1, n), padding_mode=ct.PaddingMode.NEG_INF).reshape((n,))
    lanes = ct.arange(n, dtype=ct.int32)
    slots = ct.arange(k, dtype=ct.int32)
    best = ct.full((k,), -math.inf, dtype=ct.float32)
    where = ct.zeros((k,), dtype=ct.int32)
    for j in range(k):
        place = ct.argmax(left, axis=0).astype(ct.int32)
        best = ct.where(slots == j, ct.max(left, axis=0), best)
        where = ct.where(slots == j, place, where)
        left = ct.where(lanes == place, -math.inf, left)
    weights = ct.exp(best - ct.max(best))
    ct.store(factors, (row, 0), (weights / ct.sum(weights)).reshape((1, k)))
    ct.store(experts, (row, 0), where.reshape((1, k)))


def main():
    rng = np.random.default_rng(20)
    stream = cp.cuda.get_current_stream()
    for rows, n, k in ((8, 64, 4), (13, 100, 5), (3, 7, 7)):
        x = rng.permuted(np.arange(rows * n, dtype=np.float32).reshape(rows, n), axis=1)
        values, places = cp.zeros((rows, k), dtype=np.float32), cp.zeros((rows, k), dtype=np.int32)
        ct.launch(stream, (ct.cdiv(rows, 4),), top_k, (cp.asarray(x), values, places, k, 4, 128))
        order = np.argsort(-x, axis=1)[:, :k]
        np.testing.assert_array_equal(cp.asnumpy(places), order)
        np.testing.assert_array_equal(cp.asnumpy(values), np.take_along_axis(x, order, 1))
    for rows, n, k in ((5, 8, 2), (3, 60, 4)):
        x = rng.standard_normal((rows, n)).astype(np.float32)
        factors, experts = cp.zeros((rows, k), dtype=np.float32), cp.zeros((rows, k), dtype=np.int32)
        ct.launch(stream, (rows,), route, (cp.asarray(x), factors, experts, k, 64))
        order = np.argsort(-x, axis=1)[:, :k]
        e = np.exp(np.take_along_axis(x, order, 1).astype(np.float64))
        np.testing.assert_array_equal(cp.asnumpy(experts), order)
        np.testing.assert_allclose(cp.asnumpy(factors), e / e.sum(axis=1, keepdims=True), rtol=1e-6)


if __name__ == "__main__":
    main()
