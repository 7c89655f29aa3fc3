"""Where the compiled parts of the package are.

In an installed package they are beside this file. In a checkout (``PYTHONPATH=python``, or an editable install) they
are the latest build of ``cargo build --release`` in ``target/release``. ``GIRIH_LIBRARY_DIR`` names a folder that goes
first.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_HERE = os.path.dirname(os.path.realpath(__file__))
# Installed files, and cargo's names of the files that become them.
_BUILT_AS = {"libcuda.so.1": "libcuda.so", "tileiras": "tileiras", "girih": "girih"}


def _checkout():
    """``target/release`` of the checkout that this file is in, if it is in one."""
    root = os.path.dirname(os.path.dirname(_HERE))
    if not os.path.isfile(os.path.join(root, "crates/girih-py/Cargo.toml")):
        return None
    return os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(root, "target"), "release")


def _folders():
    """Where compiled files may be besides the package."""
    if folder := os.environ.get("GIRIH_LIBRARY_DIR"):
        yield folder
    if checkout := _checkout():
        yield checkout


def find(name):
    """The path of a compiled file, ``libcuda.so.1`` or ``tileiras``; a FileNotFoundError says what to do."""
    from pathlib import Path

    tried = [Path(folder) / known for folder in _folders() for known in (name, _BUILT_AS[name])]
    tried.append(Path(_HERE) / "bin" / name)
    for path in tried:
        if path.is_file():
            return path
    places = ", ".join(str(path) for path in tried)
    raise FileNotFoundError(
        f"girih: {name} is missing (looked for {places}); `pip install .` in a checkout of girih builds it, "
        "or GIRIH_LIBRARY_DIR names its folder"
    )


def extension():
    """The module ``girih._girih``."""
    if loaded := sys.modules.get("girih._girih"):
        return loaded
    for folder in _folders():
        path = os.path.join(folder, "lib_girih.so")
        if os.path.isfile(path):
            loader = importlib.machinery.ExtensionFileLoader("girih._girih", path)
            spec = importlib.machinery.ModuleSpec("girih._girih", loader, origin=path)
            module = loader.create_module(spec)
            module.__spec__ = spec
            sys.modules["girih._girih"] = module
            loader.exec_module(module)
            return module
    try:
        from girih import _girih
    except ImportError as error:
        raise ImportError(
            f"girih: the compiled module girih._girih is missing ({error}); `pip install .` in a checkout of girih "
            "builds it (for use in the checkout itself, `cargo build --release -p girih-py`)"
        ) from None
    return _girih
