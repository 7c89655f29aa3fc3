"""Blocks of arrays described by shape and strides: block pointers and tensor descriptors.

Both become tiles of addresses with masks, so any offset will do; nothing outside the array is touched where the
boundary is checked.
"""

from __future__ import annotations

from typing import Any

from ..frontend.errors import Code
from ..frontend import types as ty
from ..frontend.tensor import as_tensor, cast, check_shape, fail, reshape_to, static, tensor, unwrap
from . import core, memory
from .core import builtin


def _index(value: Any) -> tensor:
    """An extent, a stride or an offset, in 64 bits."""
    value = as_tensor(value, ty.int64)
    if not value.dtype.is_int() or value.shape:
        raise fail(f"an extent, a stride or an offset must be an integer scalar, not {value.describe()}", code=Code.INTEGER)
    return cast(value, ty.int64)


class Block:
    """An array with a window into it; `__girih_leaves__` lets control flow carry it."""

    padding = 0.0  # what a descriptor reads outside of the array

    def __init__(self, base: tensor, shape: tuple, strides: tuple, offsets: tuple, window: tuple[int, ...]):
        self.base, self.shape, self.strides, self.offsets, self.window = base, shape, strides, offsets, window

    def __girih_leaves__(self) -> tuple:
        return (self.base, *self.shape, *self.strides, *self.offsets)

    def __girih_rebuild__(self, leaves: tuple) -> Any:
        n = len(self.window)
        new = type(self)(leaves[0], leaves[1 : n + 1], leaves[n + 1 : 2 * n + 1], leaves[2 * n + 1 :], self.window)
        new.padding = self.padding
        return new

    @property
    def type(self) -> Any:
        return self.dtype

    def _tile(self, offsets: tuple, checked: Any) -> tuple[tensor, tensor | None]:
        """The window's addresses at `offsets`, and which of them lie in the array along the checked dimensions."""
        addresses, mask = self.base, None
        rank = len(self.window)
        for axis, n in enumerate(self.window):
            lane = [1] * rank
            lane[axis] = n
            at = reshape_to(core.arange(0, n), tuple(lane)) + offsets[axis]
            addresses = addresses + at * self.strides[axis]
            if axis in checked:
                inside = (at >= 0) & (at < self.shape[axis])
                mask = inside if mask is None else mask & inside
        return addresses, mask


class block_pointer(Block):
    """The result of `make_block_ptr`: for `load`, `store` and `advance`. Its dtype is that of its addresses."""

    @property
    def dtype(self) -> ty.PointerType:
        return self.base.dtype

    def __girih_load__(self, boundary_check: Any, padding: Any, volatile: bool) -> tensor:
        addresses, mask = self._tile(self.offsets, self._axes(boundary_check))
        other = None if mask is None else _padding(static(padding, "the padding"))
        return memory.load(addresses, mask, other, volatile=volatile)

    def __girih_store__(self, value: Any, boundary_check: Any) -> None:
        addresses, mask = self._tile(self.offsets, self._axes(boundary_check))
        memory.store(addresses, value, mask)

    def _axes(self, boundary_check: Any) -> tuple[int, ...]:
        axes = static(boundary_check, "boundary_check")
        axes = tuple(static(a, "boundary_check") for a in (axes if isinstance(axes, (tuple, list)) else (axes,)))
        if any(not 0 <= a < len(self.window) for a in axes):
            raise fail(f"boundary_check must name dimensions 0 to {len(self.window) - 1}, not {list(axes)}", code=Code.INTEGER)
        return axes


def _padding(option: str) -> float:
    options = {"": 0.0, "zero": 0.0, "nan": float("nan")}
    if option not in options:
        raise fail(f'the padding must be "zero" or "nan", not {option!r}', code=Code.CALL)
    return options[option]


def _block(kind: type, base: Any, shape: Any, strides: Any, offsets: Any, window: Any) -> Any:
    base = memory.addresses(base, "a block")
    if base.shape:
        raise fail(f"the base of a block must be one address, not {base.describe()}", code=Code.ADDRESS)
    window = check_shape(window, "the block's shape")
    parts = [tuple(_index(v) for v in unwrap(group)) for group in (shape, strides, offsets)]
    if any(len(p) != len(window) for p in parts):
        lengths = ", ".join(str(len(p)) for p in (*parts, window))
        raise fail(f"shape, strides, offsets and the block's shape have {lengths} dimensions; they must agree", code=Code.SHAPE)
    return kind(base, *parts, window)


@builtin
def make_block_ptr(base, shape, strides, offsets, block_shape, order=None):
    """A window of `block_shape` at `offsets` of an array of `shape` and `strides`, counted in elements.

    Example:
        >>> p = girih.make_block_ptr(floats, shape=(4, 3), strides=(3, 1), offsets=(0, 0),
        ...                          block_shape=(2, 4), order=(1, 0))
        >>> girih.load(p, boundary_check=(1,))
        [[0, 1, 2, 0], [3, 4, 5, 0]] : float32[2, 4]
    """
    return _block(block_pointer, base, shape, strides, offsets, block_shape)


@builtin
def advance(base, offsets):
    """The block pointer moved by `offsets`, one per dimension.

    Example:
        >>> p = girih.make_block_ptr(floats, (4, 4), (4, 1), (0, 0), (1, 4), (1, 0))
        >>> p = girih.advance(p, (2, 0))
        >>> girih.load(p)
        [[8, 9, 10, 11]] : float32[1, 4]
    """
    base = unwrap(base)
    if not isinstance(base, block_pointer):
        raise fail("advance moves a block pointer, made by `girih.make_block_ptr`", code=Code.CALL)
    by = tuple(_index(o) for o in unwrap(offsets))
    if len(by) != len(base.window):
        raise fail(f"a block of {len(base.window)} dimensions needs as many offsets, not {len(by)}", code=Code.CALL)
    moved = tuple(o + d for o, d in zip(base.offsets, by))
    return block_pointer(base.base, base.shape, base.strides, moved, base.window)


class tensor_descriptor(Block):
    """The result of `make_tensor_descriptor`: `d.load(offsets)` and `d.store(offsets, value)`, bounds checked."""

    @property
    def dtype(self) -> ty.DType:
        return self.base.dtype.element_ty

    @property
    def block_shape(self) -> tuple[int, ...]:
        return self.window

    def _at(self, offsets: Any) -> tuple[tensor, tensor | None]:
        offsets = tuple(_index(o) for o in unwrap(offsets))
        if len(offsets) != len(self.window):
            raise fail(f"a descriptor of {len(self.window)} dimensions needs as many offsets, not {len(offsets)}", code=Code.CALL)
        return self._tile(offsets, range(len(self.window)))

    def load(self, offsets):
        """The block at `offsets`; outside of the array 0, or NaN with the padding option "nan"."""
        addresses, mask = self._at(offsets)
        return memory.load(addresses, mask, self.padding)

    def store(self, offsets, value):
        """Writes the block at `offsets`; nothing outside of the array."""
        addresses, mask = self._at(offsets)
        memory.store(addresses, value, mask)

    load.__girih_builtin__ = store.__girih_builtin__ = True


@builtin
def make_tensor_descriptor(base, shape, strides, block_shape, padding_option="zero"):
    """An array of `shape` and `strides`, read and written by blocks of `block_shape`.

    Example:
        >>> d = girih.make_tensor_descriptor(floats, shape=(3, 5), strides=(5, 1), block_shape=(2, 2))
        >>> d.load([1, 4])
        [[9, 0], [14, 0]] : float32[2, 2]
        >>> d.store([0, 0], girih.full((2, 2), 7.0, girih.float32))
        >>> d.load([0, 0])
        [[7, 7], [7, 7]] : float32[2, 2]
    """
    window = check_shape(block_shape, "the block's shape")
    made = _block(tensor_descriptor, base, shape, strides, (0,) * len(window), window)
    made.padding = _padding(static(padding_option, "the padding"))
    if made.padding and not made.dtype.is_floating():
        raise fail(f'the padding "nan" is for floats, not for {made.dtype}', 'use "zero"', code=Code.ELEMENT_TYPE)
    return made


@builtin
def load_tensor_descriptor(desc, offsets):
    """`desc.load(offsets)`.

    Example:
        >>> d = girih.make_tensor_descriptor(floats, (4, 4), (4, 1), (2, 2))
        >>> girih.load_tensor_descriptor(d, [2, 2])
        [[10, 11], [14, 15]] : float32[2, 2]
    """
    return unwrap(desc).load(offsets)


@builtin
def store_tensor_descriptor(desc, offsets, value):
    """`desc.store(offsets, value)`.

    Example:
        >>> d = girih.make_tensor_descriptor(floats, (4, 4), (4, 1), (2, 2))
        >>> girih.store_tensor_descriptor(d, [0, 0], girih.full((2, 2), 7.0, girih.float32))
        >>> d.load([0, 0])
        [[7, 7], [7, 7]] : float32[2, 2]
    """
    return unwrap(desc).store(offsets, value)
