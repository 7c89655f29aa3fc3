"""The meaning of names and attributes in a kernel: values from outside of it, and the attributes of tiles."""

from __future__ import annotations

import importlib
from enum import Enum
from types import ModuleType
from typing import Any

from .elsewhere import ATTRIBUTES, help_for
from .errors import Code
from .tensor import constexpr, fail, tensor

TENSOR_FACTS = ("dtype", "shape", "type", "numel", "ndim", "T")
TENSOR_METHODS = ("to", "reshape", "permute", "trans")


def check_global(name: str, value: Any) -> Any:
    """A value from outside of the kernel; it must be a constant."""
    if isinstance(value, constexpr):
        return value.value
    owner = type(value).__module__.split(".")[0]
    if (foreign := owner_of(value)) is not None:
        word = getattr(value, "__name__", None) or str(value).split(".")[-1]
        own = getattr(importlib.import_module("girih.language"), word, None)
        help = f"use `girih.{word}`" if own is not None else None
        if isinstance(value, type) or not callable(value):
            raise fail(f"`{name}` is an element type of {foreign}, which kernels do not know", help, code=Code.OUTSIDE)
        raise fail(f"`{name}` is a function of {foreign}, which kernels cannot call", help, code=Code.OUTSIDE)
    if owner == "numpy" and getattr(value, "shape", None) == () and isinstance(value.item(), (bool, int, float)):
        return value.item()
    if isinstance(value, (list, dict, set, bytearray)) or owner in ("numpy", "torch"):
        raise fail(
            f"`{name}` is a {type(value).__name__} outside the kernel and cannot be read inside it",
            "pass it as an argument; constants may be numbers, strings, types, tuples of them, or girih.constexpr",
            code=Code.OUTSIDE,
        )
    return value


def owner_of(value: Any) -> str | None:
    """The library whose function or element type this is."""
    kind = type(value)
    if not callable(value) and kind.__name__ != "dtype":
        return None
    homes = (kind.__module__, getattr(value, "__module__", None) or "", getattr(value, "__qualname__", ""))
    names = {str(home).split(".")[0].removeprefix("_") for home in homes}
    return next((library for library in ("numpy", "torch") if library in names), None)


def may_change(owner: Any) -> bool:
    """Returns True if an attribute of an object outside of the kernel may have another value at the next launch."""
    if isinstance(owner, ModuleType):
        return owner.__name__.split(".")[0] not in ("girih", "math")
    return (
        hasattr(owner, "__dict__") and not hasattr(owner, "__girih_leaves__") and not isinstance(owner, (tuple, Enum))
    )


def attribute(owner: Any, name: str) -> Any:
    return getattr(owner, name, None)


def tensor_attribute(value: tensor, name: str) -> Any:
    from ..language import core

    if not name.startswith("_"):
        if name in TENSOR_FACTS:
            return getattr(value, name)
        method = core.METHODS.get(name)
        if method is not None:
            return bound(method, value)
        if name in TENSOR_METHODS:
            return bound(getattr(tensor, name), value)
    help = help_for(name, ATTRIBUTES, [*core.METHODS, *TENSOR_METHODS, *TENSOR_FACTS])
    raise fail(f"{'an address' if value.dtype.is_ptr() else 'a tile'} has no attribute `{name}`", help, code=Code.UNKNOWN)


def bound(function: Any, value: tensor) -> Any:
    def method(*args, **kwargs):
        return function(value, *args, **kwargs)

    method.__name__ = function.__name__
    method.__wrapped__ = function
    method.__girih_builtin__ = True
    return method
