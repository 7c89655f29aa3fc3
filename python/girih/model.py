"""Models as they are run: an ONNX file, a module of PyTorch, or one line of PyTorch.

In: arrays by the names of the inputs, or in their order. Out: arrays of NumPy, new ones or those given as ``out``. A model for
``device="cuda"`` takes arrays of the device too (`girih.device`): it reads and writes them where they are, on their stream.

A model is compiled when it first runs (or read as it was compiled, by `load`), and works for all values of its symbolic extents. An
ONNX file that cannot be compiled so is compiled for all shapes with the properties of the given ones that it needs (two extents are
equal, one is a multiple of 16), or for the given shapes alone; a warning says so once. The last sixteen of these models are kept.

Several threads may call one model. Its runs take turns; the interpreter's lock is free while one runs.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from girih import _library, _lists, _strings, _tensors, device
from girih._files import write_whole
from girih._ports import Arrays, Port, element, fitted, not_written, overlap, place, port, refuse, unlike, unlike_shape, usable
from girih._sources import Graph, Loaded, Onnx, Torch
from girih.frontend.errors import GirihError

__all__ = ["Model", "Port", "Profile", "Step"]

_girih = _library.extension()

OPTIONS = {"cache", "check", "device", "knobs", "max_memory", "threads"}


class Step(NamedTuple):
    """One launch of a run."""

    kernel: str
    #: The model's operations that it computes.
    operations: list[str]
    #: The median of the runs.
    seconds: float
    #: Multiplications and additions of its products.
    flops: float
    #: The bytes that it must move at least.
    bytes: float
    #: The part of the machine's limit that it reaches; above 1 where its data stay in caches.
    fraction: float


class Profile:
    """Where the time of a run goes. Prints as a table."""

    def __init__(self, seconds, steps, memory):
        #: The median of whole runs.
        self.seconds: float = seconds
        self.steps: list[Step] = steps
        #: Bytes of weights, of arrays computed from them at load, and of temporary arrays.
        self.weights, self.loaded, self.arena = memory

    def __str__(self):
        total = sum(step.seconds for step in self.steps) or 1e-12
        rows = [("kernel", "us", "share", "MB", "GFLOP/s", "of limit", "computes")]
        for s in self.steps:
            rate = f"{s.flops / max(s.seconds, 1e-9) / 1e9:.1f}" if s.flops else "-"
            share, limit = f"{100 * s.seconds / total:.1f} %", f"{100 * s.fraction:.0f} %"
            computes = ", ".join(s.operations)
            rows.append((s.kernel, f"{s.seconds * 1e6:.1f}", share, f"{s.bytes / 1e6:.2f}", rate, limit, computes))
        widths = [max(len(row[c]) for row in rows) for c in range(6)]
        align = lambda row: "  ".join(w.ljust(n) if c == 0 else w.rjust(n) for c, (w, n) in enumerate(zip(row, widths)))
        lines = [f"{align(row)}  {row[6]}".rstrip() for row in rows]
        mega = lambda n: f"{n / 1e6:.1f} MB"
        lines.append(f"run: median {self.seconds * 1e6:.1f} us, {total * 1e6:.1f} us of it in kernels")
        held = f"weights {mega(self.weights)}, computed from them {mega(self.loaded)}"
        lines.append(f"memory: {held}, temporary arrays {mega(self.arena)}")
        return "\n".join(lines)

    def chrome_trace(self, path) -> None:
        """Writes the steps, one behind the other, as a trace that Chrome's ``about:tracing`` and Perfetto show."""
        events, start = [], 0.0
        for step in self.steps:
            details = {"operations": step.operations, "flops": step.flops, "bytes": step.bytes, "of_limit": step.fraction}
            event = {"name": step.kernel, "ph": "X", "ts": start * 1e6, "dur": step.seconds * 1e6, "pid": 0, "tid": 0}
            events.append({**event, "args": details})
            start += step.seconds
        write_whole(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))


class Model:
    """A model that is called with arrays.

    Example:
        >>> model = girih.Model.from_expr("torch.softmax(x, -1)", x="f32[4, 128]")
        >>> model.inputs
        [Port(name='x', dtype='float32', shape=(4, 128))]
        >>> model(np.zeros((4, 128), np.float32))[0, 0]
        np.float32(0.0078125)
    """

    def __init__(self, source, name, origin=None):
        self._source = source
        #: The class method that makes it again and its arguments, where it is not made from a file of `save`.
        self._origin = origin
        #: For messages.
        self.name: str = name
        #: The inputs of a run, in order; inputs that make their own data need not be given.
        self.inputs: list[Port] = [port(p) for p in source.inputs()]
        #: The outputs, in order.
        self.outputs: list[Port] = [port(p) for p in source.outputs()]
        #: Inputs that a file has a value for, by name.
        self._defaults: dict[str, Port] = {p[0]: port(p) for p in source.defaults()} if isinstance(source, Onnx) else {}
        self._made = source.made()
        strings = source.strings()
        ports = (*self.inputs, *self.outputs)
        self._words = _strings.Words(strings) if any("string" in p.dtype for p in ports) else None
        #: True if an input or output is several arrays, or perhaps none.
        self._lists = any(map(_lists.kind, ports))
        #: Runs the model on arrays that look as those of the last run did.
        self._quick = None

    # Where models come from.

    @classmethod
    def from_onnx(cls, model, *, dims: dict[str, int] | None = None, **options) -> Model:
        """An ONNX file.

        Args:
            model: its path, or its bytes; of a path the file and those of its weights are mapped, not copied.
            dims: extents of named dimensions, fixed before anything is compiled.
            options: `device` (`cpu`, `eval`, `sim`, `cuda`), `threads`, `check`, `cache`, `knobs`, and `max_memory`, bytes or a
                text such as `"2G"`: a model whose weights, temporary arrays and results take more is refused.

        Raises:
            ProgramError: bytes that are not an ONNX model, or a dimension that it does not have. Unsupported operations
                are reported when the model is first run.
            GirihError: an option that does not exist.
        """
        extents = list((dims or {}).items())
        if isinstance(model, (bytes, bytearray, memoryview)):
            model = bytes(model)
            native, name = _girih.OnnxModel.from_bytes(model, extents, **known(options)), "model"
        else:
            model = os.path.abspath(os.fspath(model))
            native, name = _girih.OnnxModel.from_file(model, extents, **known(options)), Path(model).stem
        return cls(Onnx(native), name, ("from_onnx", (model,), {"dims": dims, **options}))

    @classmethod
    def from_expr(cls, text: str, options: dict[str, Any] | None = None, **inputs) -> Model:
        """One line of PyTorch, as `girih run -c` takes it.

        Args:
            text: `torch.softmax(x, -1)`; `girih run -c help` lists what is supported.
            options: as of `from_onnx`.
            inputs: the type of each name that the line does not define, as text, `"f32[4, 128]"`, or an array like it.

        Raises:
            ProgramError: an unsupported function, with its place.
        """
        types = [(name, *type_of(name, given)) for name, given in inputs.items()]
        native = _girih.Model.from_expression(text, types, **known(options or {}))
        given = {name: f"{elem}[{', '.join(map(str, shape))}]" for name, elem, shape in types}
        return cls(Graph(native), "expression", ("from_expr", (text, options), given))

    @classmethod
    def from_torch(cls, module, inputs=(), kwargs=None, *, dynamic_shapes=None, **options) -> Model:
        """A module of PyTorch, captured by `torch.export` as `girih.torch.export` does it.

        Args:
            module, inputs, kwargs, dynamic_shapes: as of `girih.torch.export`.
            options: as of `from_onnx`.
        """
        from girih.torch import _export

        exported = _export.captured(module, inputs, kwargs, dynamic_shapes, None, known(options), as_they_lie=False)
        return cls(Torch(exported), exported.name)

    @classmethod
    def load(cls, path, *, verify: bool = True, **options) -> Model:
        """A model that `save` wrote, ready to run: the file is mapped, and nothing is compiled. The whole file is read once and
        compared with the hashes that it holds.

        Kernels that another version of Girih, another processor or another number of threads would lower differently are
        compiled anew, with a warning that says why. The file holds machine code, which is run: load only files whose author you
        trust.

        Args:
            path: the file.
            verify: False skips the weights and the arrays computed from them, for users who trust the disk: damage to them then
                goes unnoticed.
            options: as for `from_onnx`; knobs and checks are those it was saved with.

        Raises:
            GirihError: a file that is not a saved model, is damaged or truncated.
        """
        native, why = _girih.Model.load(os.fspath(path), verify=bool(verify), **known(options))
        if why is not None:
            warnings.warn(f"girih: {os.fspath(path)} was compiled anew: {why}", stacklevel=2)
        return cls(Loaded(native), native.name())

    def save(self, path) -> None:
        """Writes the model as it is compiled: graph, weights, the arrays computed from them, and machine code.

        For an ONNX file that is compiled for given shapes, the model of the last run is written.

        Raises:
            ProgramError: a model that cannot be compiled.
            GirihError: a file that cannot be written.
        """
        self._source.model().save(os.fspath(path))

    def __reduce__(self):
        """A model of an ONNX file is pickled as the file's bytes or its path, a line as its text, and any other as `save` writes
        it, machine code included; `copy.deepcopy` does the same."""
        if self._origin is not None:
            return _again, (type(self), *self._origin)
        with tempfile.TemporaryDirectory(prefix="girih-") as folder:
            self.save(path := os.path.join(folder, "model.girih"))
            return _read, (type(self), Path(path).read_bytes(), self.name)

    def get_inputs(self) -> list[Port]:
        """`inputs`, under the name that ONNX Runtime has for them; each has a `type` such as `tensor(float)`."""
        return list(self.inputs)

    def get_outputs(self) -> list[Port]:
        """`outputs`, likewise."""
        return list(self.outputs)

    # Runs.

    def __call__(self, *args, out=None, **named):
        """Runs the model: arrays in the order of the inputs, or by name.

        Args:
            out: arrays to write to, C-contiguous and of the outputs' types: one, a sequence in their order, or a dict by
                name. Outputs without an array are allocated. The arrays must not overlap the inputs or arrays that another
                thread uses.

        Returns:
            The array of a model with one output; for several outputs, a tuple in their order. If an input is on a CUDA
            device, new arrays are there too: `girih.device.Array`.

        Raises:
            ProgramError: arrays that do not fit; one error lists all problems.
        """
        quick = self._quick
        if quick is not None and not (named and (args or out is not None)):
            results = self._quickly(named) if named else quick(args, out)
            if results is not None:
                return results[0] if len(results) == 1 else tuple(results)
        results = self._run(self._named(args, named), out)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, outputs, feed: dict[str, Any]) -> list[np.ndarray]:
        """Runs the model, in the order of ONNX Runtime's arguments.

        Args:
            outputs: names of outputs, or None for all.
            feed: arrays by the names of inputs.

        Returns:
            The arrays of these outputs, in the order of the names.
        """
        names = [port.name for port in self.outputs]
        wanted = names if outputs is None else list(outputs)
        if unknown := [name for name in wanted if name not in names]:
            refuse([unlike("output", name, names) for name in unknown])
        results = self._quickly(feed)
        results = dict(zip(names, self._run(dict(feed), None) if results is None else results))
        return [results[name] for name in wanted]

    def _quickly(self, feed):
        """The results for arrays that look as those of the last run did; None where they do not."""
        quick = self._quick
        if quick is None or len(feed) != len(self.inputs) or any(port.name not in feed for port in self.inputs):
            return None
        return quick(tuple(feed[port.name] for port in self.inputs), None)

    def _named(self, args, named):
        names = [port.name for port in self.inputs]
        if len(args) > len(names):
            refuse([f"the model has {len(names)} inputs, but {len(args)} arrays are given"])
        if twice := [name for name, _ in zip(names, args) if name in named]:
            refuse([f"input `{name}` is given twice" for name in twice])
        return {**dict(zip(names, args)), **named}

    def _fitting(self, feed):
        """The arrays of a run, by name and in order."""
        names = [port.name for port in self.inputs]
        problems = [unlike("input", name, names) for name in feed if name not in names and name not in self._defaults]
        arrays, extents = Arrays(self._words), {}
        # For an ONNX file, the names of extents are hints.
        apart = arrays if isinstance(self._source, Onnx) else None
        for port in [*self.inputs, *(port for name, port in self._defaults.items() if name in feed)]:
            optional = _lists.kind(port).startswith("optional")
            if port.name not in feed and port.name in self._made:
                arrays[port.name] = self._made[port.name]
                continue
            if port.name not in feed and not optional:
                problems.append(f"input `{port.name}` is not given: the model expects {port}")
                continue
            tensors, problem = _lists.tensors(port, feed.get(port.name))
            problems += [problem] if problem else []
            for wanted, given in tensors:
                if wanted.dtype == "string":
                    array, problem = arrays.call.numbers(wanted, given)
                    problem = problem or unlike_shape(wanted, array, extents, apart)
                else:
                    array, problem = fitted(wanted, given, extents, self._source.device(), apart)
                arrays[wanted.name] = array
                problems += [problem] if problem else []
        if problems:
            refuse(problems)
        return arrays

    def _run(self, feed, out):
        arrays = self._fitting(feed)
        prepared = self._source.prepare(arrays)
        if self._lists:
            return self._gathered(prepared, arrays, out)
        results = self._given({} if out is None else out, prepared.results, arrays)
        prepared.run([place(array) for array in results])
        for array in filter(_tensors.is_tensor, results):
            _tensors.written(array)
        if self._words is not None:
            return [arrays.call.strings(a) if port.dtype == "string" else a for port, a in zip(self.outputs, results)]
        # All inputs were given, in the model's order.
        plain = len(feed) == len(self.inputs) and list(map(id, arrays.values())) == list(map(id, prepared.arrays))
        self._quick = self._source.quick(prepared) if plain else None
        return results

    def _gathered(self, prepared, arrays, out):
        if out is not None:
            refuse(["a model that takes or gives sequences or optional values gives new arrays: leave `out` away"])
        results = [np.empty(shape, dtype) for dtype, shape in prepared.results]
        prepared.run(results)
        named = dict(zip([p[0] for p in prepared.native.outputs()], results))
        if self._words is not None:
            strings = {port.name for port in self.outputs if "string" in port.dtype}
            named = {n: arrays.call.strings(a) if n.partition("[")[0] in strings else a for n, a in named.items()}
        return [_lists.gathered(port, named) for port in self.outputs]

    def _given(self, out, types, arrays):
        names = [port.name for port in self.outputs]
        if not isinstance(out, dict):
            out = list(out) if isinstance(out, (list, tuple)) else [out]
            if len(out) != len(names):
                refuse([f"the model has {len(names)} outputs, but `out` has {len(out)} arrays"])
            out = {name: array for name, array in zip(names, out) if array is not None}
        problems = [unlike("output", name, names) for name in out if name not in names]
        results = []
        there = [array for array in arrays.values() if isinstance(array, device.View)]
        taken = list(arrays.values())
        for port, (dtype, shape) in zip(self.outputs, types):
            name, array = port.name, out.get(port.name)
            if array is not None and port.dtype == "string":
                problems.append(f"`out` for `{name}`: strings are given as new arrays only")
            if array is None:
                empty = device.Array(shape, dtype, there[0].stream) if there else np.empty(shape, dtype)
                results.append(empty)
                continue
            if _tensors.is_tensor(array) and (problem := not_written(array)):
                problems.append(f"`out` for `{name}` is a tensor that {problem}")
                results.append(array)
                continue
            given = place(array, self._source.device())
            if not isinstance(given, (np.ndarray, device.View)) or given.dtype != dtype or given.shape != tuple(shape):
                known = isinstance(given, (np.ndarray, device.View))
                found = f"{given.dtype}{list(given.shape)}" if known else type(array).__name__
                problems.append(f"`out` for `{name}` is {found}: the run gives {dtype}{list(shape)}")
            elif not usable(given):
                problems.append(f"`out` for `{name}` must be C-contiguous, aligned and writable")
            elif any(overlap(given, other) for other in taken):
                problems.append(f"`out` for `{name}` overlaps another array of the run")
            taken.append(given)
            results.append(array)
        if problems:
            refuse(problems)
        return results

    # A look inside.

    def profile(self, *args, **named) -> Profile:
        """Runs the model for about a second on arrays, as a call takes them, and tells where the time goes."""
        seconds, steps, memory = self._source.profile(self._fitting(self._named(args, named)))
        return Profile(seconds, [Step(*step) for step in steps], memory)

    def ir(self, stage: str) -> str:
        """The model's text at a stage: `torch`, `tensor`, `loop`, `tile`, `kernel`, `c`; for a GPU `cuda` in place of `c`.

        For an ONNX file that is compiled for given shapes: the model of the last run.
        """
        return self._source.model().ir(stage)

    def trace(self, full: bool = False) -> str:
        """The rewrites of each rule; with `full`, as diffs, and why other rules did nothing."""
        return self._source.model().explain(full)

    def explain(self, html) -> None:
        """Writes the page of the compilation to the file `html`: the stages side by side, linked line by line, each rule with its changes
        and refusals, and the graph; as `girih explain` does. For an ONNX file that is compiled for given shapes: of the last run."""
        write_whole(html, self._source.model().page(self.name))

    def __repr__(self):
        takes, gives = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<girih.Model {self.name}({takes}) -> {gives}>"


def _again(cls, how, args, named):
    """A model that was pickled as its source."""
    return getattr(cls, how)(*args, **named)


def _read(cls, data, name):
    """A model that was pickled as `save` writes it. The file is mapped: it may go."""
    with tempfile.TemporaryDirectory(prefix="girih-") as folder:
        path = Path(folder, "model.girih")
        path.write_bytes(data)
        model = cls.load(path)
    model.name = name
    return model


def type_of(name, given):
    """`f32[4, 128]`, or the type of an array."""
    if isinstance(given, str):
        elem, _, shape = given.strip().removesuffix("]").partition("[")
        extents = [word.strip() for word in shape.replace("x", ",").split(",") if word.strip()]
        if not all(word.isdecimal() for word in extents):
            raise GirihError(f"the type of `{name}` is {given!r}: expected one as f32[4, 128]")
        return elem.strip(), [int(word) for word in extents]
    array = np.asarray(given)
    return element(array.dtype), list(array.shape)


def known(options):
    if unknown := sorted(set(options) - OPTIONS):
        raise GirihError(f"a model has no option `{unknown[0]}`; the options are {', '.join(sorted(OPTIONS))}")
    return options
