"""Weights that are written to between calls, by every way there is to write to them: the next call has what they hold."""

import copy
import ctypes
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import girih.torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from torch_programs import weights  # noqa: E402
from torch_programs.weights import WRITES, exchanged, given_storage  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(48, 48), torch.nn.Linear(48, 48)
        self.second.weight = torch.nn.Parameter(self.first.weight.data.t())

    def forward(self, x):
        return self.second(self.first(x).relu())


class Derived(torch.nn.Module):
    """A model that computes a tensor from weights alone, which is done beforehand."""

    def __init__(self):
        super().__init__()
        self.weight, self.scale = torch.nn.Parameter(torch.randn(48, 48)), torch.nn.Parameter(torch.rand(48, 1))
        self.register_buffer("mask", (torch.rand(48, 48) > 0.5).float())

    def forward(self, x):
        return x @ (self.weight * self.scale.exp() * self.mask).softmax(-1).t()


def transposed():
    model = torch.nn.Linear(64, 64)
    model.weight = torch.nn.Parameter(model.weight.data.t().contiguous().t())
    return model


def strided():
    """Weights that are every second column of a storage."""
    model = torch.nn.Linear(48, 40)
    model.weight = torch.nn.Parameter(torch.randn(40, 96)[:, ::2])
    return model


def channels_last():
    model = torch.nn.Sequential(torch.nn.Conv2d(16, 24, 3), torch.nn.BatchNorm2d(24), torch.nn.ReLU(), torch.nn.Conv2d(24, 8, 1))
    return model.to(memory_format=torch.channels_last)


#: Models and their inputs.
MODELS = {
    "linear": (lambda: torch.nn.Linear(64, 64), (8, 64)),
    "one row": (lambda: torch.nn.Linear(96, 64), (1, 96)),
    "large": (lambda: torch.nn.Linear(600, 512, bias=False), (16, 600)),
    "bf16": (lambda: torch.nn.Linear(64, 64).bfloat16(), (8, 64)),
    "transposed": (transposed, (8, 64)),
    "strided": (strided, (5, 48)),
    "convolutions": (lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16)), (2, 3, 9, 9)),
    "channels_last": (channels_last, (2, 16, 7, 7)),
    "tied": (Tied, (7, 48)),
    "derived": (Derived, (3, 48)),
    "recurrent": (lambda: torch.nn.LSTM(16, 24), (3, 2, 16)),
}


def same(compiled, model, x, what):
    tolerance = 3e-2 if x.dtype == torch.bfloat16 else 1e-4
    with torch.no_grad():
        given, wanted = compiled(x), model(x)
    flat = [torch.utils._pytree.tree_leaves(v) for v in (given, wanted)]
    for g, w in zip(*flat):
        torch.testing.assert_close(g, w, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda text: f"{what}: {text}")


@pytest.mark.parametrize("name", MODELS)
def test_every_write_counts(name):
    make, size = MODELS[name]
    model = make().eval()
    x = torch.randn(size).to(next(model.parameters()).dtype)
    compiled = torch.compile(model, backend="girih")
    same(compiled, model, x, "at first")
    tensors = [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]
    for at, (way, write) in enumerate(WRITES.items()):
        for p in (tensors[at % len(tensors)], tensors[0]):
            # NumPy has no bfloat16, and a vector no rows.
            if (way == "numpy" and p.dtype == torch.bfloat16) or (way.startswith("data of") and p.dim() < 2):
                continue
            write(p)
            same(compiled, model, x, f"{way} of {list(p.shape)}")


def test_an_exported_model():
    model, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 32)).eval(), torch.randn(8, 64)
    whole = girih.torch.export(model, (x,))
    for write in (None, *WRITES.values()):
        # An exported model keeps its tensors: it does not see one that the caller puts in their place.
        if write not in (exchanged, given_storage) and write is not None:
            write(model[0].weight)
        same(whole, model, x, write)


def test_another_tensor_of_the_same_storage():
    storage = torch.randn(64, 128)
    model = torch.nn.Linear(64, 64)
    model.weight = torch.nn.Parameter(storage[:, :64].contiguous())
    other = torch.nn.Parameter(model.weight.data.view(-1)[:100])
    compiled, x = torch.compile(model, backend="girih"), torch.randn(8, 64)
    for _ in range(3):
        same(compiled, model, x, "through another parameter")
        other.data.mul_(1.5)


@pytest.mark.parametrize("device", ["eval", "sim"])
def test_other_devices(device):
    model, x = torch.nn.Linear(16, 16), torch.randn(4, 16)
    compiled = torch.compile(model, backend="girih", options={"device": device})
    for _ in range(2):
        same(compiled, model, x, device)
        model.weight.data.clamp_(-0.01, 0.01)


def test_frozen_weights_are_constants():
    """They are looked at no more: only what PyTorch counts tells that they are others."""
    model, x = torch.nn.Linear(64, 64), torch.randn(8, 64)
    compiled = torch.compile(model, backend="girih", options={"freeze": True})
    with torch.no_grad():
        before = compiled(x).clone()
        model.weight.data.mul_(2)
        assert torch.equal(compiled(x), before)
        model.weight.mul_(2)
        same(compiled, model, x, "counted")


def test_freeze_is_true_or_false():
    with pytest.raises(Exception, match="`freeze` is True or False, not 1"):
        torch.compile(torch.nn.Linear(2, 2), backend="girih", options={"freeze": 1})(torch.ones(1, 2))


def test_weights_of_another_process_are_seen():
    """Shared memory that somebody else writes to: here another mapping of the same bytes."""
    model, x = torch.nn.Linear(64, 64).share_memory(), torch.randn(8, 64)
    compiled = torch.compile(model, backend="girih")
    same(compiled, model, x, "at first")
    elements = np.frombuffer(
        (ctypes.c_char * model.weight.nbytes).from_address(model.weight.data_ptr()), dtype=np.float32
    )
    elements[:] = 0.25
    same(compiled, model, x, "shared")


def test_a_copy_of_a_model_has_weights_of_its_own():
    model, x = torch.nn.Linear(64, 64), torch.randn(8, 64)
    other = copy.deepcopy(model)
    one, two = torch.compile(model, backend="girih"), torch.compile(other, backend="girih")
    for _ in range(2):
        same(one, model, x, "one")
        same(two, other, x, "two")
        other.weight.data.neg_()


@pytest.mark.parametrize("seed", range(4))
def test_random_models(seed):
    case = weights.make(random.Random(seed))
    assert not weights.differences(case, options={"device": "eval"}), case.text()


def test_weights_that_lie_otherwise_are_looked_at_and_not_left_to_pytorch():
    torch._dynamo.reset()
    girih.torch.report(clear=True)
    model = torch.nn.Conv2d(8, 8, 3, padding=1).to(memory_format=torch.channels_last).eval()
    run, x = torch.compile(model, backend="girih", options={"device": "eval"}), torch.randn(2, 8, 6, 6)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
            model.weight.data.mul_(2)
    assert girih.torch.report().native, girih.torch.report()
