"""Offers a stand-in for CuPy to programs that import it where it is not installed."""

import importlib.abc
import importlib.util
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "cupy"


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "cupy":
            return None
        return importlib.util.spec_from_file_location(
            name, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
        )


_finder = _Finder()


def offer():
    """Asked last, after the places where a real CuPy would be."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
