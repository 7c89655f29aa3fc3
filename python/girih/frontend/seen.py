"""The types of the names in a kernel's text, as the tracer comes across them; editors show them.

In: each name that the tracer assigns or reads, with its value. Out: a `Seen` for each place of the text.

    i = tl.arange(0, BLOCK)      `i` is int32[64], `tl.arange` a function, `BLOCK` the constant 64

A place that is traced several times, in an unrolled loop or in a function that several kernels call, keeps the different
types in order. Nothing is recorded unless `WATCH` is set.
"""

from __future__ import annotations

import ast
import contextvars
import dataclasses
import inspect
import re
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .slots import Undefined
from .tensor import describe, is_number, tensor, unwrap

if TYPE_CHECKING:
    from .source import Source

# A name is shown with this number of types at most.
TYPES = 3


@dataclasses.dataclass
class Seen:
    """A name at a place; the line and the columns count from 1, and `end_column` is behind the name.

    Attributes:
        kind: "tile" for a value of run time, "address", "constant", or "function".
        types: what the name was each time: `float32[64]`, `64`, or a signature.
        role: "assigned", "parameter" or "read".
        doc: of a function.
    """

    line: int
    column: int
    end_column: int
    name: str
    kind: str
    types: list[str]
    role: str
    doc: str | None = None


class Watch:
    """Collects the names of one file."""

    def __init__(self, file: str):
        self.file = file
        self.places: dict[tuple[int, int], Seen] = {}

    def name(self, source: Source, node: ast.expr | ast.arg, name: str, value: Any, role: str) -> None:
        if source.file != self.file or not hasattr(node, "lineno") or name.startswith("$"):
            return
        told = tell(unwrap(value))
        if told is None:
            return
        kind, text, doc = told
        start = source.column(node.lineno, node.col_offset)
        end_line = node.end_lineno or node.lineno
        end = source.column(end_line, node.end_col_offset or 0)
        # A name ends its node: `tl.arange` is an attribute, `BLOCK: tl.constexpr` a parameter.
        if isinstance(node, ast.arg) or end_line != node.lineno:
            end = start + len(name)
        elif isinstance(node, ast.Attribute):
            start = max(start, end - len(name))
        known = self.places.get((node.lineno, start))
        if known is None or known.kind != kind:
            self.places[node.lineno, start] = Seen(node.lineno, start + 1, end + 1, name, kind, [text], role, doc)
        elif text not in known.types and len(known.types) < TYPES:
            known.types.append(text)

    def parameters(self, source: Source, node: ast.FunctionDef, env: dict[str, Any]) -> None:
        for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if a.arg in env:
                self.name(source, a, a.arg, env[a.arg], "parameter")


def tell(value: Any) -> tuple[str, str, str | None] | None:
    """The kind of a value, its type in words, and the text about a function; None for a value that says nothing."""
    if isinstance(value, (Undefined, ModuleType, type)):
        return None
    if isinstance(value, tensor):
        return ("address" if value.dtype.is_ptr() else "tile"), describe(value), None
    if is_number(value) or isinstance(value, str) or value is None:
        text = repr(value)
        return "constant", text if len(text) <= 40 else text[:37] + "...", None
    function = getattr(value, "__girih_function__", None) or getattr(value, "__wrapped__", None) or value
    if isinstance(function, FunctionType):
        try:
            signature = re.sub(r"\b(\w+\.)+constexpr\b", "constexpr", str(inspect.signature(function)))
        except (TypeError, ValueError):
            signature = "(...)"
        return "function", f"{function.__name__}{signature}", inspect.getdoc(function)
    if isinstance(value, (tuple, list)):
        return ("tile" if any(isinstance(unwrap(v), tensor) for v in value) else "constant"), tuple_text(value), None
    return "constant", describe(value), None


def tuple_text(values: tuple | list) -> str:
    parts = [told[1] if (told := tell(unwrap(v))) else "..." for v in values[:4]]
    return f"({', '.join(parts)}{', ...' if len(values) > 4 else ''})"


WATCH: contextvars.ContextVar[Watch | None] = contextvars.ContextVar("WATCH", default=None)
