"""The pages on Python: made from what is there, and every example gives what it says."""

import importlib.util
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
