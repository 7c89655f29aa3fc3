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
    refused("no position 7 among 3", [split, node("SequenceAt", "s seven", "y")], [("y", F)], {"two": 2, "seven": 7})
    refused("takes a sequence", [split, node("Relu", "s", "y")], [("y", F)], {"two": 2})
    refused("do not add up", [node("SplitToSequence", "x list", "s", axis=1), node("SequenceAt", "s zero", "y")], [("y", F)],
            {"list": [1, 2], "zero": 0})  # fmt: skip


def typed(name, kind):
    """A sequence, an optional value or an optional sequence of tensors of any shape."""
    tensor = helper.make_tensor_type_proto(F, None)
    return helper.make_value_info(name, {
        "seq": helper.make_sequence_type_proto(tensor), "optional": helper.make_optional_type_proto(tensor),
        "optional(seq": helper.make_optional_type_proto(helper.make_sequence_type_proto(tensor)), "tensor": tensor}[kind])  # fmt: skip


def of_lists(nodes, inputs, outputs, constants=()):
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(constants).items()]
    graph = helper.make_graph(nodes, "g", [typed(*i) for i in inputs], [typed(*o) for o in outputs], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def same(got, want):
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b)
    elif want is None:
        assert got is None
    else:
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def agree_on_lists(file, feeds, device="eval"):
    model = girih.Model.from_onnx(file.SerializeToString(), device=device)
    session = onnxruntime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for feed in feeds:
            for got, want in zip(model.run(None, feed), session.run(None, feed), strict=True):
                same(got, want)
    return model


def arrays(*shapes):
    rng = np.random.default_rng(len(shapes))
    return [rng.standard_normal(shape).astype("f4") for shape in shapes]


LISTS = [arrays((2, 3), (1, 3)), arrays((2, 3)), arrays((2, 3), (5, 3), (1, 3)), arrays((0, 3), (2, 3)), arrays((4, 3), (3, 3))]


@pytest.mark.parametrize("device", ["eval", "cpu"])
def test_a_sequence_as_an_input(device):
    file = of_lists([node("ConcatFromSequence", "s", "c", axis=0), node("Relu", "c", "y")], [("s", "seq")], [("y", "tensor")])
    model = agree_on_lists(file, [{"s": x} for x in LISTS], device)
    assert str(model.inputs[0]) == "s: seq(float32)[...]" and model.inputs[0].type == "seq(tensor(float))"


def test_sequences_as_outputs():
    nodes = [node("SequenceInsert", "s x", "t"), node("SequenceErase", "t zero", "u")]
    file = of_lists(nodes, [("s", "seq"), ("x", "tensor")], [("t", "seq"), ("u", "seq"), ("s", "seq")], {"zero": 0})
    agree_on_lists(file, [{"s": x, "x": np.ones((1, 2), "f4")} for x in [*LISTS, []]])


def test_a_sequence_that_a_loop_makes_is_given():
    feeds = [{"x": np.random.default_rng(n).standard_normal((n, 6)).astype("f4")} for n in (6, 1)]
    file = grown("t", 1, 0)
    del file.graph.output[:]
    file.graph.output.append(helper.make_tensor_sequence_value_info("s1", F, None))
    file.graph.node.pop(), file.graph.node.pop(), file.graph.node.pop()
    agree_on_lists(file, feeds)


def test_optional_values_at_the_border():
    """ONNX Runtime takes them only from graphs that it knows in full: expectations follow from the nodes."""
    file = of_lists([node("OptionalHasElement", "o", "h"), node("Cast", "h", "y", to=F), node("Identity", "o", "p")],
                    [("o", "optional")], [("y", "tensor"), ("p", "optional")])  # fmt: skip
    model, x = girih.Model.from_onnx(file.SerializeToString(), device="eval"), arrays((2, 3))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for feed, there in (({"o": x}, x), ({"o": None}, None), ({}, None), ({"o": x}, x)):
            has, back = model.run(None, feed)
            assert has == (there is not None)
            same(back, there)
        listed = of_lists([node("OptionalHasElement", "o", "h"), node("Cast", "h", "y", to=F), node("Identity", "o", "p")],
                          [("o", "optional(seq")], [("y", "tensor"), ("p", "optional(seq")])  # fmt: skip
        model = girih.Model.from_onnx(listed.SerializeToString(), device="eval")
        for feed in ({"o": [x, x]}, {"o": None}):
            has, back = model.run(None, feed)
            assert has == (feed["o"] is not None)
            same(back, feed["o"])


def test_what_lists_refuse():
    file = of_lists([node("ConcatFromSequence", "s", "y", axis=0)], [("s", "seq")], [("y", "tensor")])
    model, x = girih.Model.from_onnx(file.SerializeToString(), device="eval"), np.ones((2, 3), "f4")
    for text, run in (
        ("the model expects a list of arrays, s: seq", lambda: model(x)),
        ("the sequence is empty", lambda: model([])),
        (r"input `s\[1\]` is float64", lambda: model([x, x.astype("f8")])),
        ("input `s` is not given", lambda: model.run(None, {})),
        ("leave `out` away", lambda: model([x], out=x)),
    ):
        with pytest.raises(girih.ProgramError, match=text):
            run()


def test_lists_on_the_command_line(tmp_path):
    import subprocess

    from girih.tune import command

    file = of_lists([node("SequenceInsert", "s x", "t")], [("s", "seq"), ("x", "tensor")], [("t", "seq")])
    (tmp_path / "m.onnx").write_bytes(file.SerializeToString())
    given = ["s[0]=ones:f32[2]", "s[1]=zeros:f32[1]", "x=ones:f32[1]"]
    done = subprocess.run([command(), "run", str(tmp_path / "m.onnx"), "--device", "eval",
                           *(word for spec in given for word in ("--arg", spec))], capture_output=True, text=True)  # fmt: skip
    for line in ("t[0] = [1.0, 1.0]", "t[1] = [0.0]", "t[2] = [1.0]"):
        assert line in done.stdout, done.stdout + done.stderr


def test_outputs_whose_types_the_file_does_not_say():
    """And which only data tell: their shapes."""
    graph = helper.make_graph([node("NonZero", "x", "y"), node("Relu", "x", "z")], "g", [helper.make_tensor_value_info("x", F, [4])],
                              [helper.make_empty_tensor_value_info("y"), helper.make_empty_tensor_value_info("z")])  # fmt: skip
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    agree(file, [{"x": np.array(x, "f4")} for x in ([1, 0, -2, 0], [0, 0, 0, 0], [1, 2, 3, 4])])


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


OLD = [("Upsample", 7), ("Upsample", 8), ("Upsample", 9), ("Resize", 10)]


@pytest.mark.parametrize("op, version", OLD)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resizes_of_old(op, version, mode):
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 6)).astype("f4")
    for scales in ([1, 1, 2, 3], [1, 1, 1.5, 2.5], [1, 1, 2, 1], *([[1, 1, 0.5, 0.6]] if op == "Resize" else [])):
        scales = np.array(scales, "f4")
        if version < 9:
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


def value(name, kind=F):
    return helper.make_tensor_value_info(name, kind, None)


SUMS = helper.make_graph([node("Add", "a c", "d"), node("Shape", "a", "e")], "body", [value("a"), value("c")], [value("d"), value("e", I)])


@pytest.mark.parametrize("other", ["a sequence", "a tensor"])
def test_a_graph_for_each_tensor_of_a_sequence(other):
    numbers = helper.make_tensor_sequence_value_info("s", F, None)
    second = helper.make_tensor_sequence_value_info("w", F, None) if other == "a sequence" else value("w")
    results = [helper.make_tensor_sequence_value_info(n, kind, None) for n, kind in (("t", F), ("u", I))]
    graph = helper.make_graph([node("SequenceMap", "s w", "t u", body=SUMS)], "g", [numbers, second], results)
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    model = girih.Model.from_onnx(file, device="eval")
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    for shapes in ([(4, 3), (2,)], [(1, 2)], [(2, 2), (2, 2), (5,)]):
        given = [rng.standard_normal(shape).astype("f4") for shape in shapes]
        more = [np.float32(2) + x for x in given] if other == "a sequence" else np.ones(1, "f4")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.run(None, {"s": given, "w": more})
        for lists in zip(found, session.run(None, {"s": given, "w": more}), strict=True):
            for got, want in zip(*lists, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_graph_for_each_row(keepdims):
    relu = helper.make_graph([node("Relu", "a", "d")], "body", [value("a")], [value("d")])
    nodes = [node("SplitToSequence", "x", "s", axis=0, keepdims=keepdims), node("SequenceMap", "s", "t", body=relu),
             node("ConcatFromSequence", "t", "y", axis=0)]  # fmt: skip
    agree(proto(nodes, [X], [("y", F)]), FEEDS)


def test_an_optional_sequence_of_no_tensors_is_there():
    of = helper.make_optional_type_proto(helper.make_sequence_type_proto(helper.make_tensor_type_proto(F, None)))
    graph = helper.make_graph([node("OptionalHasElement", "o", "y")], "g", [helper.make_value_info("o", of)], [value("y", B)])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = girih.Model.from_onnx(file.SerializeToString(), device="eval")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given, there in (([], True), (None, False), ([np.ones(2, "f4")], True), ([], True)):
            assert model.run(None, {"o": given})[0] == there
