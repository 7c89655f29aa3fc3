"""The functions of a kernel: ids, memory, shapes, arithmetic, reductions, scans, products, atomics, messages.

Each takes tensors, numbers and `constexpr` values, works on every tile shape unless it says otherwise, and appends
Tile IR operations to the kernel being traced. The names and the meanings are Triton's where it has them.
"""

from __future__ import annotations

from typing import Any

from ..frontend import tensor as _t
from ..frontend import types as ty
from ..frontend.builder import Value, commas, quote
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
    describe,
    fail,
    is_number,
    operands,
    permute,
    reshape_to,
    select,
    static,
    static_int,
    tensor,
    truth,
    unwrap,
)  # fmt: skip

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
        raise fail(f"a grid has the axes 0, 1 and 2, not {axis}")
    results = [Value(ty.int32, (), hint=f"{hint}_{c}") for c in "xyz"]
    builder().op([f"{op} : tile<i32>"], results)
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
        raise fail(f"arange from {start} to {end} is empty")
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
        raise fail(f"the value of full is a scalar, not {value.describe()}")
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
            raise fail(f"a transpose needs two dimensions, and {x.describe()} has {x.ndim}")
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
            raise fail(f"the axis {a} is out of range for a result of {rank} dimensions")
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
        raise fail(f"cat joins tiles of equal shapes, not {a.describe()} and {b.describe()}")
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
        raise fail(f"split needs a last dimension of extent 2, and {x.describe()} has none")
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


# ---- memory


def _addresses(pointer: Any, who: str) -> tensor:
    pointer = unwrap(pointer)
    if not isinstance(pointer, tensor) or not pointer.dtype.is_ptr():
        what = describe(pointer)
        raise fail(
            f"{who} needs an address or a tile of addresses, not {what}",
            "addresses are made from an array argument: `x + girih.arange(0, N)`",
        )
    return pointer


@builtin
def load(pointer, mask=None, other=None, boundary_check=(), padding_option="", cache_modifier="", eviction_policy="",
         volatile=False):  # fmt: skip
    """What stands at an address, or at each of a tile of addresses.

    Args:
        pointer: a scalar or a tile of addresses of elements of type T; or a block pointer.
        mask: booleans of a shape that broadcasts; where false nothing is read.
        other: the value there, 0 if not given (in Triton: undefined).
        boundary_check, padding_option: for block pointers, the dimensions to check and "zero" or "nan".

    Returns: a tile of T of the shape of `pointer`.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.load(floats + i)
        [0, 1, 2, 3] : float32[4]
        >>> girih.load(floats + i, mask=i < 2, other=-1.0)
        [0, 1, -1, -1] : float32[4]
        >>> girih.load(floats + 3)
        3 : float32
    """
    if hasattr(unwrap(pointer), "__girih_load__"):
        if mask is not None or other is not None:
            raise fail("a block pointer is masked with `boundary_check`, not with `mask` and `other`")
        return unwrap(pointer).__girih_load__(boundary_check, padding_option)
    pointer = _addresses(pointer, "load")
    mask, other = unwrap(mask), unwrap(other)
    if mask is None and other is not None:
        raise fail("`other` without `mask` has no effect", "give the mask, or leave `other` out")
    dtype = pointer.dtype.element_ty
    if mask is not None:
        mask = truth(mask)
        shape = common_shape(pointer, mask) if pointer.shape else pointer.shape
        if not pointer.shape and mask.shape:
            raise fail(f"the mask {mask.describe()} is a tile, and the address is one address")
        pointer, mask = _t.broadcast_to(pointer, shape), _t.broadcast_to(mask, shape)
        other = constant(other, dtype, shape) if is_number(other) else other
        other = constant(0, dtype, shape) if other is None else _t.broadcast_to(cast(other, dtype), shape)
    return _load(pointer, mask, other)


def _load(pointer: tensor, mask: tensor | None, other: tensor | None) -> tensor:
    b, dtype = builder(), pointer.dtype.element_ty
    operands_ = [v for v in (pointer, mask, other) if v is not None]
    pieces: list = ["load_ptr_tko weak ", *commas([v.value for v in operands_])]
    token = b.before_read()
    if token is not None:
        pieces += [" token = ", token]
    result, done = Value(dtype, pointer.shape), Value(None, hint="read")
    types = ", ".join(v.value.ir_type() for v in operands_)
    pieces.append(f" : {types} -> {result.ir_type()}, token")
    b.op(pieces, (result, done))
    b.did_read(done)
    return tensor(result, dtype)


@builtin
def store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy=""):
    """Writes a value to an address, or a tile to a tile of addresses, where the mask holds.

    Args:
        pointer: a scalar or a tile of addresses of elements of type T; or a block pointer.
        value: a number or a tile; it is cast to T and broadcasts to the shape of `pointer`.
        mask: booleans; where false nothing is written.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.store(floats + i, i * 10, mask=i < 2)
        >>> girih.load(floats + i)
        [0, 10, 2, 3] : float32[4]
    """
    if hasattr(unwrap(pointer), "__girih_store__"):
        if mask is not None:
            raise fail("a block pointer is masked with `boundary_check`, not with `mask`")
        return unwrap(pointer).__girih_store__(value, boundary_check)
    pointer = _addresses(pointer, "store")
    dtype = pointer.dtype.element_ty
    value = unwrap(value)
    value = constant(value, dtype) if is_number(value) else cast(as_tensor(value), dtype)
    mask = None if unwrap(mask) is None else truth(mask)
    tiles = [t for t in (pointer, value, mask) if t is not None]
    shape = common_shape(*tiles)
    if shape != pointer.shape and not (pointer.ndim == len(shape) or not pointer.shape):
        raise fail(f"{value.describe()} is stored to {pointer.describe()}")
    if not pointer.shape and shape:
        raise fail(
            f"a tile {value.describe()} is stored to one address",
            "make a tile of addresses: `pointer + girih.arange(0, N)`",
        )
    pointer, value = _t.broadcast_to(pointer, shape), _t.broadcast_to(value, shape)
    mask = None if mask is None else _t.broadcast_to(mask, shape)
    _store(pointer, value, mask)


def _store(pointer: tensor, value: tensor, mask: tensor | None) -> None:
    b = builder()
    operands_ = [v for v in (pointer, value, mask) if v is not None]
    token = b.before_write()
    pieces: list = ["store_ptr_tko weak ", *commas([v.value for v in operands_])]
    if token is not None:
        pieces += [" token = ", token]
    pieces.append(f" : {', '.join(v.value.ir_type() for v in operands_)} -> token")
    done = Value(None, hint="wrote")
    b.op(pieces, (done,), pure=False)
    b.did_write(done)


# ---- choices and elementwise arithmetic


@builtin
def where(condition, x, y):
    """`x` where the condition holds, else `y`: all three broadcast, `x` and `y` meet in one type. Both are computed.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.where(i < 2, i, 0)
        [0, 1, 0, 0] : int32[4]
    """
    return select(condition, x, y)


def _float(x: Any, name: str) -> tensor:
    x = as_tensor(x)
    if x.dtype.is_ptr():
        raise fail(f"{name} is not defined for an address, {x.describe()}")
    if x.dtype.is_int():
        raise fail(f"{name} is defined for floats, not for {x.describe()}", f"cast it: `{name}(x.to(girih.float32))`")
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
    """x / y for floats, in the type they meet in: of two float16 a float16, where `/` gives a float32;
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
            raise fail(f"dot multiplies matrices, and {x.describe()} has {x.ndim} dimensions")
    if a.ndim != b.ndim or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise fail(f"{a.describe()} and {b.describe()} cannot be multiplied: the inner dimensions must be equal")
    if a.dtype != b.dtype:
        raise fail(f"dot needs operands of one type, not {a.dtype} and {b.dtype}", f"cast one: `b.to(girih.{a.dtype})`")
    shape = (*a.shape[:-1], b.shape[-1])
    integers = a.dtype.is_int()
    if integers and a.dtype.bits != 8:
        raise fail(f"dot of integers takes int8 or uint8, not {a.dtype}")
    inner = ty.int32 if integers else ty.float64 if a.dtype == ty.float64 else ty.float32
    wanted = inner if out_dtype is None else check_dtype(out_dtype)
    acc = unwrap(acc)
    if isinstance(acc, tensor) and acc.shape != shape:
        raise fail(f"the accumulator is {acc.describe()} and the product has the shape {list(shape)}")
    if is_number(acc) and acc != 0:
        raise fail("the accumulator is a tile", f"`girih.full({shape}, {acc}, girih.{inner})`")
    if isinstance(acc, tensor) and out_dtype is None:
        wanted = acc.dtype
    start = cast(acc, inner) if isinstance(acc, tensor) else constant(0, inner, shape)
    precision = static(input_precision, "the input precision")
    if precision is None and static(allow_tf32, "allow_tf32"):
        precision = "tf32"
    if precision not in (None, "ieee", "tf32", "tf32x3"):
        raise fail(f'the input precision is "ieee" or "tf32", not {precision!r}')
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


# ---- messages


@builtin
def static_print(*values, sep=" ", end="\n", file=None, flush=False):
    """Prints while the kernel is compiled; tiles appear as their types.

    Example:
        >>> girih.static_print("a tile:", girih.arange(0, 4))
        a tile: int32[4]
    """
    print(*(describe(v) if isinstance(unwrap(v), tensor) else unwrap(v) for v in values), sep=sep, end=end, flush=True)


@builtin
def static_assert(condition, message=""):
    """An error of compilation when the condition, known at compile time, does not hold.

    Example:
        >>> girih.static_assert(girih.next_power_of_2(5) == 8, "a bound")
    """
    if not static(condition, "the condition of static_assert"):
        raise fail(f"static assertion failed{': ' if unwrap(message) else ''}{unwrap(message)}")


@builtin
def device_print(prefix, *values, hex=False):
    """Prints a text and the elements of tiles when the kernel runs, once per block.

    Example:
        >>> girih.device_print("row", girih.program_id(0), girih.arange(0, 4))
        row 0 [0, 1, 2, 3]
    """
    prefix = static(prefix, "the text")
    if not isinstance(prefix, str):
        raise fail(f"the first argument of device_print is a text, not {describe(prefix)}")
    tiles = [as_tensor(v) for v in values]
    text = prefix.replace("%", "%%")
    for t in tiles:
        text += " " + _conversion(t, static(hex, "hex"))
    printable = [_printable(t) for t in tiles]
    b = builder()
    pieces: list = [f"print_tko {quote(text + chr(10))}"]
    for t in printable:
        pieces += [", ", t.value]
    token = b.before_write()
    if token is not None:
        pieces += [" token = ", token]
    if printable:
        pieces.append(" : " + ", ".join(t.value.ir_type() for t in printable))
    done = Value(None, hint="said")
    b.op([*pieces, " -> token"], (done,), pure=False)
    b.did_write(done)


def _conversion(t: tensor, hexadecimal: bool) -> str:
    if t.dtype.is_ptr() or hexadecimal and t.dtype.is_int():
        return "%llx"
    if t.dtype.is_floating():
        return "%g"
    return "%lld" if t.dtype.kind == "int" else "%llu"


def _printable(t: tensor) -> tensor:
    if t.dtype.is_ptr():
        return cast(t, ty.uint64)
    return cast(t, ty.float64 if t.dtype.is_floating() else ty.int64 if t.dtype.kind == "int" else ty.uint64)


@builtin
def device_assert(condition, message="", mask=None):
    """Stops the kernel with a message when the condition, booleans of any shape, fails where the mask holds.

    Example:
        >>> girih.device_assert(girih.arange(0, 4) >= 0, "an index below zero")
    """
    condition = truth(condition)
    if unwrap(mask) is not None:
        condition = condition | ~truth(mask)
    text = static(message, "the message")
    builder().op(["assert ", condition.value, f", {quote(str(text))} : {condition.value.ir_type()}"], pure=False)


@builtin
def debug_barrier():
    """Nothing: a block's operations happen in the order of the program.

    Example:
        >>> girih.debug_barrier()
    """


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
        raise fail(f"the divisor is a power of two, not {divisor}")
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
