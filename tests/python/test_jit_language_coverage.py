"""Every function of the language is tested, and its docstring says what types and shapes it has."""

import re
from pathlib import Path

import pytest

import girih.language as tl

TESTS = "".join(p.read_text() for p in sorted(Path(__file__).parent.glob("test_jit_language_*.py")) if p.name != Path(__file__).name)
FUNCTIONS = [n for n in tl.__all__ if getattr(getattr(tl, n), "__girih_builtin__", False)]
# Functions about no tile at all.
WITHOUT_TYPES = {"constexpr_function", "debug_barrier", "static_assert", "static_print", "sync", "pointer_type"}
TYPES = r"\b(u?int\d+|b?float\d*|floats|integers?|booleans|numbers|dtype|any types?|address(es)?|texts?)\b"
SHAPES = r"\[[\w, -]+\]|shapes?|scalar|elements?|dimensions?"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_tested(name):
    assert re.search(rf"\btl\.(math\.)?{name}\b", TESTS), f"no test calls girih.language.{name}"


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in WITHOUT_TYPES])
def test_it_is_documented(name):
    doc = getattr(tl, name).__doc__ or ""
    assert re.search(TYPES, doc), f"the docstring of {name} names no types"
    assert re.search(SHAPES, doc), f"the docstring of {name} names no shapes"


def test_mathematics_has_its_own_name():
    assert all(getattr(tl, n, None) is getattr(tl.math, n) for n in tl.math.__all__ if not n.startswith("fast_"))
