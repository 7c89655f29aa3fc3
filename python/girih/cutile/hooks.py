"""Doing something to a module when, and only when, a program imports it.

    when_imported("torch", redirect)     # redirect(torch) runs right after the first `import torch`

The import itself stays Python's own: the finder here asks the others for the module and wraps its loader.
"""

import importlib.abc
import importlib.util
import sys


class _Loader(importlib.abc.Loader):
    """The real loader, and something to do after it."""

    def __init__(self, real, action):
        self._real = real
        self._action = action

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        # The module sees its real loader, also while it runs.
        module.__spec__.loader = self._real
        module.__loader__ = self._real
        self._real.exec_module(module)
        _finder.actions.pop(module.__name__, None)
        self._action(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self):
        self.actions = {}
        self._asking = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.actions or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.actions[name])
        return spec


_finder = _Finder()


def when_imported(name, action):
    """Calls ``action(module)`` after the module's first import, at once if that is past."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    _finder.actions[name] = action
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
