"""Tiles in another order: reversed, sorted, the greatest few.

Tiles are reversed through the block's memory. Sorts are made of exchanges between halves: a dimension of extent n is seen as n/2w pairs
of stretches of w elements.

Source: the sorting network of K. E. Batcher, "Sorting networks and their applications", 1968.
"""

from __future__ import annotations

from typing import Any

from ..frontend.errors import Code
from ..frontend import types as ty
from ..frontend.tensor import as_tensor, axis_of, broadcast_to, constant, fail, reshape_to, select, static, static_int, tensor, unwrap
from . import core, shared
from .core import builtin, part


def _pairs(x: tensor, axis: int, width: int) -> tuple[tensor, tensor]:
    """The first and the second stretches of `width` of each pair along `axis`, which becomes pairs, 1, `width`."""
    lead, n, tail = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    paired = reshape_to(x, (*lead, n // (2 * width), 2, width, *tail))
    return part(paired, axis + 1, 0, 1), part(paired, axis + 1, 1, 1)


def _dimension(x: tensor, dim: Any, who: str) -> int:
    if not x.shape:
        raise fail(f"{who} needs a tile, not {x.describe()}", code=Code.OPERAND)
    return x.ndim - 1 if unwrap(dim) is None else axis_of(x, dim)


@builtin(method=True)
def flip(x, dim=None):
    """The elements in reverse order along `dim`, the last dimension unless given; any type and shape.

    Example:
        >>> girih.flip(girih.arange(0, 4))
        [3, 2, 1, 0] : int32[4]
    """
    x = as_tensor(x)
    axis = _dimension(x, dim, "flip")
    kept = core.cast(x, ty.int64) if x.dtype.is_ptr() else x
    along = reshape_to(core.arange(0, x.shape[axis]), tuple(n if i == axis else 1 for i, n in enumerate(x.shape)))
    reversed_ = shared.gather(kept, broadcast_to(x.shape[axis] - 1 - along, x.shape), axis)
    return core.cast(reversed_, x.dtype)


def _exchanged(x: tensor, axis: int, width: int, falling: tensor | None) -> tensor:
    """Each pair of elements `width` apart in order: the lesser first, or last where `falling` holds for their pair."""
    first, second = _pairs(x, axis, width)
    swap = first > second
    if falling is not None:
        swap = swap ^ falling
    low, high = select(swap, second, first), select(swap, first, second)
    return reshape_to(core.cat(low, high, axis + 1), x.shape)


def _falling(x: tensor, axis: int, width: int, block: int) -> tensor:
    """Which pairs are in an odd block of `block` elements."""
    pairs = x.shape[axis] // (2 * width)
    odd = (core.arange(0, pairs) * (2 * width) // block) % 2 == 1
    return reshape_to(odd, (*(1 for _ in x.shape[:axis]), pairs, 1, 1, *(1 for _ in x.shape[axis + 1 :])))


@builtin(method=True)
def sort(x, dim=None, descending=False):
    """The elements in rising order along `dim`, the last dimension unless given; numbers of any type and shape.

    With `descending`, in falling order. Where NaNs are among them, the order is not specified.

    Example:
        >>> girih.sort(girih.arange(0, 8) * 5 % 8)
        [0, 1, 2, 3, 4, 5, 6, 7] : int32[8]
        >>> girih.sort(girih.arange(0, 4), descending=True)
        [3, 2, 1, 0] : int32[4]
    """
    x = as_tensor(x)
    axis = _dimension(x, dim, "sort")
    down = static(descending, "descending")
    n, block = x.shape[axis], 2
    while block <= n:
        width = block // 2
        while width:
            if block < n:
                falling = _falling(x, axis, width, block)
                falling = ~falling if down else falling
            else:
                falling = constant(True, ty.int1) if down else None
            x = _exchanged(x, axis, width, falling)
            width //= 2
        block *= 2
    return x


@builtin(method=True)
def topk(x, k, dim=None):
    """The `k` greatest elements along `dim`, the last dimension unless given, the greatest first; `k` a power of two.

    Example:
        >>> girih.topk(girih.arange(0, 8) * 5 % 8, 2)
        [7, 6] : int32[2]
    """
    x, k = as_tensor(x), static_int(k, "k")
    axis = _dimension(x, dim, "topk")
    if not ty.is_power_of_two(k) or k > x.shape[axis]:
        raise fail(f"k must be a power of two up to {x.shape[axis]}, not {k}", code=Code.INTEGER)
    return part(sort(x, axis, True), axis, 0, k)
