"""The cases of `tests/aten.py`: each handle of a decomposition rule with small operands.

A case names an overload of ATen (`softmax.int`) and its arguments as PyTorch takes them.
"""

import torch

from . import elementwise, layers, products, reductions, shapes

A = torch.ops.aten

#: Handles that are not operations of ATen: functions of PyTorch's Python that the other front ends pass on.
COMPOSITE = {
    "swish", "normalize", "float", "half", "bfloat16", "double", "int", "long", "bool", "cpu", "softsign", "tanhshrink",
}  # fmt: skip


class Case:
    def __init__(self, name, overload, args, kwargs, ulps, unchecked):
        self.name, self.overload, self.args, self.kwargs = name, overload, args, kwargs
        self.ulps, self.unchecked = ulps, unchecked
        self.op = getattr(getattr(A, name), overload)

    def tensors(self):
        found = []

        def walk(value):
            if isinstance(value, torch.Tensor):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                for v in value:
                    walk(v)

        for value in list(self.args) + list(self.kwargs.values()):
            walk(value)
        return found

    def __str__(self):
        def short(v):
            if isinstance(v, torch.Tensor):
                return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}"
            if isinstance(v, (list, tuple)):
                return "[" + ", ".join(map(short, v)) + "]"
            return repr(v)

        args = [short(a) for a in self.args] + [f"{k}={short(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}.{self.overload}({', '.join(args)})"


def cases():
    found = []

    def add(spec, *args, ulps=8, unchecked=False, **kwargs):
        name, _, overload = spec.partition(".")
        if not hasattr(A, name) or (overload or "default") not in getattr(A, name).overloads():
            return
        found.append(Case(name, overload or "default", args, kwargs, ulps, unchecked))

    elementwise.unary(add)
    elementwise.special(add)
    elementwise.polynomials(add)
    products.linalg(add)
    elementwise.binary(add)
    elementwise.activations(add)
    reductions.reductions(add)
    products.products(add)
    reductions.norms(add)
    shapes.views(add)
    shapes.parts(add)
    shapes.indexing(add)
    shapes.creation(add)
    products.attention(add)
    layers.backward(add)
    layers.spatial(add)
    reductions.losses(add)
    return found
