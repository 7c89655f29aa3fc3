"""The module `extra`, under Triton's names: `tl.extra.libdevice`, `tl.extra.cuda.libdevice`."""

from types import SimpleNamespace

from . import libdevice

cuda = SimpleNamespace(libdevice=libdevice)

__all__ = ["cuda", "libdevice"]
