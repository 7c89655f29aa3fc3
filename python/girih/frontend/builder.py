"""Tile IR under construction: values, operations, regions, and their text.

The tracer and the language's functions append operations to the current region; `Builder.text` prints the finished
kernel without unused operations:

    entry @add(%x: tile<ptr<f32>>, ...) {
      %pid, %0, %1 = get_tile_block_id : tile<i32> loc(#loc1)
      ...

Invariants: a value is used only in its region or in regions inside it; constants are in the entry's region, once
each; memory operations are chained by tokens in the order of the program.
"""

from __future__ import annotations

import math
import struct
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import types as ty
from .errors import Place
from .types import DType, PointerType


class Value:
    """The result of an operation: a scalar or a tile, or a token (`type` is `None`)."""

    __slots__ = ("type", "shape", "hint")

    def __init__(self, type: DType | PointerType | None, shape: tuple[int, ...] = (), hint: str = ""):
        self.type = type
        self.shape = shape
        self.hint = hint

    def ir_type(self) -> str:
        return "token" if self.type is None else ty.tile_ir(self.type, self.shape)


class Op:
    """One operation: pieces of text and operands in turn, results, and the regions that follow."""

    __slots__ = ("pieces", "results", "regions", "place", "pure")

    def __init__(
        self, pieces: tuple, results: tuple[Value, ...], regions: tuple[Region, ...], place: Place | None, pure: bool
    ):
        self.pieces = pieces
        self.results = results
        self.regions = regions
        self.place = place
        self.pure = pure

    def operands(self) -> Iterable[Value]:
        return (p for p in self.pieces if isinstance(p, Value))


class Region:
    """A list of operations with arguments; `header` prints the arguments where the operation wants them."""

    __slots__ = ("args", "ops", "touches_memory")

    def __init__(self, args: Sequence[Value] = ()):
        self.args = list(args)
        self.ops: list[Op] = []
        self.touches_memory = False


class Builder:
    """The kernel in hand. `place` is where in the user's source the next operation comes from."""

    def __init__(self, name: str, checked: bool = False):
        self.name = spelled(name)
        self.checked = checked  # indices of tiles are tested too
        self.params: list[Value] = []
        self.entry = Region()
        self.regions = [self.entry]
        self.place: Place | None = None
        self.constants: dict[tuple, tuple[Value, Op]] = {}
        self.first: list[Op] = []  # operations that come before the body, beside the constants
        self.shared: Value | None = None
        self.start: Place | None = None  # where the kernel begins
        self.stops: list[Place] = []  # where breakpoints are
        self.effects = 0  # the operations so far that do something besides their results
        self.updates = False  # whether one of them is not a store
        self.unused: list[Place] = []  # expressions whose values are not used
        self.axes: set[int] = set()  # of the grid, that are read
        # Values of run time that constexpr parameters have: (value, parameter, function) by the value's identity.
        self.runtime_constants: dict[int, tuple[Any, str, str]] = {}
        # The values that were read from outside of the kernel: (how to read it again, its name, its value) by owner and name.
        self.outside: dict[tuple[int, str], tuple[Callable[[str], Any], str, Any]] = {}
        # The last token of a write, and those of the reads since; None before the first.
        self.written: Value | None = None
        self.read: list[Value] = []

    # ---- operations

    def op(
        self,
        pieces: Sequence[str | Value],
        results: Sequence[Value] = (),
        regions: Sequence[Region] = (),
        pure: bool = True,
    ) -> None:
        if not pure and not (kind := str(pieces[0])).startswith(LEAVING):
            self.effects += 1
            self.updates |= not kind.startswith(("store_ptr_tko", "store_view_tko"))
        self.regions[-1].ops.append(Op(tuple(pieces), tuple(results), tuple(regions), self.place, pure))

    def compute(self, type: DType | PointerType, shape: tuple[int, ...], *pieces: str | Value) -> Value:
        """An operation with one result."""
        result = Value(type, shape)
        self.op(pieces, (result,))
        return result

    def constant(self, type: DType, value: int | float | bool, shape: tuple[int, ...] = ()) -> Value:
        """A tile whose elements all are `value`."""
        text = spell_number(type, value)
        key = (type, text, shape)
        if key not in self.constants:
            result = Value(type, shape, hint=constant_hint(type, value))
            pieces = (f"constant <{type.ir}: {text}> : {ty.tile_ir(type, shape)}",)
            self.constants[key] = (result, Op(pieces, (result,), (), None, True))
        return self.constants[key][0]

    def at_start(self, pieces: Sequence[str | Value], result: Value) -> None:
        """An operation at the start of the kernel, independent of the current region."""
        self.first.append(Op(tuple(pieces), (result,), (), self.place, True))

    # ---- memory order

    def before_read(self) -> Value | None:
        """The token a read has to wait for."""
        return self.written

    def before_write(self) -> Value | None:
        """The token a write has to wait for: all reads since the last write, or that write."""
        if not self.read:
            return self.written
        self.written, self.read = self._join(self.read), []
        return self.written

    def _join(self, tokens: list[Value]) -> Value:
        if len(tokens) == 1:
            return tokens[0]
        joined = Value(None, hint="joined")
        self.op(["join_tokens ", *commas(tokens), " : token"], (joined,))
        return joined

    def did_read(self, token: Value) -> None:
        self.read.append(token)
        self._touch()

    def did_write(self, token: Value) -> None:
        self.written, self.read = token, []
        self._touch()

    def _touch(self) -> None:
        for region in self.regions:
            region.touches_memory = True

    def one_token(self) -> Value:
        """One token for everything so far; starts the chain if there is none."""
        token = self.before_write()
        if token is None:
            token = Value(None, hint="start")
            self.op(["make_token : token"], (token,))
        self.written, self.read = token, []
        return token

    # ---- text

    def text(self, files: bool = True) -> str:
        """The kernel as Tile IR; with `files`, each operation carries its place in the user's source."""
        ops = [op for _, op in self.constants.values()] + self.first + self.entry.ops
        return Printer(self, files).module(ops)


def commas(values: Iterable[Value]) -> list[str | Value]:
    """The values with commas between them, as pieces of an operation."""
    pieces: list[str | Value] = []
    for value in values:
        if pieces:
            pieces.append(", ")
        pieces.append(value)
    return pieces


def spell_number(type: DType, value: int | float | bool) -> str:
    """A constant's element as Tile IR writes it; raises `OverflowError` when the type has no such integer."""
    if type.kind == "bool":
        return "true" if value else "false"
    if type.kind != "float":
        number = int(value)
        low, high = ty.integer_range(type)
        if not low <= number <= high:
            raise OverflowError(f"{number} does not fit {type}")
        return str(number)
    number = float(value)
    if math.isnan(number) or math.isinf(number):
        exponent, mantissa = FLOAT_LAYOUT[type.name]
        if type.name == "float8e4nv":
            bits = 0x7F
        else:
            bits = ((1 << exponent) - 1) << mantissa
            if math.isnan(number):
                bits |= 1 << (mantissa - 1)
        if number < 0:
            bits |= 1 << (type.bits - 1)
        return f"0x{bits:0{type.bits // 4}X}"
    if type.bits == 32:
        # The shortest decimal that gives the same float, unless the value overflows.
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            return spell_number(type, math.copysign(math.inf, number))
    text = repr(number)
    return text if "." in text else text.replace("e", ".0e")


# Bits of exponent and mantissa.
FLOAT_LAYOUT = {
    "float8e4nv": (4, 3), "float8e5": (5, 2), "float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23),
    "float64": (11, 52),
}  # fmt: skip


# Operations that only say where control goes.
LEAVING = ("return", "continue", "break", "yield", "for ", "loop", "if ")


def spelled(name: str) -> str:
    """A name of Python's in the letters of Tile IR: `é` is `e`, `α` is `u3b1`."""
    if name.isascii():
        return name
    plain = unicodedata.normalize("NFKD", name)
    return "".join(c if c.isascii() else "" if unicodedata.combining(c) else f"u{ord(c):x}" for c in plain)


def constant_hint(type: DType, value: int | float | bool) -> str:
    text = str(int(value) if type.kind != "float" and type.kind != "bool" else value)
    text = text.replace("-", "minus_").replace(".", "_").replace("+", "")
    return f"c_{text}" if text.replace("_", "").isalnum() else "c"


class Printer:
    """Names values, drops unused operations, and writes the text."""

    def __init__(self, builder: Builder, files: bool):
        self.builder = builder
        self.files = files
        self.names: dict[int, str] = {}
        self.taken: dict[str, int] = {}
        self.used: set[int] = set()
        self.lines: list[str] = []
        self.places = Places(builder.name)

    def module(self, ops: list[Op]) -> str:
        kept = self.live(ops)
        if self.files and self.builder.place is not None:
            # The kernel's own function is the first of the scopes.
            self.places.loc(self.builder.place)
        params = ", ".join(f"{self.define(p)}: {p.ir_type()}" for p in self.builder.params)
        self.lines.append(f"cuda_tile.module @{self.builder.name} {{")
        self.lines.append(f"  entry @{self.builder.name}({params}) {{")
        self.body(kept, 2)
        self.lines.append("  }" + self.location(self.builder.place))
        self.lines.append("}")
        return "\n".join(self.lines + self.places.lines()) + "\n"

    def live(self, ops: list[Op]) -> list[tuple[Op, list]]:
        """The operations whose results are used, or that do something besides; each with its live regions."""
        kept = []
        for op in reversed(ops):
            if op.pure and not any(id(r) in self.used for r in op.results):
                continue
            regions = [self.live(r.ops) for r in reversed(op.regions)][::-1]
            self.used.update(id(v) for v in op.operands())
            kept.append((op, regions))
        kept.reverse()
        return kept

    def define(self, value: Value) -> str:
        base = spelled(value.hint)
        if base:
            count = self.taken.get(base, -1) + 1
            self.taken[base] = count
            name = f"%{base}" if count == 0 else f"%{base}_{count}"
            while name in self.taken:
                count += 1
                self.taken[base] = count
                name = f"%{base}_{count}"
            self.taken[name] = 0
        else:
            count = self.taken.get("", -1) + 1
            self.taken[""] = count
            name = f"%{count}"
        self.names[id(value)] = name
        return name

    def body(self, ops: list[tuple[Op, list]], depth: int) -> None:
        indent = "  " * depth
        for op, regions in ops:
            results = ", ".join(self.define(r) for r in op.results)
            head = f"{results} = " if results else ""
            pending = iter(zip(op.regions, regions))
            line = indent + head
            for piece in op.pieces:
                if isinstance(piece, Value):
                    line += self.names[id(piece)]
                elif piece is REGION:
                    _, inner = next(pending)
                    self.lines.append(line + "{")
                    self.body(inner, depth + 1)
                    line = indent + "}"
                elif isinstance(piece, Arg):
                    line += self.define(piece.value)
                else:
                    line += piece
            self.lines.append(line + self.location(op.place))

    def location(self, place: Place | None) -> str:
        return f" loc(#{self.places.loc(place)})" if self.files and place is not None else ""


# A piece that stands for the braces and the operations of the next region.
REGION = object()


class Arg:
    """A piece that names an argument of a region where it is introduced."""

    __slots__ = ("value",)

    def __init__(self, value: Value):
        self.value = value


class Places:
    """The aliases of locations at the end of a file: lines in scopes of functions, and calls of inlined functions."""

    def __init__(self, entry: str):
        self.entry = entry
        self.aliases: dict[str, str] = {}
        self.known: dict[Place, str] = {}
        self.functions: dict[tuple[str, str], str] = {}

    def alias(self, kind: str, definition: str) -> str:
        if definition not in self.aliases:
            self.aliases[definition] = f"{kind}{len(self.aliases)}"
        return self.aliases[definition]

    def loc(self, place: Place) -> str:
        if place not in self.known:
            line = self.alias("loc", f"loc({quote(place.file)}:{place.line}:{place.column + 1})")
            name = self.alias("loc", f"#cuda_tile.di_loc<#{line} in #{self.scope(place)}>")
            if place.parent is not None:
                name = self.alias("loc", f"loc(callsite(#{name} at #{self.loc(place.parent)}))")
            self.known[place] = name
        return self.known[place]

    def scope(self, place: Place) -> str:
        """The function a place is in; the kernel's own goes by the entry's name."""
        key = (place.file, place.function)
        if key not in self.functions:
            folder, _, name = place.file.rpartition("/")
            file = self.alias("file", f"#cuda_tile.di_file<{quote(name)} in {quote(folder)}>")
            unit = self.alias("unit", f"#cuda_tile.di_compile_unit<file = #{file}>")
            linkage = self.entry if not self.functions else f"{place.function}@{name}:{place.line}"
            self.functions[key] = self.alias(
                "function",
                f"#cuda_tile.di_subprogram<file = #{file}, line = {place.line}, name = {quote(place.function)}, "
                f"linkageName = {quote(linkage)}, compileUnit = #{unit}, scopeLine = {place.line}>",
            )
        return self.functions[key]

    def lines(self) -> list[str]:
        return [f"#{name} = {definition}" for definition, name in self.aliases.items()]


def quote(text: str) -> str:
    out = []
    for byte in text.encode("utf-8", "surrogateescape"):
        if byte in b'"\\' or not 0x20 <= byte < 0x7F:
            out.append(f"\\{byte:02X}")
        else:
            out.append(chr(byte))
    return '"' + "".join(out) + '"'
