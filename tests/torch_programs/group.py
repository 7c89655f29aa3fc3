"""Several programs as one compiled function, called with each set of arguments in turn.

Compiling one function of many programs costs much less than many functions: most of the time is Dynamo's. All programs
of a group share their extents, and the first call, the changed sizes of the second and the zeros and ones of the third
make PyTorch compile the function anew, with symbols in the place of numbers.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from dataclasses import dataclass, replace

import torch

from . import generate
from .compare import Difference, difference
from .program import Program, Run

#: The setting of `torch.compile` for extents: none (they are symbols where they change), all are symbols, or some
#dimensions are marked.
MODES = ("automatic", "automatic", "automatic", "dynamic", "dynamic", "marked")


@dataclass
class Group:
    programs: list[Program]
    mode: str
    device: str
    seed: int

    def only(self, *programs) -> Group:
        return replace(self, programs=list(programs))


def make(seed: int, size: int, device: str) -> Group:
    """The group of a seed; `device` mixed: one in `NATIVE` runs as native code."""
    rng = random.Random(seed)
    sizes = generate.extents(rng)
    mode = rng.choice(MODES)
    programs = [generate.make(seed, sizes, rng) for _ in range(size)]
    return Group(programs, mode, device, seed)


def function(group: Group):
    """The group as one function of all parameters, and each program's parameters."""
    lines = []
    for i, program in enumerate(group.programs):
        lines.append(program.source(f"f{i}"))
    names = [[f"p{i}_{n}" for n in p.parameters] for i, p in enumerate(group.programs)]
    lines.append(f"def group({', '.join(n for own in names for n in own)}):")
    calls = ", ".join(f"f{i}({', '.join(own)})" for i, own in enumerate(names))
    lines.append(f"    return ({calls},)")
    space = {"torch": torch, "F": torch.nn.functional}
    exec(compile("\n".join(lines), "<group>", "exec"), space)
    return space["group"]


class Outcome:
    """The differences: a list of (program, set, difference). A program of -1 is the whole group."""

    def __init__(self):
        self.found: list[tuple[int, int, Difference]] = []
        #: Operations that were left to PyTorch.
        self.left: Counter = Counter()


def check(group: Group, backend="girih") -> Outcome:
    outcome = Outcome()
    torch._dynamo.reset()
    options = {"options": {"device": group.device}} if backend == "girih" else {}
    dynamic = True if group.mode == "dynamic" else None
    compiled = torch.compile(function(group), backend=backend, dynamic=dynamic, **options)
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for at in range(len(group.programs[0].sets)):
            if call(group, compiled, at, outcome):
                break
    for warning in said:
        text = str(warning.message)
        if text.startswith("girih: "):
            outcome.left[text.removeprefix("girih: ")] += 1
    return outcome


def call(group, compiled, at, outcome) -> bool:
    """One call, compared; whether the programs raised."""
    runs, made, error = [], [], None
    for program in group.programs:
        run = Run(program, program.sets[at])
        try:
            run.whole()
        except Exception as e:
            error = e
        runs.append(run)
        made.append(program.sets[at].make())
    arguments = [values[n] for program, (values, _) in zip(group.programs, made) for n in program.parameters]
    if group.mode == "marked":
        drawn = random.Random(group.seed)
        for value in arguments:
            if isinstance(value, torch.Tensor) and value.dim() and drawn.random() < 0.5:
                torch._dynamo.maybe_mark_dynamic(value, drawn.randrange(value.dim()))
    try:
        given = compiled(*arguments)
    except Exception as e:
        if error is None:
            outcome.found.append((-1, at, Difference("raises", f"{type(e).__name__}: {first_lines(e)}")))
        return True
    if error is not None:
        outcome.found.append((-1, at, Difference("returns", f"PyTorch raises {type(error).__name__}: {first_lines(error)}")))
        return True
    for i, (run, results, (values, storages)) in enumerate(zip(runs, given, made)):
        if found := difference(run, results, values, storages):
            outcome.found.append((i, at, found))
    return False


def first_lines(error) -> str:
    return "\n    ".join(str(error).strip().splitlines()[:4])
