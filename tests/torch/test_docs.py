"""The pages on models of PyTorch and on layouts: their Python runs from top to bottom and prints what the pages show."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "models"


@pytest.mark.parametrize("page", ["pytorch", "layouts"])
def test_blocks(page):
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (PAGES / f"{page}.md").read_text(), re.M | re.S)
    names = {}
    for (language, code), following in zip(blocks, [*blocks[1:], ("", "")]):
        if language != "python":
            continue
        expected, out = following[1] if following[0] == "text" else "", io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(code, names)
        except Exception as e:
            if not expected:
                raise
            out.write(f"{e}\n")
        assert doctest.OutputChecker().check_output(expected, out.getvalue(), doctest.ELLIPSIS), out.getvalue()
