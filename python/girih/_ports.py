"""The inputs and outputs of models, and the arrays that are given for them.

In: an input or output as the compiled part describes it, and an array of NumPy, a tensor or an array of a device. Out: a `Port`, and the
array in the order of its shape, or what is wrong with it.
"""

from __future__ import annotations

import difflib
from typing import NamedTuple, Union

import numpy as np

from girih import _library, _tensors, device
from girih._diagnostics import Diagnostic, ProgramError
from girih.frontend.errors import GirihError

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

class Arrays(dict):
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
