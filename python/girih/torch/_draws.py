"""Random numbers in the order in which eager mode draws them.

PyTorch fills a tensor in the order of its memory: of a transposed one, columns first. When it makes writes functional, `bernoulli_`
becomes `aten.bernoulli`, whose result is row-major and drawn so. Here such a write draws into a row-major tensor whose axes stand in
the order of the memory, and permutes that tensor:

    x.bernoulli_(p)     x: [5, 6], strides 1, 5    -->    x.copy_(bernoulli(empty(6, 5), p).permute(1, 0))

`free_order` does that in graphs that Dynamo captured; `dropout` is PyTorch's composite in those of ATen.
"""

from __future__ import annotations

import math

import torch

__all__ = ["dropout", "free_order"]


def order(x) -> list[int]:
    """The axes of a tensor from the one of the widest steps to the one of the narrowest, as its memory has them.

    Steps are compared by what they were when the graph was captured: Dynamo guards the order of the axes.
    """
    return sorted(range(x.dim()), key=lambda axis: (-hint(x.stride(axis)) if hint(x.shape[axis]) != 1 else 0, axis))


def hint(extent) -> int:
    return extent if isinstance(extent, int) else extent.node.hint


def bernoulli(like, p):
    """A tensor of zeros and ones in the layout of another, drawn in the order of its memory."""
    axes = order(like)
    rows = like.new_empty([like.shape[axis] for axis in axes])
    if isinstance(p, torch.Tensor):
        drawn = torch.ops.aten.bernoulli.Tensor(rows, p.expand(like.shape).permute(axes))
    else:
        drawn = torch.ops.aten.bernoulli.p(rows, p)
    return drawn.permute([axes.index(axis) for axis in range(len(axes))])


def dropout(x, p, train):
    """`aten.native_dropout`, with the mask drawn as PyTorch's kernel draws it."""
    if train is False:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = bernoulli(torch.empty_like(x, dtype=torch.bool), 1 - p)
    return x * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


def bernoulli_(x, p=0.5, *, generator=None):
    """`x.bernoulli_(p)`."""
    if generator is not None:
        return x.bernoulli_(p, generator=generator)
    with torch.no_grad():
        drawn = bernoulli(x.detach(), p)
    return x.copy_(drawn)


def alpha_dropout(x, p=0.5, training=False, inplace=False):
    """`torch.alpha_dropout`; see Klambauer et al., "Self-Normalizing Neural Networks"."""
    if not training or p == 0:
        return x
    if p == 1:
        dropped = x * x.new_zeros(())
        return x.copy_(dropped) if inplace else dropped
    alpha = 1.7580993408473766
    a = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    noise = bernoulli(torch.empty_like(x), 1 - p)
    y = x * (noise * a) + ((noise + -1) * (alpha * a) + alpha * a * p)
    return x.copy_(y) if inplace else y


def alpha_dropout_(x, p, train):
    return alpha_dropout(x, p, train, True)


METHODS = {"bernoulli_": bernoulli_}
FUNCTIONS = {
    torch.Tensor.bernoulli_: bernoulli_, torch.alpha_dropout: alpha_dropout, torch.alpha_dropout_: alpha_dropout_,
    torch.nn.functional.alpha_dropout: alpha_dropout,
}  # fmt: skip


def free_order(module: torch.fx.GraphModule) -> None:
    """Makes writes of random zeros and ones draw in the order of the tensor's memory, in a graph of Dynamo's and in those it calls."""
    for part in module.modules():
        graph = getattr(part, "graph", None)
        if not isinstance(part, torch.fx.GraphModule):
            continue
        changed = False
        for node in graph.nodes:
            if node.op == "call_method" and node.target in METHODS:
                node.op, node.target, changed = "call_function", METHODS[node.target], True
            elif node.op == "call_function" and node.target in FUNCTIONS:
                node.target, changed = FUNCTIONS[node.target], True
        if changed:
            part.recompile()
