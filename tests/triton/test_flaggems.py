"""flag-gems' operators, which replace PyTorch's on the device, beside PyTorch in float64 on the host (`make flaggems`)."""

import os

import pytest

# It would ask nvidia-smi.
os.environ.setdefault("GEMS_VENDOR", "nvidia")
torch = pytest.importorskip("torch")
flag_gems = pytest.importorskip("flag_gems")
import torch.nn.functional as F  # noqa: E402

UNARY = ("abs", "neg", "exp", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "relu", "erf", "reciprocal", "log", "isnan", "sign")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "gt", "eq")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def made(*shape, positive=False):
    x = torch.randn(*shape)
    return (x.abs() + 0.1 if positive else x).cuda()


def agree(function, *args, within=1e-4):
    """The function with flag-gems on the device, and without it in float64 on the host."""
    with flag_gems.use_gems():
        found = function(*args)
    wide = [a.cpu().double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
    wide = [a.cpu() if isinstance(a, torch.Tensor) else a for a in wide]
    expected = function(*wide)
    several = isinstance(found, (tuple, list))
    for a, b in zip(found if several else [found], expected if several else [expected]):
        assert a.is_cuda and a.shape == b.shape
        a, b = a.cpu().double(), b.double()
        assert torch.equal(a.isnan(), b.isnan())
        scale = max(b.nan_to_num().abs().max().item(), 1e-30) if b.numel() else 1.0
        assert (a - b).nan_to_num().abs().max().item() <= within * scale if b.numel() else True


@pytest.mark.parametrize("name", UNARY)
def test_elements(name):
    function = getattr(torch, name)
    for x in (made(3, 5, 70, positive=True), made(40, 6, positive=True).t(), made(30, positive=True)[::2]):
        agree(function, x)


@pytest.mark.parametrize("name", BINARY)
def test_pairs(name):
    function = getattr(torch, name)
    agree(function, made(5, 1, 7), made(4, 7) + 3)
    agree(function, made(6, 9).t(), made(9, 6) + 3)
    if name not in ("maximum", "minimum"):
        agree(function, made(17), 2.5)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (-1,)])
def test_flips_go_backwards_through_memory(dims):
    agree(lambda x: torch.flip(x, dims), made(5, 70))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_folds(dim):
    x = made(7, 50, 9)
    for name in ("sum", "mean", "amax", "softmax", "log_softmax", "cumsum", "prod"):
        agree(lambda x, f=getattr(torch, name): f(x, dim), x, within=1e-3)
    agree(lambda x: torch.var_mean(x, dim), x)
    agree(lambda x: torch.max(x, dim), x)
    agree(lambda x: torch.sort(x, dim), x)
    agree(lambda x: torch.topk(x.reshape(-1, 9), 3), x)
    # Along any axis but the last, flag-gems picks a block size that is not a power of two, and Triton rejects it.
    agree(lambda x: torch.argmax(x, -1), x)


def test_products():
    agree(torch.mm, made(70, 33), made(33, 50), within=2e-3)
    agree(torch.bmm, made(3, 20, 33), made(3, 33, 17), within=2e-3)
    agree(torch.addmm, made(50), made(70, 33), made(33, 50), within=2e-3)
    agree(torch.mv, made(70, 33), made(33), within=2e-3)


def test_norms():
    x, w, b = made(6, 96), made(96), made(96)
    agree(lambda x, w, b: F.layer_norm(x, (96,), w, b), x, w, b)
    # flag-gems writes into the next group unless the channel count is a power of two; `GIRIH_DEVICE=eval` reports the race.
    agree(lambda x, w, b: F.group_norm(x, 6, w, b), made(2, 96, 5, 7), w, b)
    agree(lambda x: F.normalize(x, dim=1), x)


def test_places():
    x, at = made(40, 12), torch.randint(0, 12, (40, 5)).cuda()
    rows = torch.randint(0, 40, (9,)).cuda()
    agree(lambda x, at: torch.gather(x, 1, at), x, at)
    agree(lambda x, rows: torch.index_select(x, 0, rows), x, rows)
    agree(lambda x, rows: F.embedding(rows, x), x, rows)
    agree(lambda x, at: torch.zeros_like(x).scatter_add(1, at, x[:, :5].contiguous()), x, at)
    agree(lambda x: torch.where(x > 0, x, -2 * x), x)
    agree(lambda x: x.masked_fill(x > 0.5, 7.0), x)
    agree(lambda x: torch.cat([x, x * 2], 1), x)
    agree(lambda x: torch.tile(x, (2, 3)), x)
    agree(lambda x: torch.triu(x, 1), x)


def test_attention():
    q, k, v = (made(1, 2, 64, 64) for _ in range(3))
    agree(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), q, k, v, within=5e-3)


def test_gradients():
    x = made(9, 33).requires_grad_()
    with flag_gems.use_gems():
        torch.softmax(x * torch.sigmoid(x), 1).pow(2).sum().backward()
    y = x.detach().cpu().double().requires_grad_()
    torch.softmax(y * torch.sigmoid(y), 1).pow(2).sum().backward()
    assert x.grad.is_cuda
    assert (x.grad.cpu().double() - y.grad).abs().max() < 1e-5


def test_the_host_has_pytorchs_own():
    x = torch.randn(4, 5)
    with flag_gems.use_gems():
        assert torch.equal(torch.abs(x), x.abs()) and not torch.ones(3).is_cuda and torch.ones(3, device="cuda").is_cuda
        assert torch.add(2.5, 2).item() == 4.5
