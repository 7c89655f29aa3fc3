"""flash-linear-attention's operations, beside their recurrences."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fla")
import torch.nn.functional as F  # noqa: E402
from conftest import made  # noqa: E402

B, T, H, K, V = 1, 70, 2, 16, 32


def decayed(q, k, v, g=None, gk=None, scale=None):
    """o_t = q_t S_t, where S_t = exp(g_t) S_{t-1} + k_t v_t."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    out = []
    for t in range(q.shape[1]):
        if g is not None:
            state = state * g[:, t, :, None, None].exp()
        if gk is not None:
            state = state * gk[:, t, :, :, None].exp()
        state = state + k[:, t, :, :, None] * v[:, t, :, None, :]
        out.append((q[:, t, :, :, None] * scale * state).sum(-2))
    return torch.stack(out, 1)


def delta(q, k, v, beta, g=None):
    """S_t = S (I - beta k k^T) + beta k v^T, with a decay before."""
    scale = q.shape[-1] ** -0.5
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    out = []
    for t in range(q.shape[1]):
        if g is not None:
            state = state * g[:, t, :, None, None].exp()
        seen = (k[:, t, :, :, None] * state).sum(-2)
        change = beta[:, t, :, None] * (v[:, t] - seen)
        state = state + k[:, t, :, :, None] * change[:, :, None, :]
        out.append((q[:, t, :, :, None] * scale * state).sum(-2))
    return torch.stack(out, 1)


def qkv():
    return made(B, T, H, K), made(B, T, H, K), made(B, T, H, V)


def gates(*shape):
    return F.logsigmoid(torch.randn(*shape, device="cuda")).requires_grad_()


@pytest.mark.parametrize("way", ["chunk", "fused_recurrent"])
def test_linear_attention(agree, way):
    from fla.ops import linear_attn

    fn = getattr(linear_attn, f"{way}_linear_attn")
    agree(lambda q, k, v: fn(q, k, v, normalize=False)[0], decayed, *qkv(), within=1e-4)


@pytest.mark.parametrize("way", ["chunk", "fused_recurrent"])
def test_simple_gla(agree, way):
    from fla.ops import simple_gla

    fn = getattr(simple_gla, f"{way}_simple_gla")
    agree(lambda q, k, v, g: fn(q, k, v, g=g)[0], decayed, *qkv(), gates(B, T, H), within=1e-4)


@pytest.mark.parametrize("way", ["chunk", "fused_recurrent"])
def test_gla(agree, way):
    from fla.ops import gla

    fn = getattr(gla, f"{way}_gla")
    agree(
        lambda q, k, v, g: fn(q, k, v, g)[0],
        lambda q, k, v, g: decayed(q, k, v, gk=g),
        *qkv(), gates(B, T, H, K), within=1e-4,
    )


@pytest.mark.parametrize("way", ["chunk", "fused_recurrent"])
def test_delta_rule(agree, way):
    from fla.ops import delta_rule

    fn = getattr(delta_rule, f"{way}_delta_rule")
    q, k, v = qkv()
    k = F.normalize(k.detach(), dim=-1).requires_grad_()
    beta = torch.rand(B, T, H, device="cuda").requires_grad_()
    if way == "fused_recurrent":
        agree(lambda q, k, v, b: fn(q, k, v, b)[0], delta, q, k, v, beta, within=1e-4)
        return
    # This one refuses float32.
    short = torch.bfloat16
    agree(lambda q, k, v, b: fn(q.to(short), k.to(short), v.to(short), b.to(short))[0], delta, q, k, v, beta, within=5e-2)


@pytest.mark.parametrize("way", ["chunk", "fused_recurrent"])
def test_gated_delta_rule(agree, way):
    from fla.ops import gated_delta_rule

    fn = getattr(gated_delta_rule, f"{way}_gated_delta_rule")
    q, k, v = qkv()
    k = F.normalize(k.detach(), dim=-1).requires_grad_()
    beta, g = torch.rand(B, T, H, device="cuda").requires_grad_(way == "chunk"), gates(B, T, H)
    if way != "chunk":
        q, k, v, g = (x.detach() for x in (q, k, v, g))
    agree(lambda q, k, v, b, g: fn(q, k, v, g=g, beta=b)[0], delta, q, k, v, beta, g, within=1e-4)


@pytest.mark.parametrize("way", ["chunk", "fused_recurrent"])
def test_retention(agree, way):
    from fla.ops import retention

    fn = getattr(retention, f"{way}_retention")
    slopes = torch.log2(1 - 2.0 ** (-5 - torch.arange(H, dtype=torch.float64))) * torch.log(torch.tensor(2.0)).double()
    agree(
        lambda q, k, v: fn(q, k, v)[0],
        lambda q, k, v: decayed(q, k, v, slopes.expand(B, T, H)),
        *qkv(), within=1e-4,
    )


@pytest.mark.parametrize("way", ["chunk", "fused_recurrent"])
def test_hgrn(agree, way):
    from fla.ops import hgrn

    fn = getattr(hgrn, f"{way}_hgrn")

    def reference(x, g):
        h, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = g[:, t].exp() * h + x[:, t]
            out.append(h)
        return torch.stack(out, 1)

    agree(lambda x, g: fn(x, g)[0], reference, made(B, T, 40), gates(B, T, 40), within=1e-4)


def test_attention(agree):
    from fla.ops.attn import parallel_attn

    def reference(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)

    agree(parallel_attn, reference, *qkv(), within=1e-4)


def test_norms(agree):
    from fla.modules.layernorm import layer_norm, rms_norm

    agree(
        lambda x, w, b: layer_norm(x, w, b, eps=1e-5),
        lambda x, w, b: F.layer_norm(x, (40,), w, b, 1e-5),
        made(2, 9, 40), made(40), made(40),
    )
    agree(
        lambda x, w: rms_norm(x, w, None, eps=1e-5),
        lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w,
        made(2, 9, 40), made(40),
    )


def test_activations(agree):
    from fla.modules.activations import logsigmoid, sigmoid, swiglu, swish

    x, y = made(3, 70), made(3, 70)
    agree(swish, F.silu, x)
    agree(sigmoid, torch.sigmoid, x)
    agree(logsigmoid, F.logsigmoid, x)
    agree(swiglu, lambda x, y: F.silu(x) * y, x, y)


def test_cross_entropy(agree):
    from fla.modules import FusedCrossEntropyLoss

    y = torch.randint(90, (8,), device="cuda")
    agree(lambda x: FusedCrossEntropyLoss()(x, y), lambda x: F.cross_entropy(x, y), made(8, 90))


def test_rotary(agree):
    from fla.modules.rotary import rotary_embedding

    angles = torch.randn(T, K // 2, device="cuda")
    cos, sin = angles.cos(), angles.sin()

    def reference(x):
        a, b = x.chunk(2, -1)
        c, s = cos.double()[None, :, None], sin.double()[None, :, None]
        return torch.cat([a * c - b * s, a * s + b * c], -1)

    agree(lambda x: rotary_embedding(x, cos, sin), reference, made(B, T, H, K))


def test_convolution(agree):
    from fla.modules.conv import causal_conv1d

    def reference(x, w):
        x = F.pad(x.transpose(1, 2), (w.shape[1] - 1, 0))
        return F.silu(F.conv1d(x, w[:, None], groups=w.shape[0])).transpose(1, 2)

    agree(lambda x, w: causal_conv1d(x, w, activation="swish")[0], reference, made(B, T, 24), made(24, 4), within=3e-5)
