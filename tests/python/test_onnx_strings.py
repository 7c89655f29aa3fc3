"""Strings of ONNX files: as inputs, outputs, labels and keys, against ONNX Runtime."""

import warnings

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import girih

onnxruntime.set_default_logger_severity(4)
F, I, B, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
ML = "ai.onnx.ml"


def words(*list):
    return np.array(list, object)


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(), domain=domain, **attributes)


def proto(nodes, inputs, outputs, constants=(), ml=4, opset=18):
    tensors = []
    for name, a in dict(constants).items():
        strings = a.dtype == object
        tensors.append(
            helper.make_tensor(name, S, a.shape, [w.encode() for w in a.ravel()]) if strings else numpy_helper.from_array(a, name))
    ins = [helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in inputs]
    outs = [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, ml)]
    return helper.make_model(helper.make_graph(nodes, "g", ins, outs, tensors), opset_imports=opsets, ir_version=9)


def agree(file, feed, device="eval"):
    data = file.SerializeToString()
    wanted = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = girih.Model.from_onnx(data, device=device)
        for got, want in zip(model.run(None, feed), wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(got, want) if want.dtype == object else np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    return model


X = words("yes", "no", "perhaps", "", "yes", "größer")
KEYS = {"keys_strings": ["no", "yes", "größer"]}
ENCODERS = {
    "to integers": (S, I, X, {**KEYS, "values_int64s": [5, -7, 9]}),
    "to integers, with a default": (S, I, X, {**KEYS, "values_int64s": [5, -7, 9], "default_int64": 77}),
    "to floats": (S, F, X, {**KEYS, "values_floats": [0.5, -7.0, 9.0], "default_float": 0.25}),
    "to strings": (S, S, X, {**KEYS, "values_strings": ["nein", "ja", "no"], "default_string": "perhaps"}),
    "to strings, without a default": (S, S, X, {**KEYS, "values_strings": ["nein", "ja", "no"]}),
    "integers to strings": (I, S, np.array([3, -1, 0, 3]), {"keys_int64s": [3, 0], "values_strings": ["x", "y"], "default_string": ""}),
    "floats to strings": (F, S, np.array([0.5, 2, np.nan], "f4"), {"keys_floats": [0.5, 2], "values_strings": ["x", "y"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("device", ["eval", "cpu"])
def test_label_encoders(name, device):
    kind, out, x, attributes = ENCODERS[name]
    agree(proto([node("LabelEncoder", "x", "y", ML, **attributes)], [("x", kind, ["n"])], [("y", out)]), {"x": x}, device)


def test_label_encoders_of_tensors():
    strings = helper.make_tensor("k", S, [3], [b"no", b"yes", b"maybe"])
    numbers = helper.make_tensor("v", I, [3], [4, 5, 6])
    default = helper.make_tensor("d", I, [1], [-4])
    agree(proto([node("LabelEncoder", "x", "y", ML, keys_tensor=strings, values_tensor=numbers, default_tensor=default)],
                [("x", S, ["n"])], [("y", I)]), {"x": X})  # fmt: skip
    back = helper.make_tensor("d", S, [1], [b"none of them"])
    agree(proto([node("LabelEncoder", "x", "y", ML, keys_tensor=numbers, values_tensor=strings, default_tensor=back)],
                [("x", I, ["n", 2])], [("y", S)]), {"x": np.array([[4, 1], [6, 5]])})  # fmt: skip


def test_encoders_of_old():
    """The first LabelEncoder and CategoryMapper go both ways."""
    for op, attributes in (("LabelEncoder", {"classes_strings": ["no", "yes"]}),
                           ("CategoryMapper", {"cats_strings": ["no", "yes"], "cats_int64s": [4, 1]})):  # fmt: skip
        for more in ({}, {"default_int64": 9, "default_string": "none"}):
            file = lambda kind, out: proto([node(op, "x", "y", ML, **attributes, **more)], [("x", kind, ["n"])], [("y", out)], ml=1)
            agree(file(S, I), {"x": X})
            agree(file(I, S), {"x": np.array([0, 1, 4, 7])})


def test_encoders_of_categories():
    agree(proto([node("OneHotEncoder", "x", "y", ML, cats_strings=["no", "yes", "a"])], [("x", S, ["n", 1])], [("y", F)]), {"x": X[:, None]})
    file = proto([node("TfIdfVectorizer", "x", "y", mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0,
                       ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_strings=["yes", "no", "yes", "no"])],
                 [("x", S, ["n", "m"])], [("y", F)])  # fmt: skip
    agree(file, {"x": X.reshape(2, 3)})


C = {"i": np.array([2, 0, -1]), "s": np.array([3, 2]), "k": words("yes", "else"), "one": words("yes"), "st": np.array([1]),
     "en": np.array([9]), "ax": np.array([0]), "t": np.array([2]), "e": np.array([2, 6]), "c": np.array([1, 0, 1, 1, 0, 0], bool),
     "f": words("a", "b"), "p": np.array([4, 2])}  # fmt: skip
MOVED = {
    "Identity": [node("Identity", "x", "y")], "Reshape": [node("Reshape", "x s", "y")], "Concat": [node("Concat", "x k x", "y", axis=0)],
    "Gather": [node("Gather", "x i", "y")], "GatherElements": [node("GatherElements", "x i", "y")],
    "Slice": [node("Slice", "x st en ax", "y")], "Tile": [node("Tile", "x t", "y")], "Expand": [node("Expand", "x e", "y")],
    "Where": [node("Where", "c x one", "y")], "Unsqueeze": [node("Unsqueeze", "x ax", "y")],
    "Transpose": [node("Reshape", "x s", "z"), node("Transpose", "z", "y")],
    "Split": [node("Split", "x p", "z y")], "Compress": [node("Compress", "x c", "y", axis=0)],
    "Squeeze": [node("Unsqueeze", "x ax", "z"), node("Squeeze", "z", "y")],
    "ScatterElements": [node("ScatterElements", "x t one", "y")],
    "Flatten": [node("Reshape", "x s", "z"), node("Flatten", "z", "y", axis=0)],
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_strings_are_moved(name):
    used = {word for n in MOVED[name] for word in n.input}
    agree(proto(MOVED[name], [("x", S, [6])], [("y", S)], {n: a for n, a in C.items() if n in used}), {"x": X})


def test_strings_are_compared():
    nodes = [node("Equal", "x z", "e"), node("Equal", "x one", "f"), node("Shape", "x", "s")]
    feed = {"x": words("a", "new", "yes", "new"), "z": words("b", "new", "yes", "other")}
    model = agree(proto(nodes, [("x", S, ["n"]), ("z", S, ["n"])], [("e", B), ("f", B), ("s", I)], {"one": words("yes")}, opset=19), feed, "cpu")
    assert str(model.inputs[0]) == "x: string[n]" and model.get_inputs()[0].type == "tensor(string)"
    for given in (["a", "new", "yes", "new"], np.array(["a", "new", "yes", "new"]), np.array([b"a", b"new", b"yes", b"new"])):
        np.testing.assert_array_equal(model.run(["f"], feed | {"x": given})[0], [False, False, True, False])


def classifier(kind, labels, transform="NONE"):
    rng = np.random.default_rng(len(labels))
    n, names = len(labels), {"classlabels_strings": labels, "post_transform": transform}
    if kind == "LinearClassifier":
        return node(kind, "x", "label scores", ML, coefficients=rng.standard_normal(n * 3).tolist(),
                    intercepts=rng.standard_normal(n).tolist(), **names)  # fmt: skip
    if kind == "SVMClassifier":
        return node(kind, "x", "label scores", ML, kernel_type="RBF", kernel_params=[0.4, 0.0, 0.0], vectors_per_class=[2] * n,
                    support_vectors=rng.standard_normal(2 * n * 3).tolist(), rho=rng.standard_normal(n * (n - 1) // 2).tolist(),
                    coefficients=rng.standard_normal((n - 1) * 2 * n).tolist(), **names)  # fmt: skip
    # One score for two classes, as converters write it.
    scores = 1 if n == 2 else n
    return node(
        kind, "x", "label scores", ML, nodes_treeids=[0] * 5, nodes_nodeids=list(range(5)), nodes_featureids=[0, 1, 0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"], nodes_values=[0.1, -0.2, 0.0, 0.0, 0.0],
        nodes_truenodeids=[1, 3, 0, 0, 0], nodes_falsenodeids=[2, 4, 0, 0, 0], class_treeids=[0] * 3 * scores,
        class_nodeids=[2, 3, 4] * scores, class_ids=np.repeat(range(scores), 3).tolist(),
        class_weights=rng.uniform(0, 1, 3 * scores).tolist(), **names)  # fmt: skip


@pytest.mark.parametrize("kind", ["LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"])
@pytest.mark.parametrize("labels", [["b", "a"], ["setosa", "a virginica", "versicolor"]])
@pytest.mark.parametrize("zipped", [False, True])
def test_labels_of_classifiers(kind, labels, zipped):
    x = np.random.default_rng(0).standard_normal((9, 3)).astype("f4")
    nodes, outputs = [classifier(kind, labels)], [("label", S), ("scores", F)]
    agree(proto(nodes, [("x", F, ["n", 3])], outputs, ml=1), {"x": x})
    if zipped:
        nodes.append(node("ZipMap", "scores", "maps", ML, classlabels_strings=labels))
        label = agree(proto(nodes, [("x", F, ["n", 3])], [("label", S)], ml=1), {"x": x})
        assert str(label.outputs[0]).startswith("label: string")


def test_what_is_refused_of_strings():
    def refused(text, nodes, inputs, outputs, feed, **more):
        with pytest.raises(girih.ProgramError, match=text):
            girih.Model.from_onnx(proto(nodes, inputs, outputs, **more).SerializeToString(), device="eval").run(None, feed)

    one = [("x", S, ["n"])]
    refused("operator StringNormalizer", [node("StringNormalizer", "x", "y")], one, [("y", S)], {"x": X})
    refused("operator Cast of strings", [node("Cast", "x", "y", to=F)], one, [("y", F)], {"x": X})
    refused("makes strings", [node("Cast", "x", "y", to=S)], [("x", F, ["n"])], [("y", S)], {"x": np.ones(2, "f4")})
    refused("looks for strings, but its operand holds numbers",
            [node("LabelEncoder", "x", "y", ML, keys_strings=["a"], values_int64s=[1])], [("x", I, ["n"])], [("y", I)], {"x": np.ones(2, int)})  # fmt: skip
    refused("one label that is a string", [classifier("TreeEnsembleClassifier", ["a"])], [("x", F, ["n", 3])], [("label", S), ("scores", F)],
            {"x": np.ones((1, 3), "f4")})  # fmt: skip
    keep = [node("Identity", "x", "y")]
    refused("input `x` is float32: the model expects x: string", keep, one, [("y", S)], {"x": np.ones(2, "f4")})
    refused("input `x` holds int, 3", keep, one, [("y", S)], {"x": words("a", 3)})
    refused("bytes that are not UTF-8", keep, one, [("y", S)], {"x": [b"\xff"]})
    refused(r"has shape \[1, 1\]", keep, one, [("y", S)], {"x": [["a"]]})
    model = girih.Model.from_onnx(proto(keep, one, [("y", S)]).SerializeToString(), device="eval")
    with pytest.raises(girih.ProgramError, match="new arrays only"):
        model(words("a"), out=words("b"))


def test_a_saved_model_knows_its_strings(tmp_path):
    import copy

    file = proto([node("LabelEncoder", "x", "y", ML, keys_strings=["a", 'b "c"'], values_strings=["x", "y\n"])], [("x", S, ["n"])], [("y", S)])
    model, x = girih.Model.from_onnx(file.SerializeToString(), threads=1), words('b "c"', "new", "a")
    wanted = ["y\n", "_Unused", "x"]
    assert model(x).tolist() == wanted
    model.save(tmp_path / "m.girih")
    assert girih.Model.load(tmp_path / "m.girih", threads=1)(x).tolist() == wanted
    assert copy.deepcopy(model)(x).tolist() == wanted


def test_strings_on_the_command_line(tmp_path):
    import os
    import subprocess

    from girih.tune import command

    file = proto([node("Concat", "x k", "y", axis=0)], [("x", S, ["n"])], [("y", S)], {"k": words("a b")})
    (tmp_path / "m.onnx").write_bytes(file.SerializeToString())

    def run(*args):
        return subprocess.run([command(), "run", str(tmp_path / "m.onnx"), "--device", "eval", *args],
                              capture_output=True, text=True, env=os.environ)  # fmt: skip

    assert 'y = ["new", "é", "a b"]  (string[3])' in run("--arg", 'x=["new", "é"]').stdout
    np.save(tmp_path / "x.npy", np.array(["one", "twelve"]))
    done = run("--arg", f"x={tmp_path}/x.npy", "--save", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").tolist() == ["one", "twelve", "a b"]
    assert "expected strings" in run("--arg", 'x=["new", 3]').stderr
