"""Loads and stores: reading elements at addresses, and writing them."""

from __future__ import annotations

from typing import Any

from ..frontend.errors import Code
from ..frontend import tensor as _t
from ..frontend.builder import Value, commas
from ..frontend.tensor import (
    as_tensor,
    builder,
    cast,
    common_shape,
    constant,
    describe,
    fail,
    is_number,
    static,
    tensor,
    truth,
    unwrap,
)
from .core import builtin


def addresses(pointer: Any, who: str, *others: Any) -> tensor:
    """The address that an access begins with; `others` are its other arguments."""
    pointer = unwrap(pointer)
    if not isinstance(pointer, tensor) or not pointer.dtype.is_ptr():
        what = describe(pointer)
        if any(isinstance(o, tensor) and o.dtype.is_ptr() for o in map(unwrap, others)):
            raise fail(
                f"{who} needs an address first, not {what}, and another argument is one",
                f"swap them: `{who}(address, ...)`; or are arguments of the launch in the wrong order?",
                code=Code.ADDRESS,
            )
        raise fail(
            f"{who} needs an address or a tile of addresses, not {what}",
            "addresses are made from an array argument: `x + girih.arange(0, N)`",
            code=Code.ADDRESS,
        )
    return pointer


def boolean(mask: Any, who: str, offsets: bool = False) -> tensor:
    """A mask, which must be made of conditions; `offsets` says that the address beside it has none."""
    mask = unwrap(mask)
    whole = mask.dtype.is_int() if isinstance(mask, tensor) else isinstance(mask, int)
    if isinstance(mask, tensor) and mask.dtype.is_bool() or whole and not isinstance(mask, tensor):
        return truth(mask)
    help = "a mask is made of comparisons, such as `i < n`; for whole numbers write `m != 0`, and `a & b` for two conditions"
    if offsets and isinstance(mask, tensor) and mask.shape:
        help = f"offsets are added to the address: `girih.{who}(pointer + offsets)`"
    raise fail(f"the mask of {who} must be a condition, not {describe(mask)}", help, code=Code.ELEMENT_TYPE)


def unchecked(boundary_check: Any) -> None:
    """Refuses what only block pointers take."""
    if unwrap(boundary_check) not in ((), [], None):
        raise fail(
            f"`boundary_check` is for block pointers, and {describe(boundary_check)} is given for it beside plain addresses",
            "plain addresses are masked: `mask=i < n`; `store` has no other value",
            code=Code.CALL,
        )


@builtin
def load(pointer, mask=None, other=None, boundary_check=(), padding_option="", cache_modifier="", eviction_policy="",
         volatile=False):  # fmt: skip
    """The value at an address, or at each of a tile of addresses.

    Args:
        pointer: a scalar or a tile of addresses of elements of type T; or a block pointer.
        mask: booleans of a shape that broadcasts; where false nothing is read.
        other: the value there, 0 if not given (in Triton: undefined).
        volatile: reads memory anew each time, and sees the stores of another block before its release: a loop that waits for
            another block needs it. The cache modifier ".cv" means the same; other modifiers and the policy change nothing.
        boundary_check, padding_option: for block pointers, the dimensions to check and "zero" or "nan".

    Returns: a tile of T of the shape of `pointer`.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.load(floats + i)
        [0, 1, 2, 3] : float32[4]
        >>> girih.load(floats + i, mask=i < 2, other=-1.0)
        [0, 1, -1, -1] : float32[4]
        >>> girih.load(floats + 3)
        3 : float32
    """
    ordered = bool(static(volatile, "volatile")) or static(cache_modifier, "the cache modifier") == ".cv"
    if hasattr(unwrap(pointer), "__girih_load__"):
        if mask is not None or other is not None:
            raise fail("a block pointer is masked with `boundary_check`, not with `mask` and `other`", code=Code.CALL)
        return unwrap(pointer).__girih_load__(boundary_check, padding_option, ordered)
    pointer = addresses(pointer, "load", mask, other)
    unchecked(boundary_check)
    mask, other = unwrap(mask), unwrap(other)
    if mask is None and other is not None:
        raise fail("`other` without `mask` has no effect", "give the mask, or leave `other` out", code=Code.CALL)
    dtype = pointer.dtype.element_ty
    if mask is not None:
        mask = boolean(mask, "load", not pointer.shape)
        shape = common_shape(pointer, mask) if pointer.shape else pointer.shape
        if not pointer.shape and mask.shape:
            raise fail(f"the mask {mask.describe()} is a tile, but the address is one address", code=Code.ADDRESS)
        pointer, mask = _t.broadcast_to(pointer, shape), _t.broadcast_to(mask, shape)
        other = constant(other, dtype, shape) if is_number(other) else other
        other = constant(0, dtype, shape) if other is None else _t.broadcast_to(cast(other, dtype), shape)
    return _load(pointer, mask, other, ordered)


def _load(pointer: tensor, mask: tensor | None, other: tensor | None, ordered: bool) -> tensor:
    """With `ordered` it acquires: nothing that follows happens before it."""
    b, dtype = builder(), pointer.dtype.element_ty
    operands_ = [v for v in (pointer, mask, other) if v is not None]
    order = "acquire device" if ordered else "weak"
    pieces: list = [f"load_ptr_tko {order} ", *commas([v.value for v in operands_])]
    token = b.before_write() if ordered else b.before_read()
    if token is not None:
        pieces += [" token = ", token]
    result, done = Value(dtype, pointer.shape), Value(None, hint="read")
    types = ", ".join(v.value.ir_type() for v in operands_)
    pieces.append(f" : {types} -> {result.ir_type()}, token")
    b.op(pieces, (result, done), pure=not ordered)
    (b.did_write if ordered else b.did_read)(done)
    return tensor(result, dtype)


@builtin
def store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy=""):
    """Writes a value to an address, or a tile to a tile of addresses, where the mask holds.

    Args:
        pointer: a scalar or a tile of addresses of elements of type T; or a block pointer.
        value: a number or a tile; it is cast to T and broadcasts to the shape of `pointer`.
        mask: booleans; where false nothing is written.

    Example:
        >>> i = girih.arange(0, 4)
        >>> girih.store(floats + i, i * 10, mask=i < 2)
        >>> girih.load(floats + i)
        [0, 10, 2, 3] : float32[4]
    """
    if hasattr(unwrap(pointer), "__girih_store__"):
        if mask is not None:
            raise fail("a block pointer is masked with `boundary_check`, not with `mask`", code=Code.CALL)
        return unwrap(pointer).__girih_store__(value, boundary_check)
    pointer = addresses(pointer, "store", value, mask)
    unchecked(boundary_check)
    dtype = pointer.dtype.element_ty
    value = unwrap(value)
    value = constant(value, dtype) if is_number(value) else cast(as_tensor(value), dtype)
    mask = None if unwrap(mask) is None else boolean(mask, "store", not pointer.shape)
    tiles = [t for t in (pointer, value, mask) if t is not None]
    shape = common_shape(*tiles)
    if shape != pointer.shape and not (pointer.ndim == len(shape) or not pointer.shape):
        raise fail(f"{value.describe()} cannot be stored to {pointer.describe()}", code=Code.ADDRESS)
    if not pointer.shape and shape:
        raise fail(
            f"a tile {value.describe()} cannot be stored to one address",
            "make a tile of addresses: `pointer + girih.arange(0, N)`",
            code=Code.ADDRESS,
        )
    pointer, value = _t.broadcast_to(pointer, shape), _t.broadcast_to(value, shape)
    mask = None if mask is None else _t.broadcast_to(mask, shape)
    _store(pointer, value, mask)


def _store(pointer: tensor, value: tensor, mask: tensor | None) -> None:
    b = builder()
    operands_ = [v for v in (pointer, value, mask) if v is not None]
    token = b.before_write()
    pieces: list = ["store_ptr_tko weak ", *commas([v.value for v in operands_])]
    if token is not None:
        pieces += [" token = ", token]
    pieces.append(f" : {', '.join(v.value.ir_type() for v in operands_)} -> token")
    done = Value(None, hint="wrote")
    b.op(pieces, (done,), pure=False)
    b.did_write(done)
