"""Small inputs that ask for more than any machine has: models, expressions, arrays and programs.

    .venv/bin/python tests/hostile.py target/release/girih [--filter WORD]

Each is given to `check` or `compile`, and to the evaluator, with four GiB of addresses and far more processor time than
it takes. It may work or be refused with a reason; it may not be killed by a signal or end in an error of Girih's own.
`--time` lists the processor time of each command.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from hostile import expressions, models, others

MEMORY, SECONDS = 4 << 30, 300


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def children():
    """The processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cases(folder):
    """`(name, arguments)` of every command."""
    for name, content in models.models():
        path = os.path.join(folder, f"{name}.onnx")
        with open(path, "wb") as f:
            f.write(content)
        yield name, ["compile", "--ir", "tensor" if name in models.LONG else "c", path]
        if name in models.EXPANDING:
            continue
        yield name, ["run", "--device", "eval", path, "--json"]
    for name, text in expressions.expressions():
        yield name, ["compile", "--ir", "c", "-c", text]
        yield name, ["run", "--device", "eval", "--json", "-c", text]
    yield from others.commands(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("girih")
    parser.add_argument("--filter", default="")
    parser.add_argument("--time", action="store_true", help="run one command at a time, and list processor times")
    options = parser.parse_args()

    def run(case):
        name, args = case
        before = children()
        done = subprocess.run([options.girih, *args], capture_output=True, preexec_fn=limit, check=False)
        if options.time:
            print(f"{children() - before:8.2f} s  {name}: girih {' '.join(args)[:60]!r}", flush=True)
        silent = done.returncode != 0 and not done.stderr.strip()
        # 0 it works, 1 refused, 2 a wrong command line, 3 a trap.
        if done.returncode not in (0, 1, 3) or silent:
            return f"{name}: girih {' '.join(args)[:200]} gives {done.returncode}\n{done.stderr[-400:].decode(errors='replace')}"
        return None

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1 if options.time else os.cpu_count()) as pool:
        chosen = [c for c in cases(folder) if options.filter in c[0]]
        bad = []
        for outcome in pool.map(run, chosen):
            if outcome:
                print(outcome, flush=True)
                bad.append(outcome)
    print(f"{len(chosen)} commands, {len(bad)} failed, {children():.0f} s of processor time")
    return 1 if bad or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
