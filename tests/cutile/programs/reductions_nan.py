"""Maxima and minima of rows that hold NaN, infinities and zeros of both signs."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def extremes(x, result, rows: ct.Constant[int], columns: ct.Constant[int]):
    tile = ct.load(x, (0, 0), (rows, columns))
    ct.store(result, (0, 0), ct.max(tile, axis=1)[None, :])
    ct.store(result, (1, 0), ct.min(tile, axis=1)[None, :])
    ct.store(result, (2, 0), ct.max(tile, axis=1, propagate_nan=True)[None, :])
    ct.store(result, (3, 0), ct.min(tile, axis=1, propagate_nan=True)[None, :])
    ct.store(result, (4, 0), ct.sum(tile, axis=1)[None, :])


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(26)
    np.seterr(all="ignore")
    for dtype in (np.float16, np.float32, np.float64):
        x = rng.integers(-9, 9, (8, 16)).astype(dtype)
        x[0, 3] = np.nan
        x[1, 0] = x[1, 15] = np.nan
        x[2, 1:] = np.nan
        x[3, 4], x[3, 9] = np.inf, np.nan
        x[4, 4], x[4, 9] = np.inf, -np.inf
        x[5], x[5, 7] = -0.0, 0.0
        x[6] = np.inf
        result = cp.zeros((5, 8), dtype=dtype)
        ct.launch(stream, (1,), extremes, (cp.asarray(x), result, 8, 16))
        got = cp.asnumpy(result)
        want = [np.nanmax(x, axis=1), np.nanmin(x, axis=1), x.max(axis=1), x.min(axis=1), x.sum(axis=1)]
        np.testing.assert_array_equal(got, want)
        # +0 is the larger zero.
        assert not np.signbit(got[0, 5]) and np.signbit(got[1, 5])
        assert not np.signbit(got[2, 5]) and np.signbit(got[3, 5])


if __name__ == "__main__":
    main()
