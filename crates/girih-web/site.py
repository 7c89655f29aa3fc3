"""Builds the playground: a folder that any file server can serve.

    python crates/girih-web/site.py OUT

It needs Rust's target `wasm32-unknown-unknown`; where that is not installed it says so, and the exit code is 3. With npm it brings Pyodide,
in which kernels in Python are traced; without, the page says that it has none.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ASSETS = ROOT / "crates/girih-page/src/assets"
TARGET = "wasm32-unknown-unknown"
#: The page's examples: files of `examples/`, and models of one line.
PROGRAMS = ["softmax", "vector_add", "saxpy", "transpose", "gemm_f32", "layer_norm", "histogram", "prefix_sum", "hello", "attention"]
MODELS = {
    "model: softmax": "torch.softmax(torch.randn(64, 1000), dim=-1)\n",
    "model: RMSNorm": "torch.nn.RMSNorm(2048)(torch.randn(1, 32, 2048))\n",
    "model: an MLP": "x = torch.randn(8, 64)\ntorch.nn.functional.silu(torch.nn.Linear(64, 32)(x)) + 1\n",
}
#: Python in the browser, as it is published: https://github.com/pyodide/pyodide, under the licence MPL-2.0.
PYODIDE = "pyodide@314.0.7"
#: The parts of the Python package that trace kernels; they are Python alone.
FRONT_END = ["*.py", "frontend/*.py", "language/*.py", "scripts/*.py"]
#: A program with a race between blocks.
RACES = ["race"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    libraries = subprocess.run(["rustc", "--print", "target-libdir", "--target", TARGET], capture_output=True, text=True, check=True)
    if not any(Path(libraries.stdout.strip()).glob("libcore*")):
        print(f"the playground is left out: Rust's target {TARGET} is not installed (rustup target add {TARGET})", file=sys.stderr)
        sys.exit(3)
    subprocess.run(["cargo", "build", "--quiet", "--profile", "web", "--target", TARGET, "-p", "girih-web"], cwd=ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TARGET / "web/girih_web.wasm"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(HERE / "site", out)
    shutil.copy2(built, out / "girih.wasm")
    for name in ("page.css", "explain.css", "simulation.css", "syntax.js", "panes.js", "explain.js", "simulation.js"):
        shutil.copy2(ASSETS / name, out / name)
    with zipfile.ZipFile(out / "girih.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for pattern in FRONT_END:
            for file in sorted((ROOT / "python/girih").glob(pattern)):
                packed.write(file, file.relative_to(ROOT / "python"))
    bring_pyodide(out / "pyodide")
    programs = [(name, (ROOT / "examples" / f"{name}.mlir").read_text()) for name in PROGRAMS]
    programs += [(name, (HERE / "programs" / f"{name}.mlir").read_text()) for name in RACES]
    programs.append(("schedule: a product", (ROOT / "examples/schedules/product.mlir").read_text()))
    programs += [(f"Python: {file.stem}", file.read_text()) for file in sorted((HERE / "programs").glob("*.py"))]
    programs.append(("Python: softmax", lesson()))
    examples = [{"name": name, "text": text} for name, text in [*programs, *MODELS.items()]]
    (out / "examples.js").write_text(f'"use strict";\nconst EXAMPLES = {json.dumps(examples, indent=1)};\n')


def lesson():
    """The kernel of docs/afternoon.md, with a launch."""
    kernel = re.search(r"^```python\n(.*?)^```$", (ROOT / "docs/afternoon.md").read_text(), re.M | re.S)[1]
    return "# launch: grid=4 src=randn:f32[4x100] dst=zeros:f32[4x100] columns=i32:100\n" + kernel


def bring_pyodide(out):
    """Pyodide's files, unchanged, with a word on where they come from."""
    if shutil.which("npm") is None:
        print("kernels in Python are left out of the playground: npm, which brings Pyodide, is not installed", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["npm", "pack", "--silent", PYODIDE], cwd=folder, capture_output=True, text=True)
        if packed.returncode:
            print(f"kernels in Python are left out of the playground: {PYODIDE} cannot be had from npm", file=sys.stderr)
            return
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
        out.mkdir()
        for name in ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json", "README.md"):
            shutil.copy2(Path(folder) / "package" / name, out / name)
    (out / "LICENSE").write_text(
        f"{PYODIDE}, unmodified. Its source is at https://github.com/pyodide/pyodide.\n"
        "It is subject to the terms of the Mozilla Public License, v. 2.0: https://mozilla.org/MPL/2.0/.\n"
    )


if __name__ == "__main__":
    main()
