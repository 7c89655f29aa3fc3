"""The errors of ``ct.launch`` for a kernel that goes wrong.

The exceptions are those of all kernels, `girih.KernelError` and its kinds, and the message ends like a traceback: the
calls that were inlined, outermost first, and the line of the kernel with a marker under the place.
"""

import linecache
from unicodedata import east_asian_width


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
    """The message of an exception: the error, the block, and the lines."""
    text = message
    if block is not None and any(block):
        text += f" (block {', '.join(str(b) for b in block)})"
    known = [f for f in frames if f.filename and f.lineno]
    if known:
        text += "\nKernel source (most recent call last):\n" + "\n".join(_frame(f) for f in known)
    return text
