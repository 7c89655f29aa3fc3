"""Classical models of `ai.onnx.ml` against ONNX Runtime, which says what the specification leaves open."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import girih

onnxruntime.set_default_logger_severity(4)
F, I = TensorProto.FLOAT, TensorProto.INT64


def agree(op, outputs, x, device="eval", **attributes):
    node = helper.make_node(op, ["x"], [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    outs = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", F, ["n", x.shape[1]])], outs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    file = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    wanted = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    for got, want in zip(girih.Model.from_onnx(file, device=device).run(None, {"x": x}), wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


KERNELS = {"LINEAR": [0, 0, 0], "POLY": [0.5, 1, 3], "RBF": [0.4, 0, 0], "SIGMOID": [0.2, 0.1, 0]}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("probable", [False, True])
def test_support_vector_classifiers(kernel, classes, probable):
    rng = np.random.default_rng(classes)
    vectors = rng.integers(1, 4, classes)
    total, pairs = int(vectors.sum()), classes * (classes - 1) // 2
    attributes = {"prob_a": rng.uniform(-3, -1, pairs), "prob_b": rng.uniform(-1, 1, pairs)} if probable else {}
    for transform in ["NONE"] if probable else ["NONE", "LOGISTIC", "SOFTMAX"]:
        agree(
            "SVMClassifier", [("label", I), ("scores", F)], rng.standard_normal((17, 3)).astype("f4"),
            kernel_type=kernel, kernel_params=[float(v) for v in KERNELS[kernel]], vectors_per_class=vectors.tolist(),
            support_vectors=rng.standard_normal(total * 3).tolist(), rho=rng.standard_normal(pairs).tolist(),
            coefficients=rng.standard_normal((classes - 1) * total).tolist(), post_transform=transform,
            classlabels_ints=[3 * c + 1 for c in range(classes)], **{n: v.tolist() for n, v in attributes.items()},
        )  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("positive", [False, True])
def test_linear_support_vector_classifiers(classes, positive):
    rng = np.random.default_rng(classes)
    coefficients = rng.standard_normal(classes * 3)
    agree(
        "SVMClassifier", [("label", I), ("scores", F)], rng.standard_normal((17, 3)).astype("f4"), rho=[0.3], kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
        coefficients=(np.abs(coefficients) if positive else coefficients).tolist(), classlabels_ints=[5, 2, 7][:classes],
    )  # fmt: skip


def test_the_inverse_of_the_normal_distribution():
    """A model that gives its features, as probabilities."""
    x = np.random.default_rng(0).uniform(0.01, 0.99, (20, 2)).astype("f4")
    agree("LinearRegressor", [("y", F)], x, coefficients=[1.0, 0.0, 0.0, 1.0], intercepts=[0.0, 0.0], targets=2,
          post_transform="PROBIT")  # fmt: skip
