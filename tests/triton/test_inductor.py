"""PyTorch's inductor with `cpu_backend = "triton"`: the kernels that it writes, on Girih, beside eager mode."""

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

inductor = pytest.importorskip("torch._inductor.config")


@pytest.fixture(autouse=True)
def triton_on_the_processor(monkeypatch):
    torch._dynamo.reset()
    torch.manual_seed(0)
    # The processes that compile for inductor find an installed package, not a checkout.
    with inductor.patch(cpu_backend="triton", compile_threads=1, force_disable_caches=True):
        yield


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (t.view(2, 10, 4, 8).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2)) / 8**0.5
        scores = scores.masked_fill(torch.ones(10, 10, dtype=torch.bool).triu(1), float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(2, 10, 32))


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(48))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Rotary(nn.Module):
    def forward(self, x):
        angles = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-torch.arange(0, x.shape[2], 2) / x.shape[2])
        a, b = x[..., ::2], x[..., 1::2]
        turned = (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())
        return torch.stack(turned, -1).flatten(-2)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(40)
        self.up, self.down = nn.Linear(40, 80), nn.Linear(80, 40)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def images():
    return torch.randn(2, 3, 12, 12)


def rows():
    return torch.randn(6, 37)


# A name, a module, and what it is given.
MODELS = {
    "pointwise": (Of(lambda x: torch.sin(x) * x.exp() + (x > 0)), rows),
    "softmax": (nn.Softmax(-1), rows),
    "log_softmax": (nn.LogSoftmax(-1), rows),
    "layer_norm": (nn.LayerNorm(37), rows),
    "rms_norm": (RmsNorm(), lambda: torch.randn(5, 48)),
    "group_norm": (nn.GroupNorm(2, 6), lambda: torch.randn(2, 6, 5, 5)),
    "batch_norm": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), images),
    "linear_gelu": (nn.Sequential(nn.Linear(37, 20), nn.GELU()), rows),
    "mlp": (nn.Sequential(nn.Linear(37, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(-1)), rows),
    "residual": (Residual(), lambda: torch.randn(3, 7, 40)),
    "attention": (Attention(), lambda: torch.randn(2, 10, 32)),
    "rotary": (Rotary(), lambda: torch.randn(2, 9, 16)),
    "convolution": (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)), images),
    "average_pool": (nn.Sequential(nn.AvgPool2d(3, 2), nn.Sigmoid()), images),
    "upsample": (nn.Upsample(scale_factor=2, mode="bilinear"), images),
    "embedding": (nn.Sequential(nn.Embedding(11, 16), nn.LayerNorm(16)), lambda: torch.randint(0, 11, (4, 6))),
    "cumsum": (Of(lambda x: x.cumsum(-1) + x.amax(-1, keepdim=True)), rows),
    "argmax": (Of(lambda x: (x.argmax(-1), x.var(-1), x.std(0))), rows),
    "gather": (Of(lambda x: torch.gather(x, 1, (x * 7).long().abs() % 37)), rows),
    "cross_entropy": (Of(lambda x: F.cross_entropy(x, torch.arange(6))), rows),
    "half": (Of(lambda x: (x.half() * 2 + 1).softmax(-1).bfloat16()), rows),
    "gru_cell": (nn.GRUCell(37, 16), rows),
    "scatter": (Of(lambda x: torch.zeros(10, 37).index_add(0, torch.tensor([1, 3, 1, 9, 0, 3]), x)), rows),
    "dropout": (nn.Sequential(nn.Linear(37, 8), nn.Dropout(0.5), nn.ReLU()).eval(), rows),
}


def kernels_of(model, x):
    """The result of a call, and the code that inductor wrote for it."""
    from torch._inductor.utils import run_and_get_code

    return run_and_get_code(torch.compile(model), x)


@pytest.mark.parametrize("name", MODELS)
def test_equals_eager(name):
    model, given = MODELS[name]
    x = given()
    with torch.no_grad():
        expected = model(x)
        found, code = kernels_of(model, x)
    assert "@triton.jit" in "".join(code)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["mlp", "residual", "attention", "layer_norm", "cross_entropy"])
def test_gradients_equal_eager(name):
    model, given = MODELS[name]
    x = given().requires_grad_()
    inputs = [x, *model.parameters()]
    expected = torch.autograd.grad(model(x).square().sum(), inputs)
    found, code = kernels_of(lambda x: model(x).square().sum(), x)
    assert "@triton.jit" in "".join(code)
    torch.testing.assert_close(torch.autograd.grad(found, inputs), expected)
