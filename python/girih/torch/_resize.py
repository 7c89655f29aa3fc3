"""Resampling along axes whose extents are symbols.

In: `aten.upsample_*` while a graph is traced. Out: the same operation where the extents are known, for which Girih has constant
neighbours and weights; else pieces that compute both:

    y = upsample_bilinear2d(x [1, 3, h, w], [2*h, 2*w])    -->    PyTorch's decomposition
    y = _upsample_bilinear2d_aa(x, [a, b])                 -->    y = weights [a, h] @ x @ weights [b, w].T

A function here gives NotImplemented where the operation stays as it is.
"""

from __future__ import annotations

import functools

import torch
from torch.utils import _pytree as pytree

__all__ = ["is_symbolic", "pieces"]

aten = torch.ops.aten

NAMES = ("upsample_nearest2d", "upsample_bilinear2d")


def is_symbolic(name, args) -> bool:
    """True if an operation of this name resamples an axis of unknown extent, or to one."""
    if not name.startswith(("upsample_", "_upsample_")):
        return False
    spatial = [args[0].shape[2:], args[1:]]
    return any(isinstance(n, (torch.SymInt, torch.SymFloat)) for n in pytree.tree_leaves(spatial))


def pieces(decompositions) -> dict:
    """The functions by operation; `decompositions` are PyTorch's."""
    found = {}
    for name in NAMES:
        op = getattr(aten, name).default
        found[op] = functools.partial(apart, op, decompositions[op])
    for name, kernel in (("_upsample_bilinear2d_aa", triangle), ("_upsample_bicubic2d_aa", cubic)):
        op = getattr(aten, name).default
        found[op] = functools.partial(apart, op, functools.partial(antialiased, *kernel))
    return found


def apart(op, of_pieces, x, *args, **kwargs):
    return of_pieces(x, *args, **kwargs) if is_symbolic(op._opname, (x, *args, kwargs)) else NotImplemented


def antialiased(kernel, reach, x, output_size, align_corners, scales_h=None, scales_w=None):
    """Each axis by a product with its weights."""
    if align_corners:
        return NotImplemented
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    y = x.to(wide)
    height, width = (
        weights(kernel, reach, size, out, scale, y)
        for size, out, scale in zip(x.shape[2:], output_size, (scales_h, scales_w))
    )
    y = torch.matmul(height, torch.matmul(y, width.t())).to(x.dtype)
    return y.contiguous(memory_format=torch._prims_common.suggest_memory_format(x))


def weights(kernel, reach, size, out, scale, like):
    """`[out, size]`: how much of each element is in each of the result; rows sum to 1."""
    step = 1.0 / scale if scale is not None and scale > 0 else size / out
    stretch = torch.sym_max(step, 1.0)
    to = {"dtype": like.dtype, "device": like.device}
    centre = (torch.arange(out, **to) + 0.5) * step
    at = torch.arange(size, **to)
    first = (centre - reach * stretch + 0.5).trunc().clamp(min=0).unsqueeze(1)
    end = (centre + reach * stretch + 0.5).trunc().unsqueeze(1)
    found = kernel((at - centre.unsqueeze(1) + 0.5) / stretch)
    found = torch.where((at >= first) & (at < end), found, 0.0)
    return found / found.sum(1, keepdim=True)


def of_triangle(t):
    return (1 - t.abs()).clamp(min=0)


def of_cubic(t, a=-0.5):
    t = t.abs()
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return torch.where(t < 1, near, torch.where(t < 2, far, 0.0))


#: Weights by the distance from the centre, and how far they reach.
triangle, cubic = (of_triangle, 1.0), (of_cubic, 2.0)
