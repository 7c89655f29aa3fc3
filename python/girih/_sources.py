"""The sources of models: a graph, an ONNX file, a module of PyTorch, or a file of `girih.Model.save`.

In: what the compiled part made of one. Out: the model that runs on given arrays. Each source has `inputs`, `outputs`, `device`, `strings`,
`made`, `model`, `prepare`, `quick` and `profile`.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from girih import _library, device
from girih._diagnostics import ProgramError
from girih._ports import address, dtype_of, element, in_nibbles, mistake, one_stream, packed, unpacked

_girih = _library.extension()


class Compiled:
    """A model of the compiled part, with the functions that every run calls."""

    def __init__(self, native, of_elements=False):
        self.native = native
        #: True if it is for the elements of some arrays, not only for their shapes.
        self.of_elements = of_elements
        self.taken = [name for name, _dtype, _shape, held in native.inputs() if not held]
        self.known: dict[tuple, list[tuple[np.dtype, tuple[int, ...]]]] = {}
        self.guarded = native.guarded

    def surely_takes(self, arrays):
        """Returns True if no extent is too long for the integers that the model computes from it."""
        return not self.guarded or tuple(arrays[name].shape for name in self.taken) in self.known

    def prepare(self, arrays):
        given = [arrays[name] for name in self.taken]
        shapes = tuple(array.shape for array in given)
        results = self.known.get(shapes)
        if results is None:
            results = [(dtype_of(elem), tuple(shape)) for elem, shape in self.native.results(shapes, [])]
            if len(self.known) >= 64:
                self.known.clear()
            self.known[shapes] = results
        return Prepared(self.native, given, shapes, results, self.of_elements)

    def profile(self, arrays):
        held = {name: packed(arrays[name]) for name in self.taken}
        return self.native.profile([(name, address(held[name]), arrays[name].shape) for name in self.taken])


class Prepared(NamedTuple):
    """A run whose outputs have these NumPy types and shapes."""

    native: Any
    arrays: list[np.ndarray | device.View]
    shapes: tuple[tuple[int, ...], ...]
    results: list[tuple[np.dtype, tuple[int, ...]]]
    of_elements: bool = False

    def quick(self):
        """A function of arrays that runs the model where they look as these do, and gives None where they do not."""
        if self.of_elements:
            return None
        if self.arrays and self.native.device == "cuda" and all(isinstance(array, device.View) for array in self.arrays):
            arguments = [(array.owner, array.element, array.shape) for array in self.arrays]
            results = [(shape, dtype, dtype.name) for dtype, shape in self.results]
            return _girih.QuickOnDevice(self.native, device.Array, arguments, results)
        if not self.arrays or self.native.device != "cpu" or any(type(array) is not np.ndarray for array in self.arrays):
            return None
        if any(map(in_nibbles, [array.dtype for array in self.arrays] + [dtype for dtype, _shape in self.results])):
            return None
        arrays = [(array, array.shape) for array in self.arrays]
        return _girih.Quick(self.native, np.empty, arrays, [(shape, dtype) for dtype, shape in self.results])

    def run(self, results):
        given = [packed(array) for array in self.arrays]
        written = [np.empty(a.size, np.uint8) if in_nibbles(a.dtype) else a for a in results]
        outputs = [(address(array), array.nbytes) for array in written]
        stream = one_stream([*self.arrays, *results])
        self.native.run_addresses([address(array) for array in given], self.shapes, [], outputs, stream)
        for array, nibbles in zip(results, written):
            if array is not nibbles:
                unpacked(nibbles, array)


class Graph:
    """A graph that is compiled once."""

    def __init__(self, native):
        self.native = native
        self.compiled = Compiled(native)
        self.held = []

    def inputs(self):
        return [p for p in self.native.inputs() if not p[3]]

    def outputs(self):
        return self.native.outputs()

    def device(self):
        return self.native.device

    def strings(self):
        return self.native.strings()

    def made(self):
        """Data of inputs that make their own; parameters are bound to theirs."""
        made = {n: np.frombuffer(data, dtype_of(elem)).reshape(shape) for n, elem, shape, data in self.native.made()}
        parameters = [p[0] for p in self.native.inputs() if p[3]]
        self.held = [made[name] for name in parameters]
        self.native.bind_addresses([(name, made[name].ctypes.data, made[name].shape, False) for name in parameters])
        return {name: array for name, array in made.items() if name not in parameters}

    def model(self):
        return self.native

    def prepare(self, arrays):
        return self.compiled.prepare(arrays)

    def quick(self, prepared):
        return prepared.quick()

    def profile(self, arrays):
        return self.compiled.profile(arrays)


class Loaded(Graph):
    """A compiled model from a file, which has its parameters."""

    def made(self):
        made = self.native.made()
        return {n: np.frombuffer(data, dtype_of(elem)).reshape(shape) for n, elem, shape, data in made}


class Onnx:
    """A file, compiled for all shapes, or for those that come and shapes like them."""

    def __init__(self, native):
        self.native = native
        #: The model of the last run, and which shapes it is for (None for all). Several threads may set it.
        self.last: tuple[Compiled, str | None] | None = None
        self.count = len(native.inputs())
        self.kinds = dict(native.kinds())

    def inputs(self):
        return self.spelled(self.native.inputs())

    def defaults(self):
        return self.native.defaults()

    def outputs(self):
        return self.spelled(self.native.outputs())

    def spelled(self, ports):
        """With the types of sequences and optional values: `seq(f32)`."""
        kinds = [(port, self.kinds.get(port[0])) for port in ports]
        return [(p[0], f"{kind}({p[1]}{')' * (kind.count('(') + 1)}", *p[2:]) if kind else p for p, kind in kinds]

    def device(self):
        return self.native.device

    def strings(self):
        return self.native.strings()

    def made(self):
        return {}

    def unusual(self, arrays):
        """Returns True if a model that takes all shapes may not take these."""
        more = len(arrays) > self.count or self.kinds or getattr(arrays, "apart", [])
        return more or any(0 in a.shape for a in arrays.values())

    def find(self, arrays):
        last = self.last
        if last is not None and last[1] is None and not self.unusual(arrays) and last[0].surely_takes(arrays):
            return last[0]
        held = {name: packed(a) for name, a in arrays.items()}
        described = [(name, (element(a.dtype), address(held[name]), a.shape)) for name, a in arrays.items()]
        try:
            native, limits, known = self.native.fitting(described)
        except ProgramError as e:
            if apart := getattr(arrays, "apart", []):
                raise ProgramError([*map(mistake, apart), *e.diagnostics]) from None
            raise
        if limits is not None and last is None:
            warnings.warn(f"girih: {limits}", stacklevel=5)
        found = Compiled(native, known)
        self.last = found, limits
        return found

    def model(self):
        last = self.last
        return (last[0] if last is not None else self.find({})).native

    def prepare(self, arrays):
        return self.find(arrays).prepare(arrays)

    def quick(self, prepared):
        # Arrays of the same shapes are taken by the same model, unless it is for their elements.
        return prepared.quick()

    def profile(self, arrays):
        return self.find(arrays).profile(arrays)


class Torch:
    """A module that `girih.torch.export` captured: PyTorch's tensors over the same memory."""

    def __init__(self, exported):
        self.exported = exported
        self.compiled = exported._compiled
        described = {p[0]: p for p in self.compiled.model.inputs()}
        self.ports = [described[name] for _, _, name, _ in self.compiled.arguments]

    def inputs(self):
        return self.ports

    def outputs(self):
        return self.compiled.model.outputs()

    def device(self):
        # PyTorch's tensors on a CUDA device are the business of `girih.torch.export`.
        return "cpu"

    def strings(self):
        return []

    def made(self):
        return {}

    def model(self):
        return self.compiled.model

    def prepare(self, arrays):
        import torch

        given = [arrays[port[0]] for port in self.ports]
        results = self.exported(*[torch.from_numpy(array) for array in given])
        flat = torch.utils._pytree.tree_leaves(results)
        return Done(given, [t.detach().contiguous().numpy() for t in flat])

    def quick(self, prepared):
        """A function of arrays or tensors, as `Compiled.quick`."""
        import torch

        exported, types = self.exported, [array.dtype for array in prepared.arrays]
        compiled = exported._compiled
        if exported._plain != len(types) or exported._written or not compiled.only_outputs:
            return None

        def run(args, out):
            if out is not None or len(args) != len(types):
                return None
            tensors = []
            for given, dtype in zip(args, types):
                if type(given) is np.ndarray:
                    if given.dtype != dtype or not given.flags.carray:
                        return None
                    given = torch.from_numpy(given)
                tensors.append(given)
            results = compiled.quick(tensors)
            return None if results is None else [t.detach().contiguous().numpy() for t in results]

        return run

    def profile(self, arrays):
        self.prepare(arrays)
        return Compiled(self.compiled.model).profile(arrays)


class Done:
    """A run that has taken place."""

    def __init__(self, given, made):
        self.arrays = given
        self.made = made
        self.results = [(a.dtype, a.shape) for a in made]

    def run(self, results):
        for to, array in zip(results, self.made):
            np.copyto(to, array)
