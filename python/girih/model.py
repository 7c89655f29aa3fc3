"""Models as they are run: an ONNX file, a module of PyTorch, or one line of PyTorch.

In: arrays by the names of the inputs, or in their order. Out: arrays of NumPy, new ones or those given as ``out``. A model for
``device="cuda"`` takes arrays of the device too (`girih.device`): it reads and writes them where they are, on their stream.

A model is compiled when it first runs (or read as it was compiled, by `load`), and works for all values of its symbolic extents. An
ONNX file that cannot be compiled so is compiled for all shapes with the properties of the given ones that it needs (two extents are
equal, one is a multiple of 16), or for the given shapes alone; a warning says so once. The last sixteen of these models are kept.

Several threads may call one model. Its runs take turns; the interpreter's lock is free while one runs.
"""

from __future__ import annotations

import difflib
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np

from girih import _library, _lists, _strings, _tensors, device
from girih._diagnostics import Diagnostic, ProgramError
from girih._files import write_whole
from girih.frontend.errors import GirihError

__all__ = ["Model", "Port", "Profile", "Step"]

_girih = _library.extension()

NAMES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip
#: NumPy's names of types of the package ml_dtypes.
MORE = {
    "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz", "f8E8M0FNU": "float8_e8m0fnu", "i2": "int2", "u2": "uint2",
    "i4": "int4", "u4": "uint4", "f4E2M1FN": "float4_e2m1fn",
}  # fmt: skip
ELEMENTS = {numpy: elem for elem, numpy in {**NAMES, **MORE}.items()}
#: ONNX Runtime's names of types, where they differ from NumPy's.
RUNTIME = {
    "float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2",
    "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0",
    "float4_e2m1fn": "float4e2m1",
}  # fmt: skip
OPTIONS = {"cache", "check", "device", "knobs", "max_memory", "threads"}


class Port(NamedTuple):
    """An input or output: ``x: float32[batch, 128]``."""

    name: str
    #: As NumPy calls it.
    dtype: str
    #: Numbers, and expressions over symbols as text.
    shape: tuple[Union[int, str], ...]

    @property
    def type(self) -> str:
        """The type as ONNX Runtime writes it: `tensor(float)`, `seq(tensor(float))`."""
        outer, _, inner = self.dtype.rpartition("(")
        inner = inner.rstrip(")")
        return f"{outer}({self._replace(dtype=inner).type}{')' * (outer.count('(') + 1)}" if outer else f"tensor({RUNTIME.get(inner, inner)})"

    def __str__(self):
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


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
        self._defaults: dict[str, Port] = {p[0]: port(p) for p in source.defaults()} if isinstance(source, _Onnx) else {}
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
        return cls(_Onnx(native), name, ("from_onnx", (model,), {"dims": dims, **options}))

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
        return cls(_Graph(native), "expression", ("from_expr", (text, options), given))

    @classmethod
    def from_torch(cls, module, inputs=(), kwargs=None, *, dynamic_shapes=None, **options) -> Model:
        """A module of PyTorch, captured by `torch.export` as `girih.torch.export` does it.

        Args:
            module, inputs, kwargs, dynamic_shapes: as of `girih.torch.export`.
            options: as of `from_onnx`.
        """
        from girih.torch import _export

        exported = _export.captured(module, inputs, kwargs, dynamic_shapes, None, known(options), as_they_lie=False)
        return cls(_Torch(exported), exported.name)

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
        return cls(_Loaded(native), native.name())

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
        arrays, extents = _Arrays(self._words), {}
        # For an ONNX file, the names of extents are hints.
        apart = arrays if isinstance(self._source, _Onnx) else None
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


# The sources of models. Each has inputs, outputs, made, strings, model, prepare and profile.


class _Compiled:
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
        return _Prepared(self.native, given, shapes, results, self.of_elements)

    def profile(self, arrays):
        held = {name: packed(arrays[name]) for name in self.taken}
        return self.native.profile([(name, address(held[name]), arrays[name].shape) for name in self.taken])


class _Prepared(NamedTuple):
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


class _Graph:
    """A graph that is compiled once."""

    def __init__(self, native):
        self.native = native
        self.compiled = _Compiled(native)
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


class _Loaded(_Graph):
    """A compiled model from a file, which has its parameters."""

    def made(self):
        made = self.native.made()
        return {n: np.frombuffer(data, dtype_of(elem)).reshape(shape) for n, elem, shape, data in made}


class _Onnx:
    """A file, compiled for all shapes, or for those that come and shapes like them."""

    def __init__(self, native):
        self.native = native
        #: The model of the last run, and which shapes it is for (None for all). Several threads may set it.
        self.last: tuple[_Compiled, str | None] | None = None
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
        found = _Compiled(native, known)
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


class _Torch:
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
        return _Done(given, [t.detach().contiguous().numpy() for t in flat])

    def quick(self, prepared):
        """A function of arrays or tensors, as `_Compiled.quick`."""
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
        return _Compiled(self.compiled.model).profile(arrays)


class _Done:
    """A run that has taken place."""

    def __init__(self, given, made):
        self.arrays = given
        self.made = made
        self.results = [(a.dtype, a.shape) for a in made]

    def run(self, results):
        for to, array in zip(results, self.made):
            np.copyto(to, array)


# Types and messages.


def dtype_of(elem: str) -> np.dtype:
    # A string is its number; see `_strings`.
    if elem == "string":
        return np.dtype(np.int64)
    name = NAMES.get(elem) or MORE.get(elem)
    if name is None:
        raise GirihError(f"NumPy has no {elem}")
    return device.dtype_of(name)


def element(dtype: np.dtype) -> str:
    """Girih's name of a type of NumPy; for an unknown type, NumPy's name."""
    return ELEMENTS.get(dtype.name, dtype.name)


def address(array) -> int:
    return array.address if isinstance(array, device.View) else array.ctypes.data


def place(array, where="cuda"):
    """The memory of an array that is given for a result: a view of the device's or an array of NumPy's; the array itself where it is
    neither, or lies on another device than `where`."""
    if where == "cuda" and (found := device.view(array)) is not None:
        return found
    if _tensors.is_tensor(array) and array.device.type == "cpu":
        return _tensors.elements(array)
    return array


def not_written(tensor):
    """Why nothing can be written where a tensor lies, and what to do; None where it can."""
    if tensor.requires_grad:
        return "requires a gradient; pass `x.detach()`"
    return _tensors.problem(tensor)


def in_nibbles(dtype) -> bool:
    """Returns True if two elements share a byte in a model, as those of ONNX do; NumPy has a byte for each."""
    return dtype.name in ("int4", "uint4", "float4_e2m1fn")


def packed(array):
    """The array as a model takes it."""
    if not in_nibbles(array.dtype):
        return array
    nibbles = np.zeros(array.size + array.size % 2, np.uint8)
    nibbles[: array.size] = array.reshape(-1).view(np.uint8) & 15
    return nibbles[0::2] | nibbles[1::2] << 4


def unpacked(nibbles, array):
    """Writes a model's output to an array of NumPy's."""
    count = array.size
    each = np.stack([nibbles[: (count + 1) // 2] & 15, nibbles[: (count + 1) // 2] >> 4], -1).reshape(-1)[:count]
    signed = (each ^ 8).astype(np.int8) - 8 if array.dtype.name == "int4" else each
    array[...] = signed.astype(np.uint8).view(array.dtype).reshape(array.shape)


def usable(array) -> bool:
    """Returns True if results can be written to it."""
    if isinstance(array, device.View):
        return array.contiguous and array.writable
    return array.flags.c_contiguous and array.flags.aligned and array.flags.writeable


def overlap(a, b) -> bool:
    if isinstance(a, device.View) and isinstance(b, device.View):
        return a.address < b.address + b.nbytes and b.address < a.address + a.nbytes
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def one_stream(arrays) -> int | None:
    """The stream of arrays of the device, which then waits for the streams of the others; None where there are none."""
    streams = [array.stream for array in arrays if isinstance(array, device.View)]
    for other in set(streams[1:]) - set(streams[:1]):
        _girih.synchronize(other)
    return streams[0] if streams else None


def port(described) -> Port:
    name, elem, shape, _ = described
    outer, bracket, inner = elem.rpartition("(")
    inner, close = inner.rstrip(")"), ")" * elem.count("(")
    return Port(name, f"{outer}{bracket}{NAMES.get(inner, MORE.get(inner, inner))}{close}", tuple(shape))


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


class _Arrays(dict):
    """The arrays of a run, by name."""

    def __init__(self, words=None):
        super().__init__()
        #: Where strings get their numbers.
        self.call = words and words.call()
        #: Which names of extents stand for several of them. Where that may be, a model shows whether it is wrong.
        self.apart = []


def fitted(wanted: Port, given, extents, where, arrays=None):
    """The value of an input as an array in order, or what is wrong with it. `extents` are those of the symbols so far, and
    `where` is the device of the run. `arrays` is told where one name has two extents, unless that is wrong."""
    dtype = dtype_of(ELEMENTS.get(wanted.dtype, wanted.dtype))
    found = None if _tensors.is_tensor(given) and _tensors.is_nowhere(given) else device.view(given)
    if found is not None and where != "cuda":
        return None, f'input `{wanted.name}` is on a CUDA device: make the model with device="cuda"'
    try:
        given = _tensors.elements(given) if found is None and _tensors.is_tensor(given) else given
        array = np.asarray(given) if found is None else found
        # Lists and numbers have no type of their own; a fraction is not an integer.
        typed = isinstance(given, np.generic) or hasattr(given, "__array__") or hasattr(given, "__array_interface__")
        typed = typed or found is not None
        if array.dtype != dtype and not typed and not (array.dtype.kind == "f" and dtype.kind in "iub"):
            array = np.asarray(given, dtype)
    except (OverflowError, TypeError, ValueError) as e:
        return None, f"input `{wanted.name}` is not an array of {wanted.dtype}: {e}"
    if given is None:
        return None, f"input `{wanted.name}` is None: the model expects {wanted}"
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        return None, f"input `{wanted.name}` is an array with masked elements, which a model would use: pass `x.filled(value)`"
    if array.dtype != dtype:
        found, more = array.dtype.name, ""
        if not array.dtype.isnative:
            found, more = array.dtype.str, "; `array.astype(array.dtype.newbyteorder('='))` has this machine's order of bytes"
        if array.dtype.kind in "USOT":
            found = {"U": "an array of strings", "S": "an array of bytes", "O": "an array of Python objects", "T": "an array of strings"}[array.dtype.kind]
        elif array.dtype == np.uint16 and dtype.name == "bfloat16":
            more = "; where these are its bits, pass `array.view(ml_dtypes.bfloat16)`"
        return None, f"input `{wanted.name}` is {found}: the model expects {wanted}{more}"
    if problem := unlike_shape(wanted, array, extents, arrays):
        return None, problem
    if found is None:
        fits = array.flags.c_contiguous and array.flags.aligned
        return array if fits else array.copy(order="C"), None
    if not found.contiguous:
        return None, f"input `{wanted.name}` is not C-contiguous: copy it, as `cupy.ascontiguousarray` does"
    return found, None


def unlike_shape(wanted: Port, array, extents, arrays):
    """Why an array does not have the shape of an input; None where it has. The rest is as of `fitted`."""
    any_rank = wanted.shape == ("...",)
    if array.ndim != len(wanted.shape) and not any_rank:
        return f"input `{wanted.name}` has shape {list(array.shape)}: the model expects {wanted}"
    for axis, (have, want) in enumerate(() if any_rank else zip(array.shape, wanted.shape)):
        known_extent = want if isinstance(want, int) else extents.setdefault(want, have) if want.isidentifier() else have
        if have != known_extent:
            name = "" if isinstance(want, int) else f", and {want} is {known_extent}"
            problem = f"input `{wanted.name}` has extent {have} along axis {axis}: the model expects {wanted}{name}"
            if isinstance(want, int) or arrays is None:
                return problem
            arrays.apart.append(problem)
    return None


def unlike(kind, name, names):
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"its {kind}s are {', '.join(names)}"
    return f"the model has no {kind} `{name}`; {hint}"


def mistake(problem):
    return Diagnostic("error", "E0806", problem, "<model>", None, None, None, None)


def refuse(problems):
    raise ProgramError([mistake(problem) for problem in problems])
