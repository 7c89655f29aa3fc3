"""Graphs with changing extents where PyTorch runs some operations: the rest stays in kernels, and sizes reach every part."""

import warnings

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import girih.torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()


@pytest.fixture
def whole():
    """No operation may be left to PyTorch."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="girih: ")
        yield


def left(function, *calls, compiled=None):
    """The operations that PyTorch runs, after results were compared."""
    girih.torch.report(clear=True)
    if compiled is None:
        compiled = torch.compile(function, backend="girih", dynamic=True)
    with torch.no_grad():
        for args in calls:
            torch.testing.assert_close(compiled(*args), function(*args), rtol=1e-3, atol=1e-4)
    return [entry.operation for entry in girih.torch.report().left]


def inverted(h):
    """An operation that PyTorch runs."""
    return torch.linalg.eigvalsh(h @ h.mT + torch.eye(h.shape[-2]))


MIDDLES = {
    "of a quotient": lambda x: (x.reshape(x.shape[0] // 4, -1).sin(), lambda h, e: (h + e[:, None]).softmax(-1)),
    "of rows": lambda x: (x[: x.shape[0] // 2].cos(), lambda h, e: h * e[:, None] + x.shape[0]),
    "of two extents": lambda x: (x.reshape(-1, 1)[: x.shape[0] + 1], lambda h, e: h.expand(-1, x.shape[1]) + e[:, None]),
    "of a sum": lambda x: (F.pad(x, (0, 0, 1, 2)), lambda h, e: (e[None] @ h).expand(x.shape[1] * 2, -1)),
    "of none": lambda x: (torch.ones(3, 4), lambda h, e: e.sum() + torch.arange(x.shape[0] * 3)),
    "of a product": lambda x: (x.flatten()[:, None], lambda h, e: (h + e[:, None]).view(x.shape[0], -1).sum(1)),
}


@pytest.mark.parametrize("name", MIDDLES)
def test_one_operation_that_pytorch_runs_takes_nothing_with_it(name):
    def f(x):
        h, then = MIDDLES[name](x * 2)
        return then(h, inverted(h)).cos() + 1

    operations = left(f, (torch.randn(12, 5),), (torch.randn(16, 7),), (torch.randn(8, 3),))
    assert set(operations) <= {"aten._linalg_eigh", "aten.linalg_eigvalsh"}, operations


def test_a_size_of_what_a_part_computes():
    """PyTorch asks for it between two parts, or one part would have to come before itself."""
    aten, graph = torch.ops.aten, torch.fx.Graph()
    fake = FakeTensorMode(shape_env=ShapeEnv())
    value = fake.from_tensor(torch.randn(6, 5), static_shapes=False)
    extents = list(value.shape)

    def call(op, *args, val=value):
        node = graph.call_function(op, args)
        node.meta["val"] = val
        return node

    x = graph.placeholder("x")
    x.meta["val"] = value
    y = call(aten.sin.default, x)
    sizes = [call(aten.sym_size.int, y, axis, val=extents[axis]) for axis in (0, 1)]
    graph.output((call(aten.mul.Tensor, y, call(aten.ones.default, sizes)),))
    module = girih.torch._partition.parts(torch.fx.GraphModule({}, graph), {}, "part")
    x = torch.randn(7, 3)
    torch.testing.assert_close(module(x)[0], x.sin())


def test_results_of_unknown_size_in_the_middle():
    def f(x):
        rows = x[x.sum(1) > 0]
        return (rows * 2).softmax(-1) + x.shape[0], rows.shape[0]

    compiled = torch.compile(f, backend="girih", dynamic=True)
    for n in (12, 9):
        x = torch.randn(n, 5)
        torch.testing.assert_close(compiled(x), f(x))


class Patches(nn.Module):
    """An embedding of patches whose positions have a fixed number of rows: PyTorch guards the number of patches."""

    def __init__(self):
        super().__init__()
        self.conv, self.linear, self.norm = nn.Conv2d(3, 8, 8, 8), nn.Linear(8, 8), nn.LayerNorm(8)
        self.positions = nn.Parameter(torch.randn(1, 12, 8))

    def forward(self, x):
        h = self.conv(x).flatten(2).transpose(1, 2) + self.positions
        return self.norm(self.linear(h).relu())


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("sides", [(24, 32), (16, 48)])
def test_a_fixed_number_of_patches(sides, dynamic, whole):
    model = Patches().eval()
    compiled = torch.compile(model, backend="girih", dynamic=dynamic)
    assert not left(model, (torch.randn(2, 3, *sides),), (torch.randn(3, 3, *sides),), compiled=compiled)
    # The same number of patches in another arrangement, compiled anew or not.
    other = torch.randn(2, 3, sides[1], sides[0])
    with torch.no_grad():
        torch.testing.assert_close(compiled(other), model(other), rtol=1e-4, atol=1e-4)


def test_a_fixed_number_of_square_patches(whole):
    model = Patches().eval()
    model.positions = nn.Parameter(torch.randn(1, 16, 8))
    assert not left(model, (torch.randn(2, 3, 32, 32),), (torch.randn(3, 3, 32, 32),))


@pytest.mark.parametrize("kind", ["view", "reshape", "flatten"])
def test_images_as_rows_and_back(kind, whole):
    conv, depthwise, linear = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.Linear(16, 16)

    def f(x):
        x = conv(x)
        b, c, h, w = x.shape
        t = linear(x.flatten(2).transpose(1, 2))
        if kind == "view":
            y = depthwise(t.transpose(1, 2).view(b, c, h, w))
        elif kind == "reshape":
            y = depthwise(t.reshape(b, h, w, -1).permute(0, 3, 1, 2))
        else:
            y = depthwise(t.unflatten(1, (h, -1)).permute(0, 3, 1, 2))
        return linear(y.flatten(2).transpose(1, 2)).relu()

    assert not left(f, (torch.randn(2, 3, 16, 20),), (torch.randn(2, 3, 24, 20),), (torch.randn(4, 3, 10, 6),))


OPERATIONS = {
    "the last rows": lambda x, s: x[:, -s:] + 1,
    "all but the last rows": lambda x, s: x[:, :-s] * 2,
    "the length of another": lambda x, s: x[:, -torch.zeros(s, 3).shape[0] :],
    "scalar_tensor": lambda x, s: x + torch.scalar_tensor(2.5) + torch.scalar_tensor(s),
    "pixel_shuffle": lambda x, s: F.pixel_shuffle(x[None, :4], 2),
    "pixel_unshuffle": lambda x, s: F.pixel_unshuffle(x[None], 2),
    "channel_shuffle": lambda x, s: F.channel_shuffle(x[None], 2),
    "group_norm": lambda x, s: F.group_norm(x[None], 2),
    "split": lambda x, s: x.split(3, 1),
    "split into halves": lambda x, s: x.split(x.shape[1] // 2, 1),
    "chunk": lambda x, s: x.chunk(2, 1),
    "tensor_split": lambda x, s: torch.tensor_split(x, 3, 1),
    "diagonal": lambda x, s: x.diagonal(0, 0, 1),
    "diagonal beside": lambda x, s: x.diagonal(1, -2, -1) + s,
    "trace": lambda x, s: x[0].trace(),
    "unflatten": lambda x, s: x.unflatten(1, (2, -1)),
    "attention": lambda x, s: F.scaled_dot_product_attention(*[x[None]] * 3),
    "causal attention": lambda x, s: F.scaled_dot_product_attention(*[x[None]] * 3, is_causal=True),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_with_extents_that_change(name, whole):
    calls = [(torch.randn(4, 8, 6), 3), (torch.randn(8, 12, 10), 5), (torch.randn(4, 10, 12), 2)]
    assert not left(OPERATIONS[name], *calls)


def test_grouped_products_of_transformers(whole):
    pytest.importorskip("transformers.integrations.moe")
    f = lambda x, w, ends: torch.ops.transformers.grouped_mm_fallback(x, w, ends) * 2  # noqa: E731
    w = torch.randn(3, 6, 5)
    calls = [(torch.randn(n, 6), w, torch.tensor(ends)) for n, ends in ((8, [3, 3, 8]), (9, [2, 4, 7]), (4, [0, 0, 0]))]
    assert not left(f, *calls)
