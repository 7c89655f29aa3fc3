"""Arrays without elements, of every rank and place: launches of ``@girih.jit`` and tile programs on the command line.

Memory of an empty array is never touched: it may have no address.
"""

import itertools
import json
import os
import subprocess
from pathlib import Path

import girih
import girih.language as tl
import numpy as np
import pytest

DEVICES = ["cpu", "eval"]


@girih.jit
def sums_rows(x, y, out, m, n, BLOCK: tl.constexpr):
    """out[i] = sum over j of x[i, j] + y[j], and 0 where there is no j."""
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = (cols < n) & (row < m)
        total += tl.load(x + row * n + cols, mask=inside, other=0.0) + tl.load(y + cols, mask=inside, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0), mask=row < m)


@girih.jit
def picks(table, index, out, n, count, BLOCK: tl.constexpr):
    """out[i] = table[index[i]], -1 where the index is not one of the table's."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(index + places, mask=places < count, other=0)
    tl.store(out + places, tl.load(table + i, mask=(places < count) & (i < n), other=-1.0), mask=places < count)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("m, n", list(itertools.product([0, 1, 5], [0, 1, 33])))
def test_a_launch_over_rows(device, m, n):
    x, y = np.ones((m, n), np.float32), np.full(n, 2, np.float32)
    out = np.full(m, 7, np.float32)
    # A block beyond the last row touches nothing either.
    sums_rows[(m + 1,)](x, y, out, m, n, BLOCK=16, device=device)
    assert np.array_equal(out, np.full(m, 3 * n, np.float32))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n, count", list(itertools.product([0, 4], [0, 3, 20])))
def test_a_launch_with_indices(device, n, count):
    table, index = np.arange(n, dtype=np.float32), np.arange(count, dtype=np.int32) % 4
    out = np.full(count, 7, np.float32)
    picks[(2,)](table, index, out, n, count, BLOCK=16, device=device)
    assert np.array_equal(out, index if n else np.full(count, -1, np.float32))


@pytest.mark.parametrize("device", DEVICES)
def test_a_launch_of_no_blocks(device):
    x = np.zeros((0, 4), np.float32)
    out = np.zeros(0, np.float32)
    try:
        sums_rows[(0,)](x, x, out, 0, 4, BLOCK=16, device=device)
    except girih.GirihError as e:
        assert "grid" in str(e)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("empty", ["x", "y", "out"])
def test_what_reads_or_writes_an_empty_array_is_named(device, empty):
    arrays = {name: np.zeros(0 if name == empty else 8, np.float32) for name in ("x", "y", "out")}
    with pytest.raises(girih.OutOfBoundsError, match=f"`{empty}`"):
        sums_rows[(1,)](*arrays.values(), 1, 8, BLOCK=8, device=device, check=True)


# Files, on the command line.

ROOT = Path(__file__).parents[2]
GIRIH = Path(os.environ.get("GIRIH_LIBRARY_DIR", ROOT / "target/release")) / "girih"


def run(folder, file, device, arrays, *options, saved=(), more=()):
    """Girih's message on a failure, or the arrays that were asked for."""
    command = [GIRIH, "run", file, "--device", device, *options]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        command += ["--arg", f"{name}={folder / name}.npy"]
    for text in more:
        command += ["--arg", text]
    for name in saved:
        command += ["--save", f"{name}={folder / name}.out.npy"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        assert done.returncode > 0 and done.stderr.startswith("error"), (done.returncode, done.stderr)
        return done.stderr
    return [np.load(folder / f"{name}.out.npy") for name in saved]


# For each example: an array to fill, the others, and numbers, where the extents are these.
PROGRAMS = {
    "vector_add": (1, lambda n: ({"a": (n,), "b": (n,), "c": (n,)}, "c", {"n": n})),
    "softmax": (1, lambda n: ({"src": (0, n), "dst": (0, n)}, "dst", {"n": 0})),
    "saxpy": (2, lambda m, n: ({"X": (m, n), "Y": (m, n)}, "Y", {"M": m, "N": n, "alpha": 2.5})),
    "transpose": (2, lambda m, n: ({"X": (m, n), "Y": (n, m)}, "Y", {"M": m, "N": n})),
    "gemm_f32": (3, lambda m, n, k: ({"A": (m, k), "B": (k, n), "C": (m, n)}, "C", {"M": m, "N": n, "K": k})),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tile_program(name, device, tmp_path):
    rank, build = PROGRAMS[name]
    for extents in itertools.product([0, 3], repeat=rank):
        if 0 not in extents:
            continue
        shapes, filled, numbers = build(*extents)
        file = ROOT / "examples" / f"{name}.mlir"
        arrays = {key: np.ones(shape, np.float32) for key, shape in shapes.items()}
        more = [f"{key}={'f32' if isinstance(v, float) else 'i32'}:{v}" for key, v in numbers.items()]
        found = run(tmp_path, file, device, arrays, "--check", "--grid", "1,1", saved=[filled], more=more)
        # A view without elements has no tile that a block could name.
        if "load_view_tko" in file.read_text() and 0 in shapes[filled]:
            assert "lies outside the view" in found, (extents, found)
            continue
        assert not isinstance(found, str), (extents, found)
        # An array with elements is a product over an extent of 0.
        assert found[0].shape == shapes[filled] and (found[0] == 0).all(), extents


# ONNX. Each reads `x` of two axes.

ONNX = {
    "Relu": ("y = Relu(x)", lambda x: np.maximum(x, 0)),
    "Add": ("y = Add(x, x)", lambda x: x + x),
    "MatMul": ("t = Transpose(x) y = MatMul(x, t)", lambda x: x @ x.T),
    "MatMul of the other": ("t = Transpose(x) y = MatMul(t, x)", lambda x: x.T @ x),
    "ReduceSum": ("y = ReduceSum<keepdims=0>(x, one)", lambda x: x.sum(1)),
    "ReduceProd": ("y = ReduceProd<keepdims=0>(x, zero)", lambda x: x.prod(0)),
    "ReduceMax": ("y = ReduceMax<keepdims=0>(x, one)", lambda x: x.max(1, initial=-np.inf)),
    "ReduceMin": ("y = ReduceMin<keepdims=0>(x, zero)", lambda x: x.min(0, initial=np.inf)),
    "Softmax": ("y = Softmax<axis=1>(x)", lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "Concat": ("y = Concat<axis=0>(x, x)", lambda x: np.concatenate([x, x])),
    "CumSum": ("y = CumSum(x, axis)", lambda x: x.cumsum(0)),
    "Transpose": ("y = Transpose(x)", lambda x: x.T),
    "Flatten": ("y = Flatten<axis=0>(x)", lambda x: x.reshape(1, -1)),
    "Gather": ("y = Gather<axis=0>(x, none)", lambda x: x[:0]),
    "Slice": ("y = Slice(x, one, many, zero)", lambda x: x[1:]),
    "Tile": ("y = Tile(x, twos)", lambda x: np.tile(x, (2, 2))),
    "Pad": ("y = Pad(x, pads)", lambda x: np.pad(x, [(1, 0), (0, 2)])),
    "ArgMax": ("y = ArgMax<axis=1, keepdims=0>(x)", lambda x: x.argmax(1)),
    "ArgMin": ("y = ArgMin<axis=0>(x)", lambda x: x.argmin(0, keepdims=True)),
    "ArgMax, the last": ("y = ArgMax<axis=1, select_last_index=1>(x)", lambda x: x.shape[1] - 1 - x[:, ::-1].argmax(1, keepdims=True)),
}  # fmt: skip
CONSTANTS = "zero = {0}, int64[1] one = {1}, int64 axis = {0}, int64[1] many = {1000}, int64[2] twos = {2, 2}, int64[4] pads = {1, 0, 0, 2}, int64[0] none = {}"


@pytest.mark.parametrize("name", ONNX)
def test_a_model_of_onnx(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    body, expected = ONNX[name]
    kind = "int64" if name.startswith("Arg") else "float"
    rank = expected(np.ones((2, 3), np.float32)).ndim
    shape = ", ".join(f"y{d}" for d in range(rank))

    def write(n, m):
        text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[{n}, {m}] x) => ({kind}[{shape}] y)'
        model = onnx.parser.parse_model(f"{text} <int64[1] {CONSTANTS}> {{ {body} }}")
        onnx.save(model, tmp_path / f"{n}{m}.onnx")
        return tmp_path / f"{n}{m}.onnx"

    for extents in [(0, 3), (4, 0), (0, 0), (4, 3)]:
        x = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
        try:
            wanted = expected(x)
        except ValueError:
            wanted = None
        # Extents with a name are at least 1 where a model is one for all of them; empty ones get a model of their own.
        for device, declared in itertools.product(DEVICES, [extents, ("n", "m")]):
            found = run(tmp_path, write(*declared), device, {"x": x}, saved=["y"])
            if wanted is None:
                assert isinstance(found, str) and "has no elements" in found, (extents, device, found)
                continue
            assert not isinstance(found, str), (extents, device, found)
            assert found[0].shape == wanted.shape, (extents, device)
            np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-6, err_msg=f"{extents} on {device}")


# Positions of extrema along an extent that a run decides.
ARGMAX = {
    "format": "girih.torch", "version": 1, "name": "m", "symbols": [{"name": "n", "lo": 0, "hi": 64}],
    "inputs": [{"name": "x", "dtype": "f32", "shape": [4, "n"], "role": "argument"}], "constants": [],
    "nodes": [{"op": "aten.argmax", "args": [{"t": "x"}], "attrs": {"dim": 1}, "module": "m",
               "results": [{"name": "h", "dtype": "i64", "shape": [4]}]}],
    "outputs": [{"name": "y", "value": "h"}],
}  # fmt: skip


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("device", DEVICES)
def test_the_position_of_an_extremum_of_nothing(device, op, tmp_path):
    text = json.dumps(ARGMAX).replace("aten.argmax", f"aten.{op}")
    (tmp_path / "m.json").write_text(text)
    for n in (0, 1, 5, 0):
        found = run(tmp_path, tmp_path / "m.json", device, {"x": np.eye(4, n, dtype=np.float32)}, saved=["y"])
        if n == 0:
            assert "is outside" in found or "outside its dimension" in found, found
        else:
            assert np.array_equal(found[0], getattr(np.eye(4, n), op)(1)), n
