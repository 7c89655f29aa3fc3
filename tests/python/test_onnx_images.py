"""Resize, Upsample and RoiAlign of all versions, against ONNX Runtime: one model for all sizes of an image."""

import itertools
import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import girih

onnxruntime.set_default_logger_severity(4)
F, I = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(5)


def proto(op, inputs, attributes, constants, opset, shapes):
    kinds = {"x": (F, shapes["x"]), "rois": (F, ["k", 4]), "batch": (I, ["k"])}
    ins = [helper.make_tensor_value_info(n, *kinds[n]) for n in inputs if n in kinds]
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    node = helper.make_node(op, inputs, ["y"], **attributes)
    graph = helper.make_graph([node], "g", ins, [helper.make_empty_tensor_value_info("y")], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def agree(file, feeds, text, special=False, tolerance=1e-5):
    judge = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    model = girih.Model.from_onnx(file, device="eval", threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if special else "error")
        for feed in feeds:
            (got,), (want,) = model.run(None, feed), judge.run(None, feed)
            assert got.shape == want.shape, f"{text}: {got.shape}, not {want.shape}"
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=text)


def image(h, w, n=1):
    return RNG.standard_normal((n, 2, h, w)).astype("f4")


SIZES = [(5, 7), (10, 4), (1, 1), (3, 20), (2, 9)]
SCALES = [(2, 3), (1.5, 2.3), (0.6, 0.7), (0.1, 1), (1.1, 0.29)]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales_in_all_versions(mode, scales):
    """Extents are products in f32, as in ONNX Runtime: 10 by 0.7 is 7."""
    for opset in (7, 9, 10, 11, 13, 18, 19):
        all = [1.0, 1.0, *map(float, scales)]
        if opset < 10 and min(all) < 1:
            continue
        attributes = {"mode": mode, **({"scales": all} if opset == 7 else {})}
        inputs = {7: ["x"], 9: ["x", "s"], 10: ["x", "s"]}.get(opset, ["x", "", "s"])
        constants = {} if opset == 7 else {"s": np.array(all, "f4")}
        if opset == 11:
            inputs, constants = ["x", "roi", "s"], constants | {"roi": np.zeros(0, "f4")}
        file = proto("Upsample" if opset < 10 else "Resize", inputs, attributes, constants, opset, {"x": ["n", 2, "h", "w"]})
        sizes = [s for s in SIZES if min(int(np.float32(n) * np.float32(k)) for n, k in zip(s, scales)) > 0]
        agree(file, [{"x": image(*s)} for s in sizes], f"version {opset}")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_half_pixels_of_tensorflow(mode):
    """Axes that keep their extent are not moved, those of batches and channels among them."""
    given = {"scales": [(1, 1, 2, 3), (1, 1, 0.5, 1)], "sizes": [(1, 2, 10, 4), (1, 2, 3, 7)]}
    for (kind, lists), nearest in itertools.product(given.items(), ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")):
        if mode != "nearest" and nearest != "floor":
            continue
        for list in lists:
            constants = {"roi": np.zeros(0, "f4"), "s": np.array(list if kind == "scales" else [], "f4")}
            if kind == "sizes":
                constants["z"] = np.array(list)
            attributes = {"mode": mode, "coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": nearest}
            file = proto("Resize", ["x", *constants], attributes, constants, 11, {"x": [1, 2, 5, 7]})
            agree(file, [{"x": image(5, 7)}], f"{kind} {list} {nearest}")


@pytest.mark.parametrize("ratio, mode", [(0, "avg"), (1, "avg"), (2, "avg"), (3, "max")])
def test_regions(ratio, mode):
    """Version 10 does not move regions by half a pixel; a ratio of 0 takes a sample for each position of a cell."""
    corners = RNG.uniform(-3, 22, (12, 2, 2)).astype("f4")
    rois = np.concatenate([corners.min(1), corners.max(1)], 1)
    rois[0], rois[1] = [4, 4, 4, 4], [-30, -30, 60, 70]
    batch = RNG.integers(0, 2, len(rois))
    for opset, moved in ((10, None), (16, "half_pixel"), (16, "output_half_pixel")):
        attributes = {"mode": mode, "output_height": 3, "output_width": 2, "sampling_ratio": ratio, "spatial_scale": 0.5}
        if moved:
            attributes["coordinate_transformation_mode"] = moved
        file = proto("RoiAlign", ["x", "rois", "batch"], attributes, {}, opset, {"x": ["n", 2, "h", "w"]})
        feeds = [{"x": image(h, w, 2), "rois": rois[:k], "batch": batch[:k]} for h, w, k in ((9, 11, 12), (4, 17, 5))]
        agree(file, feeds, f"version {opset} {moved}", tolerance=1e-4)
