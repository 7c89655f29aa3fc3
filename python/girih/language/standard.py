"""Operators as functions, and the functions of Triton's standard library that are built of others."""

from __future__ import annotations

from ..frontend.errors import Code
from ..frontend import tensor as _t
from ..frontend.tensor import as_tensor, axis_of, broadcast_to, common_shape, describe, fail, reshape_to, unwrap
from .core import builtin
from .elementwise import minimum


@builtin
def add(x, y, sanitize_overflow=True):
    """x + y; integers wrap. Any types that combine; shapes broadcast.

    Example:
        >>> girih.add(girih.arange(0, 4), 1)
        [1, 2, 3, 4] : int32[4]
    """
    return _t.add(as_tensor(x), y)


@builtin
def sub(x, y, sanitize_overflow=True):
    """x - y; integers wrap. Any types that combine; shapes broadcast.

    Example:
        >>> girih.sub(girih.arange(0, 4), 1)
        [-1, 0, 1, 2] : int32[4]
    """
    return _t.sub(as_tensor(x), y)


@builtin
def mul(x, y, sanitize_overflow=True):
    """x * y; integers wrap. Any types that combine; shapes broadcast.

    Example:
        >>> girih.mul(girih.arange(0, 4), 2.5)
        [0, 2.5, 5, 7.5] : float32[4]
    """
    return _t.arithmetic("mul", as_tensor(x), y)


@builtin(method=True)
def cast(x, dtype, fp_downcast_rounding=None, bitcast=False):
    """The elements as another type, of any shape: `x.to(dtype)`.

    Floats round to the nearest, ties to even; floats become integers towards zero, and must fit them. Narrower integers
    keep the lower bits. Anything but 0 is true. With `bitcast`, the bits stay.

    Example:
        >>> girih.cast(2.75, girih.int32)
        2 : int32
        >>> girih.cast(300, girih.uint8)
        44 : uint8
    """
    return _t.cast(x, dtype, fp_downcast_rounding, bitcast)


@builtin
def permute(x, *dims):
    """The dimensions in the order given, as numbers or as one tuple; any type and shape.

    Example:
        >>> girih.permute(girih.reshape(girih.arange(0, 4), (2, 2)), (1, 0))
        [[0, 2], [1, 3]] : int32[2, 2]
    """
    return _t.permute(as_tensor(x), *dims)


@builtin(method=True)
def squeeze(x, dim):
    """The tile without its dimension `dim`, which has the extent 1; any type.

    Example:
        >>> girih.squeeze(girih.zeros((1, 4), girih.int32), 0)
        [0, 0, 0, 0] : int32[4]
    """
    x = as_tensor(x)
    at = axis_of(x, dim)
    if x.shape[at] != 1:
        raise fail(f"the dimension {at} of {x.describe()} is not of extent 1", code=Code.SHAPE)
    return reshape_to(x, (*x.shape[:at], *x.shape[at + 1 :]))


@builtin(method=True)
def unsqueeze(x, dim):
    """The tile with a dimension of extent 1 put in at `dim`; any type and shape.

    Example:
        >>> girih.unsqueeze(girih.arange(0, 4), 0)
        [[0, 1, 2, 3]] : int32[1, 4]
    """
    x = as_tensor(x)
    at = _t.static_int(dim, "the dimension")
    if not -x.ndim - 1 <= at <= x.ndim:
        raise fail(f"the dimension {at} is out of range for a result of {x.ndim + 1} dimensions", code=Code.SHAPE)
    at %= x.ndim + 1
    return reshape_to(x, (*x.shape[:at], 1, *x.shape[at:]))


@builtin
def swizzle2d(i, j, size_i, size_j, size_g):
    """The indices of a row-major `size_i` x `size_j` grid in the order that walks `size_g` rows together; int32 pairs.

    Example:
        >>> girih.swizzle2d(girih.arange(0, 4) // 2, girih.arange(0, 4) % 2, 2, 2, 2)
        [0, 1, 0, 1] : int32[4]
        [0, 0, 1, 1] : int32[4]
    """
    at = as_tensor(i) * size_j + j
    size_gj = as_tensor(size_j) * size_g
    group = at // size_gj
    first = group * size_g
    height = minimum(as_tensor(size_i) - first, size_g)
    at = at % size_gj
    return first + at % height, at // height


@builtin
def map_elementwise(scalar_fn, *args, pack=1):
    """A function of scalars applied to every element of tiles of any types; shapes broadcast.

    Example:
        >>> girih.map_elementwise(lambda a, b: a * b + 1, girih.arange(0, 4), 2)
        [1, 3, 5, 7] : int32[4]
    """
    from ..frontend.calls import CURRENT_TRACER, call

    tiles = [as_tensor(a) for a in args]
    if not tiles:
        raise fail("map_elementwise needs a tile", code=Code.OPERAND)
    if unwrap(pack) != 1:
        raise fail("map_elementwise works on one element at a time", "leave `pack` out", code=Code.CALL)
    shape = common_shape(*tiles)
    result = unwrap(call(CURRENT_TRACER.get(), scalar_fn, [broadcast_to(t, shape) for t in tiles], {}))
    several = isinstance(result, (tuple, list))
    results = tuple(broadcast_to(as_tensor(r), shape) for r in (result if several else (result,)))
    return results if several else results[0]


@builtin
def inline_asm_elementwise(*args, **kwargs):
    """PTX in a kernel: refused, as kernels run on processors without it; takes any dtype and shape."""
    raise fail("PTX cannot be part of a kernel", "write it with the language's functions", code=Code.UNSUPPORTED)


@builtin
def dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, *args, **kwargs):
    """Products of block-scaled floats [M, K] and [K, N] of 4 and 8 bits: refused; scale the tiles and use `dot`."""
    raise fail(
        f"dot_scaled of {describe(lhs)} and {describe(rhs)} is not supported",
        "multiply by the scales, cast to float16 and use `girih.dot`",
        code=Code.UNSUPPORTED,
    )


def constexpr_function(function):
    """A decorator: the function is Python's own, and kernels call it with constants while they are compiled.

    Example:
        >>> half = girih.constexpr_function(lambda n: n // 2)
        >>> half(64)
        32
    """
    function.__girih_host__ = True
    return function


constexpr_function.__girih_builtin__ = True
