"""Makes each Python that starts with this folder on its path run programs on Girih: cuTile's where GIRIH_CUTILE asks for it, Triton's
where GIRIH_TRITON_CHILDREN does.

`install(children=True)` of `girih.cutile` and of `girih.triton` puts the folder first on PYTHONPATH, so that subprocesses, the processes that
`multiprocessing` spawns and those of `torchrun` begin here. The module of this name that would have run instead runs after.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


# The variable that asks, the module that puts Girih in place, and the programs that then run on it.
_PRODUCTS = [
    ("GIRIH_CUTILE", "girih.cutile.hosting", "cuTile"),
    ("GIRIH_TRITON_CHILDREN", "girih.triton.hosting", "Triton"),
]


def _install(variable, module, programs):
    root = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    if importlib.util.find_spec("girih") is None:
        sys.path.append(root)
    try:
        hosting = importlib.import_module(module)
        if hosting.wanted():
            hosting.install()
    except (ImportError, FileNotFoundError, ValueError) as error:
        print(f"girih: {variable} is set, but {programs} programs cannot be redirected: {error}", file=sys.stderr)


def _next():
    """Runs the next `sitecustomize` on the path, which this one hides."""
    path = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


for _product in _PRODUCTS:
    if os.environ.get(_product[0]):
        _install(*_product)
_next()
