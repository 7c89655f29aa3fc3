"""Kernels in Python, traced in the browser: a text in, Tile IR out.

The package's front end is Python alone. The compiled part of the package is not here: a module that remembers what it is given stands in
for it, and the compiler gets that afterwards.
"""

import json
import sys
import types

#: The name of the text in messages and places.
FILE = "kernel.py"


class Traced:
    """In place of a compiled kernel."""

    last = {}

    def __init__(self, text, name, _options, _error):
        Traced.last[name] = text


class Missing(types.ModuleType):
    """In place of the compiled part of the package."""

    Kernel = Traced

    @staticmethod
    def version():
        return "0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda *_args, **_named: None})


sys.modules["girih._girih"] = Missing("girih._girih")
# Python of a text reaches nothing of the browser.
for name in ("js", "pyodide_js", "pyodide.http", "pyodide.code"):
    sys.modules[name] = None

from girih.scripts.check import look_at  # noqa: E402


def traced(text):
    """As JSON: the problems of a text, and the Tile IR of each of its kernels, in the order of the text."""
    Traced.last = {}
    problems, kernels = look_at(text, FILE)
    found = [{"name": k.name, "text": Traced.last[k.name]} for k in kernels if k.name in Traced.last]
    return json.dumps({"problems": [p.to_json() for p in problems], "kernels": found})
