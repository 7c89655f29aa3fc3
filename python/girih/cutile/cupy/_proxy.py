"""NumPy's functions under CuPy's names."""

import functools

import numpy as np

from ._array import run, wrapped


def proxied(value):
    """A part of NumPy as CuPy shows it: functions take and give CuPy's arrays, types and constants are the same."""
    if isinstance(value, np.ufunc):
        return Ufunc(value)
    if isinstance(value, type) or not callable(value):
        return value

    @functools.wraps(value)
    def function(*args, **kwargs):
        return run(value, args, kwargs)

    return function


class Ufunc:
    """A ufunc on CuPy's arrays."""

    def __init__(self, real):
        self._real = real
        self.__name__ = real.__name__
        self.__doc__ = real.__doc__

    def __call__(self, *args, **kwargs):
        return run(self._real, args, kwargs)

    def __getattr__(self, name):
        value = getattr(self._real, name)
        return proxied(value) if callable(value) else value

    def __repr__(self):
        return f"<ufunc 'cupy_{self.__name__}'>"


def falling_through(module, source):
    """A module's ``__getattr__`` that takes missing names from a module of NumPy's."""

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        try:
            value = getattr(source, name)
        except AttributeError:
            raise AttributeError(
                f"module '{module}' has no attribute '{name}' in girih's stand-in for CuPy, which offers what NumPy has"
            ) from None
        return proxied(value)

    return __getattr__


__all__ = ["falling_through", "proxied", "wrapped"]
