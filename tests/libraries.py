"""Libraries that `girih build` writes, called from here, give the bits that `girih run` gives.

    .venv/bin/python tests/libraries.py target/release/girih [--filter WORD]

The models are those of tests/models.py, for all their extents; the tile programs are examples/, on the arguments of their
launch comments. The C is compiled with -Wall -Wextra -Werror and called on one thread and on several; a C program runs the
ResNet. Libraries for GPUs compile against CUDA's headers, where the environment has them.
"""

import argparse
import concurrent.futures
import ctypes
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import models

WORKERS = 3
EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "examples")
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int64, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, BODY, ctypes.c_void_p)
SCALARS = {"size_t": ctypes.c_size_t, "float": ctypes.c_float, "double": ctypes.c_double}


class Threads(ctypes.Structure):
    """NAME_threads of a header: workers that take blocks one by one."""

    _fields_ = [("workers", ctypes.c_uint), ("run", RUN), ("user", ctypes.c_void_p)]

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)

        def run(_, blocks, body, step):
            def work(worker):
                for block in range(worker, blocks, WORKERS):
                    body(step, worker, block, block + 1)

            list(self.pool.map(work, range(WORKERS)))

        super().__init__(WORKERS, RUN(run), None)


class Library:
    """A folder that `girih build` wrote, loaded."""

    def __init__(self, folder):
        self.folder = folder
        self.name = json.load(open(os.path.join(folder, "build.json")))["name"]
        path = lambda ending: os.path.join(folder, self.name + ending)
        self.header, source = open(path(".h")).read(), open(path(".c")).read()
        command = source.splitlines()[0].removeprefix("// ").split()
        shared = path(".so")
        warned = [*command[:-2], "-Wall", "-Wextra", "-Werror", "-shared", path(".c"), "-o", shared, "-lm"]
        subprocess.run(warned, check=True)
        self.loaded = ctypes.CDLL(shared)
        self.message = getattr(self.loaded, f"{self.name}_message")
        self.message.restype = ctypes.c_char_p

    def parameters(self, function):
        """(type, name) of each parameter of a function."""
        found = re.search(rf"\b{self.name}_{function}\(([^;]*)\);", self.header).group(1)
        return [re.fullmatch(r"(.*?[ *])(\w+)(?:\[3\])?", one.strip()).groups() for one in found.split(",")]

    def call(self, function, given, threads=None):
        """Calls with arguments by name."""
        args = [ctypes.byref(threads)] if threads else []
        for ty, name in self.parameters(function):
            value = given[name]
            if "*" in ty or name == "grid":
                args.append(ctypes.c_void_p(value.ctypes.data if isinstance(value, np.ndarray) else value))
            else:
                ty = ty.strip()
                args.append((SCALARS.get(ty) or getattr(ctypes, f"c_{ty.removesuffix('_t')}"))(value))
        result = getattr(self.loaded, f"{self.name}_{function}{'_on' if threads else ''}")(*args)
        if result:
            raise RuntimeError(self.message(result).decode())


def build(binary, what, folder):
    subprocess.run([binary, "build", what, "-o", folder, "--name", "lib"], check=True, capture_output=True)
    return Library(folder)


def aligned(bytes):
    """Memory at a multiple of 64."""
    memory = np.zeros(bytes + 64, np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip : skip + bytes]


def same(a, b):
    """Returns True if arrays have the same bits, NaNs aside."""
    a, b = (np.asarray(x).reshape(-1) for x in (a, b))
    return a.dtype == b.dtype and a.size == b.size and bool(((a == b) | ((a != a) & (b != b))).all())


def of_model(binary, name, threads):
    model, runs, _ = models.MODELS[name]()
    dims = lambda port: [d.dim_param or d.dim_value for d in port.type.tensor_type.shape.dim]
    outputs = [o.name for o in model.graph.output]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        library = build(binary, path, os.path.join(folder, "built"))
        weights = None
        if "_WEIGHTS_BYTES" in library.header:
            library.loaded.lib_map.restype = ctypes.c_void_p
            weights = library.loaded.lib_map(os.path.join(library.folder, "lib.weights").encode())
            assert weights and not library.loaded.lib_map(path.encode())
        library.loaded.lib_arena.restype = ctypes.c_size_t
        c_names = {n: c for c, n in re.findall(r"//   (?:in |out) (\w+) +(\S+): ", library.header)}
        for run in runs:
            symbols = {}
            for port in model.graph.input:
                for dim, extent in zip(dims(port), run[port.name].shape):
                    if isinstance(dim, str) and dim.isidentifier():
                        symbols[dim] = extent
            flags = []
            for at, (n, array) in enumerate(run.items()):
                np.save(os.path.join(folder, f"in{at}.npy"), array)
                flags += ["--arg", f"{n}={folder}/in{at}.npy"]
            for at, n in enumerate(outputs):
                flags += ["--save", f"{n}={folder}/out{at}.npy"]
            subprocess.run([binary, "run", path, *flags], check=True, capture_output=True)
            want = [np.load(f"{folder}/out{at}.npy") for at in range(len(outputs))]
            for pool in (None, threads):
                extents = [symbols[n] for ty, n in library.parameters("arena")[1:]]
                arena = library.loaded.lib_arena(WORKERS if pool else 1, *(ctypes.c_int64(e) for e in extents))
                got = [np.zeros_like(w) for w in want]
                given = {"weights": weights, "arena": aligned(arena), **symbols}
                given.update({c_names[n]: np.ascontiguousarray(a) for n, a in run.items()})
                given.update({c_names[n]: a for n, a in zip(outputs, got)})
                library.call("run", given, pool)
                wrong = [n for n, g, w in zip(outputs, got, want) if not same(g, w)]
                if wrong:
                    return f"{', '.join(wrong)} differ for {symbols}"
    return None


def of_program(binary):
    """A model as the program in C runs it that a user would write."""
    model, runs, _ = models.MODELS["resnet"]()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda file: os.path.join(folder, file)
        onnx.save(model, path("resnet.onnx"))
        subprocess.run([binary, "build", path("resnet.onnx"), "-o", path("built")], check=True, capture_output=True)
        open(path("main.c"), "w").write(PROGRAM)
        flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-I" + path("built")]
        subprocess.run(["cc", *flags, path("main.c"), path("built/libresnet.a"), "-lm", "-o", path("main")], check=True)
        for run in runs:
            image = run["image"]
            np.save(path("image.npy"), image)
            image.tofile(path("image"))
            flags = ["--arg", f"image={path('image.npy')}", "--save", f"logits={path('logits.npy')}"]
            subprocess.run([binary, "run", path("resnet.onnx"), *flags], check=True, capture_output=True)
            command = [path("main"), path("built/resnet.weights"), str(len(image)), path("image")]
            said = subprocess.run(command, check=True, capture_output=True).stdout
            if not same(np.frombuffer(said, np.float32), np.load(path("logits.npy"))):
                return f"the logits of {len(image)} images differ"
    return None


PROGRAM = r"""#include "resnet.h"
#include <stdio.h>
#include <stdlib.h>

// main WEIGHTS IMAGES FILE: the logits of IMAGES images of 3x32x32 floats.
int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const size_t batch = strtoul(argv[2], 0, 10);
  const void *weights = resnet_map(argv[1]);
  if (!weights) return perror(argv[1]), 1;
  float *image = malloc(batch * 3 * 32 * 32 * sizeof *image), *logits = malloc(batch * 10 * sizeof *logits);
  void *arena = aligned_alloc(64, resnet_arena(1, batch));
  FILE *file = fopen(argv[3], "rb");
  if (!file || fread(image, 3 * 32 * 32 * sizeof *image, batch, file) != batch) return perror(argv[3]), 1;
  fclose(file);
  int result = resnet_run(weights, arena, batch, image, logits);
  if (result) return fprintf(stderr, "%s\n", resnet_message(result)), 1;
  fwrite(logits, 10 * sizeof *logits, batch, stdout);
  free(image), free(logits), free(arena);
  resnet_unmap(weights);
  return 0;
}
"""


def for_gpus(binary, path, headers):
    """Returns an error of the C compiler for the C around a GPU's kernels, or None."""
    for target in ("sm_80", "sm_90a", "sm_100a", "sm_120"):
        with tempfile.TemporaryDirectory() as folder:
            built = os.path.join(folder, "built")
            subprocess.run([binary, "build", path, "--target", target, "-o", built], check=True, capture_output=True)
            sources = glob.glob(os.path.join(built, "*.c"))
            strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-isystem", headers]
            said = subprocess.run(["cc", *strict, *sources], capture_output=True, text=True)
            if said.returncode:
                return f"{target}: {said.stderr}"
    return None


def of_model_on_gpus(binary, name, headers):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(models.MODELS[name]()[0], path)
        return for_gpus(binary, path, headers)


def filled(spec, seed):
    """The array of a launch comment's argument."""
    kind, dtype, shape = re.fullmatch(r"(\w+):(\w+)\[([\dx]+)\]", spec).groups()
    shape = [int(n) for n in shape.split("x")]
    numpy = {"f16": "float16", "f32": "float32", "f64": "float64"}.get(dtype, f"int{dtype[1:]}")
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if kind in ("zeros", "ones", "arange"):
        values = {"zeros": np.zeros, "ones": np.ones, "arange": np.arange}[kind](count)
    else:
        values = rng.standard_normal(count) if kind == "randn" else rng.random(count) * 8
    return values.reshape(shape).astype(numpy)


def of_example(binary, path, threads):
    text = open(path).read()
    launch = re.search(r"^// launch: (.*)$", text, re.M).group(1)
    args = dict(one.split("=", 1) for one in launch.split())
    grid = [int(n) for n in args.pop("grid", "1").split(",")]
    args.pop("entry", None)
    with tempfile.TemporaryDirectory() as folder:
        library = build(binary, path, os.path.join(folder, "built"))
        c_names = {n: c for c, n in re.findall(r"//   (\w+)    (\w+): ", library.header)}
        scratch = int(re.search(r"_SCRATCH (\d+)", library.header).group(1))
        arrays = {n: filled(s, i) for i, (n, s) in enumerate(args.items()) if "[" in s}
        flags = []
        for n, array in arrays.items():
            np.save(f"{folder}/{n}.npy", array)
            flags += ["--arg", f"{n}={folder}/{n}.npy", "--save", f"{n}={folder}/{n}.out.npy"]
        subprocess.run([binary, "run", path, *flags], check=True, capture_output=True)
        want = {n: np.load(f"{folder}/{n}.out.npy") for n in arrays}
        whole = np.array((grid + [1, 1])[:3], np.uint32)
        for pool in (None, threads):
            for sizes in (True, False):
                given = {"scratch": aligned(scratch * WORKERS), "grid": whole}
                got = {n: array.copy() for n, array in arrays.items()}
                for n, spec in args.items():
                    number = float if spec.startswith("f") else int
                    given[c_names[n]] = got[n] if n in got else number(spec.split(":")[1])
                    if n in got:
                        given[f"{c_names[n]}_bytes"] = got[n].nbytes if sizes else 0
                library.call("run", given, pool)
                # Arrays that may overlap take a version that may add in another order.
                wrong = [n for n in arrays if sizes and not same(got[n], want[n])]
                far = [n for n in arrays if not np.allclose(got[n], want[n], rtol=1e-3, atol=1e-3)]
                if wrong or far:
                    how = ("sizes" if sizes else "no sizes", "threads" if pool else "one thread")
                    return f"{', '.join(wrong or far)} differ ({', '.join(how)})"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--filter", default="")
    args = parser.parse_args()
    threads, failed = Threads(), 0
    examples = sorted(f for f in os.listdir(EXAMPLES) if f.endswith(".mlir"))
    # A library takes all shapes.
    whole = [n for n in models.MODELS if n != "shaped"]
    tests = [(n, lambda n=n: of_model(args.binary, n, threads)) for n in whole]
    for file in examples:
        path = os.path.join(EXAMPLES, file)
        if "print_tko" not in open(path).read():
            tests.append((file, lambda path=path: of_example(args.binary, path, threads)))
    tests.append(("resnet, a program in C", lambda: of_program(args.binary)))
    headers = glob.glob(os.path.join(sys.prefix, "lib/python*/site-packages/nvidia/*/include/cuda.h"))
    if headers:
        found = os.path.dirname(headers[0])
        with_folder = lambda name: lambda: of_model_on_gpus(args.binary, name, found)
        tests += [(f"{name} for GPUs", with_folder(name)) for name in whole]
        for file in ("saxpy.mlir", "gemm.mlir", "histogram.mlir"):
            path = os.path.join(EXAMPLES, file)
            tests.append((f"{file} for GPUs", lambda path=path: for_gpus(args.binary, path, found)))
    for name, test in tests:
        if args.filter in name:
            wrong = test()
            failed += wrong is not None
            print(f"{name:28} {'WRONG: ' + wrong if wrong else 'ok'}", flush=True)
    print("all libraries give the bits of girih run" if not failed else f"{failed} libraries differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
