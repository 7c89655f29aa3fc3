"""One kernel launched again and again: with the same arguments, other types, ranks and constants."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def affine(x, result, scale, offset, n: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, (i,), (n,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (i,), ct.astype(tile * scale + offset, result.dtype))


@ct.kernel
def fill_any_rank(result, value):
    """The rank of the array is known when compiling, and differs from launch to launch."""
    index = ()
    shape = ()
    for axis in ct.static_iter(range(result.ndim)):
        index += (0,)
        shape += (4,)
    ct.store(result, index, ct.full(shape, value, dtype=result.dtype))


@ct.kernel
def increment(counter):
    ct.store(counter, (0,), ct.load(counter, (0,), ()) + 1)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(48)
    for source in (np.int32, np.float16, np.float32, np.float64):
        for target in (np.float32, np.float64):
            for scale, offset in ((2, 1), (0.5, -3.0), (-1, 0.25)):
                for n, size in ((8, 32), (16, 20), (32, 7)):
                    x = rng.integers(-20, 20, size).astype(source)
                    result = cp.zeros(size, dtype=target)
                    ct.launch(stream, (ct.cdiv(size, n),), affine, (cp.asarray(x), result, scale, offset, n))
                    np.testing.assert_array_equal(cp.asnumpy(result), x.astype(np.float64) * scale + offset)

    for rank in range(1, 6):
        result = cp.zeros((4,) * rank, dtype=np.float32)
        ct.launch(stream, (1,), fill_any_rank, (result, rank + 0.5))
        np.testing.assert_array_equal(cp.asnumpy(result), np.full((4,) * rank, rank + 0.5))
    narrow = cp.zeros((3, 2), dtype=np.int64)
    ct.launch(stream, (1,), fill_any_rank, (narrow, 9))
    np.testing.assert_array_equal(cp.asnumpy(narrow), np.full((3, 2), 9))

    counter = cp.zeros(1, dtype=np.int32)
    for _ in range(500):
        ct.launch(stream, (1,), increment, (counter,))
    assert int(counter[0]) == 500

    # The same kernel, arrays that come and go.
    for step in range(50):
        x = cp.asarray(np.full(16, step, dtype=np.float32))
        result = cp.zeros(16, dtype=np.float32)
        ct.launch(stream, (1,), affine, (x, result, 3, 1, 16))
        assert float(result[15]) == 3 * step + 1


if __name__ == "__main__":
    main()
