"""Errors of kernels, in their author's terms.

Every error names the file, the line and the column of the kernel and shows the line with a mark under the place:

    softmax.py:12:8: `x` is a tile float32[64] before the loop and float32[128] after its body
       12 |     x = girih.cat(x, y)
          |         ^~~~~~~~~~~~~~~
      in `helper`, called at softmax.py:30:12
"""

from __future__ import annotations

import dataclasses
import linecache
import os
import re
import sys
import types
import warnings
from collections.abc import Sequence

from girih import _library

_girih = _library.extension()

# Python's words for operations of Tile IR.
WORDS = {
    "load_ptr_tko": "load", "load_view_tko": "load", "store_ptr_tko": "store", "store_view_tko": "store", "divi": "//", "remi": "%",
    "atomic_rmw_tko": "atomic", "atomic_cas_tko": "atomic_cas", "mmaf": "dot", "mmai": "dot",
}  # fmt: skip

# Messages show this number of calls at either end of a longer chain.
CALLS_SHOWN = 3


class GirihError(Exception):
    """The base of everything this package raises. Messages show only the ends of the user's long words."""

    def __init__(self, *args: object):
        super().__init__(*(_girih.shorten(a) if isinstance(a, str) else a for a in args))


@dataclasses.dataclass(frozen=True)
class Place:
    """A stretch of a source line; `parent` is where the function it is in was called, if it was inlined."""

    file: str
    line: int
    column: int
    end_column: int = 0
    function: str = ""
    parent: Place | None = None

    def show(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"


class Code:
    """Girih's names of the kinds of errors in a kernel's Python; `docs/diagnostics.md` says what each means."""

    KERNEL = "E0115"
    UNSUPPORTED = "E0116"
    SHAPE = "E0117"
    NOT_CONSTANT = "E0118"
    UNKNOWN = "E0119"
    CALL = "E0120"
    OUTSIDE = "E0121"
    FLOW = "E0122"
    CONDITION = "E0123"
    ADDRESS = "E0124"
    STATIC = "E0125"
    INTEGER = "E0126"
    NO_SOURCE = "E0127"
    OPERAND = "E0128"
    POWER_OF_TWO = "E0202"
    TOO_LARGE = "E0203"
    ELEMENT_TYPE = "E0204"
    CONSTANT = "E0213"
    PRODUCT = "E0214"
    RECURSION = "E0219"


class CompilationError(GirihError):
    """A kernel that cannot be compiled as it is written.

    Attributes:
        reason: one sentence, without the place.
        place: where in the kernel, or `None`.
        help: what to write instead, or `None`.
        code: Girih's name of the kind of error, such as `"E0117"` where shapes do not match.
    """

    def __init__(self, reason: str, place: Place | None = None, help: str | None = None, code: str | None = None):
        self.reason = reason
        self.place = place
        self.help = help
        self.code = code or Code.KERNEL
        super().__init__(self._text())

    def _text(self) -> str:
        if self.place is None:
            return self.reason + (f"\n  help: {self.help}" if self.help else "")
        place = self.place
        lines = [f"{place.show()}: {self.reason}"]
        source = linecache.getline(place.file, place.line).rstrip("\n")
        if source:
            number = f"{place.line:5}"
            width = max(1, min(place.end_column or place.column + 1, len(source)) - place.column)
            lines.append(f"{number} | {source}")
            before = "".join("\t" if c == "\t" else " " for c in source[: place.column].ljust(place.column))
            lines.append(f"{' ' * len(number)} | {before}^{'~' * (width - 1)}")
        calls = []
        frame = place
        while frame.parent is not None:
            calls.append(f"  in `{frame.function}`, called at {frame.parent.show()}")
            frame = frame.parent
        if len(calls) > 2 * CALLS_SHOWN:
            calls[CALLS_SHOWN:-CALLS_SHOWN] = [f"  ... {len(calls) - 2 * CALLS_SHOWN} calls more"]
        lines += calls
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class UnsupportedError(CompilationError):
    """A Python construct that kernels do not support."""

    def __init__(self, reason: str, place: Place | None = None, help: str | None = None, code: str | None = None):
        super().__init__(reason, place, help, code or Code.UNSUPPORTED)


@dataclasses.dataclass(frozen=True)
class Frame:
    """A place in a kernel: where a function is called, or, for the last frame, where it stopped.

    Lines and columns count from 1; an unknown attribute is `None`.
    """

    filename: str | None = None
    lineno: int | None = None
    column: int | None = None
    function: str | None = None


class KernelError(GirihError, RuntimeError):
    """A kernel that stopped while it ran.

    Attributes:
        code: Girih's name of the error, such as `"E0601"`.
        frames: where in the kernel: the calls that were inlined, outermost first, and last where it stopped.
        filename, lineno, column, function: those of the last frame, or `None`.
        place: the same as a `Place`, or `None`.
        block: the coordinates of the block, or `None`.
    """

    def __init__(
        self,
        message: str = "",
        code: str | None = None,
        frames: Sequence[Frame] = (),
        block: Sequence[int] | None = None,
    ):
        super().__init__(message)
        self.code = code
        self.block = block
        self.frames = tuple(frames)
        innermost = self.frames[-1] if self.frames else Frame()
        self.filename = innermost.filename
        self.lineno = innermost.lineno
        self.column = innermost.column
        self.function = innermost.function

    @property
    def place(self) -> Place | None:
        return place_of(self.frames)


class KernelAssertionError(KernelError, AssertionError):
    """An assertion of the kernel failed."""


class OutOfBoundsError(KernelError, IndexError):
    """An access outside of every array of the launch, or an index outside of a tile."""


class UndefinedValueError(KernelError, ValueError):
    """A value that is left undefined, such as a quotient by zero, was stored, printed or used as an address."""


class AssumptionError(KernelError, ValueError):
    """Something that the kernel promises, such as a multiple of 16, is false."""


class KernelValueError(KernelError, ValueError):
    """The step of a loop is not positive, or a print format does not fit its values."""


class KernelWarning(RuntimeWarning):
    """A finding of the evaluator in a kernel that ran to its end, such as a race between blocks.

    Attributes:
        code: Girih's name of the warning, such as `"W0902"`.
        frames: where in the kernel, as in `KernelError`.
    """

    def __init__(self, message: str = "", code: str | None = None, frames: Sequence[Frame] = ()):
        super().__init__(message)
        self.code = code
        self.frames = tuple(frames)


class LaunchError(GirihError, ValueError):
    """Arguments or a grid that the kernel cannot be launched with; `code` is Girih's name of the error, or `None`."""

    def __init__(self, message: str = "", code: str | None = None):
        super().__init__(message)
        self.code = code


BY_CODE: dict[str | None, type[KernelError]] = {
    "E0601": KernelAssertionError,
    "E0602": KernelValueError,
    "E0603": OutOfBoundsError,
    "E0604": UndefinedValueError,
    "E0605": OutOfBoundsError,
    "E0606": AssumptionError,
    "E0608": KernelValueError,
}

for _error in {KernelError, KernelWarning, *BY_CODE.values()}:
    # Where programs find them.
    _error.__module__ = "girih"


def place_of(frames: Sequence[Frame]) -> Place | None:
    """The innermost of frames that are given outermost first."""
    place = None
    for f in frames:
        place = Place(f.filename or "", f.lineno or 0, max(0, (f.column or 0) - 1), 0, f.function or "", place)
    return place


def frames_of(place: Place | None) -> list[tuple[str, int, int, str]]:
    """A place as (file, line, column, function), innermost first."""
    frames = []
    while place is not None:
        frames.append((place.file, place.line, place.column + 1, place.function))
        place = place.parent
    return frames


def outermost_first(frames: list) -> list[Frame]:
    """Frames that are given as (file, line, column, function), innermost first."""
    return [Frame(file, line, column or None, function) for file, line, column, function in reversed(frames)]


def kernel_warning(code: str, message: str, notes: list[str], help: str | None, frames: list) -> None:
    """Warns of a launch's findings, at the user's line that launched it."""
    chain = outermost_first(frames)
    text = CompilationError("\n  ".join([f"{in_words(message)} [{code}]", *notes]), place_of(chain), help).args[0]
    # The line is the user's, not one of this package or of the library that launches for them.
    loaded = (getattr(sys.modules.get(name), "__file__", None) for name in ("triton", "cuda.tile"))
    inside = (PACKAGE, *(os.path.dirname(file) + os.sep for file in loaded if file))
    caller = sys._getframe(1)
    while caller.f_back is not None and caller.f_code.co_filename.startswith(inside):
        caller = caller.f_back
    warnings.warn_explicit(
        KernelWarning(text, code, chain),
        None,
        caller.f_code.co_filename,
        caller.f_lineno,
        caller.f_globals.get("__name__"),
        caller.f_globals.setdefault("__warningregistry__", {}),
    )


# The path that files of this package begin with.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def hide_frames(error: BaseException) -> None:
    """Leaves this package's own frames out of the traceback of an error that is the user's.

    Frames of the user's functions, such as that of a grid, stay. An exception that is not meant for the user, which shows
    a bug of Girih, keeps all frames, and so does every one with `GIRIH_TRACEBACK=full`.
    """
    if os.environ.get("GIRIH_TRACEBACK") == "full":
        return
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append(at)
        at = at.tb_next
    ours = [f.tb_frame.f_code.co_filename.startswith(PACKAGE) for f in frames]
    # The extension raises for wrong arguments right below the functions that launch; deeper, Girih's own Python has failed.
    deeper = (f for f, hidden in zip(frames, ours) if hidden and f.tb_frame.f_code.co_name not in LAUNCHING)
    if not isinstance(error, GirihError) and any(deeper):
        return
    kept = None
    for frame, hidden in reversed([*zip(frames, ours)]):
        if not hidden:
            kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    error.__traceback__ = kept
    if isinstance(error, GirihError):
        error.__suppress_context__ = True
        error.__cause__ = None


# Functions that launch: the extension below them, and they themselves, raise errors that are meant for the user.
LAUNCHING = ("run", "_launch", "_kernel", "describe_array", "describe_torch", "describe_view", "dtype_name", "_key", "named")


# How the messages of assertions about indices of tiles begin.
OUTSIDE = ("an index of gather lies outside", "an integer of histogram lies outside")


def in_words(message: str) -> str:
    """A message of the compiler in the words of Python."""
    return re.sub(r"`(\w+)`", lambda m: f"`{WORDS.get(m[1], m[1])}`", message)


def kernel_error(code: str | None, message: str, frames: list, block: list[int] | None) -> Exception:
    """The exception for a failure of a launch or of the compiler.

    `frames` are (file, line, column, function), innermost first.
    """
    chain, message = outermost_first(frames), in_words(message)
    place = place_of(chain)
    text = CompilationError(message + (f" (block {', '.join(map(str, block))})" if block else ""), place).args[0]
    if code == "E0601" and any(words in message for words in OUTSIDE):
        code = "E0605"
    if code is None or code.startswith("E06"):
        return BY_CODE.get(code, KernelError)(text, code, chain, tuple(block) if block else None)
    if code.startswith("E04"):
        return LaunchError(text, code)
    if code.startswith("E05"):
        return GirihError(text)
    return CompilationError(message, place, code=code)
