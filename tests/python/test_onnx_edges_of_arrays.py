"""Operators of ONNX on whole arrays: rows with NaN, infinities and zeros of both signs in every place, and arrays without elements.
ONNX Runtime and ONNX's own evaluator are the judges, as in `test_onnx_edges.py`."""

import itertools
import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from test_onnx_edges import right

import girih

onnxruntime.set_default_logger_severity(4)
NAN, INF = float("nan"), float("inf")
ROWS = [[NAN, 1, 2, 3], [1, NAN, 2, NAN], [INF, -INF, 0, 1], [-0.0, -0.0, -0.0, -0.0], [0.0, -0.0, 0.0, -0.0], [-INF, -INF, -INF, -INF],
        [INF, 1, 2, 1e30], [-1e30, -1e30, -3e38, -3e38], [1e30, 1e30, -3, 4], [5, 5, 5, 5], [INF, INF, 1, 0], [1e-40, 0, -1e-40, 1e-30]]  # fmt: skip
NUMBERS = np.array(ROWS, "f4")


def holes(*shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype("f4")
    if x.size:
        x.ravel()[rng.permutation(x.size)[:3]] = [NAN, INF, -INF][: min(x.size, 3)]
    return x


def plain(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def file(op, names, arrays, constants, opset, results, attributes):
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), list(a.shape)) for n, a in arrays.items()]
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(results)]
    node = helper.make_node(op, names.split(" "), [f"y{i}" for i in range(results)], **attributes)
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def judged(made, arrays):
    results = []
    for run in (
        lambda: onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, arrays),
        lambda: ReferenceEvaluator(made).run(None, arrays),
    ):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results.append([np.asarray(y) for y in run()])
        except Exception:  # noqa: BLE001: each refuses some in its own way.
            pass
    return results


class Cases:
    """Runs cases, and tells of all that differ."""

    def __init__(self):
        self.wrong, self.checked = [], 0

    def __call__(self, op, names, arrays, constants={}, opset=22, results=1, tolerance=2e-5, **attributes):
        made = file(op, names, arrays, constants, opset, results, attributes)
        judges = judged(made, arrays)
        if not judges:
            return
        self.checked += 1
        text = f"{op} {attributes} of {[(a.shape, a.ravel()[:8].tolist()) for a in arrays.values()]}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = girih.Model.from_onnx(made.SerializeToString(), device="eval", threads=1).run(None, arrays)
        except girih.GirihError as e:
            self.wrong.append(f"{text} is refused: {e}")
            return
        for at, y in enumerate(found):
            wanted = [w[at] for w in judges if w[at].dtype == y.dtype]
            good = [right(y, w, tolerance, False) for w in wanted if w.shape == y.shape]
            if wanted and not (good and np.all(np.any(good, axis=0))):
                self.wrong.append(f"{text} is {y.tolist()}, not {[w.tolist() for w in wanted]}")

    def done(self, least):
        assert not self.wrong, "\n".join(self.wrong)
        assert self.checked >= least, self.checked


@pytest.fixture
def case():
    return Cases()


REDUCTIONS = "ReduceMax ReduceMin ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare".split()


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op, case):
    one = {"a": np.array([1])}
    case(op, "x a", {"x": NUMBERS}, one, keepdims=0)
    case(op, "x", {"x": NUMBERS}, keepdims=0, noop_with_empty_axes=1)
    for shape, keep in itertools.product(((2, 0, 3), (0, 3), (2, 0)), (0, 1)):
        case(op, "x a", {"x": np.zeros(shape, "f4")}, one, keepdims=keep)
    case(op, "x", {"x": np.zeros((0, 3), "f4")}, keepdims=0)
    for dtype in ("i4", "i8", "f8"):
        # The logarithm of a sum of exponentials is one of integers there.
        case(op, "x a", {"x": (np.arange(12).reshape(3, 4) - (0 if op == "ReduceLogSumExp" else 4)).astype(dtype)}, one, keepdims=0)
    case.done(8)


def test_positions_and_softmaxes(case):
    for op, last in itertools.product(("ArgMax", "ArgMin"), (0, 1)):
        case(op, "x", {"x": NUMBERS}, axis=1, select_last_index=last, keepdims=0)
        case(op, "x", {"x": np.zeros((0, 3), "f4")}, axis=1, select_last_index=last, keepdims=0)
    for op, shape in itertools.product(("Softmax", "LogSoftmax", "Hardmax"), ((2, 0), (0, 2), None)):
        case(op, "x", {"x": NUMBERS if shape is None else np.zeros(shape, "f4")}, axis=1)
    for exclusive, reverse in itertools.product((0, 1), (0, 1)):
        for x in (NUMBERS, np.zeros((2, 0), "f4")):
            case("CumSum", "x a", {"x": x}, {"a": np.int64(1)}, exclusive=exclusive, reverse=reverse)
    for largest, k in itertools.product((0, 1), (0, 1, 3)):
        x = NUMBERS[~np.isnan(NUMBERS).any(1)]
        case("TopK", "x k", {"x": x}, {"k": np.array([k])}, results=2, largest=largest)
        case("TopK", "x k", {"x": np.zeros((0, 4), "f4")}, {"k": np.array([k])}, results=2, largest=largest)
    case.done(28)


def test_pools(case):
    """Numbers win over NaN. The judges give the least number, -inf or NaN for a window of NaN alone: it is not drawn, nor is a window of
    padding and -inf."""
    rows = [[NAN, 1, 2, 3, -1, 5, NAN, -7], [INF, 1, -INF, 3, -1, -1, 2, -7], [0.0, -0.0] * 4, [-1e30, -3, -1e30, -5, -2, -8, -1, -1]]
    for op, pads, more in itertools.product(("MaxPool", "AveragePool", "LpPool"), ([0, 0], [1, 1]), ({}, {"ceil_mode": 1, "strides": [3]})):
        for row in rows[1 if op == "MaxPool" and pads[0] else 0 :]:
            case(op, "x", {"x": np.array(row, "f4").reshape(1, 1, 8)}, kernel_shape=[2], pads=pads, **more)
        case(op, "x", {"x": np.zeros((0, 3, 8), "f4")}, kernel_shape=[2], pads=pads, **more)
    for op in ("MaxPool", "AveragePool"):
        case(op, "x", {"x": holes(1, 2, 4, 4)}, kernel_shape=[2, 2])
    for op in ("GlobalMaxPool", "GlobalAveragePool"):
        case(op, "x", {"x": holes(1, 2, 4, 4)})
        case(op, "x", {"x": np.zeros((0, 2, 4, 4), "f4")})
    case("MaxPool", "x", {"x": np.array([[[-128, 127, -128, -128, 3]]], "i1")}, kernel_shape=[2], pads=[1, 1])
    case.done(50)


@pytest.mark.parametrize("zero", ["i1", "u1", "i2", "u2"])
def test_quantisers(zero, case):
    x = np.array([NAN, 0, -0.0, INF, -INF, 1e30, -1e30, 0.25, 0.75, -0.25, 1e9, -1e9, 3e4, 65535, 2**31, -(2.0**31)], "f4")
    for scale in (0.5, 1.0, 3e-5, INF):
        case("QuantizeLinear", "x s z", {"x": x}, {"s": np.float32(scale), "z": np.array(3, zero)})
    case("QuantizeLinear", "x s z", {"x": x.reshape(8, 2)}, {"s": np.array([0.5, 2], "f4"), "z": np.array([3, 1], zero)}, axis=1)
    case("QuantizeLinear", "x s z", {"x": np.zeros((0, 2), "f4")}, {"s": np.float32(1), "z": np.array(3, zero)})
    info = np.iinfo(zero)
    for scale in (0.5, INF, NAN):
        case("DequantizeLinear", "x s z", {"x": np.array([info.min, info.max, 3, 7], zero)}, {"s": np.float32(scale), "z": np.array(3, zero)})
    if zero == "u1":
        for row in [*ROWS[2:6], *ROWS[8:]]:
            case("DynamicQuantizeLinear", "x", {"x": np.array(row, "f4")}, results=3)
    case.done(9)


NORMS = {
    "LayerNormalization": ("x s b", {"axis": -1}, lambda n: {"s": plain(n[-1]), "b": plain(n[-1])}),
    "InstanceNormalization": ("x s b", {}, lambda n: {"s": plain(n[1]), "b": plain(n[1])}),
    "BatchNormalization": ("x s b m v", {}, lambda n: {"s": plain(n[1]), "b": plain(n[1]), "m": plain(n[1]), "v": np.abs(plain(n[1]))}),
    "LpNormalization": ("x", {"p": 2, "axis": -1}, lambda n: {}),
    "MeanVarianceNormalization": ("x", {"axes": [0, 2]}, lambda n: {}),
}


@pytest.mark.parametrize("op", NORMS)
def test_norms(op, case):
    names, attributes, constants = NORMS[op]
    for x in (plain(2, 3, 4), holes(2, 3, 4), holes(1, 3, 1), np.zeros((2, 3, 4), "f4"), np.zeros((0, 3, 4), "f4"), np.zeros((2, 3, 0), "f4")):
        if op.startswith("Layer") and x.shape[-1] == 0 or op.startswith("Mean") and x.size == 0:
            continue
        case(op, names, {"x": x}, constants(x.shape), tolerance=1e-3, **attributes)
    case.done(3)


def test_products_of_nothing(case):
    zeros = lambda *shape: np.zeros(shape, "f4")
    for a, b in (((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 4)), ((5, 0, 3), (5, 3, 2)), ((0,), (0,)), ((3, 0), (0,))):
        case("MatMul", "a b", {"a": zeros(*a), "b": zeros(*b)})
    for a, b, c in (((0, 3), (3, 4), (4,)), ((2, 0), (0, 4), (4,)), ((2, 0), (0, 4), (2, 1)), ((2, 3), (3, 0), (1,))):
        case("Gemm", "a b c", {"a": zeros(*a), "b": zeros(*b), "c": plain(*c)})
    case("Einsum", "a b", {"a": zeros(2, 0), "b": zeros(0, 3)}, equation="ij,jk->ik")
    case("Conv", "x w", {"x": zeros(0, 3, 5, 5)}, {"w": plain(4, 3, 3, 3)})
    case("Conv", "x w", {"x": holes(1, 2, 8)}, {"w": plain(3, 2, 3)}, pads=[1, 1])
    case("ConvTranspose", "x w", {"x": holes(1, 2, 8)}, {"w": plain(2, 3, 3)}, strides=[2])
    case("MatMulInteger", "a b", {"a": np.zeros((2, 0), "u1")}, {"b": np.zeros((0, 3), "u1")})
    case("MatMul", "a b", {"a": NUMBERS, "b": NUMBERS.T.copy()})
    case.done(14)


def test_moves_of_nothing(case):
    x, none, ints = plain(4, 3), np.zeros((0, 3), "f4"), lambda *list: np.array(list)
    for a in (none, plain(2, 3)):
        case("Concat", "a b", {"a": a, "b": none}, axis=0)
        case("Tile", "a r", {"a": a}, {"r": ints(0, 2)})
        case("Pad", "a p v", {"a": a}, {"p": ints(1, 0, 1, 0), "v": np.float32(7)})
        case("Flatten", "a", {"a": a}, axis=0)
        case("Transpose", "a", {"a": a})
        case("Shape", "a", {"a": a})
        case("Size", "a", {"a": a})
        case("NonZero", "a", {"a": a})
        case("Trilu", "a", {"a": a})
        case("EyeLike", "a", {"a": a})
        for axis in (None, 0):
            case("Unique", "a", {"a": a}, results=4, **({} if axis is None else {"axis": axis}))
    case("Split", "a s", {"a": x}, {"s": ints(0, 4, 0)}, results=3, axis=0)
    case("Split", "a s", {"a": none}, {"s": ints(0, 0)}, results=2, axis=0)
    for start, end, step in ((5, 9, 1), (3, 1, 1), (-1, -9, -1), (0, 9, 3), (2**62, -(2**62), -2), (0, 0, 1), (-9, -5, 1)):
        for a in (x, none):
            case("Slice", "a s e x p", {"a": a}, {"s": ints(start), "e": ints(end), "x": ints(0), "p": ints(step)})
    case("Expand", "a r", {"a": plain(1, 3)}, {"r": ints(0, 3)})
    case("Reshape", "a r", {"a": none}, {"r": ints(3, 0)}, allowzero=1)
    case("Gather", "a i", {"a": x, "i": np.zeros((0, 2), "i8")}, axis=0)
    case("GatherElements", "a i", {"a": x, "i": np.zeros((4, 0), "i8")}, axis=1)
    case("GatherND", "a i", {"a": x, "i": np.zeros((0, 1), "i8")})
    case("ScatterND", "a i u", {"a": x, "i": np.zeros((0, 1), "i8"), "u": none})
    case("ScatterElements", "a i u", {"a": x, "i": np.zeros((0, 3), "i8"), "u": none}, axis=0)
    case("OneHot", "i d v", {"i": np.zeros(0, "i8")}, {"d": np.int64(3), "v": np.array([0, 1], "f4")})
    case("OneHot", "i d v", {"i": ints(-1, -3, -4, 3, 0)}, {"d": np.int64(3), "v": np.array([0, 1], "f4")})
    case("Where", "c a b", {"c": np.zeros((0, 1), bool), "a": plain(1, 3), "b": none})
    case("Compress", "a c", {"a": x, "c": np.zeros(4, bool)}, axis=0)
    for k, upper in itertools.product((-9, -1, 0, 1, 9), (0, 1)):
        case("Trilu", "a k", {"a": holes(3, 4)}, {"k": np.int64(k)}, upper=upper)
    for start, end, step in ((0, 5, 1), (5, 0, -2), (0, 0, 1), (3, 0, 1), (0, -5, 2)):
        case("Range", "a b c", {"a": np.int64(start), "b": np.int64(end), "c": np.int64(step)})
    case.done(55)


def test_scatters_of_numbers_and_nan(case):
    a, at, u = np.array([1, NAN, -0.0, INF, 2], "f4"), np.array([0, 1, 2, 2, 3, 4, 4]), np.array([NAN, 1, 0.0, -0.0, -INF, 5, 1], "f4")
    for how in ("add", "mul", "max", "min"):
        case("ScatterElements", "a i u", {"a": a, "i": at, "u": u}, opset=18, axis=0, reduction=how)
        case("ScatterND", "a i u", {"a": a, "i": at.reshape(-1, 1), "u": u}, opset=18, reduction=how)
    case.done(8)


def test_samples_outside(case):
    grid = np.random.default_rng(1).uniform(-1.6, 1.6, (1, 3, 3, 2)).astype("f4")
    for mode, padding, corners in itertools.product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
        case("GridSample", "x g", {"x": plain(1, 2, 4, 5), "g": grid}, tolerance=1e-3, mode=mode, padding_mode=padding, align_corners=corners)
    for size, corners in itertools.product(([1, 1, 1, 1], [1, 1, 1, 3], [2, 1, 3, 2]), (0, 1)):
        case("AffineGrid", "t s", {"t": plain(size[0], 2, 3)}, {"s": np.array(size)}, align_corners=corners)
    case.done(22)
