"""The scripts in examples/python: right on both devices, and accepted by NVIDIA's compiler."""

import itertools
import os
import runpy
import subprocess
import sys
from pathlib import Path

import girih
import pytest
from oracle import tileiras

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "python"
SCRIPTS = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem != "common")


# Each script for one GPU, in turn, unless GIRIH_TARGET names one for all.
TARGETS = ["sm_90a", "sm_80", "sm_100a", "sm_120"]


def simulated(script, target, *options):
    """A script as a GPU runs it."""
    command = [sys.executable, str(FOLDER / f"{script}.py"), "--device", "sim", *options]
    env = {"GIRIH_TARGET": target, **os.environ}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)


def test_all_are_listed():
    listed = (FOLDER / "README.md").read_text()
    assert [s for s in SCRIPTS if f"({s}.py)" not in listed] == []


@pytest.mark.parametrize(("script", "target"), list(zip(SCRIPTS, itertools.cycle(TARGETS))))
def test_simulated(script, target):
    """Right, and without a race."""
    done = simulated(script, target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout and "WRONG" not in done.stdout


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_training_on_the_matrix_unit(target):
    """Ten steps with products in tf32, which the simulated GPU multiplies on its matrix unit."""
    done = simulated("tiny_gpt", target, "--precision", "tf32", "--steps", "10")
    assert done.returncode == 0 and "after 10 steps" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_results(script, device):
    command = [sys.executable, str(FOLDER / f"{script}.py"), "--device", device]
    if script == "tiny_gpt" and device == "eval":
        command.append("--small")
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout and "WRONG" not in done.stdout


@pytest.mark.skipif(tileiras() is None, reason="NVIDIA's tileiras is not installed")
@pytest.mark.parametrize("script", SCRIPTS)
def test_bytecode_is_accepted(script, monkeypatch, tmp_path):
    """Every kernel that the script launches, as bytecode, compiles for sm_100."""
    launched = {}
    run = girih.JITFunction.run

    def recorded(self, grid, /, *args, **kwargs):
        kernel = self._kernel(args, kwargs)
        launched[id(kernel)] = (self.__name__, kernel)
        run(self, grid, *args, **kwargs)

    monkeypatch.setattr(girih.JITFunction, "run", recorded)
    monkeypatch.setattr(sys, "argv", [script, "--small"])
    monkeypatch.syspath_prepend(str(FOLDER))
    runpy.run_path(str(FOLDER / f"{script}.py"), run_name="__main__")
    assert launched
    running = []
    for i, (name, kernel) in enumerate(launched.values()):
        bytecode = kernel.bytecode(None)
        # alloca, a block's own memory, is the only thing in these kernels that this compiler may refuse.
        if "alloca" in kernel.ir("cuda_tile"):
            continue
        path = tmp_path / f"{i}.tileirbc"
        path.write_bytes(bytecode)
        command = [tileiras(), "--gpu-name", "sm_100", "-O0", path, "-o", os.devnull]
        running.append((name, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
        if len(running) % 4 == 0:
            running[-4][1].wait()
    refused = [(name, output) for name, p in running if (output := p.communicate()[0]) is not None and p.returncode]
    assert refused == []
