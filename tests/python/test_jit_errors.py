"""The messages that a user sees for each mistake in mistakes/.

The messages are in mistakes/messages.txt; `BLESS=1` writes them anew, to be read as a user would.
"""

import os
import re
import warnings
from pathlib import Path

import girih
import pytest
from mistakes.kernels import MISTAKES

MESSAGES = Path(__file__).parent / "mistakes" / "messages.txt"


def message(name):
    try:
        with warnings.catch_warnings():
            # A warning is a message too.
            warnings.simplefilter("error", girih.KernelWarning)
            MISTAKES[name]()
    except Exception as e:
        # A warning's text has its code.
        code = None if isinstance(e, girih.KernelWarning) else getattr(e, "code", None)
        text = f"{type(e).__name__}{f' [{code}]' if code else ''}: {e}"
    else:
        text = "no error"
    # Lines and addresses change; the test is that the line shown is the one marked.
    text = re.sub(r"[^\s\"]*/mistakes/\w+\.py:\d+", "kernels.py:LINE", text)
    text = re.sub(r"\bmistakes\.\w+\.", "mistakes.kernels.", text)
    text = re.sub(r"at line \d+", "at line LINE", text)
    text = re.sub(r"^ *\d+ \|", " LINE |", text, flags=re.M)
    return re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)


def test_there_are_many():
    assert len(MISTAKES) >= 180


def read():
    parts = re.split(r"^== (\w+)\n", MESSAGES.read_text(), flags=re.M)
    return dict(zip(parts[1::2], (p.rstrip("\n") for p in parts[2::2])))


def test_bless():
    if os.environ.get("BLESS") == "1":
        MESSAGES.write_text("".join(f"== {name}\n{message(name)}\n\n" for name in MISTAKES))
    assert sorted(read()) == sorted(MISTAKES)


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name):
    assert message(name) == read().get(name)


@pytest.mark.parametrize("name", MISTAKES)
def test_no_bug_shows(name):
    """No mistake ends in Python's own complaint about our code, and none goes unnoticed."""
    text = message(name)
    assert text != "no error"
    assert not re.match(r"(AttributeError|KeyError|IndexError|AssertionError|RecursionError|SystemError)", text)


def test_each_kind_has_a_code():
    """Errors of kernels have a code, and each code that is for kernels in Python alone is that of some mistake."""
    found = set()
    for name, text in read().items():
        if (kind := re.match(r"(CompilationError|UnsupportedError)( \[(E\d+)\])?:", text)) is not None:
            assert kind[3] not in (None, "E0115"), name
            found.add(kind[3])
    assert found >= {f"E0{n}" for n in range(116, 129)}
