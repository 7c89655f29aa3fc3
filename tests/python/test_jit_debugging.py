"""`breakpoint()` in kernels: Python's debugger on the evaluator, with the kernel's variables as NumPy's arrays."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import girih
import girih.language as tl


class Stops:
    """A breakpoint hook that keeps the debugger's output."""

    def __init__(self, monkeypatch):
        self.frames = []
        monkeypatch.setattr(sys, "breakpointhook", self)

    def __call__(self, *args, **kwargs):
        frame = sys._getframe(1)
        self.frames.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))

    def variables(self):
        return [{k: v for k, v in found.items() if not k.startswith("__")} for _, _, found in self.frames]

    def blocks(self):
        return [found["__block__"] for _, _, found in self.frames]


@pytest.fixture
def stops(monkeypatch):
    return Stops(monkeypatch)


@girih.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    value = tl.load(x + i, mask=inside, other=0.0)
    breakpoint()
    tl.store(out + i, value * 2, mask=inside)


BREAK = kernel.fn.__code__.co_firstlineno + 5
X = np.arange(6, dtype=np.float32) + 0.5


def test_a_breakpoint_shows_the_variables_of_each_block(stops):
    out = np.zeros(6, np.float32)
    kernel[2](X, out, 6, BLOCK=4, device="eval")
    assert np.array_equal(out, X * 2), "the kernel goes on"
    assert stops.blocks() == [(0, 0, 0), (1, 0, 0)]
    assert [(file, line) for file, line, _ in stops.frames] == [(__file__, BREAK)] * 2
    first, second = stops.variables()
    assert first["BLOCK"] == 4 and first["n"] == 6
    assert first["value"].dtype == np.float32 and first["value"].tolist() == [0.5, 1.5, 2.5, 3.5]
    assert second["value"].tolist() == [4.5, 5.5, 0, 0]
    assert second["i"].dtype == np.int32 and second["i"].tolist() == [4, 5, 6, 7]
    assert second["inside"].dtype == np.bool_ and second["inside"].tolist() == [True, True, False, False]


def test_addresses_are_shown_as_numbers(stops):
    out = np.zeros(6, np.float32)
    kernel[1](X, out, 6, BLOCK=4, device="eval")
    (found,) = stops.variables()
    assert int(found["x"]) == X.ctypes.data and int(found["out"]) == out.ctypes.data


def test_stores_before_a_breakpoint_have_happened(stops, monkeypatch):
    out = np.zeros(2, np.int32)
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(out.tolist()))

    @girih.jit
    def two(out):
        tl.store(out, 1)
        breakpoint()
        tl.store(out + 1, 2)

    two[1](out, device="eval")
    assert seen == [[1, 0]] and out.tolist() == [1, 2]


def test_one_block_is_chosen_with_an_if(stops):
    @girih.jit
    def chosen(out):
        block = tl.program_id(0)
        if block == 2:
            breakpoint()
        tl.store(out + block, block)

    out = np.zeros(4, np.int32)
    chosen[4](out, device="eval")
    assert stops.blocks() == [(2, 0, 0)] and out.tolist() == [0, 1, 2, 3]


def test_in_a_loop_it_stops_each_time(stops):
    @girih.jit
    def looped(out, n):
        total = 0
        for k in range(n):
            total += k
            breakpoint()
        tl.store(out, total)

    out = np.zeros(1, np.int32)
    looped[1](out, 4, device="eval")
    assert [(int(v["k"]), int(v["total"])) for v in stops.variables()] == [(0, 0), (1, 1), (2, 3), (3, 6)]
    assert out[0] == 6


def test_in_an_inlined_function_it_shows_that_function(stops):
    @girih.jit
    def inner(a, b):
        c = a + b
        breakpoint()
        return c

    @girih.jit
    def outer(out):
        hidden = tl.arange(0, 2)
        tl.store(out + hidden, inner(hidden, 10))

    outer[1](np.zeros(2, np.int32), device="eval")
    (found,) = stops.variables()
    assert sorted(found) == ["a", "b", "c"] and found["c"].tolist() == [10, 11] and found["b"] == 10
    assert stops.frames[0][1] == inner.fn.__code__.co_firstlineno + 3


@pytest.mark.parametrize(
    "dtype,values",
    [
        ("float16", [1.5, -2.0, np.inf, 6e-8]),
        ("float32", [1e-45, -0.0, 3.4e38, np.nan]),
        ("float64", [5e-324, 1 / 3, -1e308, np.inf]),
        ("int8", [-128, 127, 0, -1]),
        ("uint8", [0, 255, 1, 2]),
        ("int64", [-(2**63), 2**63 - 1, 0, 1]),
        ("uint64", [0, 2**64 - 1, 2**63, 1]),
    ],
)
def test_values_are_exact(stops, dtype, values):
    @girih.jit
    def show(x):
        value = tl.load(x + tl.arange(0, 4))
        breakpoint()
        tl.store(x + tl.arange(0, 4), value)

    x = np.array(values, dtype)
    show[1](x, device="eval")
    (found,) = stops.variables()
    assert found["value"].dtype == x.dtype and found["value"].tobytes() == x.tobytes()


def test_tiles_of_two_axes(stops):
    @girih.jit
    def show(out):
        grid = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
        breakpoint()
        tl.store(out + grid, grid)

    show[1](np.zeros((2, 4), np.int32), device="eval")
    assert stops.variables()[0]["grid"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_large_tiles_are_whole(stops):
    @girih.jit
    def show(out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        breakpoint()
        tl.store(out + i, i)

    show[1](np.zeros(4096, np.int32), BLOCK=4096, device="eval")
    assert np.array_equal(stops.variables()[0]["i"], np.arange(4096))


def test_an_exception_of_the_hook_ends_the_launch(monkeypatch):
    out = np.zeros(6, np.float32)
    monkeypatch.setattr(sys, "breakpointhook", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        kernel[2](X, out, 6, BLOCK=4, device="eval")
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)
    kernel[2](X, out, 6, BLOCK=4, device="eval")
    assert np.array_equal(out, X * 2), "the next launch is another one"


def test_natively_it_is_refused_with_the_way_to_do_it():
    with pytest.raises(girih.CompilationError, match="a breakpoint stops only on the evaluator") as caught:
        kernel[1](X, np.zeros(6, np.float32), 6, BLOCK=4)
    assert f"test_jit_debugging.py:{BREAK}" in str(caught.value)
    assert 'device="eval"' in caught.value.help


def test_the_page_of_a_kernel_is_written_whole(tmp_path):
    page = tmp_path / "page.html"
    assert kernel.explain(X, X, 6, BLOCK=4, html=page) == kernel.explain(X, X, 6, BLOCK=4)
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "<title>kernel" in text
    assert all(f'"{stage}"' in text for stage in ("cuda_tile", "loop", "tile", "kernel", "c"))
    # Its source is this file, and lines of the kernel lead to other stages.
    source = next(s for s in json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)[1])["stages"])
    assert source["language"] == "python" and "def kernel(x, out, n, BLOCK" in source["text"]
    first = source["text"].splitlines().index("def kernel(x, out, n, BLOCK: tl.constexpr):") + 1
    assert source["begin"] == first and {line for line, _ in source["links"]} <= set(range(first, first + 10))
    with pytest.raises(OSError):
        kernel.explain(X, X, 6, BLOCK=4, html=tmp_path / "nowhere" / "page.html")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_kernel_with_a_breakpoint_can_be_looked_at():
    assert "print_tko" in kernel.tile_ir(X, X, 6, BLOCK=4, device="eval")
    assert "print_tko" not in kernel.tile_ir(X, X, 6, BLOCK=4)
    assert "kernel" in kernel.ir("c", X, X, 6, BLOCK=4) and kernel.explain(X, X, 6, BLOCK=4)
    # Such a look makes no launch that passes the breakpoint by.
    for run in (kernel[1], lambda *a, **k: kernel.warmup(*a, grid=(1,), **k)):
        with pytest.raises(girih.CompilationError, match="a breakpoint stops only on the evaluator"):
            run(X, X.copy(), 6, BLOCK=4)


SCRIPT = """
    import numpy as np, girih, girih.language as tl

    @girih.jit
    def kernel(x, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        square = tl.load(x + i) * tl.load(x + i)
        breakpoint()
        tl.store(out + i, square)

    out = np.zeros(4, np.float32)
    kernel[2](np.arange(4, dtype=np.float32), out, BLOCK=4)
    print("result", out)
"""


@pytest.fixture
def debug(write, tmp_path):
    def debug(*commands):
        script = write("kernel.py", SCRIPT)
        done = subprocess.run(
            [sys.executable, str(script)],
            input="\n".join(commands) + "\n",
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
            env={**os.environ, "GIRIH_DEVICE": "eval"},
        )
        return done.stdout, done.stderr, done.returncode

    return debug


def test_pdb_shows_variables_and_goes_on(debug):
    out, err, code = debug("p square.sum()", "p __block__", "c", "p __block__", "c")
    assert code == 0, err
    assert "14.0" in out and "(0, 0, 0)" in out and "(1, 0, 0)" in out
    # Newer Pythons stop on the line itself, older ones on the next.
    assert "kernel.py(8)" in out or "kernel.py(9)" in out
    assert "result [0. 1. 4. 9.]" in out


def test_pdb_lists_the_kernel(debug):
    out, err, code = debug("l", "c", "c")
    assert code == 0, err
    assert "square = tl.load(x + i) * tl.load(x + i)" in out


def test_quitting_the_debugger_ends_the_launch(debug):
    out, err, code = debug("q")
    assert code != 0 and "result" not in out
    assert "Traceback" in err or err == ""
