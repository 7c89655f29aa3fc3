"""PyTorch's own list of operations through `torch.compile(backend="girih")`.

    python tests/opinfo.py [--filter NAME] [--dtypes f32,bf16,i64,bool] [--every N] [--first K] [--samples N]
                           [--again FILE] [--device cpu|eval] [--jobs J] [--timeout S] [--json FILE] [-v]

In: `op_db` of `torch.testing._internal.common_methods_invocations`, some 600 operations with samples of their arguments.
Out: for each operation and element type one verdict, a table of them, and with `--json` all of it for a machine. `--again`
takes only what was not equal in such a file.

A function is compiled once for an operation and a type, and called with one sample after the other, so that sizes and
integers change and PyTorch compiles it anew with symbols for them. Verdicts, the worst of the samples' counts:

* **equal**: all results are PyTorch's, and all of it ran in Girih;
* **fallback**: they are, but PyTorch ran some operations, which are listed;
* **mismatch**: a result differs. Integers and truth values must be equal; floats may be four times as far from the result
  in float64 as PyTorch's own, and a few roundings;
* **accepted**: the function takes arguments that PyTorch refuses. Arguments are made wrong by changing one of a sample's:
  an axis is of one element, one element longer or shorter, or goes, and integers have other values. Arguments that
  `aot_eager` or inductor takes as well do not count;
* **exception**: the compiled function raises, and PyTorch does not.

A mistake that PyTorch's own `aot_eager` makes in the same way is counted as **pytorch**. Operations are run in
subprocesses; one that takes too long, or dies, is an exception. Exit code 1 where there are faults: mismatches, accepted
arguments, exceptions.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64", "i64": "int64", "i32": "int32",
          "u8": "uint8", "bool": "bool"}  # fmt: skip

# How many samples of a type are tried, where `--samples` does not say.
SAMPLES = {"f32": 6}
OTHERWISE = 2

# Results that hold what memory held.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
                 "resize_as_", "to_sparse"}  # fmt: skip

# Results that name one of several equal elements, by their numbers among the results.
TIES = {"sort": {1}, "argsort": {0}, "topk": {1}, "mode": {1}, "kthvalue": {1}, "median": {1}, "nanmedian": {1},
        "cummax": {1}, "cummin": {1}, "min": {1}, "max": {1}, "argmax": {0}, "argmin": {0}, "aminmax": set()}  # fmt: skip

# Results that are right up to signs or the choice of a basis: only their shapes are compared.
BASES = {"linalg.eig", "linalg.eigh", "linalg.svd", "linalg.qr", "svd", "qr", "svd_lowrank", "pca_lowrank", "geqrf",
         "linalg.ldl_factor", "linalg.ldl_factor_ex"}  # fmt: skip

# How large terms are that cancel: rounding is theirs, not the result's.
CANCELS = {"signal.windows.nuttall": 0.5}

# How many wrong arguments of an operation are tried, for the type that has most samples.
WRONG = 12

# Operations that take any shape, and one that ends the process of eager mode where operands do not fit.
ANY_SHAPE = {"resize_", "resize_as_", "empty", "empty_strided", "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"}

VERDICTS = ("equal", "fallback", "mismatch", "accepted", "exception", "pytorch")
FAULTS = ("mismatch", "accepted", "exception")


def pairs(args):
    """The operations and types asked for, as (name, type)."""
    operations = known()
    names = [n for n in operations if args.filter in n][args.first :: args.every]
    import torch

    if args.again:
        return [(r["name"], r["dtype"]) for r in json.loads(args.again.read_text()) if r["verdict"] != "equal"]
    return [
        (name, dtype) for name in names for dtype in args.dtypes.split(",")
        if getattr(torch, DTYPES[dtype]) in operations[name].dtypes
    ]  # fmt: skip


def known():
    """PyTorch's operations by name."""
    from torch.testing._internal import common_methods_invocations

    # Operations that draw set the seed by this, which Dynamo cannot trace; `judge` sets one before each call.
    common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    found = {}
    for op in common_methods_invocations.op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        found.setdefault(name, op)
    return found


# One operation, in a child process.


class Differs(Exception):
    """How a result differs from PyTorch's."""


def cloned(value):
    import torch
    from torch.utils import _pytree as pytree

    return pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, value)


def widened(value):
    """Floats as float64."""
    import torch
    from torch.utils import _pytree as pytree

    def wide(v):
        if isinstance(v, torch.Tensor) and v.is_floating_point():
            return v.double()
        return torch.float64 if isinstance(v, torch.dtype) and v.is_floating_point else v

    return pytree.tree_map(wide, value)


def compare(name, given, wanted, exact):
    """Raises `Differs` where results are not PyTorch's."""
    import torch
    from torch.utils import _pytree as pytree

    given, wanted, exact = (pytree.tree_leaves(v) for v in (given, wanted, exact))
    if len(given) != len(wanted):
        raise Differs(f"{len(given)} results, not {len(wanted)}")
    if len(exact) != len(wanted):
        exact = [None] * len(wanted)
    for i, (g, w, x) in enumerate(zip(given, wanted, exact)):
        if not isinstance(w, torch.Tensor):
            if not (g == w or g != g and w != w):
                raise Differs(f"result {i} is {g!r}, not {w!r}")
            continue
        if (g.shape, g.dtype, g.layout) != (w.shape, w.dtype, w.layout):
            raise Differs(f"result {i} is {g.dtype} {list(g.shape)} {g.layout}, not {w.dtype} {list(w.shape)} {w.layout}")
        if name in UNINITIALISED or name.split(".")[0] in BASES or name in BASES or i in TIES.get(name.split(".")[0], ()):
            continue
        g, w = (t.to_dense() if t.layout is not torch.strided else t for t in (g, w))
        if not (w.is_floating_point() or w.is_complex()):
            if not torch.equal(g, w):
                raise Differs(f"result {i} is {g.reshape(-1)[:6].tolist()}, not {w.reshape(-1)[:6].tolist()}")
            continue
        eps = torch.finfo(w.dtype).eps
        if w.is_complex():
            g, w = torch.view_as_real(g.resolve_conj()), torch.view_as_real(w.resolve_conj())
            x = None
        x = x.to(torch.float64) if isinstance(x, torch.Tensor) and x.shape == w.shape and not x.is_complex() else w.double()
        if not torch.equal(g.isnan(), w.isnan()):
            raise Differs(f"result {i} has NaN elsewhere: {g.reshape(-1)[:6].tolist()}, not {w.reshape(-1)[:6].tolist()}")
        finite = w.isfinite() & x.isfinite()
        odd = ~w.isfinite() & ~w.isnan()
        if not torch.equal(g[odd], w[odd]):
            raise Differs(f"result {i} has infinities elsewhere")
        if not finite.any():
            continue
        g, w, x = g[finite].double(), w[finite].double(), x[finite]
        allowed = 4 * (w - x).abs().max() + 32 * eps * max(x.abs().max(), CANCELS.get(name, 0))
        error = (g - x).abs().max()
        if not error <= allowed:
            raise Differs(f"result {i} is off by {error:.3e}, and {allowed:.3e} is allowed")


def samples_of(op, name, dtype, count):
    """Samples of an operation's arguments, spread over those that PyTorch has."""
    import torch

    torch.manual_seed(0)
    samples = list(itertools.islice(op.sample_inputs("cpu", getattr(torch, DTYPES[dtype])), 64))
    step = max(1, len(samples) // count)
    return samples[::step][:count]


def changed(value):
    """Other values in place of an argument: tensors of other shapes, other integers."""
    import torch

    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        for axis, n in enumerate(value.shape):
            if n > 1:
                yield value.narrow(axis, 0, 1)
            if n > 2:
                yield value.narrow(axis, 0, n - 1)
            if n > 0:
                yield torch.cat([value, value.narrow(axis, 0, 1)], axis)
        yield value[None]
        if value.ndim:
            yield value.reshape(-1)[:1]
    elif type(value) is int:
        yield from (other for other in (-7, -1, 0, 2, 100) if other != value)


def wrong(op, samples, call, function):
    """Samples with one argument changed that PyTorch refuses, at most `WRONG`, as (sample, what PyTorch says)."""
    from torch.utils import _pytree as pytree

    cases = []
    for sample in samples:
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        for at, leaf in enumerate(leaves):
            cases += [(leaves, spec, at, value) for value in changed(leaf)]
    random.Random(op.name).shuffle(cases)
    found = []
    for leaves, spec, at, value in cases:
        x, args, kwargs = pytree.tree_unflatten([*leaves[:at], value, *leaves[at + 1 :]], spec)
        sample = type(samples[0])(x, args=args, kwargs=kwargs)
        try:
            call(function, sample)
        except Exception as e:
            found.append((sample, first_line(e)))
        if len(found) == WRONG:
            break
    return found


def judge(name, dtype, count, device):
    """The verdict on an operation, as it is written to the table."""
    import torch

    import girih.torch

    op = known()[name]
    try:
        samples = samples_of(op, name, dtype, count)
    except Exception as e:
        return {"verdict": "pytorch", "why": f"its samples cannot be made: {first_line(e)}"}

    def call(function, sample, wide=False):
        torch.manual_seed(1)
        given = cloned((sample.input, sample.args, sample.kwargs))
        x, args, kwargs = widened(given) if wide else given
        with torch.no_grad():
            return function(x, args, kwargs)

    def function(x, args, kwargs):
        return op.op(x, *args, **kwargs)

    tried, found = [], {"verdict": "equal", "why": "", "left": [], "graphs": 0}
    for sample in samples:
        try:
            wanted = call(function, sample)
        except Exception:
            continue
        try:
            exact = call(function, sample, wide=True)
        except Exception:
            exact = None
        tried.append((sample, wanted, exact))

    def attempt(backend, **options):
        """The error of the first sample that differs: (verdict, why)."""
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend, dynamic=None, **options)
        for number, (sample, wanted, exact) in enumerate(tried):
            try:
                given = call(compiled, sample)
            except Exception as e:
                return "exception", f"sample {number}: {type(e).__name__}: {first_line(e)}"
            try:
                compare(name, given, wanted, exact)
            except Exception as e:
                return "mismatch", f"sample {number}: {e}"
        return "equal", ""

    def takes(backend, sample, **options):
        torch._dynamo.reset()
        try:
            call(torch.compile(function, backend=backend, dynamic=False, **options), sample)
        except Exception:
            return False
        return True

    girih.torch.report(clear=True)
    found["verdict"], found["why"] = attempt("girih", options={"device": device})
    report = girih.torch.report(clear=True)
    found["graphs"] = len(report.graphs)
    left = [[left.operation, left.reason] for left in report.left]
    left += [["a run", misfit] for g in report.graphs for misfit in g.misfits]
    left += [["Dynamo", first_line(why)] for why in report.breaks]
    found["left"] = [json.loads(text) for text in sorted({json.dumps(pair) for pair in left})]
    if found["verdict"] in ("mismatch", "exception"):
        theirs, _ = attempt("aot_eager")
        if theirs != "equal":
            found["verdict"] = "pytorch"
        return found
    if found["left"]:
        found["verdict"] = "fallback"
    for sample, why in wrong(op, samples, call, function) if dtype in SAMPLES and name not in ANY_SHAPE else ():
        ours = takes("girih", sample, options={"device": device})
        if ours and not takes("aot_eager", sample) and not takes("inductor", sample):
            found["verdict"], found["why"] = "accepted", f"PyTorch says: {why}"
            break
    return found


def first_line(text):
    lines = [line for line in str(text).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(text).__name__


def child(args):
    """Judges the pairs on standard input, one a line, and writes each verdict as a line of JSON."""
    import logging

    import torch

    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name, dtype = json.loads(line)
        start = time.monotonic()
        try:
            found = judge(name, dtype, args.samples or SAMPLES.get(dtype, OTHERWISE), args.device)
        except Exception as e:
            found = {"verdict": "exception", "why": f"{type(e).__name__}: {first_line(e)}"}
        found |= {"name": name, "dtype": dtype, "seconds": round(time.monotonic() - start, 2)}
        print(json.dumps(found), file=out, flush=True)


# All of them, from the parent.

# Pairs that one process judges, before a new one takes the next: Dynamo keeps its compiled code.
CHUNK = 24


def run_chunk(args, chunk, done):
    """Judges a chunk in a process of its own, and what is left of it in another where one dies or takes too long."""
    chunk = list(chunk)
    while chunk:
        command = [sys.executable, __file__, "--child", "--device", args.device, "--samples", str(args.samples or 0)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)  # fmt: skip
        lines: queue.Queue = queue.Queue()
        threading.Thread(target=lambda p=process: [*map(lines.put, p.stdout), lines.put(None)], daemon=True).start()
        process.stdin.write("".join(json.dumps(pair) + "\n" for pair in chunk))
        process.stdin.close()
        why = None
        while chunk and why is None:
            try:
                line = lines.get(timeout=args.timeout)
                why = "the process died" if line is None else None
            except queue.Empty:
                why = f"it took more than {args.timeout} seconds"
            name, dtype = chunk.pop(0)
            done(json.loads(line) if why is None else {"name": name, "dtype": dtype, "verdict": "exception", "why": why})
        process.kill()
        process.wait()


def table(results, dtypes):
    """The summary, as text."""
    lines = [f"{'':10}" + "".join(f"{v:>11}" for v in VERDICTS) + f"{'all':>8}"]
    for dtype in dtypes:
        counts = collections.Counter(r["verdict"] for r in results if r["dtype"] == dtype)
        lines.append(f"{dtype:10}" + "".join(f"{counts[v]:>11}" for v in VERDICTS) + f"{sum(counts.values()):>8}")
    left: dict[tuple[str, str], set] = collections.defaultdict(set)
    for r in results:
        for operation, reason in r.get("left", ()):
            left[operation, reason].add(r["name"])
    lines.append("\nWhat PyTorch ran, and for how many operations of the list:")
    for (operation, reason), names in sorted(left.items(), key=lambda item: (-len(item[1]), item[0])):
        shown = ", ".join(sorted(names)[:4]) + (", ..." if len(names) > 4 else "")
        lines.append(f"{len(names):4}  {operation}: {reason}  ({shown})")
    for verdict in ("pytorch", *FAULTS):
        lines += [f"{verdict.upper()} {r['name']} {r['dtype']}: {r['why']}" for r in results if r["verdict"] == verdict]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="")
    parser.add_argument("--dtypes", default="f32,bf16,i64,bool")
    parser.add_argument("--every", type=int, default=1, help="only each N-th operation")
    parser.add_argument("--first", type=int, default=0, help="the first of those")
    parser.add_argument("--again", type=Path, help="only what was not equal in this file of --json")
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args)
    todo = pairs(args)
    chunks: queue.Queue = queue.Queue()
    for start in range(0, len(todo), CHUNK):
        chunks.put(todo[start : start + CHUNK])
    results, lock = [], threading.Lock()

    def done(result):
        with lock:
            results.append(result)
            if args.verbose or result["verdict"] in FAULTS:
                why = result.get("why") or ", ".join(operation for operation, _ in result.get("left", ()))
                print(f"[{len(results)}/{len(todo)}] {result['name']} {result['dtype']}: {result['verdict']} {why}", flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=1))

    def work():
        while True:
            try:
                chunk = chunks.get_nowait()
            except queue.Empty:
                return
            run_chunk(args, chunk, done)

    workers = [threading.Thread(target=work) for _ in range(args.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    results.sort(key=lambda r: todo.index((r["name"], r["dtype"])))
    print(table(results, args.dtypes.split(",")))
    return 1 if any(r["verdict"] in FAULTS for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
