"""Random kernels whose control flow reductions decide have NumPy's results, on the evaluator and on GPUs' simulator."""

import importlib.util

import numpy as np
import pytest
from reduced_programs import expected, program

SEEDS = 48
BLOCKS = 2


def check(folder, seed, devices, monkeypatch):
    size, n = (64, 128, 256)[seed % 3], seed % 7
    text = program(seed, size)
    path = folder / f"reduced_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.random.default_rng(seed).integers(0, 1000, 4 * size + 64).astype(np.int32)
    wanted = expected(text, x, size, n, BLOCKS)
    for device, target in devices:
        if target:
            monkeypatch.setenv("GIRIH_TARGET", target)
        o = np.zeros_like(wanted)
        try:
            module.kernel[(BLOCKS,)](x, o, n, device=device)
        except Exception as error:
            pytest.fail(f"seed {seed}, {device} {target}: {type(error).__name__}: {error}\n{text}")
        assert np.array_equal(o, wanted), f"seed {seed}, {device} {target}\n{text}"


@pytest.mark.parametrize("part", range(4))
def test_on_the_evaluator_and_on_the_simulator(tmp_path, part, monkeypatch):
    targets = ("sm_80", "sm_90a", "sm_100a", "sm_120")
    for seed in range(part, SEEDS, 4):
        check(tmp_path, seed, (("eval", None), ("sim", targets[seed // 4 % 4])), monkeypatch)


@pytest.mark.parametrize("seed", (5, 17))
def test_native(tmp_path, seed, monkeypatch):
    check(tmp_path, seed, (("cpu", None),), monkeypatch)
