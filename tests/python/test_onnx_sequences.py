"""Sequences of tensors, optional values, and operators whose number of results depends on the data, against ONNX
Runtime."""

import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import girih

onnxruntime.set_default_logger_severity(4)
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" ") if inputs else [], outputs.split(), **attributes)


def proto(nodes, inputs, outputs, constants=(), opset=18):
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(constants).items()]
    outs = [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs], outs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def agree(file, feeds, device="eval"):
    model = girih.Model.from_onnx(file.SerializeToString(), device=device)
    session = onnxruntime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for feed in feeds:
            for got, want in zip(model.run(None, feed), session.run(None, feed), strict=True):
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


X = ("x", F, ["n", 6])
FEEDS = [{"x": np.random.default_rng(n).standard_normal((n, 6)).astype("f4")} for n in (1, 3, 5)]
K = {"zero": 0, "one": 1, "last": -1, "two": 2, "sizes": [1, 3, 2]}

MADE = {
    "parts": ([node("SplitToSequence", "x two", "s", axis=1), node("SequenceAt", "s last", "y")], K),
    "parts of sizes": ([node("SplitToSequence", "x sizes", "s", axis=1), node("SequenceAt", "s one", "y")], K),
    "single": ([node("SplitToSequence", "x", "s", axis=1), node("SequenceAt", "s two", "y")], K),
    "squeezed": ([node("SplitToSequence", "x", "s", axis=1, keepdims=0), node("SequenceAt", "s two", "y")], K),
    "rows": ([node("SplitToSequence", "x", "s", axis=0, keepdims=0), node("SequenceAt", "s last", "y")], K),
    "turned": (
        [node("SplitToSequence", "x", "s", axis=1), node("SequenceAt", "s zero", "a"), node("SequenceErase", "s zero", "r"),
         node("SequenceInsert", "r a", "t"), node("ConcatFromSequence", "t", "y", axis=1)], K),
    "inserted": (
        [node("SequenceConstruct", "x x", "s"), node("Relu", "x", "r"), node("SequenceInsert", "s r one", "t"),
         node("ConcatFromSequence", "t", "y", axis=-1, new_axis=1)], K),
    "erased": (
        [node("Relu", "x", "r"), node("SequenceConstruct", "x r", "s"), node("SequenceErase", "s", "t"),
         node("ConcatFromSequence", "t", "y", axis=0)], K),
    "length": (
        [node("SplitToSequence", "x two", "s", axis=1), node("SequenceLength", "s", "l"), node("Cast", "l", "f", to=F),
         node("Mul", "x f", "y")], K),
    "length of rows": (
        [node("SplitToSequence", "x", "s", axis=0), node("SequenceLength", "s", "l"), node("Cast", "l", "f", to=F),
         node("Mul", "x f", "y")], K),
    "begun empty": (
        [node("SequenceEmpty", "", "s"), node("SequenceInsert", "s x", "t"), node("SequenceInsert", "t x zero", "u"),
         node("ConcatFromSequence", "u", "y", axis=0)], K),
    "optional": ([node("Optional", "x", "o"), node("OptionalGetElement", "o", "y")], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_sequences(name):
    nodes, constants = MADE[name]
    used = {word for n in nodes for word in n.input}
    agree(proto(nodes, [X], [("y", F)], {n: a for n, a in constants.items() if n in used}), FEEDS)


def grown(rounds, new_axis, axis, device="eval"):
    """A loop that puts a tensor into a sequence each round."""
    made = [node("Gather", "x i", "row"), node("Add", "h row", "h2"), node("Relu", "h2", "out"),
            node("SequenceInsert", "seq out", "seq2"), node("Identity", "go", "again")]  # fmt: skip
    state = [helper.make_tensor_value_info("i", I, []), helper.make_tensor_value_info("go", B, []),
             helper.make_tensor_value_info("h", F, [6]), helper.make_tensor_sequence_value_info("seq", F, None)]  # fmt: skip
    given = [helper.make_tensor_value_info("again", B, []), helper.make_tensor_value_info("h2", F, [6]),
             helper.make_tensor_sequence_value_info("seq2", F, None)]  # fmt: skip
    body = helper.make_graph(made, "body", state, given)
    nodes = [
        node("SequenceEmpty", "", "s0"), node("Shape", "x", "shape"), node("Gather", "shape zero", "t"),
        helper.make_node("Loop", [rounds, "", "h0", "s0"], ["h1", "s1"], body=body),
        node("ConcatFromSequence", "s1", "y", axis=axis, new_axis=new_axis), node("SequenceLength", "s1", "l"),
        node("SequenceAt", "s1 last", "final"),
    ]  # fmt: skip
    constants = {"zero": 0, "last": -1, "three": 3, "h0": np.zeros(6, "f4")}
    used = {word for n in nodes for word in n.input}
    return proto(nodes, [X], [("y", F), ("h1", F), ("l", I), ("final", F)], {n: a for n, a in constants.items() if n in used})


@pytest.mark.parametrize("new_axis, axis", [(1, 0), (1, 1), (0, 0), (1, -1)])
def test_a_loop_that_makes_a_sequence(new_axis, axis):
    feeds = [{"x": np.random.default_rng(n).standard_normal((n, 6)).astype("f4")} for n in (6, 1, 9)]
    agree(grown("t", new_axis, axis), feeds)
    agree(grown("three", new_axis, axis), [{"x": f["x"]} for f in feeds if len(f["x"]) >= 3])


def test_what_sequences_refuse():
    def refused(text, nodes, outputs, constants=()):
        file = proto(nodes, [X], outputs, constants)
        with pytest.raises(girih.ProgramError, match=text):
            girih.Model.from_onnx(file.SerializeToString(), device="eval")(np.ones((3, 6), "f4"))

    split = node("SplitToSequence", "x two", "s", axis=1)
    refused("outputs that are sequences", [split], [("s", F)], {"two": 2})
    refused("no position 7 among 3", [split, node("SequenceAt", "s seven", "y")], [("y", F)], {"two": 2, "seven": 7})
    refused("takes a sequence", [split, node("Relu", "s", "y")], [("y", F)], {"two": 2})
    refused("do not add up", [node("SplitToSequence", "x list", "s", axis=1), node("SequenceAt", "s zero", "y")], [("y", F)],
            {"list": [1, 2], "zero": 0})  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_boxes_that_overlap(seed):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(0, 4, (2, 6, 2, 2)), axis=2).reshape(2, 6, 4).astype("f4")
    if seed % 3 == 1:
        corners = corners[..., [2, 3, 0, 1]]
    scores = rng.choice(np.linspace(0, 1, 9), (2, 2, 6)).astype("f4")
    names = ["boxes", "scores", "most", "overlap", "least"][: 3 + seed % 3]
    file = proto([helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=int(seed % 4 == 2))],
                 [("boxes", F, [2, 6, 4]), ("scores", F, [2, 2, 6])], [("y", I)],
                 dict(list({"most": np.array([3]), "overlap": np.array([0.3], "f4"), "least": np.array([0.2], "f4")}.items())[: len(names) - 2]))  # fmt: skip
    agree(file, [{"boxes": corners, "scores": scores}])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("ordered", [0, 1])
def test_unique_elements(axis, ordered):
    rng = np.random.default_rng(5)
    attributes = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    for kind, dtype in ((F, "f4"), (I, "i8")):
        file = proto([node("Unique", "x", "y first inverse counts", **attributes)], [("x", kind, [4, 3])],
                     [("y", kind), *((n, I) for n in ("first", "inverse", "counts"))])  # fmt: skip
        agree(file, [{"x": rng.integers(-1, 2, (4, 3)).astype(dtype)} for _ in range(4)])


OLD = [("Upsample", 7), ("Upsample", 9), ("Resize", 10)]


@pytest.mark.parametrize("op, version", OLD)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resizes_of_old(op, version, mode):
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 6)).astype("f4")
    for scales in ([1, 1, 2, 3], [1, 1, 1.5, 2.5], [1, 1, 2, 1], *([[1, 1, 0.5, 0.6]] if op == "Resize" else [])):
        scales = np.array(scales, "f4")
        if version == 7:
            nodes, constants = [helper.make_node(op, ["x"], ["y"], mode=mode, scales=scales.tolist())], {}
        else:
            nodes, constants = [helper.make_node(op, ["x", "s"], ["y"], mode=mode)], {"s": scales}
        agree(proto(nodes, [("x", F, [1, 2, 4, 6])], [("y", F)], constants, version), [{"x": x}])


def test_nearest_neighbours_as_tensorflow_has_them():
    x = np.random.default_rng(1).standard_normal((1, 1, 4, 6)).astype("f4")
    for scales in ([1, 1, 2, 3], [1, 1, 0.5, 0.5], [1, 1, 1.5, 0.6]):
        for way in ("floor", "round_prefer_floor", "ceil"):
            attributes = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": way}
            nodes = [helper.make_node("Resize", ["x", "roi", "s"], ["y"], mode="nearest", **attributes)]
            constants = {"s": np.array(scales, "f4"), "roi": np.zeros(0, "f4")}
            agree(proto(nodes, [("x", F, [1, 1, 4, 6])], [("y", F)], constants, 11), [{"x": x}])
