"""`breakpoint()` in a kernel: the evaluator stops there, and Python's debugger shows the kernel's variables.

The breakpoint becomes a `print_tko` of all variables of the function it is in. Its text is not a user's: it begins
with `MARK` and the number of the breakpoint, and comes back through the printer while the block waits. The variables
are then made NumPy arrays, and the debugger is started in a frame whose file and line are those of the breakpoint.
"""

from __future__ import annotations

import bdb
import re
import sys
from typing import TYPE_CHECKING, Any

from . import types as ty
from .builder import Value, quote
from .errors import Place
from .slots import Undefined
from .tensor import cast, tensor, unwrap

if TYPE_CHECKING:
    from .trace import Tracer

MARK = "\x02girih-breakpoint "

# By number: the place, the variables known at compile time, and those printed, with element type and shape.
KNOWN: list[tuple[Place, dict[str, Any], list[tuple[str, Any, tuple[int, ...]]]]] = []


def observe(tracer: Tracer) -> None:
    """Appends the breakpoint to the kernel."""
    builder = tracer.builder
    constants: dict[str, Any] = {}
    shown: list[tuple[str, Any, tuple[int, ...]]] = []
    values: list[Value] = []
    text = f"{MARK}{len(KNOWN)}\n"
    for name, value in tracer.env.items():
        value = unwrap(value)
        if isinstance(value, Undefined) or name.startswith("$"):
            continue
        if not isinstance(value, tensor):
            constants[name] = value
            continue
        shown.append((name, value.dtype, value.shape))
        if value.dtype.is_ptr():
            values.append(cast(value, ty.uint64).value)
            text += "%llu\n"
        elif value.dtype.is_floating():
            values.append(cast(value, ty.float64).value)
            text += "%a\n"
        else:
            wide = ty.int64 if value.dtype.kind == "int" else ty.uint64
            values.append(cast(value, wide).value)
            text += "%lld\n" if wide is ty.int64 else "%llu\n"
    pieces: list = [f"print_tko {quote(text)}"]
    for v in values:
        pieces += [", ", v]
    token = builder.before_write()
    if token is not None:
        pieces += [" token = ", token]
    if values:
        pieces.append(" : " + ", ".join(v.ir_type() for v in values))
    done = Value(None, hint="stopped")
    builder.op([*pieces, " -> token"], (done,), pure=False)
    builder.did_write(done)
    builder.stops.append(builder.place)
    KNOWN.append((builder.place, constants, shown))


def stop(block: tuple[int, int, int], text: str) -> None:
    """Starts the debugger for a block that reached a breakpoint; the block's earlier prints are written out first."""
    before, _, rest = text.partition(MARK)
    sys.stdout.write(before)
    number, *lines = rest.splitlines()
    place, constants, shown = KNOWN[int(number)]
    variables = dict(constants)
    for (name, dtype, shape), line in zip(shown, lines):
        variables[name] = value_of(dtype, shape, line)
    variables["__block__"] = tuple(block)
    # A frame of the kernel's file that is where the breakpoint is.
    code = compile("\n" * (place.line - 1) + "breakpoint()\nNone", place.file, "exec")
    code = code.replace(co_name=place.function or "kernel")
    try:
        exec(code, {"__name__": "__kernel__", "__builtins__": __builtins__}, variables)
    except bdb.BdbQuit:
        from .. import _library

        _library.extension().stop_launch()


def value_of(dtype: Any, shape: tuple[int, ...], text: str) -> Any:
    """The number or the NumPy array that a printed tile stands for."""
    import numpy

    words = re.findall(r"[^\s,\[\]]+", text)
    if dtype.is_ptr():
        numbers, target = [int(w) for w in words], numpy.uint64
    elif dtype.is_floating():
        numbers = [float.fromhex(w) for w in words]
        target = {"float16": numpy.float16, "float64": numpy.float64}.get(dtype.name, numpy.float32)
    else:
        numbers, target = [int(w) for w in words], numpy.bool_ if dtype.is_bool() else numpy.dtype(dtype.name)
    array = numpy.array(numbers, target).reshape(shape)
    return array if shape else array[()]
