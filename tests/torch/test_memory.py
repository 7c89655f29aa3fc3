"""Tensors that are not row-major are read and written where they lie, and give what eager mode gives."""

import random
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from girih.torch import _graph, _memory


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compiled(f, **options):
    return torch.compile(f, backend="girih", fullgraph=True, **options)


def same(got, wanted):
    assert got.shape == wanted.shape and got.stride() == wanted.stride()
    assert torch.allclose(got, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)


def drawn(rng):
    """A view of a larger tensor, by a few random steps."""
    t = torch.randn([rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(1, 4))])
    for _ in range(rng.randint(1, 3)):
        axis = rng.randrange(t.dim())
        kind = rng.choice(("permute", "slice", "step", "expand", "select", "unsqueeze"))
        if kind == "permute":
            t = t.permute(rng.sample(range(t.dim()), t.dim()))
        elif kind == "slice" and t.shape[axis] > 1:
            t = t.narrow(axis, 1, t.shape[axis] - 1)
        elif kind == "step":
            t = t[(slice(None),) * axis + (slice(rng.randint(0, 1), None, 2),)]
        elif kind == "expand":
            t = t.unsqueeze(axis).expand(*t.shape[:axis], 3, *t.shape[axis:])
        elif kind == "select" and t.dim() > 1:
            t = t.select(axis, t.shape[axis] - 1)
        elif kind == "unsqueeze":
            t = t.unsqueeze(axis)
    return t


FUNCTIONS = (
    lambda x: x * 2 + 1,
    lambda x: x.sum(-1),
    lambda x: torch.softmax(x, 0),
    lambda x: (x - x.amax()).exp().contiguous(),
)


def test_views_of_every_kind():
    rng = random.Random(7)
    for _ in range(40):
        x, f = drawn(rng), rng.choice(FUNCTIONS)
        if x.numel():
            torch._dynamo.reset()
            same(compiled(f)(x), f(x))


def test_memory_leads_to_the_tensor():
    """The views that a memory lists give the tensor, of the array that it says."""
    rng = random.Random(11)
    found = 0
    for _ in range(300):
        x = drawn(rng)
        if _graph.is_row_major(x) or not x.numel() or (memory := _memory.memory_of(x)) is None:
            continue
        copy = memory.copied(x)
        extents = memory.extents(x.shape)
        first = copy.storage_offset() - memory.start
        t = torch.as_strided(copy, extents, torch.empty(extents).stride(), first)
        for op, attrs, shape in memory.views:
            t = getattr(torch.ops.aten, op.removeprefix("aten."))(t, **attrs)
            assert t.shape == shape
        assert torch.equal(t, x) and memory.holds(copy)
        found += 1
    assert found > 100


def test_nothing_is_copied(monkeypatch):
    monkeypatch.setattr(_memory.Memory, "copied", lambda *_: pytest.fail("a copy was made"))
    x = torch.randn(6, 8, 10)
    views = (x.transpose(0, 2), x[1:], x[:, 2:5], x[:, :, ::2], x[:, 3], x[..., 4], x[:1].expand(5, 8, 10))
    for view in views:
        torch._dynamo.reset()
        same(compiled(torch.exp)(view), view.exp())


def test_a_tensor_that_lies_otherwise_is_copied():
    """The same function is called with views of other offsets, and with one whose array would end behind its storage."""
    base = torch.randn(9, 10)
    f = compiled(lambda x: x.sin().sum(1), dynamic=False)
    for view in (base[:6, 2:7], base[:6, 3:8], base[3:, 5:], base[:6, :5], base[2:8, 5:]):
        assert torch.allclose(f(view), view.sin().sum(1), atol=1e-6)
    short = torch.randn(57)[2:].as_strided((6, 5), (10, 1))
    assert torch.allclose(f(short), short.sin().sum(1), atol=1e-6)


def test_misaligned_tensors_are_copied():
    raw = torch.zeros(4 * 30 + 1, dtype=torch.uint8)
    odd = torch.frombuffer(memoryview(raw.numpy())[1:], dtype=torch.float32).view(5, 6)
    odd.copy_(torch.randn(5, 6))
    for view in (odd.t(), odd[:, ::2], odd[:1].expand(4, 6)):
        torch._dynamo.reset()
        same(compiled(torch.exp)(view), view.exp())


def test_changing_extents():
    f = compiled(lambda x, y: torch.softmax(x, 0) + y, dynamic=True)
    for n, m in ((4, 6), (5, 3), (9, 7)):
        x, y = torch.randn(n, m).t(), torch.randn(2 * m, n)[::2]
        same(f(x, y), torch.softmax(x, 0) + y)


@pytest.mark.parametrize("groups", (1, 8))
def test_images_with_channels_last(groups):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(8, 16, 3, padding=1, groups=groups), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
        torch.nn.MaxPool2d(3, 2, 1), torch.nn.Conv2d(16, 16, 5, padding=2, groups=16), torch.nn.AvgPool2d(2),
    ).eval().to(memory_format=torch.channels_last)  # fmt: skip
    x = torch.randn(2, 8, 21, 19).to(memory_format=torch.channels_last)
    with torch.no_grad():
        f = compiled(net)
        same(f(x), net(x))
        # Weights that are written to count in the next call.
        net[0].weight.data.mul_(2)
        net[4].weight.data.add_(1)
        same(f(x), net(x))


def test_layouts_meet():
    """Channels-last images go through convolutions and poolings of every kind, and come out in either layout."""
    x = torch.randn(1, 8, 18, 15).to(memory_format=torch.channels_last)
    w, by_channel = torch.randn(16, 8, 3, 3), torch.randn(8, 1, 3, 3)
    functions = (
        lambda x: F.max_pool2d(F.conv2d(x, w, stride=2), 3, 2, 1),
        lambda x: F.conv2d(x, by_channel, groups=8).contiguous(),
        lambda x: F.layer_norm(F.conv2d(x, by_channel, groups=8).permute(0, 2, 3, 1), (8,)),
        lambda x: F.conv2d(x.contiguous(), w).to(memory_format=torch.channels_last),
        lambda x: F.avg_pool2d(x.contiguous(), 2).permute(0, 2, 3, 1).contiguous(),
    )
    for f in functions:
        torch._dynamo.reset()
        got, wanted = compiled(f)(x), f(x)
        assert got.stride() == wanted.stride() and torch.allclose(got, wanted, atol=1e-4)


def test_gradients_of_transposed_weights():
    w = torch.randn(6, 5, requires_grad=True)
    x = torch.randn(4, 6).t()
    f = lambda x, w: F.linear(x.t(), w.t()).pow(2).sum()
    wanted = torch.autograd.grad(f(x, w), w)[0]
    same(torch.autograd.grad(compiled(f)(x, w), w)[0], wanted)


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_views_without_elements(device):
    """Only an extent is 0, the strides are not: PyTorch has no address for such a tensor."""
    base = torch.randn(3, 4, 6)
    views = [base[:, 2:2, ::2], base[..., 3:3].transpose(0, 1), base[1:1].permute(2, 0, 1)[::2], base[:, :0, :1].expand(3, 0, 5)]
    fake = FakeTensorMode()
    assert all(_memory.memory_of(fake.from_tensor(v)) is None for v in views)
    function = lambda *views: [(v.select(0, 0) * 2 if len(v) else v.sum(), v.sum(1), v.mT + 1) for v in views]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="girih: ")
        found = torch.compile(function, backend="girih", options={"device": device})(*views)
    torch.testing.assert_close(found, function(*views))
