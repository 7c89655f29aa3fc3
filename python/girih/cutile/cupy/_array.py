"""The stand-in's ``ndarray``: a NumPy array that keeps CuPy's rules.

CuPy's rules, because a program that breaks them fails on a GPU: nothing turns into a NumPy array but by ``.get()`` or
``cupy.asnumpy``, NumPy arrays and CuPy arrays do not mix, and a reduction gives an array of no dimensions.

Invariant: `host` of an array made from a NumPy array is a copy; of a view, a view.
"""

import operator

import numpy as np

_REFUSED = "a CuPy array becomes a NumPy array by `.get()` or `cupy.asnumpy(...)` only"


def wrapped(value):
    """NumPy's result, as CuPy returns it."""
    if isinstance(value, np.ndarray):
        return _of(value)
    if isinstance(value, np.generic):
        return _of(np.asarray(value))
    if type(value) in (tuple, list):
        return type(value)(wrapped(v) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(wrapped(v) for v in value))
    return value


def unwrapped(value):
    """An argument for NumPy; NumPy's own arrays are refused, as CuPy does."""
    if isinstance(value, ndarray):
        return value.host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {np.ndarray}: make it a CuPy array with cupy.asarray(...)")
    if type(value) in (tuple, list):
        return type(value)(unwrapped(v) for v in value)
    if type(value) is dict:
        return {k: unwrapped(v) for k, v in value.items()}
    return value


def run(function, args, kwargs):
    """Calls NumPy's function on CuPy's arguments. As on a GPU, no arithmetic warns."""
    out = kwargs.get("out")
    with np.errstate(all="ignore"):
        result = function(*[unwrapped(a) for a in args], **{k: unwrapped(v) for k, v in kwargs.items()})
    if isinstance(out, ndarray):
        return out
    return wrapped(result)


class ndarray:
    """An array of the device. `host` is the NumPy array it is kept in."""

    __slots__ = ("host", "__weakref__")
    __hash__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is not None:
            raise TypeError("girih's stand-in for CuPy cannot make arrays from memory pointers")
        self.host = np.ndarray(shape, dtype, strides=strides, order=order)

    # How others see it.

    @property
    def __cuda_array_interface__(self):
        return dict(self.host.__array_interface__, version=3, stream=1)

    @staticmethod
    def __girih_capsule__(array):
        from girih.cutile.arrays import numpy_capsule

        return numpy_capsule(array.host)

    def __dlpack__(self, **_asked):
        from girih import _girih

        return _girih.relabel(ndarray.__girih_capsule__(self))

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, dtype=None, copy=None):
        raise TypeError(_REFUSED)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = tuple(unwrapped(o) for o in out)
        result = run(getattr(ufunc, method), inputs, kwargs)
        return out[0] if out is not None and len(out) == 1 else out or result

    def __array_function__(self, function, types, args, kwargs):
        return run(function, args, kwargs)

    def get(self, stream=None, order="C", out=None, blocking=True):
        """A copy as a NumPy array."""
        if out is not None:
            out[...] = self.host
            return out
        return self.host.copy(order="K" if order == "A" else order)

    def set(self, array, stream=None):
        """Copies a NumPy array into this one."""
        if not isinstance(array, np.ndarray):
            raise TypeError("only a NumPy array can be set; assign with `a[...] = b`")
        if array.shape != self.host.shape or array.dtype != self.host.dtype:
            raise ValueError(
                f"an array of shape {array.shape} and dtype {array.dtype} does not fit one of shape "
                f"{self.host.shape} and dtype {self.host.dtype}"
            )
        self.host[...] = array

    # Its attributes.

    @property
    def shape(self):
        return self.host.shape

    @shape.setter
    def shape(self, shape):
        self.host.shape = shape

    @property
    def T(self):
        return _of(self.host.T)

    @property
    def mT(self):
        return _of(self.host.mT)

    @property
    def real(self):
        return _of(self.host.real)

    @property
    def imag(self):
        return _of(self.host.imag)

    @property
    def base(self):
        return None if self.host.base is None else wrapped(self.host.base)

    @property
    def data(self):
        from .cuda import MemoryPointer

        return MemoryPointer(self.host.ctypes.data, self.host.nbytes)

    @property
    def device(self):
        from .cuda import Device

        return Device(0)

    def __len__(self):
        return len(self.host)

    def __iter__(self):
        if self.host.ndim == 0:
            raise TypeError("iteration over an array without dimensions")
        return (_of(self.host[i : i + 1].reshape(self.host.shape[1:])) for i in range(len(self.host)))

    def __repr__(self):
        return repr(self.host)

    def __str__(self):
        return str(self.host)

    def __format__(self, spec):
        return format(self.host.item() if self.host.ndim == 0 else self.host, spec)

    def __bool__(self):
        return bool(self.host)

    def __int__(self):
        return int(self.host)

    def __float__(self):
        return float(self.host)

    def __complex__(self):
        return complex(self.host)

    def __index__(self):
        return operator.index(self.host)

    def __contains__(self, value):
        return unwrapped(value) in self.host

    def __copy__(self):
        return _of(self.host.copy())

    def __deepcopy__(self, memo):
        return _of(self.host.copy())

    def __reduce__(self):
        return _of, (self.host,)

    # Its elements.

    def __getitem__(self, index):
        # An ellipsis keeps NumPy from making a scalar, which would be no view.
        index = unwrapped(index)
        whole = index if isinstance(index, tuple) else (index,)
        if not any(i is Ellipsis for i in whole):
            whole = (*whole, Ellipsis)
        return wrapped(self.host[whole])

    def __setitem__(self, index, value):
        if isinstance(value, np.ndarray) and (index is Ellipsis or index == slice(None)):
            self.host[...] = value
        else:
            self.host[unwrapped(index)] = unwrapped(value)

    def item(self, *index):
        return self.host.item(*index)

    def tolist(self):
        return self.host.tolist()

    def tobytes(self, order="C"):
        return self.host.tobytes(order)

    def view(self, dtype=None, **_unused):
        return _of(self.host if dtype is None else self.host.view(dtype))

    def reduced_view(self, dtype=None):
        return self.view(dtype)

    def scatter_add(self, index, value):
        np.add.at(self.host, unwrapped(index), unwrapped(value))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"'ndarray' object has no attribute '{name}'")
        value = getattr(self.host, name)
        if not callable(value):
            return value

        def method(*args, **kwargs):
            return run(value, args, kwargs)

        method.__name__ = name
        return method


def _of(host):
    array = object.__new__(ndarray)
    array.host = host
    return array


def _operator(function, swapped=False):
    def method(self, other):
        if not isinstance(other, (ndarray, np.ndarray, np.generic, int, float, complex, bool)):
            return NotImplemented
        return run(function, (other, self) if swapped else (self, other), {})

    return method


def _in_place(function):
    def method(self, other):
        with np.errstate(all="ignore"):
            self.host = function(self.host, unwrapped(other))
        return self

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"):
    _plain = _name.rstrip("_")
    setattr(ndarray, f"__{_plain}__", _operator(getattr(operator, _name)))
    setattr(ndarray, f"__r{_plain}__", _operator(getattr(operator, _name), swapped=True))
    setattr(ndarray, f"__i{_plain}__", _in_place(getattr(operator, "i" + _plain)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ndarray, f"__{_name}__", _operator(getattr(operator, _name)))
for _name in ("neg", "pos", "invert", "abs"):
    setattr(ndarray, f"__{_name}__", lambda self, _f=getattr(operator, _name): run(_f, (self,), {}))
ndarray.__divmod__ = _operator(divmod)
ndarray.__rdivmod__ = _operator(divmod, swapped=True)
