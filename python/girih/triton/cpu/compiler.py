"""The compiler of the target ``cpu``."""

from girih.triton import compiler


class CpuBackend(compiler.GirihBackend):
    """Compiles what is asked of the target ``cpu``."""

    targets = ("cpu",)
