"""Whole training steps under `torch.compile` end, and train as PyTorch does."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import girih.torch

SCRIPT = Path(__file__).with_name("whole_steps.py")
#: Seconds. A step that hangs would wait for ever.
LIMIT = 600


@pytest.fixture(scope="module")
def said():
    """The script's output for each step; it has no steps after one that hangs."""
    process = subprocess.Popen([sys.executable, str(SCRIPT)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        text, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        text = process.communicate()[0]
    return text


STEPS = [line.removeprefix("def ").partition("(")[0] for before, line in zip(
    *(lambda lines: (lines, lines[1:]))(SCRIPT.read_text().splitlines())) if before == "@step"]  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_a_step(name, said):
    assert f"same {name}" in said.splitlines(), said


def test_dynamo_compiles_nothing_of_the_package():
    from torch._dynamo import trace_rules

    for file in (girih.torch._recurrent.__file__, girih.torch._compiled.__file__, girih.__file__):
        assert trace_rules.check_file(file).skipped
    assert not trace_rules.check_file(__file__).skipped


def test_callbacks_of_dynamo_are_called_without_it():
    """A compiled function that Dynamo's callbacks find running would wait for the lock that they are called under."""
    handler = torch._dynamo.callback_handler
    torch.compile(lambda x: x + 1, backend="girih")(torch.ones(2))
    own = [f for f in (*handler.start_callbacks, *handler.end_callbacks) if "Capture" in repr(getattr(f, "__wrapped__", f))]
    assert len(own) == 2 and all(getattr(f, "_torchdynamo_disable", False) for f in own)
