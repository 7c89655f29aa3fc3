"""Runs every cuTile program of programs/ and kernels/ on Girih, and counts.

    python tests/cutile/run.py [--device cpu|eval|sim] [--all] [--every N] [--first K] [--check] [--torch]
                               [--filter TEXT] [--jobs N]

Each program is a script that checks itself against NumPy and knows nothing of Girih: it runs under
`python -m girih.cutile` in a process of its own. One line per program, the end of a failed one's output, and one line
of counts. Without a filter it also checks that the programs use every public name of cuda.tile that kernels have,
every member of its enumerations, and every keyword-only argument: EXCEPTIONS lists what they leave out, and why.

On the simulator of a GPU, which is slow, every second program runs, each for one target in turn; with `--all`, or a filter,
every program for every target.
"""

import argparse
import ast
import concurrent.futures
import enum
import importlib.util
import inspect
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

EXCEPTIONS = {
    "MemoryScope.CLUSTER": "not for cuTile",
    "RoundingMode.RZI": "the one way floats become integers; no function takes it",
    "TileCompilerExecutionError": "raised when the compiler behind cuTile fails, which no correct program sees",
    "TileCompilerTimeoutError": "raised when the compiler behind cuTile takes too long",
    "TileInternalError": "a bug of cuTile",
    "TileUnsupportedFeatureError": "raised by compilers older than the programs need",
    "TileValueError": "raised by cuTile for wrong values; its base class is expected where the subclass varies",
    "float8_e5m3fnu": "only for targets that no released GPU has",
    "foreign_pointer_dtype": "a type of values that only calls of foreign functions make",
    "ConstantAnnotation": "what `Constant` is made of",
    "DType": "the class of the data types",
    "Scalar": "a name for annotations",
    "TiledView": "the class of what Array.tiled_view gives",
    "compilation": "export for other loaders; the tests of bytecode cover it",
}


# The GPUs that are simulated.
TARGETS = ["sm_90a", "sm_80", "sm_100a", "sm_120"]


def programs(pattern, folders):
    found = sorted(path for folder in folders for path in HERE.glob(f"{folder}/*.py"))
    return [path for path in found if pattern in str(path.relative_to(HERE))]


def run(path, options, timeout):
    """The exit code, the output and the seconds it took."""
    environment = dict(os.environ, CUDA_TILE_CACHE_DIR="off")
    if importlib.util.find_spec("girih") is None:
        paths = (str(ROOT / "python"), environment.get("PYTHONPATH"))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    start = time.monotonic()
    command = [sys.executable, "-m", "girih.cutile", *options, str(path)]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=timeout)
        code, text = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, text = None, (late.stdout or b"") + f"\nstopped after {timeout} s".encode()
    return code, text.decode(errors="replace"), time.monotonic() - start


def wanted():
    """The names of cuda.tile that the programs must use: functions, members and methods, and `function(keyword=)`."""
    import cuda.tile as ct
    from cuda.tile import _stub as stub

    names = set()
    for name in ct.__all__:
        names.add(name)
        value = getattr(ct, name)
        if inspect.isclass(value) and issubclass(value, enum.Enum):
            names |= {f"{name}.{member}" for member in value.__members__}
        elif callable(value) and not inspect.isclass(value):
            names |= {f"{name}({keyword}=)" for keyword in keywords(value)}
    for owner in (ct.Array, ct.Tile, ct.TiledView, stub.RawArrayMemory):
        for method, value in vars(owner).items():
            if not method.startswith("_"):
                names.add(f".{method}")
                value = getattr(value, "__func__", value)
                if callable(value):
                    names |= {f".{method}({keyword}=)" for keyword in keywords(value)}
    return names


def keywords(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]


def used(path):
    """The same names, as one program uses them."""
    tree = ast.parse(path.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "cuda.tile"
                for alias in node.names}
    names = set()
    for node in ast.walk(tree):
        names.add(dotted(node, imported))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            names.add(f".{node.attr}")
        if isinstance(node, ast.Call) and (name := dotted(node.func, imported)):
            names |= {f"{name}({keyword.arg}=)" for keyword in node.keywords}
    return names


def dotted(node, imported):
    """`ct.f` and an imported `f` as "f", `ct.Enum.MEMBER` as "Enum.MEMBER", any other attribute as ".name"."""
    if isinstance(node, ast.Name):
        return node.id if node.id in imported else None
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name) and node.value.id == "ct":
        return node.attr
    owner = dotted(node.value, imported) or "."
    return f"{owner}.{node.attr}" if owner[0].isupper() else f".{node.attr}"


def uncovered(paths):
    names = set().union(*(used(path) for path in paths))
    missing = wanted() - names
    return sorted(missing - set(EXCEPTIONS)), sorted(set(EXCEPTIONS) - missing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "eval", "sim"), default="cpu")
    parser.add_argument("--all", action="store_true", help="on the simulator: every program for every target")
    parser.add_argument("--every", type=int, default=1, help="only every N-th of the programs")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--check", action="store_true", help="test every memory access of every kernel")
    parser.add_argument("--torch", action="store_true", help="the programs of torch/, which need PyTorch, instead")
    parser.add_argument("--filter", default="", help="only programs whose path holds this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one program")
    arguments = parser.parse_args()

    options = ["--device", arguments.device] + ["--check"] * arguments.check
    paths = programs(arguments.filter, ["torch"] if arguments.torch else ["programs", "kernels"])
    if not paths:
        sys.exit(f"no program's path holds `{arguments.filter}`")
    runs = [(path, options) for path in paths]
    if arguments.device == "sim":
        whole = arguments.all or arguments.filter
        runs = [(path, [*options, "--target", target]) for at, path in enumerate(paths)
                for target in (TARGETS if whole else TARGETS[at // 2 % len(TARGETS):][:1] if at % 2 == 0 else [])]
    runs = runs[arguments.first :: arguments.every]
    start = time.monotonic()
    failed = []
    with concurrent.futures.ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
        results = pool.map(lambda run_of: run(*run_of, arguments.timeout), runs)
        for (path, given), (code, text, seconds) in zip(runs, results):
            name = " ".join([str(path.relative_to(HERE)), *given[3:]])
            print(f"{'ok' if code == 0 else 'FAILED':6} {seconds:5.1f} s  {name}", flush=True)
            if code != 0:
                failed.append(path)
                print("".join(f"    {line}\n" for line in text.rstrip().splitlines()[-20:]), end="")
                print(f"    again: python -m girih.cutile {' '.join(given)} {path.relative_to(ROOT)}", flush=True)

    device = " ".join(options[1:]).replace("--check", "with checks")
    some = f" of {len(paths)}" if len({path for path, _ in runs}) < len(paths) else ""
    print(f"{len(runs)} runs of {len({path for path, _ in runs})}{some} programs, {len(runs) - len(failed)} passed on {device}, "
          f"{len(failed)} failed, {time.monotonic() - start:.0f} s")
    if not arguments.filter and not arguments.torch:
        missing, needless = uncovered(paths)
        for name in missing:
            print(f"no program uses cuda.tile's {name}")
        for name in needless:
            print(f"EXCEPTIONS names {name}, which the programs use")
        if missing or needless:
            failed.append("coverage")
        else:
            print(f"they use all of cuda.tile's {len(wanted()) - len(EXCEPTIONS)} public names, members and keywords "
                  f"of kernels, but for {len(EXCEPTIONS)} with a reason")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
