"""Tests of `tests/torch_random.py`: it sees each kind of difference, and makes a program small."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from torch_programs import generate, group, isolated, shrink  # noqa: E402
from torch_programs.compare import difference  # noqa: E402
from torch_programs.program import Arguments, Program, Run, Statement, View  # noqa: E402


def program(lines, results, rounds=False):
    """A program of `x`, two rows of three floats, and `k`, 2."""
    arguments = Arguments([torch.arange(6.0)], {"x": View(0, (2, 3), (3, 1)), "k": 2})
    statements = [Statement(line, rounds, "x" if line.startswith("x") else None) for line in lines]
    return Program(["x", "k"], [arguments], statements, results)


def examined(p, function):
    """The kind of difference between a program and a function of its arguments."""
    run = Run(p, p.sets[0]).whole()
    values, storages = p.sets[0].make()
    found = difference(run, function(*values.values()), values, storages)
    return found.kind if found else None


TWICE = program(["v1 = x * k", "v2 = v1[0]"], ["v1", "v2", "x", "k"])


def twice(x, k, factor=2.0):
    y = x * factor
    return y, y[0], x, k


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (None, twice),
        ("value", lambda x, k: twice(x, k, 2.0001)),
        ("value", lambda x, k: (*twice(x, k)[:3], 3)),
        ("type", lambda x, k: (*twice(x, k)[:3], True)),
        ("type", lambda x, k: (x.double() * 2, *twice(x, k)[1:])),
        ("shape", lambda x, k: (x[:1] * 2, *twice(x, k)[1:])),
        ("strides", lambda x, k: ((x.t().contiguous() * 2).t(), *twice(x, k)[1:])),
        ("alias", lambda x, k: (x * 2, x[0] * 2, x, k)),
        ("alias", lambda x, k: (*twice(x, k)[:2], x.clone(), k)),
        ("alias", lambda x, k: (*twice(x, k)[:2], x.view(2, 3), k)),
        ("type", lambda x, k: twice(x, k)[:3]),
    ],
)  # fmt: skip
def test_differences(kind, function):
    assert examined(TWICE, function) == kind


def test_what_is_written():
    p = program(["x[0] += k"], ["k"])
    assert examined(p, lambda x, k: (x[0].add_(2) is None or k,)) is None
    assert examined(p, lambda x, k: (k,)) == "written"
    assert examined(p, lambda x, k: (x.add_(2) is None or k,)) == "written"


def test_a_view_at_another_place():
    p = program(["v1 = x[1]"], ["v1"])
    assert examined(p, lambda x, k: (x.view(-1)[3:],)) is None
    p = program(["v1 = x[:, 1]"], ["v1"])
    # The elements are equal: zeros.
    p.sets[0].storages[0].zero_()
    assert examined(p, lambda x, k: (x[:, 0],)) == "alias"


def test_what_rounding_allows():
    p = program(["v1 = torch.exp(x)", "v2 = v1 / k"], ["v2"], rounds=True)
    assert examined(p, lambda x, k: ((x.double().exp() / 2).float(),)) is None
    assert examined(p, lambda x, k: ((x.double().exp() / 2.0001).float(),)) == "value"
    # What is exact must be so.
    assert examined(program(["v1 = x * k"], ["v1"]), lambda x, k: (x * (2 + 2**-20),)) == "value"


def test_a_seed_is_a_program():
    first, again = (group.make(7, 4, "eval") for _ in range(2))
    assert [p.text() for p in first.programs] == [p.text() for p in again.programs]
    assert [p.text() for p in group.make(8, 4, "eval").programs] != [p.text() for p in first.programs]


def test_programs_have_what_they_are_for():
    """Some seeds give extents of 0 and 1, negative and changing integers, views, writes, and arguments that raise."""
    programs = [p for seed in range(12) for p in group.make(seed, 8, "eval").programs]
    seen = set()
    for p in programs:
        runs = [Run(p, arguments).whole() for arguments in p.sets]
        tensors = [v for run in runs for v in run.eager.values() if isinstance(v, torch.Tensor)]
        seen.update({"empty"} if any(0 in t.shape for t in tensors) else ())
        seen.update({"bool"} if any(t.dtype == torch.bool for t in tensors) else ())
        numbers = [[run.eager[n] for run in runs] for n in p.parameters if type(runs[0].eager[n]) is int]
        seen.update({"changes"} if any(len(set(n)) > 1 for n in numbers) else ())
        seen.update({"negative"} if any(min(n) < 0 for n in numbers) else ())
        seen.update({"writes"} if any(s.writes for s in p.statements) else ())
        results = [runs[0].eager[n] for n in p.results]
        seen.update({"view"} if any(isinstance(r, torch.Tensor) and r._is_view() for r in results) else ())
        seen.update({"argument"} if set(p.results) & set(p.parameters) else ())
        seen.update({"raises"} if generate.spoiled(p, random.Random(1)) else ())
    assert seen == {"empty", "bool", "changes", "negative", "writes", "view", "argument", "raises"}


def test_a_difference_is_made_small():
    found = None
    for seed in range(40):
        for p in group.make(seed, 8, "eval").programs:
            if len(p.statements) > 2 and any("cumsum" in s.text for s in p.statements):
                found = p
    small = shrink.shrink(found, lambda p: any("cumsum" in s.text for s in p.statements))
    assert [("cumsum" in s.text) for s in small.statements] == [True]
    assert len(small.sets) == 1 and len(small.results) == 1
    space = {"print": lambda result: space.update(given=result)}
    exec(small.text(), space)
    wanted = Run(small, small.sets[0]).whole().eager[small.results[0]]
    torch.testing.assert_close(space["given"][0], wanted, equal_nan=True)


COUNT = [0]


def counted(what):
    """Calls of this function in this process so far."""
    COUNT[0] += 1
    if what == "end":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(600)
    return COUNT[0], what


def test_isolated_calls_know_nothing_of_each_other():
    call = isolated.Isolated(counted, seconds=2)
    try:
        assert [call("a"), call("b")] == [((1, "a"), None), ((1, "b"), None)]
        assert call("end") == (None, "ends the process")
        assert call("hang") == (None, "does not end in 2 s")
        assert call("c") == ((1, "c"), None)
    finally:
        call.close()
