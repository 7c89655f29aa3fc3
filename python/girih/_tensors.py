"""Tensors of PyTorch as memory: their elements, or why their memory does not hold them.

In: a tensor. Out: for code that writes in place, the reason why it cannot (`problem`); for code that only reads, an
array of NumPy's with the elements (`elements`). Nothing here imports PyTorch: the caller, who has a tensor, did.

PyTorch negates and conjugates by a bit that says how memory is to be read (`z.conj().imag`), knows tensors without memory, and
takes memory of others that begins anywhere. Whoever takes a tensor's address asks here first.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

__all__ = ["elements", "is_tensor", "problem", "written"]

#: Types that NumPy has from ml_dtypes, and words of their size.
WORDS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "float8_e8m0fnu": "uint8"}


def is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "untyped_storage")


def problem(tensor: Any) -> Optional[str]:
    """Why the memory at a tensor's address does not hold its elements, and the remedy, to follow "is a tensor that ";
    None where it does."""
    if str(tensor.layout) != "torch.strided":
        return f"has the layout {tensor.layout}; pass `x.to_dense()`"
    if tensor.is_conj():
        return "PyTorch conjugates when it is read (`is_conj()`); pass `x.resolve_conj()`"
    if tensor.is_neg():
        return "PyTorch negates when it is read (`is_neg()`); pass `x.resolve_neg()`"
    if not tensor.numel():
        return None
    try:
        address = tensor.data_ptr()
    except RuntimeError:
        address = 0
    if address == 0:
        return "has no memory of its own; pass `x.clone()`"
    if is_cut(tensor):
        return "has more elements than its storage has room for"
    if address % tensor.element_size():
        return f"begins at {address:#x}, which its elements of {tensor.element_size()} bytes do not divide; pass `x.clone()`"
    return None


def is_nowhere(tensor: Any) -> bool:
    """Returns True if no memory of a device holds a tensor's elements one by one."""
    return tensor.is_meta or str(tensor.layout) != "torch.strided"


def is_cut(tensor: Any) -> bool:
    """Returns True if somebody made the storage smaller than the tensor, as sharded training does with weights between uses."""
    last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    return tensor.numel() > 0 and (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes()


def negation() -> tuple:
    """The address of PyTorch's own ``bool is_neg(const Tensor&)``, 0 where it is not found; and a tensor that is not negated
    when it is read and one that is, to try it on."""
    import ctypes
    import os

    torch = sys.modules["torch"]
    plain = torch.zeros(2)
    try:
        library = ctypes.CDLL("libtorch_cpu.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        address = ctypes.cast(library["_ZN2at6native6is_negERKNS_6TensorE"], ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        address = 0
    return address, plain, torch._neg_view(plain)


def written(tensor: Any) -> None:
    """Counts a write to a tensor, as PyTorch's own operations do."""
    sys.modules["torch"].autograd.graph.increment_version(tensor)


def elements(tensor: Any) -> Any:
    """An array of NumPy's with the elements of a tensor on the host: of the same memory where that holds them, else a copy.

    Raises:
        TypeError: a tensor that NumPy cannot hold.
    """
    torch = sys.modules["torch"]
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"it is a tensor that {problem(tensor)}")
    if tensor.is_meta:
        raise TypeError("it is a tensor on the device meta, which has no elements")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    # Known to be zero, without memory.
    tensor = tensor.clone() if tensor._is_zerotensor() else tensor
    name = str(tensor.dtype).removeprefix("torch.")
    try:
        if is_cut(tensor):
            raise TypeError("it is a tensor that has more elements than its storage has room for")
        if name not in WORDS:
            return tensor.numpy()
        from girih import device

        # The elements of a scalar take no other size.
        flat = tensor.reshape(1) if tensor.dim() == 0 else tensor
        return flat.view(getattr(torch, WORDS[name])).numpy().view(device.dtype_of(name)).reshape(tuple(tensor.shape))
    except RuntimeError as e:
        raise TypeError(str(e).splitlines()[0]) from None
