"""Operators of ONNX on single elements, at the ends of what these can be: NaN, zeros of both signs, infinities, ties, the least and
greatest numbers, and every pair of them. ONNX Runtime and ONNX's own evaluator are the judges: an element is what one of
them gives, so that where they agree there is one right answer."""

import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import girih

onnxruntime.set_default_logger_severity(4)
F16, F32, F64 = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE
INTS = [getattr(TensorProto, sign + str(bits)) for bits in (8, 16, 32, 64) for sign in ("INT", "UINT")]
NAN, INF = float("nan"), float("inf")
EDGES = [NAN, 0.0, -0.0, INF, -INF, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -3, 6, -6, 1e30, -1e30, 100, -100, 0.49999997,
         -3.0000001, 16777217.0, -2.18, 254.9, 255.5, -128.7, 65535.5, 3e9, -3e9]  # fmt: skip
TOLERANCE = {F16: 2e-3, F32: 1e-5, F64: 1e-6}


def dtype_of(kind):
    return helper.tensor_dtype_to_np_dtype(kind)


def edges(kind):
    dtype = dtype_of(kind)
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(EDGES).astype(dtype)
    i = np.iinfo(dtype)
    return np.array([i.min, i.min + 1, i.max - 1, i.max, 0, 1, 2, 3, 7, *([-1, -2, -7] if i.min else [100, 200])], dtype)


def model(nodes, arrays, constants=(), opset=22):
    """A model of nodes whose results are `y0`, `y1`, ..., with the types that they state."""
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), ["n"]) for n, a in arrays.items()]
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(len(nodes))]
    made = [helper.make_node(op, ins, [f"y{i}"], **attributes) for i, (op, ins, attributes) in enumerate(nodes)]
    graph = helper.make_graph(made, "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in dict(constants).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def judged(node, arrays, constants):
    """The results of ONNX Runtime and ONNX's own evaluator, as far as they have any."""
    arrays = {n: a for n, a in arrays.items() if n in node[1]}
    alone = model([node], arrays, {n: a for n, a in dict(constants).items() if n in node[1]})
    results = []
    for run in (
        lambda: onnxruntime.InferenceSession(alone.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, arrays),
        lambda: ReferenceEvaluator(alone).run(None, arrays),
    ):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results.append(np.asarray(run()[0]))
        except Exception:  # noqa: BLE001: each refuses some types in its own way.
            pass
    return results


def right(found, want, tolerance, signs):
    """For each element, True if it is the wanted one."""
    if found.shape != want.shape or found.dtype != want.dtype:
        return np.zeros(found.shape, bool)
    if found.dtype.kind != "f":
        return found == want
    x, y = found.astype("f8"), want.astype("f8")
    with np.errstate(all="ignore"):
        near = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= tolerance * np.maximum(np.abs(y), 1e-30))
    zeros = (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
    return (near | (x == y) | (np.isnan(x) & np.isnan(y))) & ~(zeros & signs)


def check(nodes, arrays, constants=(), device="eval", tolerance=1e-5, signs=True):
    """`signs`: zeros are told apart by their signs."""
    found = girih.Model.from_onnx(model(nodes, arrays, constants).SerializeToString(), device=device, threads=1).run(None, arrays)
    wrong, checked = [], 0
    for node, result in zip(nodes, found):
        judges = judged(node, arrays, constants)
        if not judges:
            continue
        checked += 1
        good = np.any([right(result, want, tolerance, signs) for want in judges], axis=0)
        for at in np.flatnonzero(~good)[:4]:
            given = [a[at] for n, a in arrays.items() if n in node[1]]
            wrong.append(f"{node[0]}{node[2]} of {given} is {result[at]}, not {[want[at] for want in judges]}")
    assert checked > len(nodes) // 2
    assert not wrong, "\n".join(wrong)


PLAIN = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Reciprocal Round Sigmoid Sign Sin Sinh Softsign
Sqrt Tan Tanh Mish Softplus HardSwish IsNaN IsInf Gelu Elu Selu Celu LeakyRelu ThresholdedRelu HardSigmoid Shrink""".split()
WITH = {
    "IsInf": [{"detect_positive": 0}, {"detect_negative": 0}, {"detect_positive": 0, "detect_negative": 0}],
    "Gelu": [{"approximate": "tanh"}],
    "LeakyRelu": [{"alpha": 0.5}, {"alpha": 0.0}],
    "Elu": [{"alpha": 2.0}, {"alpha": 0.0}],
    "Selu": [{"alpha": 2.0}, {"gamma": 0.5}],
    "Celu": [{"alpha": 2.0}],
    "ThresholdedRelu": [{"alpha": -1.0}, {"alpha": 0.0}],
    "HardSigmoid": [{"alpha": 0.0}, {"alpha": -0.3}],
    "Shrink": [{"lambd": 1.5, "bias": 0.5}, {"lambd": 0.0}, {"lambd": -1.0}, {"lambd": 0.0, "bias": 1.0}],
}


@pytest.mark.parametrize("device", ["eval", "cpu"])
@pytest.mark.parametrize("kind", [F32, F16, F64])
def test_functions_of_floats(kind, device):
    if device == "cpu" and kind != F32:
        pytest.skip("one type is enough to compile")
    nodes = [(op, ["x"], {}) for op in PLAIN] + [(op, ["x"], more) for op, all in WITH.items() for more in all]
    # ONNX Runtime's own functions are coarse below 1e-4 of the result. It has few for other types, and ONNX's own evaluator
    # gives zeros of either sign, and functions of f64 by f32.
    x = edges(kind)
    tolerance = {F16: 2e-3, F32: 1e-4, F64: 1e-4}[kind]
    check(nodes, {"x": x[np.abs(x) != 6] if kind == F64 else x}, device=device, tolerance=tolerance, signs=kind == F32)


@pytest.mark.parametrize("kind", [F32, F16, F64])
def test_bounds_of_floats(kind):
    bounds = dict(zip("abcdefgh", np.array([0, -1, 1, NAN, INF, -INF, -0.0, 6], dtype_of(kind))))
    clips = [("Clip", ["x", low, high], {}) for low in ["", *"abcdf"] for high in ["", *"abcdeh"] if low or high]
    check([("Relu", ["x"], {}), *clips], {"x": edges(kind)}, bounds, signs=False)


@pytest.mark.parametrize("kind", [F32, F64])
def test_pairs_of_floats(kind):
    x = edges(kind)[:17]
    a, b = (grid.ravel().copy() for grid in np.meshgrid(x, x))
    ops = ["Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Sum", "Mean"]
    ops += ["PRelu"] if kind == F32 else []
    nodes = [(op, ["a", "b"], {}) for op in ops] + [("Mod", ["a", "b"], {"fmod": 1}), ("Where", ["c", "a", "b"], {})]
    arrays = {"a": a, "b": b, "c": np.arange(len(a)) % 2 == 0}
    check(nodes, arrays, tolerance=TOLERANCE[kind])
    check([("Max", ["a", "b"], {}), ("Min", ["a", "b"], {})], {"a": a, "b": b}, signs=False)


@pytest.mark.parametrize("kind", [F32, F16, F64, *INTS])
def test_casts(kind):
    """A float that an integer has no room for is cut as processors do it."""
    check([("Cast", ["x"], {"to": to}) for to in [F16, F32, F64, TensorProto.BOOL, *INTS] if kind in INTS or to not in LONG], {"x": edges(kind)})
    if kind not in INTS:
        x = edges(kind)
        check([("Cast", ["x"], {"to": to}) for to in LONG], {"x": x[(x > -1) & (x < 2**32)]})


#: For negative floats and floats beyond 64-bit integers, vectors of processors and NumPy give several results.
LONG = [TensorProto.UINT32, TensorProto.UINT64]


def test_casts_of_floats_on_the_processor():
    check([("Cast", ["x"], {"to": to}) for to in INTS if to not in LONG], {"x": edges(F32)}, device="cpu")


@pytest.mark.parametrize("kind", INTS)
def test_integers(kind):
    x = edges(kind)
    a, b = (grid.ravel().copy() for grid in np.meshgrid(x, x))
    # Quotients that no integer is are another subject.
    fits = (b != 0) & ~((a == np.iinfo(x.dtype).min) & (b.astype("i8") == -1) & (x.dtype.kind == "i"))
    arrays = {"a": a[fits], "b": b[fits]}
    ops = "Add Sub Mul Div Mod Max Min Equal Less Greater LessOrEqual GreaterOrEqual BitwiseAnd BitwiseOr BitwiseXor".split()
    check([*((op, ["a", "b"], {}) for op in ops), ("Mod", ["a", "b"], {"fmod": 1})], arrays)
    bounds = {"low": x.dtype.type(2), "high": x.dtype.type(5), "less": x.dtype.type(1)}
    clips = [("Clip", ["x", *names], {}) for names in (["low", "high"], ["", "high"], ["low"], ["low", "less"])]
    check([*((op, ["x"], {}) for op in ("Abs", "Sign", "BitwiseNot")), *clips], {"x": x}, bounds)
    if x.dtype.kind == "u":
        arrays["b"] = arrays["b"] % (8 * x.dtype.itemsize)
        check([("BitShift", ["a", "b"], {"direction": way}) for way in ("LEFT", "RIGHT")], arrays)
