"""Every decomposition of an ATen operation against PyTorch.

    python tests/aten.py GIRIH [--filter NAME] [--device eval|cpu] [--list]

In: cases of `tests/aten_cases`, each an operation of ATen with small operands. Out: for each operation whether its
results are PyTorch's. The operations of a case run in PyTorch once as they are and once in float64, and in Girih through
the JSON that `girih.torch` writes. Types, shapes, integers and truth values must agree exactly. Floats must lie within
four times PyTorch's own distance to the float64 result and a few units in the last place of the largest value.

A handle of a decomposition rule without a case, and a case without a rule, are failures.
"""

import argparse
import importlib
import json
import operator
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))


def writer():
    """`girih.torch._graph` from this checkout, without the compiled part of the package."""
    folder = ROOT / "python" / "girih" / "torch"
    package = types.ModuleType("girih_torch_json")
    package.__path__ = [str(folder)]
    sys.modules["girih_torch_json"] = package
    return importlib.import_module("girih_torch_json._graph")


graphs = writer()
import aten_cases  # noqa: E402


def tensors(value):
    """The tensors of an argument, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def replaced(value, f):
    if isinstance(value, torch.Tensor):
        return f(value)
    if isinstance(value, (list, tuple)):
        return [replaced(v, f) for v in value]
    return value


class Run:
    """Cases that go to Girih in one graph."""

    def __init__(self, cases):
        self.cases = cases
        self.graph = torch.fx.Graph()
        self.arrays = {}
        self.results = []
        #: The nodes of each case.
        self.nodes = []
        outputs = []
        for i, case in enumerate(cases):
            found = case.op(*case.args, **case.kwargs)
            several = isinstance(found, (tuple, list))
            found = list(found) if several else [found]
            before = len(self.graph.nodes)
            nodes = [self.placeholder(f"c{i}_{j}", t) for j, t in enumerate(case.tensors())]
            rest = iter(nodes)
            args = replaced(list(case.args), lambda t: next(rest))
            kwargs = {k: replaced(v, lambda t: next(rest)) for k, v in case.kwargs.items()}
            node = self.graph.call_function(case.op, tuple(args), kwargs)
            node.meta["val"] = tuple(found) if several else found[0]
            for j, value in enumerate(found):
                part = node
                if several:
                    part = self.graph.call_function(operator.getitem, (node, j))
                    part.meta["val"] = value
                if value.dtype != torch.bfloat16:
                    # A result that only looks at an operand is PyTorch's own, and no output; its copy is one.
                    part = self.graph.call_function(torch.ops.aten.clone.default, (part,))
                    part.meta["val"] = value.contiguous()
                else:
                    wide = value.to(torch.float32)
                    part = self.graph.call_function(
                        torch.ops.aten._to_copy.default, (part,), {"dtype": torch.float32}
                    )
                    part.meta["val"] = wide
                outputs.append(part)
            self.results.append(found)
            self.nodes.append(list(self.graph.nodes)[before:])
        self.graph.output(tuple(outputs))
        module = torch.fx.GraphModule(torch.nn.Module(), self.graph)
        self.document = graphs.Writer("cases", module, set(), as_they_lie=False).write(self.graph)

    def placeholder(self, name, value):
        value = value.detach()
        node = self.graph.placeholder(name)
        if value.dtype == torch.bfloat16:
            node.meta["val"] = value.to(torch.float32)
            self.arrays[name] = node.meta["val"].numpy()
            narrow = self.graph.call_function(torch.ops.aten._to_copy.default, (node,), {"dtype": torch.bfloat16})
            narrow.meta["val"] = value
            return narrow
        node.meta["val"] = value
        self.arrays[name] = value.contiguous().numpy()
        return node


class Problem(Exception):
    pass


def girih(binary, device, run, folder):
    """The outputs of a run, by position; or the messages that refuse it."""
    if run.document.refused:
        raise Problem("; ".join(f"{n}: {why}" for n, why in run.document.refused.items()))
    model = folder / "cases.json"
    model.write_text(json.dumps(run.document.root))
    command = [binary, "run", str(model), "--device", device]
    for name, array in run.arrays.items():
        np.save(folder / f"{name}.npy", array)
        command += ["--arg", f"{name}={folder / name}.npy"]
    for output in run.document.root["outputs"]:
        command += ["--save", f"{output['name']}={folder / output['name']}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise Problem(done.stderr.strip() or done.stdout.strip())
    return [np.load(folder / f"{o['name']}.npy") for o in run.document.root["outputs"]]


def widened(case):
    """The results in float64, where the case has floats; else None."""
    wide = lambda t: t.double() if t.is_floating_point() else t
    args = replaced(list(case.args), wide)
    kwargs = {k: replaced(v, wide) for k, v in case.kwargs.items()}
    for name, value in kwargs.items():
        if isinstance(value, torch.dtype) and value.is_floating_point:
            kwargs[name] = torch.float64
    try:
        found = case.op(*args, **kwargs)
    except Exception:
        return None
    return list(found) if isinstance(found, (tuple, list)) else [found]


def compare(case, found, wide, got):
    """None, or the error of one result."""
    if case.unchecked:
        return None
    if tuple(found.shape) != tuple(got.shape):
        return f"shape {list(got.shape)}, not {list(found.shape)}"
    if not found.is_floating_point():
        same = found.numpy() == got
        return None if np.all(same) else f"{got.reshape(-1)[:8]}, not {found.reshape(-1)[:8].numpy()}"
    own = found.to(torch.float64).numpy()
    got = got.astype(np.float64)
    if not np.array_equal(np.isnan(own), np.isnan(got)):
        return f"NaN stands elsewhere: {got.reshape(-1)[:8]}, not {own.reshape(-1)[:8]}"
    reference = wide.to(torch.float64).numpy() if wide is not None and wide.is_floating_point() else own
    finite = np.isfinite(own) & np.isfinite(reference)
    odd = ~finite & ~np.isnan(own)
    if not np.array_equal(own[odd], got[odd]):
        return f"infinities differ: {got.reshape(-1)[:8]}, not {own.reshape(-1)[:8]}"
    if not finite.any():
        return None
    eps = torch.finfo(found.dtype).eps
    largest = np.abs(reference[finite]).max()
    own, got, reference = own[finite], got[finite], reference[finite]
    bound = 4 * np.abs(own - reference).max() + case.ulps * eps * largest
    error = np.abs(got - reference).max()
    return None if error <= bound else f"off by {error:.3e}, allowed {bound:.3e}"


def check(binary, device, cases, folder):
    """Runs cases together; apart, where together they fail. Gives (case, problem) of those that fail."""
    try:
        run = Run(cases)
    except Exception as e:
        if len(cases) == 1:
            return [(cases[0], f"PyTorch: {type(e).__name__}: {str(e).splitlines()[0]}")]
        run = None
    if run is not None:
        try:
            outputs = girih(binary, device, run, folder)
        except (Problem, subprocess.TimeoutExpired) as e:
            if len(cases) == 1:
                return [(cases[0], str(e))]
            run = None
    if run is None:
        half = len(cases) // 2
        return check(binary, device, cases[:half], folder) + check(binary, device, cases[half:], folder)
    wrong = []
    rest = iter(outputs)
    for case, found in zip(cases, run.results):
        wide = widened(case) or [None] * len(found)
        problems = [compare(case, f, w, next(rest)) for f, w in zip(found, wide)]
        if any(problems):
            wrong.append((case, "; ".join(f"result {i}: {p}" for i, p in enumerate(problems) if p)))
    return wrong


def handles():
    """The operations of ATen that the decomposition rules declare to handle."""
    names = set()
    for path in sorted((ROOT / "crates/girih-graph/src/graph/decompose").rglob("*.rs")):
        for table in re.findall(r"^rules! \{(.*?)^\}", path.read_text(), re.S | re.M):
            names |= set(re.findall(r'"aten\.([A-Za-z0-9_]+)"\s*(?:\||=>)', table))
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("girih")
    parser.add_argument("--filter", default="")
    parser.add_argument("--device", default="eval")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cases = [c for c in aten_cases.cases() if args.filter in c.name]
    known = handles()
    missing = [] if args.filter else sorted(known - {c.name for c in cases} - set(aten_cases.COMPOSITE))
    strange = sorted({c.name for c in cases} - known)
    if args.list:
        print("\n".join(f"{c.name}: {c}" for c in cases))
        return 0
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(cases), 24):
            found = check(args.girih, args.device, cases[start : start + 24], Path(folder))
            for case, problem in found:
                print(f"WRONG {case}: {problem}", flush=True)
            wrong += found
    for name in missing:
        print(f"MISSING aten.{name} has a rule and no case")
    for name in strange:
        print(f"STRANGE aten.{name} has a case and no rule")
    print(f"{len(cases) - len(wrong)} of {len(cases)} cases of {len({c.name for c in cases})} operations agree")
    return 1 if wrong or missing or strange else 0


if __name__ == "__main__":
    sys.exit(main())
