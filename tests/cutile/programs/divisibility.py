"""Promises that a number is divisible, and arrays that start and end at odd places."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def copy_from(source, result, offset, n: ct.Constant[int]):
    """The promise is kept by every launch below."""
    offset = ct.assume_divisible_by(offset, 8)
    window = source.slice(0, offset, source.shape[0])
    for i in range(ct.num_tiles(window, 0, n)):
        ct.store(result, (i,), ct.load(window, (i,), (n,), padding_mode=ct.PaddingMode.ZERO))


@ct.kernel
def rows(source, result, size, n: ct.Constant[int]):
    size = ct.assume_divisible_by(size, 4)
    view = ct.Array.from_foreign(source.foreign_pointer, (source.shape[0] // size, size), (size, 1))
    i = ct.bid(0)
    ct.store(result, (i,), ct.sum(ct.load(view, (i, 0), (1, n), padding_mode=ct.PaddingMode.ZERO)))


@ct.kernel
def double(source, result, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(result, (i,), ct.load(source, (i,), (n,), padding_mode=ct.PaddingMode.ZERO) * 2)


def main():
    stream = cp.cuda.get_current_stream()
    source = np.arange(100, dtype=np.int32)
    for offset in (0, 8, 64, 96):
        result = cp.full(100, -1, dtype=np.int32)
        ct.launch(stream, (1,), copy_from, (cp.asarray(source), result, offset, 16))
        # The last tile reaches past the window's end, up to the result's.
        end = min(ct.cdiv(100 - offset, 16) * 16, 100)
        want = np.full(100, -1)
        want[:end] = 0
        want[:100 - offset] = source[offset:]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for size in (4, 8, 12):
        result = cp.zeros(96 // size, dtype=np.int32)
        ct.launch(stream, (96 // size,), rows, (cp.asarray(source[:96]), result, size, 16))
        np.testing.assert_array_equal(cp.asnumpy(result), source[:96].reshape(-1, size).sum(axis=1))

    # The launch looks at each array's address, length and stride and compiles for what it finds.
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        base = cp.asarray(np.arange(200, dtype=dtype) % 60)
        for start in (0, 1, 3, 4, 16, 17):
            for length in (1, 16, 31, 32, 100):
                for step in (1, 2):
                    if start + length * step > 200:
                        continue
                    view = base[start:start + length * step:step]
                    target = cp.zeros(300, dtype=dtype)
                    result = target[start:start + length]
                    ct.launch(stream, (ct.cdiv(length, 16),), double, (view, result, 16))
                    want = np.zeros(300, dtype=dtype)
                    want[start:start + length] = cp.asnumpy(view) * 2
                    np.testing.assert_array_equal(cp.asnumpy(target), want)


if __name__ == "__main__":
    main()
