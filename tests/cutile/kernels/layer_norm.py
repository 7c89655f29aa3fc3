"""Layer normalisation, forward and backward.

Forward walks over the row in pieces: mean, variance, result. Backward forms dX row by row and adds the rows' shares of
dW and dB into a few partial buffers, each behind a lock or by atomics, which a second kernel sums."""
import cuda.tile as ct
import cupy as cp
import numpy as np

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def layer_norm_forward(x, w, b, y, mean, rstd, eps, tn: ct.Constant[int]):
    row = ct.bid(0)
    n = x.shape[1]
    tiles = ct.num_tiles(x, axis=1, shape=(1, tn))
    total = ct.full((1, tn), 0, dtype=ct.float32)
    for j in range(tiles):
        total += ct.load(x, (row, j), (1, tn), padding_mode=ZERO)
    mu = ct.sum(total, axis=1, keepdims=True) / n
    squares = ct.full((1, tn), 0, dtype=ct.float32)
    for j in range(tiles):
        tile = ct.load(x, (row, j), (1, tn), padding_mode=ZERO)
        inside = (j * tn + ct.arange(tn, dtype=ct.int32)) < n
        centred = ct.where(inside[None, :], tile - mu, 0)
        squares += centred * centred
    r = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / n + eps)
    ct.store(mean, (row,), mu.reshape((1,)))
    ct.store(rstd, (row,), r.reshape((1,)))
    for j in range(tiles):
        tile = ct.load(x, (row, j), (1, tn), padding_mode=ZERO)
        weight = ct.load(w, (j,), (tn,), padding_mode=ZERO)
        bias = ct.load(b, (j,), (tn,), padding_mode=ZERO)
        ct.store(y, (row, j), ((tile - mu) * r * weight + bias).astype(y.dtype))


def row_gradient(x, w, dy, mean, rstd, row, tn):
    """dX of one row that fits one tile, and its shares of dW and dB."""
    n = x.shape[1]
    tile = ct.load(x, (row, 0), (1, tn), padding_mode=ZERO).astype(ct.float32)
    weight = ct.load(w, (0,), (tn,), padding_mode=ZERO).astype(ct.float32)
    grad = ct.load(dy, (row, 0), (1, tn), padding_mode=ZERO).astype(ct.float32)
    mu = ct.load(mean, (row,), (1,))
    r = ct.load(rstd, (row,), (1,))
    inside = (ct.arange(tn, dtype=ct.int32) < n)[None, :]
    hat = ct.where(inside, (tile - mu) * r, 0.0)
    scaled = weight * grad
    c1 = ct.sum(hat * scaled, axis=1, keepdims=True) / n
    c2 = ct.sum(scaled, axis=1, keepdims=True) / n
    return (scaled - (hat * c1 + c2)) * r, grad * hat, grad


@ct.kernel
def layer_norm_backward_lock(x, w, dy, mean, rstd, dx, dw, db, locks, groups: ct.Constant[int],
                             tn: ct.Constant[int]):
    row = ct.bid(0)
    grad, share_w, share_b = row_gradient(x, w, dy, mean, rstd, row, tn)
    ct.store(dx, (row, 0), grad.astype(dx.dtype))
    group = row % groups
    while ct.atomic_cas(locks, group, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) == 1:
        pass
    ct.store(dw, (group, 0), ct.load(dw, (group, 0), (1, tn), padding_mode=ZERO) + share_w)
    ct.store(db, (group, 0), ct.load(db, (group, 0), (1, tn), padding_mode=ZERO) + share_b)
    ct.atomic_xchg(locks, group, 0, memory_order=ct.MemoryOrder.RELEASE)


@ct.kernel
def layer_norm_backward_atomic(x, w, dy, mean, rstd, dx, dw, db, tn: ct.Constant[int]):
    row = ct.bid(0)
    grad, share_w, share_b = row_gradient(x, w, dy, mean, rstd, row, tn)
    ct.store(dx, (row, 0), grad.astype(dx.dtype))
    cols = ct.arange(tn, dtype=ct.int32)
    ct.atomic_add(dw, cols, share_w.reshape((tn,)), memory_order=ct.MemoryOrder.RELAXED)
    ct.atomic_add(db, cols, share_b.reshape((tn,)), memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel
def sum_partials(dw, db, out_w, out_b, tm: ct.Constant[int], tn: ct.Constant[int]):
    j = ct.bid(0)
    sum_w = ct.zeros((tm, tn), dtype=ct.float32)
    sum_b = ct.zeros((tm, tn), dtype=ct.float32)
    for i in range(ct.num_tiles(dw, 0, (tm, tn))):
        sum_w += ct.load(dw, (i, j), (tm, tn), padding_mode=ZERO)
        sum_b += ct.load(db, (i, j), (tm, tn), padding_mode=ZERO)
    ct.store(out_w, (j,), ct.sum(sum_w, axis=0).astype(out_w.dtype))
    ct.store(out_b, (j,), ct.sum(sum_b, axis=0).astype(out_b.dtype))


def main():
    rng = np.random.default_rng(9)
    stream = cp.cuda.get_current_stream()
    eps, groups = 1e-5, 4
    for dtype, tolerance in ((np.float32, 5e-6), (np.float16, 2e-3)):
        for rows, n in ((16, 256), (33, 200), (5, 1000), (1, 3)):
            x, dy = (rng.standard_normal((rows, n)).astype(dtype) for _ in range(2))
            w, b = (rng.standard_normal(n).astype(dtype) for _ in range(2))
            wx, ww, wb, wdy = (t.astype(np.float64) for t in (x, w, b, dy))
            mu = wx.mean(axis=1, keepdims=True)
            r = 1 / np.sqrt(wx.var(axis=1, keepdims=True) + eps)
            hat = (wx - mu) * r

            gx, gw, gb, gdy = (cp.asarray(t) for t in (x, w, b, dy))
            y = cp.zeros((rows, n), dtype=dtype)
            mean, rstd = cp.zeros(rows, dtype=np.float32), cp.zeros(rows, dtype=np.float32)
            ct.launch(stream, (rows,), layer_norm_forward, (gx, gw, gb, y, mean, rstd, eps, 128))
            size = np.abs(hat * ww + wb).max()
            np.testing.assert_allclose(cp.asnumpy(y), hat * ww + wb, rtol=0, atol=tolerance * size)
            np.testing.assert_allclose(cp.asnumpy(mean), mu[:, 0], rtol=0, atol=1e-6)
            np.testing.assert_allclose(cp.asnumpy(rstd), r[:, 0], rtol=2e-6)

            g = wdy * ww
            want = (r * (g - hat * (g * hat).mean(axis=1, keepdims=True) - g.mean(axis=1, keepdims=True)),
                    (wdy * hat).sum(axis=0), wdy.sum(axis=0))
            tn = 1 << (n - 1).bit_length()
            dx = cp.zeros((rows, n), dtype=dtype)
            dw, db = cp.zeros((groups, n), dtype=np.float32), cp.zeros((groups, n), dtype=np.float32)
            locks = cp.zeros(groups, dtype=np.int32)
            ct.launch(stream, (rows,), layer_norm_backward_lock,
                      (gx, gw, gdy, mean, rstd, dx, dw, db, locks, groups, tn))
            out_w, out_b = cp.zeros(n, dtype=dtype), cp.zeros(n, dtype=dtype)
            ct.launch(stream, (ct.cdiv(n, 64),), sum_partials, (dw, db, out_w, out_b, 2, 64))
            sum_w, sum_b = cp.zeros(n, dtype=np.float32), cp.zeros(n, dtype=np.float32)
            again = cp.zeros((rows, n), dtype=dtype)
            ct.launch(stream, (rows,), layer_norm_backward_atomic,
                      (gx, gw, gdy, mean, rstd, again, sum_w, sum_b, tn))
            for got, expected in zip((dx, out_w, out_b, again, sum_w, sum_b), want + want):
                size = max(1.0, np.abs(expected).max())
                np.testing.assert_allclose(cp.asnumpy(got), expected, rtol=0, atol=tolerance * size)


if __name__ == "__main__":
    main()
