"""Results of PyTorch's own operations lie as in eager mode, for operands that lie in several ways; `tests/torch_layouts.py` runs all."""

import sys
import warnings
from pathlib import Path

import pytest
import torch

import girih.torch  # noqa: F401
from girih.torch import _layouts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch_layouts  # noqa: E402

#: Operations whose results' layouts PyTorch predicts in Python, and some of those that it takes apart.
NAMES = (
    "ldexp", "copysign", "heaviside", "logaddexp", "logical_xor", "floor_divide", "special.xlog1py", "xlogy", "__rpow__",
    "nn.functional.gelu", "nn.functional.prelu", "native_dropout_backward", "sigmoid", "lerp", "addcmul", "where", "clamp", "native_batch_norm",
    "normal", "roll", "einsum", "cumsum", "split", "unbind",
)  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", NAMES)
def test_predicted(name):
    found, count = torch_layouts.differences(name, samples=3, backend=torch_layouts.predicted)
    assert count >= 8 and not found, "\n".join(found)


@pytest.mark.parametrize("name", ["ldexp", "logaddexp", "einsum", "nn.functional.prelu"])
def test_results(name):
    found, count = torch_layouts.differences(name, samples=2, options={"device": "eval"})
    assert count >= 8 and not found, "\n".join(found)


def test_small_tensors_lie_as_large_ones():
    """Kernels are asked with tensors of few elements: dense ones stay dense, gaps stay gaps, and orders stay."""
    made = torch.Generator().manual_seed(3)

    def draw(low, high):
        return int(torch.randint(low, high, (), generator=made))

    for _ in range(300):
        rank = draw(1, 5)
        size = [(1, 1, 3, 50, 700)[draw(0, 5)] for _ in range(rank)]
        axes = torch.randperm(rank, generator=made).tolist()
        strides, step = [0] * rank, 1
        for axis in axes:
            strides[axis] = 0 if draw(0, 8) == 0 else step
            step *= size[axis] * (1, 1, 1, 2)[draw(0, 4)]
        [(less, steps)] = _layouts.small([(size, strides)])
        large = torch.empty_strided(size, strides, device="meta")
        little = torch.empty_strided(less, steps, device="meta")
        assert large.numel() >= little.numel() and little.numel() <= 4**rank
        assert large.is_contiguous() == little.is_contiguous(), (size, strides, less, steps)
        assert _layouts.is_dense(large) == _layouts.is_dense(little), (size, strides, less, steps)
        for a in range(rank):
            for b in range(rank):
                assert (strides[a] < strides[b]) == (steps[a] < steps[b]), (size, strides, less, steps)
                assert (size[a] < size[b]) == (less[a] < less[b])
