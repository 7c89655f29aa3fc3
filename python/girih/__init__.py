"""Girih: tile programs on the processor.

A kernel is a Python function of tiles, decorated with ``@girih.jit`` and launched over a grid; the functions it calls
are here too, under the names Triton gives them. ``girih.cutile`` runs cuTile Python programs on a machine without a GPU.
"""

from girih import _library
from girih.frontend.errors import (
    CompilationError, GirihError, KernelAssertionError, KernelError, LaunchError, OutOfBoundsError,
    UndefinedValueError, UnsupportedError,
)  # fmt: skip
from girih.kernel import JITFunction, jit
from girih.language import *  # noqa: F403
from girih.language import __all__ as _language

_girih = _library.extension()

__version__ = _girih.version()

__all__ = [
    "CompilationError",
    "GirihError",
    "JITFunction",
    "KernelAssertionError",
    "KernelError",
    "LaunchError",
    "OutOfBoundsError",
    "UndefinedValueError",
    "UnsupportedError",
    "__version__",
    "jit",
    *_language,
]
