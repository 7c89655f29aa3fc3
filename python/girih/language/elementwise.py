"""Choices and arithmetic, element by element."""

from __future__ import annotations

import enum
from typing import Any

from ..frontend.errors import Code
from ..frontend import tensor as _t
from ..frontend import types as ty
from ..frontend.tensor import (
    as_tensor,
    cast,
    compute,
    fail,
    operands,
    select,
    static,
    tensor,
)
from .core import builtin


@builtin
def where(condition, x, y):
    """`x` where the condition holds, else `y`: all three broadcast, `x` and `y` become one type. Both are computed.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.where(i < 2, i, 0)
        [0, 1, 0, 0] : int32[4]
    """
    return select(condition, x, y)


def _float(x: Any, name: str) -> tensor:
    x = as_tensor(x)
    if x.dtype.is_ptr():
        raise fail(f"{name} is not defined for an address, {x.describe()}", code=Code.ADDRESS)
    if x.dtype.is_int():
        raise fail(f"{name} is defined for floats, not for {x.describe()}", f"cast it: `{name}(x.to(girih.float32))`", code=Code.ELEMENT_TYPE)
    return cast(x, ty.float16) if x.dtype.bits == 8 else x


def _unary(op: str, name: str, doc: str, at: str, result: str):
    """An operation on floats; its example is the function at `at`."""

    def function(x):
        x = _float(x, name)
        return compute(x.dtype, x.shape, f"{op} ", x, f" : {x.value.ir_type()}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\nExample:\n    >>> girih.{name}({at})\n    {result} : float32\n"
    return builtin(function, method=True)


exp = _unary("exp", "exp", "e to the power of each element; floats.", "1.0", "2.71828")
exp2 = _unary("exp2", "exp2", "2 to the power of each element; floats.", "3.0", "8")
log = _unary("log", "log", "The natural logarithm of each element; floats.", "10.0", "2.30259")
log2 = _unary("log2", "log2", "The logarithm to base 2 of each element; floats.", "8.0", "3")
sqrt = _unary("sqrt", "sqrt", "The square root of each element, correctly rounded; floats.", "2.0", "1.41421")
sqrt_rn = _unary(
    "sqrt", "sqrt_rn", "The same as `sqrt`, which is correctly rounded: floats of any shape.", "2.0", "1.41421"
)
rsqrt = _unary("rsqrt", "rsqrt", "1 / sqrt(x) of each element; floats.", "4.0", "0.5")
sin = _unary("sin", "sin", "The sine of each element, in radians; floats.", "0.5", "0.479426")
cos = _unary("cos", "cos", "The cosine of each element, in radians; floats.", "0.5", "0.877583")
tan = _unary("tan", "tan", "The tangent of each element, in radians; floats.", "0.5", "0.546302")
sinh = _unary("sinh", "sinh", "The hyperbolic sine of each element; floats.", "0.5", "0.521095")
cosh = _unary("cosh", "cosh", "The hyperbolic cosine of each element; floats.", "0.5", "1.12763")
tanh = _unary("tanh", "tanh", "The hyperbolic tangent of each element; floats.", "0.5", "0.462117")
floor = _unary("floor", "floor", "The greatest whole number not above each element; floats.", "-1.5", "-2")
ceil = _unary("ceil", "ceil", "The least whole number not below each element; floats.", "-1.5", "-1")


def _nearest(x: tensor, ties_to_even: bool) -> tensor:
    """The nearest whole numbers; the sign of zero is kept."""
    size = abs(x)
    below = floor(size)
    rest = size - below
    half = cast(0.5, x.dtype)
    if ties_to_even:
        odd = floor(below * half) != below * half
        up = (rest > half) | ((rest == half) & odd)
    else:
        up = rest >= half
    whole = select(up, below + cast(1.0, x.dtype), below)
    return select(x < 0.0, -whole, select(x == 0.0, x, whole))


@builtin(method=True)
def rint(x):
    """The nearest whole number to each element, ties to even; floats.

    Example:
        >>> girih.rint(2.5)
        2 : float32
    """
    return _nearest(_float(x, "rint"), True)


@builtin(method=True)
def round(x):
    """The nearest whole number to each element, ties away from zero; floats.

    Example:
        >>> girih.round(2.5)
        3 : float32
    """
    return _nearest(_float(x, "round"), False)


@builtin(method=True)
def trunc(x):
    """The whole part of each element; floats.

    Example:
        >>> girih.trunc(-1.5)
        -1 : float32
    """
    x = _float(x, "trunc")
    return select(x < 0.0, ceil(x), floor(x))


@builtin(method=True)
def expm1(x):
    """exp(x) - 1, accurate also near 0; floats of any shape, those of 16 bits computed in float32.

    Source: W. Kahan, as given by N. Higham, Accuracy and Stability of Numerical Algorithms, 1.14.1.

    Example:
        >>> girih.expm1(0.5)
        0.648721 : float32
    """
    x = _float(x, "expm1")
    wide = cast(x, ty.float32) if x.dtype.bits == 16 else x
    e = exp(wide)
    inner = (e - 1.0) * (wide / log(e))
    edge = (e == 0.0) | (e == float("inf")) | (wide != wide)
    return cast(select(e == 1.0, wide, select(edge, e - 1.0, inner)), x.dtype)


@builtin(method=True)
def log1p(x):
    """log(1 + x), accurate also near 0; floats of any shape, those of 16 bits computed in float32.

    Source: W. Kahan, as given by D. Goldberg, What Every Computer Scientist Should Know, theorem 4.

    Example:
        >>> girih.log1p(1.0)
        0.693147 : float32
    """
    x = _float(x, "log1p")
    wide = cast(x, ty.float32) if x.dtype.bits == 16 else x
    u = wide + 1.0
    edge = (u == 0.0) | (u == float("inf"))
    return cast(select(u == 1.0, wide, select(edge, log(u), log(u) * (wide / (u - 1.0)))), x.dtype)


@builtin(method=True)
def abs(x):
    """The absolute value; of the least signed integer, itself.

    Example:
        >>> girih.abs(girih.arange(-2, 2))
        [2, 1, 0, 1] : int32[4]
    """
    x = as_tensor(x)
    if x.dtype.kind in ("uint", "bool"):
        return x
    if x.dtype.is_floating():
        x = _float(x, "abs")
    _t.no_pointers(x, x, "abs")
    return compute(x.dtype, x.shape, "absf " if x.dtype.is_floating() else "absi ", x, f" : {x.value.ir_type()}")


@builtin(method=True)
def sigmoid(x):
    """1 / (1 + exp(-x)); floats of any shape, those of 16 bits computed in float32.

    Example:
        >>> girih.sigmoid(0.0)
        0.5 : float32
    """
    x = _float(x, "sigmoid")
    wide = cast(x, ty.float32) if x.dtype.bits == 16 else x
    return cast(1.0 / (1.0 + exp(-wide)), x.dtype)


@builtin
def relu(x):
    """The greater of x and 0.

    Example:
        >>> girih.relu(girih.arange(-2, 2))
        [0, 0, 0, 1] : int32[4]
    """
    return maximum(x, 0)


@builtin(method=True)
def erf(x):
    """The error function; floats of any shape, to 2 units in the last place, in float64 to 4.

    Example:
        >>> girih.erf(1.0)
        0.842701 : float32
    """
    from .special import erf as approximate

    return approximate(_float(x, "erf"))


@builtin
def fma(x, y, z):
    """x * y + z with one rounding; floats.

    Example:
        >>> girih.fma(girih.load(floats + girih.arange(0, 4)), 2.0, 1.0)
        [1, 3, 5, 7] : float32[4]
    """
    x, y = operands(x, y, "fma")
    x, z = operands(x, z, "fma")
    y = _t.broadcast_to(cast(y, x.dtype), x.shape)
    if not x.dtype.is_floating():
        return x * y + z
    return compute(x.dtype, x.shape, "fma ", x, ", ", y, ", ", z, f" : {x.value.ir_type()}")


@builtin
def fdiv(x, y, ieee_rounding=False):
    """x / y for floats, in their common type: a float16 for two float16, where `/` gives a float32;
    shapes broadcast.

    Example:
        >>> girih.fdiv(1.0, 4.0)
        0.25 : float32
    """
    return _t.divided(x, y)


@builtin
def div_rn(x, y):
    """x / y, correctly rounded, as `/` is: numbers whose shapes broadcast.

    Example:
        >>> girih.div_rn(1.0, 4.0)
        0.25 : float32
    """
    return as_tensor(x) / y


@builtin
def umulhi(x, y):
    """The upper half of the product of unsigned integers.

    Example:
        >>> x = girih.full((2,), 0x80000000, girih.uint32)
        >>> girih.umulhi(x, 6)
        [3, 3] : uint32[2]
    """
    x, y = operands(x, y, "umulhi")
    return compute(x.dtype, x.shape, "mulhii ", x, ", ", y, f" : {x.value.ir_type()}")


@builtin
def pow(x, y):
    """x to the power of y; floats, or a whole exponent from 1 to 8.

    Example:
        >>> girih.pow(2.0, 0.5)
        1.41421 : float32
        >>> girih.arange(0, 4) ** 2
        [0, 1, 4, 9] : int32[4]
    """
    return _t.power(x, y)


@builtin
def atan2(y, x):
    """The angle of the point (x, y), in radians; floats whose shapes broadcast.

    Example:
        >>> girih.atan2(1.0, 1.0)
        0.785398 : float32
    """
    y, x = operands(y, x, "atan2")
    return compute(x.dtype, x.shape, "atan2 ", y, ", ", x, f" : {x.value.ir_type()}")


class PropagateNan(enum.IntEnum):
    """For `propagate_nan`, under Triton's names; a truth value serves as well."""

    NONE = 0
    ALL = 0xFFFF


def _extreme(word: str, x: Any, y: Any, propagate_nan: Any) -> tensor:
    x, y = operands(x, y, f"{word}imum")
    if x.dtype.is_floating():
        x, y = _t.widen_float8(x, y)
        nan = " propagate_nan" if static(propagate_nan, "propagate_nan") else ""
        return compute(x.dtype, x.shape, f"{word}f ", x, ", ", y, f"{nan} : {x.value.ir_type()}")
    x, y = _t.widen_bool(x, y)
    return compute(x.dtype, x.shape, f"{word}i ", x, ", ", y, f" {x.dtype.signedness} : {x.value.ir_type()}")


@builtin
def maximum(x, y, propagate_nan=False):
    """The greater of two tiles, element by element; of a number and a NaN the number, unless NaNs propagate.

    Example:
        >>> girih.maximum(girih.arange(0, 4), 2)
        [2, 2, 2, 3] : int32[4]
    """
    return _extreme("max", x, y, propagate_nan)


@builtin
def minimum(x, y, propagate_nan=False):
    """The lesser of two tiles, element by element; of a number and a NaN the number, unless NaNs propagate.

    Example:
        >>> girih.minimum(girih.arange(0, 4), 2)
        [0, 1, 2, 2] : int32[4]
    """
    return _extreme("min", x, y, propagate_nan)


@builtin
def clamp(x, min, max, propagate_nan=False):
    """`x` brought into min to max.

    Example:
        >>> girih.clamp(girih.arange(0, 8), 2, 5)
        [2, 2, 2, 3, 4, 5, 5, 5] : int32[8]
    """
    return minimum(maximum(x, min, propagate_nan), max, propagate_nan)


@builtin
def logical_and(x, y):
    """Both hold; numbers hold when they are not 0.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.logical_and(i > 0, i < 3)
        [0, 1, 1, 0] : int1[4]
    """
    return _t.logical("and", x, y)


@builtin
def logical_or(x, y):
    """One of them holds.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.logical_or(i < 1, i > 2)
        [1, 0, 0, 1] : int1[4]
    """
    return _t.logical("or", x, y)
