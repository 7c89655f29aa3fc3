"""What a kernel that goes wrong raises from ``ct.launch``.

Each of them is a `KernelError` and also the exception Python itself would raise, and its message ends like a traceback:
the calls that were inlined, outermost first, and the line of the kernel with a marker under the place.
"""

import linecache
from unicodedata import east_asian_width

from girih.frontend.errors import GirihError

__all__ = [
    "AssumptionError",
    "KernelAssertionError",
    "KernelError",
    "KernelValueError",
    "OutOfBoundsError",
    "UndefinedValueError",
]


class KernelError(GirihError, RuntimeError):
    """A kernel stopped.

    ``code`` is Girih's name of the error (``"E0601"``), ``filename``, ``lineno`` and ``column`` (from 1) the place in
    the kernel, ``function`` the Python function it stands in, ``block`` the index of the block that stopped; what is
    not known is ``None``.
    """

    def __init__(self, message, code=None, frames=(), block=None):
        super().__init__(message)
        self.code = code
        self.block = block
        self.frames = tuple(frames)
        innermost = self.frames[-1] if self.frames else Frame()
        self.filename = innermost.filename
        self.lineno = innermost.lineno
        self.column = innermost.column
        self.function = innermost.function


class KernelAssertionError(KernelError, AssertionError):
    """``ct.assert_`` failed."""


class OutOfBoundsError(KernelError, IndexError):
    """An access lies outside every array of the launch, or an index outside a tile."""


class UndefinedValueError(KernelError, ValueError):
    """A value that the language leaves undefined was stored, printed or used as an address."""


class AssumptionError(KernelError, ValueError):
    """Something the program promised, such as ``ct.assume_divisible_by``, is not so."""


class KernelValueError(KernelError, ValueError):
    """A loop's step is not positive, or a print format does not fit its values."""


BY_CODE = {
    "E0601": KernelAssertionError,
    "E0602": KernelValueError,
    "E0603": OutOfBoundsError,
    "E0604": UndefinedValueError,
    "E0605": OutOfBoundsError,
    "E0606": AssumptionError,
    "E0608": KernelValueError,
}


for _error in {KernelError, *BY_CODE.values()}:
    # Where a program finds them.
    _error.__module__ = "girih.cutile"


class Frame:
    """A place in a kernel: where it is called, or, for the innermost, where it stopped."""

    def __init__(self, filename=None, lineno=None, column=None, function=None):
        self.filename = filename
        self.lineno = lineno
        self.column = column
        self.function = function

    def __repr__(self):
        return f"<{self.filename}:{self.lineno}:{self.column} in {self.function}>"


def _width(text):
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _frame(frame):
    place = f'  File "{frame.filename}", line {frame.lineno}'
    if frame.function:
        place += f", in {frame.function}"
    line = linecache.getline(frame.filename, frame.lineno).rstrip()
    if not line:
        return place
    text = line.lstrip()
    place += f"\n    {text}"
    if frame.column:
        # Columns count bytes, as Python's do.
        before = line.encode()[: frame.column - 1].decode(errors="ignore")
        indent = _width(before) - _width(line[: len(line) - len(text)])
        if 0 <= indent < _width(text):
            place += "\n    " + " " * indent + "^"
    return place


def describe(message, frames, block=None):
    """The message of an exception: what, which block, and the lines."""
    text = message
    if block is not None and any(block):
        text += f" (block {', '.join(str(b) for b in block)})"
    known = [f for f in frames if f.filename and f.lineno]
    if known:
        text += "\nKernel source (most recent call last):\n" + "\n".join(_frame(f) for f in known)
    return text
