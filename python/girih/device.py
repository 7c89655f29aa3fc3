"""Arrays on a CUDA device: those of other libraries, as kernels and models take them, and those that models give.

In: an object with ``__cuda_array_interface__``, or with ``__dlpack__`` of a CUDA device (CuPy, Numba, PyTorch, JAX). Out: a
`View` of it.
Nothing is copied.

Invariant: work on an array is queued on the stream that the array names, or after it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

import numpy as np

from girih import _library, _tensors
from girih.frontend.errors import GirihError

__all__ = ["Array", "View", "view"]

_girih = _library.extension()

#: DLPack's number of such devices.
CUDA = 2
#: The stream that waits for all others which do not say otherwise; as `__dlpack__` and the interface call it.
LEGACY = 1
#: NumPy's names of element types by DLPack's code and bits, where the name does not follow from the kind.
TYPES = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}
KINDS = {0: "int", 1: "uint", 2: "float"}


class View(NamedTuple):
    """Where an array of the device lies."""

    #: The array, which the view keeps.
    owner: Any
    address: int
    #: NumPy's name of its element type.
    element: str
    itemsize: int
    shape: tuple[int, ...]
    #: In bytes; of an array without gaps those that follow from its shape.
    strides: tuple[int, ...]
    writable: bool
    #: The driver's stream; 0 is the legacy stream.
    stream: int

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self.element)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def contiguous(self) -> bool:
        return 0 in self.shape or self.strides == row_major(self.shape, self.itemsize)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize


def dtype_of(name: str) -> np.dtype:
    """A type of NumPy's, or of ml_dtypes."""
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise GirihError(f"NumPy has no {name}; install ml_dtypes") from None
    if not hasattr(ml_dtypes, name):
        raise GirihError(f"this ml_dtypes has no {name}; install a newer one")
    return np.dtype(getattr(ml_dtypes, name))


def row_major(shape, itemsize) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def view(value: Any) -> Optional[View]:
    """A view of an array on a CUDA device; None for anything else.

    Raises:
        GirihError: an array of another device than the first, or of a type that cannot be told.
    """
    if isinstance(value, (type, np.ndarray, np.generic)):
        return None
    if _tensors.is_tensor(value) and value.device.type == "cuda" and (problem := _tensors.problem(value)):
        raise GirihError(f"an array is a tensor that {problem}")
    # PyTorch refuses both for tensors that require a gradient.
    value = value.detach() if getattr(value, "requires_grad", False) else value
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
    except (RuntimeError, TypeError):
        interface = None
    if interface is not None and not interface["typestr"][1:].startswith("V"):
        return of_interface(value, interface)
    if not hasattr(type(value), "__dlpack_device__"):
        return None
    kind, number = value.__dlpack_device__()
    return of_dlpack(value, number) if kind == CUDA else None


def of_interface(owner, interface) -> View:
    dtype = np.dtype(interface["typestr"])
    if not dtype.isnative:
        raise GirihError(f"elements of the type {dtype} are not in this machine's byte order")
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    address, read_only = interface["data"]
    strides = row_major(shape, dtype.itemsize) if strides is None else tuple(strides)
    return View(owner, address or 0, dtype.name, dtype.itemsize, shape, strides, not read_only, interface.get("stream") or 0)


def of_dlpack(value, number) -> View:
    if number != 0:
        raise GirihError(f"an array is on CUDA device {number}; Girih runs on the first, device 0")
    # Whoever made the array sees to it that the legacy stream waits for it.
    capsule = value.__dlpack__(stream=LEGACY)
    address, (code, bits), shape, strides = _girih.described(capsule)
    dtype = TYPES.get((code, bits)) or (f"{KINDS[code]}{bits}" if code in KINDS else None)
    if dtype is None or bits % 8:
        raise GirihError(f"elements of DLPack's type {code} with {bits} bits cannot be passed")
    shape, itemsize = tuple(shape), bits // 8
    strides = row_major(shape, itemsize) if strides is None else tuple(s * itemsize for s in strides)
    return View((value, capsule), address, dtype, itemsize, shape, strides, True, 0)


class Array:
    """An array on the CUDA device: a model returns it for arguments that are there.

    CuPy, Numba, PyTorch and JAX take it where it is (``cupy.asarray``, ``torch.from_dlpack``); ``numpy()`` copies it.

    Args:
        shape: its extents.
        dtype: a type of NumPy's, or of ml_dtypes.
        stream: the driver's stream on which it is written.
    """

    def __init__(self, shape, dtype, stream: int = 0):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self._stream = stream
        self._memory = _girih.DeviceMemory(self.nbytes)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self._memory.address, False), "version": 3,
            "strides": None, "stream": self._stream or LEGACY,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, *, stream=None, **_asked):
        # -1: the consumer synchronises itself.
        if stream != -1:
            _girih.synchronize(self._stream)
        code = {name: code for code, name in TYPES.items()}.get(self.dtype.name)
        # NumPy writes the capsule, and does not look at the memory.
        words = np.dtype(f"u{self.dtype.itemsize}") if code else self.dtype
        lent = np.asarray(Lent(self)).view(words).reshape(self.shape)
        return _girih.relabel(lent.__dlpack__(), code)

    def numpy(self) -> np.ndarray:
        """A copy on the host."""
        copy = np.empty(self.shape, self.dtype)
        self._memory.read(copy.ctypes.data, self._stream)
        return copy

    def __repr__(self):
        return f"<girih.device.Array {self.dtype}{list(self.shape)} on cuda:0>"


class Lent:
    """The bytes of an array, as NumPy takes memory of others."""

    def __init__(self, array: Array):
        self.array = array
        data = array._memory.address, False
        self.__array_interface__ = {"shape": (array.nbytes,), "typestr": "|u1", "data": data, "version": 3}
