"""Launches with tensors of PyTorch cannot be wrong: a kernel that was launched before meets other tensors, which may lie anywhere.

A launch on the memory of the last one is not tested again, and an autotuned one goes the shortest way. Each test launches twice
with good tensors, then with others; PyTorch's own operations say what is right.
"""

import gc
import random

import numpy as np
import pytest
import torch

import girih


@girih.jit
def add(x, y, out, n, BLOCK: girih.constexpr):
    i = girih.arange(0, BLOCK)
    girih.store(out + i, girih.load(x + i, mask=i < n) + girih.load(y + i, mask=i < n), mask=i < n)


tuned = girih.autotune([girih.Config({"BLOCK": 32}), girih.Config({"BLOCK": 64})], key=["n"])(add)
kept = add[(1,)]
WAYS = {
    "kernel[grid]": lambda *args: add[(1,)](*args, BLOCK=32),
    "kept": lambda *args: kept(*args, BLOCK=32),
    "by name": lambda x, y, out, n: add[(1,)](n=n, out=out, y=y, x=x, BLOCK=32),
    "run": lambda *args: add.run((1,), *args, BLOCK=32),
    "autotuned": lambda *args: tuned[(1,)](*args),
}


@pytest.fixture(autouse=True)
def first_configuration(monkeypatch):
    monkeypatch.setenv("GIRIH_AUTOTUNE", "0")


def warm(launch, n=16):
    x, y, out = (torch.randn(n) for _ in range(3))
    for _ in range(3):
        launch(x, y, out, n)
        assert torch.equal(out, x + y)


@pytest.mark.parametrize("way", WAYS)
def test_other_tensors_after_good_ones(way):
    launch = WAYS[way]
    warm(launch)
    rng = random.Random(way)
    for _ in range(100):
        n = rng.choice([5, 16])
        base = torch.randn(8 * 32)
        # Parts of one tensor: apart, adjacent, or one and the same; at any alignment.
        at = [rng.randrange(0, 8 * 32 - n + 1) for _ in range(3)]
        if rng.random() < 0.3:
            at[2] = rng.choice(at[:2])
        x, y = base[at[0] : at[0] + n], base[at[1] : at[1] + n]
        out = base[at[2] : at[2] + n]
        if at[2] not in at[:2] and any(abs(at[2] - a) < n for a in at[:2]):
            out = torch.empty(n)  # elements that one iteration writes and another reads are the program's own fault
        wanted = x + y
        launch(x, y, out, n)
        assert torch.equal(out, wanted), (at, n)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_odd_tensors_are_refused_after_good_ones(way, at):
    launch = WAYS[way]
    warm(launch)
    odd = {
        "resolve_neg": torch._neg_view(torch.ones(16)),
        "divide": torch.from_numpy(np.zeros(4 * 16 + 8, np.uint8)[1 : 1 + 64].view(np.float32)),
        "no memory": torch._efficientzerotensor(16),
        "layout": torch.ones(16).to_sparse(),
    }
    # A tensor that PyTorch makes another one in place.
    changed = torch.ones(16)
    changed.data = torch._neg_view(torch.ones(16))
    for why, tensor in [*odd.items(), ("resolve_neg", changed)]:
        args = [torch.ones(16) for _ in range(3)]
        args[at] = tensor
        with pytest.raises(ValueError, match=why):
            launch(*args, 16)
    complex_parts = torch.complex(torch.zeros(16), torch.ones(16)).conj()
    args = [torch.ones(16) for _ in range(3)]
    args[at] = complex_parts
    with pytest.raises(TypeError, match="complex"):
        launch(*args, 16)


@pytest.mark.parametrize("way", WAYS)
def test_short_tensors_are_refused_after_long_ones(way):
    launch = WAYS[way]
    warm(launch)
    x, y = torch.ones(16), torch.ones(16)
    whole = torch.empty(64)
    launch(x, y, whole[:16], 16)
    # The same address, fewer elements.
    with pytest.raises(girih.LaunchError, match="`out` holds 15 elements"):
        launch(x, y, whole[:15], 16)
    with pytest.raises(girih.LaunchError, match="`x` holds 1 elements"):
        launch(x[:1], y, whole[:16], 16)


@pytest.mark.parametrize("way", WAYS)
def test_memory_of_freed_tensors_is_taken_again(way):
    launch = WAYS[way]
    warm(launch)
    for n in [16, 5, 16]:
        for dtype in (torch.float32, torch.float64):
            x, y, out = torch.arange(n, dtype=dtype), torch.ones(n, dtype=dtype), torch.empty(n, dtype=dtype)
            launch(x, y, out, n)
            assert torch.equal(out, x + y)
            del x, y, out
            gc.collect()


@pytest.mark.parametrize("way", WAYS)
def test_kinds_of_tensors(way):
    launch = WAYS[way]
    warm(launch)
    x, y, out = torch.nn.Parameter(torch.ones(16)), torch.ones(16, requires_grad=True), torch.zeros(16)
    launch(x, y, out, 16)
    assert out.tolist() == [2.0] * 16

    class Own(torch.Tensor):
        pass

    launch(torch.ones(16).as_subclass(Own), torch.ones(16), out, 16)
    assert out.tolist() == [2.0] * 16
    # Arrays of two libraries in one launch.
    array = np.zeros(16, np.float32)
    launch(torch.ones(16), np.full(16, 3, np.float32), array, 16)
    assert array.tolist() == [4.0] * 16
    from torch._subclasses.fake_tensor import FakeTensorMode

    for unreal in (torch.empty(16, device="meta"), FakeTensorMode().from_tensor(torch.ones(16))):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            launch(unreal, torch.ones(16), out, 16)


class Counts(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("way", WAYS)
def test_a_mode_of_functions_changes_nothing(way):
    launch = WAYS[way]
    warm(launch)
    x, y, out, negated = torch.ones(16), torch.ones(16), torch.zeros(16), torch._neg_view(torch.ones(16))
    with Counts() as mode:
        launch(x, y, out, 16)
        with pytest.raises(ValueError, match="resolve_neg"):
            launch(negated, y, out, 16)
    assert out.tolist() == [2.0] * 16
    assert mode.seen[0] is not None


SCALE = 2


@girih.jit
def scale(x, n, BLOCK: girih.constexpr):
    i = girih.arange(0, BLOCK)
    girih.store(x + i, girih.load(x + i, mask=i < n) * SCALE, mask=i < n)


@pytest.mark.parametrize("launch", [
    lambda *args: scale[(1,)](*args, BLOCK=16),
    lambda *args, kernel=girih.autotune([girih.Config({"BLOCK": 16})], key=["n"])(scale): kernel[(1,)](*args),
], ids=["plain", "autotuned"])  # fmt: skip
def test_globals_are_looked_at_again(launch, monkeypatch):
    for value in (2, 2, 3, 3, 2):
        monkeypatch.setitem(globals(), "SCALE", value)
        x = torch.ones(16)
        launch(x, 16)
        assert x.tolist() == [float(value)] * 16


def test_the_choice_depends_on_types_and_key(monkeypatch):
    calls = []

    def model(config, arguments):
        calls.append((arguments["x"].dtype, arguments["n"]))
        return config

    kernel = girih.autotune(
        [girih.Config({"BLOCK": 16}), girih.Config({"BLOCK": 32})],
        key=["n"],
        prune_configs_by={"early_config_prune": lambda configs, arguments: [model(configs[arguments["n"] > 8], arguments)]},
    )(add)
    for dtype in (torch.float32, torch.float64, torch.float32):
        for n in (8, 9, 8):
            x, out = torch.ones(n, dtype=dtype), torch.empty(n, dtype=dtype)
            kernel[(1,)](x, x, out, n)
            assert torch.equal(out, x + x)
            assert kernel.best_config is kernel.configs[n > 8]
    assert calls == [(dtype, n) for dtype in (torch.float32, torch.float64) for n in (8, 9)]
    with pytest.raises(TypeError, match="autotune chooses `BLOCK`, but the launch passes it as well"):
        girih.autotune([girih.Config({"BLOCK": 16})], key=["n"])(add)[(1,)](x, x, out, 8, BLOCK=16)
    with pytest.raises(TypeError, match="autotune chooses `BLOCK`, but the launch passes it as well"):
        kernel[(1,)](x, x, out, 8, BLOCK=16)
