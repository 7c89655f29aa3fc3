"""NaN and infinity in minima, maxima, comparisons and selections."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct


def make(meaning):
    @ct.kernel
    def kernel(x, y, extremes, facts, n: ct.Constant[int]):
        a = ct.load(x, (0,), (n,))
        b = ct.load(y, (0,), (n,))
        if meaning is not None:
            a, b = ct.bitcast(a, meaning), ct.bitcast(b, meaning)
        values = (
            ct.minimum(a, b),
            ct.maximum(a, b),
            ct.minimum(a, b, propagate_nan=True),
            ct.maximum(a, b, propagate_nan=True),
            ct.where(ct.isnan(a), b, a),
            ct.abs(a),
            -a,
        )
        for k in ct.static_iter(range(7)):
            value = values[k]
            if meaning is not None:
                value = ct.bitcast(value, extremes.dtype)
            ct.store(extremes, (k, 0), value[None, :])
        answers = (a == b, a != b, a < b, a <= b, a > b, a >= b, ct.isnan(a), a == a)
        for k in ct.static_iter(range(8)):
            ct.store(facts, (k, 0), answers[k][None, :])

    return kernel


def smaller(a, b):
    return np.where((a < b) | ((a == b) & np.signbit(a)) | np.isnan(b), a, b)


def main():
    stream = cp.cuda.get_current_stream()
    np.seterr(all="ignore")
    values = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5]
    for dtype, storage, meaning in (
        (np.float16, np.float16, None),
        (np.float32, np.float32, None),
        (np.float64, np.float64, None),
        (ml_dtypes.bfloat16, np.uint16, ct.bfloat16),
    ):
        a = np.repeat(values, 8).astype(dtype)
        b = np.tile(values, 8).astype(dtype)
        extremes, facts = cp.zeros((7, 64), dtype=storage), cp.zeros((8, 64), dtype=np.bool_)
        ct.launch(stream, (1,), make(meaning),
                  (cp.asarray(a.view(storage)), cp.asarray(b.view(storage)), extremes, facts, 64))
        either = np.isnan(a) | np.isnan(b)
        low, high = smaller(a, b), -smaller(-a, -b)
        nan = dtype(np.nan)
        want = [low, high, np.where(either, nan, low), np.where(either, nan, high),
                np.where(np.isnan(a), b, a), abs(a), -a]
        got = cp.asnumpy(extremes).view(dtype).astype(np.float64)
        for k, row in enumerate(want):
            row = row.astype(np.float64)
            np.testing.assert_array_equal(got[k], row, err_msg=f"row {k} of {dtype.__name__}")
            known = ~np.isnan(row)
            np.testing.assert_array_equal(np.signbit(got[k])[known], np.signbit(row)[known])
        want = [a == b, a != b, a < b, a <= b, a > b, a >= b, np.isnan(a), a == a]
        np.testing.assert_array_equal(cp.asnumpy(facts), want)


if __name__ == "__main__":
    main()
