"""A stand-in for CuPy where it is not installed: the same names over NumPy, on the processor.

It is there for programs that prepare arrays with CuPy and compute with cuTile. Functions that it does not define are
NumPy's; functions that compile CUDA C++ (``RawKernel``, ``ElementwiseKernel``, ...) are missing.
"""

import numpy as _np

from . import _array, _proxy
from ._array import ndarray

__version__ = "13.6.0+girih"


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, blocking=False):
    host = _np.array(_host(obj), dtype=dtype, copy=True if copy else None, order=order, ndmin=ndmin)
    if host is obj:
        host = host.copy()
    return _array.wrapped(host)


def asarray(a, dtype=None, order=None, blocking=False):
    if isinstance(a, ndarray):
        host = _np.asarray(a.host, dtype=dtype, order=order)
        return a if host is a.host else _array.wrapped(host)
    return array(a, dtype=dtype, order=order or "K")


asanyarray = asarray


def ascontiguousarray(a, dtype=None):
    return _array.wrapped(_np.ascontiguousarray(asarray(a, dtype).host))


def asfortranarray(a, dtype=None):
    return _array.wrapped(_np.asfortranarray(asarray(a, dtype).host))


def _host(obj):
    """The argument of an array constructor, with CuPy's arrays in it replaced by NumPy's."""
    if isinstance(obj, ndarray):
        return obj.host
    if isinstance(obj, (list, tuple)):
        return [_host(o) for o in obj]
    return obj


def asnumpy(a, stream=None, order="C", out=None, blocking=True):
    """A copy as a NumPy array; other values become arrays as in NumPy."""
    if isinstance(a, ndarray):
        return a.get(order=order, out=out)
    host = _np.asarray(a, order=order)
    if out is not None:
        out[...] = host
        return out
    return host


def from_dlpack(array):
    if isinstance(array, ndarray):
        return array
    return _array.wrapped(_np.from_dlpack(array))


def get_array_module(*args):
    import sys

    return sys.modules[__name__] if any(isinstance(a, ndarray) for a in args) else _np


def load(file, *args, **kwargs):
    return _array.wrapped(_np.load(file, *args, **kwargs))


def save(file, arr, allow_pickle=True):
    _np.save(file, asnumpy(arr), allow_pickle=allow_pickle)


def savez(file, *args, **kwargs):
    _np.savez(file, *[asnumpy(a) for a in args], **{k: asnumpy(v) for k, v in kwargs.items()})


def rsqrt(x):
    return _array.run(lambda a: 1 / _np.sqrt(a), (x,), {})


def get_default_memory_pool():
    return cuda.MemoryPool()


def get_default_pinned_memory_pool():
    return cuda.PinnedMemoryPool()


def is_available():
    return True


def show_config(**_options):
    print(f"CuPy: girih's stand-in {__version__}, NumPy {_np.__version__}")


_NOT_HERE = ("ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "fuse", "vectorize")
_through = _proxy.falling_through(__name__, _np)


def __getattr__(name):
    if name in _NOT_HERE:
        raise AttributeError(f"cupy.{name} compiles CUDA C++, which girih's stand-in for CuPy does not")
    if name in ("linalg", "fft", "random", "testing", "cuda"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _through(name)


from . import cuda, fft, linalg, random, testing  # noqa: E402
