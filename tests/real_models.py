"""ONNX files as packages ship them: Girih beside ONNX Runtime, at two sizes of each free dimension.

    .venv-models/bin/python tests/real_models.py target/release/girih [--filter WORD] [--require N]

A row is a file: how many of its sizes load, how many agree with ONNX Runtime, the greatest error (scaled by the greatest
magnitude of the output), the median time of a run over ONNX Runtime's, and the greatest peak memory in MB of a run whose
kernels are compiled. The first line of the first error follows. Exits with 1 where fewer than N files agree at every size.

Two runs agree that differ by 1e-5 at most. Where they differ by more, float64 is the judge: `girih run --verify` compares Girih's
results with those and states the bound that rounding alone allows. A model that rounds on its way (dynamic quantisation) has no
such bound, since one number beside a tie moves all that follow; there the judge is how far ONNX Runtime's own result moves when
its inputs move in their last place, which the row says as `moves`: Girih may differ by twice that.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import peak_memory

BOUND = 1e-5
# How often ONNX Runtime is asked again with inputs moved in their last place.
MOVES = 6
DTYPES = {"float": "f4", "float16": "f2", "double": "f8", "int64": "i8", "int32": "i4", "uint8": "u1", "bool": "?"}
# Two extents for each free dimension of a file, by the dimension's name or `input.axis`; the others are 1, then 2.
EXTENTS = {
    "silero_vad": {"input.1": (576, 320), "sequence": (576, 320)},
    "silero_vad_16k": {"sequence": (576, 576), "sequence_length": (3, 7)},
    "swift_f0": {"samples": (16000, 24000)},
    "ddddocr": {"image_width": (128, 200)},
    "nudenet": {"height": (320, 256), "width": (320, 256)},
    "ch_PP-OCRv4_det": {"p2o.DynamicDimension.1": (320, 256), "p2o.DynamicDimension.2": (320, 416)},
    "ch_PP-OCRv4_rec": {"x.2": (48, 48), "p2o.DynamicDimension.1": (320, 200)},
    "ch_ppocr_mobile_v2.0_cls": {"x.2": (48, 48), "x.3": (192, 160)},
}
SCALARS = {"sr": 16000, "fmin": 46.875, "fmax": 2093.75}


def files():
    root = Path(sysconfig.get_path("purelib"))
    return [(p, str(p.relative_to(root))) for p in sorted(root.rglob("*.onnx")) if p.relative_to(root).parts[0] != "onnx"]


def feeds(session, label):
    """The inputs of a file at its two sizes; one where no dimension is free."""
    extents = {}
    for word, given in EXTENTS.items():
        if word in label:
            extents |= given
    inputs = session.get_inputs()
    if "16000" in label or "16k" in label:
        extents["sequence"] = (576, 576)
    free = any(not isinstance(d, int) for i in inputs for d in i.shape)
    for k in range(2 if free else 1):
        rng = np.random.default_rng(k)
        yield {i.name: value(rng, i, k, extents) for i in inputs}


def value(rng, port, k, extents):
    def extent(axis, d):
        return d if isinstance(d, int) else extents.get(f"{port.name}.{axis}", extents.get(d, (1, 2)))[k]

    shape = [extent(axis, d) for axis, d in enumerate(port.shape)]
    dtype = np.dtype(DTYPES[port.type.removeprefix("tensor(").removesuffix(")")])
    if port.name in SCALARS:
        return np.full(shape, SCALARS[port.name], dtype)
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 256, shape).astype(dtype)


def command_of(girih, path, feed, folder):
    """`girih run` with these inputs, which are saved."""
    command = [girih, "run", str(path), "--json"]
    for n, (name, array) in enumerate(feed.items()):
        np.save(folder / f"in{n}.npy", array)
        command += ["--arg", f"{name}={folder}/in{n}.npy"]
    return command


def verified(command):
    """Returns True if the results are those of float64 but for rounding."""
    said = subprocess.run([*command, "--verify"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return all(row["ok"] for row in json.loads(said.splitlines()[-1])["verify"]) if said else False


def moves(session, feed, theirs):
    """How far ONNX Runtime's results move when the floats of its inputs do so in their last place."""
    rng, far = np.random.default_rng(7), 0.0
    outputs = [o.name for o in session.get_outputs()]
    for _ in range(MOVES):
        other = {n: np.nextafter(a, rng.choice([-4, 4], a.shape).astype(a.dtype)) if a.dtype.kind == "f" else a
                 for n, a in feed.items()}  # fmt: skip
        far = max([far, *(error(array(a), b) for a, b in zip(session.run(outputs, other), theirs))])
    return far


def run_girih(command, outputs, folder):
    """The outputs, the median time of a run in seconds and the peak memory in MB, or the first line of the error."""
    saves = [part for n, name in enumerate(outputs) for part in ("--save", f"{name}={folder}/out{n}.npy")]
    # The second run finds its kernels in the cache: its memory is not the C compiler's.
    for extra in (["--time", *saves], []):
        code, out, said, peak = peak_memory.run(command + extra)
        if code:
            lines = [line for line in said.splitlines() if "error" in line]
            return (lines or [f"exit code {code}"])[0]
        if extra:
            report = json.loads(out.splitlines()[-1])
    arrays = [np.load(folder / f"out{n}.npy") for n in range(len(outputs))]
    return arrays, report["median_s"], peak / 2**20


def array(result):
    """Scores by label, as ZipMap gives them, with a column for each label."""
    return np.array([list(row.values()) for row in result]) if isinstance(result, list) else result


def error(mine, theirs):
    if mine.shape != theirs.shape:
        return float("inf")
    if theirs.size == 0:
        return 0.0
    scale = max(float(np.nanmax(np.abs(theirs.astype(np.float64)))), 1e-30)
    return float(np.max(np.abs(mine.astype(np.float64) - theirs.astype(np.float64)))) / scale


def median_time(run):
    run()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(girih, path, label):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    row = dict(sizes=0, loads=0, same=0, error=0.0, ratio=[], memory=0.0, why="")
    judge = ""
    for feed in feeds(session, label):
        row["sizes"] += 1
        theirs = [array(result) for result in session.run(outputs, feed)]
        with tempfile.TemporaryDirectory() as folder:
            command = command_of(girih, path, feed, Path(folder))
            result = run_girih(command, outputs, Path(folder))
            if isinstance(result, str):
                row["why"] = row["why"] or result
                continue
            arrays, seconds, memory = result
            worst = max(error(a, b) for a, b in zip(arrays, theirs))
            good = worst <= BOUND
            if not good:
                good = verified(command)
                judge = "float64: " + ("within its bound" if good else "beyond its bound")
            if not good:
                far = moves(session, feed, theirs)
                good, judge = worst <= 2 * far, f"{judge}; ONNX Runtime moves by {far:.1e}"
        row["loads"] += 1
        row["same"] += good
        row["error"] = max(row["error"], worst)
        row["ratio"].append(seconds / median_time(lambda: session.run(outputs, feed)))
        row["memory"] = max(row["memory"], memory)
    row["why"] = row["why"] or judge
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("girih", type=os.path.abspath)
    parser.add_argument("--filter", default="")
    parser.add_argument("--require", type=int, default=0, help="files that must agree at every size")
    given = parser.parse_args()
    good, total = 0, 0
    print(f"{'file':62} sizes loads  same    error  time   MB")
    for path, label in files():
        if given.filter not in label:
            continue
        row = measure(given.girih, path, label)
        total += 1
        good += row["same"] == row["sizes"]
        ratio = f"{statistics.median(row['ratio']):5.1f}" if row["ratio"] else "    -"
        print(
            f"{label:62} {row['sizes']:5} {row['loads']:5} {row['same']:5} {row['error']:8.1e} {ratio} {row['memory']:4.0f}"
            + (f"\n    {row['why']}" if row["why"] else ""),
            flush=True,
        )
    print(f"{good} of {total} files agree at every size")
    sys.exit(good < given.require)


if __name__ == "__main__":
    main()
