"""`torch.compile(backend="girih")` in processes that PyTorch's engines let work together, on this machine, over gloo.

Two and four processes have the same results as one. The collectives are PyTorch's; the pieces between them are Girih's.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

PROGRAM = Path(__file__).with_name("program.py")


def trained(folder, kind, processes):
    path = folder / f"{kind}-{processes}.pt"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run([*command, PROGRAM, kind, path], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return torch.load(path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("alone"), "ddp", 1)


@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("kind", ["ddp", "tensor", "fsdp"])
def test_as_one_process(kind, processes, alone, tmp_path):
    result = trained(tmp_path, kind, processes)
    # Sums over the batch, or over the hidden units, are added in another order.
    assert result["losses"] == pytest.approx(alone["losses"], rel=1e-5)
    assert result["losses"][-1] < result["losses"][0]
    assert result["parameters"].keys() == alone["parameters"].keys()
    for name, parameter in alone["parameters"].items():
        torch.testing.assert_close(result["parameters"][name], parameter, rtol=1e-4, atol=1e-6)
    # Girih computed the step, not PyTorch in its place.
    assert "backward" in result["report"] and "kernel" in result["report"], result["report"]
