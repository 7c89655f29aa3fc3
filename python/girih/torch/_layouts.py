"""Operations whose results lie otherwise in PyTorch's kernels than fake tensors say.

In: an operation while a functional graph is traced. Out: the same operation and, where its fake result has other strides than eager
mode gives, a copy that has those: what follows in the graph takes its layout from there.

A function here takes the place of PyTorch's decomposition of an operation. It gives NotImplemented where PyTorch asks it for the
operation that it traces itself.
"""

from __future__ import annotations

import threading

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

__all__ = ["as_eager"]

aten = torch.ops.aten


def rows(size) -> tuple:
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step = step * n
    return tuple(reversed(strides))


def like_if_channels_last(x, *_rest):
    """Channels-last where the operand is; else rows."""
    if x.dim() in (4, 5) and torch._prims_common.suggest_memory_format(x) is not torch.contiguous_format:
        return torch.empty_like(x).stride()
    return rows(x.shape)


def rolled(x, _shifts, dims=()):
    """Channels-last where the operand is; rolled over all elements, rows."""
    return like_if_channels_last(x) if dims else rows(x.shape)


def elementwise(*operands, **_named):
    """As of a sum, whose shapes and strides PyTorch computes in C++, by the rules of its kernels."""
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    total = tensors[0]
    for other in tensors[1:]:
        total = torch.add(total, other)
    return torch.add(total, 1).stride()


#: What gives the strides of the first result, by operation.
STRIDES = {
    "roll": rolled,
    "channel_shuffle": like_if_channels_last,
    "native_channel_shuffle": like_if_channels_last,
    "native_batch_norm": like_if_channels_last,
    "_native_batch_norm_legit": like_if_channels_last,
    "_native_batch_norm_legit_no_training": like_if_channels_last,
    **dict.fromkeys(
        ("logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "heaviside", "xlogy", "ldexp", "copysign",
         "floor_divide", "div"),
        elementwise,
    ),
}  # fmt: skip


class AsEager:
    """An operation, and what its result should lie like."""

    def __init__(self, op, strides, pieces):
        """`pieces` decomposes the operation, where PyTorch must."""
        self.op, self.strides, self.pieces = op, strides, pieces
        self.inner = threading.local()

    def __call__(self, *args, **kwargs):
        if getattr(self.inner, "asked", False):
            return NotImplemented
        self.inner.asked = True
        try:
            result = (self.pieces or self.op)(*args, **kwargs)
        finally:
            self.inner.asked = False
        first = result[0] if isinstance(result, tuple) else result
        with disable_proxy_modes_tracing(), torch.no_grad():
            wanted = self.strides(*args, **kwargs)
        lies = placed(first, wanted)
        return (lies, *result[1:]) if isinstance(result, tuple) else lies


def placed(tensor, strides):
    """The tensor itself where it has these strides, else a copy."""
    if all(torch.fx.experimental.symbolic_shapes.statically_known_true(a == b) for a, b in zip(tensor.stride(), strides)):
        return tensor
    order = sorted(range(tensor.dim()), key=lambda axis: (-hint(strides[axis]), axis))
    copy = torch.ops.aten.clone.default(tensor.permute(order), memory_format=torch.contiguous_format)
    return copy.permute([order.index(axis) for axis in range(tensor.dim())])


def hint(n) -> int:
    return n if isinstance(n, int) else n.node.hint


def as_eager(pieces) -> dict:
    """The functions by operation; `pieces` are PyTorch's decompositions."""
    found = {}
    for name, strides in STRIDES.items():
        packet = getattr(aten, name)
        for overload in packet.overloads():
            op = getattr(packet, overload)
            tensors = [a for a in op._schema.arguments if isinstance(a.type, torch.TensorType)]
            if "out" in overload or op._schema.is_mutable or not tensors or op._schema.arguments[0].name != tensors[0].name:
                continue
            if name == "div" and overload not in ("Tensor_mode",):
                continue
            found[op] = AsEager(op, strides, pieces.get(op))
    return found
