"""The pages on Python: generated from the sources, and every example gives the stated result."""

import contextlib
import doctest
import importlib.util
import io
import pdb
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "python"

spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)


@pytest.mark.parametrize("name", generate.functions())
def test_examples_of_functions(name):
    examples = generate.results(name)
    assert examples, "the docstring has no example"
    for source, expected, given in examples:
        assert given == expected, source


def test_examples_for_the_host():
    assert generate.host_failures() == ""


def test_the_page_is_fresh():
    assert generate.PAGE.read_text() == generate.page(), "run `python docs/python/generate.py`"


PAGES = ["../../README.md", "../afternoon.md", "guide.md", "from-triton.md", "from-cutile.md", "from-onnxruntime.md"]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_pages(page, tmp_path, monkeypatch):
    """The Python of a page runs from top to bottom, and a block of text after it is its output or its exception."""
    monkeypatch.setenv("GIRIH_AUTOTUNE", "memory")
    monkeypatch.chdir(tmp_path)
    # Python's own debugger, and not pytest's.
    monkeypatch.setattr(sys, "breakpointhook", lambda: pdb.Pdb(nosigint=True, readrc=False).set_trace(sys._getframe(1)))
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (FOLDER / page).read_text(), re.M | re.S)
    names = {}
    for i, (language, code) in enumerate(blocks):
        if language != "python":
            continue
        expected = blocks[i + 1][1] if i + 1 < len(blocks) and blocks[i + 1][0] == "text" else ""
        path = tmp_path / str(i) / "kernels.py"
        path.parent.mkdir()
        path.write_text(code)
        given = said(lambda: exec(compile(code, str(path), "exec"), names), expected)
        given = re.sub(r"/\S*/(?=kernels\.py)", "", given).rstrip("\n")
        # Where the debugger stands, at the breakpoint or after it, depends on Python's version.
        expected, given = (re.sub(r"^> .*\n-> .*\n", "", text, flags=re.M) for text in (expected.rstrip("\n"), given))
        assert doctest.OutputChecker().check_output(expected, given, doctest.ELLIPSIS), f"{code}\ngives\n{given}"


def said(action, expected):
    """The prints or the exception of an action; a debugger is given the commands that the expected text shows."""
    out, commands = io.StringIO(), re.findall(r"^\(Pdb\) (.*)$", expected, re.M)

    class Typed:
        def readline(self):
            line = commands.pop(0) + "\n" if commands else ""
            out.write(line)
            return line

    stdin, sys.stdin = sys.stdin, Typed()
    try:
        with contextlib.redirect_stdout(out):
            action()
    except Exception as e:
        if not expected:
            raise
        out.write(f"{e}\n")
    finally:
        sys.stdin = stdin
    return out.getvalue()
