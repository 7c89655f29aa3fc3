"""Running sums and products along each axis, forward and backward."""
import cupy as cp
import numpy as np
import cuda.tile as ct


def scanner(function, axis, reverse):
    @ct.kernel
    def kernel(x, result, shape: ct.Constant):
        tile = ct.load(x, (0, 0, 0), shape)
        ct.store(result, (0, 0, 0), function(tile, axis, reverse=reverse))

    return kernel


@ct.kernel
def running_total(x, result, n: ct.Constant[int]):
    """The running sum of an array of any length, carrying each tile's total into the next."""
    carry = ct.zeros((), dtype=x.dtype)
    for i in range(ct.num_tiles(x, 0, n)):
        tile = ct.load(x, (i,), (n,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(result, (i,), ct.cumsum(tile) + carry)
        carry = carry + ct.sum(tile)


@ct.kernel
def bounds(x, result, n: ct.Constant[int]):
    """Sums and products rounded down and up enclose the exact ones, from either end."""
    tile = ct.load(x, (0,), (n,))
    ct.store(result, (0, 0), ct.cumsum(tile, 0, rounding_mode=ct.RoundingMode.RM)[None, :])
    ct.store(result, (1, 0), ct.cumsum(tile, 0, rounding_mode=ct.RoundingMode.RP)[None, :])
    ct.store(result, (2, 0), ct.cumsum(tile, 0, flush_to_zero=True)[None, :])
    factors = 1.0 + ct.abs(tile)
    ct.store(result, (3, 0), ct.cumprod(factors, 0, reverse=True, rounding_mode=ct.RoundingMode.RM)[None, :])
    ct.store(result, (4, 0), ct.cumprod(factors, 0, reverse=True, rounding_mode=ct.RoundingMode.RP)[None, :])
    ct.store(result, (5, 0), ct.cumprod(factors, 0, flush_to_zero=True)[None, :])
    ct.store(result, (6, 0), ct.cumsum(tile, 0, reverse=True)[None, :])


def numpy_scan(function, x, axis, reverse):
    if reverse:
        x = np.flip(x, axis)
    scanned = function(x, axis=axis, dtype=x.dtype)
    return np.flip(scanned, axis) if reverse else scanned


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(28)
    for function, reference in ((ct.cumsum, np.cumsum), (ct.cumprod, np.cumprod)):
        for axis in (0, 1, 2, -1):
            for reverse in (False, True):
                kernel = scanner(function, axis, reverse)
                for shape in ((4, 8, 2), (1, 2, 16)):
                    for dtype in (np.int32, np.uint64, np.float32, np.float64):
                        x = rng.integers(1, 4, shape)
                        if function is ct.cumprod:  # exact in every type
                            x = np.where(rng.random(shape) < 0.7, 1, 2)
                        x = x.astype(dtype)
                        result = cp.zeros(shape, dtype=dtype)
                        ct.launch(stream, (1,), kernel, (cp.asarray(x), result, shape))
                        np.testing.assert_array_equal(cp.asnumpy(result), numpy_scan(reference, x, axis, reverse))

    for dtype in (np.int32, np.float32):
        for size in (1, 15, 16, 50):
            x = rng.integers(-9, 9, size).astype(dtype)
            result = cp.zeros(size, dtype=dtype)
            ct.launch(stream, (1,), running_total, (cp.asarray(x), result, 16))
            np.testing.assert_array_equal(cp.asnumpy(result), np.cumsum(x, dtype=dtype))

    x = rng.standard_normal(32).astype(np.float32)
    result = cp.zeros((7, 32), dtype=np.float32)
    ct.launch(stream, (1,), bounds, (cp.asarray(x), result, 32))
    low, high, plain, low_product, high_product, product, backward = cp.asnumpy(result).astype(np.float64)
    exact = np.cumsum(x.astype(np.float64))
    assert (low <= exact).all() and (exact <= high).all() and low[-1] < high[-1]
    np.testing.assert_allclose(plain, exact, rtol=1e-5, atol=1e-5)
    factors = (np.float32(1) + abs(x)).astype(np.float64)
    exact = np.cumprod(factors[::-1])[::-1]
    assert (low_product <= exact).all() and (exact <= high_product).all() and low_product[0] < high_product[0]
    np.testing.assert_allclose(product, np.cumprod(factors), rtol=1e-5)
    np.testing.assert_allclose(backward, np.cumsum(x[::-1].astype(np.float64))[::-1], rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main()
