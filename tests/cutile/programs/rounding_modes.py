"""Arithmetic rounded to nearest, toward zero, down and up, against exact fractions."""
from fractions import Fraction

import cupy as cp
import numpy as np
import cuda.tile as ct

MODES = (ct.RoundingMode.RN, ct.RoundingMode.RZ, ct.RoundingMode.RM, ct.RoundingMode.RP)


@ct.kernel
def compute(x, y, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    b = ct.load(y, (0,), (n,))
    for k in ct.static_iter(range(4)):
        mode = ct.static_eval(MODES[k])
        ct.store(result, (k, 0, 0), ct.add(a, b, rounding_mode=mode)[None, None, :])
        ct.store(result, (k, 1, 0), ct.sub(a, b, rounding_mode=mode)[None, None, :])
        ct.store(result, (k, 2, 0), ct.mul(a, b, rounding_mode=mode)[None, None, :])
        ct.store(result, (k, 3, 0), ct.truediv(a, b, rounding_mode=mode)[None, None, :])
        ct.store(result, (k, 4, 0), ct.sqrt(ct.abs(a), rounding_mode=mode)[None, None, :])


def neighbours(guess, not_above):
    """The largest float that `not_above` accepts and the smallest that is not below the value."""
    kind = type(guess)
    while not not_above(Fraction(float(guess))):
        guess = np.nextafter(guess, kind(-np.inf))
    while not_above(Fraction(float(np.nextafter(guess, kind(np.inf))))):
        guess = np.nextafter(guess, kind(np.inf))
    return guess


def rounded(kind, mode, guess, not_above, exact, half):
    """`half(m)` says on which side of `m` the value lies: -1, 0 or 1."""
    low = neighbours(kind(guess), not_above)
    if exact(Fraction(float(low))):
        return low
    high = np.nextafter(low, kind(np.inf))
    if mode is ct.RoundingMode.RM:
        return low
    if mode is ct.RoundingMode.RP:
        return high
    if mode is ct.RoundingMode.RZ:
        return low if high > 0 else high
    side = half((Fraction(float(low)) + Fraction(float(high))) / 2)
    if side == 0:
        bits = np.array(low).view({4: np.uint32, 8: np.uint64}[low.itemsize])
        return low if bits % 2 == 0 else high
    return low if side < 0 else high


def sign(value):
    return (value > 0) - (value < 0)


def of_fraction(kind, mode, value):
    return rounded(kind, mode, float(value), lambda f: f <= value, lambda f: f == value,
                   lambda middle: sign(value - middle))


def of_root(kind, mode, square):
    return rounded(kind, mode, float(square) ** 0.5, lambda f: f < 0 or f * f <= square,
                   lambda f: f * f == square, lambda middle: sign(square - middle * middle))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(12)
    for kind in (np.float32, np.float64):
        a = (rng.standard_normal(64) * 10.0 ** rng.integers(-6, 6, 64)).astype(kind)
        b = (rng.standard_normal(64) * 10.0 ** rng.integers(-6, 6, 64)).astype(kind)
        # Halfway cases of the sum, with an even and an odd neighbour, of either sign.
        step = np.spacing(kind(1))
        a[:4], b[:4] = (1, 1 + step, -1, -1 - step), (step / 2, step / 2, -step / 2, -step / 2)
        a[4:7], b[4:7] = (9, 3, 1), (3, 4, 3)
        result = cp.zeros((4, 5, 64), dtype=kind)
        ct.launch(stream, (1,), compute, (cp.asarray(a), cp.asarray(b), result, 64))
        got = cp.asnumpy(result)
        exact = [(Fraction(float(x)), Fraction(float(y))) for x, y in zip(a, b)]
        for k, mode in enumerate(MODES):
            for i, (x, y) in enumerate(exact):
                want = [of_fraction(kind, mode, value) for value in (x + y, x - y, x * y, x / y)]
                want.append(of_root(kind, mode, abs(x)))
                np.testing.assert_array_equal(got[k, :, i], want, err_msg=f"{mode} {a[i]} {b[i]}")


if __name__ == "__main__":
    main()
