"""Cross entropy over a large vocabulary, forward and backward together: the row is read in pieces with a running
maximum and sum, and the gradient takes the place of the logits. Labels that are to be ignored contribute nothing."""
import math

import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def cross_entropy(logits, labels, loss, scale, ignored: ct.Constant[int], tn: ct.Constant[int]):
    row = ct.bid(0)
    label = ct.gather(labels, row)
    n = logits.shape[1]
    tiles = ct.cdiv(n, tn)
    lanes = ct.arange(tn, dtype=ct.int32)
    if label == ignored:
        for j in range(tiles):
            ct.scatter(logits, (row, j * tn + lanes), ct.zeros((tn,), dtype=logits.dtype))
        ct.scatter(loss, row, 0.0)
        return
    top = ct.full((), -math.inf, dtype=ct.float32)
    total = ct.zeros((), dtype=ct.float32)
    for j in range(tiles):
        values = ct.gather(logits, (row, j * tn + lanes), padding_value=-math.inf).astype(ct.float32)
        new_top = ct.maximum(top, ct.max(values))
        total = total * ct.exp(top - new_top) + ct.sum(ct.exp(values - new_top))
        top = new_top
    log_sum = top + ct.log(total)
    chosen = ct.gather(logits, (row, label)).astype(ct.float32)
    ct.scatter(loss, row, (log_sum - chosen) * scale)
    for j in range(tiles):
        cols = j * tn + lanes
        values = ct.gather(logits, (row, cols), padding_value=-math.inf).astype(ct.float32)
        p = ct.exp(values - log_sum)
        grad = ct.where(cols == label, p - 1.0, p) * scale
        ct.scatter(logits, (row, cols), grad.astype(logits.dtype))


def main():
    rng = np.random.default_rng(16)
    stream = cp.cuda.get_current_stream()
    for rows, n in ((8, 512), (5, 1000), (3, 1)):
        for dtype, tolerance in ((np.float32, 1e-6), (np.float16, 1e-3)):
            x = (3 * rng.standard_normal((rows, n))).astype(dtype)
            labels = rng.integers(0, n, rows).astype(np.int32)
            labels[-1] = -100
            logits, loss = cp.asarray(x), cp.zeros(rows, dtype=np.float32)
            scale = 1.0 / (rows - 1)
            ct.launch(stream, (rows,), cross_entropy, (logits, cp.asarray(labels), loss, scale, -100, 256))
            wide = x.astype(np.float64)
            top = wide.max(axis=1, keepdims=True)
            log_sum = top + np.log(np.exp(wide - top).sum(axis=1, keepdims=True))
            used = labels >= 0
            hot = np.zeros((rows, n))
            hot[np.arange(rows)[used], labels[used]] = 1
            want = (log_sum[:, 0] - (wide * hot).sum(axis=1)) * used * scale
            grad = (np.exp(wide - log_sum) - hot) * used[:, None] * scale
            np.testing.assert_allclose(cp.asnumpy(loss), want, rtol=0, atol=2e-6)
            np.testing.assert_allclose(cp.asnumpy(logits), grad, rtol=0, atol=tolerance)


if __name__ == "__main__":
    main()
