"""One model of free dimensions at many sizes of them, against the reference evaluator: compiled once."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import girih

F = TensorProto.FLOAT
SIZES = 100
RNG = np.random.default_rng(7)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def floats(*shape):
    return (RNG.standard_normal(shape) / np.sqrt(shape[-1])).astype("f4")


def bytes_of(nodes, shape, weights):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    x, y = helper.make_tensor_value_info("x", F, shape), helper.make_tensor_value_info("y", F, None)
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return model.SerializeToString()


def image():
    """Windows with and without a stride, of any image; what a channel adds up to."""
    nodes = [
        node("Conv", "x w1", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "a", "b"),
        node("Conv", "b w2 b2", "c", kernel_shape=[1, 1]),
        node("InstanceNormalization", "c scale shift", "d"),
        node("MaxPool", "d", "e", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", "e", "f"),
        node("Flatten", "f", "g"),
        node("Gemm", "g w3", "y"),
    ]
    weights = {"w1": floats(8, 3, 3, 3), "w2": floats(16, 8, 1, 1), "b2": floats(16), "w3": floats(16, 5)}
    weights |= {"scale": np.ones(16, "f4"), "shift": np.zeros(16, "f4")}
    return bytes_of(nodes, ["n", 3, "h", "w"], weights), lambda r: (r(1, 3), 3, r(1, 24), r(1, 24))


def quantised():
    """Integers inside: the greatest and least of an image, and words of two channels."""
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("ConvInteger", "q w z", "i", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Cast", "i", "f", to=F),
        node("Mul", "f s", "y"),
    ]
    weights = {"w": RNG.integers(-127, 128, (24, 16, 3, 3)).astype("i1")}
    return bytes_of(nodes, [1, 16, "h", "w"], weights), lambda r: (1, 16, r(1, 20), r(1, 20))


def attention():
    """A sequence that meets itself."""
    nodes = [
        node("MatMul", "x wq", "q"),
        node("MatMul", "x wk", "k"),
        node("MatMul", "x wv", "v"),
        node("Transpose", "k", "kt", perm=[0, 2, 1]),
        node("MatMul", "q kt", "scores"),
        node("Softmax", "scores", "p", axis=-1),
        node("MatMul", "p v", "o"),
        node("Add", "o x", "r"),
        node("LayerNormalization", "r one", "y"),
    ]
    weights = {name: floats(32, 32) for name in ("wq", "wk", "wv")} | {"one": np.ones(32, "f4")}
    return bytes_of(nodes, ["batch", "sequence", 32], weights), lambda r: (r(1, 4), r(1, 70), 32)


def regrouped():
    """A shape that the model computes, which there is where the sequence is even."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "batch"),
        node("Concat", "batch rest", "to", axis=0),
        node("Reshape", "x to", "pairs"),
        node("MatMul", "pairs w", "y"),
    ]
    weights = {"zero": np.array([0]), "rest": np.array([-1, 16]), "w": floats(16, 40)}
    return bytes_of(nodes, ["batch", "sequence", 8], weights), lambda r: (r(1, 5), 2 * r(1, 40), 8)


def compared(made, sizes):
    """Runs a model at `sizes` random sizes of its input, and calls back after each."""
    model, shape = made
    native, reference = (girih.Model.from_onnx(model, device=device, threads=2) for device in ("cpu", "eval"))
    rng = np.random.default_rng(3)
    for _ in range(sizes):
        x = rng.standard_normal(shape(lambda lo, hi: int(rng.integers(lo, hi + 1)))).astype("f4")
        got, want = np.asarray(native(x)), np.asarray(reference(x))
        assert got.shape == want.shape
        assert np.abs(got - want).max(initial=0) <= 1e-4 * max(1, np.abs(want).max(initial=0)), x.shape
        yield x.shape


@pytest.mark.parametrize("make", [image, quantised, attention, regrouped])
@pytest.mark.filterwarnings("ignore:girih. compiled for shapes where sequence is a multiple of 2")
def test_one_compiled_model_serves_a_hundred_sizes(make, tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path))
    compiled = set()
    for at, shape in enumerate(compared(make(), SIZES)):
        files = {p.name for p in tmp_path.rglob("*.so")}
        assert files and (at == 0 or files == compiled), f"it was compiled anew for {shape}"
        compiled = files


@pytest.mark.filterwarnings("ignore:girih. compiled for shapes where sequence is a multiple of 2")
def test_a_size_that_does_not_fit_is_told():
    model, _ = regrouped()
    native = girih.Model.from_onnx(model)
    native(np.zeros((1, 4, 8), "f4"))
    with pytest.raises(girih.GirihError, match=r"\[1, 3, 8\] cannot be reshaped"):
        native(np.zeros((1, 3, 8), "f4"))
    assert np.asarray(native(np.zeros((1, 6, 8), "f4"))).shape == (1, 3, 40)


@pytest.mark.parametrize("make", [attention, regrouped])
@pytest.mark.filterwarnings("ignore:girih. compiled for")
def test_empty_inputs_are_taken(make):
    model, _ = make()
    native = girih.Model.from_onnx(model)
    wide = 32 if make is attention else 8
    full = native(np.ones((2, 4, wide), "f4"))
    for shape in ((0, 4, wide), (2, 0, wide), (2, 4, wide)):
        y = native(np.ones(shape, "f4"))
        assert y.shape == (shape[0], *full.shape[1:]) if shape[1] == 4 else y.size == 0
    np.testing.assert_array_equal(y, full)
