"""The package under test is the one that is installed; in a checkout without it, PYTHONPATH=python and target/release."""

import os
import subprocess
import sys
import textwrap

import pytest

import girih.cutile

girih.cutile.install()


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its path."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def run(tmp_path):
    """Runs this Python with arguments; gives the finished process."""

    def run(*args, env=(), cwd=None, timeout=120):
        return subprocess.run(
            [sys.executable, *map(str, args)],
            capture_output=True,
            text=True,
            cwd=cwd or tmp_path,
            env={**os.environ, **dict(env)},
            timeout=timeout,
        )

    return run


@pytest.fixture
def cutile(run):
    """Runs ``python -m girih.cutile`` with arguments."""
    return lambda *args, **options: run("-m", "girih.cutile", *args, **options)
