"""Values that control flow carries: how they are taken apart, what common type they get, and how they are put together.

A variable holds a tensor, a Python number, or a tuple of such; its *leaves* are what `for`, `loop` and `if` of Tile IR
carry. A number is weak: it takes the type of the other operand. Anything else, a function or a type, cannot be carried.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .errors import Code
from . import types as ty
from .builder import Value
from .tensor import broadcast_to, cast, constant, fail, is_number, number_type, tensor, type_beside, unwrap
from .types import DType, PointerType


class Undefined:
    """The value of a name that got none on some path; `why` says on which, `help` how to mend it."""

    def __init__(self, why: str, help: str = "give it a value before"):
        self.why = why
        self.help = help


@dataclasses.dataclass(frozen=True)
class Slot:
    """The type of a leaf; a weak one came from a number and gives way."""

    dtype: DType | PointerType
    shape: tuple[int, ...]
    weak: bool = False

    def describe(self) -> str:
        return ty.spell(self.dtype, self.shape)


def leaves(value: Any) -> list | None:
    """The tensors and numbers in a value, or `None` when it holds something else."""
    value = unwrap(value)
    if isinstance(value, tensor) or is_number(value):
        return [value]
    if isinstance(value, (tuple, list)):
        out = []
        for item in value:
            inner = leaves(item)
            if inner is None:
                return None
            out += inner
        return out
    if hasattr(value, "__girih_leaves__"):
        return leaves(value.__girih_leaves__())
    return None


def rebuild(like: Any, parts: iter) -> Any:
    """A value of the form of `like` with other leaves."""
    like = unwrap(like)
    if isinstance(like, tensor) or is_number(like):
        return next(parts)
    if hasattr(like, "__girih_leaves__"):
        return like.__girih_rebuild__(rebuild(like.__girih_leaves__(), parts))
    items = [rebuild(item, parts) for item in like]
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def slot_of(leaf: Any) -> Slot:
    if isinstance(leaf, tensor):
        return Slot(leaf.dtype, leaf.shape)
    return Slot(number_type(leaf), (), weak=True)


def join(slot: Slot, leaf: Any, name: str, where: tuple[str, str]) -> Slot:
    """The common type of a slot and another leaf; `where` says at which two places, for the message."""
    other = slot_of(leaf)
    if slot == other:
        return slot
    if slot.weak and other.weak:
        return Slot(ty.promote(slot.dtype, other.dtype), (), weak=True)
    if other.weak:
        return Slot(type_beside(slot.dtype, leaf, False), slot.shape)
    if slot.weak:
        if other.dtype.is_bool():
            # A truth has no place for a number.
            return Slot(slot.dtype, other.shape)
        floats = slot.dtype.is_floating() and not other.dtype.is_floating()
        return Slot(ty.float32 if floats else other.dtype, other.shape)
    before, after = where
    if slot.shape != other.shape or slot.dtype.is_ptr() != other.dtype.is_ptr():
        raise fail(
            f"`{name}` is {slot.describe()} {before} and {other.describe()} {after}",
            "a variable that control flow changes keeps its type and shape; use another name for the other value",
            code=Code.FLOW,
        )
    if slot.dtype.is_ptr():
        if slot.dtype != other.dtype:
            raise fail(f"`{name}` is {slot.describe()} {before} and {other.describe()} {after}", code=Code.FLOW)
        return slot
    return Slot(ty.promote(slot.dtype, other.dtype), slot.shape)


def fit(leaf: Any, slot: Slot) -> Value:
    """The leaf as a value of the slot's type."""
    if isinstance(leaf, tensor):
        return broadcast_to(cast(leaf, slot.dtype), slot.shape).value
    return constant(leaf, slot.dtype, slot.shape).value


def same(a: Any, b: Any) -> bool:
    """Returns True if two values are the same at compile time: the same object, or equal numbers of one type."""
    a, b = unwrap(a), unwrap(b)
    if a is b:
        return True
    if is_number(a) and is_number(b):
        return type(a) is type(b) and repr(a) == repr(b)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        return all(same(x, y) for x, y in zip(a, b))
    return not isinstance(a, tensor) and not isinstance(b, tensor) and type(a) is type(b) and bool(a == b)
