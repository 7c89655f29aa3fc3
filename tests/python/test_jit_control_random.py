"""Random kernels of control flow have the same effects as the same functions in Python."""

import importlib.util

import numpy as np
import pytest
from control_programs import program
from oracle import expected

SEEDS = 300
# Each of these is compiled by the C compiler too.
NATIVE = range(0, SEEDS, 25)


def load(folder, seed):
    path = folder / f"control_{seed}.py"
    path.write_text(program(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def check(folder, seed, device):
    kernel = load(folder, seed)
    for n in ((2, 7)[seed % 2],):
        data = np.arange(64, dtype=np.int32)
        try:
            kernel[1](data, n, device=device)
        except Exception as error:
            pytest.fail(f"seed {seed}, n = {n}: {type(error).__name__}: {error}\n{program(seed)}")
        want = expected(kernel, (n,), {}, 1)
        assert np.array_equal(data, want), f"seed {seed}, n = {n}, {device}\n{program(seed)}"


@pytest.mark.parametrize("part", range(10))
def test_evaluated(tmp_path, part):
    for seed in range(part, SEEDS, 10):
        check(tmp_path, seed, "eval")


@pytest.mark.parametrize("seed", NATIVE)
def test_native(tmp_path, seed):
    check(tmp_path, seed, "cpu")
