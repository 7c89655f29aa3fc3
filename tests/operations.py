#!/usr/bin/env python3
"""Runs every operation of the dialect, on every element type it admits, on the evaluator against expectations computed here
with NumPy or worked out by hand, and natively against the evaluator, bit for bit. Fails too when an operation of the
compiler's table, or an element type it admits, has no case. With GIRIH_CHECK=1 in the environment the native runs check
every memory access. With `--target` a GPU on the simulator takes the place of native code, and with `--gpu` the GPU of this
machine; refusals must be in the table of docs/gpu.md."""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time

from operation_tests import control, coverage, floats, folds, integers, memory, products, shapes, views
from operation_tests.program import Program

BUILDERS = [floats, integers, shapes, memory, views, folds, products, control]
# The refusals of GPUs in docs/gpu.md: the words between backquotes of each row, which the error has.
# The differences of a GPU in docs/cuda.md: prefixes of programs' names, and the reason.
ON_A_GPU = {
    "atomics.f32/atomic_rmw_tko": "an atomic addition of f32 takes subnormal numbers for zero",
    "for.step": "a failed assertion ends the launch, and the driver does not say which",
    "assert.false": "a failed assertion ends the launch, and the driver does not say which",
}
PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/gpu.md"
SECTION = "## What is refused\n"


def refusals():
    rows = PAGE.read_text().split(SECTION)[1].split("\n## ")[0].splitlines()
    return [row.split("`")[1] for row in rows if row.startswith("| `")]


def refusal(complaints, said):
    """The row of the table that a program's refusal belongs to; None where it was not refused, or for another reason."""
    if len(complaints) != 1 or complaints[0] is None or not any(f"exit 1 on {gpu}" in complaints[0] for gpu in ("sim", "cuda")):
        return None
    return next((words for words in said if words in complaints[0] and "E0304" in complaints[0]), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("girih", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="only programs whose name has this in it")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the programs and their files")
    parser.add_argument("--target", help="run on the simulator as this GPU does, instead of natively")
    parser.add_argument("--gpu", action="store_true", help="run on the GPU of this machine, instead of natively")
    parser.add_argument("--schedules", type=int, default=1, help="with --target: under this number of schedules of the threads")
    parser.add_argument("--every", type=int, default=1, help="only every N-th of the programs")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--natively", type=int, default=1, metavar="N", help="only every N-th of these natively")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    for module in BUILDERS:
        module.build()
    gpu = "sim" if options.target else "cuda" if options.gpu else None
    if gpu:
        Program.target = options.target
        for program in Program.programs:
            program.devices = tuple(gpu if device == "cpu" else device for device in program.devices)
    chosen = [p for p in Program.programs if options.filter in p.name][options.first :: options.every]
    for at, program in enumerate(chosen):
        if at % options.natively:
            program.devices = tuple(device for device in program.devices if device != "cpu")
    failed = [] if options.filter else coverage.missing()
    for gap in failed:
        print("FAIL", gap)
    passed, otherwise, refused, said = 0, 0, [], refusals() if gpu else []
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or pathlib.Path(scratch)

        def one(program):
            folder = root / program.name
            folder.mkdir(parents=True, exist_ok=True)
            start = time.monotonic()
            results = []
            # Where atomics meet, schedules may leave different values: each is compared with the expected ones.
            runs = options.schedules if "atomic" in program.text() else 1
            for seed in range(runs):
                results = program.run(options.girih.resolve(), folder, seed, options.schedules // runs)
                # One complaint is enough.
                if any(complaint for _, complaint in results):
                    break
            if options.v:
                print(f"{program.name}: {len(results)} cases, {time.monotonic() - start:.1f} s", flush=True)
            return results

        with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
            for results in pool.map(one, chosen):
                why = refusal([complaint for _, complaint in results], said)
                if why is not None:
                    refused.append(why)
                    continue
                for name, complaint in results:
                    if complaint is None:
                        passed += 1
                    elif options.gpu and name.startswith(tuple(ON_A_GPU)) and ("exit 1 on cuda" in complaint or "addf f32" in name):
                        otherwise += 1
                    else:
                        failed.append(f"{name}: {complaint}")
                        print("FAIL", failed[-1], flush=True)
    if options.every == 1 and not options.filter:
        for words in set(said) - set(refused):
            failed.append(words)
            print(f"FAIL no program is refused by {options.target or gpu} for: {words}")
    print(f"{len(chosen)} programs, {len({op for op, _ in Program.covered})} operations")
    if options.gpu:
        print(f"{otherwise} differ as docs/cuda.md says")
    print(f"{passed} passed, {len(failed)} failed" + (f", {len(refused)} programs refused" if gpu else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
