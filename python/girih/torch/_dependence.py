"""Which of its inputs each result of a graph is computed from, and traces that lost some.

In: the graph that Dynamo captured, and the graph of ATen operations that was traced from it with operations kept whole. Out: nothing,
or `Doubtful`, where results of the second are constants, or inputs are not read, though the first uses them:

    y = func.grad(lambda w: linear(x, w).sum())(w)    -->    y = full([4, 3], 0)

That is right where a derivative is constant, and a fault of ours where something that is differentiated was kept whole. `lost` tells
one from the other by a trace in which nothing was kept whole, which is PyTorch's own.
"""

from __future__ import annotations

import torch

from . import _graph

__all__ = ["Doubtful", "look", "lost", "reads"]

# Operations whose results have something of their first operand, and none of its elements.
LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_ones", "new_full", "rand_like", "randn_like")


class Doubtful(Exception):
    """A trace whose results do not depend on inputs that are used; `found` is what `reads` says of it."""

    def __init__(self, found):
        super().__init__("results do not depend on inputs that are used")
        self.found = found


def reads(graph: torch.fx.Graph) -> list[frozenset[int]]:
    """For each tensor that a graph gives the inputs, by their numbers from the last one back, whose elements it is computed from.

    (The parameters of a module come first in a trace.)
    """
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    number = {n: len(inputs) - at for at, n in enumerate(inputs) if is_tensor(n)}

    found: dict[torch.fx.Node, frozenset[int]] = {}
    for node in graph.nodes:
        of: frozenset[int] = frozenset()
        if node.op == "placeholder":
            of = frozenset({number[node]} if node in number else ())
        elif not is_shape(node):
            of = of.union(*(found[n] for n in node.all_input_nodes))
        found[node] = of
    output = next(n for n in graph.nodes if n.op == "output")
    return [found[n] for n in torch.utils._pytree.tree_leaves(output.args) if isinstance(n, torch.fx.Node) and is_tensor(n)]


def is_tensor(node) -> bool:
    value = node.meta.get("val", node.meta.get("example_value"))
    return isinstance(value, torch.Tensor) or value is None


def is_shape(node) -> bool:
    """True if a node reads no element of its operands."""
    name = getattr(node.target, "_opname", getattr(node.target, "__name__", node.target))
    return name in LIKE or node.op == "call_function" and _graph.is_scalar(node)


def look(captured: torch.fx.Graph, traced: torch.fx.Graph) -> None:
    """Raises `Doubtful` if a trace reads fewer inputs than the graph that it was made from."""
    wanted, found = reads(captured), reads(traced)
    unread = frozenset().union(*wanted) - frozenset().union(*found)
    # Written inputs and results that are views make other results of the trace.
    constant = len(wanted) == len(found) and any(w and not f for w, f in zip(wanted, found))
    if unread or constant:
        raise Doubtful(found)


def lost(found: list[frozenset[int]], pieces: list[frozenset[int]]) -> bool:
    """True if a trace reads fewer inputs than the trace in which nothing was kept whole."""
    if len(found) != len(pieces):
        return True
    return any(of_pieces - of_whole for of_whole, of_pieces in zip(found, pieces))
