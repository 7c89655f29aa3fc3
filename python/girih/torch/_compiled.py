"""One graph that Girih compiled, called with PyTorch's tensors.

In: a `Document` and the tensors of its parameters and arguments. Out: a function of the FX graph's placeholders.

Parameters are given to the model once; a run looks whether each is still the tensor at the same address with the same
version, and gives them again where one is not. Outputs are allocated by PyTorch, with the strides that its own kernels
would give them.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from girih import _library

from . import _extents, _graph

__all__ = ["Compiled"]

_girih = _library.extension()


class Compiled:
    """A callable that takes what the placeholders of the graph take, and gives a tuple of its results."""

    def __init__(self, module: torch.fx.GraphModule, document: _graph.Document, options: dict[str, Any]):
        root = document.root
        self.symbols = [s["name"] for s in root["symbols"]]
        self.ranges = {s["name"]: (s["lo"], s["hi"]) for s in root["symbols"]}
        #: The placeholders and their names in the JSON.
        self.ports = document.inputs
        self._plan_inputs(module, document)
        self._plan_outputs(module, document)
        self.text = json.dumps(root)
        self.model = _girih.Model.from_torch_json(self.text, **options)
        # What cannot be lowered is known now, when PyTorch can still do it instead.
        self.model.compile()
        self._bound: Any = None

    # What goes in.

    def _plan_inputs(self, module, document):
        root = document.root
        roles = {typed["name"]: typed["role"] for typed in root["inputs"]}
        shapes = {typed["name"]: typed["shape"] for typed in root["inputs"]}
        #: Positions, among the placeholders, of the tensors given at every run and of the parameters.
        self.arguments, self.parameters, self.parameter_names = [], [], []
        for position, (_node, name) in enumerate(document.inputs):
            if name is None:
                continue
            if roles[name] == "parameter":
                self.parameters.append(position)
                self.parameter_names.append(name)
            else:
                self.arguments.append(position)
        #: The shapes of the arguments, by position.
        self.wanted = {p: (n, shapes[n]) for p, (_, n) in enumerate(document.inputs) if n and roles[n] == "argument"}
        self.constants = []
        for name, target in document.constants.items():
            value = module
            for part in target.split("."):
                value = getattr(value, part)
            with unset_fake_temporarily(), torch.no_grad():
                self.constants.append((name, value.contiguous()))
        # Where each symbol gets its value: an integer among the placeholders, or an extent of a tensor.
        self.sources: dict[str, tuple[int, int | None]] = {}
        for position, (node, name) in enumerate(document.inputs):
            value = node.meta.get("val")
            if name is None and isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
                self.sources.setdefault(value.node.expr.name, (position, None))
        bare = set()
        for position, (_node, name) in enumerate(document.inputs):
            for axis, extent in enumerate(shapes.get(name) or []):
                if isinstance(extent, str):
                    self.sources.setdefault(extent, (position, axis))
                    bare.add(extent)
        missing = [s for s in self.symbols if s not in self.sources]
        if missing:
            raise _graph.Unsupported(f"nothing tells the extent {missing[0]} directly")
        # The compiled model learns symbols from the shapes of its inputs: one that is in none gets an empty tensor.
        self.extra = [s for s in self.symbols if s not in bare]
        for symbol in self.extra:
            name = f"extent_of_{symbol}"
            root["inputs"].append({"name": name, "dtype": "i8", "shape": [symbol, 0], "role": "argument"})

    # What comes out.

    def _plan_outputs(self, module, document):
        root = document.root
        values = {typed["name"]: typed for typed in root["inputs"] + root["constants"]}
        for node in root["nodes"]:
            values.update((r["name"], r) for r in node["results"] if r)
        by_output = {o["name"]: o["value"] for o in root["outputs"]}
        inputs = {name: position for position, (_node, name) in enumerate(document.inputs) if name}
        results = next(n for n in module.graph.nodes if n.op == "output").args[0]
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        #: For each result: ("none",), ("extent", e), ("input", position), ("tensor", number of the output), or
        #: ("view", number of the output, number of the view).
        self.results: list[tuple] = []
        shapes, strides, kept, views, self.dtypes = [], [], [], [], []
        dtypes = {name: dtype for dtype, name in _graph.DTYPES.items()}
        numbers: dict[str, int] = {}
        for result, known in zip(results, document.outputs):
            if known is None:
                self.results.append(("none",))
            elif not isinstance(known, str) or known not in by_output:
                self.results.append(("extent", known))
            elif by_output[known] in inputs:
                self.results.append(("input", inputs[by_output[known]]))
            else:
                value = by_output[known]
                view = document.views.get(result)
                if value not in numbers:
                    numbers[value] = len(kept)
                    kept.append({"name": known, "value": value})
                    typed = values[value]
                    shapes.append(tuple(typed["shape"]))
                    base = view[0] if view else result
                    strides.append(unusual_strides(base.meta.get("val")))
                    self.dtypes.append(dtypes[typed["dtype"]])
                if view:
                    self.results.append(("view", numbers[value], len(views)))
                    views.append(view[1])
                else:
                    self.results.append(("tensor", numbers[value]))
        root["outputs"] = kept
        extents = tuple(r[1] for r in self.results if r[0] == "extent")
        flat_views = [tuple(part) for sizes, steps, offset in views for part in (sizes, steps, (offset,))]
        self.evaluate = nested(self.symbols, shapes, [s or () for s in strides], extents, flat_views)
        self.strided = [s is not None for s in strides]
        self.fixed = None if self.symbols else self.evaluate()
        self.only_tensors = all(r == ("tensor", i) for i, r in enumerate(self.results))

    def misfit(self, args) -> str | None:
        """What is wrong with the shapes of arguments, in one sentence; None where they fit."""
        env = dict(zip(self.symbols, self._values(args)))
        for symbol, (lo, hi) in self.ranges.items():
            value = env.get(symbol, lo)
            if value < lo or (hi is not None and value > hi):
                most = "" if hi is None else f" and at most {hi}"
                return f"the extent {symbol} is {value}, and must be at least {lo}{most}"
        for position, (name, shape) in self.wanted.items():
            given = tuple(args[position].shape)
            if given != tuple(value_of(extent, env) for extent in shape):
                text = ", ".join(_extents.text(e) for e in shape)
                return f"argument `{name}` has shape {list(given)}, and the model wants [{text}]"
        return None

    # Running.

    def _values(self, args):
        """The symbols' values."""
        places = map(self.sources.get, self.symbols)
        return [args[p] if axis is None else args[p].shape[axis] for p, axis in places]

    def __call__(self, *args):
        env = self._values(args)
        shapes, strides, extents, views = self.fixed if self.fixed is not None else self.evaluate(*env)
        if self.parameters or self.constants:
            self._bind(args)
        given, addresses, extent_list = [], [], []
        for position in self.arguments:
            tensor = plain(args[position])
            given.append(tensor)
            addresses.append(tensor.data_ptr())
            extent_list.append(tuple(tensor.shape))
        for symbol in self.extra:
            addresses.append(0)
            extent_list.append((env[self.symbols.index(symbol)], 0))
        outputs = [torch.empty(s, dtype=d) for s, d in zip(shapes, self.dtypes)]
        self.model.run_addresses(addresses, extent_list, [(o.data_ptr(), o.nbytes) for o in outputs])
        for i, strided in enumerate(self.strided):
            if strided:
                outputs[i] = torch.empty_strided(shapes[i], strides[i], dtype=self.dtypes[i]).copy_(outputs[i])
        if self.only_tensors:
            return tuple(outputs)
        rest = iter(extents)
        return tuple(
            outputs[r[1]] if r[0] == "tensor" else args[r[1]] if r[0] == "input" else next(rest) if r[0] == "extent"
            else torch.as_strided(outputs[r[1]], views[3 * r[2]], views[3 * r[2] + 1], views[3 * r[2] + 2][0])
            if r[0] == "view" else None
            for r in self.results
        )  # fmt: skip

    def _bind(self, args):
        """Gives the parameters to the model where they are not those it has."""
        tensors = [args[p] for p in self.parameters]
        key = [(t.data_ptr(), version(t)) for t in tensors]
        if self._bound is not None and self._bound[0] == key and None not in self._bound[1]:
            return
        contiguous = [plain(t) for t in tensors]
        named = list(zip(self.parameter_names, contiguous)) + self.constants
        self.model.bind_addresses([(n, t.data_ptr(), tuple(t.shape)) for n, t in named])
        # The tensors are kept, so that no other takes an address of theirs.
        self._bound = (key, [version(t) for t in tensors], contiguous, tensors)


def value_of(extent, env):
    """The value of an extent where the symbols have these values."""
    return extent if isinstance(extent, int) else eval(_extents.text(extent), {"min": min, "max": max, **env})


def version(tensor):
    """How often the tensor was written to; None where PyTorch does not count (tensors of inference mode)."""
    return None if tensor.is_inference() else tensor._version


def plain(tensor):
    """The tensor in row-major order."""
    if tensor.is_neg() or tensor.is_conj():
        tensor = tensor.resolve_neg().resolve_conj()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def unusual_strides(value):
    """The strides of a fake tensor as extents, where they are those of transposed axes; None where they are row-major."""
    if not isinstance(value, torch.Tensor):
        return None
    try:
        strides = tuple(_extents.extent(s) for s in value.stride())
        if value.is_contiguous() or not is_dense(value):
            return None
        return strides
    except (_extents.Inexpressible, RuntimeError):
        return None


def is_dense(value) -> bool:
    """Whether the elements fill a stretch of memory, each once, in some order of the axes."""
    expected = 1
    for size, stride in sorted(zip(value.shape, value.stride()), key=lambda pair: (hint(pair[1]), hint(pair[0]))):
        if hint(size) == 1:
            continue
        if hint(stride) != expected:
            return False
        expected *= hint(size)
    return True


def hint(extent) -> int:
    """An extent's value, of a symbolic one in the example that was captured."""
    return extent if isinstance(extent, int) else extent.node.hint


def nested(symbols, *groups):
    """A function of the symbols' values that gives the values of groups of extents, or of groups of groups."""

    def text(value):
        if isinstance(value, tuple) or (isinstance(value, list) and not is_expression(value)):
            return "(" + "".join(f"{text(v)}, " for v in value) + ")"
        return _extents.text(value)

    source = f"lambda {', '.join(symbols)}: {text(groups)}"
    return eval(source, {"__builtins__": {}, "min": min, "max": max})


def is_expression(value) -> bool:
    return len(value) == 3 and value[0] in ("+", "-", "*", "//", "%", "min", "max")
