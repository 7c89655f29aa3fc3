"""What names and attributes mean in a kernel: values from outside of it, and the attributes of tiles."""

from __future__ import annotations

import difflib
import importlib
from enum import Enum
from types import ModuleType
from typing import Any

from .tensor import constexpr, fail, tensor

TENSOR_FACTS = ("dtype", "shape", "type", "numel", "ndim", "T")
TENSOR_METHODS = ("to", "reshape", "permute", "trans")


def check_global(name: str, value: Any) -> Any:
    """A value from outside of the kernel; it must be a constant."""
    if isinstance(value, constexpr):
        return value.value
    owner = type(value).__module__.split(".")[0]
    if owner in ("numpy", "torch") and callable(value):
        own = getattr(importlib.import_module("girih.language"), value.__name__, None)
        raise fail(
            f"`{name}` is a function of {owner}, which kernels cannot call",
            f"use `girih.{value.__name__}`" if own else None,
        )
    if isinstance(value, (list, dict, set, bytearray)) or owner in ("numpy", "torch"):
        raise fail(
            f"`{name}` is a {type(value).__name__} outside the kernel and cannot be read inside it",
            "pass it as an argument; constants may be numbers, strings, types, tuples of them, or girih.constexpr",
        )
    return value


def may_change(owner: Any) -> bool:
    """Whether an attribute of something outside of the kernel may have another value at the next launch."""
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
    near = difflib.get_close_matches(name, [*core.METHODS, *TENSOR_METHODS, *TENSOR_FACTS], 1)
    raise fail(f"a tile has no attribute `{name}`", f"did you mean `{near[0]}`?" if near else None)


def bound(function: Any, value: tensor) -> Any:
    def method(*args, **kwargs):
        return function(value, *args, **kwargs)

    method.__name__ = function.__name__
    method.__girih_builtin__ = True
    return method
