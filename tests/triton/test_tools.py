"""The commands that take kernels in Triton's words: libraries in C, checks of scripts, and how they are asked."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from girih import _library
from girih.tune import command
from girih.scripts import check_text
from girih.scripts.signatures import Wrong, parse

SCRIPT = """
import triton
import triton.language as tl

SCALE = 3


@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr, TWICE: tl.constexpr = True):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if TWICE:
        v = v * 2
    tl.store(out + i, v, mask=i < n)


if __name__ == "__main__":
    raise SystemExit("the script is not run")
"""

JIT = """
import girih
import girih.language as tl


@girih.jit
def scaled(x, out, n, BLOCK: girih.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
"""


def girih(*args, **options):
    environment = {**os.environ, "GIRIH_PYTHON": sys.executable}
    return subprocess.run([command(), *map(str, args)], capture_output=True, text=True, env=environment, **options)


@pytest.mark.parametrize("text", [SCRIPT, JIT], ids=["triton", "girih"])
def test_a_library(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    made = girih("build", f"{script}:scaled", "--signature", "*fp32, *fp32, i32, BLOCK=64", "-o", tmp_path / "out")
    assert made.returncode == 0, made.stderr
    header = (tmp_path / "out/scaled.h").read_text()
    assert "int scaled_run(" in header
    compiler = shutil.which(os.environ.get("CC", "cc"))
    library = tmp_path / "libscaled.so"
    whole = ["-Wl,--whole-archive", tmp_path / "out/libscaled.a", "-Wl,--no-whole-archive"]
    subprocess.run([compiler, "-shared", "-o", library, *whole, "-lm"], check=True)
    x, out = np.arange(100, dtype="float32"), np.zeros(100, dtype="float32")
    scratch, grid = ctypes.create_string_buffer(1 << 16), (ctypes.c_uint32 * 3)(2, 1, 1)
    arrays = [given for a in (x, out) for given in (a.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(a.nbytes))]
    assert ctypes.CDLL(str(library)).scaled_run(scratch, grid, *arrays, ctypes.c_int32(100)) == 0
    np.testing.assert_array_equal(out, 2 * x)


def test_what_is_wrong_with_a_signature(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for kernel, signature, message in [
        ("scaled", "*fp32, *fp32, i32", "the signature says nothing of `BLOCK`"),
        ("scaled", "*fp33, *fp32, i32, 64", "`*fp33` is neither a type nor a constant"),
        ("scaled", "*fp32:8, *fp32, i32, 64", "expected `:16` or `:1`"),
        ("scaled", "*fp32, *fp32, i32, 64, True, 5", "`5` names no parameter"),
        ("scalde", "*fp32", "has no kernel `scalde`; it has scaled"),
        ("SCALE", "*fp32", "`SCALE` of"),
    ]:
        ran = girih("build", f"{script}:{kernel}", "--signature", signature, "-o", tmp_path / "out")
        assert ran.returncode == 1 and message in ran.stderr, ran.stderr
        assert not (tmp_path / "out").exists()
    assert "--signature" in girih("build", f"{script}:scaled", "-o", tmp_path / "out").stderr
    assert girih("compile", tmp_path / "none.ttir", "--signature", "i32").returncode == 2


def test_signatures():
    names = ["x", "n", "BLOCK", "KIND", "p"]
    found = parse('*bf16:16, i64:1, 128, "a, b", p=fp32', names, {})
    assert [(g.type, g.divisor, g.constant) for g in found.values()] == [
        ("*bf16", 16, None), (None, 1, 1), (None, 1, 128), (None, 1, "a, b"), ("fp32", 1, None),
    ]  # fmt: skip
    assert parse("*i8, BLOCK=(1, 2), n=i32:16", ["x", "n", "BLOCK"], {})["BLOCK"].constant == (1, 2)
    assert parse("i32", ["n", "P"], {"P": None})["P"].constant is None
    for text in ["*i8", "x=*i8, 5", "*i8, i32, 3", "i32, q=3", "**i8, i32"]:
        with pytest.raises(Wrong):
            parse(text, ["x", "n"], {})


def problems(text, path):
    return [(p.severity, p.line, p.message) for p in check_text(text, str(path))]


def test_check_finds_what_is_wrong_without_running(tmp_path):
    script = tmp_path / "script.py"
    assert problems(SCRIPT, script) == []
    wrong = SCRIPT.replace("v = v * 2", "v = tl.dto(v, v)")
    script.write_text(wrong)
    [(severity, line, message)] = problems(wrong, script)
    assert (severity, line) == ("error", 13) and "dto" in message
    inner = SCRIPT.replace("@triton.jit\ndef scaled", "@triton.jit\ndef helper(v):\n    return v + nothing\n\n\n@triton.jit\ndef scaled")
    inner = inner.replace("v = v * 2", "v = helper(v)")
    script.write_text(inner)
    [found] = check_text(inner, str(script))
    assert found.line == 10 and "nothing" in found.message and [call[1] for call in found.calls] == [18]
    assembly = SCRIPT.replace("v = v * 2", 'v = tl.inline_asm_elementwise("x", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)')
    script.write_text(assembly)
    [(severity, line, message)] = problems(assembly, script)
    assert (severity, line) == ("error", 13) and "inline_asm" in message
    ran = girih("check", script)
    assert ran.returncode == 1 and "script.py:13" in ran.stderr.replace(str(tmp_path), "")


def test_check_says_what_only_a_run_knows(tmp_path):
    unknown = SCRIPT.replace("SCALE = 3", "SCALE = tl.constexpr(open('x').read())").replace("v * 2", "v * SCALE")
    [(severity, _, message)] = problems(unknown, tmp_path / "script.py")
    assert severity == "note" and "SCALE" in message


def test_check_takes_the_constants_of_configurations(tmp_path):
    tuned = SCRIPT.replace(
        "@triton.jit\n", '@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=8)], key=["n"])\n@triton.jit\n'
    )
    assert problems(tuned, tmp_path / "script.py") == []
    odd = tuned.replace('"BLOCK": 64', '"BLOCK": 63')
    (tmp_path / "script.py").write_text(odd)
    [(severity, line, message)] = problems(odd, tmp_path / "script.py")
    assert (severity, line) == ("error", 11) and "power of 2" in message


def test_explain_and_compile_take_a_kernel_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    signature = ("--signature", "*fp32:16, *fp32:16, i32, 64")
    page = girih("explain", f"{script}:scaled", *signature, "--html", tmp_path / "page.html")
    assert page.returncode == 0, page.stderr
    # Its source is the script.
    page = (tmp_path / "page.html").read_text()
    assert "raise SystemExit(\\\"the script is not run" in page and '"language":"python"' in page
    tile = girih("compile", f"{script}:scaled", *signature, "--ir", "cuda_tile")
    assert tile.returncode == 0 and "entry @scaled" in tile.stdout, tile.stderr


def test_pointers_that_a_loop_advances_are_index_arithmetic():
    kernels = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.py")
    # `right` moves by a number of rows, which the loop computes.
    signature = ("--signature", "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, 32, 32, 16")
    loops = girih("compile", f"{kernels}:matmul", *signature, "--ir", "loop")
    assert loops.returncode == 0, loops.stderr
    assert "load a[" in loops.stdout and "load b[" in loops.stdout and "ptr f16[" not in loops.stdout, loops.stdout


def test_products_ahead_of_time_are_exact_as_those_of_launches(tmp_path):
    script = tmp_path / "square.py"
    script.write_text("""
import triton
import triton.language as tl


@triton.jit
def square(x, out, N: tl.constexpr, HOW: tl.constexpr = None):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(x + at), input_precision=HOW))
""")
    for how, rounded in (("", False), (", 'tf32'", True)):
        ran = girih("compile", f"{script}:square", "--signature", f"*fp32, *fp32, 16{how}", "--ir", "kernel")
        assert ran.returncode == 0, ran.stderr
        assert ("tf32" in ran.stdout) == rounded, ran.stdout


def test_children_run_with_the_pretence(tmp_path):
    program = tmp_path / "parent.py"
    child = "import json, girih.triton.hosting as h; print(json.dumps([h._installed, h.asked()]))"
    program.write_text(
        "import subprocess, sys\n"
        f"print(subprocess.run([sys.executable, '-c', {child!r}], capture_output=True, text=True).stdout)\n"
    )
    for flag, expected in (("--children", [True, True]), ("--check", [False, True])):
        ran = subprocess.run([sys.executable, "-m", "girih.triton", flag, str(program)], capture_output=True, text=True)
        assert json.loads(ran.stdout) == expected, ran.stderr


def test_a_failing_test_says_that_children_ran_without(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\n"
        "def test_it():\n"
        "    code = 'import sys, girih.triton.hosting as h; sys.exit(not h._installed)'\n"
        "    assert subprocess.run([sys.executable, '-c', code]).returncode == 0\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "girih.triton", "-p", "no:cacheprovider"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIRIH_")}
    without = subprocess.run([*command, "test_it.py"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert without.returncode == 1 and "GIRIH_TRITON_CHILDREN=1" in without.stdout, without.stdout
    redirected = subprocess.run([*command, "--girih-children", "test_it.py"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert redirected.returncode == 0, redirected.stdout


PRETENDED = """
import torch, triton, triton.language as tl
from girih.cutile import torch_cpu

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

x, y, out = (torch.rand(256, device="cuda") for _ in range(3))
add[(1,)](x, y, out, 256, BLOCK=256)
calls, real = [], torch_cpu._Redirect.call
torch_cpu._Redirect.call = lambda *given: calls.append(given[1]) or real(*given)
add[(1,)](x, y, out, 256, BLOCK=256)
print("translated", len(calls))
assert out.shape == (256,) and out.device.type == "cuda" and torch.equal(out, x + y)
"""


def test_a_launch_on_a_pretended_device_asks_tensors_directly(tmp_path):
    """The pretence translates none of a launch's questions after addresses and types."""
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(PRETENDED)
    ran = subprocess.run([sys.executable, "-m", "girih.triton", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["translated", "0"]


# NVIDIA's driver takes itself for active where PyTorch says that CUDA is there, as it does where CUDA is pretended.
WITH_CUDA = """
import sys
from types import ModuleType, SimpleNamespace

torch = sys.modules["torch"] = ModuleType("torch")
torch.cuda, torch.version = SimpleNamespace(is_available=lambda: True), SimpleNamespace(hip=None)
import triton

print(type(triton.runtime.driver.active).__name__)
"""


@pytest.mark.parametrize("module", [["-m", "girih.triton"], []])
def test_an_installed_package_is_the_only_active_driver(tmp_path, module):
    """Triton finds the entry point of an installed package by itself, before or after the package is imported."""
    script = tmp_path / "script.py"
    script.write_text(WITH_CUDA)
    installed = tmp_path / "packages" / "girih_entry-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: girih-entry\nVersion: 0\n")
    (installed / "entry_points.txt").write_text("[triton.backends]\ngirih = girih.triton\ncpu = girih.triton.cpu\n")
    package = pathlib.Path(_library.__file__).parent.parent
    environment = os.environ | {"GIRIH_TRITON": "1", "PYTHONPATH": f"{installed.parent}{os.pathsep}{package}"}
    ran = subprocess.run([sys.executable, *module, script], capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stdout) == (0, "GirihDriver\n"), ran.stderr


def test_the_interpreter_takes_part_in_measurements():
    torch = pytest.importorskip("torch")
    from girih.bench.interpreted import Interpreter

    x, y = torch.randn(2, 2000)
    one = Interpreter("vector add 4M", (x, y), 1)
    one.run()
    assert torch.equal(one.results(None), x + y)
    short = Interpreter("vector add 4M", (x,), 1)
    with pytest.raises(RuntimeError, match="missing 1 required positional argument"):
        short.run()
