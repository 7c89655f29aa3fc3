"""ONNX's own tests of its operators: one line with how many passed, were refused (each with its reason), and are wrong.

    .venv/bin/python tests/onnx_nodes.py target/release/girih-onnx-nodes [--device cpu|sim|cuda] [--target T] [--part] [--filter WORD] [-v]

The models, inputs and expected results are data of the `onnx` package. Fails when a result is wrong, when something is refused
for a reason that `OUTSIDE` does not know, or when fewer than 97 % of all tests whose inputs and outputs are tensors of numbers
pass. `-v` lists the refusals by reason.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
LEAST = 0.97
# Tensors of these element types are not numbers.
NOT_NUMBERS = {onnx.TensorProto.STRING, onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128}
DTYPES = {
    "bool": np.bool_, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "i2": ml_dtypes.int2, "u2": ml_dtypes.uint2,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4,
    **{f"{k}{n}": np.dtype(f"{k}{n // 8}") for k in "iu" for n in (8, 16, 32, 64)},
}
# The expected results round after every step; we round sums and functions once. ONNX's own comparison has the first.
TWO_STEPS = {"bfloat16": 2**-6, "float16": 2**-9}
# Expected zeros that are the rounding noise of ONNX's own f32 transform, 1.9e-7 beside sums of 90.
NOISE = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}
# In these families `--part` takes every test except expansions of an operator into others, and every eighth test of
# all.
FAMILIES = re.compile("test_(attention|conv|softmax|logsoftmax|matmul|gemm|einsum)(?!.*_expanded)")
# Each process runs this many tests.
BATCH = 100

# The refusals, by a word of their reason, and why. A page lists them: `--page`.
OUTSIDE = [
    ("[sS]tring|Regex", "operators that look into strings: `StringConcat`, `StringNormalizer`, `StringSplit`, `RegexFullMatch`", "a kernel sees the number of a string"),
    ("ImageDecoder", "`ImageDecoder`", "decoding JPEG or PNG is a codec, not tensor arithmetic"),
    ("random", "random draws: `Bernoulli`, `RandomUniformLike`, `Dropout` in training", "a run has the same results every time"),
    ("version 1 of|Scan", "operators before version 7, `Scan` before 9", "converters write newer ones, and `onnx.version_converter` makes them"),
]  # fmt: skip
HEAD = "| tests | refused | why |"


def numeric(model):
    for port in [*model.graph.input, *model.graph.output]:
        if port.type.WhichOneof("value") != "tensor_type" or port.type.tensor_type.elem_type in NOT_NUMBERS:
            return False
    return True


def write(case, folder):
    """The model and its first data set, as files."""
    os.makedirs(folder)
    onnx.save(case.model, os.path.join(folder, "model.onnx"))
    inputs, expected = case.data_sets[0]
    for i, (port, value) in enumerate(zip(case.model.graph.input, inputs)):
        tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))
        tensor.name = port.name
        with open(os.path.join(folder, f"input_{i}.pb"), "wb") as f:
            f.write(tensor.SerializeToString())
    arrays = []
    for value in expected:
        arrays.append(numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value))
    return arrays


def read(path, text):
    """The output of that description, `f32:2,3`."""
    name, dims = text.split(":")
    shape = tuple(int(d) for d in dims.split(",") if d)
    raw = np.fromfile(path, dtype=np.uint8)
    if name in ("i4", "u4", "f4E2M1FN"):
        halves = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[: int(np.prod(shape))]
        if name == "i4":
            halves = np.where(halves > 7, halves.astype(np.int8) - 16, halves.astype(np.int8))
            return halves.astype(ml_dtypes.int4).reshape(shape)
        return (halves.astype(ml_dtypes.uint4) if name == "u4" else halves.view(ml_dtypes.float4_e2m1fn)).reshape(shape)
    return raw.view(DTYPES[name]).reshape(shape)


def compare(case, expected, folder, types):
    """Why the outputs are not the expected ones; None where they are."""
    texts = types.split(";") if types else []
    if len(texts) != len(expected):
        return f"{len(texts)} outputs, not {len(expected)}"
    for i, (want, text) in enumerate(zip(expected, texts)):
        got = read(os.path.join(folder, f"output_{i}.bin"), text)
        if got.dtype != want.dtype:
            return f"output {i} is {got.dtype}, not {want.dtype}"
        if got.shape != want.shape:
            return f"output {i} has shape {got.shape}, not {want.shape}"
        rtol = max(case.rtol, TWO_STEPS.get(want.dtype.name, 0.0))
        if want.dtype.kind not in "fiub":
            got, want = got.astype(np.float64), want.astype(np.float64)
        try:
            np.testing.assert_allclose(got, want, rtol=rtol, atol=NOISE.get(case.name, case.atol))
        except AssertionError as e:
            found = [line for line in str(e).splitlines() if "Mismatch" in line or "Max" in line or "location" in line]
            return f"output {i}: " + "; ".join(line.strip() for line in found[:3])
    return None


def array(value):
    """An input or expected output of a test: an array, a list of arrays, or None."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return [array(v) for v in value] if isinstance(value, list) else None if value is None else np.asarray(value)


def differ(case, got, want):
    """The same of strings, lists and optional values, as the package gives them."""
    if want is None or got is None:
        return None if got is want else f"{got}, not {want}"
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"{got}, not a list of {len(want)}"
        return next((problem for pair in zip(got, want) if (problem := differ(case, *pair))), None)
    if want.dtype.kind in "UO":
        return None if np.array_equal(got, want.astype(object)) else f"{got}, not {want}"
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    return None if np.allclose(got, want, case.rtol, case.atol, equal_nan=True) else f"{got}, not {want}"


def run_in_python(case, device):
    """Runs a test whose data are not tensors of numbers: `refused` or `failed` with the reason, or `ok`."""
    import girih

    inputs, expected = case.data_sets[0]
    feed = {port.name: array(value) for port, value in zip(case.model.graph.input, inputs)}
    try:
        found = girih.Model.from_onnx(case.model.SerializeToString(), device=device).run(None, feed)
    except girih.ProgramError as e:
        return "refused", "; ".join(f"{d.code} {d.message}" for d in e.diagnostics)
    except girih.GirihError as e:
        return "failed", str(e)
    if len(found) != len(expected):
        return "failed", f"{len(found)} outputs, not {len(expected)}"
    problem = next((problem for got, want in zip(found, expected) if (problem := differ(case, got, array(want)))), None)
    return ("failed", problem) if problem else ("ok", "")


def run(runner, device, folders, jobs):
    """A line of the runner for each folder, from `jobs` processes at a time."""
    parts = [folders[i : i + BATCH] for i in range(0, len(folders), BATCH)]
    lines = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for part in pool.map(lambda part: run_part(runner, device, part), parts):
            lines.update(part)
    return lines


def run_part(runner, device, rest):
    """A process that dies costs the test it was at."""
    lines = {}
    while rest:
        part, rest = rest, []
        done = subprocess.run([runner, device, *part], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seen = [line.split("\t") for line in done.stdout.splitlines()]
        for name, *outcome in seen:
            lines[name] = outcome
        if len(seen) < len(part):
            lines[os.path.basename(part[len(seen)])] = ["failed", f"the process ended with {done.returncode}"]
            rest = part[len(seen) + 1 :]
    return lines


def reason(text):
    """A refusal without the names and numbers of its model."""
    text = re.sub(r"`[^`]*`( \(\w+\))?(, )?", "..", text)
    return re.sub(r"\(version \d+\) ?|(of )?\.\.( and \d+ more)?", "", re.sub(r"\[[^\]]*\]", "[..]", text)).strip(" ,:")


def rows(refused):
    """The page's table of refusals: the number of tests, the feature, and the reason."""
    counts = collections.Counter()
    for why, names in refused.items():
        kind = next((i for i, (word, _, _) in enumerate(OUTSIDE) if re.search(word, why)), None)
        if kind is None:
            sys.exit(f"no reason is known for what is refused: {why}: {', '.join(names)}")
        counts[kind] += len(names)
    return [f"| {counts[i]} | {what} | {why} |" for i, (_, what, why) in enumerate(OUTSIDE) if counts[i]]


def check_page(path, table, sentence):
    """The page has these rows and this sentence; with BLESS=1 it gets them."""
    with open(path) as f:
        text = f.read()
    before, after = text.split(HEAD + "\n", 1)
    rest = after.split("\n\n", 1)[1]
    start = before.rfind("\n\n", 0, len(before) - 2) + 2
    made = before[:start] + sentence + "\n\n" + "\n".join([HEAD, "|---:|---|---|", *table]) + "\n\n" + rest
    if made != text and os.environ.get("BLESS"):
        with open(path, "w") as f:
            f.write(made)
    elif made != text:
        sys.exit(f"{path} has another table of what is refused; BLESS=1 writes it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner")
    parser.add_argument("--device", default="eval", choices=["eval", "cpu", "sim", "cuda"])
    parser.add_argument("--target", default="sm_90a", help="the GPU that `sim` simulates")
    parser.add_argument("--schedules", type=int, default=1, help="run `sim` under this number of schedules of the threads")
    parser.add_argument("--filter", default="", help="only tests whose name holds this")
    parser.add_argument("--every", type=int, default=1, help="only every N-th of the tests")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--part", action="store_true", help="a fixed part: every eighth, and the families of models")
    parser.add_argument("-v", action="store_true", help="list the refusals")
    parser.add_argument("--page", help="compare the table of refusals on this page, or with BLESS=1 write it")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    from onnx.backend.test.case.node import collect_testcases

    start = time.time()
    cases = [c for c in collect_testcases(None) if args.filter in c.name and c.data_sets][args.first :: args.every]
    if args.part:
        cases = [c for i, c in enumerate(cases) if i % 8 == 0 or FAMILIES.match(c.name)]
    passed, wrong, refused, counted, good = 0, [], collections.defaultdict(list), 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        ready = []
        # Other data than tensors of numbers go through the package, which has no simulator for models.
        others = [case for case in cases if not numeric(case.model)]
        if args.device not in ("eval", "cpu"):
            cases, others = [case for case in cases if numeric(case.model)], []
        for case in others:
            outcome, text = run_in_python(case, args.device)
            if outcome == "refused":
                refused[reason(text)].append(case.name)
            elif outcome == "failed":
                wrong.append((case.name, text))
            passed += outcome == "ok"
        for case in cases:
            if case in others:
                continue
            folder = os.path.join(scratch, case.name)
            try:
                ready.append((case, folder, write(case, folder)))
            except (TypeError, ValueError, AttributeError, NotImplementedError):
                refused["its data are not tensors"].append(case.name)
                counted += numeric(case.model)
        device = f"{args.target}:{args.schedules}" if args.device == "sim" else args.device
        lines = run(args.runner, device, [folder for _, folder, _ in ready], args.jobs)
        for case, folder, expected in ready:
            numbers = numeric(case.model)
            counted += numbers
            outcome, text = lines.get(case.name, ["failed", "no answer"])
            if outcome == "refused":
                refused[reason(text)].append(case.name)
                continue
            problem = compare(case, expected, folder, text) if outcome == "ok" else text
            if problem is None:
                passed += 1
                good += numbers
            else:
                wrong.append((case.name, problem))
    for name, problem in wrong:
        print(f"wrong: {name}: {problem}")
    if args.v:
        for why, names in sorted(refused.items(), key=lambda r: -len(r[1])):
            print(f"refused {len(names)}: {why}\n    {', '.join(names[:6])}{' ...' if len(names) > 6 else ''}")
    share = good / counted if counted else 1.0
    total = sum(map(len, refused.values()))
    print(
        f"onnx {onnx.__version__} on {device}: passed {passed}, refused {total} for {len(refused)} reasons, "
        f"wrong {len(wrong)}; of {counted} tests on numbers {share:.1%} pass ({time.time() - start:.0f} s)"
    )
    table = rows(refused)
    if args.page:
        sentence = (
            f"{good} of {counted} tests on numbers pass, {share:.1%}. The {total} tests of all kinds that are refused, each with a "
            "message:"
        )
        check_page(args.page, table, sentence)
    # A sample may have a larger share of refusals than all tests have.
    whole = not (args.filter or args.part or args.every > 1)
    if wrong or (whole and share < LEAST):
        sys.exit(1)


if __name__ == "__main__":
    main()
