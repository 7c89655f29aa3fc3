"""The basics of kernels: ids, new tiles, their shapes; products; promises; helpers for the host.

Each function takes tensors, numbers and `constexpr` values, works on every tile shape unless it says otherwise, and
appends Tile IR operations to the kernel being traced. The names and the meanings are Triton's where it has them.
"""

from __future__ import annotations

from typing import Any

from ..frontend.errors import Code
from ..frontend import tensor as _t
from ..frontend import types as ty
from ..frontend.builder import Value, commas
from ..frontend.tensor import (
    as_tensor,
    axis_of,
    builder,
    cast,
    check_dtype,
    check_shape,
    common_shape,
    compute,
    constant,
    fail,
    is_number,
    operands,
    permute,
    reshape_to,
    static,
    static_int,
    tensor,
    unwrap,
)

# The functions that are methods of tensors too.
METHODS: dict[str, Any] = {}


def builtin(function=None, *, method: bool = False):
    """Marks a function that kernels call; with `method`, tiles have it as a method."""

    def mark(f):
        f.__girih_builtin__ = True
        if method:
            METHODS[f.__name__] = f
        return f

    return mark if function is None else mark(function)


# ---- where the block is


@builtin
def program_id(axis):
    """The index of this block of the grid along `axis`, 0, 1 or 2: an int32 scalar.

    Example:
        >>> row = girih.program_id(0)
        >>> row
        0 : int32
    """
    return _coordinate("get_tile_block_id", axis, "pid")


@builtin
def num_programs(axis):
    """The number of blocks of the grid along `axis`, 0, 1 or 2: an int32 scalar.

    Example:
        >>> girih.num_programs(0)
        1 : int32
    """
    return _coordinate("get_num_tile_blocks", axis, "programs")


def _coordinate(op: str, axis: Any, hint: str) -> tensor:
    axis = static_int(axis, "the axis of the grid")
    if axis not in (0, 1, 2):
        raise fail(f"a grid has the axes 0, 1 and 2, not {axis}", code=Code.INTEGER)
    results = [Value(ty.int32, (), hint=f"{hint}_{c}") for c in "xyz"]
    builder().op([f"{op} : tile<i32>"], results)
    builder().axes.add(axis)
    return tensor(results[axis], ty.int32)


# ---- making tiles


@builtin
def arange(start, end):
    """The integers `start` to `end - 1`: int32[end - start]; both known at compile time, the length a power of two.

    Example:
        >>> girih.arange(0, 4)
        [0, 1, 2, 3] : int32[4]
        >>> girih.arange(4, 8)
        [4, 5, 6, 7] : int32[4]
    """
    start, end = static_int(start, "the start of arange"), static_int(end, "the end of arange")
    if end <= start:
        raise fail(f"arange from {start} to {end} is empty", code=Code.INTEGER)
    (n,) = check_shape((end - start,), "the length of arange")
    numbers = compute(ty.int32, (n,), f"iota : tile<{n}xi32>")
    return numbers + start if start else numbers


@builtin
def full(shape, value, dtype=None):
    """A tile of `shape` holding `value` everywhere; `value` is a number or a scalar.

    Example:
        >>> girih.full((2, 2), 7, girih.float32)
        [[7, 7], [7, 7]] : float32[2, 2]
    """
    shape, value = check_shape(shape), unwrap(value)
    dtype = None if dtype is None else check_dtype(dtype)
    if is_number(value):
        return constant(value, dtype or _t.number_type(value), shape)
    value = as_tensor(value)
    if value.shape:
        raise fail(f"the value of full must be a scalar, not {value.describe()}", code=Code.OPERAND)
    return _t.broadcast_to(cast(value, dtype) if dtype else value, shape)


@builtin
def zeros(shape, dtype):
    """A tile of zeros.

    Example:
        >>> girih.zeros((2, 4), girih.float32)
        [[0, 0, 0, 0], [0, 0, 0, 0]] : float32[2, 4]
    """
    return constant(0, check_dtype(dtype), check_shape(shape))


@builtin
def zeros_like(x):
    """A tile of zeros of the shape and the type of `x`.

    Example:
        >>> girih.zeros_like(girih.arange(0, 4))
        [0, 0, 0, 0] : int32[4]
    """
    x = as_tensor(x)
    return constant(0, x.dtype, x.shape)


@builtin
def full_like(x, value):
    """A tile of the shape and the type of `x` holding `value`.

    Example:
        >>> girih.full_like(girih.arange(0, 4), 7)
        [7, 7, 7, 7] : int32[4]
    """
    x = as_tensor(x)
    return full(x.shape, value, x.dtype)


# ---- shapes


@builtin
def reshape(x, *shape):
    """The elements in row-major order in another shape, of as many elements.

    Example:
        >>> girih.reshape(girih.arange(0, 8), (2, 4))
        [[0, 1, 2, 3], [4, 5, 6, 7]] : int32[2, 4]
    """
    return _t.reshape(as_tensor(x), *shape)


@builtin(method=True)
def view(x, *shape):
    """The same as `reshape`.

    Example:
        >>> girih.view(girih.arange(0, 4), 2, 2)
        [[0, 1], [2, 3]] : int32[2, 2]
    """
    return _t.reshape(as_tensor(x), *shape)


@builtin
def trans(x, *dims):
    """The transpose: the last two dimensions exchanged, or the dimensions in the order given.

    Example:
        >>> girih.trans(girih.reshape(girih.arange(0, 4), (2, 2)))
        [[0, 2], [1, 3]] : int32[2, 2]
    """
    x = as_tensor(x)
    if not dims:
        if x.ndim < 2:
            raise fail(f"a transpose needs two dimensions, but {x.describe()} has {x.ndim}", code=Code.SHAPE)
        dims = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return permute(x, *dims)


@builtin(method=True)
def expand_dims(x, axis):
    """A dimension of extent 1 inserted at `axis`, or at each of a tuple of axes: `x[:, None]`.

    Example:
        >>> girih.expand_dims(girih.arange(0, 4), 1)
        [[0], [1], [2], [3]] : int32[4, 1]
        >>> girih.arange(0, 4)[None, :]
        [[0, 1, 2, 3]] : int32[1, 4]
    """
    x = as_tensor(x)
    axes = unwrap(axis)
    axes = axes if isinstance(axes, (tuple, list)) else (axes,)
    rank = x.ndim + len(axes)
    at = [static_int(a, "the axis") for a in axes]
    for a in at:
        if not -rank <= a < rank:
            raise fail(f"the axis {a} is out of range for a result of {rank} dimensions", code=Code.SHAPE)
    at = sorted(a % rank for a in at)
    shape = list(x.shape)
    for a in at:
        shape.insert(a, 1)
    return reshape_to(x, tuple(shape))


@builtin(method=True)
def broadcast_to(x, *shape):
    """The tile repeated along dimensions of extent 1 until it has `shape`; leading dimensions are added.

    Example:
        >>> girih.broadcast_to(girih.arange(0, 4), (2, 4))
        [[0, 1, 2, 3], [0, 1, 2, 3]] : int32[2, 4]
    """
    return _t.broadcast_to(as_tensor(x), check_shape(shape[0] if len(shape) == 1 else shape))


@builtin
def broadcast(x, y):
    """Both tiles in the shape they broadcast to.

    Example:
        >>> girih.broadcast(girih.arange(0, 2)[:, None], girih.arange(4, 6)[None, :])
        [[0, 0], [1, 1]] : int32[2, 2]
        [[4, 5], [4, 5]] : int32[2, 2]
    """
    x, y = as_tensor(x), as_tensor(y)
    shape = common_shape(x, y)
    return _t.broadcast_to(x, shape), _t.broadcast_to(y, shape)


@builtin(method=True)
def ravel(x):
    """All elements in one dimension, in row-major order.

    Example:
        >>> girih.ravel(girih.zeros((2, 2), girih.int32))
        [0, 0, 0, 0] : int32[4]
    """
    x = as_tensor(x)
    return reshape_to(x, (x.numel,))


@builtin
def cat(a, b, dim=0, can_reorder=False):
    """Two tiles of one type joined along `dim`; all other dimensions are equal, and so must be this one.

    Example:
        >>> girih.cat(girih.arange(0, 2), girih.arange(6, 8))
        [0, 1, 6, 7] : int32[4]
    """
    a, b = as_tensor(a), as_tensor(b)
    dim = axis_of(a, dim)
    if a.dtype != b.dtype:
        dtype = ty.promote(a.dtype, b.dtype)
        a, b = cast(a, dtype), cast(b, dtype)
    if a.shape != b.shape:
        raise fail(f"cat joins tiles of equal shapes, not {a.describe()} and {b.describe()}", code=Code.SHAPE)
    shape = (*a.shape[:dim], 2 * a.shape[dim], *a.shape[dim + 1 :])
    types = f"{a.value.ir_type()}, {b.value.ir_type()} -> {ty.tile_ir(a.dtype, shape)}"
    return compute(a.dtype, shape, "cat ", a, ", ", b, f" dim = {dim} : {types}")


@builtin
def join(a, b):
    """Two tiles side by side in a new last dimension of extent 2; scalars make a tile [2].

    Example:
        >>> girih.join(girih.arange(0, 2), girih.arange(6, 8))
        [[0, 6], [1, 7]] : int32[2, 2]
    """
    a, b = operands(a, b, "join", pointers=True)
    a, b = reshape_to(a, (*a.shape, 1)), reshape_to(b, (*b.shape, 1))
    return cat(a, b, a.ndim - 1)


@builtin(method=True)
def split(x):
    """The two halves of a last dimension of extent 2, without that dimension: the inverse of `join`.

    Example:
        >>> girih.split(girih.reshape(girih.arange(0, 8), (4, 2)))
        [0, 2, 4, 6] : int32[4]
        [1, 3, 5, 7] : int32[4]
    """
    x = as_tensor(x)
    if not x.shape or x.shape[-1] != 2:
        raise fail(f"split needs a last dimension of extent 2, but {x.describe()} has none", code=Code.SHAPE)
    parts = [part(x, x.ndim - 1, i, 1) for i in (0, 1)]
    return tuple(reshape_to(p, x.shape[:-1]) for p in parts)


def part(x: tensor, axis: int, number: int, length: int) -> tensor:
    """The `number`-th stretch of `length` along `axis`."""
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    at = [constant(number if i == axis else 0, ty.int32).value for i in range(x.ndim)]
    pieces = ["extract ", x.value, "[", *commas(at), f"] : {x.value.ir_type()} -> {ty.tile_ir(x.dtype, shape)}"]
    return compute(x.dtype, shape, *pieces)


@builtin
def interleave(a, b):
    """The elements of two tiles in turns along the last dimension.

    Example:
        >>> girih.interleave(girih.arange(0, 2), girih.arange(6, 8))
        [0, 6, 1, 7] : int32[4]
    """
    joined = join(a, b)
    return reshape_to(joined, (*joined.shape[:-2], 2 * joined.shape[-2])) if joined.ndim > 1 else joined


# ---- products


@builtin
def dot(a, b, acc=None, input_precision=None, allow_tf32=None, max_num_imprecise_acc=None, out_dtype=None):
    """The matrix product of two tiles, plus `acc`.

    Args:
        a, b: [M, K] and [K, N], or [B, M, K] and [B, K, N]; f16, bf16, f8, f32, f64 or int8, both of one type.
        acc: [M, N] in the result's type.
        input_precision: "ieee" (the default) or "tf32", which rounds float32 operands to tf32.
        out_dtype: float32 unless given; float64 for float64 and int32 for int8 operands.

    Returns: [M, N], or [B, M, N].

    Example:
        >>> a = girih.load(floats + girih.arange(0, 2)[:, None] * 2 + girih.arange(0, 2)[None, :])
        >>> a
        [[0, 1], [2, 3]] : float32[2, 2]
        >>> girih.dot(a, a)
        [[2, 3], [6, 11]] : float32[2, 2]
        >>> girih.dot(a, a, girih.full((2, 2), 100.0, girih.float32))
        [[102, 103], [106, 111]] : float32[2, 2]
    """
    a, b = as_tensor(a), as_tensor(b)
    for x in (a, b):
        if x.ndim not in (2, 3):
            raise fail(
                f"dot multiplies matrices, but {x.describe()} has {_t.counted(x.ndim, 'dimension')}",
                "for two vectors: `girih.sum(a * b, 0)`; a vector becomes a matrix with `a[:, None]`",
                code=Code.PRODUCT,
            )
    if a.ndim != b.ndim or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise fail(f"{a.describe()} and {b.describe()} cannot be multiplied: the inner dimensions must be equal", code=Code.PRODUCT)
    if a.dtype != b.dtype:
        raise fail(f"dot needs operands of one type, not {a.dtype} and {b.dtype}", f"cast one: `b.to(girih.{a.dtype})`", code=Code.ELEMENT_TYPE)
    shape = (*a.shape[:-1], b.shape[-1])
    integers = a.dtype.is_int()
    if integers and a.dtype.bits != 8:
        raise fail(f"dot of integers takes int8 or uint8, not {a.dtype}", code=Code.ELEMENT_TYPE)
    inner = ty.int32 if integers else ty.float64 if a.dtype == ty.float64 else ty.float32
    wanted = inner if out_dtype is None else check_dtype(out_dtype)
    acc = unwrap(acc)
    if isinstance(acc, tensor) and acc.shape != shape:
        raise fail(f"the accumulator is {acc.describe()}, but the product has the shape {list(shape)}", code=Code.PRODUCT)
    if is_number(acc) and acc != 0:
        raise fail("the accumulator is a tile", f"`girih.full({shape}, {acc}, girih.{inner})`", code=Code.PRODUCT)
    if isinstance(acc, tensor) and out_dtype is None:
        wanted = acc.dtype
    start = cast(acc, inner) if isinstance(acc, tensor) else constant(0, inner, shape)
    precision = static(input_precision, "the input precision")
    if precision is None and static(allow_tf32, "allow_tf32"):
        precision = "tf32"
    if precision not in (None, "ieee", "tf32", "tf32x3"):
        raise fail(f'the input precision must be "ieee" or "tf32", not {precision!r}', code=Code.CALL)
    x, y = a, b
    if precision == "tf32" and a.dtype == ty.float32:
        x, y = (_t.unary("ftof", t, TF32) for t in (a, b))
    types = f"{x.value.ir_type()}, {y.value.ir_type()}, {start.value.ir_type()}"
    if integers:
        sign = f" {a.dtype.signedness} {b.dtype.signedness}"
        result = compute(inner, shape, "mmai ", x, ", ", y, ", ", start, f"{sign} : {types}")
    else:
        result = compute(inner, shape, "mmaf ", x, ", ", y, ", ", start, f" : {types}")
    return cast(result, wanted)


# An operand of products only, so no type of the language.
TF32 = ty.DType("tf32", "tf32", "float", 32)


# ---- promises about values


@builtin
def multiple_of(x, values):
    """Promises that integers or addresses of any shape are divisible by a power of two; returns `x`.

    Example:
        >>> girih.multiple_of(girih.program_id(0) * 64, 16)
        0 : int32
    """
    x = as_tensor(x)
    values = unwrap(values)
    divisor = static_int(values[0] if isinstance(values, (tuple, list)) else values, "the divisor")
    if not ty.is_power_of_two(divisor):
        raise fail(f"the divisor must be a power of two, not {divisor}", code=Code.INTEGER)
    if x.shape:
        return x
    return compute(x.dtype, x.shape, f"assume div_by<{divisor}>, ", x, f" : {x.value.ir_type()}")


@builtin
def max_contiguous(x, values):
    """A promise that Girih does not need; returns `x`.

    Example:
        >>> girih.max_contiguous(girih.arange(0, 4), 4)
        [0, 1, 2, 3] : int32[4]
    """
    return as_tensor(x)


@builtin
def max_constancy(x, values):
    """A promise that Girih does not need; returns `x`.

    Example:
        >>> girih.max_constancy(girih.arange(0, 4), 1)
        [0, 1, 2, 3] : int32[4]
    """
    return as_tensor(x)


@builtin
def assume(condition):
    """A promise, an int1 scalar, that Girih does not use.

    Example:
        >>> girih.assume(girih.program_id(0) >= 0)
    """


def cdiv(x, div):
    """`x / div` rounded up, for integers of any shape; on the host and in a kernel.

    Example:
        >>> girih.cdiv(10, 4)
        3
        >>> girih.cdiv(girih.program_id(0) + 5, 4)
        2 : int32
    """
    x, div = unwrap(x), unwrap(div)
    if isinstance(x, tensor) or isinstance(div, tensor):
        return (as_tensor(x) + (div - 1)) // div
    return -(-x // div)


cdiv.__girih_builtin__ = True


def next_power_of_2(n):
    """The least power of two that is not below the integer `n`, a scalar; on the host and, for constants, in a kernel.

    Example:
        >>> girih.next_power_of_2(1000)
        1024
    """
    n = static_int(n, "n")
    return 1 if n <= 1 else 1 << (n - 1).bit_length()


next_power_of_2.__girih_builtin__ = True
