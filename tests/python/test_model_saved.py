"""`Model.save` and `Model.load`: a compiled model in a file, and files that are something else."""

import os
import re
import shutil
import struct
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_model import dense, dropping, feed

import girih

LAYER = "torch.nn.functional.silu(x @ w1) @ w2 + torch.nn.Linear(64, 32)(x)[:, :16]"


def layer():
    """Weights that are given at every run, parameters that the model makes, and products whose operands are packed."""
    return girih.Model.from_expr(LAYER, x="f32[4, 64]", w1="f32[64, 96]", w2="f32[96, 16]")


def arrays():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype("f4") for shape in [(4, 64), (64, 96), (96, 16)]]


def loaded(path, **options):
    """Without a warning: nothing was compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return girih.Model.load(path, **options)


def test_a_file_of_onnx(tmp_path):
    model = girih.Model.from_onnx(dense().SerializeToString())
    path = tmp_path / "dense.girih"
    model.save(path)
    again = loaded(path)
    assert (again.inputs, again.outputs) == (model.inputs, model.outputs)
    for n in (1, 5, 40):
        for a, b in zip(model(**feed(n)), again(**feed(n))):
            assert np.array_equal(a, b)
    assert again.ir("tensor") == model.ir("tensor") and "girih_0" in again.ir("c")
    # A loaded model can be saved.
    again.save(path)
    assert np.array_equal(loaded(path)(**feed(3))[0], model(**feed(3))[0])


def test_parameters_and_packed_weights(tmp_path):
    model, given = layer(), arrays()
    path = tmp_path / "layer.girih"
    model.save(path)
    assert np.array_equal(model(*given), loaded(path)(*given))


def test_what_is_compiled_for_some_shapes(tmp_path):
    model = girih.Model.from_onnx(dropping().SerializeToString())
    given = {"x": np.ones((4, 1), "f4"), "to": [4]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = model(**given)
    model.save(tmp_path / "m.girih")
    again = loaded(tmp_path / "m.girih")
    assert np.array_equal(again(**{p.name: given[p.name] for p in again.inputs}), want)


def test_it_needs_no_compiler(tmp_path):
    path = tmp_path / "layer.girih"
    model, given = layer(), arrays()
    model.save(path)
    np.savez(tmp_path / "arrays.npz", *given, want=model(*given))
    script = f"""
        import numpy as np, girih
        a = np.load({str(tmp_path / "arrays.npz")!r})
        model = girih.Model.load({str(path)!r})
        assert np.array_equal(model(a["arr_0"], a["arr_1"], a["arr_2"]), a["want"])
    """
    env = {**os.environ, "GIRIH_CC": "/nonexistent", "GIRIH_CACHE_DIR": str(tmp_path / "empty")}
    done = subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(script)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_another_number_of_threads_is_compiled_anew(tmp_path):
    model, given = layer(), arrays()
    path = tmp_path / "layer.girih"
    model.save(path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again = girih.Model.load(path, threads=7)
    # Where the schedule does not depend on their number nothing is said.
    assert all("was compiled anew: this machine compiles it otherwise" in str(w.message) for w in told)
    assert np.allclose(again(*given), model(*given), rtol=1e-5, atol=1e-5)


def test_files_that_are_something_else(tmp_path):
    whole = tmp_path / "layer.girih"
    layer().save(whole)
    data = whole.read_bytes()
    (length,) = struct.unpack("<Q", data[16:24])

    def refuses(bytes, message):
        path = tmp_path / "bad.girih"
        path.write_bytes(bytes)
        with pytest.raises(girih.GirihError, match=message):
            girih.Model.load(path)

    refuses(b"", "is not a saved model")
    refuses(b"ONNX" * 100, "is not a saved model")
    refuses(b"girih model 1\n\0\0" + data[16:], "is in a form that this version of girih does not read")
    for end in [*range(16, 56 + length, 997), len(data) - 4096, len(data) - 1]:
        refuses(data[:end], "ends too early")
    refuses(data + b"\0", "1 bytes follow its end")
    for at in [30, 56, 56 + length // 2, 56 + length - 1]:
        refuses(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "is damaged")
    # Machine code is looked at before it is loaded.
    code = data.rindex(b"\x7fELF")
    refuses(data[: code + 64] + bytes([data[code + 64] ^ 1]) + data[code + 65 :], "is damaged: part")
    refuses(data[:16] + b"\xff" * 8 + data[24:], "ends too early")
    with pytest.raises(girih.GirihError, match="cannot be read"):
        girih.Model.load(tmp_path / "missing.girih")
    with pytest.raises(girih.GirihError, match="cannot be (read|written)"):
        girih.Model.load(tmp_path)


def test_what_load_and_runs_both_read(tmp_path):
    """The softmax of a weight is packed when the model is loaded, and added in runs: it is part of the file."""
    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((300, 300)).astype("f4"), "w")
    nodes = [
        helper.make_node("Softmax", ["w"], ["s"]),
        helper.make_node("MatMul", ["x", "s"], ["y"]),
        helper.make_node("Add", ["b", "s"], ["z"]),
    ]
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    ports = [value("x", [4, 300]), value("b", [300, 300])], [value("y", [4, 300]), value("z", [300, 300])]
    graph = helper.make_graph(nodes, "g", *ports, [weight])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()
    model, given = girih.Model.from_onnx(data), {"x": np.ones((4, 300), "f4"), "b": np.ones((300, 300), "f4")}
    want = model(**given)
    model.save(tmp_path / "m.girih")
    for a, b in zip(want, loaded(tmp_path / "m.girih")(**given)):
        assert np.array_equal(a, b)


def test_every_flipped_bit_is_told(tmp_path):
    """Wherever a file is damaged (header, names, machine code, weights, what was computed from them, zeros between them), it is
    refused; who trusts the disk may leave the parts unread."""
    whole, bad = tmp_path / "layer.girih", tmp_path / "bad.girih"
    layer().save(whole)
    data = whole.read_bytes()
    (length,) = struct.unpack("<Q", data[16:24])
    rng = np.random.default_rng(0)
    places = [*range(0, 56, 3), *rng.integers(56, 56 + length, 40), *range(56 + length, len(data), 1021), len(data) - 1]
    unread = []
    for at in map(int, places):
        bad.write_bytes(data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :])
        with pytest.raises(girih.GirihError, match="is damaged|ends too early|not a saved model|in a form"):
            girih.Model.load(bad)
        try:
            girih.Model.load(bad, verify=False)
            unread.append(at)
        except girih.GirihError:
            pass
    # Weights alone: the header and machine code are compared all the same.
    code = data.index(b"\x7fELF")
    assert unread and min(unread) >= 56 + length and not any(code <= at < code + 4096 for at in unread)


def test_loads_take_no_maps(tmp_path):
    """A model that is loaded again brings no machine code into memory that is there."""
    path, given = tmp_path / "layer.girih", arrays()
    model = layer()
    want = model(*given)
    model.save(path)
    maps = lambda: sum(1 for _ in open("/proc/self/maps"))
    loaded(path)(*given)
    before = maps()
    for _ in range(40):
        assert np.array_equal(loaded(path)(*given), want)
    assert maps() <= before + 20


@pytest.mark.parametrize("place", ["missing", "a file", "noexec", "full"])
def test_loads_without_a_temporary_folder(tmp_path, place):
    """Machine code is loaded from elsewhere, at last from memory, without a compiler and without a word."""
    path, folder = tmp_path / "layer.girih", tmp_path / "tmp"
    layer().save(path)
    command = [sys.executable, tmp_path / "load.py", path]
    (tmp_path / "load.py").write_text(LOADS)
    if place == "a file":
        folder.write_text("")
    if mount := {"noexec": "noexec", "full": "size=4k"}.get(place):
        folder.mkdir()
        inside = ["unshare", "-Urm", "sh", "-c", f'mount -t tmpfs -o {mount} tmpfs "$TMPDIR" && exec "$@"', "sh"]
        may = shutil.which("unshare") and subprocess.run([*inside, "true"], env=os.environ | {"TMPDIR": str(folder)}, capture_output=True)
        if not may or may.returncode != 0:
            pytest.skip("nobody may mount here")
        command = inside + command
    extra = {"GIRIH_CC": "/nonexistent", "TMPDIR": str(folder)}
    run = subprocess.run(command, env=os.environ | extra, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


LOADS = """
import sys, warnings, numpy as np
import girih
warnings.simplefilter("error")
girih.Model.load(sys.argv[1])(*[np.ones(s, "f4") for s in [(4, 64), (64, 96), (96, 16)]])
"""


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(girih.GirihError, match="cannot be written"):
        layer().save(tmp_path / "nowhere" / "layer.girih")
    model = girih.Model.from_expr("x + 1", x="f32[4]", options={"device": "eval"})
    with pytest.raises((girih.GirihError, ValueError), match="for the device cpu"):
        model.save(tmp_path / "model.girih")
    assert not list(tmp_path.iterdir())


def test_a_version_is_part_of_the_file(tmp_path):
    layer().save(tmp_path / "layer.girih")
    text = (tmp_path / "layer.girih").read_bytes()
    assert re.search(rb'"version":"' + girih.__version__.encode() + rb'"', text)
