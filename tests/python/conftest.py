"""The package under test is the one that is installed; in a checkout without it, PYTHONPATH=python and target/release."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import girih.cutile

girih.cutile.install()


# Far longer than anything takes, on any machine, unless it hangs.
DEADLINE = 600


@pytest.fixture
def until():
    """Waits for something that another process does."""

    def until(done):
        end = time.monotonic() + DEADLINE
        while not done():
            assert time.monotonic() < end, "it does not happen"
            time.sleep(0.01)

    return until


def default_signals():
    """Restores the signals that whoever runs tests in the background ignores."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def start(tmp_path):
    """Starts this Python with arguments. It takes signals, though the tests may run where they are ignored, and ends with
    the test; `process.communicate(timeout=start.deadline)` waits for it."""
    started = []

    def start(*args, env=()):
        process = subprocess.Popen(
            [sys.executable, *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **dict(env)},
            preexec_fn=default_signals,
        )
        started.append(process)
        return process

    start.deadline = DEADLINE
    yield start
    for process in started:
        process.kill()
        process.communicate()


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

    def run(*args, env=(), cwd=None, timeout=DEADLINE):
        return subprocess.run(
            [sys.executable, *map(str, args)],
            capture_output=True,
            text=True,
            cwd=cwd or tmp_path,
            env={**os.environ, **dict(env)},
            timeout=timeout,
            preexec_fn=default_signals,
        )

    return run


@pytest.fixture
def cutile(run):
    """Runs ``python -m girih.cutile`` with arguments."""
    return lambda *args, **options: run("-m", "girih.cutile", *args, **options)
