"""The elementwise functions under the name `math`, as in `tl.math.exp(x)`."""

from .core import builtin
from .elementwise import (
    abs,
    atan2,
    ceil,
    clamp,
    cos,
    cosh,
    div_rn,
    erf,
    exp,
    exp2,
    expm1,
    fdiv,
    floor,
    fma,
    log,
    log1p,
    log2,
    maximum,
    minimum,
    pow,
    rint,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    sqrt_rn,
    tan,
    tanh,
    trunc,
    umulhi,
)  # fmt: skip


@builtin
def fast_dividef(x, y):
    """x / y for floats; here as exact as `fdiv`."""
    return fdiv(x, y)


@builtin
def fast_expf(x):
    """e to the power of each element; here as exact as `exp`; floats."""
    return exp(x)


__all__ = [
    "abs", "atan2", "ceil", "clamp", "cos", "cosh", "div_rn", "erf", "exp", "exp2", "expm1", "fast_dividef",
    "fast_expf", "fdiv", "floor", "fma", "log", "log1p", "log2", "maximum", "minimum", "pow", "rint", "round",
    "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "sqrt_rn", "tan", "tanh", "trunc", "umulhi",
]  # fmt: skip
