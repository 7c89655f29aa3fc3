"""Values of a kernel as its author uses them: `tensor` for values computed at run time, `constexpr` for the rest.

A `tensor` is a scalar or a tile. Its operators and methods append operations to the kernel that is being traced, so
library functions are plain Python over tensors. Numbers mixed in take the tensor's type where they fit it.
"""

from __future__ import annotations

import contextvars
from types import ModuleType
from typing import Any

from . import types as ty
from .builder import Builder, Value
from .errors import Code, CompilationError
from .types import DType, PointerType

CURRENT: contextvars.ContextVar[Builder | None] = contextvars.ContextVar("girih_builder", default=None)


def builder() -> Builder:
    """The kernel being traced; raises outside of one."""
    current = CURRENT.get()
    if current is None:
        raise RuntimeError("this function of girih works only inside a kernel: a function decorated with @girih.jit")
    return current


def fail(reason: str, help: str | None = None, *, code: str) -> CompilationError:
    """An error of a kind at the place that is being traced."""
    current = CURRENT.get()
    return CompilationError(reason, current.place if current else None, help, code)


class constexpr:
    """Marks a parameter, a global or a value as known when the kernel is compiled.

    In a signature, `BLOCK: girih.constexpr`; as a global, `WIDTH = girih.constexpr(64)`.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return self.value == unwrap(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    def __bool__(self) -> bool:
        return bool(self.value)


def _constant_operator(name: str):
    def apply(self: constexpr, *others: Any) -> constexpr:
        result = getattr(self.value, name)(*(unwrap(o) for o in others))
        return result if result is NotImplemented else constexpr(result)

    return apply


# Arithmetic with constants gives constants, outside of kernels too.
for _word in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    for _name in (f"__{_word}__", f"__r{_word}__"):
        setattr(constexpr, _name, _constant_operator(_name))
for _word in ("neg", "pos", "invert", "lt", "le", "gt", "ge"):
    setattr(constexpr, f"__{_word}__", _constant_operator(f"__{_word}__"))


def is_constexpr(annotation: Any) -> bool:
    """Returns True if a parameter's annotation makes it a constant."""
    if annotation is constexpr or isinstance(annotation, constexpr):
        return True
    return isinstance(annotation, str) and annotation.split("[")[0].split(".")[-1] == "constexpr"


def unwrap(value: Any) -> Any:
    return value.value if isinstance(value, constexpr) else value


def is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


class tensor:
    """A scalar or a tile that the kernel computes.

    Attributes:
        dtype: the element type; a pointer type for addresses.
        shape: the tile's extents, each a power of two; `()` for a scalar.
    """

    __slots__ = ("value", "dtype", "shape")

    def __init__(self, value: Value, dtype: DType | PointerType):
        self.value = value
        self.dtype = dtype
        self.shape = value.shape

    # ---- what it is

    @property
    def type(self):
        return self.dtype

    @property
    def numel(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> tensor:
        return permute(self, tuple(reversed(range(len(self.shape)))))

    def describe(self) -> str:
        return ty.spell(self.dtype, self.shape)

    def __repr__(self) -> str:
        return f"tensor<{self.describe()}>"

    # ---- operators

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __sub__(self, other):
        return sub(self, other)

    def __rsub__(self, other):
        return sub(other, self)

    def __mul__(self, other):
        return arithmetic("mul", self, other)

    def __rmul__(self, other):
        return arithmetic("mul", other, self)

    def __truediv__(self, other):
        return truediv(self, other)

    def __rtruediv__(self, other):
        return truediv(other, self)

    def __floordiv__(self, other):
        return integer_division("divi", self, other)

    def __rfloordiv__(self, other):
        return integer_division("divi", other, self)

    def __mod__(self, other):
        return remainder(self, other)

    def __rmod__(self, other):
        return remainder(other, self)

    def __pow__(self, other):
        return power(self, other)

    def __rpow__(self, other):
        return power(other, self)

    def __and__(self, other):
        return bitwise("andi", self, other)

    def __rand__(self, other):
        return bitwise("andi", other, self)

    def __or__(self, other):
        return bitwise("ori", self, other)

    def __ror__(self, other):
        return bitwise("ori", other, self)

    def __xor__(self, other):
        return bitwise("xori", self, other)

    def __rxor__(self, other):
        return bitwise("xori", other, self)

    def __lshift__(self, other):
        return shift("shli", self, other)

    def __rlshift__(self, other):
        return shift("shli", other, self)

    def __rshift__(self, other):
        return shift("shri", self, other)

    def __rrshift__(self, other):
        return shift("shri", other, self)

    def __lt__(self, other):
        return compare("less_than", self, other)

    def __le__(self, other):
        return compare("less_than_or_equal", self, other)

    def __gt__(self, other):
        return compare("greater_than", self, other)

    def __ge__(self, other):
        return compare("greater_than_or_equal", self, other)

    def __eq__(self, other):
        return compare("equal", self, other)

    def __ne__(self, other):
        return compare("not_equal", self, other)

    __hash__ = None

    def __neg__(self):
        return negate(self)

    def __pos__(self):
        return self

    def __invert__(self):
        return invert(self)

    def __bool__(self):
        raise fail(
            f"the truth value of {self.describe()} is known only when the kernel runs",
            "use it in an `if` or `while` of the kernel itself, or select with `girih.where`",
            code=Code.NOT_CONSTANT,
        )

    def __index__(self):
        raise fail(
            f"an integer known at compile time is needed here, but {self.describe()} is computed at run time",
            "make the parameter a `girih.constexpr`",
            code=Code.NOT_CONSTANT,
        )

    __int__ = __index__

    def __float__(self):
        raise fail(f"a number known at compile time is needed here, but {self.describe()} is computed at run time", code=Code.NOT_CONSTANT)

    def __iter__(self):
        raise fail("a tile cannot be iterated over", "reduce it, or use `girih.split` or `girih.static_range`", code=Code.OPERAND)

    def __len__(self):
        if self.dtype.is_ptr():
            raise fail("an address has no length", "pass the number of elements as an argument", code=Code.SHAPE)
        if not self.shape:
            raise fail("a scalar has no length", code=Code.SHAPE)
        return self.shape[0]

    def __getitem__(self, key):
        return index(self, key)

    # ---- methods that are operations of their own

    def to(self, dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
        """The elements as another type; with `bitcast`, their bits unchanged."""
        return cast(self, dtype, fp_downcast_rounding, bitcast)

    def reshape(self, *shape) -> tensor:
        return reshape(self, *shape)

    def permute(self, *dims) -> tensor:
        return permute(self, *dims)

    def trans(self, *dims) -> tensor:
        return permute(self, *(dims or (tuple(reversed(range(len(self.shape)))),)))


# ---- constants and types


def compute(dtype, shape: tuple[int, ...], *pieces) -> tensor:
    """An operation with one result; tensors among the pieces stand for their values."""
    pieces = [p.value if isinstance(p, tensor) else p for p in pieces]
    return tensor(builder().compute(dtype, shape, *pieces), dtype)


def constant(value: int | float | bool, dtype: DType, shape: tuple[int, ...] = ()) -> tensor:
    """A tile that holds one number everywhere."""
    if dtype.is_int() and isinstance(value, float) and not value.is_integer():
        raise fail(f"{value} is not a valid {dtype}", "cast it with `int(...)`, or use a float type", code=Code.CONSTANT)
    try:
        return tensor(builder().constant(dtype, value, shape), dtype)
    except OverflowError:
        if dtype.is_floating():
            raise fail(f"an integer of {value.bit_length()} bits does not fit {dtype}", code=Code.CONSTANT) from None
        low, high = ty.integer_range(dtype)
        raise fail(f"{spell_integer(value)} does not fit {dtype}, which holds {low} to {high}", code=Code.CONSTANT) from None


def as_tensor(value: Any, dtype: DType | None = None) -> tensor:
    """A tensor of a tensor, or of a number in the type given or else its own."""
    value = unwrap(value)
    if isinstance(value, tensor):
        return value
    if is_number(value):
        return constant(value, dtype or number_type(value))
    help = (
        "an argument that is left out and the result of a function without `return` are None" if value is None else None
    )
    raise fail(f"expected a number or a tile, found {describe(value)}", help, code=Code.OPERAND)


def number_type(value: int | float | bool) -> DType:
    try:
        return ty.type_of_number(value)
    except ValueError:
        raise fail(f"{spell_integer(value)} does not fit 64 bits", code=Code.CONSTANT) from None


def spell_integer(value: int | float) -> str:
    return str(value) if abs(value) < 1 << 128 else f"an integer of {value.bit_length()} bits"


def describe(value: Any) -> str:
    """A value as a message shows it."""
    value = unwrap(value)
    if isinstance(value, tensor):
        return value.describe()
    if value is None or is_number(value) or isinstance(value, str):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if ty.is_type(value):
        return f"the element type {value}"
    if hasattr(value, "__name__"):
        kind = "module" if isinstance(value, ModuleType) else "type" if isinstance(value, type) else "function"
        return f"the {kind} `{value.__name__}`"
    return f"an object of type {type(value).__name__}"


def static(value: Any, what: str) -> Any:
    """A value that must be known at compile time."""
    value = unwrap(value)
    if isinstance(value, tensor):
        _, name, callee = builder().runtime_constants.get(id(value), (None, None, None))
        raise fail(
            f"{what} must be known at compile time, but {value.describe()} is computed at run time",
            f"it is the argument for the constexpr parameter `{name}` of `{callee}`: call that with a constant"
            if name
            else "make the parameter it comes from a `girih.constexpr`",
            code=Code.NOT_CONSTANT,
        )
    return value


def static_int(value: Any, what: str) -> int:
    value = static(value, what)
    if isinstance(value, bool) or not isinstance(value, int):
        raise fail(f"{what} must be an integer, not {describe(value)}", WHOLE if isinstance(value, float) else None, code=Code.INTEGER)
    return value


def check_shape(shape: Any, what: str = "a tile's shape") -> tuple[int, ...]:
    """A shape of powers of two; one integer stands for a shape of one dimension."""
    shape = unwrap(shape)
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise fail(f"{what} must be a tuple of integers, not {describe(shape)}", code=Code.INTEGER)
    out = tuple(static_int(n, what) for n in shape)
    count = 1
    for n in out:
        if not ty.is_power_of_two(n):
            raise fail(
                f"{what} must be made of powers of two, but {n} is not one",
                "take the next one, `girih.next_power_of_2(n)`, and mask what lies beyond the end"
                if n > 0
                else "an extent is written out: none is computed from the others",
                code=Code.POWER_OF_TWO,
            )
        count *= n
    if count > ty.MAX_ELEMENTS:
        raise fail(f"a tile can have at most {ty.MAX_ELEMENTS} elements, but {list(out)} has {count}", code=Code.TOO_LARGE)
    return out


def check_dtype(dtype: Any) -> DType | PointerType:
    dtype = unwrap(dtype)
    if ty.is_type(dtype):
        return dtype
    if isinstance(dtype, str) and (dtype in ty.BY_NAME or dtype in ty.SHORT):
        return ty.BY_NAME.get(dtype) or ty.SHORT[dtype]
    name = getattr(dtype, "__name__", None) or str(dtype).split(".")[-1]
    name = {"int": "int32", "float": "float32", "bool": "int1"}.get(name, name)
    known = not isinstance(dtype, (str, tensor)) and name in ty.BY_NAME
    raise fail(
        f"expected an element type such as `girih.float32`, found {describe(dtype)}",
        f"use `girih.{name}`" if known else None,
        code=Code.ELEMENT_TYPE,
    )


def axis_of(x: tensor, axis: Any, what: str = "the axis") -> int:
    axis = unwrap(axis)
    if isinstance(axis, float) or isinstance(axis, tensor) and axis.shape:
        help = "the axis comes second; for the lesser or greater of two values use `girih.minimum` or `girih.maximum`"
        raise fail(f"{what} must be an integer known at compile time, not {describe(axis)}", help, code=Code.INTEGER)
    axis = static_int(axis, what)
    if not -x.ndim <= axis < x.ndim:
        raise fail(f"{what} is {axis}, but {x.describe()} has {counted(x.ndim, 'dimension')}", code=Code.SHAPE)
    return axis % x.ndim


def counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


# ---- shapes


def reshape_to(x: tensor, shape: tuple[int, ...]) -> tensor:
    if x.shape == shape:
        return x
    return compute(x.dtype, shape, "reshape ", x, f" : {x.value.ir_type()} -> {ty.tile_ir(x.dtype, shape)}")


def broadcast_to(x: tensor, shape: tuple[int, ...], who: str = "") -> tensor:
    """The tile repeated along dimensions of extent 1, after leading dimensions of extent 1 are put before it."""
    if x.shape == shape:
        return x
    padded = (1,) * (len(shape) - x.ndim) + x.shape
    if len(padded) != len(shape) or any(a not in (1, b) for a, b in zip(padded, shape)):
        raise fail(f"{who or x.describe()} cannot be broadcast to the shape {list(shape)}", code=Code.SHAPE)
    x = reshape_to(x, padded)
    if x.shape == shape:
        return x
    return compute(x.dtype, shape, "broadcast ", x, f" : {x.value.ir_type()} -> {ty.tile_ir(x.dtype, shape)}")


def common_shape(*tiles: tensor) -> tuple[int, ...]:
    """The shape all of them broadcast to."""
    rank = max(t.ndim for t in tiles)
    shape = [1] * rank
    for t in tiles:
        for i, n in enumerate(t.shape, rank - t.ndim):
            if shape[i] not in (1, n) and n != 1:
                shapes = " and ".join(str(list(t.shape)) for t in tiles)
                raise fail(
                    f"the shapes {shapes} do not match: dimension {i} is {shape[i]} in one and {n} in the other",
                    "dimensions match when they are equal or one of them is 1; add one with `x[:, None]`",
                    code=Code.SHAPE,
                )
            shape[i] = max(shape[i], n)
    return tuple(shape)


def reshape(x: tensor, *shape) -> tensor:
    if len(shape) == 1:
        shape = shape[0]
    x = as_tensor(x)
    shape = check_shape(shape, "the new shape")
    count = 1
    for n in shape:
        count *= n
    if count != x.numel:
        raise fail(f"{x.describe()} has {x.numel} elements, but the shape {list(shape)} has {count}", code=Code.SHAPE)
    return reshape_to(x, shape)


def permute(x: tensor, *dims) -> tensor:
    if len(dims) == 1 and isinstance(unwrap(dims[0]), (tuple, list)):
        dims = tuple(unwrap(dims[0]))
    dims = tuple(axis_of(x, d, "a dimension") for d in dims)
    if sorted(dims) != list(range(x.ndim)):
        raise fail(f"{list(dims)} is not a permutation of the {x.ndim} dimensions of {x.describe()}", code=Code.SHAPE)
    if dims == tuple(range(x.ndim)):
        return x
    shape = tuple(x.shape[d] for d in dims)
    order = ", ".join(map(str, dims))
    return compute(x.dtype, shape, "permute ", x, f" [{order}] : {x.value.ir_type()} -> {ty.tile_ir(x.dtype, shape)}")


def index(x: tensor, key) -> tensor:
    """`x[:, None]` and `x[None, :]`: new dimensions of extent 1. A `:` stands for nothing in a scalar, as in Triton."""
    keys = key if isinstance(key, tuple) else (key,)
    keys = tuple(unwrap(k) for k in keys)
    if Ellipsis in [k for k in keys if not isinstance(k, tensor)]:
        at = keys.index(Ellipsis)
        fill = x.ndim - sum(1 for k in keys if isinstance(k, slice))
        keys = keys[:at] + (slice(None),) * fill + keys[at + 1 :]
    shape, rest = [], list(x.shape)
    for k in keys:
        if k is None:
            shape.append(1)
        elif isinstance(k, slice) and k == slice(None):
            if not x.shape and None in [k for k in keys if not isinstance(k, tensor)]:
                continue
            if not rest:
                raise fail(f"there are more `:` than {x.describe()} has dimensions", code=Code.SHAPE)
            shape.append(rest.pop(0))
        else:
            if x.dtype.is_ptr():
                raise fail("an address is not indexed", "load from it: `girih.load(pointer + offsets)`", code=Code.ADDRESS)
            raise fail(
                "a tile can be indexed only with `:` and `None`",
                "elements are read by `girih.load` from an address, by `girih.gather`, or by a reduction",
                code=Code.SHAPE,
            )
    return reshape_to(x, tuple(shape + rest))


# ---- conversion


def cast(x, dtype, rounding: str | None = None, bitcast: bool = False) -> tensor:
    dtype = check_dtype(dtype)
    x = as_tensor(x)
    source = x.dtype
    rounding, bitcast = static(rounding, "the rounding"), static(bitcast, "bitcast")
    if rounding not in (None, "rtne", "rtz"):
        raise fail(
            f"the rounding {rounding!r} is not supported",
            'conversions round to the nearest, ties to even ("rtne"), or towards zero ("rtz")',
            code=Code.CALL,
        )
    if source == dtype:
        return x
    if rounding == "rtz" and not bitcast:
        if not source.is_floating() or not dtype.is_floating():
            raise fail(f"a rounding is for conversions between floats, not from {source} to {dtype}", code=Code.CALL)
        return towards_zero(x, dtype)
    if bitcast:
        return bit_cast(x, dtype)
    if source.is_ptr() or dtype.is_ptr():
        return cast_pointer(x, dtype)
    if dtype.is_bool():
        return compare("not_equal", x, constant(0, source))
    return convert(x, dtype)


def bit_cast(x: tensor, dtype) -> tensor:
    if x.dtype.bits != dtype.bits:
        raise fail(f"a bitcast must keep the width, but {x.dtype} has {x.dtype.bits} bits and {dtype} {dtype.bits}", code=Code.ELEMENT_TYPE)
    if x.dtype.is_ptr() or dtype.is_ptr():
        return cast_pointer(x, dtype)
    if x.dtype.ir == dtype.ir:
        return tensor(x.value, dtype)
    return unary("bitcast", x, dtype)


def cast_pointer(x: tensor, dtype) -> tensor:
    if x.dtype.is_ptr() and dtype.is_ptr():
        return unary("ptr_to_ptr", x, dtype)
    if x.dtype.is_ptr() and dtype.is_int() and dtype.bits == 64:
        return unary("ptr_to_int", x, dtype)
    if dtype.is_ptr() and x.dtype.is_int():
        return unary("int_to_ptr", cast(x, ty.int64), dtype)
    raise fail(f"{x.dtype} cannot become {dtype}", "an address converts to another pointer type, and to int64 and back", code=Code.ELEMENT_TYPE)


def unary(op: str, x: tensor, dtype, attributes: str = "") -> tensor:
    """A conversion `x op -> dtype`."""
    return compute(dtype, x.shape, f"{op} ", x, f"{attributes} : {x.value.ir_type()} -> {ty.tile_ir(dtype, x.shape)}")


def towards_zero(x: tensor, dtype: DType) -> tensor:
    """A float as another one, rounded towards zero."""
    if dtype.bits > 8:
        return unary("ftof", x, dtype, " rounding<zero>")
    # The nearest number; where that is further from zero, or infinite or NaN by overflow, the number below it.
    bits = unary("bitcast", convert(x, dtype), ty.uint8)
    without_sign, below_zero = bitwise("andi", bits, 0x7F), compare("less_than", x, constant(0, x.dtype))
    nearest = cast(unary("bitcast", without_sign, dtype), x.dtype)
    size = select(below_zero, negate(x), x)
    kept = bitwise("ori", compare("less_than_or_equal", nearest, size), compare("not_equal", x, x))
    lower = arithmetic("sub", without_sign, constant(1, ty.uint8))
    lower = bitwise("ori", lower, select(below_zero, constant(0x80, ty.uint8), constant(0, ty.uint8)))
    return unary("bitcast", select(kept, bits, lower), dtype)


def convert(x: tensor, dtype: DType) -> tensor:
    """Between numbers of different types: floats round to nearest even, floats become integers towards zero."""
    source = x.dtype
    if source.is_floating() and dtype.is_floating():
        return unary("ftof", x, dtype)
    if source.is_floating():
        return unary("ftoi", x, dtype, f" {dtype.signedness}")
    if dtype.is_floating():
        if source.is_bool():
            x = unary("exti", x, ty.int8, " unsigned")
            source = ty.uint8
        return unary("itof", x, dtype, f" {source.signedness}")
    if source.bits == dtype.bits:
        return tensor(x.value, dtype)
    if source.bits < dtype.bits:
        return unary("exti", x, dtype, f" {source.signedness}")
    return unary("trunci", x, dtype)


# ---- operands of an operation


def operands(a, b, what: str, division: bool = False, pointers: bool = False) -> tuple[tensor, tensor]:
    """Both operands in the type and the shape they are computed in.

    A number takes the type of the tile or scalar beside it, if it is of its kind or a lower one. Two tiles, two
    scalars, and a scalar beside a tile, combine as `types.promote` says.
    """
    a, b = unwrap(a), unwrap(b)
    for x in (a, b):
        if not isinstance(x, tensor) and not is_number(x):
            raise fail(f"{what} needs numbers or tiles, not {describe(x)}", code=Code.OPERAND)
    if not isinstance(a, tensor) and not isinstance(b, tensor):
        a = as_tensor(a)
    if isinstance(a, tensor) and isinstance(b, tensor):
        if not pointers:
            no_pointers(a, b, what)
        dtype = meet(a, b, division)
    else:
        tile, number = (a, b) if isinstance(a, tensor) else (b, a)
        if not pointers:
            no_pointers(tile, tile, what)
        dtype = type_beside(tile.dtype, number, division)
    a, b = (cast(x, dtype) if isinstance(x, tensor) else constant(x, dtype) for x in (a, b))
    shape = common_shape(a, b)
    return broadcast_to(a, shape), broadcast_to(b, shape)


def no_pointers(a: tensor, b: tensor, what: str) -> None:
    for x in (a, b):
        if x.dtype.is_ptr():
            raise fail(f"{what} is not defined for an address, {x.describe()}", "load from it first: `girih.load(p)`", code=Code.ADDRESS)


def meet(a: tensor, b: tensor, division: bool) -> DType:
    if a.dtype.is_ptr() or b.dtype.is_ptr():
        return a.dtype
    return ty.promote(a.dtype, b.dtype, division)


def type_beside(tile: DType, number: int | float | bool, division: bool) -> DType:
    if tile.is_ptr():
        return tile
    if isinstance(number, float) and not tile.is_floating():
        return ty.float32
    if tile.is_bool() and not isinstance(number, bool):
        return number_type(number)
    if tile.is_int() and isinstance(number, int):
        low, high = ty.integer_range(tile)
        if not low <= number <= high:
            return ty.promote(tile, number_type(number))
    return ty.promote(tile, tile, division)


def widen_float8(*tiles: tensor) -> tuple[tensor, ...]:
    """Arithmetic on 8-bit floats happens in float16."""
    return tuple(cast(t, ty.float16) if t.dtype.is_floating() and t.dtype.bits == 8 else t for t in tiles)


def widen_bool(*tiles: tensor) -> tuple[tensor, ...]:
    """Arithmetic on booleans happens in int32."""
    return tuple(cast(t, ty.int32) if t.dtype.is_bool() else t for t in tiles)


# ---- arithmetic


def binary(op: str, a: tensor, b: tensor, attributes: str = "") -> tensor:
    return compute(a.dtype, a.shape, f"{op} ", a, ", ", b, f"{attributes} : {a.value.ir_type()}")


WORDS = {"add": "the sum", "sub": "the difference", "mul": "the product"}


def arithmetic(op: str, a, b) -> tensor:
    """`add`, `sub` or `mul`; integers wrap."""
    a, b = operands(a, b, WORDS[op])
    a, b = widen_bool(*widen_float8(a, b))
    return binary(op + ("f" if a.dtype.is_floating() else "i"), a, b)


def add(a, b) -> tensor:
    a, b = unwrap(a), unwrap(b)
    if isinstance(b, tensor) and b.dtype.is_ptr():
        a, b = b, a
    if isinstance(a, tensor) and a.dtype.is_ptr():
        return offset(a, b)
    return arithmetic("add", a, b)


def sub(a, b) -> tensor:
    a = unwrap(a)
    if isinstance(a, tensor) and a.dtype.is_ptr():
        return offset(a, -unwrap(b))
    return arithmetic("sub", a, b)


WHOLE = "`/` divides as floats, `//` gives whole numbers; or cast it: `i.to(girih.int32)`"


def offset(pointer: tensor, by) -> tensor:
    """An address some elements further on."""
    by = as_tensor(by)
    if by.dtype.is_ptr():
        raise fail("two addresses cannot be added", code=Code.ADDRESS)
    if not by.dtype.is_int():
        raise fail(
            f"an address can move only by whole elements, not by {by.describe()}",
            WHOLE,
            code=Code.ADDRESS,
        )
    if by.dtype.is_bool():
        by = cast(by, ty.int32)
    elif by.dtype.is_int_unsigned():
        # Offsets are sign-extended.
        by = cast(by, ty.int64)
    shape = common_shape(pointer, by)
    pointer, by = broadcast_to(pointer, shape), broadcast_to(by, shape)
    types = f"{pointer.value.ir_type()}, {by.value.ir_type()} -> {pointer.value.ir_type()}"
    return compute(pointer.dtype, shape, "offset ", pointer, ", ", by, f" : {types}")


def truediv(a, b) -> tensor:
    a, b = operands(a, b, "the quotient", division=True)
    if not a.dtype.is_floating():
        a, b = cast(a, ty.float32), cast(b, ty.float32)
    a, b = widen_float8(a, b)
    return binary("divf", a, b)


def divided(a, b) -> tensor:
    """The quotient of floats in their common type, 16-bit floats included."""
    a, b = operands(a, b, "the quotient")
    if not a.dtype.is_floating():
        raise fail(f"fdiv is defined for floats, not for {a.describe()}", "`/` divides integers as float32", code=Code.ELEMENT_TYPE)
    return binary("divf", *widen_float8(a, b))


def same_signs(a, b, what: str) -> None:
    """Refuses to divide a signed integer by an unsigned one, or the other way round."""
    kinds = {x.dtype.kind for x in (unwrap(a), unwrap(b)) if isinstance(x, tensor)}
    if {"int", "uint"} <= kinds:
        raise fail(
            f"{what} of {describe(a)} and {describe(b)} is not defined: one is signed and the other is not",
            "cast one of them, so that both are signed or both are not",
            code=Code.ELEMENT_TYPE,
        )


def refuse_zero(divisor) -> None:
    """Refuses an integer of zero as a divisor, which gives an undefined value."""
    divisor = unwrap(divisor)
    if isinstance(divisor, int) and divisor == 0:
        raise fail("division by zero", code=Code.CONSTANT)


def integer_division(op: str, a, b, attributes: str = "") -> tensor:
    same_signs(a, b, "the whole quotient")
    refuse_zero(b)
    a, b = operands(a, b, "the whole quotient", division=True)
    if a.dtype.is_floating():
        raise fail("`//` is defined for integers only", "for floats: `girih.floor(a / b)`", code=Code.ELEMENT_TYPE)
    a, b = widen_bool(a, b)
    return binary(op, a, b, f" {a.dtype.signedness}{attributes}")


def remainder(a, b) -> tensor:
    """`%`: the remainder has the sign of the dividend, as in C."""
    same_signs(a, b, "the remainder")
    if not (isinstance(unwrap(a), tensor) and unwrap(a).dtype.is_floating()):
        refuse_zero(b)
    a, b = operands(a, b, "the remainder", division=True)
    if a.dtype.is_floating():
        return binary("remf", *widen_float8(a, b))
    a, b = widen_bool(a, b)
    return binary("remi", a, b, f" {a.dtype.signedness}")


def power(a, b) -> tensor:
    exponent = unwrap(b)
    if isinstance(exponent, int) and not isinstance(exponent, bool) and 1 <= exponent <= 8:
        result = base = as_tensor(a)
        for _ in range(exponent - 1):
            result = arithmetic("mul", result, base)
        return result
    a, b = operands(a, b, "the power")
    if not a.dtype.is_floating():
        raise fail("a power of integers needs an exponent from 1 to 8 known at compile time", "cast to float32 first", code=Code.NOT_CONSTANT)
    return binary("pow", *widen_float8(a, b))


def bitwise(op: str, a, b) -> tensor:
    a, b = operands(a, b, "a bit operation")
    if a.dtype.is_floating():
        raise fail(f"a bit operation is not defined for {a.dtype}", "bitcast it: `x.to(girih.int32, bitcast=True)`", code=Code.ELEMENT_TYPE)
    return binary(op, a, b)


def shift(op: str, a, b) -> tensor:
    """A shift; to the right, the left operand's signedness decides which bits come in."""
    shifted = unwrap(a)
    signed = shifted.dtype.kind == "int" if isinstance(shifted, tensor) else None
    a, b = operands(a, b, "a shift")
    if a.dtype.is_floating():
        raise fail(f"a shift is not defined for {a.dtype}", code=Code.ELEMENT_TYPE)
    a, b = widen_bool(a, b)
    if signed is None:
        signed = a.dtype.kind == "int"
    return binary(op, a, b, (" signed" if signed else " unsigned") if op == "shri" else "")


def negate(x: tensor) -> tensor:
    no_pointers(x, x, "negation")
    (x,) = widen_bool(*widen_float8(x))
    return compute(x.dtype, x.shape, "negf " if x.dtype.is_floating() else "negi ", x, f" : {x.value.ir_type()}")


def invert(x: tensor) -> tensor:
    if not x.dtype.is_int():
        raise fail(f"`~` is not defined for {x.dtype}", code=Code.ELEMENT_TYPE)
    ones = {"bool": True, "int": -1}.get(x.dtype.kind, (1 << x.dtype.bits) - 1)
    return binary("xori", x, constant(ones, x.dtype, x.shape))


def compare(predicate: str, a, b) -> tensor:
    if (unwrap(a) is None or unwrap(b) is None) and predicate in ("equal", "not_equal"):
        return predicate == "not_equal"
    for one, other in ((unwrap(a), unwrap(b)), (unwrap(b), unwrap(a))):
        number = isinstance(other, tensor) and not other.dtype.is_ptr()
        if isinstance(one, tensor) and one.dtype.is_ptr() and number:
            raise fail(
                f"an address, {one.describe()}, cannot be compared with {other.describe()}",
                "load from it first: `girih.load(p)`; or is an array given for a number at the launch?",
                code=Code.ADDRESS,
            )
    a, b = operands(a, b, "a comparison", pointers=True)
    result = ty.tile_ir(ty.int1, a.shape)
    if a.dtype.is_ptr():
        a, b = cast(a, ty.uint64), cast(b, ty.uint64)
    if a.dtype.is_floating():
        a, b = widen_float8(a, b)
        order = "unordered" if predicate == "not_equal" else "ordered"
        pieces = (f"cmpf {predicate} {order} ", a, ", ", b, f" : {a.value.ir_type()} -> {result}")
    else:
        pieces = (f"cmpi {predicate} ", a, ", ", b, f", {a.dtype.signedness} : {a.value.ir_type()} -> {result}")
    return compute(ty.int1, a.shape, *pieces)


def logical(word: str, a, b) -> tensor:
    """`and` or `or` of truths; both sides are computed."""
    return bitwise("andi" if word == "and" else "ori", truth(a), truth(b))


def truth(x) -> tensor:
    x = as_tensor(x)
    if x.dtype.is_ptr():
        raise fail("an address is not a condition", "test whether an argument is given with `x is not None`", code=Code.CONDITION)
    return x if x.dtype.is_bool() else cast(x, ty.int1)


def select(condition, x, y) -> tensor:
    """`x` where the condition holds, else `y`; all three broadcast."""
    floats = unwrap(condition).dtype.is_floating() if isinstance(unwrap(condition), tensor) else isinstance(unwrap(condition), float)
    if floats and isinstance(unwrap(x), tensor) and unwrap(x).dtype.is_bool():
        raise fail(
            f"a choice by {describe(condition)} is made of {describe(x)}: are the first two arguments swapped?",
            "the condition comes first: `where(condition, x, y)`",
            code=Code.CALL,
        )
    condition = truth(condition)
    if not isinstance(unwrap(x), tensor) and not isinstance(unwrap(y), tensor):
        x = as_tensor(x, ty.float32 if isinstance(unwrap(y), float) else None)
    x, y = operands(x, y, "a choice", pointers=True)
    shape = common_shape(condition, x)
    condition, x, y = (broadcast_to(t, shape) for t in (condition, x, y))
    types = f"{condition.value.ir_type()}, {x.value.ir_type()}"
    return compute(x.dtype, shape, "select ", condition, ", ", x, ", ", y, f" : {types}")
