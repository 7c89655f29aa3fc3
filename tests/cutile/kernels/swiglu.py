"""SwiGLU: silu(x Wg) * (x Wu) with both products in one kernel; and the elementwise part alone, forward and backward."""
import cuda.tile as ct
import cupy as cp
import numpy as np

ZERO = ct.PaddingMode.ZERO


def sigmoid(x):
    return ct.truediv(1.0, 1.0 + ct.exp(-x), rounding_mode=ct.RoundingMode.APPROX)


@ct.kernel
def swiglu_matmul(x, gate, up, y, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    g = ct.zeros((tm, tn), dtype=ct.float32)
    u = ct.zeros((tm, tn), dtype=ct.float32)
    for k in range(ct.num_tiles(x, 1, (tm, tk))):
        tile = ct.load(x, (i, k), (tm, tk), padding_mode=ZERO)
        g = ct.mma(tile, ct.load(gate, (k, j), (tk, tn), padding_mode=ZERO), g)
        u = ct.mma(tile, ct.load(up, (k, j), (tk, tn), padding_mode=ZERO), u)
    ct.store(y, (i, j), (g * sigmoid(g) * u).astype(y.dtype))


@ct.kernel
def swiglu_forward(both, y, tn: ct.Constant[int]):
    """`both` holds gate and up side by side: two halves of each row."""
    row, j = ct.bid(0), ct.bid(1)
    half = both.shape[1] // 2
    cols = j * tn + ct.arange(tn, dtype=ct.int32)
    inside = cols < half
    g = ct.gather(both, (row, cols), mask=inside).astype(ct.float32)
    u = ct.gather(both, (row, cols + half)).astype(ct.float32)
    ct.scatter(y, (row, cols), (g * sigmoid(g) * u).astype(y.dtype))


@ct.kernel
def swiglu_backward(gate, up, dy, t: ct.Constant[int]):
    """The gradients take the place of gate and up."""
    row, j = ct.bid(0), ct.bid(1)
    g = ct.load(gate, (row, j), (1, t), padding_mode=ZERO).astype(ct.float32)
    u = ct.load(up, (row, j), (1, t), padding_mode=ZERO).astype(ct.float32)
    d = ct.load(dy, (row, j), (1, t), padding_mode=ZERO).astype(ct.float32)
    s = sigmoid(g)
    ct.store(gate, (row, j), (d * u * s * (1.0 + g * (1.0 - s))).astype(gate.dtype))
    ct.store(up, (row, j), (d * g * s).astype(up.dtype))


def main():
    rng = np.random.default_rng(22)
    stream = cp.cuda.get_current_stream()
    for dtype, tolerance in ((np.float32, 2e-5), (np.float16, 2e-2)):
        for m, n, k in ((32, 64, 32), (21, 50, 40)):
            x = rng.standard_normal((m, k)).astype(dtype)
            gate, up = ((rng.standard_normal((k, n)) / np.sqrt(k)).astype(dtype) for _ in range(2))
            g, u = (x.astype(np.float64) @ w.astype(np.float64) for w in (gate, up))
            y = cp.zeros((m, n), dtype=dtype)
            ct.launch(stream, (ct.cdiv(m, 16), ct.cdiv(n, 32)), swiglu_matmul,
                      (cp.asarray(x), cp.asarray(gate), cp.asarray(up), y, 16, 32, 16))
            np.testing.assert_allclose(cp.asnumpy(y), g / (1 + np.exp(-g)) * u, rtol=0, atol=tolerance)

            g, u, d = (rng.standard_normal((m, n)).astype(dtype) for _ in range(3))
            both = cp.asarray(np.concatenate((g, u), axis=1))
            y = cp.zeros((m, n), dtype=dtype)
            ct.launch(stream, (m, ct.cdiv(n, 32)), swiglu_forward, (both, y, 32))
            wg, wu, wd = (t.astype(np.float64) for t in (g, u, d))
            s = 1 / (1 + np.exp(-wg))
            np.testing.assert_allclose(cp.asnumpy(y), wg * s * wu, rtol=0, atol=tolerance)
            dg, du = cp.asarray(g), cp.asarray(u)
            ct.launch(stream, (m, ct.cdiv(n, 32)), swiglu_backward, (dg, du, cp.asarray(d), 32))
            np.testing.assert_allclose(cp.asnumpy(dg), wd * wu * s * (1 + wg * (1 - s)), rtol=0, atol=tolerance)
            np.testing.assert_allclose(cp.asnumpy(du), wd * wg * s, rtol=0, atol=tolerance)


if __name__ == "__main__":
    main()
