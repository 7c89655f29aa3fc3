"""Girih: tile programs on the processor.

``girih.cutile`` runs cuTile Python programs on a machine without a GPU; this module holds what the command ``girih``
does to files, as functions.
"""

from girih import _library

_girih = _library.extension()

__version__ = _girih.version()

__all__ = ["__version__"]
