"""Unchanged cuTile Python programs on the processor.

    python -m girih.cutile SCRIPT.py ARGS...       # a script
    pytest -p girih.cutile                         # a test suite
    girih.cutile.install()                         # a program that wants it, before it imports cuda.tile

Arrays are NumPy arrays, PyTorch tensors (where a program says ``device="cuda"`` it gets the CPU's memory), or CuPy
arrays, for which a stand-in over NumPy serves where CuPy is not installed.
"""

from girih.cutile.driver import RealDriver, options
from girih.frontend.errors import (
    AssumptionError,
    KernelAssertionError,
    KernelError,
    KernelValueError,
    KernelWarning,
    OutOfBoundsError,
    UndefinedValueError,
)
from girih.cutile.hosting import UnsupportedVersion, install

__all__ = [
    "AssumptionError",
    "KernelAssertionError",
    "KernelError",
    "KernelValueError",
    "KernelWarning",
    "OutOfBoundsError",
    "RealDriver",
    "UndefinedValueError",
    "UnsupportedVersion",
    "install",
    "options",
]

# `pytest -p girih.cutile` reads this.
pytest_plugins = ["girih.cutile.plugin"]
