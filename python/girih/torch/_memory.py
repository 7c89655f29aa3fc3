"""How tensors lie in memory: the row-major array that has their elements, and the views that lead from it to them.

In: a fake tensor. Out: a `Memory`, whose views are written as operations of the graph, so that kernels read the tensor's own memory.

    [3, 4] with strides 1, 3                   -->  [4, 3], permuted
    [8, 5] with strides 40, 2 from element 7   -->  [8, 20, 2]: 5 of the 20 from the fourth on, the second of the 2
    [6, 5] with strides 0, 1                   -->  [5], expanded

A row-major tensor needs none. One whose axes overlap, or whose strides do not divide each other, has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ._layouts import is_rows, order_of as order_by_strides

__all__ = ["Memory", "inverse", "memory_of", "order_of"]


View = tuple[str, dict[str, Any], tuple]


@dataclass
class Memory:
    """A row-major array that has the elements of a tensor.

    Attributes:
        shape: its extents; those of SymInts are extents of the tensor.
        views: the operations of ATen that lead to the tensor, their attributes, and the shapes of what they give.
        strides: the tensor's; None where they change.
        order: of a dense tensor, its axes from the outermost in memory to the innermost; else None.
        outer: the tensor's axis that is the array's first.
        start: how many elements of the array lie before the tensor's first.
    """

    shape: tuple
    views: list[View]
    strides: tuple[int, ...] | None
    order: tuple[int, ...] | None = None
    outer: int = 0
    start: int = 0

    def extents(self, size) -> tuple[int, ...]:
        """The extents of the array of a tensor of this size."""
        if self.order is not None:
            return tuple(size[axis] for axis in self.order)
        return (size[self.outer], *self.shape[1:])

    def holds(self, tensor) -> bool:
        """True if a tensor lies so, and all of the array in its storage."""
        if self.order is not None:
            return tensor.stride() == self.strides or tensor.permute(self.order).is_contiguous()
        if any(n != 1 and found != step for n, found, step in zip(tensor.shape, tensor.stride(), self.strides)):
            return False
        first, count = tensor.storage_offset() - self.start, 1
        for n in self.extents(tensor.shape):
            count *= n
        return first >= 0 and (first + count) * tensor.itemsize <= tensor.untyped_storage().nbytes()

    def copied(self, tensor) -> torch.Tensor | None:
        """A copy that lies so; None where an axis would repeat elements that differ."""
        if self.order is not None:
            rows = tensor.permute(self.order)
            return (rows.clone() if rows.is_contiguous() else rows.contiguous()).permute(inverse(self.order))
        repeated = [step == 0 for step in self.strides]
        if any(r and n > 1 and step != 0 for r, n, step in zip(repeated, tensor.shape, tensor.stride())):
            return None
        made = torch.zeros(self.extents(tensor.shape), dtype=tensor.dtype, device=tensor.device)
        once = [1 if r else n for r, n in zip(repeated, tensor.shape)]
        made.as_strided(once, self.strides, self.start).copy_(tensor[tuple(slice(n) for n in once)])
        return made.as_strided(tensor.shape, self.strides, self.start)


def memory_of(value) -> Memory | None:
    """The memory of a fake tensor that is not row-major; asking adds no guard."""
    order = order_of(value.shape, value.stride())
    if order is None:
        return spaced(value)
    if order == tuple(range(value.dim())):
        return None
    strides = value.stride() if all(isinstance(step, int) for step in value.stride()) else None
    view = ("aten.permute", {"dims": inverse(order)}, tuple(value.shape))
    return Memory(tuple(value.shape[axis] for axis in order), [view], strides, order)


def order_of(shape, strides) -> tuple[int, ...] | None:
    """The axes of a dense tensor from the outermost in memory to the innermost, for all values of its symbols; else None."""
    axes = tuple(range(len(shape)))
    if is_rows(shape, strides, axes):
        return axes
    order = order_by_strides(strides, shape)
    return tuple(order) if is_rows(shape, strides, order) else None


def spaced(value) -> Memory | None:
    """The memory of a tensor with gaps between its elements, or with axes along which they repeat."""
    shape, strides = value.shape, value.stride()
    if not all(isinstance(step, int) for step in strides):
        return None
    # The axes along which other elements follow, outermost first; only the extent of the outermost may change.
    axes = sorted((a for a, n in enumerate(shape) if strides[a] != 0 and not is_int(n, 1)), key=lambda a: (-strides[a], a))
    if not axes or not all(isinstance(n, int) for a, n in enumerate(shape) if a != axes[0]):
        return None
    extents = [shape[axes[0]]]
    for outer, inner in zip(axes, axes[1:]):
        extent, rest = divmod(strides[outer], strides[inner])
        if rest or extent < shape[inner]:
            return None
        extents.append(extent)
    offset = value.storage_offset()
    first = places(offset if isinstance(offset, int) else 0, [strides[a] for a in axes])
    if any(at + shape[a] > n for at, a, n in zip(first[1:], axes[1:], extents[1:])):
        first = [0] * len(first)
    # The gap behind each element.
    gap = [strides[axes[-1]]] if strides[axes[-1]] != 1 else []
    views, part = [], [*extents, *gap]
    for dim, a in enumerate(axes):
        if dim and extents[dim] != shape[a]:
            part[dim] = shape[a]
            views.append(("aten.narrow", {"dim": dim, "start": first[dim], "length": shape[a]}, tuple(part)))
    if gap:
        views.append(("aten.select", {"dim": len(axes), "index": first[-1]}, tuple(part[:-1])))
    start = sum(at * strides[a] for at, a in zip(first, axes)) + first[-1]
    return Memory((*extents, *gap), views + spread(shape, strides, axes), strides, None, axes[0], start)


def places(offset, strides) -> list[int]:
    """The place of an element along each axis, which is 0 along the outermost, and in the gap behind the innermost."""
    found, offset = [0], offset % strides[0]
    for step in strides[1:]:
        found.append(offset // step)
        offset %= step
    return [*found, offset]


def spread(shape, strides, axes) -> list[View]:
    """The views from a tensor of `axes` alone, outermost first, to one of all axes."""
    views, kept = [], sorted(axes)
    if kept != axes:
        views.append(("aten.permute", {"dims": [axes.index(a) for a in kept]}, tuple(shape[a] for a in kept)))
    for axis in range(len(shape)):
        if axis not in axes:
            part = [n if a in axes else 1 for a, n in enumerate(shape) if a in axes or a <= axis]
            views.append(("aten.unsqueeze", {"dim": axis}, tuple(part)))
    if any(strides[a] == 0 and not is_int(n, 1) for a, n in enumerate(shape)):
        views.append(("aten.expand", {"size": [-1 if a in axes else n for a, n in enumerate(shape)]}, tuple(shape)))
    return views


def inverse(order) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


def is_int(n, value) -> bool:
    return isinstance(n, int) and n == value
