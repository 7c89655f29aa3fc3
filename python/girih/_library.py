"""Where the compiled parts of the package are.

In an installed package they stand beside this file. In a checkout (``PYTHONPATH=python``) they are what ``cargo build
--release`` left in ``target/release``. ``GIRIH_LIBRARY_DIR`` names another folder and goes first.
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
    root = _HERE.parent.parent
    if not (root / "crates" / "girih-py" / "Cargo.toml").is_file():
        return None
    return Path(os.environ.get("CARGO_TARGET_DIR") or root / "target") / "release"


def find(name):
    """The path of a compiled file, ``libcuda.so.1`` or ``tileiras``; a FileNotFoundError says what to do."""
    built = _BUILT_AS[name]
    tried = []
    if folder := os.environ.get("GIRIH_LIBRARY_DIR"):
        tried += [Path(folder) / name, Path(folder) / built]
    tried.append(_HERE / "bin" / name)
    if checkout := _checkout():
        tried += [checkout / name, checkout / built]
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
    try:
        from girih import _girih

        return _girih
    except ImportError as error:
        missing = error
    folders = [Path(f) for f in (os.environ.get("GIRIH_LIBRARY_DIR"), _checkout()) if f]
    for folder in folders:
        path = folder / "lib_girih.so"
        if path.is_file():
            loader = importlib.machinery.ExtensionFileLoader("girih._girih", str(path))
            spec = importlib.util.spec_from_file_location("girih._girih", path, loader=loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            sys.modules["girih._girih"] = module
            return module
    raise ImportError(
        f"girih: the compiled module girih._girih is missing ({missing}); `pip install .` in a checkout of girih "
        "builds it (in a checkout itself, `cargo build --release -p girih-py` does)"
    )
