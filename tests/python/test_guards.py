"""Models that can be read only under a condition on their extents: compiled under that assumption, once for all sizes that satisfy
it, against ONNX's own evaluator."""

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import girih

F = TensorProto.FLOAT


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(), **attributes)


def proto(nodes, inputs, weights=(), outputs=("y",)):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in dict(weights).items()]
    ports = [helper.make_tensor_value_info(name, F, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, F, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", ports, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def assumed(model, arrays):
    """The assumption that the model reports when it is first called."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model(**arrays)
    said = [str(w.message).removeprefix("girih: compiled for ") for w in told]
    return said[0].split(":")[0] if said else ""


def floats(rng, shape):
    return rng.standard_normal(shape).astype("f4")


def agrees(model, reference, arrays):
    found = model(**arrays)
    found = found if isinstance(found, tuple) else (found,)
    for got, want in zip(found, reference.run(None, arrays)):
        assert got.shape == want.shape, (got.shape, want.shape)
        assert np.abs(got - want).max(initial=0) <= 1e-4 * max(1, np.abs(want).max(initial=0))


def kernels(folder):
    return {path.name for path in folder.rglob("*.so")}


I64 = {"two": [2], "sixteen": [-1, 16], "heads": [0, -1, 4, 8], "zero": [0], "one": [1], "last": [-1], "most": [512]}
I64 = {name: np.array(list) for name, list in I64.items()}

#: Nodes, the inputs' shapes, sizes that the first model takes, others that it does not, and what it assumes.
CASES = {
    "sum": ([node("Add", "x z", "y")], {"x": ["n"], "z": ["m"]}, [[(5,), (5,)], [(9,), (9,)]], [(1,), (7,)], "m = n"),
    "stretched": (
        [node("Mul", "x z", "y")],
        {"x": ["n", "k"], "z": ["m", "k"]},
        [[(1, 3), (5, 3)], [(1, 4), (8, 4)]],
        [(4, 2), (1, 2)],
        "n = 1",
    ),
    "weights": ([node("Add", "x w", "y")], {"x": ["n", "k"]}, [[(5, 6)], [(2, 6)]], [(3, 1)], "k = 6"),
    "rows": (
        [node("Reshape", "x sixteen", "y")],
        {"x": ["n", "m"]},
        [[(3, 32)], [(5, 48)], [(1, 16)]],
        [(4, 12)],
        "m is a multiple of 16",
    ),
    "heads": (
        [node("Reshape", "x heads", "h"), node("ReduceSum", "h last", "y", keepdims=0)],
        {"x": ["b", "n"]},
        [[(3, 64)], [(2, 32)]],
        None,
        "n is a multiple of 32",
    ),
    "squeezed": ([node("Squeeze", "x one", "y")], {"x": ["n", "k"]}, [[(5, 1)], [(8, 1)]], None, "k = 1"),
    "ones dropped": ([node("Squeeze", "x", "y")], {"x": ["n", 1]}, [[(5, 1)], [(8, 1)]], [(1, 1)], "n is at least 2"),
    "product": (
        [node("MatMul", "x z", "y")],
        {"x": ["n", "k"], "z": ["m", "j"]},
        [[(4, 7), (7, 5)], [(3, 9), (9, 8)]],
        None,
        "m = k",
    ),
    "joined": (
        [node("Concat", "x z", "y", axis=1)],
        {"x": ["n", "k"], "z": ["m", "j"]},
        [[(4, 7), (4, 5)], [(3, 9), (3, 8)]],
        None,
        "m = n",
    ),
    "gated": (
        [node("Split", "x", "a b", axis=1, num_outputs=2), node("Mul", "a b", "y")],
        {"x": ["n", "k"]},
        [[(4, 6)], [(3, 8)]],
        None,
        "k is a multiple of 2",
    ),
    "cached": (
        [node("Concat", "past now", "all", axis=0), node("Add", "all mask", "y")],
        {"past": ["past", 4], "now": ["n", 4], "mask": ["total", 1]},
        [[(3, 4), (2, 4), (5, 1)], [(6, 4), (1, 4), (7, 1)], [(0, 4), (2, 4), (2, 1)]],
        None,
        "total = past + n",
    ),
    "positions": (
        [
            node("Shape", "x", "shape"),
            node("Gather", "shape zero", "n"),
            node("Slice", "table zero n", "rows"),
            node("Add", "x rows", "y"),
        ],
        {"x": ["n", 6]},
        [[(5, 6)], [(40, 6)]],
        [(1, 6)],
        "",
    ),
    "strides": (
        [
            node("AveragePool", "x", "a", kernel_shape=[2], strides=[2]),
            node("Resize", "a  scales", "up", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
            node("Add", "up x", "y"),
        ],
        {"x": ["b", 3, "n"]},
        [[(1, 3, 8)], [(2, 3, 12)]],
        None,
        "n is a multiple of 2",
    ),
    "branch": (
        [
            node("Shape", "x", "shape"),
            node("Gather", "shape zero", "n"),
            node("Greater", "n two", "long"),
            helper.make_node(
                "If",
                ["long"],
                ["y"],
                then_branch=helper.make_graph(
                    [node("Slice", "x zero two", "t")], "t", [], [helper.make_tensor_value_info("t", F, None)]
                ),
                else_branch=helper.make_graph(
                    [node("Transpose", "x", "e")], "e", [], [helper.make_tensor_value_info("e", F, None)]
                ),
            ),
        ],
        {"x": ["n", "k"]},
        [[(5, 3)], [(4, 7)]],
        [(2, 3)],
        "n is at least 3",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_assumed_is_tested_at_each_call(case, tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path))
    nodes, inputs, fitting, other, text = CASES[case]
    rng = np.random.default_rng(5)
    weights = I64 | {"w": floats(rng, (4, 1, 6))[0], "table": floats(rng, (64, 6)), "scales": np.array([1, 1, 2], "f4")}
    file = proto(nodes, inputs, {n: w for n, w in weights.items() if any(n in v.input for v in nodes) or case == "branch"})
    model, reference = girih.Model.from_onnx(file.SerializeToString(), threads=1), ReferenceEvaluator(file)

    def arrays(shapes):
        return {name: floats(rng, shape) for name, shape in zip(inputs, shapes)}

    said = assumed(model, arrays(fitting[0]))
    assert said == (f"shapes where {text}" if text else "")
    compiled = kernels(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shapes in fitting * 2:
            agrees(model, reference, arrays(shapes))
        assert kernels(tmp_path) == compiled
        if other is not None:
            shapes = other if isinstance(other, list) else [other]
            agrees(model, reference, arrays(shapes))
            agrees(model, reference, arrays(fitting[0]))


def test_what_holds_for_no_model_names_both_extents():
    file = proto([node("Add", "x z", "y")], {"x": ["n"], "z": ["m"]})
    model = girih.Model.from_onnx(file.SerializeToString())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(np.ones(5, "f4"), np.ones(5, "f4"))
    with pytest.raises(girih.ProgramError, match=r"\[5\] and \[6\] do not broadcast"):
        model(np.ones(5, "f4"), np.ones(6, "f4"))


class Drawn:
    """A random model. The extents of its inputs all have names of their own, and are multiples of a few numbers, so that operations
    fit at all sizes of those."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inputs, self.weights, self.names = [], {}, {}, 0
        # The extents of every input: a factor, and the number that it is a multiple of (None: it is the factor).
        self.sizes = {}
        factors = [(int(self.rng.choice([1, 2, 4, 6])), int(self.rng.integers(3))) for _ in range(self.rng.integers(1, 4))]
        self.value, self.extents = self.input(factors), factors
        for _ in range(self.rng.integers(1, 5)):
            kinds = [self.add, self.product, self.turned, self.halves, self.joined, self.split, self.squeezed, self.merged]
            kinds[self.rng.integers(len(kinds))]()
        self.node("Relu", self.value, self.extents)
        self.proto = proto(self.nodes, self.inputs, self.weights, [self.value])

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def input(self, extents):
        name = self.name("x")
        self.inputs[name], self.sizes[name] = [self.name("n") for _ in extents], list(extents)
        return name

    def weight(self, array):
        name = self.name("w")
        self.weights[name] = np.asarray(array)
        return name

    def node(self, op, inputs, extents, **attributes):
        result = self.name("v")
        self.nodes.append(node(op, inputs, result, **attributes))
        self.value, self.extents = result, list(extents)

    def add(self):
        ones = self.rng.random(len(self.extents)) < 0.3
        other = self.input([(1, None) if one else e for one, e in zip(ones, self.extents)])
        self.node(self.rng.choice(["Add", "Mul", "Max"]), f"{self.value} {other}", self.extents)

    def product(self):
        if self.extents:
            other = self.input([self.extents[-1], (3, None)])
            self.node("MatMul", f"{self.value} {other}", [*self.extents[:-1], (3, None)])

    def turned(self):
        order = [int(d) for d in self.rng.permutation(len(self.extents))]
        if len(order) > 1:
            self.node("Transpose", self.value, [self.extents[d] for d in order], perm=order)

    def halves(self):
        even = [d for d, (factor, _) in enumerate(self.extents) if factor % 2 == 0]
        if even:
            d = int(self.rng.choice(even))
            first, second = self.name("v"), self.name("v")
            self.nodes.append(node("Split", self.value, f"{first} {second}", axis=d, num_outputs=2))
            extents = list(self.extents)
            extents[d] = (extents[d][0] // 2, extents[d][1])
            self.node("Mul", f"{first} {second}", extents)

    def joined(self):
        if self.extents:
            d = int(self.rng.integers(len(self.extents)))
            other = self.input(self.extents)
            extents = list(self.extents)
            extents[d] = (2 * extents[d][0], extents[d][1])
            self.node("Concat", f"{self.value} {other}", extents, axis=d)

    def split(self):
        if self.extents and self.extents[-1][0] % 2 == 0 and len(self.extents) < 4:
            factor, number = self.extents[-1]
            shape = self.weight([0] * (len(self.extents) - 1) + [-1, 2])
            self.node("Reshape", f"{self.value} {shape}", [*self.extents[:-1], (factor // 2, number), (2, None)])

    def squeezed(self):
        d = int(self.rng.integers(len(self.extents) + 1))
        extents = list(self.extents)
        extents.insert(d, (1, None))
        # An input that has an axis more, which is dropped.
        other = self.input(extents)
        dropped = self.name("v")
        self.nodes.append(node("Squeeze", f"{other} {self.weight([d])}", dropped))
        self.node("Sub", f"{self.value} {dropped}", self.extents)

    def merged(self):
        if len(self.extents) > 1 and self.extents[-1][1] is None:
            (factor, number), (times, _) = self.extents[-2:]
            shape = self.weight([0] * (len(self.extents) - 2) + [-1])
            self.node("Reshape", f"{self.value} {shape}", [*self.extents[:-2], (factor * times, number)])

    def arrays(self, numbers):
        size = lambda extents: [factor * (1 if number is None else numbers[number]) for factor, number in extents]
        return {name: floats(self.rng, size(extents)) for name, extents in self.sizes.items()}


def test_random_models_serve_other_sizes(tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path))
    calls, anew, alone = 0, [], []
    for seed in range(60):
        drawn = Drawn(seed)
        model, reference = girih.Model.from_onnx(drawn.proto.SerializeToString(), threads=1), ReferenceEvaluator(drawn.proto)
        numbers = [[int(n) for n in drawn.rng.choice([2, 3, 5, 7, 11], 3, replace=False)] for _ in range(3)]
        said = assumed(model, drawn.arrays(numbers[0]))
        if "alone" in said:
            alone.append(seed)
        compiled = kernels(tmp_path)
        for several in [*numbers, [1, 1, 1]]:
            agrees(model, reference, drawn.arrays(several))
            calls += 1
            if several in numbers and kernels(tmp_path) != compiled:
                anew.append((seed, said, several))
    assert not alone, f"compiled for one set of shapes: {alone}"
    assert not anew, f"compiled anew: {anew}"


def test_shapes_of_32_bits_are_shapes():
    """Some exporters cast the result of `Shape` to 32 bits and back."""
    nodes = [
        node("Shape", "x", "wide"),
        node("Cast", "wide", "narrow", to=TensorProto.INT32),
        node("Gather", "narrow zero", "first"),
        node("Cast", "first", "n", to=TensorProto.INT64),
        node("Concat", "n last", "to", axis=0),
        node("Reshape", "x to", "y"),
    ]
    file = proto(nodes, {"x": ["n", "h", 4]}, {"zero": I64["zero"], "last": I64["last"]})
    model, reference = girih.Model.from_onnx(file.SerializeToString()), ReferenceEvaluator(file)
    rng = np.random.default_rng(2)
    assert assumed(model, {"x": floats(rng, (3, 5, 4))}) == ""
    for shape in ((2, 7, 4), (1, 1, 4)):
        agrees(model, reference, {"x": floats(rng, shape)})
