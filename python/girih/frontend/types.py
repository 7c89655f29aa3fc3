"""Types of kernel values: element types, pointers, and the shape a tile has.

A kernel value has an element type, a `DType` or a `PointerType`, and a shape: a tuple of powers of two, `()` for a
scalar. Tile IR's integers carry no sign; here `uint32` and `int32` differ, and every operation is given the signedness
of its operands.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class DType:
    """An element type, for instance `girih.float32`.

    Attributes:
        name: its name in a kernel, `"float32"`.
        ir: its name in Tile IR, `"f32"`.
        kind: `"bool"`, `"int"`, `"uint"` or `"float"`.
        bits: the width of one element.
    """

    name: str
    ir: str
    kind: str
    bits: int

    @property
    def primitive_bitwidth(self) -> int:
        return self.bits

    @property
    def itemsize(self) -> int:
        return max(1, self.bits // 8)

    @property
    def signedness(self) -> str:
        return "signed" if self.kind == "int" else "unsigned"

    @property
    def int_bitwidth(self) -> int:
        return self.bits

    def is_floating(self) -> bool:
        return self.kind == "float"

    def is_fp8(self) -> bool:
        return self.is_floating() and self.bits == 8

    def is_fp16(self) -> bool:
        return self == float16

    def is_bf16(self) -> bool:
        return self == bfloat16

    def is_fp32(self) -> bool:
        return self == float32

    def is_fp64(self) -> bool:
        return self == float64

    def is_int(self) -> bool:
        """Returns True for an integer of any signedness, also for `int1`."""
        return self.kind != "float"

    def is_int_signed(self) -> bool:
        return self.kind == "int"

    def is_int_unsigned(self) -> bool:
        return self.kind == "uint"

    def is_bool(self) -> bool:
        return self.kind == "bool"

    def is_ptr(self) -> bool:
        return False

    @property
    def scalar(self) -> DType:
        return self

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


@dataclasses.dataclass(frozen=True)
class PointerType:
    """The type of an address of elements of one type: `girih.pointer_type(girih.float32)`."""

    element_ty: DType

    kind = "pointer"
    bits = 64
    __girih_builtin__ = True  # kernels call it

    @property
    def name(self) -> str:
        return f"pointer<{self.element_ty}>"

    @property
    def ir(self) -> str:
        return f"ptr<{self.element_ty.ir}>"

    def is_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def is_bool(self) -> bool:
        return False

    def is_ptr(self) -> bool:
        return True

    @property
    def scalar(self) -> PointerType:
        return self

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


int1 = DType("int1", "i1", "bool", 1)
int8 = DType("int8", "i8", "int", 8)
int16 = DType("int16", "i16", "int", 16)
int32 = DType("int32", "i32", "int", 32)
int64 = DType("int64", "i64", "int", 64)
uint8 = DType("uint8", "i8", "uint", 8)
uint16 = DType("uint16", "i16", "uint", 16)
uint32 = DType("uint32", "i32", "uint", 32)
uint64 = DType("uint64", "i64", "uint", 64)
float8e4nv = DType("float8e4nv", "f8E4M3FN", "float", 8)
float8e5 = DType("float8e5", "f8E5M2", "float", 8)
float16 = DType("float16", "f16", "float", 16)
bfloat16 = DType("bfloat16", "bf16", "float", 16)
float32 = DType("float32", "f32", "float", 32)
float64 = DType("float64", "f64", "float", 64)

ALL = (int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
       float8e4nv, float8e5, float16, bfloat16, float32, float64)  # fmt: skip
BY_NAME = {t.name: t for t in ALL}

# The names of types in annotations and in signatures such as "*fp32".
SHORT = {
    "i1": int1, "i8": int8, "i16": int16, "i32": int32, "i64": int64,
    "u1": int1, "u8": uint8, "u16": uint16, "u32": uint32, "u64": uint64,
    "fp8e4nv": float8e4nv, "fp8e5": float8e5, "fp16": float16, "bf16": bfloat16, "fp32": float32, "fp64": float64,
}  # fmt: skip

MAX_ELEMENTS = 1 << 24


def is_type(value: object) -> bool:
    return isinstance(value, (DType, PointerType))


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def spell(ty: DType | PointerType, shape: tuple[int, ...]) -> str:
    """The type as a message shows it: `float32`, or `float32[64, 32]`."""
    return f"{ty}[{', '.join(map(str, shape))}]" if shape else str(ty)


def tile_ir(ty: DType | PointerType, shape: tuple[int, ...]) -> str:
    """The type as Tile IR spells it: `tile<64x32xf32>`."""
    return f"tile<{''.join(f'{n}x' for n in shape)}{ty.ir}>"


def integer_range(ty: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if ty.kind == "int":
        return -(1 << (ty.bits - 1)), (1 << (ty.bits - 1)) - 1
    return 0, (1 << ty.bits) - 1


def type_of_number(value: int | float | bool) -> DType:
    """The type a Python number has where nothing else decides: the narrowest of 32 and 64 bits that holds it."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for ty in (int32, uint32, int64, uint64):
            low, high = integer_range(ty)
            if low <= value <= high:
                return ty
        raise ValueError("the integer does not fit 64 bits")
    return float32


def promote(a: DType, b: DType, division: bool = False) -> DType:
    """The type two values compute in, tiles or scalars; the table of `docs/python/from-triton.md`.

    A float wins over integers and booleans, and the wider float over the narrower. `float16` wins over `bfloat16`; a
    `bfloat16` and an 8-bit float become `float32`, two different 8-bit floats `float16`. Quotients and remainders of
    16-bit floats are computed in `float32`. The wider of two integers wins; between equally wide ones, the unsigned.
    """
    for ty in (float64, float32):
        if ty in (a, b):
            return ty
    if float16 in (a, b):
        return float32 if division else float16
    if bfloat16 in (a, b):
        return float32 if division or a != b and a.is_floating() and b.is_floating() else bfloat16
    if a == b:
        return a
    if a.is_floating() or b.is_floating():
        return (float16 if b.is_floating() else a) if a.is_floating() else b
    if a.bits == b.bits:
        return a if a.kind == "uint" else b
    return a if a.bits > b.bits else b


class Known(int):
    """An integer argument whose value a specialisation knows: arithmetic wraps at 32 bits, as it does at run time.

        seed = Known(1)
        seed * 1664525 * 1664525        a number of 32 bits
    """


def _wrapping(name: str):
    operator = getattr(int, name)

    def apply(self: int, *others: int) -> int:
        result = operator(self, *others)
        if result is NotImplemented or not all(-(1 << 31) <= o < 1 << 31 for o in others):
            return result
        return Known((result + (1 << 31)) % (1 << 32) - (1 << 31))

    return apply


for _name in ("add", "sub", "mul", "lshift"):
    setattr(Known, f"__{_name}__", _wrapping(f"__{_name}__"))
    setattr(Known, f"__r{_name}__", _wrapping(f"__r{_name}__"))
Known.__neg__ = _wrapping("__neg__")
