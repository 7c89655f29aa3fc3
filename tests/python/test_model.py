"""`girih.Model`: files and expressions from Python, against ONNX's reference evaluator and NumPy."""

import copy
import inspect
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import girih

F, I = TensorProto.FLOAT, TensorProto.INT64


def port(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def file(nodes, inputs, outputs, weights=()):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def dense():
    """Two outputs, a symbolic extent, an input of integers."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Add", ["x", "rows"], ["sum"]),
        helper.make_node("MatMul", ["sum", "w"], ["y"]),
        helper.make_node("ReduceMax", ["y"], ["top"], axes=[1], keepdims=0),
    ]
    weights = [("table", rng.standard_normal((7, 6)).astype("f4")), ("w", rng.standard_normal((6, 3)).astype("f4"))]
    inputs = [port("x", F, ["batch", 6]), port("ids", I, ["batch"])]
    return file(nodes, inputs, [port("y", F, ["batch", 3]), port("top", F, ["batch"])], weights)


def feed(n, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((n, 6)).astype("f4"), "ids": rng.integers(0, 7, n)}


def dropping():
    """Models that can be compiled for some extents alone."""
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["s"]), helper.make_node("Reshape", ["s", "to"], ["y"])]
    inputs = [port("x", F, ["n", "one"]), port("to", I, ["rank"])]
    return file(nodes, inputs, [port("y", F, None)], [("axes", [1])])


def test_ports_and_both_ways_to_run(tmp_path):
    proto = dense()
    path = tmp_path / "dense.onnx"
    onnx.save(proto, path)
    for model in (girih.Model.from_onnx(path), girih.Model.from_onnx(proto.SerializeToString())):
        assert [str(p) for p in model.inputs] == ["x: float32[batch, 6]", "ids: int64[batch]"]
        assert [str(p) for p in model.outputs] == ["y: float32[batch, 3]", "top: float32[batch]"]
        for n in (1, 4, 9):
            given = feed(n, n)
            want = ReferenceEvaluator(proto).run(None, given)
            y, top = model(**given)
            np.testing.assert_allclose(y, want[0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(top, want[1], rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(model(given["x"], given["ids"])[0], y)
            assert [a.tolist() for a in model.run(None, given)] == [y.tolist(), top.tolist()]
            assert model.run(["top"], given)[0].tolist() == top.tolist()


def test_a_dimension_fixed_beforehand():
    model = girih.Model.from_onnx(dense().SerializeToString(), dims={"batch": 4})
    assert "f32[4, 6]" in model.ir("tensor")
    assert model(**feed(4))[0].shape == (4, 3)
    with pytest.raises(girih.ProgramError, match="4"):
        model(**feed(5))
    with pytest.raises(girih.ProgramError, match="no extent `bach`"):
        girih.Model.from_onnx(dense().SerializeToString(), dims={"bach": 4})
    for extent in (-5, 1 << 50):
        with pytest.raises(girih.ProgramError, match=f"batch is {extent}, which must be from 0"):
            girih.Model.from_onnx(dense().SerializeToString(), dims={"batch": extent})


def test_numbers_that_no_file_means():
    weights = [("w", np.zeros((6, 2, 16), "u1")), ("s", np.ones(12, "f4"))]
    for name, number in [("K", 1 << 62), ("N", -1), ("block_size", (1 << 63) - 1), ("bits", 1 << 40)]:
        attributes = {"K": 64, "N": 6, "bits": 4, "block_size": 32, name: number}
        node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **attributes)
        proto = file([node], [port("x", F, [2, 64])], [port("y", F, [2, 6])], weights)
        proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        with pytest.raises(girih.ProgramError, match="are not supported"):
            girih.Model.from_onnx(proto.SerializeToString())(np.zeros((2, 64), "f4"))


def test_shapes_that_decide_the_structure():
    model = girih.Model.from_onnx(dropping().SerializeToString())
    x = np.arange(12, dtype="f4").reshape(12, 1)
    with pytest.warns(UserWarning, match="compiled for these shapes alone") as told:
        assert model(x=x, to=np.array([3, 4])).tolist() == x.reshape(3, 4).tolist()
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((3, 4), (2, 6), (12,), (3, 4)):
            assert model(x=x, to=np.array(shape)).tolist() == x.reshape(shape).tolist()
        assert model(x=x[:6], to=np.array([2, 3])).shape == (2, 3)
    with pytest.raises(girih.ProgramError, match="extent 1"):
        model(x=x.reshape(6, 2), to=np.array([12]))


def test_outputs_of_the_caller():
    model = girih.Model.from_onnx(dense().SerializeToString())
    given = feed(5)
    want = model(**given)
    y, top = np.empty((5, 3), "f4"), np.empty(5, "f4")
    results = model(**given, out=[y, top])
    assert results[0] is y and results[1] is top
    np.testing.assert_array_equal(y, want[0])
    top[:] = 0
    assert model(**given, out={"top": top})[1] is top
    np.testing.assert_array_equal(top, want[1])
    fixed = np.empty(5, "f4")
    fixed.flags.writeable = False
    for out, message in [
        ([y], "2 outputs, but `out` has 1"),
        ({"z": y}, "no output `z`"),
        ({"y": y.astype("f8")}, r"float64\[5, 3\]"),
        ({"y": np.empty((3, 5), "f4").T}, "C-contiguous"),
        ({"top": fixed}, "writable"),
        ({"top": given["x"].reshape(-1)[:5]}, "overlaps"),
        ({"y": y, "top": y.reshape(-1)[:5]}, "overlaps"),
    ]:
        with pytest.raises(girih.ProgramError, match=message):
            model(**given, out=out)


def test_all_that_is_wrong_is_told_together():
    model = girih.Model.from_onnx(dense().SerializeToString())
    with pytest.raises(girih.ProgramError) as caught:
        model(x=np.zeros((2, 5)), idx=np.zeros(2, "i8"))
    messages = [d.message for d in caught.value.diagnostics]
    assert caught.value.code == "E0806" and len(messages) == 3
    assert messages[0] == "the model has no input `idx`; did you mean `ids`?"
    assert "`x` is float64" in messages[1] and "`ids` is not given" in messages[2]
    for given, message in [
        ({"x": np.zeros((2, 5), "f4"), "ids": [0, 1]}, "extent 5 along axis 1"),
        ({"x": np.zeros((2, 6), "f4"), "ids": [0, 1, 2]}, "batch is 2"),
        ({"x": np.zeros(6, "f4"), "ids": [0]}, r"shape \[6\]"),
        ({"x": "text", "ids": [0]}, "`x` is not an array of float32"),
        ({"x": np.zeros((1, 6), "f4"), "ids": [0.5]}, "`ids` is float64"),
        ({"x": np.zeros((1, 6), "f4"), "ids": [2**80]}, "`ids`"),
    ]:
        with pytest.raises(girih.ProgramError, match=message):
            model(**given)
    with pytest.raises(girih.ProgramError, match="no output `yy`"):
        model.run(["yy"], feed(2))
    with pytest.raises(girih.ProgramError, match="given twice"):
        model(feed(2)["x"], x=feed(2)["x"])
    with pytest.raises(girih.GirihError, match="no option `thread`"):
        girih.Model.from_onnx(dense().SerializeToString(), thread=1)
    with pytest.raises(girih.ProgramError, match="E0801"):
        girih.Model.from_onnx(b"not a model")
    with pytest.raises(girih.GirihError, match="cannot be read"):
        girih.Model.from_onnx("missing.onnx")


def test_arrays_in_other_orders():
    model = girih.Model.from_expr("x.transpose(0, 1) + 1", x="f32[3, 4]")
    x = np.arange(24, dtype="f4").reshape(4, 6).T[::2]
    assert not x.flags.c_contiguous
    np.testing.assert_array_equal(model(x), x.T + 1)


def test_calls_that_look_alike():
    """The second call on arrays that look alike goes the short way, and any other call works as before."""
    model = girih.Model.from_onnx(dense().SerializeToString())
    wanted = {n: model(**feed(n)) for n in (1, 4)}

    def same(n, *arrays):
        for found, want in zip(model(*arrays), wanted[n]):
            assert np.array_equal(found, want)

    x, ids = feed(4)["x"], feed(4)["ids"]
    for _ in range(3):
        same(4, x, ids)
        assert model._quick is not None and model._quick((x, ids)) is not None
    first, second = model(x, ids)[0], model(x, ids)[0]
    assert not np.may_share_memory(first, second)
    # Each of these looks otherwise: another shape, order, type of array, or byte order.
    same(1, feed(1)["x"], feed(1)["ids"])
    same(4, x, ids)
    for other in (np.asfortranarray(x), np.repeat(x, 2, 0)[::2], x.tolist(), x.view(type("Mine", (np.ndarray,), {}))):
        assert model._quick((other, ids)) is None
        same(4, other, ids)
    assert model._quick((x,)) is None and model._quick((x, ids, ids)) is None and model._quick((x[:0], ids)) is None
    for _ in range(2):
        for wrong in (x.astype("f8"), x[:, :5], x.astype(">f4")):
            with pytest.raises(girih.ProgramError):
                model(wrong, ids)
        same(4, x, ids)
    with pytest.raises(girih.ProgramError, match="`ids` is not given"):
        model(x)
    # A model that is compiled for the elements of short inputs looks at them every time.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        special = girih.Model.from_onnx(dropping().SerializeToString())
        ones = np.ones((4, 1), "f4")
        for to in ([4], [2, 2], [4]):
            to = np.array(to)
            assert special(ones, to).shape == tuple(to)
    # An input that the model makes need not be given; scalars and empty arrays have no extents to compare.
    scalar = girih.Model.from_expr("x * y", x="f32[]", y="f32[]")
    empty = girih.Model.from_expr("torch.relu(x)", x="f32[0, 3]")
    for _ in range(3):
        assert scalar(np.array(2, "f4"), np.array(3, "f4")) == 6
        assert empty(np.empty((0, 3), "f4")).shape == (0, 3)


def test_expressions():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 16)).astype("f4")
    model = girih.Model.from_expr("torch.nn.Linear(16, 8)(x)", x=x)
    assert [p.name for p in model.inputs] == ["x"]
    # The weights are the same at every run.
    y = model(x)
    np.testing.assert_array_equal(model(x), y)
    assert y.shape == (2, 8) and np.abs(y - model(np.zeros_like(x))).max() > 0.1
    # It makes its own input, which may be given.
    model = girih.Model.from_expr("torch.relu(torch.randn(5))")
    name = model.inputs[0].name
    assert model().shape == (5,) and model(**{name: -np.ones(5, "f4")}).tolist() == [0] * 5
    for dtype in ("bool", "u8", "i32", "f16", "f64"):
        model = girih.Model.from_expr("x[1:]", x=f"{dtype}[3]")
        array = np.array([0, 1, 1], model.inputs[0].dtype)
        assert model(array).tolist() == array[1:].tolist() and model(array).dtype == array.dtype
    with pytest.raises(girih.GirihError, match="expected one as"):
        girih.Model.from_expr("x", x="f32[n]")
    with pytest.raises(ValueError, match="unknown element type"):
        girih.Model.from_expr("x", x="f31[4]")
    with pytest.raises(girih.ProgramError):
        girih.Model.from_expr("torch.frobnicate(x)", x="f32[4]")


@pytest.mark.parametrize("device", ["eval", "sim"])
def test_other_devices(device):
    given = feed(3)
    want = girih.Model.from_onnx(dense().SerializeToString())(**given)
    got = girih.Model.from_onnx(dense().SerializeToString(), device=device)(**given)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def at_once(work, items):
    """Does the work for each item in a thread of its own, and raises the exception of one of them."""
    with ThreadPoolExecutor(len(items)) as threads:
        list(threads.map(work, items))


def test_threads_share_a_model():
    for model, make in [
        (girih.Model.from_onnx(dense().SerializeToString()), lambda n: feed(n, n)),
        (girih.Model.from_onnx(dropping().SerializeToString()), lambda n: {"x": np.ones((n, 1), "f4"), "to": [n]}),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = {n: model(**make(n)) for n in (1, 2, 3, 4)}
        wrong = []

        def work(n):
            for _ in range(50):
                for a, b in zip(model(**make(n)), want[n]):
                    if a.tolist() != b.tolist():
                        wrong.append(n)

        at_once(work, want)
        assert not wrong


def test_threads_share_arrays_of_results():
    model = girih.Model.from_expr("torch.exp(x) + 1", x="f32[400, 500]")
    x = np.linspace(-1, 1, 200_000, dtype="f4").reshape(400, 500)
    inputs = [x, x + 1, x + 2]
    want = [model(x=given).copy() for given in inputs]
    shared = np.empty_like(x)

    def work(given):
        for _ in range(50):
            assert model(x=given, out=[shared]) is shared

    at_once(work, inputs)
    # Runs of one model take turns, so the remaining result is that of one run, as a whole.
    assert sum(np.array_equal(shared, result) for result in want) == 1


def test_a_look_inside(tmp_path):
    model = girih.Model.from_onnx(dense().SerializeToString())
    profile = model.profile(**feed(4))
    assert profile.seconds > 0 and profile.steps and profile.weights > 0
    assert any("onnx.MatMul" in " ".join(step.operations) for step in profile.steps)
    text = str(profile)
    assert text.splitlines()[0].split()[:3] == ["kernel", "us", "share"] and "memory: weights" in text
    profile.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"] for e in events] == [step.kernel for step in profile.steps]
    assert all(e["ph"] == "X" and e["dur"] >= 0 for e in events)
    for stage in ("torch", "tensor", "loop", "tile", "kernel", "c"):
        assert model.ir(stage)
    model.explain(html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>") and model.name in page and "k_" in page
    assert "fuse" in model.trace() and len(model.trace(full=True)) > len(model.trace())
    assert repr(model).startswith("<girih.Model model(x: float32[batch, 6], ids: int64[batch]) -> y:")


def test_whatever_is_public_says_what_it_does():
    for name, member in inspect.getmembers(girih.Model, callable):
        assert name.startswith("_") and name != "__call__" or inspect.getdoc(member), name


def test_a_limit_on_memory():
    x = np.ones((64, 1000), np.float32)

    def run(expression, **options):
        return girih.Model.from_expr(expression, options=options, x=x)(x=x)

    # Two MB of weights; and none, but 256 KB of results.
    for expression in ("torch.nn.Linear(1000, 500)(torch.softmax(x, -1))", "torch.softmax(x, -1) * 2"):
        wanted = run(expression)
        for enough in ("64M", 64 << 20):
            np.testing.assert_array_equal(run(expression, max_memory=enough), wanted)
        for little in ("200K", 200 << 10, 1):
            with pytest.raises(girih.GirihError, match="more than the limit of"):
                run(expression, max_memory=little)
    with pytest.raises(ValueError, match="a size such as"):
        run("x + 1", max_memory="plenty")


def endless(device="cpu"):
    """A loop that ends where its input is not positive; its result has no type in the file."""
    nodes = [
        helper.make_node("Add", ["v", "one"], ["v2"]),
        helper.make_node("Greater", ["s", "zero"], ["again"]),
        helper.make_node("Identity", ["s"], ["s2"]),
    ]
    ins = [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("v", F, [4]), ("s", F, [])]
    outs = [("again", TensorProto.BOOL, []), ("v2", F, [4]), ("s2", F, [])]
    constants = [numpy_helper.from_array(np.float32(value), name) for name, value in (("one", 1), ("zero", 0))]
    body = helper.make_graph(nodes, "body", [port(*i) for i in ins], [port(*o) for o in outs], constants)
    loop = helper.make_node("Loop", ["", "go", "x", "start"], ["y", "last"], body=body)
    inputs = [port("x", F, [4]), port("go", TensorProto.BOOL, []), port("start", F, [])]
    outputs = [helper.make_empty_tensor_value_info("y")]
    return girih.Model.from_onnx(file([loop], inputs, outputs).SerializeToString(), device=device)


def test_an_output_without_a_type():
    loop = endless()
    assert [str(p) for p in loop.outputs] == ["y: float32[4]"]
    for go, wanted in ((True, 2), (False, 1)):
        given = loop(x=np.ones(4, np.float32), go=np.array(go), start=np.float32(0))
        np.testing.assert_array_equal(given, np.full(4, wanted, np.float32))


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_a_loop_that_does_not_end_is_interrupted(device):
    loop = endless(device)
    loop(x=np.ones(4, np.float32), go=np.array(False), start=np.float32(1))
    # In the background, where the tests may run, the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop(x=np.ones(4, np.float32), go=np.array(True), start=np.float32(1))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 30
    # It runs again.
    given = loop(x=np.ones(4, np.float32), go=np.array(True), start=np.float32(0))
    np.testing.assert_array_equal(given, np.full(4, 2, np.float32))


# ---- as objects


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("source", ["bytes", "path", "line", "loaded"])
def test_a_model_can_be_copied(tmp_path, how, source):
    if source == "line":
        model, given = girih.Model.from_expr("torch.nn.Linear(8, 4)(x)", x="f32[3, 8]"), {"x": np.ones((3, 8), "f4")}
    else:
        data, given = dense().SerializeToString(), feed(3)
        (tmp_path / "dense.onnx").write_bytes(data)
        model = girih.Model.from_onnx(tmp_path / "dense.onnx" if source == "path" else data)
    if source == "loaded":
        model(**given)
        model.save(tmp_path / "dense.girih")
        model = girih.Model.load(tmp_path / "dense.girih")
    copies = {"pickle": lambda m: pickle.loads(pickle.dumps(m)), "copy": copy.copy, "deepcopy": copy.deepcopy}
    again = copies[how](model)
    assert (again.name, again.inputs, again.outputs) == (model.name, model.inputs, model.outputs)
    results = lambda m: m.run(None, given)
    for a, b in zip(results(model), results(again)):
        assert np.array_equal(a, b)


def test_inputs_under_the_names_of_onnx_runtime():
    model = girih.Model.from_onnx(dense().SerializeToString())
    assert [(p.name, p.type, list(p.shape)) for p in model.get_inputs()] == [
        ("x", "tensor(float)", ["batch", 6]),
        ("ids", "tensor(int64)", ["batch"]),
    ]
    assert [p.name for p in model.get_outputs()] == ["y", "top"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "device", "socket"])
def test_weights_lie_in_ordinary_files(tmp_path, monkeypatch, kind):
    """A model names the files of its weights: one that never ends, or that is waited for, is refused."""
    weights = numpy_helper.from_array(np.ones((6, 2), np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, F, [4, n]) for name, n in (("x", 6), ("y", 2)))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    monkeypatch.chdir(tmp_path)
    onnx.save(proto, "dense.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert np.array_equal(girih.Model.from_onnx("dense.onnx")(np.ones((4, 6), "f4")), np.full((4, 2), 6))
    os.remove("w.bin")
    with socket.socket(socket.AF_UNIX) as s:
        {
            "pipe": lambda: os.mkfifo("w.bin"),
            "folder": lambda: os.mkdir("w.bin"),
            "loop": lambda: os.symlink("w.bin", "w.bin"),
            "device": lambda: os.symlink("/dev/zero", "w.bin"),
            "socket": lambda: s.bind("w.bin"),
        }[kind]()
    with pytest.raises(girih.ProgramError, match="(?s)E0804.*w.bin cannot be read"):
        girih.Model.from_onnx("dense.onnx")(np.ones((4, 6), "f4"))


def test_arrays_of_other_kinds_are_named():
    model = girih.Model.from_onnx(dense().SerializeToString())
    for array, said in [
        (np.array([["a"] * 6]), "input `x` is an array of strings"),
        (np.array([[b"a"] * 6]), "input `x` is an array of bytes"),
        (np.array([[None] * 6]), "input `x` is an array of Python objects"),
        (None, "input `x` is None: the model expects x"),
        (np.zeros((1, 6), ">f4"), "input `x` is >f4: .*newbyteorder"),
        (np.ma.masked_array(np.zeros((1, 6), "f4"), mask=[[0, 1, 0, 0, 0, 0]]), "masked elements.*filled"),
    ]:
        with pytest.raises(girih.ProgramError, match=said):
            model(x=array, ids=[0])
    ml_dtypes = pytest.importorskip("ml_dtypes")
    halves = girih.Model.from_expr("x + x", x="bf16[4]")
    bits = np.array([1, 2, 3, 4], ml_dtypes.bfloat16).view("u2")
    with pytest.raises(girih.ProgramError, match="view.ml_dtypes.bfloat16"):
        halves(bits)
    assert np.array_equal(halves(bits.view(ml_dtypes.bfloat16)).astype("f4"), [2, 4, 6, 8])


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_arrays_of_four_bits(name):
    """ONNX packs two into a byte; NumPy does not."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype, kind = np.dtype(getattr(ml_dtypes, name)), getattr(TensorProto, name.upper())
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=F), helper.make_node("Transpose", ["x"], ["z"], perm=[1, 0])]
    outputs = [port("y", F, [3, 5]), port("z", kind, [5, 3])]
    graph = helper.make_graph(nodes, "g", [port("x", kind, [3, 5])], outputs)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    model = girih.Model.from_onnx(data)
    low = -8 if name == "int4" else 0
    x = (np.arange(15).reshape(3, 5) % 16 + low).astype(dtype)
    y, z = model(x=x)
    assert np.array_equal(y, x.astype("f4")) and z.dtype == dtype
    assert np.array_equal(z.astype("f4"), x.T.astype("f4"))


@pytest.mark.parametrize("threads", [-1, 0, 1.5, "many", 10**20])
def test_a_number_of_threads_that_is_none(threads):
    with pytest.raises(ValueError, match="threads: expected a number of threads from 1 to 1024"):
        girih.Model.from_expr("x + 1", options={"threads": threads}, x="f32[4]")


def test_a_trace_is_written_whole_or_not_at_all(tmp_path):
    profile = girih.Model.from_expr("x + 1", x="f32[4]").profile(x=np.ones(4, "f4"))
    path = tmp_path / "trace.json"
    profile.chrome_trace(path)
    before = path.read_text()
    assert json.loads(before)["traceEvents"]
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError):
            profile.chrome_trace("/dev/full")
    script = """
import json, resource, signal, sys
from girih._files import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
try:
    write_whole(sys.argv[1], "x" * 100)
except OSError:
    print("refused")
"""
    for target in (path, tmp_path / "new.json"):
        done = subprocess.run([sys.executable, "-c", script, str(target)], capture_output=True, text=True)
        assert done.stdout == "refused\n", done.stderr
    assert path.read_text() == before and [p.name for p in tmp_path.iterdir()] == ["trace.json"]


def gathered():
    """A model that reads a few rows of a table in each run."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"])]
    table = np.random.default_rng(0).standard_normal((4096, 64)).astype("f4")
    return file(nodes, [port("ids", I, [2])], [port("rows", F, [2, 64])], [("table", table)])


def test_a_gather_is_counted_as_far_as_it_reads():
    model = girih.Model.from_onnx(gathered().SerializeToString())
    (step,) = model.profile(ids=np.array([3, 4000])).steps
    # Two rows of 64 floats, read and written, and two indices.
    assert step.bytes == 2 * 2 * 64 * 4 + 2 * 8


def test_an_argument_without_memory():
    """What is beside PyTorch hands addresses over; an empty tensor has none."""
    model = girih._girih.Model.from_expression("torch.relu(x)", [("x", "f32", [3, 4])])
    result = np.empty((3, 4), np.float32)
    with pytest.raises(RuntimeError, match="argument 0 has elements, but no memory"):
        model.run_addresses([0], [(3, 4)], [], [(result.ctypes.data, result.nbytes)])
