"""`girih.torch.export`: whole models ahead of time."""

import os

import closeness
import numpy as np
import pytest
import torch

import girih
import girih.torch


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_a_model():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.Linear(16, 4))
    compiled = girih.torch.export(model, (torch.randn(3, 8),))
    closeness.matches(model, torch.randn(3, 8), compiled=compiled)
    assert repr(compiled) == "<girih model Sequential>"


def test_extents_that_change():
    model = torch.nn.Sequential(torch.nn.RMSNorm(8), torch.nn.Softmax(1))
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    x = torch.randn(3, 5, 8)
    compiled = girih.torch.export(model, (x,), dynamic_shapes=({0: batch, 1: length},))
    for shape in [(3, 5, 8), (4, 9, 8), (2, 2, 8)]:
        closeness.matches(model, torch.randn(shape), compiled=compiled)


BATCHES = {
    "linear": lambda: (torch.nn.Linear(8, 4), (8,)),
    "encoder": lambda: (torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (5, 16)),
    "images": lambda: (torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2), torch.nn.GroupNorm(2, 4), torch.nn.Flatten()), (3, 9, 9)),
    "means": lambda: (Means(), (6, 4)),
    "recurrent": lambda: (torch.nn.LSTM(4, 6, batch_first=True), (5, 4)),
}


class Means(torch.nn.Module):
    def forward(self, x):
        y = x.mean((1, 2), keepdim=True) + x.amax(1, keepdim=True) - x.sum(0)
        return y.softmax(-1), x.reshape(x.shape[0] * 2, -1).argmax(1), torch.cat([x, x * 2]).flip(0), x.transpose(0, 1) @ x.transpose(0, 1).mT


@pytest.mark.parametrize("name", BATCHES)
def test_batches_of_one_and_of_none(name):
    module, shape = BATCHES[name]()
    module.eval()
    program = torch.export.export(module, (torch.randn(2, *shape),), dynamic_shapes=({0: torch.export.Dim("b")},))
    compiled, exported = girih.torch.export(program), program.module()
    ran = set()
    for n in (1, 0, 5):
        x = torch.randn(n, *shape)
        try:
            wanted = exported(x)
        except Exception:
            continue
        ran.add(n)
        torch.testing.assert_close(compiled(x), wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
    # PyTorch's own module may refuse a batch of none.
    assert {1, 5} <= ran


def test_results_and_arguments_are_nested_as_the_model_nests_them():
    class Nested(torch.nn.Module):
        def forward(self, pair, *, scale):
            a, b = pair
            return {"sum": a + b * scale, "list": [a * 2, (b, 5)]}

    pair = (torch.randn(3), torch.randn(3))
    compiled = girih.torch.export(Nested(), (pair,), {"scale": torch.tensor(2.0)})
    given = compiled(pair, scale=torch.tensor(3.0))
    assert list(given) == ["sum", "list"] and given["list"][1][1] == 5
    torch.testing.assert_close(given["sum"], pair[0] + pair[1] * 3)


def test_buffers_and_arguments_that_are_written():
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls.add_(1)
            x.add_(1)
            return x * self.calls

    model = Count()
    compiled = girih.torch.export(model, (torch.zeros(3),))
    x = torch.zeros(3)
    assert compiled(x).tolist() == [1, 1, 1] and compiled(x).tolist() == [4, 4, 4]
    assert x.tolist() == [2, 2, 2] and model.calls == 2


def test_weights_count_as_they_are():
    model = torch.nn.Linear(4, 2)
    compiled = girih.torch.export(model, (torch.randn(3, 4),))
    x = torch.randn(3, 4)
    torch.testing.assert_close(compiled(x), model(x))
    with torch.no_grad():
        model.weight.zero_()
    torch.testing.assert_close(compiled(x), model(x))


def test_stages_as_text(tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", "cpu")
    compiled = girih.torch.export(torch.nn.RMSNorm(8), (torch.randn(3, 8),))
    assert "aten.rms_norm" in compiled.ir("torch")
    assert "reduce" in compiled.ir("tensor")
    for stage in ("loop", "tile", "kernel", "c"):
        assert compiled.ir(stage)
    assert "rms_norm" in compiled.trace()
    compiled.save(tmp_path / "norm.json")
    assert "girih.torch" in (tmp_path / "norm.json").read_text()


def test_everything_that_is_not_known_is_listed():
    class Unknown(torch.nn.Module):
        def forward(self, x):
            return torch.special.airy_ai(x), torch.special.bessel_j0(x)

    with pytest.raises(girih.ProgramError) as error:
        girih.torch.export(Unknown(), (torch.randn(4, 4),))
    messages = [d.message for d in error.value.diagnostics]
    assert any("airy_ai" in m for m in messages) and any("bessel_j0" in m for m in messages)
    assert all("test_export.py" in d.filename for d in error.value.diagnostics)


def mistakes(model, example, *wrong):
    compiled = girih.torch.export(model, (example,))
    with pytest.raises(girih.GirihError) as error:
        compiled(*wrong)
    return str(error.value)


def test_wrong_arguments():
    model, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    assert mistakes(model, x, torch.randn(3, 4).double()) == "argument `input` is torch.float32, not torch.float64"
    assert mistakes(model, x, torch.randn(4)) == "argument `input` has 2 dimensions, not 1"
    assert "3" in mistakes(model, x, torch.randn(5, 4))
    assert "captured with other arguments" in mistakes(model, x, x, x)
    with pytest.raises(girih.GirihError, match="no option `speed`"):
        girih.torch.export(model, (x,), speed=2)


def test_a_fault_is_an_exception_that_names_the_kernel(tmp_path, monkeypatch):
    """The file of an argument shrinks while it is mapped: the system stops the kernel that reads it."""
    monkeypatch.setenv("GIRIH_DEVICE", "cpu")
    compiled = girih.torch.export(torch.nn.Softmax(0), (torch.randn(4096),))
    mapped = np.memmap(tmp_path / "argument", np.float32, "w+", shape=4096)
    x = torch.from_numpy(mapped)
    torch.testing.assert_close(compiled(x), torch.full((4096,), 1 / 4096))
    os.truncate(tmp_path / "argument", 0)
    message = "softmax.* accessed memory that does not exist.*\n.*help: `check=True`"
    with pytest.raises(girih.ProgramError, match=message) as caught:
        compiled(x)
    assert caught.value.code == "E0603"
    torch.testing.assert_close(compiled(torch.zeros(4096)), torch.full((4096,), 1 / 4096))


def test_a_model_for_arrays_of_numpy():
    torch.manual_seed(0)

    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x, scale):
            y = self.linear(x) * scale
            return y, y.argmax(1)

    module = Two().eval()
    rows = torch.export.Dim("rows", min=2, max=64)
    shapes = {"x": {0: rows}, "scale": None}
    model = girih.Model.from_torch(module, (torch.randn(3, 8), torch.ones(4)), dynamic_shapes=shapes)
    assert [p.name for p in model.inputs] == ["x", "scale"] and model.inputs[1].shape == (4,)
    for n in (2, 5):
        x, scale = torch.randn(n, 8), torch.randn(4)
        want = [t.detach().numpy() for t in module(x, scale)]
        given = {"x": x.numpy(), "scale": scale.numpy()}
        y, at = model(**given)
        np.testing.assert_allclose(y, want[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(at, want[1])
        out = np.empty_like(want[0])
        assert model(**given, out={model.outputs[0].name: out})[0] is out
        np.testing.assert_array_equal(out, y)
    assert "aten.linear" in model.ir("torch")
    if os.environ.get("GIRIH_DEVICE", "cpu") == "cpu":
        assert model.profile(**given).steps
    else:
        with pytest.raises(girih.ProgramError, match="the devices cpu and cuda have a profile"):
            model.profile(**given)
    with pytest.raises(girih.ProgramError, match="`scale` is not given"):
        model(x=given["x"])


def test_conversions():
    class Converts(torch.nn.Module):
        def forward(self, x, mask):
            return (x.to(torch.float64) * mask.to(x.dtype)).to(torch.float32).float(), mask.to(torch.int64).to(torch.bool)

    x, mask = torch.randn(3, 5), torch.tensor([[1], [0], [2]])
    program = torch.export.export(Converts(), (x, mask))
    assert any("_assert_tensor_metadata" in str(node.target) for node in program.graph.nodes)
    closeness.matches(Converts(), x, mask, compiled=girih.torch.export(program))


def test_a_tensor_that_starts_elsewhere_in_its_storage():
    class Strided(torch.nn.Module):
        def forward(self, x):
            return torch.as_strided(x, (2, 2), (2, 1), 0) + 1

    compiled = girih.torch.export(Strided(), (torch.arange(4.0),))
    given = torch.arange(12.0)
    closeness.matches(Strided(), given[:4], compiled=compiled)
    # The strides count from where the storage starts, which compiled code does not see.
    with pytest.raises(girih.GirihError, match="`x` does not start where its storage does"):
        compiled(given[4:8])


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_launches_on_a_gpu_are_estimated(device):
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Softmax(-1))
    few, many = torch.randn(64, 64), torch.randn(4096, 64)
    compiled = girih.torch.export(model, (few,), device=device)
    launches = compiled.estimate(few)
    assert [launch.kernel for launch in launches] == ["k_linear", "k_softmax"]
    assert all(0 < launch.seconds < 1e-4 and launch.bound for launch in launches)
    # All bytes of the weights are read, and of what they are multiplied by.
    assert sum(bytes for _, bytes in launches[0].work["touched"]) >= 4 * (64 * 128 + 64 * 64)
    larger = girih.torch.export(model, (many,), device=device).estimate(many, blocks=2)
    assert larger[0].work["counted"] == 2 < larger[0].work["blocks"]
    assert sum(launch.seconds for launch in larger) > sum(launch.seconds for launch in launches)
    with pytest.raises(girih.GirihError, match=r"argument `input` has shape \[2, 64\]"):
        compiled.estimate(torch.randn(2, 64))
