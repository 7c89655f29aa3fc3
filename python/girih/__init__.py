"""Girih: tile programs on the processor.

A kernel is a Python function of tiles, decorated with ``@girih.jit`` and launched over a grid; the functions it calls
are here too, under the names Triton gives them. ``girih.cutile`` runs cuTile Python programs on a machine without a GPU.

The command ``girih`` does these to files::

    text = girih.disassemble(open("kernel.tileirbc", "rb").read())
    bytecode = girih.assemble(text, "13.3")
    warnings = girih.check(text)            # a wrong program raises girih.ProgramError
"""

from girih import _library
from girih._diagnostics import Diagnostic, ProgramError
from girih.frontend.errors import (
    AssumptionError, CompilationError, GirihError, KernelAssertionError, KernelError, KernelValueError, KernelWarning,
    LaunchError, OutOfBoundsError, UndefinedValueError, UnsupportedError,
)  # fmt: skip
from girih.autotune import Config, autotune, heuristics
from girih.kernel import JITFunction, jit
from girih.language import *  # noqa: F403
from girih.language import __all__ as _language

TYPE_CHECKING = False
if TYPE_CHECKING:
    from girih.model import Model

_girih = _library.extension()

__version__ = _girih.version()
assemble = _girih.assemble
check = _girih.check
disassemble = _girih.disassemble

__all__ = [
    "AssumptionError",
    "CompilationError",
    "Config",
    "Diagnostic",
    "GirihError",
    "JITFunction",
    "KernelAssertionError",
    "KernelError",
    "KernelValueError",
    "KernelWarning",
    "LaunchError",
    "Model",
    "OutOfBoundsError",
    "ProgramError",
    "UndefinedValueError",
    "UnsupportedError",
    "__version__",
    "assemble",
    "autotune",
    "check",
    "disassemble",
    "heuristics",
    "jit",
    *_language,
]


def __getattr__(name):
    # It needs NumPy, whose import takes longer than a launch.
    if name == "Model":
        from girih.model import Model

        globals()["Model"] = Model
        return Model
    if name == "testing":
        import girih.testing

        return girih.testing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
