"""Unchanged Triton programs, on the processor and on the simulator of a GPU.

    python -m girih.triton SCRIPT.py ARGS...       # a script that says device="cuda"
    pytest -p girih.triton                         # a test suite
    python SCRIPT.py                               # one whose tensors are the CPU's

Girih is a backend of Triton's: Triton's own front end compiles a kernel as far as TTIR, which Girih reads. In an installed
package Triton finds it by itself; in a checkout ``import girih.triton`` offers it. It is active where there is no GPU's
driver, and where ``GIRIH_TRITON=1`` or ``TRITON_DEFAULT_BACKEND=girih`` asks for it.
"""

from girih.frontend.errors import (
    AssumptionError,
    CompilationError,
    KernelAssertionError,
    KernelError,
    KernelValueError,
    KernelWarning,
    LaunchError,
    OutOfBoundsError,
    UndefinedValueError,
)
from girih.triton.hosting import install, offer

__all__ = [
    "Array",
    "AssumptionError",
    "CompilationError",
    "KernelAssertionError",
    "KernelError",
    "KernelValueError",
    "KernelWarning",
    "LaunchError",
    "OutOfBoundsError",
    "UndefinedValueError",
    "install",
    "offer",
]

offer()


def __getattr__(name):
    # It brings NumPy, which Triton's programs need not have.
    if name == "Array":
        from girih.triton.arrays import Array

        return Array
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# `pytest -p girih.triton` reads this.
pytest_plugins = ["girih.triton.plugin"]
