"""Models that compute extents of extents, run loops by an extent, and take inputs that the file says little of: one model for
all sizes, against ONNX Runtime."""

import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import girih

onnxruntime.set_default_logger_severity(4)
F, I, I32, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(), **attributes)


def graph(nodes, inputs, outputs, constants=(), name="g"):
    """A graph of inputs (name, type, shape or None) and outputs (name, type)."""
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(constants).items()]
    outs = [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs]
    return helper.make_graph(nodes, name, [helper.make_tensor_value_info(*i) for i in inputs], outs, tensors)


def proto(nodes, inputs, outputs, constants=(), sets=(), opset=18):
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in sets)]
    return helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=opsets, ir_version=9)


def runtime(file):
    session = onnxruntime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def agree(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


def one_for_all(file, feeds, folder, device="cpu"):
    """The first call compiles a model for all of them, without a warning."""
    model, judge, compiled = girih.Model.from_onnx(file.SerializeToString(), threads=1, device=device), runtime(file), None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for feed in feeds:
            agree(model.run(None, feed), judge(feed))
            # Which shapes it is for: all.
            assert model._source.last[1] is None
            kernels = {path.name for path in folder.rglob("*.so")}
            compiled = kernels if compiled is None else compiled
            assert kernels == compiled, f"compiled anew for {[a.shape for a in feed.values()]}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path))
    return tmp_path


class Expression:
    """A random integer made of the extents `b` and `t`; with `kinds` besides, of 32 bits on the way."""

    def __init__(self, seed, kinds=()):
        self.rng, self.nodes, self.constants, self.count = np.random.default_rng(seed), [], {}, 0
        self.kinds = ["sum", "less", "product", "times", "by", "by extent", "rest", "ceil", "up", "where", "most", "narrow", *kinds]
        self.result, self.text = self.grown(3)

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, value):
        name = self.name()
        self.constants[name] = np.asarray(value)
        return name

    def op(self, op, *inputs, **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def grown(self, depth):
        if depth == 0 or self.rng.random() < 0.1:
            return [("b", "b"), ("t", "t")][self.rng.integers(2)]
        kind = self.kinds[self.rng.integers(len(self.kinds))]
        x, text = self.grown(depth - 1)
        k = int(self.rng.integers(2, 5))
        if kind in ("sum", "less", "product", "most", "by extent"):
            y, other = self.grown(depth - 1)
            if kind == "by extent":
                return self.op("Div", x, "t"), f"({text} / t)"
            op = {"sum": "Add", "less": "Sub", "product": "Mul", "most": "Max"}[kind]
            return self.op(op, x, y), f"{op}({text}, {other})"
        if kind in ("Add", "Sub", "Mul"):
            y, other = self.grown(depth - 1)
            short = [self.op("Cast", v, to=I32) for v in (x, y)]
            return self.op("Cast", self.op(kind, *short), to=I), f"{kind}32({text}, {other})"
        if kind == "times":
            return self.op("Mul", x, self.constant(k)), f"{text} * {k}"
        if kind == "by":
            return self.op("Div", x, self.constant(k)), f"({text} / {k})"
        if kind == "rest":
            return self.op("Mod", x, self.constant(k)), f"({text} % {k})"
        if kind == "up":
            return self.op("Neg", self.op("Div", self.op("Neg", x), self.constant(k))), f"-(-{text} / {k})"
        if kind == "narrow":
            return self.op("Cast", self.op("Cast", x, to=I32), to=I), f"int({text})"
        if kind == "ceil":
            wide = self.op("Cast", "t", to=F)
            up = self.op(["Ceil", "Floor"][k % 2], self.op("Div", wide, self.constant(np.float32(k))))
            return self.op("Add", self.op("Cast", up, to=I), x), f"round(t / {k}) + {text}"
        y, other = self.grown(depth - 1)
        test = self.op(["Greater", "Less", "Equal"][k - 2], x, self.constant(5))
        return self.op("Where", test, x, y), f"({text} ? 5 : {other})"


def extents_of(expression):
    """`ones(q)` and `q` for the integer, between 0 and 40."""
    first = [
        node("Shape", "x", "shape"), node("Gather", "shape zero", "b"), node("Gather", "shape one", "t"),
    ]  # fmt: skip
    last = [
        node("Max", f"{expression.result} zero", "above"), node("Min", "above most", "q"),
        node("Unsqueeze", "q first", "list"), node("Expand", "half list", "ones"),
        node("ReduceSum", "x", "sum", keepdims=0), node("Add", "ones sum", "y"),
        node("Range", "zero q one", "numbers"),
    ]  # fmt: skip
    constants = {"zero": 0, "one": 1, "most": 40, "first": [0], "half": np.ones(1, "f4")}
    inputs, outputs = [("x", F, ["b", "t"])], [("y", F), ("numbers", I)]
    return proto([*first, *expression.nodes, *last], inputs, outputs, constants | expression.constants)


SIZES = [(2, 6), (3, 5), (1, 1), (4, 2), (7, 9), (2, 2)]


@pytest.mark.parametrize("part", range(4))
def test_arithmetic_of_extents(part, folder):
    for seed in range(part * 15, part * 15 + 15):
        expression = Expression(seed)
        file = extents_of(expression)
        try:
            one_for_all(file, [{"x": np.ones(s, "f4")} for s in SIZES], folder / str(seed), device="eval")
        except Exception as e:
            raise AssertionError(f"seed {seed}: {expression.text}") from e


def lengths_of(expression):
    """The same for the lengths of two inputs, whose elements nobody reads."""
    first = [node("Shape", "x", "xs"), node("Squeeze", "xs", "b"), node("Shape", "z", "zs"), node("Squeeze", "zs", "t")]
    last = [node("Max", f"{expression.result} zero", "above"), node("Min", "above most", "q"), node("Range", "zero q one", "numbers")]
    inputs, constants = [("x", TensorProto.UINT8, ["n"]), ("z", TensorProto.UINT8, ["m"])], {"zero": 0, "one": 1, "most": 40}
    return proto([*first, *expression.nodes, *last], inputs, [("numbers", I)], constants | expression.constants)


LONG = [(3, 5), (65536, 65536), (7, 2), (50000, 70001), (1 << 24, 3), (1, 1)]


@pytest.mark.parametrize("part", range(3))
def test_extents_that_a_type_has_no_room_for(part):
    """Products of them wrap in 32 and 64 bits, and round as floats: each answer is ONNX Runtime's."""
    memory = np.zeros(1 << 24, np.uint8)
    for seed in range(part * 15, part * 15 + 15):
        expression = Expression(seed, ["Add", "Sub", "Mul", "Mul"])
        file = lengths_of(expression)
        model, judge = girih.Model.from_onnx(file.SerializeToString(), threads=1, device="eval"), runtime(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for b, t in LONG:
                feed = {"x": memory[:b], "z": memory[:t]}
                try:
                    agree(model.run(None, feed), judge(feed))
                except Exception as e:
                    raise AssertionError(f"seed {seed} at {b}, {t}: {expression.text}") from e


WRAPS = {
    "int32(b*t)": ([node("Mul", "b t", "p"), node("Cast", "p", "n", to=I32), node("Cast", "n", "r", to=I)], {}),
    "int32(b) * int32(t)": (
        [node("Cast", "b", "c", to=I32), node("Cast", "t", "u", to=I32), node("Mul", "c u", "p"), node("Cast", "p", "r", to=I)], {}),
    "b*t*b*t": ([node("Mul", "b t", "p"), node("Mul", "p p", "r")], {}),
    "int32(b*t/2)": ([node("Mul", "b t", "p"), node("Div", "p two", "h"), node("Cast", "h", "n", to=I32), node("Cast", "n", "r", to=I)], {"two": 2}),
    "int8(b)": ([node("Cast", "b", "n", to=TensorProto.INT8), node("Cast", "n", "r", to=I)], {}),
    "uint8(t)": ([node("Cast", "t", "n", to=TensorProto.UINT8), node("Cast", "n", "r", to=I)], {}),
    "uint32(b) - uint32(t)": (
        [node("Cast", "b", "c", to=TensorProto.UINT32), node("Cast", "t", "u", to=TensorProto.UINT32), node("Sub", "c u", "p"), node("Cast", "p", "r", to=I)], {}),
    "float(b*t + 1) - float(b*t)": (
        [node("Mul", "b t", "p"), node("Add", "p one", "p1"), node("Cast", "p1", "f", to=F), node("Cast", "p", "g", to=F), node("Sub", "f g", "h"), node("Cast", "h", "r", to=I)], {}),
    "sum of int32([b*t, 1])": (
        [node("Mul", "b t", "p"), node("Unsqueeze", "p first", "l"), node("Concat", "l ones", "c", axis=0), node("Cast", "c", "n", to=I32), node("ReduceSum", "n first", "s", keepdims=0),
         node("Cast", "s", "r", to=I)], {"first": [0], "ones": [1]}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPS)
def test_integers_of_extents_wrap(name):
    file = lengths_of(Given(*WRAPS[name][0], constants=WRAPS[name][1]))
    model, judge = girih.Model.from_onnx(file.SerializeToString(), threads=1, device="eval"), runtime(file)
    memory = np.zeros(65536, np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for b, t in ((2, 3), (65536, 65536), (3, 200), (65535, 65537 - 2), (46341, 46341), (5, 4)):
            feed = {"x": memory[:b], "z": memory[:t]}
            agree(model.run(None, feed), judge(feed))


class Given:
    """An expression that is written down."""

    def __init__(self, *nodes, constants=()):
        self.nodes, self.constants, self.result = list(nodes), dict(constants), "r"


WRITTEN = {
    "b*t + 1": Given(node("Mul", "b t", "p"), node("Add", "p one", "r")),
    "b*t/2": Given(node("Mul", "b t", "p"), node("Div", "p two", "r"), constants={"two": 2}),
    "b*t*2": Given(node("Mul", "b t", "p"), node("Mul", "p two", "r"), constants={"two": 2}),
    "t/b": Given(node("Div", "t b", "r")),
    "t % 3": Given(node("Mod", "t three", "r"), constants={"three": 3}),
    "ceil(t/2.0)": Given(
        node("Cast", "t", "f", to=F), node("Div", "f two", "h"), node("Ceil", "h", "c"), node("Cast", "c", "r", to=I),
        constants={"two": np.float32(2)}),  # fmt: skip
    "floor(t*1.5)": Given(
        node("Cast", "t", "f", to=F), node("Mul", "f by", "h"), node("Floor", "h", "c"), node("Cast", "c", "r", to=I),
        constants={"by": np.float32(1.5)}),  # fmt: skip
    "-(-t/2)": Given(node("Neg", "t", "m"), node("Div", "m two", "h"), node("Neg", "h", "r"), constants={"two": 2}),
    "t > 4 ? t : b": Given(node("Greater", "t four", "c"), node("Where", "c t b", "r"), constants={"four": 4}),
    "|b - t|": Given(node("Sub", "b t", "d"), node("Abs", "d", "r")),
    "t ** 2": Given(node("Pow", "t two", "r"), constants={"two": 2}),
    "round(t*0.5)": Given(
        node("Cast", "t", "f", to=F), node("Mul", "f by", "h"), node("Round", "h", "c"), node("Cast", "c", "r", to=I),
        constants={"by": np.float32(0.5)}),  # fmt: skip
    "floor(t*0.6)": Given(
        node("Cast", "t", "f", to=F), node("Mul", "f by", "h"), node("Floor", "h", "c"), node("Cast", "c", "r", to=I),
        constants={"by": np.float32(0.6)}),  # fmt: skip
    "int(t/0.7)": Given(
        node("Cast", "t", "f", to=F), node("Div", "f by", "h"), node("Cast", "h", "r", to=I), constants={"by": np.float32(0.7)}),  # fmt: skip
    "t > 2.5 ? t : b": Given(
        node("Cast", "t", "f", to=F), node("Greater", "f by", "c"), node("Where", "c t b", "r"), constants={"by": np.float32(2.5)}),  # fmt: skip
    "min(t/2.0, b)": Given(
        node("Cast", "t", "f", to=F), node("Div", "f by", "h"), node("Cast", "b", "g", to=F), node("Min", "h g", "m"), node("Ceil", "m", "c"),
        node("Cast", "c", "r", to=I), constants={"by": np.float32(2)}),  # fmt: skip
    "if t > b: t - b else: b": Given(
        node("Greater", "t b", "c"),
        helper.make_node("If", ["c"], ["r"], then_branch=graph([node("Sub", "t b", "d")], [], [("d", I)], name="then"),
                         else_branch=graph([node("Identity", "b", "e")], [], [("e", I)], name="else"))),  # fmt: skip
    "int32(b*t)": Given(
        node("Cast", "b", "b32", to=I32), node("Cast", "t", "t32", to=I32), node("Mul", "b32 t32", "p"),
        node("Cast", "p", "r", to=I)),  # fmt: skip
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_extents(name, folder):
    one_for_all(extents_of(WRITTEN[name]), [{"x": np.ones(s, "f4")} for s in SIZES], folder)


def body(nodes, states, rows, constants=()):
    """The body of a loop: `i` and `go` are given, `again` and each state and row are made."""
    inputs = [("i", I, []), ("go", B, []), *((n, kind, shape) for n, kind, shape in states)]
    outputs = [("again", B), *((n + "_", kind) for n, kind, _ in states), *rows]
    return graph(nodes, inputs, outputs, constants, "body")


def loop_file(rounds=None, go=None, inputs=(), constants=()):
    """Rows `s` of `s = s + x`, of any number of rounds; the names of the inputs that limit the rounds."""
    nodes = [node("Add", "s x", "s_"), node("Mul", "s_ two", "row"), node("Identity", "go", "again"), node("Identity", "i", "at")]
    inner = body(nodes, [("s", F, [3])], [("row", F), ("at", I)])
    outer = [helper.make_node("Loop", [rounds or "", go or "", "x"], ["last", "rows", "ats"], body=inner)]
    outputs = [("last", F), ("rows", F), ("ats", I)]
    return proto(outer, [("x", F, [3]), *inputs], outputs, {"two": np.float32(2), **dict(constants)})


def loop_rows(x, n):
    last = x * (n + 1)
    rows = np.stack([2 * x * (k + 2) for k in range(n)]) if n else np.zeros((0, 3), "f4")
    return [last.astype("f4"), rows.astype("f4"), np.arange(n)]


X = np.array([1, 2, 3], "f4")


@pytest.mark.parametrize("n", [0, 1, 3, 7])
@pytest.mark.parametrize("device", ["eval", "cpu"])
def test_loops_of_any_number_of_rounds(n, device):
    """A number of rounds that is a constant, an input, or below 0; a condition that is false at entry."""
    file = loop_file("n", constants={"n": np.int64(n)})
    agree(girih.Model.from_onnx(file.SerializeToString(), device=device).run(None, {"x": X}), loop_rows(X, n))
    file = loop_file("n", "c", [("n", I, []), ("c", B, [])])
    model = girih.Model.from_onnx(file.SerializeToString(), device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rounds, go in ((n, True), (n, False), (-n, True), (0, True), (2, True)):
            feed = {"x": X, "n": np.int64(rounds), "c": np.bool_(go)}
            agree(model.run(None, feed), loop_rows(X, max(rounds, 0) if go else 0))
    file = loop_file("n", "c", constants={"n": np.int64(n), "c": np.bool_(False)})
    agree(girih.Model.from_onnx(file.SerializeToString(), device=device).run(None, {"x": X}), loop_rows(X, 0))


def test_a_scan_of_nothing():
    inner = graph([node("Add", "s v", "s2"), node("Mul", "s2 s2", "r")], [("s", F, [2]), ("v", F, [2])], [("s2", F), ("r", F)])
    for n in (0, 2):
        scan = helper.make_node("Scan", ["s0", "x"], ["s", "rows"], body=inner, num_scan_inputs=1)
        file = proto([scan], [("s0", F, [2]), ("x", F, [n, 2])], [("s", F), ("rows", F)])
        x = np.ones((n, 2), "f4")
        s = np.cumsum(np.concatenate([np.ones((1, 2), "f4"), x]), 0)
        model = girih.Model.from_onnx(file.SerializeToString())
        agree(model.run(None, {"s0": np.ones(2, "f4"), "x": x}), [s[-1], s[1:] ** 2])


def keras(step, limit, most, kind=I32):
    """A loop as tf2onnx writes that of a recurrent layer: as often as `time` is less than the extent `t`, with rows."""
    made = [
        node("Add", "time step", "time_"), node("Gather", "x time", "row"), node("Add", "h row", "h_"), node("Tanh", "h_", "out"),
        *limit, node("Identity", "n", "n_"),
    ]  # fmt: skip
    states = [("time", kind, []), ("n", kind, []), ("h", F, [4])]
    inner = body(made, states, [("out", F)], {"step": np.array(step, helper.tensor_dtype_to_np_dtype(kind))})
    nodes = [
        node("Shape", "x", "shape"), node("Gather", "shape zero", "t64"), node("Cast", "t64", "t", to=kind),
        node("Less", "start t", "begins"),
        helper.make_node("Loop", ["M", "begins", "start", "t", "h0"], ["last", "n1", "h1", "rows"], body=inner),
    ]  # fmt: skip
    constants = {"zero": 0, "start": np.array(0, helper.tensor_dtype_to_np_dtype(kind)), "M": np.array(most), "h0": np.zeros(4, "f4"),
                 "one": np.array(1, helper.tensor_dtype_to_np_dtype(kind))}  # fmt: skip
    return proto(nodes, [("x", F, ["t", 4])], [("h1", F), ("rows", F), ("last", kind)], constants)


KERAS = {
    "next": (1, [node("Less", "time_ n", "again")], 2**31 - 1, I32),
    "sum": (1, [node("Add", "time one", "then"), node("Less", "then n", "again")], 2**63 - 1, I),
    "both": (1, [node("Less", "time_ n", "a"), node("Less", "time_ n", "b"), node("And", "a b", "again")], 2**31 - 1, I32),
    "turned": (1, [node("Greater", "n time_", "again")], 2**31 - 1, I32),
    "two": (2, [node("Less", "time_ n", "again")], 2**31 - 1, I32),
    "up to": (1, [node("Sub", "n one", "m"), node("LessOrEqual", "time_ m", "again")], 2**31 - 1, I),
}


@pytest.mark.parametrize("name", KERAS)
def test_loops_whose_condition_counts(name, folder):
    feeds = [{"x": np.random.default_rng(n).standard_normal((n, 4)).astype("f4")} for n in (6, 1, 2, 9, 30)]
    one_for_all(keras(*KERAS[name]), feeds, folder)


def cached():
    """Attention over a cache that may be empty, in plain operators."""
    nodes = [
        node("Concat", "past_k k", "ks", axis=1), node("Concat", "past_v v", "vs", axis=1),
        node("Transpose", "ks", "kt", perm=[0, 2, 1]), node("MatMul", "q kt", "scores"), node("Softmax", "scores", "p", axis=-1),
        node("MatMul", "p vs", "y"),
    ]  # fmt: skip
    new, old = ["b", "s", 4], ["b", "kept", 4]
    inputs = [("q", F, new), ("k", F, new), ("v", F, new), ("past_k", F, old), ("past_v", F, old)]
    return proto(nodes, inputs, [("y", F), ("ks", F), ("vs", F)])


def grouped():
    attributes = {"num_heads": 2, "kv_num_heads": 1}
    names = "query key value past_key past_value seqlens total".split(" ")
    nodes = [helper.make_node("GroupQueryAttention", names, ["y", "ks", "vs"], domain="com.microsoft", **attributes)]
    inputs = [("query", F, ["b", "s", 16]), ("key", F, ["b", "s", 8]), ("value", F, ["b", "s", 8]),
              ("past_key", F, ["b", 1, "kept", 8]), ("past_value", F, ["b", 1, "kept", 8]), ("seqlens", I32, ["b"])]  # fmt: skip
    total = [node("ReduceMax", "seqlens", "longest", keepdims=0), node("Add", "longest one", "total")]
    outputs = [("y", F), ("ks", F), ("vs", F)]
    return proto([*total, *nodes], inputs, outputs, {"one": np.int32(1)}, ["com.microsoft"])


@pytest.mark.parametrize("name", ["cached", "grouped"])
def test_one_model_serves_an_empty_cache_and_longer_ones(name, folder):
    rng = np.random.default_rng(1)
    normal = lambda *shape: rng.standard_normal(shape).astype("f4")
    feeds = []
    for kept, s in ((0, 7), (7, 1), (8, 1), (0, 3), (3, 1), (0, 1), (1, 1)):
        if name == "cached":
            now = {n: normal(1, s, 4) for n in "qkv"}
            feeds.append(now | {n: normal(1, kept, 4) for n in ("past_k", "past_v")})
        else:
            now = {"query": normal(1, s, 16), "key": normal(1, s, 8), "value": normal(1, s, 8)}
            past = {n: normal(1, 1, kept, 8) for n in ("past_key", "past_value")}
            feeds.append(now | past | {"seqlens": np.array([kept + s - 1], np.int32)})
    one_for_all({"cached": cached, "grouped": grouped}[name](), feeds, folder)


def test_inputs_of_which_the_file_says_no_shape():
    file = proto([node("Add", "x y", "s"), node("Softmax", "s", "z", axis=-1)], [("x", F, None), ("y", F, None)], [("z", F)])
    model, judge = girih.Model.from_onnx(file.SerializeToString(), device="eval"), runtime(file)
    assert str(model.inputs[0]) == "x: float32[...]"
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shapes in [((2, 3), (2, 3)), ((4, 5), (4, 5)), ((4,), (4,)), ((2, 3, 4), (4,)), ((1, 4), (3, 4)), ((2, 3), (2, 3))]:
            feed = {n: rng.standard_normal(s).astype("f4") for n, s in zip("xy", shapes)}
            agree(model.run(None, feed), judge(feed))


def test_a_name_for_two_extents():
    file = proto([node("Concat", "x y", "c", axis=0), node("Relu", "c", "z")], [("x", F, ["n", 2]), ("y", F, ["n", 2])], [("z", F)])
    model, judge = girih.Model.from_onnx(file.SerializeToString(), device="eval"), runtime(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in ((2, 2), (3, 1), (5, 5), (1, 4), (0, 2)):
            feed = {"x": np.full((a, 2), -1, "f4"), "y": np.ones((b, 2), "f4")}
            agree(model.run(None, feed), judge(feed))


def test_a_caller_may_override_an_initializer():
    inputs = [("x", F, ["n"]), ("w", F, [1]), ("k", I, [1])]
    constants = {"w": np.array([2], "f4"), "k": np.array([-1])}
    file = proto([node("Mul", "x w", "m"), node("Reshape", "m k", "y")], inputs, [("y", F)], constants)
    model, judge = girih.Model.from_onnx(file.SerializeToString(), device="eval"), runtime(file)
    assert [port.name for port in model.inputs] == ["x"]
    x = np.arange(4, dtype="f4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for more in ({}, {"w": np.array([5], "f4")}, {"w": np.array([7], "f4")}, {}, {"k": np.array([4])}, {}):
            agree(model.run(None, {"x": x} | more), judge({"x": x} | more))


@pytest.mark.parametrize("data", [b"", b"\x08\x09"])
def test_no_bytes_are_no_model(data):
    with pytest.raises(girih.ProgramError, match="0 bytes" if not data else "no graph"):
        girih.Model.from_onnx(data)


@pytest.mark.parametrize("by", [0.6, 0.7, 2.3, 0.1, 1 / 3, 1.7])
@pytest.mark.parametrize("op", ["Floor", "Ceil", "Round"])
def test_extents_times_fractions_of_no_short_float(op, by):
    """Lengths at which the product in 32 bits is a hair above or below the one of the fraction."""
    rounded = Given(node("Cast", "t", "f", to=F), node("Mul", "f by", "h"), node(op, "h", "c"), node("Cast", "c", "r", to=I),
                    constants={"by": np.float32(by)})  # fmt: skip
    file = lengths_of(rounded)
    file.graph.node[-2].input[1] = "far"
    file.graph.initializer.append(numpy_helper.from_array(np.array(1 << 40), "far"))
    model, judge = girih.Model.from_onnx(file.SerializeToString(), threads=1, device="eval"), runtime(file)
    memory = np.zeros(1 << 18, np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in (1, 3, 5, 10, 25, 50, 55, 100, 205, 1000, 1023, 4095, 9999, 65535, 131071, 131075, 200000):
            feed = {"x": memory[:2], "z": memory[:t]}
            agree(model.run(None, feed), judge(feed))


def test_loops_that_count_an_extent():
    """`s = s / 2 + i`, as often as another extent says, is an extent."""
    inner = body([node("Div", "s two", "h"), node("Add", "h i", "s_"), node("Identity", "go", "again")], [("s", I, [])], [])
    nodes = [
        node("Shape", "x", "shape"), node("Gather", "shape zero", "b"), node("Gather", "shape one", "t"), node("Min", "t seven", "n"),
        helper.make_node("Loop", ["n", "", "b"], ["q"], body=inner), node("Unsqueeze", "q first", "list"), node("Expand", "half list", "y"),
    ]  # fmt: skip
    constants = {"zero": 0, "one": 1, "two": 2, "seven": 7, "first": [0], "half": np.ones(1, "f4")}
    file = proto(nodes, [("x", F, ["b", "t"])], [("y", F)], constants)
    model, judge = girih.Model.from_onnx(file.SerializeToString(), threads=1, device="eval"), runtime(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for b, t in SIZES:
            feed = {"x": np.ones((b, t), "f4")}
            agree(model.run(None, feed), judge(feed))


@pytest.mark.parametrize("mode", ["reflect", "wrap", "edge", "constant"])
def test_padding_by_a_computed_number_of_either_sign(mode):
    nodes = [
        node("Shape", "x", "shape"), node("Slice", "shape first second", "n"), node("Sub", "n five", "more"),
        node("Concat", "more zeros", "pads", axis=0), node("Pad", "x pads", "y", mode=mode),
    ]  # fmt: skip
    constants = {"first": [0], "second": [1], "five": [5], "zeros": [0]}
    file = proto(nodes, [("x", F, ["n"])], [("y", F)], constants, opset=19)
    model, judge = girih.Model.from_onnx(file.SerializeToString(), threads=1, device="eval"), runtime(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (4, 5, 6, 8, 3):
            feed = {"x": np.arange(n, dtype="f4")}
            agree(model.run(None, feed), judge(feed))


def test_an_input_that_is_too_long_to_be_a_constant_is_named():
    file = proto([node("NonZero", "x", "y")], [("x", F, [None])], [("y", I)])
    model = girih.Model.from_onnx(file.SerializeToString(), threads=1)
    x = np.arange(2000, dtype=np.float32) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(model.run(None, {"x": x[:1000]}), runtime(file)({"x": x[:1000]}))
        with pytest.raises(girih.GirihError, match="at most 1024 elements become constants of the model; `x` has more"):
            model.run(None, {"x": x})
