"""Whole small models as ONNX files: convolutional, dense, encoder, decoder with a cache, preprocessing.

    .venv/bin/python tests/models.py target/release/girih [--device eval|cpu|sim|cuda] [--filter WORD]

Each model has random weights and symbolic dimensions, and runs for several values of them. The expected results come
from ONNX's reference evaluator on the same model in float64. The error is scaled by the greatest magnitude of an
output; the bound is printed with it: 4 times the error of the reference evaluator in float32, or sqrt(K) * eps where
that is more (K: the longest sum of the model).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

EPS = float(np.finfo(np.float32).eps)
F, I = TensorProto.FLOAT, TensorProto.INT64


class Net:
    """Nodes and weights of a model being written down."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def op(self, kind, *inputs, outputs=1, domain="", name=None, **attrs):
        self.count += 1
        names = [name] if name else [f"{kind.lower()}_{self.count}_{i}" for i in range(outputs)]
        names = name if isinstance(name, list) else names
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"/{kind}_{self.count}", domain=domain, **attrs))
        return names[0] if len(names) == 1 else names

    def const(self, array):
        self.count += 1
        name = f"c{self.count}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale=None):
        fan = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
        array = self.rng.standard_normal(shape) * (scale if scale is not None else 1 / np.sqrt(fan))
        return self.const(array.astype(np.float32))

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def model(self, name, inputs, outputs, opset=17, extra=()):
        port = lambda n, t, s: helper.make_tensor_value_info(n, t, s)
        graph = helper.make_graph(
            self.nodes, name, [port(*i) for i in inputs], [port(*o) for o in outputs], self.weights
        )
        imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in extra)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        onnx.checker.check_model(model)
        return model


def resnet():
    """Convolutions with batch norm and residuals, a strided one at its start, as ResNet-18 has them."""
    net = Net(0)

    def conv(x, cin, cout, k, stride):
        y = net.op("Conv", x, net.weight(cout, cin, k, k), strides=[stride] * 2, pads=[k // 2] * 4)
        scale, bias = net.weight(cout, scale=0.2), net.weight(cout, scale=0.1)
        mean = net.weight(cout, scale=0.1)
        var = net.const(net.rng.uniform(0.5, 1.5, cout).astype(np.float32))
        return net.op("BatchNormalization", y, scale, bias, mean, var)

    def block(x, cin, cout, stride):
        y = net.op("Relu", conv(x, cin, cout, 3, stride))
        y = conv(y, cout, cout, 3, 1)
        skip = x if cin == cout and stride == 1 else conv(x, cin, cout, 1, stride)
        return net.op("Relu", net.op("Add", y, skip))

    x = net.op("Relu", conv("image", 3, 8, 7, 2))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = block(x, 8, 8, 1)
    x = block(x, 8, 16, 2)
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    net.op("Gemm", x, net.weight(10, 16), net.weight(10), transB=1, name="logits")
    model = net.model("resnet", [("image", F, ["batch", 3, 32, 32])], [("logits", F, ["batch", 10])])
    runs = [{"image": net.rng.standard_normal((n, 3, 32, 32)).astype(np.float32)} for n in (1, 3)]
    return model, runs, 8 * 9 * 16


def mlp():
    """Dense layers; the weights are in a file of their own."""
    net = Net(1)
    x, width = "x", 24
    for _ in range(3):
        x = net.op("Relu", net.op("Gemm", x, net.weight(64, width), net.weight(64), transB=1))
        width = 64
    x = net.op("Gemm", x, net.weight(width, 7), net.weight(7))
    net.op("Softmax", x, axis=-1, name="p")
    model = net.model("mlp", [("x", F, ["batch", 24])], [("p", F, ["batch", 7])], opset=13)
    runs = [{"x": net.rng.standard_normal((n, 24)).astype(np.float32)} for n in (1, 5)]
    return model, runs, 64


def split_heads(net, x, heads, size):
    """[b, s, heads * size] -> [b, heads, s, size], as exporters write it: the shape is read from the tensor."""
    shape = net.op("Shape", x)
    b = net.op("Gather", shape, net.const(np.int64(0)))
    s = net.op("Gather", shape, net.const(np.int64(1)))
    axes = net.ints(0)
    to = net.op("Concat", net.op("Unsqueeze", b, axes), net.op("Unsqueeze", s, axes), net.ints(heads, size), axis=0)
    return net.op("Transpose", net.op("Reshape", x, to), perm=[0, 2, 1, 3])


def merge_heads(net, x, hidden):
    return net.op("Reshape", net.op("Transpose", x, perm=[0, 2, 1, 3]), net.ints(0, 0, hidden))


def bert():
    """An encoder with padding masks."""
    net = Net(2)
    hidden, heads, vocab = 32, 4, 50
    size = hidden // heads

    def norm(x):
        return net.op("LayerNormalization", x, net.weight(hidden, scale=0.3), net.weight(hidden, scale=0.1), epsilon=1e-12)

    def dense(x, cin, cout):
        return net.op("Add", net.op("MatMul", x, net.weight(cin, cout, scale=cin**-0.5)), net.weight(cout, scale=0.1))

    words = net.op("Gather", net.weight(vocab, hidden, scale=1), "input_ids")
    types = net.op("Gather", net.weight(2, hidden, scale=1), "token_type_ids")
    seq = net.op("Gather", net.op("Shape", "input_ids"), net.ints(1))
    places = net.op("Slice", net.weight(1, 64, hidden, scale=1), net.ints(0), seq, net.ints(1))
    x = norm(net.op("Add", net.op("Add", words, types), places))
    mask = net.op("Cast", net.op("Unsqueeze", "attention_mask", net.ints(1, 2)), to=F)
    mask = net.op("Sub", net.const(np.float32(1)), mask)
    mask = net.op("Mul", mask, net.const(np.float32(-1e9)))
    for _ in range(2):
        q, k, v = (split_heads(net, dense(x, hidden, hidden), heads, size) for _ in range(3))
        scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = net.op("Div", scores, net.const(np.float32(np.sqrt(size))))
        p = net.op("Softmax", net.op("Add", scores, mask), axis=-1)
        y = merge_heads(net, net.op("MatMul", p, v), hidden)
        x = norm(net.op("Add", dense(y, hidden, hidden), x))
        h = dense(x, hidden, 2 * hidden)
        half = net.op("Mul", h, net.const(np.float32(0.5)))
        erf = net.op("Erf", net.op("Div", h, net.const(np.float32(np.sqrt(2)))))
        h = net.op("Mul", half, net.op("Add", erf, net.const(np.float32(1))))
        x = norm(net.op("Add", dense(h, 2 * hidden, hidden), x))
    first = net.op("Gather", x, net.const(np.int64(0)), axis=1)
    net.op("Tanh", dense(first, hidden, hidden), name="pooled")
    net.op("Identity", x, name="hidden")
    inputs = [(n, I, ["batch", "sequence"]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    model = net.model("bert", inputs, [("hidden", F, ["batch", "sequence", hidden]), ("pooled", F, ["batch", hidden])])
    runs = []
    for n, s in ((1, 6), (3, 11)):
        mask = (np.arange(s) < np.array([s, *[s - 2] * (n - 1)])[:, None]).astype(np.int64)
        ids = net.rng.integers(0, vocab, (n, s))
        runs.append({"input_ids": ids, "attention_mask": mask, "token_type_ids": ids % 2})
    return model, runs, 2 * hidden


def llama(modern):
    """TinyLlama at a 32nd of its width: grouped heads, rotary embedding and a cache; in small operators, or in those of opset 23."""
    net = Net(3)
    hidden, heads, groups, vocab, inner = 64, 8, 2, 40, 176
    size = hidden // heads

    def norm(x):
        weight = net.const((1 + 0.1 * net.rng.standard_normal(hidden)).astype(np.float32))
        if modern:
            return net.op("RMSNormalization", x, weight, epsilon=1e-5)
        square = net.op("Pow", x, net.const(np.float32(2)))
        mean = net.op("ReduceMean", square, net.ints(-1), keepdims=1)
        root = net.op("Sqrt", net.op("Add", mean, net.const(np.float32(1e-5))))
        return net.op("Mul", weight, net.op("Mul", x, net.op("Reciprocal", root)))

    def dense(x, cin, cout):
        return net.op("MatMul", x, net.weight(cin, cout, scale=cin**-0.5))

    zero, one = net.const(np.int64(0)), net.const(np.int64(1))
    seq = net.op("Gather", net.op("Shape", "input_ids"), one)
    past = net.op("Gather", net.op("Shape", "past_key_0"), net.const(np.int64(2)))
    total = net.op("Add", past, seq)
    positions = net.op("Range", past, total, one)
    frequency = net.const((1 / 10000 ** (np.arange(0, size, 2) / size)).astype(np.float32))
    angle = net.op("Mul", net.op("Unsqueeze", net.op("Cast", positions, to=F), net.ints(1)), frequency)
    if modern:
        cos, sin = (net.op("Unsqueeze", net.op(f, angle), net.ints(0)) for f in ("Cos", "Sin"))
        batch = net.op("Gather", net.op("Shape", "input_ids"), net.ints(0))
        to = net.op("Concat", batch, net.op("Unsqueeze", seq, net.ints(0)), net.ints(size // 2), axis=0)
        cos, sin = net.op("Expand", cos, to), net.op("Expand", sin, to)
    else:
        both = net.op("Concat", angle, angle, axis=-1)
        cos, sin = net.op("Cos", both), net.op("Sin", both)
        keys = net.op("Range", zero, total, one)
        hidden_keys = net.op("Greater", net.op("Unsqueeze", keys, net.ints(0)), net.op("Unsqueeze", positions, net.ints(1)))
        mask = net.op("Where", hidden_keys, net.const(np.float32(-np.inf)), net.const(np.float32(0)))

    def rotate(x):
        if modern:
            return net.op("RotaryEmbedding", x, cos, sin)
        half = net.ints(size // 2)
        low = net.op("Slice", x, net.ints(0), half, net.ints(3))
        high = net.op("Slice", x, half, net.ints(2**62), net.ints(3))
        turned = net.op("Concat", net.op("Neg", high), low, axis=-1)
        return net.op("Add", net.op("Mul", x, cos), net.op("Mul", turned, sin))

    x = net.op("Gather", net.weight(vocab, hidden, scale=1), "input_ids")
    for layer in range(2):
        h = norm(x)
        q = rotate(split_heads(net, dense(h, hidden, hidden), heads, size))
        k = rotate(split_heads(net, dense(h, hidden, groups * size), groups, size))
        v = split_heads(net, dense(h, hidden, groups * size), groups, size)
        names = [f"key_{layer}", f"value_{layer}"]
        if modern:
            y = f"attended_{layer}"
            net.op("Attention", q, k, v, "", f"past_key_{layer}", f"past_value_{layer}", name=[y, *names], is_causal=1)
        else:
            k = net.op("Concat", f"past_key_{layer}", k, axis=2, name=names[0])
            v = net.op("Concat", f"past_value_{layer}", v, axis=2, name=names[1])

            def repeat(x):
                shape = net.op("Shape", x)
                b, t = (net.op("Gather", shape, net.ints(d)) for d in (0, 2))
                to = net.op("Concat", b, net.ints(groups, heads // groups), t, net.ints(size), axis=0)
                x = net.op("Expand", net.op("Unsqueeze", x, net.ints(2)), to)
                flat = net.op("Concat", b, net.ints(heads), t, net.ints(size), axis=0)
                return net.op("Reshape", x, flat)

            scores = net.op("MatMul", q, net.op("Transpose", repeat(k), perm=[0, 1, 3, 2]))
            scores = net.op("Mul", scores, net.const(np.float32(size**-0.5)))
            p = net.op("Softmax", net.op("Add", scores, mask), axis=-1)
            y = net.op("MatMul", p, repeat(v))
        x = net.op("Add", x, dense(merge_heads(net, y, hidden), hidden, hidden))
        h = norm(x)
        gate, up = dense(h, hidden, inner), dense(h, hidden, inner)
        gate = net.op("Mul", gate, net.op("Sigmoid", gate))
        x = net.op("Add", x, dense(net.op("Mul", gate, up), inner, hidden))
    net.op("MatMul", norm(x), net.weight(hidden, vocab, scale=hidden**-0.5), name="logits")
    cache = [f"{kind}_{layer}" for layer in range(2) for kind in ("key", "value")]
    inputs = [("input_ids", I, ["batch", "sequence"])]
    inputs += [(f"past_{c}", F, ["batch", groups, "past", size]) for c in cache]
    outputs = [("logits", F, ["batch", "sequence", vocab])]
    outputs += [(c, F, ["batch", groups, "total", size]) for c in cache]
    model = net.model("llama", inputs, outputs, opset=23 if modern else 18)
    runs = []
    for b, s, t in ((1, 5, 0), (2, 1, 7), (2, 3, 4)):
        run = {"input_ids": net.rng.integers(0, vocab, (b, s))}
        run.update({f"past_{c}": net.rng.standard_normal((b, groups, t, size)).astype(np.float32) for c in cache})
        runs.append(run)
    return model, runs, inner


def preprocessing():
    """Missing values, scaling, rows of length 1, then trees and a linear classifier."""
    net = Net(4)
    ml = "ai.onnx.ml"
    x = net.op("Imputer", "x", domain=ml, imputed_value_floats=[0.5, -0.5, 0.0, 1.0], replaced_value_float=float("nan"))
    offset, scale = net.rng.standard_normal(4), net.rng.uniform(0.5, 2, 4)
    x = net.op("Scaler", x, domain=ml, offset=offset.tolist(), scale=scale.tolist())
    x = net.op("Normalizer", x, domain=ml, norm="L2")
    net.op(
        "TreeEnsembleRegressor", x, domain=ml, name="trees", n_targets=1,
        nodes_treeids=[0] * 5 + [1] * 3, nodes_nodeids=[0, 1, 2, 3, 4, 0, 1, 2],
        nodes_featureids=[0, 1, 0, 0, 0, 2, 0, 0], nodes_values=[0.1, -0.2, 0, 0, 0, 0.3, 0, 0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 2, 0, 0, 0, 1, 0, 0], nodes_falsenodeids=[4, 3, 0, 0, 0, 2, 0, 0],
        target_treeids=[0, 0, 0, 1, 1], target_nodeids=[2, 3, 4, 1, 2], target_ids=[0] * 5,
        target_weights=[1.0, -2.0, 0.5, 0.25, 3.0],
    )
    net.op(
        "LinearClassifier", x, domain=ml, name=["label", "scores"], classlabels_ints=[3, 5, 9],
        coefficients=net.rng.standard_normal(12).tolist(), intercepts=net.rng.standard_normal(3).tolist(),
        post_transform="SOFTMAX",
    )
    outputs = [("trees", F, ["rows", 1]), ("label", I, ["rows"]), ("scores", F, ["rows", 3])]
    model = net.model("preprocessing", [("x", F, ["rows", 4])], outputs, extra=[(ml, 3)])
    runs = []
    for n in (1, 9):
        x = net.rng.standard_normal((n, 4)).astype(np.float32)
        x[n // 2, 1] = np.nan
        runs.append({"x": x})
    return model, runs, 4


def shaped():
    """A model for some shapes alone: halves that meet again, a dimension that is 1, a shape and a length that are given."""
    net = Net(5)
    half = net.op("AveragePool", "x", kernel_shape=[2, 2], strides=[2, 2])
    scales = net.const(np.array([1, 1, 2, 2], np.float32))
    again = net.op("Resize", half, "", scales, mode="nearest")
    steps = net.op("Reshape", net.op("Add", "x", again), "to")
    y, last = net.op("LSTM", steps, net.weight(1, 20, 12), net.weight(1, 20, 5), outputs=2, hidden_size=5)
    net.op("Squeeze", y, net.ints(1), name="y")
    net.op("Add", net.op("Squeeze", last, net.ints(0)), net.op("Squeeze", "bias", net.ints(0)), name="last")
    inputs = [("x", F, ["batch", 3, "height", 4]), ("to", I, ["rank"]), ("bias", F, ["one", 5])]
    outputs = [("y", F, ["steps", "batch", 5]), ("last", F, ["batch", 5])]
    model = net.model("shaped", inputs, outputs)
    runs = []
    for n, h in ((1, 4), (2, 6)):
        x, bias = net.rng.standard_normal((n, 3, h, 4)), net.rng.standard_normal((1, 5))
        runs.append({"x": x.astype(np.float32), "to": np.array([h, n, 12]), "bias": bias.astype(np.float32)})
    return model, runs, 12


def body(nodes, inputs, outputs):
    """The graph inside a loop or a branch; nodes are (operator, inputs, output, attributes)."""
    port = lambda n, t, s: helper.make_tensor_value_info(n, t, s)
    nodes = [helper.make_node(kind, ins, [out], **attributes) for kind, ins, out, attributes in nodes]
    return helper.make_graph(nodes, "body", [port(*i) for i in inputs], [port(*o) for o in outputs])


def recurrent():
    """Loops over a length that is an input's, rounds that a condition ends, and a branch by a computed value."""
    net = Net(11)
    y = net.op("LSTM", "x", net.weight(1, 20, 6), net.weight(1, 20, 5), hidden_size=5)
    rows = net.op("Squeeze", y, net.ints(1))
    w, half, limit = net.weight(5, 5), net.const(np.float32(0.5)), net.const(np.float32(0.25))
    fold = body(
        [("MatMul", ["s", w], "sw", {}), ("Add", ["sw", "row"], "sum", {}), ("Tanh", ["sum"], "new", {}),
         ("Mul", ["new", half], "out", {})],
        [("s", F, ["batch", 5]), ("row", F, ["batch", 5])], [("new", F, ["batch", 5]), ("out", F, ["batch", 5])])
    last, all_rows = net.op("Scan", "start", rows, outputs=2, body=fold, num_scan_inputs=1)
    B = TensorProto.BOOL
    halve = body(
        [("Mul", ["v", half], "less", {}), ("ReduceMax", ["less"], "most", {"keepdims": 0}),
         ("Greater", ["most", limit], "more", {})],
        [("i", I, []), ("go", B, []), ("v", F, ["batch", 5])], [("more", B, []), ("less", F, ["batch", 5])])
    small = net.op("Loop", "", net.const(np.bool_(True)), last, body=halve)
    positive = net.op("Greater", net.op("ReduceSum", small, keepdims=0), net.const(np.float32(0)))
    then = body([("MatMul", [small, w], "p", {})], [], [("p", F, ["batch", 5])])
    other = body([("Neg", [small], "q", {})], [], [("q", F, ["batch", 5])])
    net.op("If", positive, then_branch=then, else_branch=other, name="chosen")
    net.op("Identity", all_rows, name="rows")
    inputs = [("x", F, ["steps", "batch", 6]), ("start", F, ["batch", 5])]
    outputs = [("chosen", F, ["batch", 5]), ("rows", F, ["steps", "batch", 5])]
    model = net.model("recurrent", inputs, outputs)
    runs = []
    for steps, n in ((3, 1), (40, 3)):
        x, start = net.rng.standard_normal((steps, n, 6)), net.rng.standard_normal((n, 5))
        runs.append({"x": x.astype(np.float32), "start": start.astype(np.float32)})
    return model, runs, 12


class DynamicQuantizeLSTM(OpRun):
    """The operator of ONNX Runtime, plainly: every product is of integers that its left operand is rounded to first."""

    op_domain = "com.microsoft"

    @staticmethod
    def product(x, w, scale, point):
        low, high = min(x.min(), 0), max(x.max(), 0)
        by = (high - low) / x.dtype.type(255) if high > low else x.dtype.type(1)
        zero = np.clip(np.rint(-low / by), 0, 255)
        q = np.clip(np.rint(x / by) + zero, 0, 255)
        return ((q - zero) @ (w.astype(np.int64) - point.astype(np.int64))) * (by * scale)

    def _run(self, x, w, r, b, _lens, _h, _c, _p, w_scale, w_point, r_scale, r_point, **attributes):
        sigmoid = lambda v: 1 / (1 + np.exp(-v))
        (steps, batch, _), hidden = x.shape, attributes["hidden_size"]
        ys, hs, cs = [], [], []
        for d in range(len(w)):
            given = self.product(x[::-1] if d else x, w[d], w_scale[d], w_point[d])
            h = c = np.zeros((batch, hidden), x.dtype)
            y = []
            for t in range(steps):
                g = given[t] + self.product(h, r[d], r_scale[d], r_point[d]) + b[d, : 4 * hidden] + b[d, 4 * hidden :]
                i, o, f, new = np.split(g, 4, axis=1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
                h = sigmoid(o) * np.tanh(c)
                y.append(h)
            ys.append(np.stack(y[::-1] if d else y))
            hs.append(h)
            cs.append(c)
        return np.stack(ys, 1).astype(x.dtype), np.stack(hs).astype(x.dtype), np.stack(cs).astype(x.dtype)


def quantised():
    """An LSTM in both directions as ONNX Runtime's quantiser writes it, with one scale and zero points, and with a scale for each column
    and none."""
    net = Net(6)
    size, hidden = 12, 8
    eight = lambda *shape: net.const(net.rng.integers(-127, 128, shape).astype(np.int8))
    scale = lambda *shape: net.const(net.rng.uniform(0.002, 0.01, shape).astype(np.float32))
    point = lambda *shape: net.const(net.rng.integers(-9, 10, shape).astype(np.int8) * (not shape[1:]))
    x = "x"
    for number, columns in enumerate(((), (4 * hidden,))):
        quantities = [scale(2, *columns), point(2, *columns), scale(2, *columns), point(2, *columns)]
        operands = [x, eight(2, size, 4 * hidden), eight(2, hidden, 4 * hidden), net.weight(2, 8 * hidden)]
        y, h, c = net.op(
            "DynamicQuantizeLSTM", *operands, "", "", "", "", *quantities, outputs=3, domain="com.microsoft",
            hidden_size=hidden, direction="bidirectional", name=None if number == 0 else ["y", "h", "c"],
        )  # fmt: skip
        size = 2 * hidden
        x = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, -1)) if number == 0 else y
    outputs = [("y", F, [5, 2, "batch", hidden]), ("h", F, [2, "batch", hidden]), ("c", F, [2, "batch", hidden])]
    model = net.model("quantised", [("x", F, [5, "batch", 12])], outputs, extra=[("com.microsoft", 1)])
    runs = [{"x": net.rng.standard_normal((5, n, 12)).astype(np.float32)} for n in (1, 3)]
    return model, runs, 12


MODELS = {
    "resnet": resnet,
    "mlp": mlp,
    "bert": bert,
    "llama": lambda: llama(False),
    "llama, opset 23": lambda: llama(True),
    "preprocessing": preprocessing,
    "shaped": shaped,
    "recurrent": recurrent,
    "quantised": quantised,
}


def in_double(model):
    """The same model with every float a double."""
    out = onnx.ModelProto()
    out.CopyFrom(model)

    def tensor(t):
        if t.data_type == F:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))

    for t in out.graph.initializer:
        tensor(t)
    for node in out.graph.node:
        for a in node.attribute:
            if a.name == "to" and a.i == F:
                a.i = TensorProto.DOUBLE
            if a.type == onnx.AttributeProto.TENSOR:
                tensor(a.t)
    for port in [*out.graph.input, *out.graph.output]:
        if port.type.tensor_type.elem_type == F:
            port.type.tensor_type.elem_type = TensorProto.DOUBLE
    return out


def scaled(got, want):
    """The greatest error, relative to the greatest magnitude; infinite where shapes or finiteness differ."""
    if got.shape != want.shape:
        return np.inf
    if got.size == 0:
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return np.inf
    scale = np.abs(want[np.isfinite(want)]).max(initial=0)
    with np.errstate(invalid="ignore"):
        error = np.nanmax(np.where(got == want, 0, np.abs(got - want)))
    return float(error / scale) if scale else float(error)


def girih(binary, device, path, run, outputs, folder, knobs):
    command = [binary, "run", path, "--device", device, *(word for k in knobs for word in ("--knob", k))]
    for name, array in run.items():
        file = os.path.join(folder, f"{name}.npy")
        np.save(file, array)
        command += ["--arg", f"{name}={file}"]
    for name in outputs:
        command += ["--save", f"{name}={os.path.join(folder, 'out_' + name + '.npy')}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return None, done.stdout.strip()[-2000:]
    return [np.load(os.path.join(folder, f"out_{name}.npy")) for name in outputs], ""


MOST_PAGE = 3 << 20


def explained(binary, path, folder):
    """The error of a model's page, if any: every model has one, of less than 3 MiB."""
    page = os.path.join(folder, "page.html")
    done = subprocess.run([binary, "explain", path, "--html", page], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()[-2000:]
    size = os.path.getsize(page)
    return "" if size < MOST_PAGE else f"the page has {size} bytes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--device", default="cpu", choices=["cpu", "eval", "sim", "cuda"])
    parser.add_argument("--filter", default="")
    parser.add_argument("--knob", action="append", default=[])
    args = parser.parse_args()
    eps = 2**-11 if "tf32=1" in args.knob else EPS
    warnings.simplefilter("ignore")
    failed = 0
    for name, build in MODELS.items():
        if args.filter not in name:
            continue
        model, runs, longest = build()
        outputs = [o.name for o in model.graph.output]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            plain = onnx.ModelProto()
            plain.CopyFrom(model)
            if name == "mlp":
                onnx.save(plain, path, save_as_external_data=True, location="weights.bin", size_threshold=64)
            else:
                onnx.save(plain, path)
            classical = any(o.domain == "ai.onnx.ml" for o in model.opset_import)
            single = ReferenceEvaluator(model, new_ops=[DynamicQuantizeLSTM])
            double = single if classical else ReferenceEvaluator(in_double(model), new_ops=[DynamicQuantizeLSTM])
            # A model that is compiled for given shapes has no page without them.
            if trouble := name != "shaped" and explained(args.binary, path, folder):
                failed += 1
                print(f"FAILED {name}: explain: {trouble}")
            for number, run in enumerate(runs):
                wide = {n: a.astype(np.float64) if a.dtype == np.float32 and not classical else a for n, a in run.items()}
                want, near = double.run(None, wide), single.run(None, run)
                got, trouble = girih(args.binary, args.device, path, run, outputs, folder, args.knob)
                shape = ", ".join(f"{n} {list(a.shape)}" for n, a in list(run.items())[:2])
                if got is None:
                    failed += 1
                    print(f"FAILED {name} ({shape}): {trouble}")
                    continue
                least = float(np.sqrt(longest)) * eps
                worst = max((scaled(g, w), 4 * max(scaled(n, w), least)) for g, w, n in zip(got, want, near))
                wrong = [o for o, g, w, n in zip(outputs, got, want, near) if scaled(g, w) > 4 * max(scaled(n, w), least)]
                integers = [o for o, g, w in zip(outputs, got, want) if w.dtype.kind == "i" and not np.array_equal(g, w)]
                failed += bool(wrong or integers)
                verdict = f"WRONG: {', '.join(wrong + integers)}" if wrong or integers else "ok"
                print(f"{name:16} run {number} error {worst[0]:.2e} bound {worst[1]:.2e} {verdict}  ({shape})")
    print("all models agree with float64" if not failed else f"{failed} runs failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
