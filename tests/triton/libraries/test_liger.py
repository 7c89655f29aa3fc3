"""liger-kernel's functions."""

import pytest

torch = pytest.importorskip("torch")
liger = pytest.importorskip("liger_kernel.transformers.functional")
import torch.nn.functional as F  # noqa: E402
from conftest import made  # noqa: E402


def labels(n, classes, ignored=True):
    y = torch.randint(classes, (n,), device="cuda")
    if ignored:
        y[1] = -100
    return y


def rms(x, w, eps, offset=0.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (w + offset)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_cross_entropy(agree, smoothing, reduction):
    y = labels(7, 130)
    agree(
        lambda x: liger.liger_cross_entropy(x, y, label_smoothing=smoothing, reduction=reduction),
        lambda x: F.cross_entropy(x, y, label_smoothing=smoothing, reduction=reduction),
        made(7, 130),
    )


def test_cross_entropy_with_softcap(agree):
    y = labels(7, 130)
    agree(
        lambda x: liger.liger_cross_entropy(x, y, softcap=5.0, lse_square_scale=0.01),
        lambda x: (
            F.cross_entropy(5 * torch.tanh(x / 5), y)
            + 0.01 * (torch.logsumexp(5 * torch.tanh(x / 5), -1).pow(2) * (y != -100)).sum() / (y != -100).sum()
        ),
        made(7, 130),
    )


def test_fused_linear_cross_entropy(agree):
    y = labels(9, 70)
    agree(
        lambda x, w, b: liger.liger_fused_linear_cross_entropy(x, w, y, bias=b),
        lambda x, w, b: F.cross_entropy(x @ w.T + b, y),
        made(9, 40), made(70, 40, scale=0.2), made(70),
    )


@pytest.mark.parametrize("shape", [(6, 37), (2, 5, 64)])
def test_gated(agree, shape):
    a, b = made(*shape), made(*shape)
    agree(liger.liger_swiglu, lambda a, b: F.silu(a) * b, a, b)
    agree(liger.liger_geglu, lambda a, b: F.gelu(a, approximate="tanh") * b, a, b)
    agree(liger.liger_relu_squared, lambda a: F.relu(a).pow(2), a)


@pytest.mark.parametrize("offset, mode", [(0.0, "llama"), (1.0, "gemma"), (0.0, "none")])
def test_rms_norm(agree, offset, mode):
    agree(
        lambda x, w: liger.liger_rms_norm(x, w, 1e-6, offset, mode, False),
        lambda x, w: rms(x, w, 1e-6, offset),
        made(9, 70), made(70),
    )


def test_fused_add_rms_norm(agree):
    agree(
        lambda x, r, w: liger.liger_fused_add_rms_norm(x, r, w, 1e-6, in_place=False),
        lambda x, r, w: (rms(x + r, w, 1e-6), x + r),
        made(9, 70), made(9, 70), made(70),
    )


def test_layer_norm(agree):
    agree(
        lambda x, w, b: liger.liger_layer_norm(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, (70,), w, b, 1e-5),
        made(9, 70), made(70), made(70),
    )


def test_group_norm(agree):
    agree(
        lambda x, w, b: liger.liger_group_norm(x, w, b, 6, 3, 1e-5),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5),
        made(2, 6, 20), made(6), made(6),
    )


def test_softmax(agree):
    agree(liger.liger_softmax, lambda x: torch.softmax(x, -1), made(9, 70))


def sparsemax(x):
    z, _ = x.sort(-1, descending=True)
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    total = z.cumsum(-1)
    size = (1 + k * z > total).sum(-1, keepdim=True)
    return (x - (total.gather(-1, size - 1) - 1) / size).clamp(min=0)


def test_sparsemax(agree):
    agree(lambda x: liger.liger_sparsemax(x, -1), sparsemax, made(5, 40))


def test_dyt(agree):
    agree(
        liger.liger_dyt,
        lambda x, a, g, b: g * torch.tanh(a * x) + b,
        made(9, 70), made(1), made(70), made(70),
    )


def turned(x):
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def test_rope(agree):
    angles = torch.randn(1, 10, 8, device="cuda").repeat(1, 1, 2)
    cos, sin = angles.cos(), angles.sin()
    agree(
        lambda q, k: liger.liger_rope(q, k, cos, sin),
        lambda q, k: tuple(x * cos.double()[:, None] + turned(x) * sin.double()[:, None] for x in (q, k)),
        made(2, 4, 10, 16), made(2, 2, 10, 16),
    )


def log_probabilities(*shape):
    return torch.log_softmax(made(*shape, grad=False), -1)


def test_divergences(agree):
    target = log_probabilities(6, 50)
    agree(
        lambda x: liger.liger_kl_div(torch.log_softmax(x, -1), target.exp(), reduction="batchmean"),
        lambda x: F.kl_div(torch.log_softmax(x, -1), target.double().exp(), reduction="batchmean"),
        made(6, 50),
    )

    def jsd(x, beta=0.5):
        p, q = target.double(), torch.log_softmax(x, -1)
        mean = torch.log(beta * p.exp() + (1 - beta) * q.exp())
        return (beta * p.exp() * (p - mean) + (1 - beta) * q.exp() * (q - mean)).sum() / 6

    agree(lambda x: liger.liger_jsd(torch.log_softmax(x, -1), target), jsd, made(6, 50))
    agree(
        lambda x: liger.liger_tvd(torch.softmax(x, -1), target.exp(), reduction="batchmean"),
        lambda x: 0.5 * (torch.softmax(x, -1) - target.double().exp()).abs().sum() / 6,
        made(6, 50),
    )


def test_poly_norm(agree):
    def norm(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    agree(
        lambda x, w, b: liger.liger_poly_norm(x, w, b, 1e-6, False),
        lambda x, w, b: w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b,
        made(9, 70), made(3), torch.tensor(0.5, device="cuda", requires_grad=True),
        within=3e-5,
    )


def test_fused_linear_jsd(agree):
    teacher, weight = made(6, 24, grad=False), made(50, 24, grad=False, scale=0.3)

    def jsd(x, w):
        p, q = torch.log_softmax(teacher.double() @ weight.double().T, -1), torch.log_softmax(x @ w.T, -1)
        mean = torch.log(0.5 * p.exp() + 0.5 * q.exp())
        return (0.5 * p.exp() * (p - mean) + 0.5 * q.exp() * (q - mean)).sum() / 6

    agree(
        lambda x, w: liger.liger_fused_linear_jsd(x, w, teacher, weight),
        jsd, made(6, 24), made(50, 24, scale=0.3),
    )
