"""``cupy.random``: NumPy's generators, with the ``dtype`` that CuPy's functions also take.

The numbers differ from CuPy's, whose generators are others.
"""

import numpy as _np
import numpy.random as _source

from ._array import run
from ._proxy import falling_through, proxied

_through = falling_through(__name__, _source)
# Where CuPy takes a dtype and NumPy gives float64.
_TYPED = (
    "beta", "chisquare", "exponential", "gamma", "laplace", "lognormal", "normal", "poisson", "rand", "randn",
    "random", "random_sample", "ranf", "sample", "standard_exponential", "standard_normal", "uniform",
)  # fmt: skip


def _typed(function):
    def call(*args, dtype=None, **kwargs):
        result = run(function, args, kwargs)
        return result if dtype is None else result.astype(dtype)

    call.__name__ = function.__name__
    return call


def __getattr__(name):
    if name in _TYPED:
        return _typed(getattr(_source, name))
    return _through(name)


class _Drawing:
    """A NumPy generator whose methods take and give CuPy's arrays."""

    def __init__(self, real, typed):
        self._real = real
        self._typed = typed

    def __getattr__(self, name):
        value = getattr(self._real, name)
        if not callable(value):
            return value
        return _typed(value) if self._typed and name in _TYPED else proxied(value)


def default_rng(seed=None):
    return _Drawing(_np.random.default_rng(seed), typed=False)


def RandomState(seed=None, method=None):
    return _Drawing(_np.random.RandomState(seed), typed=True)
