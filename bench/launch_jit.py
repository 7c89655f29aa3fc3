"""The cost of a launch, of a first launch and of the import of `@girih.jit`, and its code beside tile text.

    python bench/launch_jit.py [--json]

The first table has medians over many launches of a compiled kernel of three arrays and two scalars, with one small block.
The second has the least of a few fresh processes: the import, and from the decorated softmax kernel to its first result,
with an empty cache and with a filled one. The third has softmax and layer norm written in Python beside the same kernels
in tile text, examples/softmax.mlir and examples/layer_norm.mlir, measured in turns. Each row shows its limit.
"""

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import girih
import girih.language as tl
from girih.kernel import _girih, describe_array, dtype_name, kernel_error

ROOT = Path(__file__).resolve().parent.parent
LAUNCHES, PROCESSES, ROUNDS = 5000, 5, 40


@girih.jit
def scaled_add(x, y, out, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, a * tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


SOURCES = [f"x{i}" for i in range(29)]


def many_parameters():
    """A kernel of 30 arrays, which Python reads from a file."""
    path = Path(tempfile.mkdtemp()) / "sum_of_many.py"
    loads = " + ".join(f"tl.load({x} + i)" for x in SOURCES)
    path.write_text(
        "import girih\nimport girih.language as tl\n\n\n@girih.jit\n"
        f"def sum_of_many({', '.join(SOURCES)}, out, BLOCK: tl.constexpr):\n"
        f"    i = tl.arange(0, BLOCK)\n    tl.store(out + i, {loads})\n"
    )
    made = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("sum_of_many", path))
    spec.loader.exec_module(made)
    return made.sum_of_many


sum_of_many = many_parameters()


@girih.jit
def softmax(src, dst, n, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(src + row * n + j, mask=j < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(dst + row * n + j, e / tl.sum(e, axis=0), mask=j < n)


@girih.jit
def layer_norm(x, w, b, y, eps, rows, N: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, N)
    at, inside = i[:, None] * N + j[None, :], (i < rows)[:, None]
    tile = tl.load(x + at, mask=inside, other=0.0)
    centred = tile - (tl.sum(tile, axis=1) * (1 / N))[:, None]
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=1) * (1 / N) + eps)
    tl.store(y + at, centred * rstd[:, None] * tl.load(w + j)[None, :] + tl.load(b + j)[None, :], mask=inside)


def from_text(name, parameters):
    """A launcher of an example in tile text, by the way a decorated kernel takes."""
    text = (ROOT / "examples" / f"{name}.mlir").read_text()
    made = _girih.Kernel(text, name, {}, kernel_error)
    described = [(p, "unspecialised", False, None) for p in parameters]
    dispatcher = _girih.Dispatcher(described, lambda *_: made, describe_array, dtype_name)
    return lambda grid, *args: dispatcher.launch(grid, None, args, {})


def median(launch):
    for _ in range(200):
        launch()
    times = []
    for _ in range(LAUNCHES):
        start = time.perf_counter_ns()
        launch()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class DLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def launches():
    n = 1024
    arrays = [np.ones(n, np.float32) for _ in range(3)]
    kept = scaled_add[(1,)]

    def with_arguments(kinds):
        return lambda: kept(*kinds, n, 2.0, BLOCK=1024)

    rows = [
        ("kernel[grid](...)", lambda: scaled_add[(1,)](*arrays, n, 2.0, BLOCK=1024), 8),
        ("a kept launcher", with_arguments(arrays), 8),
        ("a grid function", lambda: scaled_add[lambda m: (girih.cdiv(n, m["BLOCK"]),)](*arrays, n, 2.0, BLOCK=1024), 8),
        ("__array_interface__", with_arguments([Interface(a) for a in arrays]), 12),
        ("DLPack", with_arguments([DLPack(a) for a in arrays]), 12),
    ]
    try:
        import torch

        tensors = [torch.from_numpy(a) for a in arrays]
        tuned = girih.autotune([girih.Config({"BLOCK": 1024})], key=["n"])(scaled_add)[(1,)]
        rows.append(("PyTorch", with_arguments(tensors), 4))
        rows.append(("PyTorch, autotuned", lambda: tuned(*tensors, n, 2.0), 5))
        rows.append(("30 tensors of PyTorch", lambda: sum_of_many[(1,)](*[tensors[0]] * 29, tensors[2], BLOCK=1024), 8))
    except ImportError:
        pass
    return [(name, median(launch), limit, "us") for name, launch, limit in rows]


IMPORT = """
import time
start = time.perf_counter()
import girih
print(time.perf_counter() - start)
"""

FIRST = """
import time
import numpy as np
import girih
import girih.language as tl

x = np.ones((64, 1000), np.float32)
out = np.zeros_like(x)
start = time.perf_counter()

@girih.jit
def softmax(src, dst, n, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(src + row * n + j, mask=j < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(dst + row * n + j, e / tl.sum(e, axis=0), mask=j < n)

softmax[(64,)](x, out, 1000, BLOCK=1024)
print(time.perf_counter() - start)
assert abs(out.sum() - 64) < 1e-3
"""


def processes():
    import os

    def seconds(program, cache):
        environment = {**os.environ, "GIRIH_CACHE_DIR": str(cache)}
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(program)
            script.flush()
            done = subprocess.run([sys.executable, script.name], capture_output=True, text=True, env=environment, check=True)
        return float(done.stdout)

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        empty = [Path(folder) / str(i) for i in range(PROCESSES)]
        for name, program, caches, limit in [
            ("import girih", IMPORT, empty, 60),
            ("first result, empty cache", FIRST, empty, 400),
            ("first result, from the cache", FIRST, empty, 30),
        ]:
            rows.append((name, min(seconds(program, cache) for cache in caches) * 1e3, limit, "ms"))
    return rows


def beside_text():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4096, 1000), dtype=np.float32)
    out = np.zeros_like(x)
    wide = rng.standard_normal((8192, 512), dtype=np.float32)
    wide_out, w, b = np.zeros_like(wide), rng.random(512, dtype=np.float32), rng.random(512, dtype=np.float32)
    text_softmax = from_text("softmax", ["src", "dst", "n"])
    text_norm = from_text("layer_norm", ["X", "W", "B", "Y", "eps", "rows"])
    pairs = [
        ("softmax of 4096x1000", lambda: softmax[4096](x, out, 1000, BLOCK=1024), lambda: text_softmax(4096, x, out, 1000), out),
        ("layer norm of 8192x512", lambda: layer_norm[2048](wide, w, b, wide_out, 1e-5, 8192, N=512, ROWS=4),
         lambda: text_norm(2048, wide, w, b, wide_out, 1e-5, 8192), wide_out),
    ]  # fmt: skip
    rows = []
    for name, python, text, result in pairs:
        python()
        first = result.copy()
        text()
        assert np.allclose(first, result, rtol=1e-5, atol=1e-6), name
        times = [[], []]
        for _ in range(ROUNDS):
            for launch, into in zip((python, text), times):
                start = time.perf_counter()
                launch()
                into.append(time.perf_counter() - start)
        rows.append((f"{name}, Python over text", min(times[0]) / min(times[1]), 1.1, "x"))
    return rows


def main():
    rows = [*launches(), *processes(), *beside_text()]
    if "--json" in sys.argv[1:]:
        keys = ("name", "value", "limit", "unit")
        print(json.dumps([dict(zip(keys, row)) for row in rows], indent=1))
        return
    for name, value, limit, unit in rows:
        over = "" if value <= limit else "   over"
        print(f"{name:42} {value:10.2f} {unit:2}   of {limit:6} {unit:2}{over}")


if __name__ == "__main__":
    main()
