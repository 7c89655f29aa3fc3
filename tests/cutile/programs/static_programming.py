"""What is decided when compiling: constants, static_eval, static_iter, static_assert."""
import cupy as cp
import numpy as np
import cuda.tile as ct

TABLE = {"small": 3, "large": 50}
WEIGHTS = (0.25, 0.5, 0.25)


@ct.kernel
def stencil(x, result, n: ct.Constant[int]):
    """A loop over module-level numbers, unrolled."""
    place = ct.bid(0) * n + ct.arange(n, dtype=ct.int32)
    total = ct.zeros((n,), dtype=ct.float32)
    for k, weight in ct.static_iter(enumerate(WEIGHTS)):
        total = total + weight * ct.gather(x, place + (k - len(WEIGHTS) // 2))
    ct.scatter(result, place, total)


@ct.kernel
def evaluate(x, result, n: ct.Constant[int], flavour: ct.Constant[int]):
    """static_eval runs ordinary Python on what is known."""
    name = ct.static_eval(sorted(TABLE)[flavour])
    ct.static_assert(isinstance(n, int) and n & (n - 1) == 0, f"{n} is not a power of two")
    tile = ct.load(x, (0,), (n,))
    ct.static_assert(tile.shape == (n,) and tile.dtype == ct.int32, tile)
    tile = ct.static_eval(tile + TABLE[name] if flavour == 1 else tile * TABLE[name])
    digits = ct.static_eval(tuple(int(d) for d in str(2**n)))
    ct.store(result, (0,), tile + digits[0])


@ct.kernel
def unrolled_states(result, n: ct.Constant[int]):
    """A tuple that grows in an unrolled loop, then a rotation of it."""
    states = ()
    for i in ct.static_iter(range(n)):
        states += (ct.full((n,), i, dtype=ct.int32),)
    for i in ct.static_iter(range(n)):
        ct.store(result, (i, 0), (states[(i + 1) % n] * 10 + states[i])[None, :])


@ct.kernel
def constants(result, integer: ct.Constant[int], real: ct.Constant[float], flag: ct.Constant[bool],
              shape: ct.Constant, tuples: tuple[ct.Constant[int], int]):
    known = ct.ensure_constant(integer)
    ct.static_assert(known == integer and tuples[0] > 0)
    step = tuples[0] if flag else -tuples[0]
    tile = ct.full(shape, real, dtype=ct.float32) * integer + step
    ct.store(result, (0, 0), tile + tuples[1])


def raised(error, kernel, *arguments):
    """The message with which compiling a kernel fails."""
    try:
        ct.launch(cp.cuda.get_current_stream(), (1,), kernel, arguments)
    except error as caught:
        return str(caught)
    raise SystemExit(f"{kernel._pyfunc.__name__} was not refused")


@ct.kernel
def wants_powers_of_two(result, n: ct.Constant[int]):
    ct.static_assert(n % 2 == 0, f"n is {n}, which is odd")
    ct.store(result, (0,), n)


@ct.kernel
def wants_a_constant(result):
    ct.store(result, (0,), ct.ensure_constant(ct.bid(0)))


@ct.kernel
def raises(result, n: ct.Constant[int]):
    if n == 3:
        raise ct.static_exception(ValueError("three is not supported"))
    ct.store(result, (0,), n)


@ct.kernel
def divides_by_zero(result, n: ct.Constant[int]):
    ct.store(result, (0,), ct.static_eval(100 // n))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(45)
    x = rng.integers(-9, 9, 21).astype(np.float32)
    result = cp.zeros(21, dtype=np.float32)
    ct.launch(stream, (3,), stencil, (cp.asarray(x), result, 8))
    np.testing.assert_array_equal(cp.asnumpy(result), np.convolve(x, WEIGHTS, mode="same"))

    x = rng.integers(-9, 9, 8).astype(np.int32)
    for flavour, want in ((0, x * 50 + 2), (1, x + 3 + 2)):
        result = cp.zeros(8, dtype=np.int32)
        ct.launch(stream, (1,), evaluate, (cp.asarray(x), result, 8, flavour))
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    result = cp.zeros((4, 4), dtype=np.int32)
    ct.launch(stream, (1,), unrolled_states, (result, 4))
    np.testing.assert_array_equal(cp.asnumpy(result), np.repeat([[10], [21], [32], [3]], 4, axis=1))

    for integer, real, flag, pair in ((3, 0.5, True, (2, 10)), (-4, -1.25, False, (7, -3))):
        result = cp.zeros((2, 8), dtype=np.float32)
        ct.launch(stream, (1,), constants, (result, integer, real, flag, (2, 8), pair))
        want = real * integer + (pair[0] if flag else -pair[0]) + pair[1]
        np.testing.assert_array_equal(cp.asnumpy(result), np.full((2, 8), want))

    result = cp.zeros(1, dtype=np.int32)
    ct.launch(stream, (1,), wants_powers_of_two, (result, 4))
    assert "n is 7, which is odd" in raised(ct.TileStaticAssertionError, wants_powers_of_two, result, 7)
    raised(ct.TileStaticAssertionError, wants_a_constant, result)
    ct.launch(stream, (1,), raises, (result, 2))
    assert "three is not supported" in raised(ct.StaticException, raises, result, 3)
    ct.launch(stream, (1,), divides_by_zero, (result, 7))
    assert int(result[0]) == 14
    raised(ct.TileStaticEvalError, divides_by_zero, result, 0)


if __name__ == "__main__":
    main()
