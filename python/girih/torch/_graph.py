"""FX graphs of ATen operations as the JSON that Girih reads (`crates/girih-graph/src/source/torch`).

In: a `torch.fx.Graph` whose nodes have fake tensors as ``meta["val"]``. Out: a `Document`, which says for each node of
the JSON which FX node it is, and which nodes cannot be written at all.

Numbers made of sizes and of other numbers (`aten.sym_size`, arithmetic on SymInts) are not nodes of the JSON: they are
written as expressions where they are used. Nor are views that only results show: PyTorch makes those of the tensors
that the graph computes or was given, so that they share memory, and have the strides and the offset, as they should.
"""

from __future__ import annotations

import functools
import json
import math
import re
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree as pytree

from . import _complex, _layouts, _memory
from ._extents import Inexpressible
from ._scalars import LIMIT, Scalars

__all__ = ["DTYPES", "Document", "Unsupported", "clean_path", "document"]

DTYPES = {
    torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64",
    torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.bool: "bool",
    torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2",
}  # fmt: skip

# Element types as schemas number them where one is a default.
SCALAR_TYPES = {4: torch.int64, 6: torch.float32, 7: torch.float64, 11: torch.bool}

# Constants of at most this many elements become part of the graph.
SMALL = 1024

# Arguments that say where or how a tensor is stored, not which elements it has.
PLACEMENT = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator"}


# Numbers that become elements of the result. PyTorch raises where the type cannot hold them; elsewhere numbers wrap.
ELEMENTS = {
    "fill": ("value",), "full": ("fill_value",), "full_like": ("fill_value",), "new_full": ("fill_value",),
    "scalar_tensor": ("s",), "masked_fill": ("value",), "index_fill": ("value",), "scatter": ("value",),
    "constant_pad_nd": ("value",), "threshold": ("threshold", "value"), "add": ("alpha",), "sub": ("alpha",),
    "rsub": ("alpha",),
}  # fmt: skip

# Operations whose bounds may be beyond the type, where they bound nothing.
CLAMPS = ("clamp", "clamp_min", "clamp_max")


# Operations of other namespaces that are ATen's under another name.
OTHER_NAMES = {"prims.convert_element_type": "aten._to_copy", "aten._neg_view": "aten.neg"}


# Copies with a part replaced, whose storage has the strides and the offset of what they copy.
SCATTERS = {"slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"}


# Operations that count elements of their operand's storage.
STRIDED = {"as_strided", "as_strided_copy", "as_strided_scatter"}


# Operations that are given the shape of their result, where -1 stands for what is left: PyTorch has computed that.
SHAPED = {"view", "view_copy", "reshape", "_unsafe_view", "_reshape_alias"}


# Operations that take an axis apart into pieces of one length: PyTorch has computed the lengths.
SPLITS = {"split", "unsafe_split"}


# Operations that divide: of integers by 0 they raise on processors, and give any number on GPUs.
DIVISIONS = {"div", "divide", "floor_divide", "remainder", "fmod"}


class Unsupported(Exception):
    """Why a node cannot be written; one plain sentence."""


CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)


class Document:
    """A graph as JSON.

    Attributes:
        root: the JSON.
        device: where its tensors are: the processor, or the first CUDA device.
        nodes: for each node of the JSON the FX node.
        refused: FX nodes that are not in the JSON, and why.
        inputs: for each placeholder (FX node) a name of the JSON's, or None where it is an integer.
        constants: names of inputs that hold attributes of the module, with the attributes' names.
        scalars: the numbers that change, and `numbers`: names of inputs that hold one each, with the numbers.
        at_origin: placeholders whose tensors must start where their storage does.
        limits: numbers that change, with the least and the greatest for which the graph is right.
        results: what the graph returns: nodes, and Python's constants.
        bases: for each node that is computed and that results are, or show parts of: the name of its output.
        memories: placeholders that are read as they lie in memory, and how; `shapes`: the extents of their tensors.
        orders: bases whose outputs have the axes in another order, that in which they lie in memory.
    """

    def __init__(self, name: str, device: torch.device):
        self.device = device
        self.root: dict[str, Any] = {
            "format": "girih.torch", "version": 1, "name": name, "symbols": [], "inputs": [], "constants": [],
            "nodes": [], "outputs": [],
        }  # fmt: skip
        self.nodes: list[torch.fx.Node] = []
        self.refused: dict[torch.fx.Node, str] = {}
        self.inputs: list[tuple[torch.fx.Node, str | None]] = []
        self.constants: dict[str, str] = {}
        self.scalars = Scalars()
        self.numbers: dict[str, torch.SymFloat] = {}
        self.at_origin: set[torch.fx.Node] = set()
        self.limits: list[tuple[Any, Any, Any]] = []
        self.results: list[Any] = []
        self.bases: dict[torch.fx.Node, str] = {}
        self.memories: dict[torch.fx.Node, _memory.Memory] = {}
        self.shapes: dict[torch.fx.Node, list] = {}
        self.orders: dict[torch.fx.Node, tuple[int, ...]] = {}

    def text(self) -> str:
        return json.dumps(self.root)


def is_scalar(node) -> bool:
    """True if a node is a number that is computed from sizes and other such numbers: it is written where it is used."""
    numbers = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
    if not isinstance(node.meta.get("val"), numbers) or node.op not in ("placeholder", "call_function"):
        return False
    name = str(getattr(node.target, "overloadpacket", node.target))
    reads_sizes = name in ("aten.sym_size", "aten.sym_numel", "aten.sym_stride", "aten.sym_storage_offset")
    return reads_sizes or all(map(is_scalar, node.all_input_nodes))


def is_told(node) -> bool:
    """True if a node asserts what the graph says of a tensor anyway: `torch.export` leaves one at each `.to(dtype)`."""
    return node.target is torch.ops.aten._assert_tensor_metadata.default


@functools.cache
def operands_by_name(packet) -> frozenset[str]:
    """The parameters of an operation that are a tensor in one of its overloads: numbers there are operands."""
    names = set()
    for overload in packet.overloads():
        if "out" in overload:
            continue
        for argument in getattr(packet, overload)._schema.arguments:
            if is_tensor(argument.type) and not argument.is_out:
                names.add(argument.name)
    return frozenset(names)


def unwrapped(kind):
    return kind.getElementType() if isinstance(kind, torch.OptionalType) else kind


def is_tensor(kind) -> bool:
    return isinstance(unwrapped(kind), torch.TensorType)


def is_tensor_list(kind) -> bool:
    kind = unwrapped(kind)
    return isinstance(kind, torch.ListType) and is_tensor(kind.getElementType())


def number(value):
    """A Python number as JSON."""
    if isinstance(value, float):
        if value != value:
            return {"float": "nan"}
        if value in (float("inf"), float("-inf")):
            return {"float": "inf" if value > 0 else "-inf"}
    return value


def held(dtype, of_integer) -> tuple | None:
    """The least and the greatest number that PyTorch takes for an element of a type; None where it takes all."""
    if dtype in (None, torch.bool) or dtype.is_complex:
        return None
    if dtype.is_floating_point:
        return torch.finfo(dtype).min, torch.finfo(dtype).max
    info = torch.iinfo(dtype)
    # Negative integers wrap where the type is unsigned.
    return -info.max if of_integer and info.min == 0 else info.min, info.max


def integer_beside(node) -> torch.dtype | None:
    """The type that an integer of Python's takes beside operands without axes, where that is another integer type than int64; beside
    others the compiler knows it."""
    tensors = [v for n in node.all_input_nodes if isinstance(v := n.meta.get("val"), torch.Tensor)]
    if not tensors or any(t.dim() for t in tensors):
        return None
    dtype = functools.reduce(torch.promote_types, (t.dtype for t in tensors))
    integer = dtype not in (torch.bool, torch.int64) and not dtype.is_floating_point and not dtype.is_complex
    return dtype if integer and dtype in DTYPES else None


def scalar(value):
    """A Python number as an operand."""
    value = number(value)
    return {"s": value["float"], "dtype": "f64"} if isinstance(value, dict) else value


def device_of(module: torch.fx.GraphModule) -> torch.device:
    """Where a graph is compiled for: the first CUDA device if any of its tensors is there."""
    values = (value for node in module.graph.nodes for value in pytree.tree_leaves(node.meta.get("val")))
    return CUDA if any(isinstance(v, torch.Tensor) and v.device == CUDA for v in values) else CPU


class Writer:
    def __init__(self, name, module, parameters, as_they_lie):
        self.document = Document(name, device_of(module))
        self.module = module
        self.parameters = parameters
        #: True if tensors outside are read and written as they lie in memory, else row-major.
        self.as_they_lie = as_they_lie
        # The name in the JSON of the tensor that a node computes, or the names of several.
        self.names: dict[torch.fx.Node, Any] = {}
        #: Constants, and what is made of them alone.
        self.constants: set[torch.fx.Node] = set()

    # Values.

    def extent(self, value):
        try:
            return self.document.scalars.extent(value)
        except Inexpressible as e:
            raise Unsupported(str(e)) from None

    def index(self, value):
        try:
            return self.document.scalars.index(value)
        except Inexpressible as e:
            raise Unsupported(str(e)) from None

    def number(self, value):
        """An input that holds a changing float."""
        numbers = self.document.numbers
        for name, other in numbers.items():
            if other.node.expr == value.node.expr:
                return {"t": name}
        name = f"number_{len(numbers)}"
        numbers[name] = value
        self.document.root["inputs"].append({"name": name, "dtype": "f64", "shape": [], "role": "argument"})
        return {"t": name}

    def typed(self, name, value, constant=False):
        """Name, dtype and shape of a fake tensor. A tensor that is made of constants alone may be on the processor, as an index
        `[0, 2]` is: every runner of the graph has its constants."""
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"its result is a {type(value).__name__}, not a tensor")
        if value.device != self.document.device and not (constant and value.device == CPU):
            known = "Girih runs on the processor and on cuda:0"
            if value.device in (CPU, CUDA):
                known = f"the graph is compiled for {self.document.device}"
            raise Unsupported(f"it is on the device {value.device}, but {known}")
        if value.layout != torch.strided:
            raise Unsupported(f"a tensor of layout {value.layout} is not dense")
        if value.dtype.is_complex:
            raise Unsupported("it has no rule for complex numbers")
        if value.dtype not in DTYPES:
            raise Unsupported(f"its element type {value.dtype} is not supported")
        return {"name": name, "dtype": DTYPES[value.dtype], "shape": [self.extent(d) for d in value.shape]}

    def operand(self, value, integer=None):
        """A tensor or a number; `integer` is the type of an integer that changes, if it isn't int64."""
        if value is None:
            return None
        if isinstance(value, torch.fx.Node):
            name = self.names.get(value)
            if isinstance(name, str):
                return {"t": name}
            if isinstance(name, list):
                raise Unsupported("an operand is a list of tensors")
            if isinstance(of := value.meta.get("val"), torch.Tensor) and of.dtype.is_complex:
                raise Unsupported("it has no rule for complex numbers")
            if not is_scalar(value):
                raise Unsupported(f"its operand `{value.name}` is not available")
            value = value.meta["val"]
        if isinstance(value, torch.SymInt):
            return {"ix": self.index(value)} | ({"dtype": DTYPES[integer]} if integer else {})
        if isinstance(value, torch.SymFloat):
            return self.number(value)
        if isinstance(value, (bool, int, float)):
            return scalar(value)
        raise Unsupported(f"an operand is a {type(value).__name__}")

    def element(self, value, dtype):
        """Looks whether a number can be an element of a type; one that changes is looked at in every run."""
        value = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
        if isinstance(value, bool) or not isinstance(value, (int, float, torch.SymInt, torch.SymFloat)):
            return
        range_ = held(dtype, isinstance(value, (int, torch.SymInt)))
        if range_ is None:
            return
        lo, hi = range_
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            self.document.limits.append((value, lo, hi))
        elif not lo <= value <= hi and not (dtype.is_floating_point and not math.isfinite(value)):
            raise Unsupported(f"{value} is outside the range of {dtype}")

    def bound(self, value, name, dtype):
        """The operand that is a bound of integers: the end of the type where that is nearer."""
        value = value.meta.get("val") if isinstance(value, torch.fx.Node) and is_scalar(value) else value
        integers = dtype not in (None, torch.bool) and not dtype.is_floating_point and not dtype.is_complex
        if not integers or not isinstance(value, (int, torch.SymInt)):
            return self.operand(value)
        info = torch.iinfo(dtype)
        nothing, end = (info.min, info.max) if name == "min" else (info.max, info.min)
        beyond = max if name == "min" else min
        if isinstance(value, int):
            if beyond(value, end) == value != end:
                raise Unsupported(f"{value} is outside the range of {dtype}")
            return self.operand(beyond(value, nothing))
        if abs(nothing) > LIMIT:
            return self.operand(value)
        self.document.limits.append((value, *((-LIMIT, end) if name == "min" else (end, LIMIT))))
        return {"ix": [beyond.__name__, self.index(value), nothing]}

    def padded(self, x, amounts):
        """Leaves runs to PyTorch that cut off more than there is, which is an error, and those that add nothing: the result is a copy then,
        with the strides of what it is a copy of."""
        amounts = [a.meta.get("val") if isinstance(a, torch.fx.Node) else a for a in amounts]
        value = x.meta["val"]
        for n, before, after in zip(reversed(value.shape), amounts[::2], amounts[1::2]):
            cut = [torch.sym_min(amount, 0) for amount in (before, after)]
            if any(not isinstance(end, int) for end in (n, *cut)):
                self.within(n + sum(cut), 0)
        changing = [a for a in amounts if not isinstance(a, int)]
        if changing and all(a <= 0 for a in amounts if isinstance(a, int)) and not is_row_major(value):
            self.within(functools.reduce(torch.sym_max, changing), 1)

    def sliced(self, node):
        """A slice whose ends change, as a range of the length that PyTorch has found; None where all is known, or steps are wider."""
        x, dim, start, end, step = [*node.args, *(0, None, None, 1)[len(node.args) - 1 :]]
        start, end = (a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in (start, end))
        n, count = x.meta["val"].shape[dim], node.meta["val"].shape[dim]
        if step != 1 or not any(isinstance(e, torch.SymInt) for e in (start, end, n)) or node.kwargs:
            return None
        start = 0 if start is None else start
        negative = _layouts.hint(start) < 0
        start = n + start if negative else start
        if _layouts.hint(start) < 0 or _layouts.hint(start) > _layouts.hint(n):
            start = 0 if _layouts.hint(start) < 0 else n
        self.within(start, 0)
        self.within(n - start - count, 0)
        first = start if isinstance(start, int) else ["max", self.index(start), 0]
        first = first if isinstance(first, int) else {"ix": first}
        return "aten.narrow", {"dim": dim, "start": first, "length": self.attribute(count)}

    def within(self, value, lo):
        """Every run looks whether a number is at least `lo`, unless PyTorch's guards say so."""
        if isinstance(value, int) or statically_known_true(value >= lo):
            return
        if all(getattr(known, "node", None) is None or known.node.expr != value.node.expr for known, *_ in self.document.limits):
            self.document.limits.append((value, lo, LIMIT))

    def strided(self, x):
        """Looks whether places in the storage of an operand are places in the operand."""
        if not is_row_major(x.meta["val"]) or not starts_at_0(x):
            raise Unsupported("its operand is not row-major from the start of its storage")
        # Fake tensors do not always tell the offset of what is given: that is looked at in every run.
        while (source := viewed(x)) is not None:
            x = source
        if x.op == "placeholder":
            self.document.at_origin.add(x)

    def attribute(self, value):
        if isinstance(value, torch.fx.Node):
            value = value.meta.get("val")
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            if not -(1 << 63) <= value < 1 << 63:
                raise Unsupported(f"{value} does not fit in 64 bits")
            return value
        if isinstance(value, float):
            return number(value)
        if isinstance(value, torch.SymInt):
            return {"ix": self.index(value)}
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise Unsupported(f"the element type {value} is not supported")
            return {"dtype": DTYPES[value]}
        if isinstance(value, (list, tuple)):
            return [self.attribute(v) for v in value]
        raise Unsupported(f"an argument is a {type(value).__name__}")

    # Nodes.

    def placeholder(self, node):
        value = node.meta.get("val")
        if is_scalar(node):
            self.document.inputs.append((node, None))
            return
        role = "parameter" if node in self.parameters else "argument"
        try:
            typed = self.typed(node.name, value)
        except Unsupported as e:
            self.document.refused[node] = str(e)
            self.document.inputs.append((node, None))
            return
        self.document.inputs.append((node, node.name))
        self.names[node] = node.name
        memory = _memory.memory_of(value) if self.as_they_lie else None
        # Filters that are given with each call are read row-major. Copies of parameters are written again, which a tensor that repeats
        # its elements cannot be.
        repeats = role == "parameter" and memory is not None and 0 in (memory.strides or ())
        if memory is None or repeats or role == "argument" and is_filter(node):
            self.document.root["inputs"].append({**typed, "role": role})
            return
        self.document.memories[node], self.document.shapes[node] = memory, typed["shape"]
        shape = [self.extent(n) for n in memory.shape]
        self.document.root["inputs"].append({**typed, "shape": shape, "role": role})
        for number, (op, attrs, shape) in enumerate(memory.views):
            result = {**typed, "name": f"{node.name}__view{number}", "shape": [self.extent(n) for n in shape]}
            self.view(node, op, self.names[node], attrs, result)
            self.names[node] = result["name"]

    def view(self, node, op, of, attrs, result):
        """Writes a view that a node of the graph is read or written by."""
        self.document.root["nodes"].append({"op": op, "args": [{"t": of}], "attrs": attrs, "results": [result]})
        self.document.nodes.append(node)

    def attribute_of_module(self, node):
        value = functools.reduce(getattr, node.target.split("."), self.module)
        if not isinstance(value, torch.Tensor):
            raise Unsupported("an attribute of the module is not a tensor")
        self.constants.add(node)
        typed = self.typed(node.name, value, constant=self.is_within(node))
        if value.numel() <= SMALL and not value.dtype.is_complex and value.dtype.itemsize * 8 >= 8:
            # Tracing may be going on, which must not see this.
            with unset_fake_temporarily(), torch.no_grad():
                flat = value.reshape(-1)
                values = flat.to(torch.float64 if value.dtype.is_floating_point else value.dtype).tolist()
            values = [v["float"] if isinstance(v, dict) else v for v in map(number, values)]
            self.document.root["constants"].append({**typed, "values": values})
        else:
            self.document.root["inputs"].append({**typed, "role": "parameter"})
            self.document.constants[node.name] = node.target
        self.names[node] = node.name

    def call(self, node):
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            name = getattr(target, "__name__", str(target))
            raise Unsupported(f"`{name}` is not an operation of ATen")
        op = OTHER_NAMES.get(str(target.overloadpacket), f"aten.{target._opname}")
        if target.namespace != "aten" and str(target.overloadpacket) not in OTHER_NAMES:
            raise Unsupported(f"{target.namespace}.{target._opname} is not an operation of ATen")
        schema = target._schema
        if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
            raise Unsupported("it writes into its operands")
        if _complex.is_long(node):
            raise Unsupported("a library does long transforms faster")
        if target._opname == "constant_pad_nd":
            self.padded(*node.args[:2])
        if target._opname in SCATTERS and not starts_at_0(node.args[0]) and is_strided_later(node):
            raise Unsupported("a view by strides follows, and PyTorch's result keeps the offset of what it is a copy of")
        if target._opname in SCATTERS and may_overlap(node.args[0]):
            raise Unsupported("elements of its operand share memory, and so do those of PyTorch's result")
        if target._opname in STRIDED:
            self.strided(node.args[0])
        args, attrs, of_float = [], {}, None
        dtype = getattr(node.meta.get("val"), "dtype", None)
        positional = list(node.args)
        for i, parameter in enumerate(schema.arguments):
            if i < len(positional) and not parameter.kwarg_only:
                value = positional[i]
            elif parameter.name in node.kwargs:
                value = node.kwargs[parameter.name]
            else:
                value = parameter.default_value
            kind = unwrapped(parameter.type)
            if parameter.name == "dtype" and isinstance(value, int):
                value = SCALAR_TYPES.get(value, value)
            if target._opname in SHAPED and parameter.name in ("size", "shape") and -1 in static(value):
                value = list(node.meta["val"].shape)
            if parameter.name in ELEMENTS.get(target._opname, ()):
                self.element(value, dtype)
            if parameter.name in PLACEMENT:
                here = (self.document.device.type, "meta")
                device = isinstance(value, torch.device) and (value.type not in here or value.index not in (None, 0))
                if device or (parameter.name == "generator" and value is not None):
                    raise Unsupported(f"it asks for the {parameter.name} {value}")
            elif is_tensor(kind):
                args.append(self.operand(value))
            elif is_tensor_list(kind):
                args.extend(self.operand(v) for v in value)
            elif isinstance(kind, torch.NumberType) and parameter.name in operands_by_name(target.overloadpacket):
                if target._opname in CLAMPS:
                    args.append(self.bound(value, parameter.name, dtype))
                else:
                    args.append(self.operand(value, integer_beside(node)))
            else:
                if parameter.name in ELEMENTS.get(target._opname, ()) and is_changing_float(value):
                    args.append(self.operand(value))
                    of_float = {"dtype": DTYPES.get(dtype)}
                elif (value := self.attribute(value)) is not None:
                    attrs[parameter.name] = value
        if of_float is not None:
            # As a tensor it has a type of its own.
            attrs.setdefault("dtype", of_float)
        if target._opname in SPLITS and node.meta["val"]:
            op, at = "aten.split_with_sizes", attrs.get("dim", 0)
            attrs = {"dim": at, "split_sizes": [self.attribute(part.shape[at]) for part in node.meta["val"]]}
        if op == "aten.slice" and (part := self.sliced(node)):
            op, attrs = part
        if target._opname in DIVISIONS and self.document.device != CPU:
            attrs["zero_divisor"] = "any"
        value = node.meta.get("val")
        if node.all_input_nodes and self.constants.issuperset(node.all_input_nodes):
            self.constants.add(node)
        constant = node in self.constants and self.is_within(node)
        if isinstance(value, (tuple, list)):
            names = [f"{node.name}__{i}" for i in range(len(value))]
            results = [None if v is None else self.typed(n, v, constant) for n, v in zip(names, value)]
            self.names[node] = names
        else:
            results = [self.typed(node.name, value, constant)]
            self.names[node] = node.name
        written = {"op": op, "args": args, "attrs": attrs, "results": results}
        if path := module_path(node):
            written["module"] = path
        if place := source_line(node):
            written["place"] = place
        self.document.root["nodes"].append(written)
        self.document.nodes.append(node)

    def is_within(self, node):
        """True if the value of a node stays inside the graph: no output returns it or shows it."""
        return not any(user.op == "output" or user in self.shown for user in node.users)

    def outputs(self, results):
        """The outputs: the bases of what is returned."""
        shown: dict[torch.fx.Node, dict] = {}
        for node in results:
            if isinstance(node, torch.fx.Node) and not is_scalar(node):
                shown.setdefault(self.base(node), {})[node] = None
        for base in shown:
            name = self.names.get(base)
            if base.op != "placeholder" and isinstance(name, str):
                self.document.bases[base] = known = f"out{len(self.document.bases)}"
                self.document.root["outputs"].append({"name": known, "value": self.as_it_lies(base, name)})

    def as_it_lies(self, base, name) -> str:
        """The value of an output: that of a node, or of a dense one that is not row-major, its axes as they lie in memory."""
        value = base.meta["val"]
        if not self.as_they_lie:
            return name
        order = _memory.order_of(value.shape, _layouts.strides_of_view(base, viewed))
        if order in (None, tuple(range(value.dim()))):
            return name
        self.document.orders[base] = order
        typed = self.typed(f"{name}__memory", value, base in self.constants)
        result = {**typed, "shape": [typed["shape"][axis] for axis in order]}
        self.view(base, "aten.permute", name, {"dims": list(order)}, result)
        return result["name"]

    def base(self, node):
        """The node that computes what a node shows."""
        while node in self.views:
            node = viewed(node)
        return node

    def find_shown(self, graph):
        """Fills `views`, that results are and look through, and `shown`: those of them that nothing computes with."""
        self.views: set[torch.fx.Node] = set()
        self.shown: set[torch.fx.Node] = set()
        for node in reversed(graph.nodes):
            if viewed(node) is None:
                continue
            if any(u.op == "output" or u in self.views for u in node.users):
                self.views.add(node)
            if node.users and all(u.op == "output" or u in self.shown for u in node.users):
                self.shown.add(node)
        # A value's only view that has the same elements in the same order is that value, of another shape.
        looks: dict[torch.fx.Node, int] = {}
        for node in graph.nodes:
            if (source := viewed(node)) is not None:
                looks[source] = looks.get(source, 0) + 1
        for node in graph.nodes:
            source = viewed(node)
            if node in self.shown and source not in self.shown and looks[source] == len(source.users) == 1:
                if source.op == "call_function" and is_reshaped(node.meta.get("val"), source.meta.get("val")):
                    self.shown.discard(node)
                    self.views.discard(node)

    def write(self, graph) -> Document:
        self.find_shown(graph)
        for node in graph.nodes:
            if node in self.shown or node.op == "call_function" and (is_scalar(node) or is_told(node)):
                continue
            if node.op == "placeholder":
                self.placeholder(node)
            elif node.op == "get_attr":
                self.attempt(node, self.attribute_of_module)
            elif node.op == "output":
                results = node.args[0]
                results = results if isinstance(results, (tuple, list)) else [results]
                self.document.results = list(results)
                self.outputs(results)
            elif is_getitem(node):
                source = self.names.get(node.args[0])
                if isinstance(source, list):
                    self.names[node] = source[node.args[1]]
                else:
                    self.document.refused[node] = "its operand is not available"
            elif node.op == "call_function":
                self.attempt(node, self.call)
            else:
                self.document.refused[node] = f"it calls `{node.target}`"
        self.guard_facts()
        symbols = self.document.scalars.symbols
        self.document.root["symbols"] = [{"name": s, "lo": lo, "hi": hi} for s, (lo, hi) in symbols.items()]
        return self.document

    def guard_facts(self):
        """The equations that extents were written by hold in every run, or PyTorch runs the graph."""
        for (left, right), env in self.document.scalars.used.items():
            apart = env.create_symintnode(left - right, hint=0)
            if isinstance(apart, torch.SymInt):
                self.document.limits.append((apart, 0, 0))

    def attempt(self, node, write):
        try:
            write(node)
        except Unsupported as e:
            self.document.refused[node] = str(e)
            self.stand_in(node)

    def stand_in(self, node):
        """Inputs in the place of a node that is not written, so that what depends on it can be examined."""
        value = node.meta.get("val")
        several = isinstance(value, (tuple, list))
        names = []
        for i, v in enumerate(value if several else [value]):
            name = f"{node.name}__{i}" if several else node.name
            try:
                typed = self.typed(name, v)
            except Unsupported:
                names.append(None)
                continue
            self.document.root["inputs"].append({**typed, "role": "argument"})
            names.append(name)
        if several:
            self.names[node] = names
        elif names[0] is not None:
            self.names[node] = names[0]


def is_changing_float(value) -> bool:
    return isinstance(value.meta.get("val") if isinstance(value, torch.fx.Node) else value, torch.SymFloat)


def static(numbers) -> list[int]:
    """The constants among some numbers, without the symbolic ones."""
    return [n for n in numbers or () if isinstance(n, int)]


def viewed(node):
    """The node that a node is a view of; None if it is not a view."""
    if is_getitem(node):
        node = node.args[0]
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None
    schema = node.target._schema
    if not schema.arguments or not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    aliases = [a.alias_info for a in (schema.arguments[0], *schema.returns)]
    if any(a is None or a.is_write for a in aliases) or not isinstance(node.args[0].meta.get("val"), torch.Tensor):
        return None
    return node.args[0]


def starts_at_0(node) -> bool:
    """True if a tensor is known to start where its storage does, and so is every tensor that it views or copies by layout."""
    while node is not None:
        value = node.meta.get("val")
        offset = value.storage_offset() if isinstance(value, torch.Tensor) else 0
        if not isinstance(offset, int) or offset != 0:
            return False
        copies = getattr(node.target, "_opname", "") in SCATTERS
        node = node.args[0] if copies else viewed(node)
    return True


def may_overlap(node) -> bool:
    """True if different elements may share memory otherwise than by a step of 0, or may in a run with other values of symbols."""
    value = node.meta["val"]
    if any(statically_known_true(step == 0) and not statically_known_true(n == 1) for n, step in zip(value.shape, value.stride())):
        return False
    if _layouts.overlaps(value):
        return True
    while node is not None and getattr(node.target, "_opname", "") not in ("unfold", "as_strided"):
        node = viewed(node)
    return node is not None and not _layouts.statically_apart(value)


def is_strided_later(node) -> bool:
    """True if `as_strided` is called on a node, on a view of it, or on a copy that keeps the layout of its storage.

    `as_strided` counts elements of the storage, and fake tensors do not always know their offset in it.
    """
    todo, seen = [node], {node}
    while todo:
        source = todo.pop()
        for user in source.users:
            name = getattr(user.target, "_opname", "")
            if name == "as_strided" and user.args[0] is source:
                return True
            follows = viewed(user) is source or (name in SCATTERS and user.args[0] is source)
            if follows and user not in seen:
                seen.add(user)
                todo.append(user)
    return False


def is_filter(node) -> bool:
    """True if a node is the weight of a convolution."""
    return any("conv" in getattr(u.target, "_opname", "") and len(u.args) > 1 and u.args[1] is node for u in node.users)


def is_row_major(value) -> bool:
    """True if a fake tensor is row-major for all values of its symbols. The test adds no guard."""
    return _layouts.is_rows(value.shape, value.stride(), range(value.dim()))


def are_rows(shape, strides) -> bool:
    """True if strides are those of a new row-major tensor of this shape, even along axes of one element."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if not statically_known_true(stride == step):
            return False
        if not statically_known_true(size == 0):
            step = step * size
    return True


def is_reshaped(view, source) -> bool:
    """True if a fake tensor has all elements of another, both in row-major order."""
    if not isinstance(view, torch.Tensor) or not isinstance(source, torch.Tensor) or view.dtype != source.dtype:
        return False
    counts = [getattr(n, "node", None) and n.node.expr or n for n in (view.numel(), source.numel())]
    return counts[0] == counts[1] and is_row_major(view) and is_row_major(source)


def is_getitem(node) -> bool:
    import operator

    return node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[1], int)


def clean_path(path: str) -> str:
    """``L['self'].layers[0].norm`` and ``L__self___layers_0_norm`` as ``layers.0.norm``."""
    path = re.sub(r"^L\['\w+'\]\.?", "", path)
    path = re.sub(r"\.?_modules\['?([^'\]]*)'?\]", r".\1", path)
    path = re.sub(r"\[['\"]?([^'\"\]]*)['\"]?\]", r".\1", path)
    return re.sub(r"\s+", "", path.replace("getattr(", "").replace(")", "")).strip(".")


def module_path(node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    last = list(stack.values())[-1:] or [("", None)]
    return clean_path(str(last[0][0]))


def source_line(node):
    """The user's line that a node comes from: the innermost one outside PyTorch."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.stack_trace or "")
    own = [f for f in frames if "/torch/" not in f[0]]
    for file, line in reversed(own or frames):
        return [re.sub(r"^.*/site-packages/", "", file), int(line)]
    return None


def document(
    module: torch.fx.GraphModule, parameters=(), name: str = "model", fixed=None, ranges=None, divided=False, as_they_lie=False
) -> Document:
    """The graph of a module as JSON.

    Args:
        parameters: the placeholders whose tensors stay the same between runs.
        fixed: symbols, and other expressions, that are to be taken for other ones.
        ranges: of symbols whose ranges are not those of PyTorch's tracing, these.
        divided: whether symbols are written as the multiples that PyTorch guards them to be.
        as_they_lie: whether inputs and outputs are the arrays of the tensors' memory, in place of row-major copies.
    """
    writer = Writer(name, module, set(parameters), as_they_lie)
    writer.document.scalars.fixed = fixed or {}
    writer.document.scalars.ranges = ranges or {}
    writer.document.scalars.divided = divided
    return writer.write(module.graph)
