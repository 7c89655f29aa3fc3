"""Helper functions: plain, decorated, nested, with defaults and keywords, recursive, passed around."""
import operator

import cupy as cp
import numpy as np
import cuda.tile as ct

SLOPE = 0.25


def leaky(x, slope=SLOPE):
    return ct.where(x > 0.0, x, x * slope)


def rectified(x):
    return ct.maximum(x, 0.0)


@ct.function
def scaled(x, *, by):
    """Only kernels may call this one."""
    return x * by


@ct.function(host=True, tile=True)
def blocks_for(size, tile):
    """Used on the host for the grid and in the kernel alike."""
    return (size + tile - 1) // tile


def split(x):
    """More than one result."""
    return ct.maximum(x, 0.0), ct.minimum(x, 0.0)


def twice(function, x):
    return function(function(x))


def power(x, n):
    """Recursion that ends when compiling."""
    if ct.ensure_constant(n == 0):
        return x * 0.0 + 1.0
    half = power(x, n // 2)
    if ct.ensure_constant(n % 2 == 1):
        return half * half * x
    return half * half


def polynomial(x, *coefficients):
    total = x * 0.0
    for c in ct.static_iter(coefficients):
        total = total * x + c
    return total


def make_kernel(activation, offset):
    """A kernel that closes over a function and a number."""

    @ct.kernel
    def kernel(x, result, n: ct.Constant[int]):
        def shifted(tile):
            return activation(tile) + offset

        i = ct.bid(0)
        tile = ct.load(x, (i,), (n,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(result, (i,), shifted(tile))

    return kernel


@ct.kernel
def use_everything(x, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    up, down = split(a)
    square = lambda t: t * t  # noqa: E731
    rows = (
        leaky(a), leaky(a, 0.5), leaky(slope=2.0, x=a), scaled(a, by=3.0), up - down,
        twice(square, a), twice(lambda t: t + 0.5, a), power(a, 5), polynomial(a, 1.0, -2.0, 3.0),
        operator.add(a, operator.mul(a, 2.0)), operator.neg(a), first_positive(a, n),
    )
    for k in ct.static_iter(range(12)):
        ct.store(result, (k, 0), rows[k][None, :])
    ct.static_assert(blocks_for(100, 16) == 7)


def first_positive(x, n):
    """Returns from the middle of a loop's branches."""
    for k in ct.static_iter(range(3)):
        x = x + 0.0
    if ct.ensure_constant(n > 4):
        return x * 10.0
    return x


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(42)
    x = rng.integers(-8, 8, 8).astype(np.float32)
    result = cp.zeros((12, 8), dtype=np.float32)
    ct.launch(stream, (1,), use_everything, (cp.asarray(x), result, 8))
    want = [np.where(x > 0, x, x * 0.25), np.where(x > 0, x, x * 0.5), np.where(x > 0, x, x * 2), x * 3, abs(x),
            x**4, x + 1, x**5, x * x - 2 * x + 3, x * 3, -x, x * 10]
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    size = 37
    x = rng.standard_normal(size).astype(np.float32)
    for activation, reference in ((leaky, lambda t: np.where(t > 0, t, t * np.float32(0.25))),
                                  (rectified, lambda t: np.maximum(t, 0))):
        for offset in (0.0, 1.5):
            result = cp.zeros(size, dtype=np.float32)
            ct.launch(stream, (blocks_for(size, 16),), make_kernel(activation, offset), (cp.asarray(x), result, 16))
            np.testing.assert_array_equal(cp.asnumpy(result), reference(x) + np.float32(offset))

    # Functions of kernels cannot be called from the host.
    for call in (lambda: scaled(1.0, by=2.0), lambda: ct.exp(1.0), lambda: use_everything(x, x, 8)):
        try:
            call()
        except (TypeError, RuntimeError):
            continue
        raise SystemExit("a function of kernels ran on the host")


if __name__ == "__main__":
    main()
