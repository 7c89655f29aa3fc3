"""The same bits under another type, and tiles as bytes."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def reinterpret(x, result, n: ct.Constant[int]):
    ct.store(result, (0,), ct.bitcast(ct.load(x, (0,), (n,)), result.dtype))


@ct.kernel
def to_bytes(x, result, shape: ct.Constant):
    ct.store(result, (0,), ct.pack_to_bytes(ct.load(x, (0, 0), shape)))


@ct.kernel
def from_bytes(x, result, n: ct.Constant[int]):
    ct.store(result, (0,), ct.unpack_from_bytes(ct.load(x, (0,), (n,)), result.dtype))


@ct.kernel
def fast_inverse_root(x, result, n: ct.Constant[int]):
    """The well-known first guess from the exponent, and two steps of Newton's method."""
    a = ct.load(x, (0,), (n,))
    guess = ct.bitcast(0x5F3759DF - (ct.bitcast(a, ct.int32) >> 1), ct.float32)
    for _ in range(2):
        guess = guess * (1.5 - 0.5 * a * guess * guess)
    ct.store(result, (0,), guess)


@ct.kernel
def flip_signs(x, result, n: ct.Constant[int]):
    """Negation by the sign bit also negates zero, infinity and NaN."""
    bits = ct.bitcast(ct.load(x, (0,), (n,)), ct.uint64)
    ct.store(result, (0,), ct.bitcast(bits ^ ct.full((n,), 1 << 63, dtype=ct.uint64), ct.float64))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(23)
    groups = ((np.int8, np.uint8), (np.int16, np.uint16, np.float16), (np.int32, np.uint32, np.float32),
              (np.int64, np.uint64, np.float64))
    for group in groups:
        width = np.dtype(group[0]).itemsize
        data = rng.integers(0, 256, 32 * width).astype(np.uint8)
        for source in group:
            for target in group:
                if source is not target:
                    result = cp.zeros(32, dtype=target)
                    ct.launch(stream, (1,), reinterpret, (cp.asarray(data.view(source)), result, 32))
                    np.testing.assert_array_equal(cp.asnumpy(result).view(np.uint8), data)
        for dtype in group:
            x = data.view(dtype).reshape(4, 8)
            if width > 1:
                result = cp.zeros(data.size, dtype=np.uint8)
                ct.launch(stream, (1,), to_bytes, (cp.asarray(x), result, (4, 8)))
                np.testing.assert_array_equal(cp.asnumpy(result), data)
                result = cp.zeros(32, dtype=dtype)
                ct.launch(stream, (1,), from_bytes, (cp.asarray(data), result, data.size))
                np.testing.assert_array_equal(cp.asnumpy(result).view(np.uint8), data)

    x = rng.uniform(0.01, 100, 64).astype(np.float32)
    result = cp.zeros(64, dtype=np.float32)
    ct.launch(stream, (1,), fast_inverse_root, (cp.asarray(x), result, 64))
    np.testing.assert_allclose(cp.asnumpy(result), 1 / np.sqrt(x), rtol=1e-5)

    x = np.array([0.0, -0.0, np.inf, np.nan, -np.nan, 1.5, -2.0, 5e-324])
    result = cp.zeros(8, dtype=np.float64)
    ct.launch(stream, (1,), flip_signs, (cp.asarray(x), result, 8))
    np.testing.assert_array_equal(np.signbit(cp.asnumpy(result)), ~np.signbit(x))
    np.testing.assert_array_equal(cp.asnumpy(result), -x)


if __name__ == "__main__":
    main()
