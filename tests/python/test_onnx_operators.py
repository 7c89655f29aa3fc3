"""Operators of ONNX that its own tests show in one size only: other ranks and lengths, natively and by the evaluator, and what is
refused of them."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import girih

PREVIEW, TRAINING = "ai.onnx.preview", "ai.onnx.preview.training"
F, I = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(3)


def model(nodes, inputs, outputs, device="cpu", constants=()):
    """A model of nodes whose inputs are (name, type, shape); outputs have no type."""
    ins = [helper.make_tensor_value_info(*i) for i in inputs]
    outs = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "g", ins, outs, [numpy_helper.from_array(a, n) for n, a in constants])
    sets = [helper.make_opsetid("", 26), helper.make_opsetid(PREVIEW, 1), helper.make_opsetid(TRAINING, 1)]
    return girih.Model.from_onnx(helper.make_model(graph, opset_imports=sets).SerializeToString(), device=device)


def refused(text, nodes, inputs, outputs=("y",), **given):
    feeds = {name: np.ones([2 if isinstance(d, str) else d for d in shape], helper.tensor_dtype_to_np_dtype(kind))
             for name, kind, shape in inputs}  # fmt: skip
    with pytest.raises(girih.ProgramError, match=text):
        model(nodes, inputs, outputs, **given)(**feeds)


def modifier(op, value):
    """A graph `out = op(x, value)` of unknown extents."""
    io = [helper.make_tensor_value_info(n, F, ["b", "h", "s", "t"]) for n in ("x", "out")]
    node = helper.make_node(op, ["x", "value"], ["out"])
    return helper.make_graph([node], "modifier", io[:1], io[1:], [numpy_helper.from_array(np.float32(value), "value")])


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_flex_attention_of_free_lengths(device):
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=PREVIEW, scale=0.4,
                            score_mod=modifier("Mul", -0.5), prob_mod=modifier("Add", 0.25))  # fmt: skip
    inputs = [("q", F, ["b", 4, "s", 8]), ("k", F, ["b", 2, "t", 8]), ("v", F, ["b", 2, "t", 3])]
    flex = model([node], inputs, ["y"], device)
    for b, s, t in [(1, 5, 7), (2, 1, 40)]:
        q, k, v = (RNG.standard_normal((b, h, n, d)).astype("f4") for h, n, d in [(4, s, 8), (2, t, 8), (2, t, 3)])
        wide = [np.repeat(x, 2, 1).astype("f8") for x in (k, v)]
        scores = q.astype("f8") @ wide[0].swapaxes(2, 3) * 0.4 * -0.5
        np.testing.assert_allclose(flex(q=q, k=k, v=v), (softmax(scores) + 0.25) @ wide[1], rtol=2e-5, atol=2e-6)


def test_what_flex_attention_refuses():
    def flex(text, q=("b", 4, "s", 8), k=("b", 2, "t", 8), kinds=(F, F, F), **attributes):
        inputs = list(zip("qkv", kinds, (list(q), list(k), ["b", 2, "t", 3])))
        refused(text, [helper.make_node("FlexAttention", list("qkv"), ["y"], domain=PREVIEW, **attributes)], inputs)

    flex("do not fit", q=("b", 3, "s", 8))
    flex("do not fit", k=("b", 2, "t", 4))
    flex("floats of one type, not f32 and f16", kinds=(F, TensorProto.FLOAT16, F))
    flex("softmax_precision must be a float, not i64", softmax_precision=I)
    flex("its score_mod makes bool", score_mod=modifier("Greater", 0))
    flex("gives 1 values to a body of 0", prob_mod=helper.make_graph([], "empty", [], []))


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("name", ["int2", "uint2"])
def test_integers_of_two_bits(name, device):
    dtype = np.dtype(getattr(ml_dtypes, name))
    kind, (low, high) = helper.np_dtype_to_tensor_dtype(dtype), ((-2, 1) if name == "int2" else (0, 3))
    x = np.array([[-9.0, -2.5, -0.5, 0.5, 1.5], [2.5, 3.5, 1.0, 99.0, 0.0]], np.float32)
    weights = np.array([[0, 1, low], [high, low, 1]]).astype(dtype)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        helper.make_node("Cast", ["i"], ["narrow"], to=kind),
        helper.make_node("Cast", ["narrow"], ["wide"], to=I),
        helper.make_node("Transpose", ["w"], ["turned"]),
    ]
    constants = [("scale", np.float32(0.5)), ("zero", np.array(1).astype(dtype)), ("w", weights)]
    bits = model(nodes, [("x", F, ["n", 5]), ("i", I, ["m"])], ["q", "y", "wide", "turned"], device, constants)
    i = np.arange(-9, 9)
    q, y, wide, turned = bits(x=x, i=i)
    expected = np.clip(np.round(x / 0.5) + 1, low, high)
    np.testing.assert_array_equal(q.astype(int), expected)
    np.testing.assert_array_equal(y, (expected - 1) / 2)
    np.testing.assert_array_equal(wide, i % 4 if low == 0 else (i + 2) % 4 - 2)
    assert turned.dtype == dtype
    np.testing.assert_array_equal(turned.astype(int), weights.T.astype(int))


@pytest.mark.parametrize("count", [1, 4, 7])
def test_floats_of_four_bits_come_and_go(count):
    x = np.array([0, 0.5, -1, 6, -6, 1.5, 3])[:count].astype(ml_dtypes.float4_e2m1fn)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Cast", ["x"], ["z"], to=F)]
    y, z = model(nodes, [("x", kind, ["n"])], ["y", "z"])(x=x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.view("u1"), x.view("u1"))
    np.testing.assert_array_equal(z, x.astype("f4"))


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("name", ["float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_floats_without_a_negative_zero(name, device):
    dtype = np.dtype(getattr(ml_dtypes, name))
    kind, most = helper.np_dtype_to_tensor_dtype(dtype), float(ml_dtypes.finfo(dtype).max)
    every = np.arange(256, dtype=np.uint8).view(dtype).astype("f4")
    tries = np.array([-0.0, 1e-9, -1e-9, most * 1.01, -1e9, np.inf, -np.inf, np.nan], "f4")
    x = np.concatenate([every, tries, RNG.uniform(-2, 2, 500).astype("f4") ** 9])
    for saturate in (1, 0):
        nodes = [helper.make_node("Cast", ["x"], ["y"], to=kind, saturate=saturate)]
        nodes.append(helper.make_node("Cast", ["y"], ["z"], to=F))
        y, z = model(nodes, [("x", F, ["n"])], ["y", "z"], device)(x=x)
        within = np.clip(x, -most, most) if saturate else x
        expected = within.astype(dtype)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.view("u1"), expected.view("u1"))
        np.testing.assert_array_equal(z, expected.astype("f4"))


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_adam_of_two_tensors_after_some_steps(device):
    names = ["x1", "x2", "g1", "g2", "v1", "v2", "h1", "h2"]
    node = helper.make_node("Adam", ["r", "t", *names], ["a", "b", "c", "d", "e", "f"], domain=TRAINING,
                            norm_coefficient=0.01, norm_coefficient_post=0.02, alpha=0.8, beta=0.95)  # fmt: skip
    shapes = [["n"], [2, 3]] * 4
    step = model([node], [("r", F, []), ("t", I, []), *((n, F, s) for n, s in zip(names, shapes))], list("abcdef"), device)
    all = [np.abs(RNG.standard_normal(5 if s == ["n"] else s)).astype("f4") for s in shapes]
    for t in (0, 7):
        given = step(r=np.float32(0.1), t=np.array(t), **dict(zip(names, all)))
        for i in range(2):
            x, g, v, h = (all[i + 2 * j].astype("f8") for j in range(4))
            g = 0.01 * x + g
            v, h = 0.8 * v + 0.2 * g, 0.95 * h + 0.05 * g * g
            r = 0.1 * np.sqrt(1 - 0.95**t) / (1 - 0.8**t) if t else 0.1
            x = (x - r * v / (np.sqrt(h) + 1e-6)) * 0.98
            for got, wanted in zip(given[i::2], (x, v, h)):
                np.testing.assert_allclose(got, wanted, rtol=2e-5)


def test_what_optimisers_refuse():
    def step(text, op="Adam", names=("x", "g", "v", "h"), shapes={}, steps=I, **attributes):
        node = helper.make_node(op, ["r", "t", *names], ["y"], domain=TRAINING, **attributes)
        inputs = [("r", F, []), ("t", steps, []), *((n, F, shapes.get(n, [2])) for n in names)]
        refused(text, [node], inputs)

    step("takes 4 operands for each tensor beside its first two, not 3", names=("x", "g", "v"))
    step(r"f32 \[2\] and f32 \[3\] of one tensor differ", shapes={"g": [3]})
    step("the number of steps is an integer, not f32", steps=F)
    given = {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.0}
    step("`mode` is missing", op="Momentum", names=("x", "g", "v"), **given)
    step('`mode` is "fast"', op="Momentum", names=("x", "g", "v"), mode="fast", **given)
    step("`alpha` is missing", op="Momentum", names=("x", "g", "v"), mode="nesterov")


def ngrams(**changed):
    of = {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 3, "max_skip_count": 1, "ngram_counts": [0, 2, 6],
          "ngram_indexes": [4, 0, 1, 3, 2], "pool_int64s": [5, 7, 5, 7, 7, 7, 7, 5, 7],
          "weights": [1.0, 2.0, 0.5, 3.0, 4.0]}  # fmt: skip
    return helper.make_node("TfIdfVectorizer", ["x"], ["y"], **{k: v for k, v in (of | changed).items() if v is not None})


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_ngrams_of_rows_of_free_length(mode, device):
    count = model([ngrams(mode=mode)], [("x", I, ["n", "m"])], ["y"], device)
    grams, columns = [(5,), (7,), (5, 7), (7, 7), (7, 5, 7)], [4, 0, 1, 3, 2]
    for rows, length in [(3, 9), (1, 2), (2, 1)]:
        x = RNG.choice([5, 7, 9], (rows, length))
        expected = np.zeros((rows, 5))
        for row, at in zip(x, expected):
            for gram, column in zip(grams, columns):
                for distance in (1, 2)[: 2 if len(gram) > 1 else 1]:
                    starts = range(length - distance * (len(gram) - 1))
                    at[column] += sum(tuple(row[s + distance * k] for k in range(len(gram))) == gram for s in starts)
        if mode == "IDF":
            expected = np.minimum(expected, 1)
        if mode != "TF":
            expected *= [1.0, 2.0, 0.5, 3.0, 4.0]
        np.testing.assert_array_equal(count(x=x), expected.astype("f4"))


def test_what_ngrams_refuse():
    def gram(text, kind=I, shape=("n", "m"), **changed):
        refused(text, [ngrams(**changed)], [("x", kind, list(shape))])

    gram("counts integers, not f32", kind=F)
    gram("not a tensor of rank 3", shape=(2, 3, 4))
    gram(r"the n-gram \[5, 7\] is listed twice", pool_int64s=[5, 7, 5, 7, 5, 7, 7, 5, 7])
    gram("3 columns for 5 n-grams", ngram_indexes=[0, 1, 2])
    gram("do not split into n-grams of 2 elements each", ngram_counts=[0, 2, 5])
    gram("4 weights do not fit 5 columns", weights=[1.0] * 4)
    gram("n-grams of 3 to 2 elements", min_gram_length=3, max_gram_length=2)
    gram('`mode` is "COUNT"', mode="COUNT")
    gram("`pool_int64s` is missing", pool_int64s=None)


def test_the_bits_of_bools():
    bits = lambda to: [helper.make_node("BitCast", ["x"], ["y"], to=to)]
    x = np.array([True, False])
    given = model(bits(TensorProto.INT8), [("x", TensorProto.BOOL, [2])], ["y"])(x=x)
    np.testing.assert_array_equal(given, np.array([1, 0], np.int8))
    refused("may be neither 0 nor 1", bits(TensorProto.BOOL), [("x", TensorProto.UINT8, [2])])
    refused("u8 and i16 have different widths", bits(TensorProto.INT16), [("x", TensorProto.BOOL, [2])])


def test_a_scan_over_batches_is_told():
    """The first form of Scan had other operands."""
    io = [helper.make_tensor_value_info(n, F, [2]) for n in ("s", "x", "s2")]
    body = helper.make_graph([helper.make_node("Add", ["s", "x"], ["s2"])], "body", io[:2], io[2:])
    scan = helper.make_node("Scan", ["", "start", "rows"], ["y"], body=body, num_scan_inputs=1)
    ins = [helper.make_tensor_value_info("start", F, [1, 2]), helper.make_tensor_value_info("rows", F, [1, 3, 2])]
    graph = helper.make_graph([scan], "g", ins, [helper.make_empty_tensor_value_info("y")])
    old = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3)
    with pytest.raises(girih.ProgramError, match=r"operator Scan \(version 8\) is not supported"):
        girih.Model.from_onnx(old.SerializeToString())(start=np.ones((1, 2), "f4"), rows=np.ones((1, 3, 2), "f4"))


@pytest.mark.parametrize("mode", ["wrap", "reflect", "edge"])
@pytest.mark.parametrize("pads", [[-1, 2], [2, -1], [-2, -1], [-1, 3], [3, -2], [-1, 0]])
def test_padding_of_what_is_left_of_an_axis(mode, pads):
    """ONNX Runtime cuts first; reflections do not reach elements that are cut off."""
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    file = [helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)]
    amounts = np.array([0, pads[0], 0, pads[1]])
    left = x[:, max(-pads[0], 0) : 6 - max(-pads[1], 0)]
    expected = np.pad(left, [(0, 0), tuple(max(n, 0) for n in pads)], mode=mode)
    for shape in ([2, 6], ["n", 6]):
        given = model(file, [("x", F, shape)], ["y"], "eval", [("pads", amounts)])(x=x)
        np.testing.assert_array_equal(given, expected)
