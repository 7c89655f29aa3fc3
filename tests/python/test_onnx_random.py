"""Some graphs of `tests/onnx_random.py`, which makes and judges them."""

import collections
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))
import onnx_random


@pytest.mark.parametrize("part", range(4))
def test_random_arithmetic_of_extents(part):
    outcomes = collections.Counter()
    for seed in range(part * 50, part * 50 + 50):
        outcome, text = onnx_random.check(seed, depth=2)
        assert outcome in ("one model", "special"), f"{outcome}: python tests/onnx_random.py --seed {seed} --count 1: {text}"
        outcomes[outcome] += 1
    # Most are one model for all sizes.
    assert outcomes["one model"] >= 40, outcomes


@pytest.mark.parametrize("seed", [5308, 6930])
def test_what_a_warning_says_of_a_least_extent(seed):
    """`t is at least 5`, and not `t is from 5 to 2147483647`."""
    outcome, text = onnx_random.check(seed, depth=3)
    assert outcome in ("one model", "special"), text
