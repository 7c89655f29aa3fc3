"""Builds the playground: a folder that any file server can serve.

    python crates/girih-web/site.py OUT

It needs Rust's target `wasm32-unknown-unknown`; where that is not installed it says so, and the exit code is 3.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
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
    programs = [(name, (ROOT / "examples" / f"{name}.mlir").read_text()) for name in PROGRAMS]
    programs += [(name, (HERE / "programs" / f"{name}.mlir").read_text()) for name in RACES]
    examples = [{"name": name, "text": text} for name, text in [*programs, *MODELS.items()]]
    (out / "examples.js").write_text(f'"use strict";\nconst EXAMPLES = {json.dumps(examples, indent=1)};\n')


if __name__ == "__main__":
    main()
