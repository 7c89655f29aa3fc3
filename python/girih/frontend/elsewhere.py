"""The names that authors bring from CUDA, NumPy and PyTorch, and what they are here.

In: a name that is not defined, or an attribute that a tile or the language does not have. Out: the help of the error.

    threadIdx      a block computes whole tiles: `girih.arange(0, BLOCK)` are the places in one
    a.astype       `x.to(dtype)`
    tl.ones        `girih.full(shape, 1, dtype)`
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_PLACES = "a block computes whole tiles: `girih.program_id(0) * BLOCK + girih.arange(0, BLOCK)` are the places of this one"
_ORDER = "the parts of a block need no barrier: each statement sees those before it"
_ATOMIC = "use `girih.atomic_add(pointer, value)`, or another of the `girih.atomic_*`"
_MEAN = "divide the sum: `girih.sum(x, axis) / n`"
_SPREAD = "make it of sums: `d = x - girih.sum(x, axis) / n`, then `girih.sum(d * d, axis) / n`"
_STACK = "`girih.join(a, b)` makes a last dimension of two, `girih.cat(a, b)` puts one behind the other"

# Names that stand alone, as in CUDA, or are taken for functions of the language.
NAMES = {
    **dict.fromkeys(("threadIdx", "blockIdx", "blockDim", "gridDim", "thread_id", "block_id", "lane_id"), _PLACES),
    **dict.fromkeys(("__syncthreads", "syncthreads", "__syncwarp", "barrier"), _ORDER),
    **dict.fromkeys(("atomicAdd", "atomicMax", "atomicMin", "atomicCAS", "atomicExch"), _ATOMIC),
    "mean": _MEAN,
    "average": _MEAN,
    "var": _SPREAD,
    "std": _SPREAD,
    "matmul": "use `girih.dot(a, b)`",
    "mm": "use `girih.dot(a, b)`",
    "concatenate": "use `girih.cat(a, b)`",
    "concat": "use `girih.cat(a, b)`",
    "stack": _STACK,
    "power": "use `girih.pow(x, y)`, or `x ** y`",
    "square": "write `x * x`",
    "absolute": "use `girih.abs(x)`",
    "transpose": "use `girih.trans(x)`",
    "ones": "use `girih.full(shape, 1, dtype)`",
    "ones_like": "use `girih.full_like(x, 1)`",
    "empty": "use `girih.zeros(shape, dtype)`",
    "linspace": "make it of `girih.arange(0, n)`: `start + girih.arange(0, n) * step`",
    "eye": "compare two ranges: `girih.arange(0, n)[:, None] == girih.arange(0, n)[None, :]`",
    "any": "use `girih.max(condition.to(girih.int32), axis) > 0`",
    "all": "use `girih.min(condition.to(girih.int32), axis) > 0`",
    "pi": "import `math`, and use `math.pi`",
    "inf": 'use `float("inf")`',
    "nan": 'use `float("nan")`',
    "astype": "use `x.to(dtype)`",
    "clip": "use `girih.clamp(x, low, high)`",
    "tanhf": "use `girih.tanh(x)`",
}

# Attributes of arrays.
ATTRIBUTES = {
    "astype": "use `x.to(dtype)`",
    "float": "use `x.to(girih.float32)`",
    "half": "use `x.to(girih.float16)`",
    "int": "use `x.to(girih.int32)`",
    "type": "use `x.to(dtype)`",
    "size": "use `x.numel`, or `x.shape`",
    "copy": "a tile is a value: it needs no copy",
    "clone": "a tile is a value: it needs no copy",
    "item": "a scalar is used as it is; `girih.sum(x, axis)` and other reductions make one",
    "dot": "use `girih.dot(a, b)`",
    "flatten": "use `x.reshape(n)`",
    "tolist": "a tile has no list: store it to an array",
    "numpy": "a tile is not an array: store it to one",
    "fill": "make a new one: `girih.full(shape, value, dtype)`",
    "load": "use `girih.load(pointer)`",
    "store": "use `girih.store(pointer, value)`",
    **{n: NAMES[n] for n in ("mean", "var", "std", "matmul", "transpose", "any", "all", "clip", "square")},
}


def help_for(name: str, known: dict[str, str], near: Iterable[str]) -> str | None:
    """The counterpart of an unknown name here, or a similar name."""
    if name in known:
        return known[name]
    public = [n for n in near if not n.startswith("_")]
    close = get_close_matches(name, public, 1)
    return f"did you mean `{close[0]}`?" if close else None
