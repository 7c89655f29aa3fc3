"""Casts between integers, booleans and floats."""
import cupy as cp
import numpy as np
import cuda.tile as ct

INTEGERS = {
    np.int8: ct.int8, np.int16: ct.int16, np.int32: ct.int32, np.int64: ct.int64,
    np.uint8: ct.uint8, np.uint16: ct.uint16, np.uint32: ct.uint32, np.uint64: ct.uint64,
}
FLOATS = {np.float16: ct.float16, np.float32: ct.float32, np.float64: ct.float64}


@ct.kernel
def cast(x, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    ct.store(result, (0, 0), ct.astype(a, result.dtype)[None, :])
    ct.store(result, (1, 0), a.astype(result.dtype)[None, :])


@ct.kernel
def cast_scalars(x, result):
    """Types called like functions convert scalars."""
    a = ct.load(x, (0,), ())
    ct.store(result, (0,), ct.int32(a))
    ct.store(result, (1,), ct.int32(ct.int8(a)))
    ct.store(result, (2,), ct.int32(ct.uint8(a)))
    ct.store(result, (3,), ct.int32(ct.float32(a) * 0.5))
    ct.store(result, (4,), ct.int32(bool(a)))
    ct.store(result, (5,), ct.int32(ct.uint16(a)))


def run(stream, x, dtype):
    result = cp.zeros((2, len(x)), dtype=dtype)
    ct.launch(stream, (1,), cast, (cp.asarray(x), result, len(x)))
    first, second = cp.asnumpy(result)
    np.testing.assert_array_equal(first, second)
    return first


def wrap(value, dtype):
    bits = np.iinfo(dtype).bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.iinfo(dtype).min < 0 and value >> (bits - 1) else value


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(19)
    for source in INTEGERS:
        limit = np.iinfo(source)
        x = rng.integers(limit.min, limit.max, 64, dtype=source, endpoint=True)
        x[:6] = (limit.min, limit.max, 0, 1, limit.max - 1, limit.max // 2)
        for target in INTEGERS:
            if target is not source:
                want = [wrap(value, target) for value in x.tolist()]
                np.testing.assert_array_equal(run(stream, x, target), np.array(want, dtype=target),
                                              err_msg=f"{source.__name__} to {target.__name__}")
        np.testing.assert_array_equal(run(stream, x, np.bool_), x != 0)
        for target in FLOATS:
            if target is np.float16 and limit.max > 60000:
                x = x % 60000
            # An integer that a wider float holds exactly is rounded once.
            want = x.astype(np.float64).astype(target) if limit.bits < 64 else x.astype(target)
            np.testing.assert_array_equal(run(stream, x, target), want,
                                          err_msg=f"{source.__name__} to {target.__name__}")

        for float_type in FLOATS:  # toward zero, within the integer's range
            low, high = max(limit.min, -30000), min(limit.max, 30000)
            values = rng.uniform(low, high, 64).astype(float_type)
            values[:8] = (0.0, -0.0, 0.99, 1.5, 2.5, low, high, high / 2)
            if low < 0:
                values[8:12] = (-0.99, -1.5, -2.5, -0.01)
            want = [int(value) for value in values.tolist()]
            np.testing.assert_array_equal(run(stream, values, source), want)

    flags = rng.integers(0, 2, 32).astype(np.bool_)
    for target in (*INTEGERS, *FLOATS):
        np.testing.assert_array_equal(run(stream, flags, target), flags.astype(target))
    for source in FLOATS:
        np.testing.assert_array_equal(run(stream, flags.astype(source), np.bool_), flags)

    for value in (0, 1, -1, 200, -129, 70000, -70000):
        result = cp.zeros(6, dtype=np.int32)
        ct.launch(stream, (1,), cast_scalars, (cp.asarray(np.int32([value])), result))
        want = [value, wrap(value, np.int8), wrap(value, np.uint8), int(value / 2), value != 0,
                wrap(value, np.uint16)]
        np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
