"""conch-triton-kernels' functions."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("conch")
import torch.nn.functional as F  # noqa: E402
from conftest import made  # noqa: E402


def test_activations(agree):
    from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul
    from conch.ops.activation.silu_and_mul import silu_and_mul

    x = made(7, 128, grad=False)
    agree(silu_and_mul, lambda x: F.silu(x[:, :64]) * x[:, 64:], x)
    agree(gelu_tanh_and_mul, lambda x: F.gelu(x[:, :64], approximate="tanh") * x[:, 64:], x)


def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def test_norms(agree):
    from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
    from conch.ops.normalization.rms_norm import rms_norm

    x, w = made(7, 96, grad=False), made(96, grad=False)
    agree(lambda x, w: rms_norm(x, w, 1e-6), rms, x, w)
    agree(lambda x, w: gemma_rms_norm(x, w, 1e-6), lambda x, w: rms(x, 1 + w), x, w)


def test_quantisation():
    from conch.ops.quantization.int8 import static_scaled_int8_quant

    x, scale = made(5, 64, grad=False), torch.tensor([0.02], device="cuda")
    out = torch.empty(5, 64, dtype=torch.int8, device="cuda")
    static_scaled_int8_quant(out, x, scale)
    # It cuts the fraction off.
    assert torch.equal(out, (x / scale).clamp(-128, 127).to(torch.int8))
