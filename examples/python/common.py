"""The shared parts of the examples: the command line, and a comparison that says how far off a result is."""

import argparse
import sys
import time

import numpy as np


def arguments(description, also=()):
    """`--device`, `--small`, `--time`, and what a script has besides: pairs of a name and argparse's words for it."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "eval", "sim", "cuda"], default="cpu", help="where the kernels run")
    parser.add_argument("--small", action="store_true", help="small arrays; the default on eval and sim")
    parser.add_argument("--time", action="store_true", help="compare the time with NumPy's")
    for name, words in also:
        parser.add_argument(name, **words)
    options = parser.parse_args()
    options.small |= options.device != "cpu"
    return options


def check(name, got, want, tolerance=1e-5):
    """Ends the program with a message unless `got` is near `want` (float64), relative to its largest element."""
    want = np.asarray(want, np.float64)
    scale = np.abs(want).max(initial=1e-30)
    error = float(np.abs(np.asarray(got, np.float64) - want).max(initial=0.0) / scale)
    verdict = "ok" if error <= tolerance else "WRONG"
    print(f"{name}: {verdict}, largest error {error:.1e} (bound {tolerance:.0e})")
    if verdict != "ok":
        sys.exit(1)


def median_seconds(function, rounds=5):
    """The median time of a call, after one to warm up."""
    function()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[rounds // 2]


def compare(name, ours, theirs, rounds=5):
    """Prints how much faster than NumPy a kernel is, both measured now."""
    print(f"{name}: {median_seconds(theirs, rounds) / median_seconds(ours, rounds):.2f} times NumPy's speed")
