#!/usr/bin/env python3
"""Runs every operation of the dialect, on every element type it admits, on the evaluator against expectations computed here
with NumPy or worked out by hand, and natively against the evaluator, bit for bit. Fails too when an operation of the
compiler's table, or an element type it admits, has no case. With GIRIH_CHECK=1 in the environment the native runs check
every memory access."""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time

from operation_tests import control, coverage, floats, folds, integers, memory, products, shapes, views
from operation_tests.program import Program

BUILDERS = [floats, integers, shapes, memory, views, folds, products, control]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("girih", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="only programs whose name has this in it")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the programs and their files")
    parser.add_argument("--target", help="run on the simulator as this GPU does, instead of natively")
    parser.add_argument("--every", type=int, default=1, help="only every so many of the programs")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    for module in BUILDERS:
        module.build()
    if options.target:
        Program.target = options.target
        for program in Program.programs:
            program.devices = tuple("sim" if device == "cpu" else device for device in program.devices)
    chosen = [p for p in Program.programs if options.filter in p.name][:: options.every]
    failed = [] if options.filter else coverage.missing()
    for gap in failed:
        print("FAIL", gap)
    passed = 0
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or pathlib.Path(scratch)

        def one(program):
            folder = root / program.name
            folder.mkdir(parents=True, exist_ok=True)
            start = time.monotonic()
            results = program.run(options.girih.resolve(), folder)
            if options.v:
                print(f"{program.name}: {len(results)} cases, {time.monotonic() - start:.1f} s", flush=True)
            return results

        with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
            for results in pool.map(one, chosen):
                for name, complaint in results:
                    if complaint is None:
                        passed += 1
                    else:
                        failed.append(f"{name}: {complaint}")
                        print("FAIL", failed[-1], flush=True)
    print(f"{len(chosen)} programs, {len({op for op, _ in Program.covered})} operations")
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
