"""Girih's models beside others on this machine.

    girih bench SUITE... [--against torch,onnxruntime,numpy,jax,torch.compile,triton,girih.jit,triton.interpreter] [--threads 1,2] [--device cuda]
                         [--filter TEXT] [--rounds N] [--output FILE.json] [--json]
    girih bench --report FILE.json... [--output FILE.html]

A row's ratio is Girih's time over the best other's in the same rounds: below 1, Girih is faster. No row counts whose
result was not compared with float64 first.
"""

from __future__ import annotations

import os

# Settings of OpenBLAS that make NumPy take other kernels than it would for this machine.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import argparse
import difflib
import gc
import json
import platform
import sys
from pathlib import Path

from girih import _library
from girih._files import write_whole


def names(text):
    return [n for n in text.split(",") if n]


def threads(text):
    counts = [int(n) for n in names(text) if n.isdigit()]
    if len(counts) != len(names(text)) or not counts or not all(1 <= n <= 1024 for n in counts):
        raise argparse.ArgumentTypeError(f"expected numbers of threads from 1 to 1024, such as 1,2; found `{text}`")
    return counts


def one_of(kind, given, known):
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"they are {', '.join(known)}"
            sys.exit(f"error: unknown {kind} `{name}`; {hint}")


def main():
    parser = argparse.ArgumentParser(prog="girih bench", description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--against", type=names, metavar="NAMES", help="who else takes part")
    parser.add_argument("--threads", type=threads, default=None, metavar="N,N", help="by default 1 and all cores")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where the rows run: by default on processors, `gpu` on the GPU")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--filter", default="", help="only rows whose name holds this text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the rows, or the page of --report, are written")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--report", nargs="+", type=Path, metavar="FILE", help="draw rows that --output wrote")
    given = parser.parse_args()
    if given.report:
        from girih.bench import report

        return report.write(given.report, given.output or given.report[0].with_suffix(".html"))
    try:
        import torch
    except ImportError:
        sys.exit("error: the suites need PyTorch, which makes the models; `make peers` installs it and the others")
    from girih.bench import contestants
    from girih.bench.suites import FIRST, GPU, MODULES, SUITES, TRITON, usual

    known = [*SUITES, *MODULES, FIRST]
    one_of("suite", given.suites, known)
    if not given.suites:
        sys.exit(f"error: which suite? They are {', '.join(known)}")
    devices = {suite: given.device or ("cuda" if suite == GPU else "cpu") for suite in given.suites}
    if devices.get(GPU) == "cpu" or devices.get(FIRST) == "cuda":
        sys.exit(f"error: the suite `{GPU if devices.get(GPU) == 'cpu' else FIRST}` does not run on the device `{given.device}`")
    if "cuda" in devices.values() and not torch.cuda.is_available():
        if given.suites == ["launch"]:
            from girih.bench import standin

            if given.output:
                sys.exit("error: --output takes rows that are compared with others; `--json` prints these")
            return standin.main(given.rounds, given.json)
        sys.exit("error: rows on the device `cuda` need a GPU, and a PyTorch that finds it; only `launch` runs alone without one")
    if devices.get(TRITON) == "cuda":
        sys.exit(f"error: the suite `{TRITON}` runs Triton's kernels on the processor; leave out `--device cuda`")
    who = ["girih", *(given.against or dict.fromkeys(name for suite in given.suites for name in usual(suite)[1:]))]
    one_of("contestant", who, contestants.ALL)
    counts = given.threads or sorted({1, os.cpu_count() or 1})
    contestants.show_models_to_dynamo()
    report = {"machine": machine(counts, set(devices.values())), "versions": contestants.versions(who),
              "kernels": contestants.kernels(), "rounds": given.rounds, "rows": []}
    if not given.json:
        where = report["machine"].get("gpu", report["machine"]["processor"])
        print(f"{where}; {', '.join(f'{n} {v}' for n, v in report['versions'].items())}")
        print(f"kernels: {', '.join(f'{n} {v}' for n, v in report['kernels'].items())}")
    on_gpu = []
    for suite in given.suites:
        for row, done in of_suite(suite, devices[suite], given.filter, who, counts, max(1, given.rounds)):
            report["rows"].append({"suite": suite, **done})
            if row and row.device == "cuda":
                on_gpu.append((row, report["rows"][-1]))
            if not given.json:
                show(done, report["machine"]["limits"][str(done["threads"])])
            if given.output:
                written(given.output, lines(report))
    for _ in counted(on_gpu, sys.stderr.isatty()):
        if given.output:
            written(given.output, lines(report))
    if not report["rows"]:
        sys.exit(f"error: no row of {', '.join(given.suites)} holds `{given.filter}`")
    if given.json:
        print(json.dumps(report))
    elif given.output:
        print(f"written to {given.output}; `girih bench --report {given.output}` draws it")
    return None


def lines(report):
    """A report as JSON with a line for each row and for each other member; numbers have five digits."""

    def short(value):
        if isinstance(value, float):
            return float(f"{value:.5g}")
        if isinstance(value, dict):
            return {k: short(v) for k, v in value.items()}
        return [short(v) for v in value] if isinstance(value, list) else value

    members = [f' "{name}": {json.dumps(short(report[name]))}' for name in report if name != "rows"]
    rows = ",\n".join("  " + json.dumps(short(row)) for row in report["rows"])
    return "{\n" + ",\n".join([*members, f' "rows": [\n{rows}\n ]']) + "\n}\n"


def counted(on_gpu, told):
    """Counts the work of the rows of a GPU, each with what was measured, which gets it. This comes behind all measurements: the GPU is idle
    meanwhile, and need not be kept. With `told`, the terminal shows how far it is."""
    from girih.bench import measure

    for at, (row, done) in enumerate(on_gpu, 1):
        if told:
            text = f"everything is measured; counting the work of row {at} of {len(on_gpu)}: {row.name}"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        gc.collect()
        done["launches"] = measure.launches(row)
        yield done
    if told and on_gpu:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def of_suite(suite, device, text, who, counts, rounds):
    """The rows of a suite whose name holds a text, each with what was measured; a first call has `None` for a row."""
    from girih.bench import measure, suites

    if suite == suites.FIRST:
        for count in counts:
            yield from ((None, done) for done in measure.first_calls(count, rounds) if text in done["row"])
        return
    for row in suites.rows(suite, device):
        if text not in row.name:
            continue
        for count in [0] if row.device == "cuda" else counts:
            gc.collect()
            yield row, measure.row(row, who, count, rounds)


def machine(counts, devices):
    extension = _library.extension()
    counts = counts if "cpu" in devices else []
    processor, features, limits = extension.limits(counts)
    found = {
        "processor": processor or platform.processor(),
        "features": features,
        "limits": {str(n): dict(zip(("flops", "bytes", "bf16", "int8"), found)) for n, found in zip(counts, limits)},
    }
    for n in counts:
        found["limits"][str(n)]["by_size"] = [{"bytes": size, **rates} for size, rates in extension.bandwidths(n)]
    if "cuda" in devices:
        import torch

        from girih.bench import gpu

        found["limits"]["0"] = gpu.limits()
        found["gpu"] = torch.cuda.get_device_name(0)
    return found


def written(path, text):
    """Whole or not at all; ends the program with a message if that fails."""
    try:
        write_whole(path, text)
    except OSError as e:
        sys.exit(f"error: {path} cannot be written: {e.strerror}")


def ratio(row):
    """Girih's time over the best other's; `None` where there is none."""
    mine, times = row["median_s"].get("girih"), others(row)
    return mine / min(times.values()) if mine and times else None


def others(row):
    """The times of the others; a kernel of Girih's own language is not one."""
    return {who: time for who, time in row["median_s"].items() if who.split(".")[0] != "girih"}


def fraction(row, limits):
    """The fraction of this machine's limit, by arithmetic or by bytes, whichever bounds the row."""
    least = max(row["flops"] / limits[row["unit"]], row["bytes"] / bandwidth(row["bytes"], limits))
    return least / row["median_s"]["girih"]


def bandwidth(size, limits):
    """Bytes per second of the nearest memory that holds `size` bytes, by the fastest kind of traffic."""
    sizes = limits.get("by_size")
    if not sizes:
        return limits["bytes"]
    of = next((s for s in sizes if s["bytes"] >= size), sizes[-1])
    return max(rate for kind, rate in of.items() if kind != "bytes")


def duration(seconds):
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            break
    return f"{seconds / scale:.3g} {unit}"


def show(row, limits):
    """Prints a row."""
    name = f"{row['row']:42} {row['threads']:2}T" if row["threads"] else f"{row['row']:52}"
    if "girih" not in row["median_s"]:
        print(f"{name}  girih: {row['absent']['girih']}", flush=True)
        return
    r = ratio(row)
    text = f"{r:6.2f}{'' if r <= row['goal'] else ' >'}" if r is not None else "   -"
    times = "  ".join(f"{who} {duration(t)}" for who, t in row["median_s"].items())
    spread = max(row["spread"].values())
    print(f"{name} {text:8} {times}  {fraction(row, limits):.0%} of the limit, error {row['error']['girih']:.0e}"
          f"{f', spread {spread:.0%}' if spread > 0.1 else ''}", flush=True)  # fmt: skip
    for who, why in row["absent"].items():
        if why.startswith("wrong"):
            print(f"{'':46} {who} is {why}")


if __name__ == "__main__":
    main()
