"""Makes each Python that starts with this folder on its path run cuTile programs on Girih, where GIRIH_CUTILE asks for it.

`girih.cutile.hosting.install(children=True)` puts the folder first on PYTHONPATH, so that subprocesses, the processes that
`multiprocessing` spawns and those of `torchrun` begin here. The module of this name that would have run instead runs after.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _install():
    root = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    if importlib.util.find_spec("girih") is None:
        sys.path.append(root)
    from girih.cutile.hosting import install, wanted

    try:
        if wanted():
            install()
    except (ImportError, FileNotFoundError, ValueError) as error:
        print(f"girih: GIRIH_CUTILE is set, but cuTile programs cannot be redirected: {error}", file=sys.stderr)


def _next():
    """Runs the next `sitecustomize` on the path, which this one hides."""
    path = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("GIRIH_CUTILE"):
    _install()
_next()
