"""Libraries of `girih build --cpu aarch64`, run on that processor, give the evaluator's results.

    .venv/bin/python tests/aarch64.py target/release/girih [--filter WORD]

The models are those of tests/models.py, for all their extents and one-liners: functions, narrow
floats, integers, reductions, products, convolutions, sorts. Compiled with -Wall -Wextra -Werror by Debian's
`gcc-aarch64-linux-gnu`, run by `qemu-user`. Integers and truth values are the same; floats differ by rounding.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx

import models

NEEDS = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu", "qemu-aarch64": "qemu-user"}
LINES = [
    *(f"torch.{f}(torch.randn(7, 33) * 3)" for f in "exp sin cos tan tanh erf sigmoid expm1 atan floor round abs sign".split()),
    *(f"torch.{f}(torch.rand(7, 33) * 9 + 0.1)" for f in "log log2 log1p sqrt rsqrt reciprocal".split()),
    *(f"torch.{f}(torch.randn(9, 70), dim=1)" for f in "sum amax argmax cumsum softmax logsumexp var".split()),
    *(f"torch.randn(5, 40).to(torch.{d}) * 2 + 1" for d in "bfloat16 float16 float64 int8 int32 int64".split()),
    *(f"torch.randn(24, 58).to(torch.{d}) @ torch.randn(58, 40).to(torch.{d})" for d in "float32 bfloat16 float16 float64".split()),
    "torch.randint(-9, 9, (24, 58)) @ torch.randint(-9, 9, (58, 40))",
    "torch.randint(-99, 99, (5, 40)) // 7 % 5",
    "torch.sort(torch.randn(3, 300))[0]",
    "torch.topk(torch.randn(4, 500), 7)[1]",
    "torch.nn.Conv2d(6, 8, 3, padding=1)(torch.randn(2, 6, 13, 11))",
    "torch.nn.ConvTranspose2d(6, 8, 3, 2, 1)(torch.randn(2, 6, 7, 9))",
    "torch.nn.MaxPool2d(3, 2, 1)(torch.randn(2, 6, 13, 11))",
    "torch.nn.functional.layer_norm(torch.randn(6, 77), (77,))",
    "torch.nn.functional.gelu(torch.randn(6, 77))",
    "torch.randn(30, 50).t().contiguous()",
]


def program(header, run, sizes):
    """A C program that reads the arguments from files named as the parameters, and writes the outputs there."""
    parameters = re.search(r"\blib_run\(([^;]*)\);", header).group(1).split(",")
    lines, args = [], []
    for one in parameters:
        ty, name = re.fullmatch(r"(.*?[ *])(\w+)", one.strip()).groups()
        args.append(name)
        if name == "arena":
            extents = "".join(f", {n}" for n in run["symbols"])
            lines.append(f"size_t bytes = lib_arena(1{extents}); void *arena = aligned_alloc(64, (bytes + 127) / 64 * 64);")
        elif name == "weights":
            lines.append('const void *weights = lib_map("built/lib.weights"); if (!weights) return perror("weights"), 1;')
        elif "*" in ty:
            what = "0" if name in sizes else f'"{name}"'
            lines.append(f"void *{name} = memory({what}, {sizes.get(name, 0)});")
        else:
            lines.append(f"const {ty.strip()} {name} = {run['symbols'][name]};")
    # Extents are needed before the arena is.
    lines.sort(key=lambda line: not line.startswith("const int"))
    after = [f'  keep("{name}", {name}, {size});' for name, size in sizes.items()]
    return "\n".join([PROGRAM, *(f"  {line}" for line in lines), f"  int result = lib_run({', '.join(args)});",
                      '  if (result) return fprintf(stderr, "%s\\n", lib_message(result)), 1;', *after, "  return 0;", "}", ""])  # fmt: skip


PROGRAM = r"""#include "built/lib.h"
#include <stdio.h>
#include <stdlib.h>

static void *memory(const char *file, size_t bytes) {
  FILE *from = file ? fopen(file, "rb") : 0;
  if (from) fseek(from, 0, SEEK_END), bytes = ftell(from), rewind(from);
  char *made = malloc(bytes + 1);
  if (!made || (file && (!from || fread(made, 1, bytes, from) != bytes))) exit(1);
  return made;
}

static void keep(const char *file, const void *from, size_t bytes) {
  FILE *to = fopen(file, "wb");
  if (!to || fwrite(from, 1, bytes, to) != bytes || fclose(to)) exit(1);
}

int main(void) {"""


def filled(dtype, shape, line):
    """An input of a one-liner: as it fills it, though with other numbers."""
    rng = np.random.default_rng(0)
    shape = [int(n) for n in shape.split(",") if n.strip()]
    if dtype.startswith("i"):
        return rng.integers(-9, 9, shape).astype(f"int{dtype[1:]}")
    return (rng.random(shape) if "torch.rand(" in line else rng.standard_normal(shape)).astype(f"float{dtype[1:]}")


def check(binary, what, folder, inputs, outputs, symbols):
    """Builds, runs, and compares with the evaluator. `what` are the words that name the model."""
    path = lambda *parts: os.path.join(folder, *parts)
    built = path("built")
    if not os.path.exists(built):
        subprocess.run([binary, "build", *what, "--cpu", "aarch64", "-o", built, "--name", "lib"], check=True, capture_output=True)
    header = open(path("built", "lib.h")).read()
    c_names = {n: c for c, n in re.findall(r"//   (?:in |out) (\w+) +(\S+): ", header)}
    flags = []
    inputs = inputs or {n: filled(dtype, shape, what[-1]) for n, dtype, shape in re.findall(r"//   in  \w+ +(\S+): (\w+)\[([\d, ]*)\]", header)}
    for n, array in inputs.items():
        np.save(path(f"{c_names[n]}.npy"), array)
        flags += ["--arg", f"{n}={path(c_names[n])}.npy"]
    outputs = outputs or [n for n in c_names if re.search(rf"//   out {re.escape(c_names[n])} ", header)]
    for n in outputs:
        flags += ["--save", f"{n}={path(c_names[n])}.want.npy"]
    subprocess.run([binary, "run", *what, "--device", "eval", *flags], check=True, capture_output=True)
    for n, array in inputs.items():
        array.tofile(path(c_names[n]))
    wants = {n: np.load(path(f"{c_names[n]}.want.npy")) for n in outputs}
    open(path("main.c"), "w").write(program(header, {"symbols": symbols}, {c_names[n]: w.nbytes for n, w in wants.items()}))
    compile = ["aarch64-linux-gnu-gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "main.c", "built/liblib.a", "-lm", "-o", "main"]
    subprocess.run(compile, cwd=folder, check=True)
    subprocess.run(["qemu-aarch64", "./main"], cwd=folder, check=True)
    kinds = dict(re.findall(r"//   out (\w+) +\S+: (\w+)", header))
    for n, want in wants.items():
        kind = kinds[c_names[n]]
        got = np.fromfile(path(c_names[n]), want.dtype).reshape(want.shape)
        if kind in ("bf16", "f16"):
            narrow = ml_dtypes.bfloat16 if kind == "bf16" else np.float16
            got, want = (np.ascontiguousarray(x).view(narrow).astype(np.float64) for x in (got, want))
        step = {"bf16": 2.0**-7, "f16": 2.0**-10, "f64": 1e-13}.get(kind, 1e-5)
        finite = np.isfinite(want) if want.dtype.kind == "f" else np.ones(want.shape, bool)
        scale = np.abs(want[finite]).max(initial=1.0) if want.dtype.kind == "f" else 0
        same = np.array_equal(got, want, equal_nan=want.dtype.kind == "f")
        near = np.array_equal(np.where(finite, 0, got), np.where(finite, 0, want), equal_nan=True) and (
            np.abs(got.astype(np.float64) - want.astype(np.float64))[finite].max(initial=0.0) <= step * scale
        )
        if not (same or near):
            return f"{n} differs"
    return None


def of_line(binary, line):
    with tempfile.TemporaryDirectory() as folder:
        return check(binary, ["-c", line], folder, {}, None, {})


def of_model(binary, name):
    model, runs, _ = models.MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        for run in runs:
            symbols = {}
            for port in model.graph.input:
                for dim, extent in zip(port.type.tensor_type.shape.dim, run[port.name].shape):
                    if dim.dim_param:
                        symbols[dim.dim_param] = extent
            if problem := check(binary, [path], folder, run, [o.name for o in model.graph.output], symbols):
                return f"{problem} for {symbols}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--filter", default="")
    given = parser.parse_args()
    missing = [package for command, package in NEEDS.items() if not shutil.which(command)]
    if missing:
        sys.exit(f"this needs what is not installed: apt install {' '.join(missing)}")
    binary = os.path.abspath(given.binary)
    tests = [(line, lambda line=line: of_line(binary, line)) for line in LINES]
    # A library has one form for all extents, and this model has none.
    tests += [(name, lambda name=name: of_model(binary, name)) for name in models.MODELS if name != "shaped"]
    tests = [t for t in tests if given.filter in t[0]]
    failed = 0
    for name, run in tests:
        try:
            problem = run()
        except subprocess.CalledProcessError as e:
            problem = f"{e.cmd[0]}: exit {e.returncode}\n{(e.stderr or b'').decode()}"
        if problem:
            failed += 1
            print(f"FAILED {name}: {problem}")
    print(f"aarch64: {len(tests) - failed} of {len(tests)} give what the evaluator gives")
    sys.exit(bool(failed) or not tests)


main()
