"""One graph that Girih compiled, called with PyTorch's tensors.

In: a `Document` and the tensors of its parameters and arguments. Out: a function of the FX graph's placeholders.

Each run names its parameters by a number, and the model takes them by their addresses where it holds others. Several threads may
call one graph, each with parameters of its own. Elements of parameters may change at any time: see `Compiled._bind`. Outputs are allocated by PyTorch, with the strides that its own kernels
would give them. Results that are views, of inputs or of what is computed, are made by PyTorch's own view operations.

Invariants: compiled code gets no tensor but through `Compiled._enter`, which looks at everything that the code relies on,
and no number but one that the model accepts (`bind_symbols`); in `Compiled.quick` it is `_girih.Tensors` that looks. An argument
that does not fit raises before anything is computed or written to, so the caller may compute the graph in another way.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import json
import math
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from girih import _library
from girih.frontend.errors import GirihError

from . import _extents, _graph, _layouts, _memory, _scalars

__all__ = ["Compiled", "Misfit"]

_girih = _library.extension()

OF_NAMES = {name: dtype for dtype, name in _graph.DTYPES.items()}


#: Bytes of a result whose memory is worth keeping.
KEPT_FROM = 1 << 20


@functools.cache
def array_of(count):
    """The type of an array of `count` bytes, whose objects take attributes."""
    return type("Held", (ctypes.c_char * count,), {})


class Misfit(GirihError):
    """A tensor that is not what the graph was compiled for."""


class Compiled:
    """A callable that takes what the placeholders of the graph take, and gives a tuple of its results."""

    def __init__(
        self, module: torch.fx.GraphModule, document: _graph.Document, options: dict[str, Any], state=None, replaced=None
    ):
        """For each placeholder `state` has the tensor that it is in every call, or None where a call gives it; by default all are given.
        The owner of a state is called often: the memory of a large result is taken again once nothing refers to it. A result that
        the caller copies to an input may be that input, whose memory was written: `replaced` has the placeholder by the result's place."""
        root = document.root
        self.device = document.device
        #: The placeholders and their names in the JSON.
        self.ports = document.inputs
        self._plan_inputs(module, document)
        outputs = self._plan_outputs(document)
        show = self._plan_results(document)
        scalars = document.scalars
        numbers = tuple(_scalars.Text(scalars.text(value)) for value in document.numbers.values())
        limits = tuple(_scalars.Text(scalars.text(value)) for value, _, _ in document.limits)
        groups = (*outputs, show, numbers, limits)
        sources = found(scalars, document.inputs)
        self.evaluate = _scalars.evaluator(scalars, sources, groups)
        #: The least and the greatest of each number that has limits.
        self.limits = [(lo, hi) for _, lo, hi in document.limits]
        self.fixed = None if sources else self.evaluate(())
        self.symbols, self.ranges = list(scalars.symbols), dict(scalars.symbols)
        #: True if the caller promised that parameters never change.
        self.frozen = options.get("freeze", False)
        self._plan_replaced(document, replaced or {})
        self.text = json.dumps(root)
        self.model = _girih.Model.from_torch_json(self.text, **on_device(self.device, options))
        # Compile now: if a part cannot be lowered, PyTorch can still run it instead.
        #: How many kernels a run launches.
        self.kernels = self.model.compile()[0]
        written = self.model.replaced()
        self.replaced = {at: position for at, position in self.replaced.items() if at in written}
        #: The parameters of the last run that began.
        self._bound: Bound | None = None
        self._numbers = itertools.count(1)
        self._results = _girih.Results() if state is not None and self.device == _graph.CPU else None
        self._state = state
        self._tensors = self._plan_quick()

    # Inputs.

    def _plan_inputs(self, module, document):
        typed = {t["name"]: t for t in document.root["inputs"]}
        #: For the tensors given at every run, and for the parameters: position among the placeholders, element type,
        #: name, and how they lie in memory where they are not row-major.
        self.arguments, self.parameters = [], []
        for position, (node, name) in enumerate(document.inputs):
            if name is not None:
                kept = self.parameters if typed[name]["role"] == "parameter" else self.arguments
                kept.append((position, OF_NAMES[typed[name]["dtype"]], name, document.memories.get(node)))
        shapes = {node.name: shape for node, shape in document.shapes.items()}
        #: The shapes of the arguments, by position.
        self.wanted = {p: (name, shapes.get(name, typed[name]["shape"])) for p, _, name, _ in self.arguments}
        self.at_origin = [p for p, (node, _name) in enumerate(document.inputs) if node in document.at_origin]
        self.constants = []
        for name, target in document.constants.items():
            value = module
            for part in target.split("."):
                value = getattr(value, part)
            with unset_fake_temporarily(), torch.no_grad():
                self.constants.append((name, value.to(self.device).contiguous()))

    # Outputs.

    def _plan_outputs(self, document):
        """The shapes and the strides of what is computed; no strides where they are row-major."""
        root = document.root
        values = {typed["name"]: typed for typed in root["inputs"] + root["constants"]}
        for node in root["nodes"]:
            values.update((r["name"], r) for r in node["results"] if r)
        typed = [values[output["value"]] for output in root["outputs"]]
        strides = [unusual_strides(base, document.scalars) for base in document.bases]
        rows = [s is not None and _graph.is_row_major(base.meta["val"]) for s, base in zip(strides, document.bases)]
        self.dtypes = [OF_NAMES[t["dtype"]] for t in typed]
        #: Outputs whose axes are computed in the order in which they lie in memory, and the order that results have.
        self.turned = {}
        for at, base in enumerate(document.bases):
            if (order := document.orders.get(base)) is not None:
                self.turned[at] = _memory.inverse(order)
                strides[at] = tuple(strides[at][axis] for axis in order)
        #: Outputs that are written where they are given: row-major but for the strides of axes of one element.
        self.placed = [at for at, row_major in enumerate(rows) if row_major or at in self.turned]
        #: Outputs that lie otherwise: they are copied.
        self.strided = [at for at, s in enumerate(strides) if s is not None and at not in self.placed]
        return tuple(tuple(t["shape"]) for t in typed), tuple(s or () for s in strides)

    def _plan_results(self, document):
        """How results are made of inputs and outputs, as a graph of views that PyTorch runs; and its numbers."""
        outputs = {base: number for number, base in enumerate(document.bases)}
        inputs = {node: position for position, (node, _name) in enumerate(document.inputs)}
        feeds: dict[torch.fx.Node, tuple[int, int]] = {}
        numbers = []

        def need(node):
            """Enters what a node is made of into `feeds`: (0, position of an input), (1, output) or (2, number)."""
            if node in feeds:
                return
            if _graph.is_scalar(node):
                feeds[node] = (2, len(numbers))
                numbers.append(_scalars.Text(document.scalars.text(node.meta["val"])))
            elif node in outputs:
                feeds[node] = (1, outputs[node])
            elif node in inputs:
                feeds[node] = (0, inputs[node])
            elif _graph.viewed(node) is None and not is_list_of_views(node):
                raise _graph.Unsupported(f"the result `{node.name}` is not computed")
            else:
                for part in node.all_input_nodes:
                    need(part)

        nodes = [r for r in document.results if isinstance(r, torch.fx.Node)]
        for node in nodes:
            need(node)
        self.only_outputs = nodes == document.results and [feeds.get(n) for n in nodes] == [(1, i) for i in outputs.values()]
        graph = torch.fx.Graph()
        made = {node: graph.placeholder(node.name) for node in feeds}

        def copied(node):
            if node not in made:
                for part in node.all_input_nodes:
                    copied(part)
                made[node] = graph.node_copy(node, made.__getitem__)
            return made[node]

        graph.output(tuple(copied(r) if isinstance(r, torch.fx.Node) else r for r in document.results))
        self.show = torch.fx.GraphModule(torch.nn.Module(), graph).forward
        self.feeds = list(feeds.values())
        return tuple(numbers)

    def _plan_replaced(self, document, replaced):
        """Lets kernels write outputs where the inputs lie that they replace, if nothing else is made of these."""
        #: The placeholders by output.
        self.replaced = {}
        outputs = {base: at for at, base in enumerate(document.bases)}
        rows = {position: name for position, _, name, memory in self.arguments if memory is None}
        for place, position in replaced.items():
            result = document.results[place]
            at = outputs.get(result) if isinstance(result, torch.fx.Node) else None
            usual = at is not None and at not in self.placed and at not in self.strided and document.results.count(result) == 1
            if usual and position in rows and (0, position) not in self.feeds:
                document.root["outputs"][at]["replaces"] = rows[position]
                self.replaced[at] = position

    def misfit(self, args) -> str | None:
        """The first misfit of the arguments' shapes, in one sentence; None if they fit."""
        env = dict(zip(self.symbols, (self.fixed or self.evaluate(args))[0]))
        for symbol, (lo, hi) in self.ranges.items():
            value = env[symbol]
            if not lo <= value <= hi:
                most = "" if hi == _scalars.LIMIT else f" and at most {hi}"
                return f"the extent {symbol} is {value}, and must be at least {lo}{most}"
        for position, (name, shape) in self.wanted.items():
            given = tuple(args[position].shape)
            if given != tuple(value_of(extent, env) for extent in shape):
                text = ", ".join(_extents.text(e) for e in shape)
                return f"argument `{name}` has shape {list(given)}, but the model expects [{text}]"
        return None

    # Running.

    #: A function of a graph and its arguments that is called before each run, while somebody measures.
    observer = None

    def profile(self, args):
        """Where the time of runs on the arguments of an earlier call goes, as the compiled part's `Model.profile` says it."""
        if self.parameters or self.constants:
            bound = self._bind(args)
            self.model.bind_addresses(bound.given)
        with self._entered(args) as entered:
            return self.model.profile(entered)

    def estimate(self, args, blocks):
        """The estimated launches of a run on these arguments, as the compiled part's `Model.estimate` says it."""
        bound = self._bind(args).given if self.parameters or self.constants else []
        with self._entered(args) as entered:
            return self.model.estimate([*entered, *((name, address, shape) for name, address, shape, _ in bound)], blocks)

    @contextlib.contextmanager
    def _entered(self, args):
        """The arguments as the compiled part takes them, by name, address and shape; their memory stays until the block ends."""
        entered, addresses, extents = [], [], []
        for position, dtype, name, memory in self.arguments:
            self._enter(args[position], dtype, name, entered, addresses, extents, memory)
        yield [(name, *of) for (_, _, name, _), *of in zip(self.arguments, addresses, extents)]

    def __call__(self, *args):
        if Compiled.observer is not None:
            Compiled.observer(self, args)
        symbols, shapes, strides, shown, numbers, limited = self.fixed if self.fixed is not None else self.evaluate(args)
        for number, (lo, hi) in zip(limited, self.limits):
            # Infinities and NaN are elements of floats.
            if not lo <= number <= hi and not (isinstance(hi, float) and not math.isfinite(number)):
                raise Misfit(f"a number is {number}, and must be at least {lo} and at most {hi}")
        for position in self.at_origin:
            if args[position].storage_offset():
                raise Misfit(f"`{self.ports[position][1]}` does not start where its storage does")
        bound = self._bind(args) if self.parameters or self.constants else None
        entered, addresses, extents = [], [], []
        for position, dtype, name, memory in self.arguments:
            self._enter(args[position], dtype, name, entered, addresses, extents, memory)
        for number in numbers:
            number = torch.tensor(number, dtype=torch.float64, device="cpu")
            self._enter(number, torch.float64, "a number", entered, addresses, extents, device=_graph.CPU)
        outputs = [make(*given) for make, given in self._makers(shapes, strides)]
        for i, position in self.replaced.items():
            at = self._argument_at(position)
            outputs[i] = entered[at] = self._alone(at, entered, bound)
            addresses[at] = entered[at].data_ptr()
        self._run(addresses, extents, symbols, outputs, bound)
        for i, position in self.replaced.items():
            if outputs[i] is not args[position]:
                outputs[i] = args[position].copy_(outputs[i])
        for i in self.strided:
            strided = torch.empty_strided(shapes[i], strides[i], dtype=self.dtypes[i], device=self.device)
            outputs[i] = strided.copy_(outputs[i])
        return self._shown(args, outputs, shown)

    def _argument_at(self, position):
        """The place of a placeholder among the arguments."""
        return [p for p, *_ in self.arguments].index(position)

    def _alone(self, at, entered, bound):
        """A tensor that kernels write, or a copy of it if it shares memory with others that they read."""
        others = [*entered[:at], *entered[at + 1 :], *(bound.entered if bound else ())]
        first, end = reach(entered[at])
        shared = any(first < e and f < end for f, e in map(reach, others))
        return entered[at].clone() if shared else entered[at]

    def _shown(self, args, outputs, numbers):
        """The graph's results, made of what the kernels wrote."""
        if self.only_outputs:
            return tuple(outputs)
        groups = args, outputs, numbers
        return self.show(*[groups[group][at] for group, at in self.feeds])

    def _makers(self, shapes, strides) -> list[tuple[Any, tuple]]:
        """For each output a function that makes the tensor that the kernels write, and its arguments."""
        found: list[tuple[Any, tuple]] = [(self._empty, of) for of in zip(shapes, self.dtypes)]
        for i in self.placed:
            shape, steps = shapes[i], strides[i]
            if (order := self.turned.get(i)) is not None:
                shape, steps = ([of[axis] for axis in order] for of in (shape, steps))
            found[i] = (strided_empty(self.device), (tuple(shape), tuple(steps), self.dtypes[i]))
        return found

    def _plan_quick(self):
        """Makes the object that runs a call without looking at each argument here; None where a graph needs that.

        Its extents must all be fixed, and so must the strides of its arguments.
        """
        memories = [memory for *_, memory in self.arguments]
        if self.fixed is None or self.strided or self.limits or self.at_origin or self.fixed[4]:
            return None
        # The owner of a state runs without autograd, which views of inputs would take part in.
        if self._state is not None and any(group == 0 for group, _at in self.feeds):
            return None
        if any(m is not None and m.strides is None for m in memories):
            return None
        given = itertools.count()
        sources = [next(given) if of is None else of for of in self._state or [None] * len(self.ports)]
        arguments = []
        for position, dtype, _name, memory in self.arguments:
            shape = tuple(self.wanted[position][1])
            like = example(dtype, self.device)
            if memory is None:
                arguments.append((sources[position], like, shape, None, None, shape))
                continue
            start = memory.start if memory.order is None else None
            arguments.append((sources[position], like, shape, memory.strides, start, memory.extents(shape)))
        results: list[Any] = self._makers(*self.fixed[1:3])
        for i, (shape, dtype) in enumerate(zip(self.fixed[1], self.dtypes)):
            kept = self._results is not None and math.prod(shape) * dtype.itemsize >= KEPT_FROM
            if i not in self.placed and not kept:
                results[i] = (strided_empty(self.device), (shape, example(dtype, "meta", shape).stride(), dtype))
        for i, position in self.replaced.items():
            results[i] = self._argument_at(position)
        stream = functools.partial(stream_of, self.device.index) if self.device.type == "cuda" else None
        parameters = [sources[position] for position, *_ in self.parameters]
        try:
            found = _girih.Tensors(self.model, arguments, parameters, results, self.fixed[0], self.frozen, stream)
        except RuntimeError:
            # PyTorch before 2.10 does not tell code in C how tensors lie.
            return None
        if not self.parameters and not self.constants:
            found.bound([], 0)
        return found

    def quick(self, args):
        """The results of a call for the tensors that `state` leaves open, if every tensor is as it was when the graph was captured; else
        None. It saves most of the overhead of a call."""
        if self._tensors is None or Compiled.observer is not None:
            return None
        outputs = self._tensors.run(args)
        return outputs if outputs is None or self.only_outputs else self._shown(args, outputs, self.fixed[3])

    def _run(self, addresses, extents, symbols, outputs, bound):
        """Runs the compiled code; on a CUDA device it only begins to, on PyTorch's stream."""
        places = [(o.data_ptr(), o.nbytes) for o in outputs]
        parameters = (bound.number, bound.given, bound) if bound else None
        if self.device != _graph.CUDA:
            self.model.run_addresses(addresses, extents, symbols, places, parameters=parameters)
            return
        # Numbers are the host's.
        on_device = len(addresses) == len(self.arguments)
        self.model.run_addresses(addresses, extents, symbols, places, stream_of(self.device.index), on_device, parameters)

    def _empty(self, shape, dtype):
        if self._results is not None and (count := math.prod(shape)) * dtype.itemsize >= KEPT_FROM:
            memory = self._results.take(count * dtype.itemsize)
            held = array_of(count * dtype.itemsize).from_address(memory.address)
            # The tensor holds the array, and that the memory.
            held.memory = memory
            return torch.frombuffer(held, dtype=dtype).view(shape)
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _enter(self, tensor, dtype, name, entered, addresses, extents, memory=None, device=None):
        """Makes a tensor ready to be read by compiled code, row-major or as `memory` says, or refuses it.

        Graphs say what tensors are as PyTorch predicted it when they were captured. Operations that PyTorch runs between
        two parts of a graph do not always keep to it. (Shapes are compared by the model, with all of its symbols.)
        """
        device = device or self.device
        if tensor.dtype is not dtype or tensor.layout is not torch.strided or tensor.device != device:
            found = f"{tensor.dtype} on {tensor.device}, {tensor.layout}"
            raise Misfit(f"`{name}` is {found}, but was {dtype} on {device}, {torch.strided} when the graph was captured")
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        if memory is None and not tensor.is_contiguous():
            tensor = tensor.contiguous()
        if memory is not None and not memory.holds(tensor):
            tensor = memory.copied(tensor)
            if tensor is None:
                raise Misfit(f"`{name}` repeated its elements along an axis when the graph was captured, and does so no more")
        address = tensor.data_ptr()
        if address % dtype.itemsize:
            tensor = tensor.clone() if memory is None else memory.copied(tensor)
            address = tensor.data_ptr()
        # Tensors without memory of their own: wrappers, those that are known to be zero, those whose storage was freed.
        if address == 0 and tensor.numel():
            raise Misfit(f"`{name}` is a {type(tensor).__name__} without memory")
        entered.append(tensor)
        addresses.append(address if memory is None else address - memory.start * dtype.itemsize)
        extents.append(tuple(tensor.shape) if memory is None else memory.extents(tensor.shape))

    def _bind(self, args) -> Bound:
        """The parameters of a run: those of the run before it where they are the same.

        Only its address and its layout tell that a parameter is another one. Its elements may be written without a trace
        (`p.data.mul_()`, a view of NumPy's): the model itself checks the parameters that it keeps derived data of, and this
        function checks those that are copied here. For frozen parameters, it compares only PyTorch's count of writes.
        """
        tensors = [args[p] for p, *_ in self.parameters]
        key = [(t.data_ptr(), t.is_contiguous() or t.stride(), t.is_neg()) for t in tensors]
        if self.frozen:
            key = [(place, version(t)) for place, t in zip(key, tensors)]
        # Another thread may replace it meanwhile, but nobody changes it.
        last = self._bound or Bound([None] * len(key), 0, [], [None] * len(key), [], [])
        still = lambda copy: copy is not None and (self.frozen or not copy.is_old(self.model))  # noqa: E731
        known = zip(key, last.key, last.copies)
        copies = [copy if now == before and still(copy) else None for now, before, copy in known]
        if last.number and key == last.key and copies == last.copies:
            return last
        entered, addresses, extents = [], [], []
        for at, (position, dtype, name, memory) in enumerate(self.parameters):
            tensor = copies[at].made if copies[at] else args[position]
            self._enter(tensor, dtype, name, entered, addresses, extents, memory)
            if entered[at] is not tensor:
                copies[at] = self._copy(tensor, entered[at])
        for name, tensor in self.constants:
            self._enter(tensor, tensor.dtype, name, entered, addresses, extents)
        copied = [copy is not None for copy in copies] + [True] * len(self.constants)
        names = [name for _, _, name, _ in self.parameters] + [name for name, _ in self.constants]
        given = [
            (name, address, shape, not (self.frozen or own))
            for name, address, shape, own in zip(names, addresses, extents, copied)
        ]
        bound = Bound(key, next(self._numbers), given, copies, entered, tensors)
        self._bound = bound
        if self._tensors is not None:
            self._tensors.bound(tensors if self.frozen or not any(copies) else None, bound.number)
        return bound

    def _copy(self, tensor, made) -> Copy:
        """A new copy of a parameter, with the digest of what it holds at least."""
        if self.frozen or tensor.device.type != "cpu" or not _layouts.is_dense(tensor):
            return Copy(tensor, made, None)
        seen = self.model.digest(tensor.data_ptr(), tensor.nbytes)
        # Either may be a tensor of inference mode.
        with torch.inference_mode():
            made.copy_(tensor)
        return Copy(tensor, made, seen)


class Bound(NamedTuple):
    """The parameters of a run. It keeps their tensors, so that no other takes an address of theirs."""

    #: How the parameters lie.
    key: list
    #: No others have this number.
    number: int
    #: As the model takes them.
    given: list
    #: For each parameter the copy that the model reads in its place, or None.
    copies: list
    entered: list
    tensors: list


class Copy(NamedTuple):
    """A copy of a parameter that does not lie as compiled code reads it. The copy stays as it is: another takes its place where the
    parameter was written to, since a run in another thread may read it."""

    tensor: torch.Tensor
    made: torch.Tensor
    #: The digest of the parameter's elements; None where they do not fill one stretch of the host's memory.
    seen: int | None

    def is_old(self, model) -> bool:
        """Returns True if the parameter was or may have been written to since it was copied."""
        return self.seen is None or self.seen != model.digest(self.tensor.data_ptr(), self.tensor.nbytes)


def reach(tensor) -> tuple[int, int]:
    """The addresses that a tensor's elements lie between; those of its storage where it is not row-major."""
    if tensor.is_contiguous():
        return tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def example(dtype, device, shape=(0,)):
    """A tensor of this element type on this device."""
    with unset_fake_temporarily():
        return torch.empty(shape, dtype=dtype, device=device)


def strided_empty(device):
    """A function of a shape, strides and an element type that makes a tensor of any content; PyTorch's own is slower by half a
    microsecond where it must parse keywords."""
    return getattr(torch._C._dynamo.guards, f"_empty_strided_{device.type}", None) or (
        lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)
    )


def stream_of(index):
    """PyTorch's stream on a CUDA device, as the driver's handle."""
    return torch._C._cuda_getCurrentRawStream(index)


def on_device(device, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a model whose tensors are on a device: what is on a GPU runs there."""
    options = {name: value for name, value in options.items() if name != "freeze"}
    if device == _graph.CPU:
        return options
    if options.get("device", "cuda") != "cuda":
        raise _graph.Unsupported(f"the graph's tensors are on {device}, where device={options['device']!r} cannot read them")
    return {**options, "device": "cuda"}


def found(scalars, inputs) -> dict[str, str]:
    """Where each symbol of PyTorch gets its value: Python over the arguments."""
    places: list[tuple[Any, str]] = []
    for position, (node, _name) in enumerate(inputs):
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            places.append((value.node.expr, f"args[{position}]"))
        elif isinstance(value, torch.Tensor):
            extents = [(e, f"args[{position}].shape[{axis}]") for axis, e in enumerate(value.shape)]
            places += [(e.node.expr, place) for e, place in extents if isinstance(e, torch.SymInt)]
    direct: dict[str, str] = {}
    for expr, place in places:
        if expr.is_Symbol:
            direct.setdefault(expr.name, place)
    sources = {}
    for name in scalars.known:
        text = direct.get(name) or next(filter(None, (solved(e, p, name, direct) for e, p in places)), None)
        if text is None:
            raise _graph.Unsupported(f"the extent {name} is not known")
        sources[name] = text
    return sources


def solved(expr, place, name, direct) -> str | None:
    """The symbol's value as Python, where an expression is linear in it and all else in it is known."""
    (symbol,) = [s for s in expr.free_symbols if s.name == name] or [None]
    others = [s for s in expr.free_symbols if s.name != name]
    if symbol is None or not (expr.is_Add or expr.is_Mul) or not all(s.name in direct for s in others):
        return None
    if not expr.is_polynomial(symbol):
        return None
    factor, rest = expr.coeff(symbol, 1), expr.coeff(symbol, 0)
    if not factor.is_Integer or expr.expand() != (factor * symbol + rest).expand():
        return None
    from torch.utils._sympy.printers import PythonPrinter

    values = ", ".join(f"{other.name}={direct[other.name]}" for other in others)
    return f"({place} - (lambda {values}: {PythonPrinter().doprint(rest)})()) // ({int(factor)})"


def is_list_of_views(node) -> bool:
    """True if a node is a split: a list whose elements are all views."""
    return bool(node.users) and all(_graph.is_getitem(u) and _graph.viewed(u) is not None for u in node.users)


def value_of(extent, env):
    """The value of an extent where the symbols have these values."""
    return extent if isinstance(extent, int) else eval(_extents.text(extent), {"min": min, "max": max, **env})


def version(tensor):
    """How often the tensor was written to; None where PyTorch does not count (tensors of inference mode)."""
    return None if tensor.is_inference() else tensor._version


def unusual_strides(node, scalars):
    """The strides of a node's result as extents: of transposed axes, with gaps, or of axes of one element that have others than in
    a new tensor; None where they are row-major.

    `slice_scatter` and its like keep even gaps, and PyTorch takes views of their results by those strides.
    """
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    try:
        strides = _layouts.strides_of_view(node, _graph.viewed)
        if _graph.are_rows(value.shape, strides) or _layouts.overlaps(value):
            return None
        return tuple(_scalars.Text(scalars.text(s)) for s in strides)
    except RuntimeError:
        return None
