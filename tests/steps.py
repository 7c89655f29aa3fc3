"""Runs a product after each line of its schedules, in examples/schedules: every prefix computes the same.

    python tests/steps.py target/release/girih [--page docs/product.md]

On the CPU each prefix runs and is compared with float64; for a GPU the simulator runs one block of those that are complete. With --page
the tables of that page are written anew: times on this machine, and what the simulator counts for the whole grid.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "examples" / "schedules"
#: A GPU's kernel whose stages TMA fills is not complete before they stand in a pipeline.
INCOMPLETE = "must begin a pipeline's body|are not spread over the threads"
#: Steps after which one thread does all that a block does: one of the 16 blocks is simulated.
ALONE = ("kernel", "stage_read")


def prefixes(schedule):
    """The last line and the text of each prefix, from the schedule without a step on."""
    lines = schedule.read_text().splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("kernel "))
    for end in range(first + 1, len(lines) + 1):
        yield lines[end - 1].strip(), "\n".join(lines[:end]) + "\n"


def girih(binary, *args):
    return subprocess.run([binary, *map(str, args)], capture_output=True, text=True, timeout=900)


def on_cpu(binary, program, schedule, page):
    """The cells of a row: milliseconds and billions of operations a second."""
    done = girih(binary, "run", program, "--schedule", schedule, "--verify", "--threads", 1, *["--time"] * page)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    said = done.stdout + done.stderr
    if "verify: ok" not in said:
        sys.exit(f"the results were not compared:\n{said}")
    if not page:
        return []
    least, unit, rate = re.search(r"least ([\d.]+) (s|ms|us), .*?; ([\d.]+) GFLOP/s", said).groups()
    flops = 2 * 512**3
    seconds = float(least) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]
    return [f"{1e3 * seconds:.1f}", f"{flops / seconds / 1e9:.1f}"]


def on_gpu(binary, program, schedule, target, page, alone):
    if alone and not page:
        # A block of one thread takes the simulator a minute.
        done = girih(binary, "compile", program, "--target", target, "--schedule", schedule, "--ir", "kernel")
        return sys.exit(done.stderr) if done.returncode else []
    block = ["--block", "0,0,0", "--schedules", 1] if alone or not page else []
    done = girih(binary, "sim", program, "--target", target, "--schedule", schedule, *block)
    if done.returncode and re.search(INCOMPLETE, done.stderr):
        return ["", "", "", ""] if page else []
    if done.returncode or "nothing found" not in done.stdout:
        sys.exit(done.stdout + done.stderr)
    if not page:
        return []
    text = done.stdout
    blocks = 16 if alone else 1
    read = re.search(r"global memory: (\d+) bytes", text).group(1)
    shared = re.search(r"shared memory: .* (\d+) wavefronts \(([\d.]+)x\)", text)
    waves = f"{blocks * int(shared.group(1)):,} ({shared.group(2)}x)" if shared else ""
    estimate, bound = re.search(r"not measured: (.*?), bound by (.*)", text).groups()
    return [f"{blocks * int(read) / 1e6:.1f} MB", waves, estimate, bound]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("girih")
    parser.add_argument("--page", type=pathlib.Path)
    flags = parser.parse_args()
    tables, count = {}, 0
    for schedule in sorted(FOLDER.glob("*.*.txt")):
        name, target = schedule.stem.split(".")
        program, rows = FOLDER / f"{name}.mlir", []
        for line, text in prefixes(schedule):
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write(text)
                file.flush()
                if target == "cpu":
                    cells = on_cpu(flags.girih, program, file.name, bool(flags.page))
                else:
                    alone = line.startswith(ALONE)
                    cells = on_gpu(flags.girih, program, file.name, target, bool(flags.page), alone)
            count += 1
            rows.append([line if not line.startswith("kernel") else "", *cells])
        tables[target] = rows
    if flags.page:
        write(flags.page, tables)
    print(f"{count} prefixes of {len(tables)} schedules are right")


def write(page, tables):
    heads = {
        "cpu": ["step", "ms", "GFLOP/s"],
        "sm_90a": ["step", "read and written", "wavefronts of shared memory", "estimate", "bound by"],
    }
    text = page.read_text()
    for target, rows in tables.items():
        lines = ["| " + " | ".join(heads[target]) + " |", "|---" * len(heads[target]) + "|"]
        lines += ["| " + " | ".join([f"`{row[0]}`" if row[0] else "the nest as it is written", *row[1:]]) + " |" for row in rows]
        begin, end = f"<!-- {target} -->\n", f"<!-- end of {target} -->"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(lines) + "\n" + end + rest.split(end)[1]
    page.write_text(text)


if __name__ == "__main__":
    main()
