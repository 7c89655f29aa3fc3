"""Traces each kernel of a script for arguments that it may have, and reports errors that all of them lead to.

A kernel is traced for its likeliest arguments; where that fails, with one argument changed, then with two. A change that moves
the error further down in the kernel is kept, and the rest is tried again. The last failure is the error; a kernel that compiles
once is right.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import linecache
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from .. import _library
from ..frontend.errors import CompilationError, GirihError, Place, kernel_error
from ..frontend.seen import WATCH, Seen, Watch
from ..kernel import JITFunction
from ..language.messages import STATIC_ASSERTION
from .arguments import callee, launches_of, looks
from .definitions import Defined, Definitions, Unknowable, of_tree

_girih = _library.extension()

# No kernel is tried longer, or with more arguments.
SECONDS, TRIES = 2.0, 400


@dataclasses.dataclass(frozen=True)
class Problem:
    """One message; lines and columns count from 1, `end_column` is behind the marked text, or 0."""

    severity: str
    message: str
    file: str
    line: int
    column: int = 1
    end_column: int = 0
    help: str | None = None
    #: Where the function that the place is in was called, innermost first: file, line, column, function.
    calls: tuple[tuple[str, int, int, str], ...] = ()
    #: Girih's name of the error.
    code: str = "E0115"

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel of a script, and what the tracer saw of it for the arguments that fit best.

    Attributes:
        line, end_line: its text, from its decorators to its end.
        names: see `Seen`; those of functions that it calls too.
        guessed: parameters whose values no launch of the script gives.
    """

    name: str
    line: int
    end_line: int
    names: list[Seen]
    guessed: list[str]

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def check_file(path: str) -> list[Problem]:
    """The problems of a file's kernels; an `OSError` for a file that cannot be read."""
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except UnicodeDecodeError as error:
        return [Problem("error", f"the file is not UTF-8 text: {error.reason}", path, 1, code="E0101")]
    return check_text(text, path)


def check_text(text: str, path: str) -> list[Problem]:
    """The problems of a text that stands, or will stand, in a file."""
    return look_at(text, path)[0]


def look_at(text: str, path: str) -> tuple[list[Problem], list[Kernel]]:
    """The problems of a text, and for each of its kernels the names that the tracer saw."""
    # Kernels are read from the lines that Python knows of their file; None as time says that these are not the file's.
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    try:
        tree = ast.parse(text, path)
    except SyntaxError as error:
        column, end = error.offset or 1, error.end_offset or 0
        return [Problem("error", error.msg, path, error.lineno or 1, column, end, code="E0101")], []
    except (ValueError, RecursionError, MemoryError) as error:
        return [Problem("error", f"Python cannot read the file: {error}", path, 1, code="E0101")], []
    definitions = of_tree(tree, path)
    problems = [Problem("error", w.message, path, w.node.lineno, w.node.col_offset + 1) for w in definitions.wrong]
    launches = {id(d.within): launches_of(d.within) for d in definitions.kernels}
    called = called_by_others(definitions)
    kernels = []
    for defined in definitions.kernels:
        name = defined.kernel.fn.__name__
        watch = Watch(path)
        # A function of other kernels has tiles for arguments, and shows where these call it.
        launched = launches[id(defined.within)].get(name, [])
        if launched or not (defined.kernel in called or returns_a_value(defined)):
            problems += check_kernel(defined, launched, watch)
        if node := tree_of(defined):
            line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            names = [watch.places[at] for at in sorted(watch.places)]
            kernels.append(Kernel(name, line, node.end_lineno or line, names, defined.guessed))
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda p: (p.file != path, p.line, p.column)), kernels


def called_by_others(definitions: Definitions) -> set:
    found = set()
    for defined in definitions.kernels:
        tree = tree_of(defined)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Call) and (other := callee(node.func, defined.kernel)):
                found.add(other)
    return found


def tree_of(defined: Defined) -> ast.FunctionDef | None:
    from ..frontend import source

    try:
        return source.read(defined.kernel.fn).node
    except CompilationError:
        return None


def returns_a_value(defined: Defined) -> bool:
    from ..frontend import source

    tree = tree_of(defined)
    return tree is not None and any(isinstance(n, ast.Return) and n.value is not None for n in source.walk(tree.body))


def check_kernel(defined: Defined, launches: list[ast.Call], watch: Watch) -> list[Problem]:
    """The problems of a kernel; `watch` collects the names of the attempt that got furthest."""
    choices = looks(defined, launches)
    best = {name: tried[0] for name, tried in choices.items()}
    node = tree_of(defined)
    line = node.lineno if node else defined.kernel.fn.__code__.co_firstlineno
    try:
        error = attempt(defined, best, watch)
        end, tries = time.monotonic() + SECONDS, 0
        while error:
            for change in changes(choices, best):
                tries += 1
                if tries > TRIES or time.monotonic() > end:
                    return [report(error, defined, best, choices, line)]
                seen = Watch(watch.file)
                other = attempt(defined, {**best, **change}, seen)
                if other is None or depth(other, defined) > depth(error, defined):
                    best, error = {**best, **change}, other
                    watch.places = seen.places
                    break
            else:
                return [report(error, defined, best, choices, line)]
        return []
    except Unknowable as unknown:
        if defined.scope.load(str(unknown)):
            return check_kernel(defined, launches, watch)
        text = f"`{defined.kernel.fn.__name__}` is not checked: only a run of the script knows `{unknown}`"
        return [Problem("note", text, defined.kernel.fn.__code__.co_filename, line, code="W0909")]


def changes(choices: dict[str, list], best: dict[str, tuple]) -> Iterator[dict[str, tuple]]:
    """Other looks of one parameter, then of two."""
    single = [{name: look} for name, tried in choices.items() for look in tried if look is not best[name]]
    yield from single
    for a, b in itertools.combinations(single, 2):
        if a.keys() != b.keys():
            yield a | b


def attempt(defined: Defined, arguments: dict[str, tuple], watch: Watch | None = None) -> Exception | None:
    """The error of the kernel for these arguments, or None."""
    if not isinstance(defined.kernel, JITFunction):
        return defined.kernel.attempt(arguments)
    token = WATCH.set(watch)
    try:
        builder = defined.kernel._trace(arguments)
        _girih.Kernel(builder.text(), builder.name, {"knobs": []}, kernel_error)
    except Unknowable:
        raise
    except GirihError as error:
        return error
    finally:
        WATCH.reset(token)
    return None


def report(error: Exception, defined: Defined, best: dict, choices: dict, line: int) -> Problem:
    """The error, unless it is about something that only a run knows."""

    def note(why: str) -> Problem:
        text = f"`{defined.kernel.fn.__name__}` is not checked: {why}"
        return Problem("note", text, defined.kernel.fn.__code__.co_filename, line, code="W0909")

    if STATIC_ASSERTION in str(error):
        return note("its static assertions hold for none of the arguments that were tried")
    for name in defined.guessed:
        others = [attempt(defined, {**best, name: look}) for look in choices[name]]
        if any(e and kind_of(e) != kind_of(error) and place_of(e) == place_of(error) for e in others):
            return note(f"it depends on the constant `{name}`, which only a run of the script knows")
    return problem(error, defined, line)


def kind_of(error: Exception) -> str:
    """The error's message without its numbers."""
    return re.sub(r"\d+", "", getattr(error, "reason", None) or str(error))


def place_of(error: Exception) -> tuple[int, int] | None:
    place = getattr(error, "place", None)
    return (place.line, place.column) if place is not None else None


def outermost(place: Place) -> Place:
    while place.parent is not None:
        place = place.parent
    return place


def depth(error: Exception, defined: Defined) -> int:
    """How far the kernel was read: the line of the kernel itself."""
    if getattr(error, "whole", False):
        return sys.maxsize
    place = getattr(error, "place", None)
    return outermost(place).line if place is not None else 0


def problem(error: Exception, defined: Defined, line: int) -> Problem:
    place = getattr(error, "place", None)
    reason, help = getattr(error, "reason", None) or str(error), getattr(error, "help", None)
    code = getattr(error, "code", None) or "E0115"
    if place is None:
        return Problem("error", reason, defined.kernel.fn.__code__.co_filename, line, help=help, code=code)
    calls, at = [], place
    while at.parent is not None:
        calls.append((at.parent.file, at.parent.line, at.parent.column + 1, at.function))
        at = at.parent
    end = place.end_column + 1 if place.end_column else 0
    return Problem("error", reason, place.file, place.line, place.column + 1, end, help, tuple(calls), code)
