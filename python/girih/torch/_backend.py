"""The backend of `torch.compile`.

Dynamo captures the functions of a model as FX graphs; AOTAutograd turns each into functional graphs of ATen operations
(one for inference, or a forward and a backward one) and cares for mutated inputs and for views among the results. Here
each of these becomes kernels. Operations with a kernel of their own (`aten.linear`, `aten.rms_norm`, ...) are kept whole
in graphs for inference; in those for training PyTorch takes them apart, because gradients are defined on the pieces.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import torch

from . import _complex, _dependence, _draws, _graph, _layouts, _options, _partition, _recurrent, _report, _resize, _whole
from ._compiled import Compiled

__all__ = ["girih", "pieces"]


def pieces() -> dict:
    """Decompositions of operations that Girih does not know: PyTorch's, and those of operations that packages registered."""
    found = pieces_of_pytorch()
    # Operations of transformers and of inductor are there once these were imported.
    if grouped := getattr(getattr(torch.ops, "transformers", None), "grouped_mm_fallback", None):
        found = {**found, grouped.default: grouped_mm_of_experts}
    # Dynamo makes it of `addcmul_` and `addcdiv_`, which optimizers are made of.
    if fma := getattr(torch.ops.prims, "fma", None):
        found = {**found, fma.default: lambda a, b, c: a * b + c}
    return found


@functools.cache
def pieces_of_pytorch() -> dict:
    from torch._decomp import core_aten_decompositions, global_decomposition_table

    known = _whole.operations()
    table = core_aten_decompositions()
    # Random numbers are PyTorch's own: its decompositions would draw others than eager mode does.
    random = torch.Tag.nondeterministic_seeded
    found = {
        op: f for op, f in dict(table).items()
        if str(getattr(op, "_opname", "")) not in known and random not in getattr(op, "tags", ())
    }  # fmt: skip
    found[torch.ops.aten.native_dropout.default] = _draws.dropout
    found[torch.ops.aten._grouped_mm.default] = grouped_mm
    found.update(_resize.pieces(global_decomposition_table["post_autograd"]))
    return found


def traced() -> dict:
    """The functions that replace operations while a graph is traced: `pieces`, and those with the layouts of eager mode."""
    return {**pieces(), **lying_as_in_eager_mode()}


@functools.cache
def lying_as_in_eager_mode() -> dict:
    return _layouts.as_eager(pieces_of_pytorch())


def grouped_mm(a, b, offs=None, bias=None, out_dtype=None):
    """`aten._grouped_mm`: a product for each group; `offs` says where groups end along the axis that only one operand has, or both sum
    over."""
    dtype = out_dtype or a.dtype
    if offs is None:
        return torch.bmm(a, b).to(dtype)
    # The results after the last group are undefined.
    along = a.shape[-2] if a.dim() < b.dim() else a.shape[-1] if a.dim() == b.dim() else b.shape[-1]
    at = torch.arange(along, device=a.device).unsqueeze(1)
    group = (at >= offs).sum(1).clamp(max=offs.shape[0] - 1)
    if a.dim() < b.dim():
        y = torch.bmm(a.unsqueeze(1), b[group]).squeeze(1)
    elif a.dim() > b.dim():
        y = torch.bmm(a[group], b.t().unsqueeze(2)).squeeze(2).t()
    else:
        of_group = (group == torch.arange(offs.shape[0], device=a.device).unsqueeze(1)) & (at.squeeze(1) < offs[-1])
        y = torch.matmul(a * of_group.unsqueeze(1), b)
    return y.to(dtype)


def grouped_mm_of_experts(input, weight, offs):
    """`transformers.grouped_mm_fallback`: rows after the last group are 0."""
    at = torch.arange(input.shape[0], device=input.device).unsqueeze(1)
    y = grouped_mm(input, weight, offs)
    return torch.where(at < offs[-1:], y, torch.zeros((), dtype=y.dtype, device=y.device))


def girih(module: torch.fx.GraphModule, inputs, *, options: dict[str, Any] | None = None, **other):
    """Compiles a graph that Dynamo captured; `torch.compile(model, backend="girih")` calls it.

    Args:
        options: `threads`, `device` ("cpu", "eval", "sim" or "cuda"), `target`, `cache` (False: compile anew), `check`, `freeze`
            (True: parameters stay as they are); inductor's are accepted, and so is a `mode` of `torch.compile`.
    """
    from torch._dynamo.backends.common import aot_autograd

    options = _options.taken(options, **other)
    _draws.free_order(module)
    compilers = {kind: functools.partial(compile_graph, options, kind) for kind in ("forward", "backward", "inference")}

    def backend(inference):
        trace = aot_autograd(
            fw_compiler=compilers["forward"], bw_compiler=compilers["backward"], inference_compiler=inference,
            decompositions=traced(),
        )  # fmt: skip
        return _layouts.early_pieces()(trace)

    trains = torch.is_grad_enabled() and any(isinstance(i, torch.Tensor) and i.requires_grad for i in inputs)
    if trains:
        return backend(compilers["inference"])(module, inputs)

    def looked_at(traced, example):
        _dependence.look(module.graph, traced.graph)
        return compilers["inference"](traced, example)

    try:
        with _whole.kept():
            return backend(looked_at)(module, inputs)
    except _dependence.Doubtful as doubtful:
        if lost(doubtful.found, backend, module, inputs):
            record = _report.begin("inference")
            problem = "an internal error of girih: results that depend on inputs were traced as constants"
            record.misfit(problem)
            return module.forward
    with _whole.kept():
        return backend(compilers["inference"])(module, inputs)


def lost(found, backend, module, inputs) -> bool:
    """True if PyTorch's own trace of a graph reads more inputs than the trace in which operations were kept whole."""
    pieces = []

    def looking(traced, _inputs):
        pieces.append(_dependence.reads(traced.graph))
        return boxed(traced.forward)

    backend(looking)(module, inputs)
    return any(_dependence.lost(found, of) for of in pieces)


_recurrent.watch(girih)


def compile_graph(options, kind, module: torch.fx.GraphModule, _inputs):
    """A callable for a functional graph of ATen operations."""
    give_zeros_memory(module)
    pairs = of_reals(module, fix=kind != "backward")
    module = pairs.module if pairs else module
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    parameters = [placeholders[i] for i in static_inputs(kind) if i < len(placeholders)]
    parameters = [n for n in parameters if isinstance(n.meta.get("val"), torch.Tensor)]
    run = build(module, parameters, options, _report.begin(kind), {} if pairs else updated_inputs(kind))
    return boxed(pairs.around(run) if pairs else run)


def give_zeros_memory(module: torch.fx.GraphModule) -> None:
    """Makes tangents of zeros that have no memory ordinary zeros, once a graph is traced: kernels of PyTorch read those that are left.

    In the trace itself NaN times such a tangent is 0.
    """
    without = [n for n in module.graph.nodes if n.target is torch.ops.aten._efficientzerotensor.default]
    for node in without:
        node.target = torch.ops.aten.zeros.default
    if without:
        module.recompile()


def of_reals(module, fix) -> _complex.Pairs | None:
    """The graph with its complex tensors as pairs of reals; None where it has none, or where that goes wrong."""
    try:
        return _complex.as_pairs(module, pieces(), long_transforms=False, fix=fix)
    except Exception as e:
        _partition.warn_once("complex numbers", first_line(e))
        return None


def static_inputs(kind) -> list[int]:
    """The positions of parameters and buffers that the graph does not write to; none when weights are being trained."""
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    if kind != "inference" or metadata is None:
        return []
    mutated = set(metadata.mutated_inp_runtime_indices)
    return [i for i in metadata.static_input_indices if i not in mutated]


def updated_inputs(kind) -> dict[int, int]:
    """The positions of results that AOTAutograd copies to inputs, with those of the inputs."""
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    if kind != "inference" or metadata is None or metadata.tokens:
        return {}
    return dict(enumerate(metadata.mutated_inp_runtime_indices))


def boxed(run):
    """The calling convention of AOTAutograd: one list, which is emptied."""
    quick = run.quick if isinstance(run, OrPyTorch) else None

    def call(args):
        if quick is not None and (results := quick(args)) is not None:
            args.clear()
            return results
        given = list(args)
        args.clear()
        return run(*given)

    # AOTAutograd asks for it.
    call._boxed_call = True
    return call


def build(module, parameters, options, record, replaced=None):
    """A callable that takes what the graph's placeholders take and gives its results; `record` is told what became of it. For
    `replaced`, see `Compiled`.

    A failed compilation does not reach the user as an error: PyTorch runs the graph instead.
    """
    if not any(n.op == "call_function" and not _graph.is_scalar(n) for n in module.graph.nodes):
        return module.forward
    try:
        return compiled(module, parameters, options, record, replaced)
    except Exception as e:
        record.warn(first_line(e))
        for node in module.graph.nodes:
            record.leave(node, first_line(e))
        return module.forward


class OrPyTorch:
    """A compiled graph, with PyTorch for the runs that it cannot do.

    A run may fail for a reason of Girih's: sizes or numbers outside what was compiled, a tensor that is not what was
    predicted, memory. Or it may fail because it must: an index outside its tensor. PyTorch then runs the same graph, which
    gives the result or the error that the user expects. That is safe because graphs are functional: a run writes to
    nothing but its own results, and into inputs that its results replace: the same elements as the second run.
    """

    def __init__(self, run: Compiled, module: torch.fx.GraphModule, record: _report.Graph):
        self.run, self.module, self.record = run, module, record
        self.failed = False

    def quick(self, args):
        """As `Compiled.quick`; None also where that fails: the whole run will say why."""
        try:
            return self.run.quick(args)
        except Exception:
            return None

    def __call__(self, *args):
        try:
            return self.run(*args)
        except Exception as e:
            problem = first_line(e)
        results = self.module.forward(*args)
        if not self.failed:
            self.failed = True
            self.record.misfit(problem)
        return results


def compiled(module, parameters, options, record, replaced):
    """As `build`, but raises the error if the compilation fails."""
    # A backward graph cannot add guards any more.
    document, refused = _partition.refusals(module, parameters, fix=record.kind != "backward", as_they_lie=True)
    # An input that is used only because results are views of it may be of any kind.
    if all(n.op == "placeholder" for n in refused):
        try:
            run = Compiled(module, document, options, replaced=replaced)
            record.compiled(module, run.kernels)
            return OrPyTorch(run, module, record)
        except Exception as e:
            refused = blame(document, e)
            if not refused:
                raise
    for node, reason in refused.items():
        # Placeholders, collectives and views of complex tensors belong in PyTorch: they need no warning.
        if node.op != "placeholder" and not _partition.is_collective(node) and not _complex.bridges(node):
            _partition.warn_once(_partition.operation(node), reason)
    operations = {_partition.operation(n): why for n, why in refused.items() if n not in document.refused}
    return split(module, parameters, options, record, operations)


def blame(document, error) -> dict:
    """The nodes that an error of lowering is about: those of the first operation that it names."""
    named = re.search(r"\baten\.\w+", str(error))
    nodes = [n for n in document.nodes if named and _partition.operation(n) == named[0]]
    return dict.fromkeys(nodes, first_line(error))


def split(module, parameters, options, record, avoided):
    """The graph with what Girih knows in compiled parts; `avoided` are operations that were seen to fail, and why."""
    names = {n.name for n in parameters}
    # The graph is changed, and stays as it was for who else has it. Its nodes are new ones, so their refusals are asked
    # for again.
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    module = torch.fx.GraphModule(module, graph)
    _partition.free_draws(module)
    _partition.lift_sizes(module)
    parameters = [n for n in graph.nodes if n.op == "placeholder" and n.name in names]
    _, refused = _partition.refusals(module, parameters)
    for node in module.graph.nodes:
        if node.op == "call_function" and _partition.operation(node) in avoided:
            refused.setdefault(node, avoided[_partition.operation(node)])
    for node, reason in refused.items():
        record.leave(node, reason)
    module = _partition.parts(module, refused, "girih_")
    _partition.hand_symbols(module, "girih_")
    for node in module.graph.nodes:
        if node.op != "call_module" or not node.target.startswith("girih_"):
            continue
        part = getattr(module, node.target)
        inside = [n for n in part.graph.nodes if n.op == "placeholder"]
        kept = [n for n, outer in zip(inside, node.args) if isinstance(outer, torch.fx.Node) and outer.name in names]
        single = not isinstance(next(n for n in part.graph.nodes if n.op == "output").args[0], (tuple, list))
        setattr(module, node.target, Part(boxed(build(part, kept, options, record)), single))
    module.recompile()
    return module.forward


class Part(torch.nn.Module):
    """A compiled part, as a module that the rest of the graph calls."""

    def __init__(self, compiled, single):
        super().__init__()
        self.compiled, self.single = compiled, single

    def __call__(self, *args):
        results = self.compiled(list(args))
        return results[0] if self.single and isinstance(results, (tuple, list)) else results


def first_line(error) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
