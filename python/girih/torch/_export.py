"""`girih.torch.export`: a model captured ahead of time, whole."""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from girih._diagnostics import Diagnostic, ProgramError
from girih.frontend.errors import GirihError

from . import _backend, _compiled, _complex, _graph, _options, _partition, _recurrent, _whole

__all__ = ["Model", "export"]


def export(model, inputs=(), kwargs=None, *, dynamic_shapes=None, name: str | None = None, **options) -> Model:
    """Captures a model with `torch.export` and compiles it.

    Args:
        model: a `torch.nn.Module`, captured in the mode (`eval()` or `train()`) it is in, or a
            `torch.export.ExportedProgram`.
        inputs: positional arguments as the model will get them, whose shapes, dtypes and strides count. An argument that lies otherwise
            later is copied.
        kwargs: named ones.
        dynamic_shapes: which extents may change from run to run, as `torch.export.export` takes it.
        name: for printing; otherwise the class's name.
        options: those of the backend: `threads`, `device`, `target`, `cache`, `check`, `freeze`.

    Raises:
        ProgramError: operations that Girih does not know, or whose operands do not fit; all of them at once.
        GirihError: an option that does not exist.

    Example:
        >>> norm = torch.nn.RMSNorm(64)
        >>> m = girih.torch.export(norm, (torch.randn(3, 64),))
        >>> m(torch.ones(3, 64)).shape
        torch.Size([3, 64])
    """
    return captured(model, inputs, kwargs, dynamic_shapes, name, options, as_they_lie=True)


def captured(model, inputs, kwargs, dynamic_shapes, name, options, as_they_lie, compiled=True) -> Model:
    """As `export`; `as_they_lie` says whether arguments and results have the layouts of the example, or are row-major. A model that is
    not `compiled` can be written, but not run."""
    _options.known(options)
    program = model
    if not isinstance(model, torch.export.ExportedProgram):
        name = name or type(model).__name__
        with torch.no_grad(), _recurrent.by_shape():
            program = torch.export.export(model, tuple(inputs), kwargs or {}, dynamic_shapes=dynamic_shapes)
    with _recurrent.by_shape():
        program = program.run_decompositions(decompositions())
    return Model(program, name or "model", options, as_they_lie, compiled)


def decompositions():
    """The operations that `run_decompositions` must take apart: all that Girih does not support."""
    table = torch.export.default_decompositions()
    known = _whole.operations()
    whole = set(_whole.overloads())
    pieces = _backend.traced()
    for op in list(table.keys()):
        opname = str(getattr(op, "_opname", ""))
        composite = hasattr(op, "has_kernel_for_dispatch_key") and op.has_kernel_for_dispatch_key(
            torch._C.DispatchKey.CompositeImplicitAutograd
        )
        if op in whole or (not composite and opname in known):
            table.pop(op)
    for op, function in pieces.items():
        if op not in table:
            table[op] = function
    return table


class Launch(NamedTuple):
    """A launch of a kernel on a GPU, estimated."""

    kernel: str
    #: Without the launch itself.
    seconds: float
    #: The part that takes longest: `memory`, `L2`, `issue`, `matrix unit`.
    bound: str
    #: The counts that the estimate was made of.
    work: dict[str, Any]


class Model:
    """A model compiled by Girih; call it as the module it came from.

    Its parameters are those of the module: what is written into them later counts in the next run. Buffers that the
    model writes to are written.
    """

    def __init__(self, program: torch.export.ExportedProgram, name: str, options: dict[str, Any], as_they_lie: bool, compiled=True):
        from torch.export.graph_signature import InputKind, OutputKind

        self.name = name
        signature = program.graph_signature
        module = program.graph_module
        #: Positions of what is complex outside, and pairs of reals inside: of the placeholders, and of the results.
        self._complex, self._complex_results = [], []
        if pairs := _complex.as_pairs(module, _backend.pieces(), long_transforms=True, fix=False):
            module, self._complex, self._complex_results = pairs.module, pairs.given, pairs.gives
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        state = {**program.state_dict, **program.constants}
        self._in_spec, self._out_spec = program.call_spec.in_spec, program.call_spec.out_spec
        written = {s.target for s in signature.output_specs if s.kind == OutputKind.BUFFER_MUTATION}
        #: For each placeholder: the tensor it stands for, or None for an argument.
        self._state: list[Any] = []
        parameters = []
        self._names = []
        for node, spec in zip(placeholders, signature.input_specs):
            if spec.kind == InputKind.USER_INPUT:
                self._state.append(None)
                self._names.append(node.name)
                continue
            if spec.kind == InputKind.TOKEN:
                raise GirihError("the model has operations with side effects, which is not supported")
            if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                raise GirihError(f"the model takes {spec.kind.name.lower()} `{spec.target}`, which is not supported")
            held = state[spec.target].detach()
            self._state.append(_complex.as_reals(held))
            if spec.target not in written:
                parameters.append(node)
        self._parameter_targets = {
            node.name: spec.target for node, spec in zip(placeholders, signature.input_specs) if spec.target
        }
        #: For each result of the graph: ("result", None), or the position of the placeholder that it is written to.
        self._returns: list[int | None] = []
        by_target = {spec.target: i for i, spec in enumerate(signature.input_specs) if spec.target}
        by_name = {node.name: i for i, node in enumerate(placeholders)}
        for spec in signature.output_specs:
            if spec.kind == OutputKind.USER_OUTPUT:
                self._returns.append(None)
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                self._returns.append(by_target[spec.target])
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                self._returns.append(by_name[spec.target])
            else:
                raise GirihError(f"the model gives {spec.kind.name.lower()}, which is not supported")
        # Tracing takes every extent for at least 2; the program says what it may be.
        how = {"ranges": program.range_constraints}
        document, refused = _partition.refusals(module, parameters, as_they_lie=as_they_lie, **how)
        if refused:
            how = {}
            document, refused = _partition.refusals(module, parameters, as_they_lie=as_they_lie)
        #: The graph with row-major inputs and outputs, as files have it.
        self._row_major = lambda: _partition.refusals(module, parameters, **how)[0]
        self._module = module
        document.root["name"] = name
        if refused:
            # The user did not write the views that only lead to an operation without a rule.
            own = [n for n in refused if not _complex.bridges(n)] or list(refused)
            raise ProgramError([diagnostic(node, refused[node]) for node in own])
        if not compiled:
            return
        try:
            replaced = {at: position for at, position in enumerate(self._returns) if position is not None}
            self._compiled = _compiled.Compiled(module, document, options, self._state, replaced)
        except _graph.Unsupported as e:
            raise GirihError(f"the model cannot be compiled: {e}") from None
        #: How many arguments there are, where each is a tensor, given by position, and the model writes to none.
        self._plain = None
        count = self._state.count(None)
        plain = self._in_spec == pytree.tree_structure(((0,) * count, {})) and not self._complex_results
        #: The buffers that kernels write, and the results that a caller gets.
        self._written = [self._state[position] for position in self._compiled.replaced.values()]
        self._given = [at for at, position in enumerate(self._returns) if position is None]
        written = len(self._returns) - len(self._given)
        # A result that shares memory with a buffer is copied, below.
        own = not written or self._compiled.only_outputs
        if plain and own and len(self._written) == written and all(t is not None for t in self._written):
            self._plain = count
        # The common nestings of results need no walk.
        if self._out_spec == pytree.tree_structure(0):
            self._out = lambda results: results[0]
        elif self._out_spec == pytree.tree_structure((0,) * len(self._given)):
            self._out = tuple
        else:
            self._out = lambda results: pytree.tree_unflatten(results, self._out_spec)

    def __call__(self, *args, **kwargs):
        """The model's results for these arguments, nested as the module nests them."""
        if len(args) == self._plain and not kwargs:
            if (results := self._compiled.quick(args)) is not None:
                if self._written:
                    torch.autograd.graph.increment_version([t for t in self._written if not t.is_inference()])
                    results = [results[at] for at in self._given]
                return self._out(results)
        all_inputs = self._inputs(args, kwargs)
        with torch.no_grad():
            results = self._compiled(*all_inputs)
            if any(p is not None for p in self._returns):
                # A result that shares memory with an input keeps what it showed when that is written to.
                held = {t.untyped_storage().data_ptr() for t in all_inputs if isinstance(t, torch.Tensor)}
                shared = [isinstance(r, torch.Tensor) and r.untyped_storage().data_ptr() in held for r in results]
                own = [position is not None and r is all_inputs[position] for r, position in zip(results, self._returns)]
                results = [r.clone() if s and not o else r for r, s, o in zip(results, shared, own)]
            for position, result in zip(self._returns, results):
                if position is not None:
                    all_inputs[position].copy_(result)
        results = [torch.view_as_complex(r) if i in self._complex_results else r for i, r in enumerate(results)]
        return pytree.tree_unflatten([r for p, r in zip(self._returns, results) if p is None], self._out_spec)

    run = __call__

    def estimate(self, *args, blocks: int = 8, **kwargs) -> list[Launch]:
        """The launches of a run with these arguments on a GPU, in order, each with its estimated time.

        The simulator runs `blocks` blocks of each grid, and counts their work; the estimate is of the whole grid, on the model's target,
        or on `sm_90a` where that is no GPU. It needs no GPU. docs/simulator.md says what it counts.

        Raises:
            GirihError: arguments that do not fit the model, or a kernel in which the simulator finds something wrong.
        """
        launches = self._compiled.estimate(self._inputs(args, kwargs), blocks)
        return [Launch(kernel, seconds, bound, json.loads(work)) for kernel, seconds, bound, work in launches]

    def _inputs(self, args, kwargs):
        """The arguments of all placeholders, checked."""
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            reordered = reorder(kwargs, self._in_spec)
            flat, spec = pytree.tree_flatten((args, reordered)) if reordered is not None else (flat, spec)
            if spec != self._in_spec:
                raise GirihError(f"the model was captured with other arguments: {self._in_spec}, not {spec}")
        given = iter(flat)
        all_inputs = [next(given) if s is None else s for s in self._state]
        for i in self._complex:
            all_inputs[i] = _complex.as_reals(all_inputs[i])
        self._check(all_inputs)
        if problem := self._compiled.misfit(all_inputs):
            raise GirihError(problem)
        return all_inputs

    def _check(self, inputs):
        for (node, name), value, state in zip(self._compiled.ports, inputs, self._state):
            if state is not None:
                continue
            wanted = node.meta.get("val")
            if name is None:
                if isinstance(wanted, int) and value != wanted:
                    raise GirihError(f"argument `{node.name}` was {wanted!r} when the model was captured, not {value!r}")
                continue
            if not isinstance(value, torch.Tensor):
                raise GirihError(f"argument `{name}` is a tensor, not a {type(value).__name__}")
            if value.device != self._compiled.device:
                raise GirihError(f"argument `{name}` is on {value.device}; the model was captured on {self._compiled.device}")
            if value.dtype != wanted.dtype:
                raise GirihError(f"argument `{name}` is {wanted.dtype}, not {value.dtype}")
            if value.dim() != wanted.dim():
                raise GirihError(f"argument `{name}` has {wanted.dim()} dimensions, not {value.dim()}")

    def ir(self, stage: str = "tensor") -> str:
        """The model at a stage, as text: "torch", "tensor", "loop", "tile", "kernel" or "c"."""
        return self._compiled.model.ir(stage)

    def trace(self, full: bool = True) -> str:
        """The changes that rules made; with `full`, as diffs, and with the reasons why other rules changed nothing."""
        return self._compiled.model.explain(full)

    def document(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """The graph as JSON with row-major inputs and outputs, and the tensors of its parameters by their names in it."""
        document = self._row_major()
        document.root["name"] = self.name
        roles = {typed["name"]: typed["role"] for typed in document.root["inputs"]}
        named = [(name, state) for (_, name), state in zip(document.inputs, self._state) if name is not None]
        held = {name: state for name, state in named if roles[name] == "parameter"}
        for name, target in document.constants.items():
            held[name] = functools.reduce(getattr, target.split("."), self._module)
        return document.root, held

    def save(self, path) -> None:
        """Writes the graph (without the weights) as JSON; `crates/girih-graph/src/source/torch` describes it. Its inputs and outputs are
        row-major."""
        root, _ = self.document()
        with open(path, "w") as file:
            json.dump(root, file)

    def __repr__(self):
        return f"<girih model {self.name}>"


def reorder(kwargs, spec):
    """Named arguments in the order in which the model was captured; None where the names differ."""
    try:
        names = spec.child(1).context if hasattr(spec, "child") else spec.children_specs[1].context
    except (AttributeError, IndexError):
        return None
    return {n: kwargs[n] for n in names} if set(names) == set(kwargs) else None


def diagnostic(node, reason) -> Diagnostic:
    place = _graph.source_line(node) or (None, None)
    message = f"{_partition.operation(node) if node.op == 'call_function' else node.name}: {reason}"
    return Diagnostic("error", "E0802", message, place[0] or "<model>", place[1], 1 if place[1] else None, None, None)
