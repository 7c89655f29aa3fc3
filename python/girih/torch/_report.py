"""A report on the graphs that `torch.compile` gave to Girih.

In: what the backend says of each graph while it compiles and runs it. Out: a `Report`, to read or to print::

    graph 1 (inference): 5 operations in 1 kernel; 1 operation in PyTorch
      2 parts: 3 operations in 1 kernel, 2 operations in 1 kernel
      model.py:12  aten.bincount  it is not supported

Records hold text and numbers only: no graph and no tensor is kept alive by them.
"""

from __future__ import annotations

import dataclasses

import torch

from . import _complex, _graph, _partition

__all__ = ["Graph", "Left", "Part", "Report", "report"]


@dataclasses.dataclass(frozen=True)
class Part:
    """The work of one compiled model: how many of the graph's operations it computes, with how many kernels."""

    operations: int
    kernels: int

    def __str__(self):
        return f"{counted(self.operations, 'operation')} in {counted(self.kernels, 'kernel')}"


@dataclasses.dataclass(frozen=True)
class Left:
    """An operation that PyTorch runs.

    Attributes:
        operation: its name, `aten.bincount`.
        reason: why Girih does not compute it, in one sentence.
        place: the line of the model that it comes from, `model.py:12`; None where PyTorch does not say.
        module: the path of the module that it stands in, `layers.0.attention`; empty at the top.
    """

    operation: str
    reason: str
    place: str | None
    module: str

    def __str__(self):
        where = "  ".join(filter(None, (self.place, self.module)))
        return f"{where or 'unknown line'}  {self.operation}  {self.reason}"


@dataclasses.dataclass
class Graph:
    """One graph of ATen operations.

    Attributes:
        kind: "inference", "forward" or "backward".
        parts: what Girih compiled; one where all of the graph is native.
        left: what stays in PyTorch.
        misfits: why runs of a compiled part went to PyTorch, where some did.
        warned: whether a warning said that PyTorch runs the graph, or a part of it.
    """

    kind: str
    parts: list[Part] = dataclasses.field(default_factory=list)
    left: list[Left] = dataclasses.field(default_factory=list)
    misfits: list[str] = dataclasses.field(default_factory=list)
    warned: bool = dataclasses.field(default=False, repr=False, compare=False)

    def compiled(self, module: torch.fx.GraphModule, kernels: int) -> None:
        self.parts.append(Part(sum(map(is_operation, module.graph.nodes)), kernels))

    def leave(self, node: torch.fx.Node, reason: str) -> None:
        if not is_operation(node) or _complex.bridges(node):
            return
        place = _graph.source_line(node)
        text = place and f"{place[0]}:{place[1]}"
        self.left.append(Left(_partition.operation(node), reason, text, _graph.module_path(node)))

    def misfit(self, reason: str) -> None:
        self.misfits.append(reason)
        self.warn(reason)

    def warn(self, reason: str) -> None:
        """Warns that PyTorch runs the graph or a part of it: once for each graph, however many of its parts fail."""
        if not self.warned:
            self.warned = True
            _partition.warn(f"a graph runs in PyTorch: {reason}")

    @property
    def native(self) -> bool:
        """True if nothing of the graph ran in PyTorch."""
        return not self.left and not self.misfits

    def __str__(self):
        total = Part(sum(p.operations for p in self.parts), sum(p.kernels for p in self.parts))
        lines = [str(total) if self.parts else "nothing is compiled"]
        if self.left:
            lines[0] += f"; {counted(len(self.left), 'operation')} in PyTorch"
        if len(self.parts) > 1:
            lines.append(f"{len(self.parts)} parts: {', '.join(map(str, self.parts))}")
        seen: dict[str, int] = {}
        for left in self.left:
            seen[str(left)] = seen.get(str(left), 0) + 1
        lines += [text if n == 1 else f"{text} ({n} times)" for text, n in seen.items()]
        lines += [f"a run went to PyTorch: {reason}" for reason in self.misfits]
        return "\n  ".join(lines)


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of `report`.

    Attributes:
        graphs: those compiled since the last report that cleared, in order.
        breaks: why Dynamo took functions apart into several graphs, and how often.
    """

    graphs: tuple[Graph, ...]
    breaks: dict[str, int]

    @property
    def native(self) -> bool:
        """True if everything that was compiled ran in Girih."""
        return not self.breaks and all(g.native for g in self.graphs)

    @property
    def left(self) -> list[Left]:
        """The operations of all graphs that stay in PyTorch."""
        return [left for g in self.graphs for left in g.left]

    def __str__(self):
        lines = [f"graph {i} ({g.kind}): {g}" for i, g in enumerate(self.graphs, 1)]
        lines += [f"Dynamo broke a graph ({n} times): {first_line(why)}" for why, n in self.breaks.items()]
        return "\n".join(lines) or "nothing was compiled"


_graphs: list[Graph] = []


def begin(kind: str) -> Graph:
    """The record of a graph that is about to be compiled."""
    _graphs.append(Graph(kind))
    return _graphs[-1]


def report(clear: bool = False) -> Report:
    """Says what became of the graphs compiled so far: what ran natively, in how many kernels, what stayed in PyTorch,
    why, and from which line of the model.

    Args:
        clear: begin anew, so that the next report does not tell these again.
    """
    from torch._dynamo.utils import counters

    found = Report(tuple(_graphs), dict(counters["graph_break"]))
    if clear:
        _graphs.clear()
        counters["graph_break"].clear()
    return found


def is_operation(node) -> bool:
    """True if a node is an operation on tensors, not arithmetic on sizes or an element of a result."""
    if node.op != "call_function" or node.target in _partition.FUNCTIONS.values():
        return False
    return not _graph.is_scalar(node) and not _graph.is_getitem(node)


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def first_line(text) -> str:
    return (str(text).splitlines() or [""])[0]
