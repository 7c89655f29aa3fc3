"""Which nodes of a graph Girih computes, and the graph split accordingly.

In: a functional FX graph of ATen operations. Out: either "all of it", or the same graph where runs of supported nodes
have become submodules, and the rest is left to PyTorch.

Nodes get a level: supported ones an even, others an odd one, not below those they depend on. The supported nodes of one
level are a part. Where that gives fewer parts, nodes wait for the level at which their results are needed. Nodes that draw
random numbers keep their order, and wait for nothing but sizes: `aten.bernoulli(x, p)` draws one number for each element of `x`,
whatever its value.
"""

from __future__ import annotations

import functools
import operator
import warnings

import sympy
import torch
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from girih import _library

from . import _graph, _guards, _recurrent, _scalars
from ._extents import Inexpressible, extent

__all__ = ["free_draws", "hand_symbols", "lift_sizes", "parts", "refusals", "warn", "warn_once"]

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
    target = node.args[0] if node.target is drawn else node.target
    if isinstance(target, torch._ops.OpOverload):
        return f"{target.namespace}.{target._opname}"
    return getattr(target, "__name__", str(target))


def refusals(
    module: torch.fx.GraphModule, parameters=(), fix: bool = False, ranges=None, as_they_lie: bool = False
) -> tuple[_graph.Document, dict[torch.fx.Node, str]]:
    """The graph as JSON, and the nodes that Girih does not compute, with the reasons.

    With `fix`, what changes from call to call is taken as it is now, where an operation is supported then: an integer that
    decides what the operation is (a stride, a number of groups), that two extents are equal, the factors of a product that
    PyTorch guards to be a number, and that an extent that is divided is a multiple. PyTorch guards it, and compiles anew
    where it is otherwise. The windows of convolutions are always numbers then. For `as_they_lie`, see `_graph.document`.
    """
    if fix:
        number_windows(module)
    document, refused = examined(module, parameters, ranges=ranges, as_they_lie=as_they_lie)
    for propose in (values, equalities, both, factors, multiples, multiples_of_values) if fix else ():
        proposed = {node: propose(node) for node in refused}
        trial = {expr: to for facts in proposed.values() for expr, (to, _) in facts.items()}
        if not trial:
            continue
        _, still = examined(module, parameters, trial)
        helped = [facts for node, facts in proposed.items() if node not in still]
        for facts in helped:
            for _, guard in facts.values():
                guard()
        if any(helped):
            document, refused = examined(module, parameters, as_they_lie=as_they_lie)
    return document, refused


def values(node) -> dict[sympy.Expr, tuple]:
    """The symbols among the integers that a node is given, with their values, and what makes PyTorch guard these."""
    found = {}
    for operand in node.all_input_nodes:
        value = operand.meta.get("val")
        if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol and value.node.has_hint():
            # Asking for the value is what makes PyTorch guard it.
            found[value.node.expr] = sympy.Integer(value.node.hint), functools.partial(int, value)
    return found


def number_windows(module: torch.fx.GraphModule) -> None:
    """Makes the extents of convolutions' windows numbers, which PyTorch guards: weights that are arguments have symbols there too."""
    for node in module.graph.nodes:
        weight = node.args[1] if "conv" in getattr(node.target, "_opname", "") and len(node.args) > 1 else None
        value = weight.meta.get("val") if isinstance(weight, torch.fx.Node) else None
        for extent in value.shape[2:] if isinstance(value, torch.Tensor) else ():
            if isinstance(extent, torch.SymInt) and extent.node.has_hint():
                int(extent)


def equalities(node) -> dict[sympy.Expr, tuple]:
    """Maps symbols to the expressions that they equal if extents of a node's operands that have the same value now stay equal, each
    with a guard: `s53 + 1` and `s40 + 1` give `s40` = `s53`."""
    first: dict[int, torch.SymInt] = {}
    found = {}
    for operand in node.all_input_nodes:
        value = operand.meta.get("val")
        for extent in value.shape if isinstance(value, torch.Tensor) else ():
            if not isinstance(extent, torch.SymInt) or not extent.node.has_hint():
                continue
            other = first.setdefault(extent.node.hint, extent)
            if solved := solution(extent.node.expr, other.node.expr, found):
                symbol, to = solved
                found[symbol] = to, functools.partial(lambda a, b: bool(a == b), other, extent)
    return found


def multiples(node, known=None) -> dict[sympy.Expr, tuple]:
    """The symbols that shapes of a node and of its operands divide by numbers, and that are multiples of these now; `known` says which
    symbols are numbers."""
    from torch.utils._sympy.functions import FloorDiv, Mod

    found = {}
    for extent in (e for n in (node, *node.all_input_nodes) for e in leaves_of(n.meta.get("val"))):
        env = extent.node.shape_env
        for quotient in extent.node.expr.atoms(FloorDiv):
            symbol, by = quotient.args
            by = by.subs(known or {})
            if symbol.is_Symbol and by.is_Integer and by > 1 and _scalars.example(Mod(symbol, by), env) == 0:
                rest = env.create_symintnode(Mod(symbol, by), hint=0)
                found[Mod(symbol, by)] = sympy.Integer(0), functools.partial(lambda rest: bool(rest == 0), rest)
    return found


def multiples_of_values(node) -> dict[sympy.Expr, tuple]:
    """As `values`, and the multiples of these."""
    found = values(node)
    return {**found, **multiples(node, {symbol: to for symbol, (to, _) in found.items()})} if found else {}


def solution(left: sympy.Expr, right: sympy.Expr, known=()) -> tuple[sympy.Symbol, sympy.Expr] | None:
    """Solves `left == right` for a symbol of `left` that is not known yet: the symbol and its value, or None if none can be
    isolated."""
    difference = sympy.expand(left - right)
    for symbol in sorted(left.free_symbols, key=str):
        if symbol in known or not difference.has(symbol):
            continue
        for sign in (1, -1):
            rest = sympy.expand(difference - sign * symbol)
            if not rest.has(symbol):
                return symbol, sympy.expand(-sign * rest)
    return None


def both(node) -> dict[sympy.Expr, tuple]:
    """The proposals of `values` and `equalities` for one node."""
    return {**equalities(node), **values(node)}


def factors(node) -> dict[sympy.Expr, tuple]:
    """The factors of products that PyTorch guards to be a number, where their symbols are in the shapes of a node's operands."""
    extents = [e for operand in node.all_input_nodes for e in leaves_of(operand.meta.get("val"))]
    symbols = {s for e in extents for s in e.node.expr.free_symbols}
    found = {}
    for env in {e.node.shape_env for e in extents}:
        for factor in _guards.factors(env):
            hint = _scalars.example(factor, env)
            if hint is not None and factor.free_symbols & symbols:
                number = env.create_symintnode(factor, hint=hint)
                found[factor] = sympy.Integer(hint), functools.partial(int, number)
    return found


def examined(module, parameters, fixed=None, **how) -> tuple[_graph.Document, dict[torch.fx.Node, str]]:
    """As `refusals`; `fixed` says for a trial what symbols, and other expressions, are, `how` what else `_graph.document` takes.

    Where something is refused, symbols are written as the multiples that PyTorch guards them to be, if that helps.
    """
    found = examined_as(module, parameters, fixed=fixed, **how)
    if all(not is_divisible(node) or is_random(node) for node in found[1]):
        return found
    other = examined_as(module, parameters, fixed=fixed, divided=True, **how)
    return other if len(other[1]) < len(found[1]) else found


def is_divisible(node) -> bool:
    """True if a symbol in a node's operands is known to be a multiple of a number."""
    extents = [e for operand in node.all_input_nodes for e in leaves_of(operand.meta.get("val"))]
    return any(e.node.expr.free_symbols & set(_guards.divisors(e.node.shape_env)) for e in extents)


def examined_as(module, parameters, **how) -> tuple[_graph.Document, dict[torch.fx.Node, str]]:
    document = _graph.document(module, parameters, **how)
    refused = dict(document.refused)
    for position, message in _girih.torch_refusals(document.text()):
        refused[document.nodes[position]] = message
    for node in refused:
        if is_collective(node):
            refused[node] = "processes exchange data, which PyTorch does"
        elif is_random(node):
            refused[node] = "PyTorch draws the random numbers" if draws(node) else "it does more than give a result"
    return document, refused


def is_collective(node) -> bool:
    """True if a node exchanges data between processes: an all-reduce, or the wait for one."""
    return isinstance(node.target, torch._ops.OpOverload) and "c10d" in node.target.namespace


def is_random(node) -> bool:
    """True if a node must keep its place among its like: it draws random numbers, or does more than give a result."""
    if node.target in _recurrent.SHAPES:
        return _recurrent.drops(node)
    if not drops(node):
        return False
    return draws(node) or (node.op == "call_function" and node.is_impure())


def draws(node) -> bool:
    """True if a node draws random numbers; those that check values, say, must keep their place likewise."""
    tags = getattr(node.target, "tags", ())
    return node.target is drawn or node.target in _recurrent.SHAPES or torch.Tag.nondeterministic_seeded in tags


def drops(node) -> bool:
    """False if a node's dropout is off: attention carries PyTorch's tag of random numbers even where its `dropout_p` is 0."""
    arguments = getattr(getattr(node.target, "_schema", None), "arguments", ())
    for at, argument in enumerate(arguments):
        if argument.name == "dropout_p":
            given = node.args[at] if at < len(node.args) else node.kwargs.get("dropout_p", 0.0)
            return given != 0.0
    return True


FUNCTIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "min": torch.sym_min, "max": torch.sym_max,
}  # fmt: skip


class Top:
    """Numbers made of sizes, computed at the top of a graph from the symbols alone."""

    def __init__(self, graph: torch.fx.Graph):
        self.graph = graph
        self.leaves: dict[str, torch.fx.Node] = {}
        self.made: dict[str, torch.fx.Node] = {}
        self.last = None
        for node in graph.nodes:
            if node.op != "placeholder":
                break
            self.last = node
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
                self.leaves.setdefault(value.node.expr.name, node)

    def node(self, value):
        """The node of a SymInt, or the int that it is; None where the symbols do not give it."""
        try:
            e = extent(value)
            if self.last is None:
                return e if isinstance(e, int) else None
            with self.graph.inserting_before(self.last.next):
                return self._build(e, value)
        except (Inexpressible, KeyError):
            return None

    def _build(self, e, value):
        if isinstance(e, int):
            return e
        if isinstance(e, str):
            return self.leaves[e]
        key = repr(e)
        if key not in self.made:
            parts = self._build(e[1], None), self._build(e[2], None)
            made = self.graph.call_function(FUNCTIONS[e[0]], parts)
            # Without its value a node is not a number to those who look at the graph.
            values = (part.meta["val"] if isinstance(part, torch.fx.Node) else part for part in parts)
            made.meta["val"] = FUNCTIONS[e[0]](*values)
            self.made[key] = made
        if value is not None:
            self.made[key].meta["val"] = value
        return self.made[key]


def drawn(op, size, stride, of, where, /, *args, **kwargs):
    """The result of an operation that draws a random number for each element of its operand, and reads none of them."""
    return op(torch.empty_strided(size, stride, dtype=of, device=where), *args, **kwargs)


# Operations whose results do not depend on the elements of their first operand.
DRAWS = {
    "bernoulli.p", "rand_like.default", "randn_like.default", "randint_like.default", "randint_like.low_dtype",
    "uniform.default", "normal_functional.default", "exponential.default", "geometric.default", "cauchy.default",
    "log_normal.default", "random.default", "random.from", "random.to",
}  # fmt: skip


def free_draws(module: torch.fx.GraphModule) -> None:
    """Makes nodes that draw random numbers depend on the sizes of their operand alone, not on its elements."""
    graph = module.graph
    top = Top(graph)
    for node in list(graph.nodes):
        name = f"{getattr(node.target, '_opname', '')}.{getattr(node.target, '_overloadname', '')}"
        if node.op != "call_function" or name not in DRAWS or len(node.all_input_nodes) != 1:
            continue
        source = node.args[0]
        value = source.meta.get("val") if isinstance(source, torch.fx.Node) else None
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            continue
        size, stride = ([top.node(n) for n in numbers] for numbers in (value.shape, value.stride()))
        if None in size or None in stride:
            continue
        with graph.inserting_before(node):
            operands = (node.target, size, stride, value.dtype, value.device, *node.args[1:])
            new = graph.call_function(drawn, operands, node.kwargs)
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)
        if not source.users and source.op == "call_function" and not is_random(source):
            graph.erase_node(source)
    module.recompile()


def lift_sizes(module: torch.fx.GraphModule) -> None:
    """Computes every integer that is made of sizes at the top, from the symbols alone, so that no part waits for it."""
    graph = module.graph
    top = Top(graph)
    if top.last is None:
        return
    for node in list(graph.nodes):
        if node.op != "call_function" or not _graph.is_scalar(node):
            continue
        new = top.node(node.meta["val"])
        if new is None:
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
    # Nodes that were built for larger expressions may come after their users.
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
            # PyTorch asks a tensor that a part computes for its size after that part.
            level[node] = base + 1 - base % 2 if any(is_supported(n, refused) for n in node.all_input_nodes) else base
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


def late(module, refused, level) -> dict[torch.fx.Node, int]:
    """The levels where supported nodes wait until their results are needed; those of the graph at its end."""
    supported = [n for n in module.graph.nodes if is_supported(n, refused)]
    end = max((level[n] for n in supported), default=0)
    waiting = dict(level)
    for node in reversed(supported):
        users = [u for u in node.users if u.op != "output"]
        # A refused node gets its operands from the levels below.
        needed = min((waiting[u] if is_supported(u, refused) else waiting[u] - 1 for u in users), default=end)
        waiting[node] = max(level[node], needed - needed % 2)
    for node in supported:
        if _graph.is_getitem(node):
            waiting[node] = waiting[node.args[0]]
    return waiting


def is_supported(node, refused) -> bool:
    if node.op != "call_function" or node in refused or _graph.is_scalar(node):
        return False
    return not (_graph.is_getitem(node) and node.args[0] in refused)


def grouped(module, refused, level) -> list[dict[torch.fx.Node, None]]:
    """The supported nodes of each level, where they compute something."""
    groups: dict[int, dict[torch.fx.Node, None]] = {}
    for node in module.graph.nodes:
        if is_supported(node, refused):
            groups.setdefault(level[node], {})[node] = None
    return [group for group in groups.values() if any(computes(node) for node in group)]


def parts(module: torch.fx.GraphModule, refused: dict[torch.fx.Node, str], prefix: str) -> torch.fx.GraphModule:
    """The module with its supported nodes in submodules named `prefix` and a number."""
    level = levels(module, refused)
    choices = [grouped(module, refused, level), grouped(module, refused, late(module, refused, level))]
    kept = min(choices, key=len)
    drawn = [n.name for n in module.graph.nodes if n.op == "call_function" and is_random(n)]
    module = fuse_by_partitions(module, kept, prefix=prefix)
    keep_order(module, drawn)
    return module


def hand_symbols(module: torch.fx.GraphModule, prefix: str) -> None:
    """Gives every submodule named `prefix` the values of all symbols in it: a part that is handed a tensor of `s // 2` rows would
    not know `s`."""
    graph = module.graph
    places = Places(graph)
    for node in list(graph.nodes):
        if node.op != "call_module" or not node.target.startswith(prefix):
            continue
        part = getattr(module, node.target)
        known = symbols_given(part.graph)
        first = next(iter(part.graph.nodes))
        for name, symbol in symbols_in(part.graph).items():
            outer = None if name in known else places.node(name, before=node)
            if outer is None:
                continue
            # Behind the operands that it has.
            last = [n for n in part.graph.nodes if n.op == "placeholder"]
            with part.graph.inserting_before(last[-1].next if last else first):
                inner = part.graph.placeholder(f"symbol_{name}")
            inner.meta["val"] = symbol
            node.args = (*node.args, outer)
        part.recompile()
    graph.lint()
    module.recompile()


def leaves_of(value) -> list:
    """The integers that change in what a node gives: itself, or the extents and the strides of tensors."""
    found = []
    for leaf in value if isinstance(value, (tuple, list)) else [value]:
        numbers = [leaf]
        if isinstance(leaf, torch.Tensor):
            numbers = [*leaf.shape, *(leaf.stride() if leaf.layout is torch.strided else ())]
        found += [n for n in numbers if isinstance(n, (torch.SymInt, torch.SymFloat, torch.SymBool))]
    return found


def symbols_in(graph: torch.fx.Graph) -> dict[str, torch.SymInt]:
    """The symbols of all that a graph computes, each as a number of PyTorch's."""
    found: dict[str, torch.SymInt] = {}
    for node in graph.nodes:
        for number in leaves_of(node.meta.get("val")):
            for symbol in number.node.expr.free_symbols:
                if symbol.name not in found:
                    found[symbol.name] = number_of(symbol, number.node.shape_env)
    return found


def number_of(symbol, env):
    """A symbol of PyTorch's as the number that its tracing has."""
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    hint = _scalars.hints(env).get(symbol)
    if symbol_is_type(symbol, (SymT.FLOAT, SymT.UNBACKED_FLOAT)):
        return env.create_symfloatnode(symbol, hint=None if hint is None else float(hint))
    return env.create_symintnode(symbol, hint=None if hint is None else int(hint))


def symbols_given(graph: torch.fx.Graph) -> set[str]:
    """The symbols that a graph's placeholders give as they are."""
    found = set()
    for node in graph.nodes:
        value = node.meta.get("val")
        numbers = value.shape if isinstance(value, torch.Tensor) else [value]
        for number in numbers if node.op == "placeholder" else ():
            if isinstance(number, (torch.SymInt, torch.SymFloat)) and number.node.expr.is_Symbol:
                found.add(number.node.expr.name)
    return found


class Places:
    """Where a graph has the values of symbols."""

    def __init__(self, graph: torch.fx.Graph):
        self.graph = graph
        #: For each symbol a number, or a tensor with the axis that is so long; the latter also where an extent is linear in it.
        self.direct: dict[str, tuple[torch.fx.Node, int | None]] = {}
        self.linear: dict[str, tuple[torch.fx.Node, int]] = {}
        self.made: dict[str, torch.fx.Node] = {}
        for node in graph.nodes:
            value = node.meta.get("val")
            extents = enumerate(value.shape) if isinstance(value, torch.Tensor) else [(None, value)]
            for axis, extent in extents:
                if not isinstance(extent, (torch.SymInt, torch.SymFloat)):
                    continue
                expr = extent.node.expr
                if expr.is_Symbol:
                    self.direct.setdefault(expr.name, (node, axis))
                elif axis is not None and len(expr.free_symbols) == 1 and solve(expr) is not None:
                    (symbol,) = expr.free_symbols
                    self.linear.setdefault(symbol.name, (node, axis))

    def node(self, name: str, before: torch.fx.Node):
        """The node of a symbol's value, which stands before another; None where the graph does not have it."""
        if name not in self.made:
            source, axis = self.direct.get(name) or self.linear.get(name) or (None, None)
            if source is None:
                return None
            self.made[name] = source if axis is None else self._size(name, source, axis)
        found = self.made[name]
        return found if found < before else None

    def _size(self, name, source, axis):
        after = source
        while source.op == "placeholder" and after.next.op == "placeholder":
            after = after.next
        with self.graph.inserting_after(after):
            size = self.graph.call_function(torch.ops.aten.sym_size.int, (source, axis))
        if name in self.direct:
            return size
        factor, rest = solve(source.meta["val"].shape[axis].node.expr)
        with self.graph.inserting_after(size):
            return self.graph.call_function(solved, (size, factor, rest))


def solve(expr) -> tuple[int, int] | None:
    """The factor and the rest of an expression that is linear in its only symbol."""
    (symbol,) = expr.free_symbols
    if not expr.is_polynomial(symbol) or sympy.degree(expr, symbol) != 1:
        return None
    factor, rest = sympy.Poly(expr, symbol).all_coeffs()
    return (int(factor), int(rest)) if factor.is_Integer and rest.is_Integer else None


def solved(size, factor, rest):
    return (size - rest) // factor


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
