"""Functions made of others."""

from __future__ import annotations

from ..frontend import types as ty
from ..frontend.tensor import cast, select, tensor
from . import core

# erf(x) = x * P(x^2) up to |x| = 1: the Maclaurin series, sum of 2/sqrt(pi) (-1)^n / (n! (2n + 1)) x^(2n).
SMALL = (
    1.1283791670955126, -0.37612638903183754, 0.11283791670955126, -0.026866170645131252, 0.005223977625442188,
    -0.0008548327023450852, 0.00012055332981789664, -1.492565035840625e-05, 1.6462114365889246e-06,
    -1.6365844691234924e-07, 1.4807192815879218e-08, -1.2290555301717926e-09, 9.422759064650411e-11,
)  # fmt: skip
# Beyond, erfc(x) = exp(-x^2) / x * f / sqrt(pi) with Laplace's continued fraction, f = 1/(1 + h/(1 + 2h/(1 + 3h/...))),
# h = 1 / (2 x^2), cut off after this many terms.
TERMS = 40
ROOT = 0.5641895835477563


def erf(x: tensor) -> tensor:
    """The error function, to a few units in the last place of float32, or to 1e-12 in float64."""
    half = x.dtype.bits == 16
    wide = cast(x, ty.float32) if half else x
    square = wide * wide
    series = SMALL[-1]
    for c in SMALL[-2::-1]:
        series = core.fma(series, square, c) if isinstance(series, tensor) else square * series + c
    small = wide * series
    large = core.maximum(core.abs(wide), 1.0)
    h = 0.5 / (large * large)
    fraction = 1.0
    for n in range(TERMS, 0, -1):
        fraction = 1.0 + (h * float(n)) / fraction
    tail = 1.0 - core.exp(-(large * large)) * ROOT / (large * fraction)
    result = select(core.abs(wide) <= 1.0, small, select(wide < 0.0, -tail, tail))
    result = select(wide != wide, wide, result)
    return cast(result, x.dtype) if half else result
