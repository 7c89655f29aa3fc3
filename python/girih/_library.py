"""Where the compiled parts of the package are.

In an installed package they stand beside this file. In a checkout (``PYTHONPATH=python``, or an editable install) they
are what ``cargo build --release`` left last in ``target/release``. ``GIRIH_LIBRARY_DIR`` names a folder that goes first.
"""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# An installed file, and the name cargo gives to what becomes it.
_BUILT_AS = {"libcuda.so.1": "libcuda.so", "tileiras": "tileiras", "girih": "girih"}


def _checkout():
    """``target/release`` of the checkout this file stands in, if it does."""
    root = _HERE.parents[1]
    if not (root / "crates/girih-py/Cargo.toml").is_file():
        return None
    return Path(os.environ.get("CARGO_TARGET_DIR") or root / "target") / "release"


def _folders():
    """Where compiled files may be besides the package."""
    if folder := os.environ.get("GIRIH_LIBRARY_DIR"):
        yield Path(folder)
    if checkout := _checkout():
        yield checkout


def find(name):
    """The path of a compiled file, ``libcuda.so.1`` or ``tileiras``; a FileNotFoundError says what to do."""
    tried = [folder / known for folder in _folders() for known in (name, _BUILT_AS[name])]
    tried.append(_HERE / "bin" / name)
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
    for folder in _folders():
        path = folder / "lib_girih.so"
        if path.is_file():
            loader = importlib.machinery.ExtensionFileLoader("girih._girih", str(path))
            spec = importlib.util.spec_from_file_location("girih._girih", path, loader=loader)
            module = importlib.util.module_from_spec(spec)
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
