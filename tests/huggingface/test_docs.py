"""The page on folders of Hugging Face: its Python runs from top to bottom, and its commands print what the page says."""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "models" / "huggingface.md"
GIRIH = os.environ.get("GIRIH") or str(ROOT / "target/release/girih")


def compare(expected, given):
    assert doctest.OutputChecker().check_output(expected, given, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), given


def test_blocks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIRIH_PYTHON", sys.executable)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert {language for language, _ in blocks} == {"python", "text", "console"}
    names = {}
    for (language, code), following in zip(blocks, [*blocks[1:], ("", "")]):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code, names)
            compare(following[1] if following[0] == "text" else "", out.getvalue())
        elif language == "console":
            for command, expected in re.findall(r"^\$ girih (.*)\n((?:(?!\$ ).*\n)*)", code, re.M):
                asked = [GIRIH, *shlex.split(command)]
                done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=200)
                assert done.returncode == (1 if expected.startswith("error") else 0), (command, done.stdout)
                compare(expected, done.stdout)
