"""Constants of a graph that name a tensor of a file of weights: of GGUF, beside the package `gguf`, and of safetensors."""

import json
import os
import struct
import subprocess
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
GIRIH = Path(os.environ.get("GIRIH_LIBRARY_DIR", ROOT / "target/release")) / "girih"
KINDS = gguf.GGMLQuantizationType
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}


def model(folder, tensor, shape, dtype="f32", file="w.gguf"):
    """The sum of a constant and an argument, as a graph in a file."""
    document = {
        "format": "girih.torch", "version": 1, "name": "m", "symbols": [],
        "inputs": [{"name": "x", "dtype": dtype, "shape": shape, "role": "argument"}],
        "constants": [{"name": "w", "dtype": dtype, "shape": shape, "file": file, "tensor": tensor}],
        "nodes": [{"op": "aten.add", "args": [{"t": "x"}, {"t": "w"}], "attrs": {},
                   "results": [{"name": "y", "dtype": dtype, "shape": shape}]}],
        "outputs": [{"name": "y", "value": "y"}],
    }  # fmt: skip
    (folder / "m.json").write_text(json.dumps(document))
    return folder / "m.json"


def girih(*args):
    return subprocess.run(list(map(str, [GIRIH, *args])), capture_output=True, text=True)


def value(folder, tensor, shape, dtype="f32", file="w.gguf"):
    """The constant of a graph: what it adds to zeros."""
    zeros = f"x=zeros:{dtype}[{'x'.join(map(str, shape))}]"
    out = folder / "y.npy"
    done = girih("run", model(folder, tensor, shape, dtype, file), "--arg", zeros, "--save", f"y={out}", "--device", "eval")
    assert done.returncode == 0, done.stderr
    return np.load(out).view(DTYPES[dtype])


def write(folder, tensors):
    """A file of GGUF of tensors by name: bytes as they lie, and their type."""
    writer = gguf.GGUFWriter(folder / "w.gguf", "llama")
    writer.add_array("tokens", ["a", "bc", "d"])
    for name, (array, kind) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def blocks(rng, kind, rows, columns):
    """Random blocks, whose scales are numbers of a usual size."""
    count, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (rows, columns // count, size), np.uint8)
    at = {"Q4_K": [0, 2], "Q6_K": [208]}.get(kind.name, [0])
    for place in at:
        scales = rng.normal(size=raw.shape[:2]).astype(np.float16)
        raw[:, :, place : place + 2] = scales[..., None].view(np.uint8)
    return raw.reshape(rows, -1)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_K", "Q6_K"])
def test_blocks_are_the_numbers_that_gguf_reads(tmp_path, kind):
    kind = KINDS[kind]
    rng = np.random.default_rng(3)
    all = {f"blk.{i}.w": (blocks(rng, kind, 3, 512), kind) for i in range(2)}
    write(tmp_path, {"first": (np.arange(5, dtype=np.float32), KINDS.F32), **all})
    for name, (raw, _) in all.items():
        wanted = gguf.quants.dequantize(raw, kind)
        np.testing.assert_array_equal(value(tmp_path, name, [3, 512]), wanted)
        np.testing.assert_array_equal(value(tmp_path, name, [3, 512], "bf16"), wanted.astype(ml_dtypes.bfloat16))


def test_floats_are_read_in_place_or_converted(tmp_path):
    x = np.random.default_rng(4).normal(size=(4, 6)).astype(np.float32)
    half = x.astype(ml_dtypes.bfloat16)
    write(tmp_path, {"f32": (x, KINDS.F32), "f16": (x.astype(np.float16), KINDS.F16), "bf16": (half.view(np.uint8), KINDS.BF16)})
    for name, own in {"f32": x, "f16": x.astype(np.float16), "bf16": half}.items():
        for dtype in ("f32", "f16", "bf16"):
            wanted = own.astype(np.float32).astype(DTYPES[dtype])
            np.testing.assert_array_equal(value(tmp_path, name, [4, 6], dtype), wanted, f"{name} as {dtype}")


def test_safetensors_are_read_by_name(tmp_path):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7, 8], np.int32)
    header = json.dumps({"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                         "b": {"dtype": "I32", "shape": [2], "data_offsets": [24, 32]}}).encode()  # fmt: skip
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + a.tobytes() + b.tobytes())
    np.testing.assert_array_equal(value(tmp_path, "a", [2, 3], file="w.safetensors"), a)
    np.testing.assert_array_equal(value(tmp_path, "b", [2], "i32", "w.safetensors"), b)


def test_tensors_that_are_not_there_are_named(tmp_path):
    write(tmp_path, {"blk.0.q": (blocks(np.random.default_rng(5), KINDS.Q4_K, 2, 256), KINDS.Q4_K)})
    (tmp_path / "w.bin").write_bytes(b"1234")
    (tmp_path / "broken.gguf").write_bytes((tmp_path / "w.gguf").read_bytes()[:100])
    for given, words in [
        (("blk.0.k", [2, 256]), "did you mean `blk.0.q`?"),
        (("blk.0.q", [256, 2]), "has the shape [2, 256], not [256, 2]"),
        (("blk.0.q", [2, 256], "i32"), "elements Q4_K"),
        (("q", [2], "f32", "w.bin"), "is not a file of weights"),
        (("q", [2], "f32", "broken.gguf"), "cut short"),
        (("q", [2], "f32", "../w.gguf"), "is not in the model's folder"),
        (("q", [2], "f32", "none.gguf"), "cannot be read"),
    ]:
        done = girih("compile", model(tmp_path, *given), "--ir", "tensor")
        assert done.returncode == 1 and words in done.stderr, done.stderr
        assert "panicked" not in done.stderr
