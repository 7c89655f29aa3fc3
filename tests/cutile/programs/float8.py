"""The 8-bit floats: every code read, numbers rounded to the nearest, arithmetic by way of f32."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct


def reader(kind):
    @ct.kernel
    def kernel(codes, narrow, wide):
        x = ct.bitcast(ct.load(codes, (0,), (256,)), kind)
        ct.store(narrow, (0,), ct.astype(x, narrow.dtype))
        ct.store(wide, (0,), ct.astype(x, wide.dtype))

    return kernel


def writer(kind, mode):
    @ct.kernel
    def kernel(numbers, codes, n: ct.Constant[int]):
        x = ct.load(numbers, (0,), (n,))
        ct.store(codes, (0,), ct.bitcast(x.astype(kind, rounding_mode=mode), ct.uint8))

    return kernel


@ct.kernel
def scale_down(x, codes, scales, n: ct.Constant[int]):
    """Quantise each row to e4m3 with a scale of its own."""
    row = ct.bid(0)
    values = ct.load(x, (row, 0), (1, n))
    scale = ct.max(ct.abs(values)) / 448.0
    ct.store(scales, (row,), scale)
    ct.store(codes, (row, 0), ct.bitcast((values / scale).astype(ct.float8_e4m3fn), ct.uint8))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(21)
    codes = np.arange(256, dtype=np.uint8)
    for kind, numpy_kind in ((ct.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
                             (ct.float8_e5m2, ml_dtypes.float8_e5m2),
                             (ct.float8_e8m0fnu, ml_dtypes.float8_e8m0fnu)):
        # The powers of two of e8m0 do not fit in f16.
        small = np.float32 if kind is ct.float8_e8m0fnu else np.float16
        narrow, wide = cp.zeros(256, dtype=small), cp.zeros(256, dtype=np.float64)
        ct.launch(stream, (1,), reader(kind), (cp.asarray(codes), narrow, wide))
        want = codes.view(numpy_kind).astype(np.float64)
        np.testing.assert_array_equal(cp.asnumpy(wide), want, err_msg=str(kind))
        np.testing.assert_array_equal(cp.asnumpy(narrow), want.astype(small), err_msg=str(kind))

    for kind, numpy_kind, largest in ((ct.float8_e4m3fn, ml_dtypes.float8_e4m3fn, 448.0),
                                      (ct.float8_e5m2, ml_dtypes.float8_e5m2, 57344.0)):
        for dtype in (np.float32, np.float16):
            x = np.concatenate([
                rng.uniform(-largest, largest, 100), rng.standard_normal(100), rng.standard_normal(40) * 1e-3,
                [0.0, -0.0, largest, -largest, 2.0**-9, 2.0**-10, 3 * 2.0**-11, 2.0**-16, 2.0**-17,
                 1.0625, 1.1875, 1.125, 1.375, -1.0625, 17.0, 19.0],
            ]).astype(dtype)
            result = cp.zeros(256, dtype=np.uint8)
            ct.launch(stream, (1,), writer(kind, None), (cp.asarray(x), result, 256))
            np.testing.assert_array_equal(cp.asnumpy(result), x.astype(numpy_kind).view(np.uint8))

    # e8m0 holds powers of two only: the one below, or the one above.
    x = np.concatenate([2.0 ** np.arange(-20, 20), rng.uniform(0.01, 1000, 24)]).astype(np.float32)
    for mode, whole in ((ct.RoundingMode.RZ, np.floor), (ct.RoundingMode.RP, np.ceil)):
        result = cp.zeros(64, dtype=np.uint8)
        ct.launch(stream, (1,), writer(ct.float8_e8m0fnu, mode), (cp.asarray(x), result, 64))
        np.testing.assert_array_equal(cp.asnumpy(result), whole(np.log2(x.astype(np.float64))) + 127)

    x = (rng.standard_normal((6, 32)) * [[1e-3], [1], [30], [1e4], [5], [0.2]]).astype(np.float32)
    result, scales = cp.zeros((6, 32), dtype=np.uint8), cp.zeros(6, dtype=np.float32)
    ct.launch(stream, (6,), scale_down, (cp.asarray(x), result, scales, 32))
    restored = cp.asnumpy(result).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    restored *= cp.asnumpy(scales)[:, None]
    error = np.abs(restored - x) / np.abs(x).max(axis=1, keepdims=True)
    assert error.max() <= 1 / 28 + 1e-6, error.max()


if __name__ == "__main__":
    main()
