"""Races between blocks are named with both lines of the Python."""

import inspect
import re

import numpy as np
import pytest
import races

from girih.triton import Array, KernelWarning


def marked(kernel):
    """The lines of a kernel that race."""
    lines, first = inspect.getsourcelines(kernel.fn)
    at = [first + i for i, line in enumerate(lines) if "# here" in line]
    return at * 2 if len(at) == 1 else at


def lines_of(text):
    return sorted({int(n) for n in re.findall(r"races\.py:(\d+)", text)})


@pytest.mark.parametrize("kernel", races.ALL, ids=lambda k: k.fn.__name__)
def test_both_lines_are_named(kernel, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", "sim")
    kernel.device_caches.clear()
    x, out = (np.full(64, n, dtype="float32").view(Array) for n in (1, 0))
    with pytest.raises(Exception) as raised:
        kernel[(2,)](x, out, BLOCK=8)
    assert lines_of(str(raised.value)) == sorted(set(marked(kernel))), str(raised.value)


@pytest.mark.parametrize("kernel", races.ALL, ids=lambda k: k.fn.__name__)
def test_the_evaluator_warns_at_the_line_that_launched(kernel, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", "eval")
    kernel.device_caches.clear()
    x, out = (np.full(64, n, dtype="float32").view(Array) for n in (1, 0))
    with pytest.warns(KernelWarning) as warned:
        kernel[(2,)](x, out, BLOCK=8)
    found = "\n".join(str(w.message) for w in warned)
    assert lines_of(found) == sorted(set(marked(kernel))), found
    assert {w.filename for w in warned} == {__file__}
