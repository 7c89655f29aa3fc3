"""The pages on Python: generated from the sources, and every example gives the stated result."""

import importlib.util
import pdb
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "python"


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


generate, pages = module(FOLDER / "generate.py"), module(ROOT / "tests" / "walks" / "pages.py")


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
    names = {}
    for i, (language, code, shown) in enumerate(pages.blocks((FOLDER / page).read_text())):
        if language != "python":
            continue
        path = tmp_path / str(i) / "kernels.py"
        path.parent.mkdir()
        path.write_text(code)
        given = pages.said(lambda: exec(compile(code, str(path), "exec"), names), shown)
        assert pages.agrees(shown, given), f"{code}\ngives\n{given}"
