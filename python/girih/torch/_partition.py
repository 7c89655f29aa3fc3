"""Which nodes of a graph Girih computes, and the graph split accordingly.

In: a functional FX graph of ATen operations. Out: either "all of it", or the same graph where runs of supported nodes
have become submodules, and the rest is left to PyTorch.

Nodes get a level: supported ones an even, others an odd one, not below those they depend on. The supported nodes of one
level are a part. Nodes that draw random numbers keep their order.
"""

from __future__ import annotations

import operator
import warnings

import torch
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from girih import _library

from . import _graph
from ._extents import Inexpressible, extent

__all__ = ["lift_sizes", "parts", "refusals", "warn", "warn_once"]

_girih = _library.extension()

# Operations that move no data and compute nothing; a part that has only these is left to PyTorch.
VIEWS = {
    "alias", "as_strided", "clone", "contiguous", "detach", "expand", "lift_fresh_copy", "permute", "reshape", "select",
    "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view", "_unsafe_view",
    "_to_copy", "copy",
}  # fmt: skip

_warned: set[str] = set()


def warn_once(operation: str, reason: str) -> None:
    """One warning for each operation in a process."""
    if operation in _warned:
        return
    _warned.add(operation)
    warn(f"{operation} runs in PyTorch: {reason}")


def warn(message: str) -> None:
    # The line that called `torch.compile`d code is many frames away, so no line of the user's would be right.
    warnings.warn(f"girih: {message}", stacklevel=3)


def operation(node) -> str:
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return f"{target.namespace}.{target._opname}"
    return getattr(target, "__name__", str(target))


def refusals(module: torch.fx.GraphModule, parameters=()) -> tuple[_graph.Document, dict[torch.fx.Node, str]]:
    """The graph as JSON, and the nodes that Girih does not compute, with the reasons."""
    document = _graph.document(module, parameters)
    refused = dict(document.refused)
    for position, message in _girih.torch_refusals(document.text()):
        refused[document.nodes[position]] = message
    return document, refused


def is_random(node) -> bool:
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags or (node.op == "call_function" and node.is_impure())


def lift_sizes(module: torch.fx.GraphModule) -> None:
    """Computes every integer that is made of sizes at the top, from the symbols alone, so that no part waits for it."""
    graph = module.graph
    leaves = {}
    last = None
    for node in graph.nodes:
        if node.op != "placeholder":
            break
        last = node
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
            leaves.setdefault(value.node.expr.name, node)
    if last is None:
        return
    functions = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
        "min": torch.sym_min, "max": torch.sym_max,
    }  # fmt: skip
    made: dict[str, torch.fx.Node] = {}

    def build(e, value):
        if isinstance(e, int):
            return e
        if isinstance(e, str):
            return leaves[e]
        key = repr(e)
        if key not in made:
            node = graph.call_function(functions[e[0]], (build(e[1], None), build(e[2], None)))
            made[key] = node
        if value is not None:
            made[key].meta["val"] = value
        return made[key]

    for node in list(graph.nodes):
        if node.op != "call_function" or not _graph.is_scalar(node):
            continue
        value = node.meta["val"]
        try:
            e = extent(value)
            with graph.inserting_before(last.next):
                new = build(e, value)
        except (Inexpressible, KeyError):
            continue
        if new is node:
            continue
        if isinstance(new, torch.fx.Node):
            node.replace_all_uses_with(new)
        else:
            for user in list(node.users):
                user.args = torch.fx.map_arg(user.args, lambda a, n=node, v=new: v if a is n else a)
                user.kwargs = torch.fx.map_arg(user.kwargs, lambda a, n=node, v=new: v if a is n else a)
        graph.erase_node(node)
    # What was built for larger expressions may come after what uses it.
    drawn = [n.name for n in graph.nodes if n.op == "call_function" and is_random(n)]
    keep_order(module, drawn)
    module.recompile()


def levels(module, refused) -> dict[torch.fx.Node, int]:
    """A level for every node; see the module."""
    level: dict[torch.fx.Node, int] = {}
    last_random = 0
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            level[node] = 0
            continue
        if node.op == "output":
            continue
        base = max((level[n] for n in node.all_input_nodes), default=0)
        if _graph.is_scalar(node) and not any(n in refused for n in node.all_input_nodes):
            level[node] = base
        elif _graph.is_getitem(node):
            level[node] = level[node.args[0]]
        elif node in refused:
            if is_random(node):
                base = max(base, last_random)
            level[node] = base if base % 2 else base + 1
            if is_random(node):
                last_random = level[node]
        else:
            level[node] = base + base % 2
    return level


def parts(module: torch.fx.GraphModule, refused: dict[torch.fx.Node, str], prefix: str) -> torch.fx.GraphModule:
    """The module with its supported nodes in submodules named `prefix` and a number."""
    level = levels(module, refused)
    groups: dict[int, dict[torch.fx.Node, None]] = {}
    for node in module.graph.nodes:
        supported = node.op == "call_function" and node not in refused and not _graph.is_scalar(node)
        if supported and _graph.is_getitem(node) and node.args[0] in refused:
            supported = False
        if supported:
            groups.setdefault(level[node], {})[node] = None
    kept = [group for group in groups.values() if any(computes(node) for node in group)]
    drawn = [n.name for n in module.graph.nodes if n.op == "call_function" and is_random(n)]
    module = fuse_by_partitions(module, kept, prefix=prefix)
    keep_order(module, drawn)
    return module


def keep_order(module, drawn) -> None:
    """Sorts the graph so that the nodes named in `drawn` follow each other as given: they draw random numbers."""
    before = dict(zip(drawn[1:], drawn))
    by_name = {n.name: n for n in module.graph.nodes}
    *nodes, output = module.graph.nodes
    needs = {n: set(n.all_input_nodes) for n in nodes}
    for name, earlier in before.items():
        if name in by_name and earlier in by_name:
            needs[by_name[name]].add(by_name[earlier])
    done: set[torch.fx.Node] = set()
    while nodes:
        ready = [n for n in nodes if needs[n] <= done]
        for node in ready:
            output.prepend(node)
        done.update(ready)
        nodes = [n for n in nodes if n not in done] if ready else []
    module.recompile()


def computes(node) -> bool:
    return not _graph.is_getitem(node) and node.target._opname not in VIEWS
