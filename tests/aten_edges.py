"""The operations of `tests/aten_cases` where they are easily forgotten, against PyTorch.

    python tests/aten_edges.py GIRIH [--filter NAME] [--device eval|cpu] [--every N] [--kind empty|scalar|symbolic]

In: the cases of `tests/aten.py`. Derived from each, as far as PyTorch accepts them:

* `empty`: every extent that occurs becomes 0, in all tensors and in one at a time;
* `scalar`: every number that is an argument becomes one of another kind or value: `True`, `0`, `2`, `-1`, `0.5`;
* `symbolic`: every whole number that is an argument is known only when the model runs.

Out: the cases whose results differ from PyTorch's. PyTorch runs an operation that Girih refuses, so a refusal is not a
mistake, but a crash is one; the summary says how many were refused.
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import aten  # noqa: E402
import aten_cases  # noqa: E402

SCALARS = (True, 0, 2, -1, 0.5)


class Edge(aten_cases.Case):
    """A case derived from another; `symbolic` is the number of its arguments that a run decides, or None."""

    def __init__(self, base, args, kwargs, symbolic=None):
        super().__init__(base.name, base.overload, args, kwargs, max(base.ulps, 8), base.unchecked)
        self.symbolic = symbolic

    def __str__(self):
        return super().__str__() + ("" if self.symbolic is None else f" with a symbolic {self.symbolic}")


def emptied(t, extents):
    """The tensor with extents of 0 instead of these."""
    return t[tuple(slice(0, 0) if n in extents else slice(None) for n in t.shape)].clone() if t.dim() else t


def empty(case):
    """Every extent 0 in all tensors (and in lists of extents), then in one."""
    tensors = case.tensors()
    for n in sorted({n for t in tensors for n in t.shape}):
        change = lambda t, n=n: emptied(t, {n})  # noqa: E731
        every = lambda v, n=n: [0 if x == n else x for x in v] if is_ints(v) else v  # noqa: E731
        for also in (lambda v: v, every):
            args = [also(aten.replaced(a, change)) for a in case.args]
            yield Edge(case, args, {k: also(aten.replaced(v, change)) for k, v in case.kwargs.items()})
        for at, t in enumerate(tensors):
            if n in t.shape and len(tensors) > 1:
                count = iter(range(len(tensors)))
                one = lambda t, at=at, n=n: emptied(t, {n}) if next(count) == at else t  # noqa: E731
                args = [aten.replaced(a, one) for a in case.args]
                yield Edge(case, args, {k: aten.replaced(v, one) for k, v in case.kwargs.items()})


def is_ints(v):
    return isinstance(v, (list, tuple)) and v and all(type(x) is int for x in v)


def places(case):
    """Every argument that is a number, with a function that gives the case with another there."""
    for i, value in enumerate(case.args):
        if isinstance(value, (bool, int, float)):
            yield value, lambda new, i=i: ([*case.args[:i], new, *case.args[i + 1 :]], case.kwargs)
    for name, value in case.kwargs.items():
        if isinstance(value, (bool, int, float)):
            yield value, lambda new, name=name: (case.args, {**case.kwargs, name: new})


def scalar(case):
    for value, put in places(case):
        for new in SCALARS:
            if (type(new), new) != (type(value), value):
                yield Edge(case, *put(new))


def symbolic(case):
    for value, put in places(case):
        for new in (0, 1, 2, 3):
            if type(value) is not bool:
                yield Edge(case, *put(new), symbolic=new)


def accepted(cases):
    """The cases that PyTorch computes. A few crash PyTorch itself, so a child of this process finds out."""
    kept, at = [], 0
    while at < len(cases):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            for case in cases[at:]:
                try:
                    case.op(*case.args, **case.kwargs)
                    os.write(writer, b"y")
                except Exception:
                    os.write(writer, b"n")
            os._exit(0)
        os.close(writer)
        with open(reader, "rb") as said:
            verdicts = said.read()
        os.waitpid(child, 0)
        kept += [case for case, v in zip(cases[at:], verdicts) if v == ord("y")]
        at += len(verdicts) + 1
    return kept


def make_symbolic(node, value):
    """Every whole number of a node that is `value` becomes the symbol `k`. False: there is none."""
    found = False

    def changed(v):
        nonlocal found
        if type(v) is int and v == value:
            found = True
            return {"ix": "k"}
        return v

    node["args"] = [changed(a) for a in node["args"]]
    node["attrs"] = {name: changed(v) for name, v in node["attrs"].items()}
    return found


def run(binary, device, cases, folder):
    """The outputs of each case, or None where it is refused."""
    kept = list(range(len(cases)))
    while kept:
        batch = aten.Run([cases[i] for i in kept])
        root = batch.document.root
        owner = {id(node): i for i, nodes in zip(kept, batch.nodes) for node in nodes}
        for written, node in zip(root["nodes"], batch.document.nodes):
            written["module"] = f"case{owner[id(node)]}"
        refused = {owner[id(node)] for node in batch.document.refused if id(node) in owner}
        value = next((c.symbolic for c in cases if c.symbolic is not None), None)
        if value is not None:
            root["symbols"] = [{"name": "k", "lo": 0, "hi": 64}]
            root["inputs"].append({"name": "k_long", "dtype": "f32", "shape": ["k"], "role": "argument"})
            batch.arrays["k_long"] = np.zeros(value, np.float32)
            seen = {}
            for written in root["nodes"]:
                if not written["op"].endswith(("_to_copy", ".clone")):
                    seen[written["module"]] = make_symbolic(written, value)
            refused |= {i for i in kept if not seen.get(f"case{i}", False)}
        if refused:
            kept = [i for i in kept if i not in refused]
            continue
        try:
            outputs = iter(aten.girih(binary, device, batch, folder))
        except aten.Problem as e:
            named = {int(n) for n in re.findall(r"in case(\d+)[ :]", str(e))}
            if not named & set(kept):
                if len(kept) == 1:
                    return {kept[0]: str(e)}
                half = len(kept) // 2
                first = run(binary, device, [cases[i] for i in kept[:half]], folder)
                second = run(binary, device, [cases[i] for i in kept[half:]], folder)
                return {kept[i]: v for i, v in first.items()} | {kept[half + i]: v for i, v in second.items()}
            kept = [i for i in kept if i not in named]
            continue
        return {i: (found, [next(outputs) for _ in found]) for i, found in zip(kept, batch.results)}
    return {}


KINDS = {"empty": empty, "scalar": scalar, "symbolic": symbolic}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("girih")
    parser.add_argument("--filter", default="")
    parser.add_argument("--device", default="eval")
    parser.add_argument("--every", type=int, default=1, help="only every Nth case")
    parser.add_argument("--kind", choices=KINDS)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    groups, seen = {}, set()
    for case in aten_cases.cases():
        if options.filter not in case.name or case.unchecked:
            continue
        for kind in [options.kind] if options.kind else KINDS:
            for edge in KINDS[kind](case):
                key = (kind, str(edge))
                if key not in seen:
                    seen.add(key)
                    groups.setdefault((kind, edge.symbolic), []).append(edge)
    total = wrong = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for (kind, _), edges in groups.items():
            edges = accepted(edges[:: options.every])
            for start in range(0, len(edges), 32):
                batch = edges[start : start + 32]
                results = run(options.girih, options.device, batch, Path(folder))
                total += len(batch)
                for i, edge in enumerate(batch):
                    if i not in results:
                        refused += 1
                        continue
                    outcome = results[i]
                    if isinstance(outcome, str):
                        problems = [outcome]
                    else:
                        wide = aten.widened(edge) or [None] * len(outcome[0])
                        problems = [aten.compare(edge, f, w, g) for f, w, g in zip(outcome[0], wide, outcome[1])]
                    if any(problems):
                        print(f"WRONG {kind} {edge}: {next(p for p in problems if p)}", flush=True)
                        wrong += 1
    print(f"{total - wrong - refused} of {total} agree, {refused} are refused")
    return 1 if wrong or total == refused else 0


if __name__ == "__main__":
    sys.exit(main())
