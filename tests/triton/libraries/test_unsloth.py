"""unsloth's kernels, each from its own module: the package itself wants a GPU, bitsandbytes and a zoo of patches."""

import importlib.machinery
import importlib.util
import logging
import sys
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
found = importlib.util.find_spec("unsloth")
if found is None:
    pytest.skip("unsloth is not installed", allow_module_level=True)
import torch.nn.functional as F  # noqa: E402
from conftest import made  # noqa: E402


def stand_in(name, **contents):
    module = types.ModuleType(name)
    module.__dict__.update(contents, __spec__=importlib.machinery.ModuleSpec(name, None))
    sys.modules[name] = module
    return module


def install():
    """Packages whose `__init__` does nothing, and the few names that kernels take of unsloth's zoo."""
    from packaging.version import Version

    root = found.submodule_search_locations[0]
    stand_in("unsloth", __path__=[root], DEVICE_TYPE="cuda")
    stand_in("unsloth.kernels", __path__=[f"{root}/kernels"])
    stand_in("unsloth_zoo", __path__=[])
    stand_in("unsloth_zoo.utils", Version=Version)
    stand_in("unsloth_zoo.log", logger=logging.getLogger("unsloth"))
    stand_in("unsloth_zoo.temporary_patches", __path__=[])
    stand_in("unsloth_zoo.temporary_patches.common", torch_compile=lambda f=None, **options: f if f else lambda f: f)
    stand_in("unsloth_zoo.patching_utils", patch_layernorm=None)
    stand_in("unsloth_zoo.loss_utils", HAS_CUT_CROSS_ENTROPY=False, patch_loss_functions=None, post_patch_loss_function=None)


install()


def rms(x, w, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


class Norm(torch.nn.Module):
    def __init__(self, weight, bias=None, eps=1e-6):
        super().__init__()
        self.__dict__.update(weight=weight, bias=bias, eps=eps, variance_epsilon=eps, elementwise_affine=True)


@pytest.mark.parametrize("classes, softcap, scaling", [(130, 0, 0), (130, 5.0, 0), (130, 0, 0.5), (70000, 0, 0)])
def test_cross_entropy(agree, classes, softcap, scaling):
    from unsloth.kernels.cross_entropy_loss import fast_cross_entropy_loss

    y = torch.randint(classes, (2, 3), device="cuda")
    y[0, 1] = -100

    def reference(x):
        x = x * (scaling or 1)
        x = softcap * torch.tanh(x / softcap) if softcap else x
        return F.cross_entropy(x.reshape(-1, classes), y.reshape(-1))

    agree(lambda x: fast_cross_entropy_loss(x, y, softcap, scaling), reference, made(2, 3, classes))


@pytest.mark.parametrize("gemma", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 70), (4, 40, 128)])
def test_rms_norm(agree, gemma, shape):
    from unsloth.kernels.rms_layernorm import fast_rms_layernorm

    agree(
        lambda x, w: fast_rms_layernorm(Norm(w), x, gemma),
        lambda x, w: rms(x, w + gemma),
        made(*shape), made(shape[-1]),
    )


def test_layer_norm(agree):
    from unsloth.kernels.layernorm import fast_layernorm

    agree(
        lambda x, w, b: fast_layernorm(Norm(w, b), x),
        lambda x, w, b: F.layer_norm(x, (70,), w, b, 1e-6),
        made(2, 9, 70), made(70), made(70),
    )


def test_fused_add_rms_norm(agree):
    from unsloth.kernels.fused_add_rms_layernorm import fast_add_rms_layernorm_inference

    agree(
        lambda x, r, w: (fast_add_rms_layernorm_inference(x, r, w, 1e-6), r),
        lambda x, r, w: (rms(x + r, w), x + r),
        made(2, 3, 70, grad=False), made(2, 3, 70, grad=False), made(70, grad=False),
    )


class Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, e, g, forward, backward):
        ctx.save_for_backward(e, g)
        ctx.of = backward
        return forward(e, g)

    @staticmethod
    def backward(ctx, dh):
        e, g = (x.flatten(0, 1).clone() for x in ctx.saved_tensors)
        _, dg, de = ctx.of(dh.flatten(0, 1).clone(), e, g)
        return de.view(dh.shape), dg.view(dh.shape), None, None


@pytest.mark.parametrize("name", ["swiglu", "geglu_exact", "geglu_approx"])
def test_gated(agree, name):
    from unsloth.kernels import geglu, swiglu

    forward, backward, activation = {
        "swiglu": (swiglu.swiglu_fg_kernel, swiglu.swiglu_DWf_DW_dfg_kernel, F.silu),
        "geglu_exact": (geglu.geglu_exact_forward_kernel, geglu.geglu_exact_backward_kernel, F.gelu),
        "geglu_approx": (
            geglu.geglu_approx_forward_kernel, geglu.geglu_approx_backward_kernel,
            lambda x: F.gelu(x, approximate="tanh"),
        ),
    }[name]
    # The gradients of its linear layers are made of these three in one.
    agree(
        lambda e, g: Gated.apply(e, g, forward, backward),
        lambda e, g: activation(e) * g,
        made(2, 7, 100), made(2, 7, 100),
    )


def turned(x):
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def rotated(x, cos, sin):
    return x * cos.double() + turned(x) * sin.double()


def table(length, width):
    angles = torch.randn(length, width // 2, device="cuda").repeat(1, 2)
    return angles.cos(), angles.sin()


@pytest.mark.parametrize("indexed", [False, True])
def test_rope(agree, indexed):
    from unsloth.kernels.rope_embedding import fast_rope_embedding

    cos, sin = table(12, 16)
    at = torch.randint(12, (2, 10), device="cuda", dtype=torch.int32) if indexed else None
    chosen = [t[at.long()][:, None] if indexed else t[:10] for t in (cos, sin)]
    agree(
        lambda q, k: fast_rope_embedding(q, k, cos, sin, at),
        lambda q, k: (rotated(q, *chosen), rotated(k, *chosen)),
        made(2, 4, 10, 16), made(2, 2, 10, 16),
    )


def test_norms_with_rope(agree):
    from unsloth.kernels.qk_norm_rope import fast_qk_norm_rope

    cos, sin = table(12, 16)
    wq, wk = made(16, grad=False), made(16, grad=False)

    def reference(q, k):
        return tuple(
            rotated(rms(x, w.double()).transpose(1, 2), cos[:10], sin[:10]) for x, w in ((q, wq), (k, wk))
        )

    agree(
        lambda q, k: fast_qk_norm_rope(Norm(wq), Norm(wk), q, k, cos, sin),
        reference, made(2, 10, 4, 16), made(2, 10, 2, 16),
    )


@pytest.mark.parametrize("causal", [False, True])
def test_attention(agree, causal):
    from unsloth.kernels.large_head_attention import _dense_intervals, large_head_attention

    lo, hi = _dense_intervals(1, 70, causal, "cuda")

    agree(
        lambda q, k, v: large_head_attention(q, k, v, lo, hi).transpose(1, 2),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True),
        made(1, 4, 70, 64), made(1, 2, 70, 64), made(1, 2, 70, 64), within=1e-4,
    )


def nf4(rows, columns, blocksize=64, twice=False):
    """A weight in NF4, and the numbers that it stands for."""
    code = torch.tensor([
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ], device="cuda")  # fmt: skip
    packed = torch.randint(256, (rows * columns // 2,), device="cuda", dtype=torch.uint8)
    blocks = rows * columns // blocksize
    if twice:
        code2, absmax2 = torch.linspace(-1, 1, 256, device="cuda"), torch.rand(-(-blocks // 256), device="cuda") + 0.5
        offset, absmax = torch.tensor(1.5, device="cuda"), torch.randint(256, (blocks,), device="cuda", dtype=torch.uint8)
        scale = code2.double()[absmax.long()] * absmax2.double().repeat_interleave(256)[:blocks] + offset.double()
    else:
        code2 = absmax2 = offset = None
        absmax = torch.rand(blocks, device="cuda") + 0.5
        scale = absmax.double()
    numbers = torch.stack((packed >> 4, packed & 15), -1).reshape(-1).long()
    wide = (code.double()[numbers] * scale.repeat_interleave(blocksize)).view(rows, columns)
    return (packed, absmax, code2, absmax2, offset, code, blocksize, 256), wide


@pytest.mark.parametrize("twice", [False, True])
def test_nf4(agree, twice):
    from unsloth.kernels.nf4 import dequantize_nf4
    from unsloth.kernels.nf4_gemv import gemv_nf4

    state, wide = nf4(48, 128, twice=twice)
    agree(lambda: dequantize_nf4(*state, (48, 128), torch.float32).view(48, 128), lambda: wide)
    x = (made(1, 1, 128, grad=False) / 4).to(torch.float16)
    agree(lambda x: gemv_nf4(x, *state, (48, 128), torch.float16), lambda x: x @ wide.T, x, within=1e-3)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_packed_integers(agree, bits, zeros):
    from unsloth.kernels import int4_packed

    n, k, group = 24, 64, 32
    per = 32 // bits
    numbers = torch.randint(1 << bits, (n, k), device="cuda")
    words = (numbers.view(n, k // per, per) << (bits * torch.arange(per, device="cuda"))).sum(-1)
    packed = torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
    scale = torch.rand(n, k // group, device="cuda") + 0.5
    zero = torch.full((n, k // group), 1 << (bits - 1), device="cuda")
    point = None
    if zeros:
        zero = torch.randint(1 << bits, (n, k // group), device="cuda")
        # Packed along the rows.
        shifted = (zero.view(n // per, per, -1) << (bits * torch.arange(per, device="cuda"))[None, :, None]).sum(1)
        point = torch.where(shifted >= 1 << 31, shifted - (1 << 32), shifted).to(torch.int32)
    wide = ((numbers - zero.repeat_interleave(group, 1)) * scale.double().repeat_interleave(group, 1)).double()
    state = int4_packed.Int4QuantState(scale, point, None, (n, k), bits, group, torch.float32)
    agree(lambda: int4_packed.int4_dequantize(packed, state, torch.float32), lambda: wide)
    with torch.no_grad():
        agree(lambda x: int4_packed.int4_matmul(x, packed, state), lambda x: x @ wide.T, made(3, k, grad=False))


E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def test_nvfp4(agree, monkeypatch):
    from unsloth.kernels import nvfp4

    monkeypatch.setattr(nvfp4, "_fused_env", lambda: (next(iter(nvfp4._FUSED_FORCE)), None))
    n, k = 64, 128
    packed = torch.randint(256, (n, k // 2), device="cuda", dtype=torch.uint8)
    scale, overall = (torch.rand(n, k // 16, device="cuda") + 0.5).to(torch.float8_e4m3fn), torch.tensor([2.0], device="cuda")
    codes = torch.stack((packed & 15, packed >> 4), -1).reshape(n, k).long()
    values = torch.tensor(E2M1 + [-x for x in E2M1], dtype=torch.float64)[codes]
    wide = values * (scale.double() / 2).repeat_interleave(16, 1)
    agree(lambda: nvfp4.nvfp4_dequantize(packed, scale, overall, torch.float32), lambda: wide)

    x = (torch.randn(5, k, device="cuda")).to(torch.float16).requires_grad_()
    before = dict(nvfp4._FUSED_CALLS)
    y = nvfp4.NVFP4Linear_matmul.apply(x, packed, scale, overall)
    way = torch.randn_like(y)
    y.backward(way)
    assert {key: nvfp4._FUSED_CALLS[key] - before[key] for key in before} == {"fwd": 1, "bwd": 1}
    for got, want in ((y, x.double() @ wide.T), (x.grad, way.double() @ wide)):
        assert ((got.double() - want).abs().max() / want.abs().max()).item() < 2e-3


def test_float8():
    from unsloth.kernels import fp8

    x = made(6, 256, grad=False)
    y, s = fp8.act_quant(x)
    blocks = x.view(6, 2, 128)
    scale = blocks.abs().amax(-1) / 448
    assert torch.allclose(s, scale, rtol=1e-6)
    # In codes, since some are NaN or a zero with a sign.
    assert torch.equal(y.view(torch.uint8), (blocks / s[..., None]).to(torch.float8_e4m3fn).view(6, 256).view(torch.uint8))

    w = torch.randn(128, 256, device="cuda").to(torch.float8_e4m3fn)
    ws = torch.rand(1, 2, device="cuda") + 0.5
    wide = w.double() * ws.double().repeat_interleave(128, 0).repeat_interleave(128, 1)
    found = fp8.weight_dequant_block(w, ws, dtype=torch.float32)
    assert ((found.double() - wide).abs().max() / wide.abs().max()).item() < 1e-6

    product = fp8.w8a8_block_fp8_matmul_triton(y, w, s, ws, [128, 128], torch.float32)
    want = (y.double().view(6, 2, 128) * s.double()[..., None]).view(6, 256) @ wide.T
    assert ((product.double() - want).abs().max() / want.abs().max()).item() < 1e-5

    rows = torch.rand(128, 1, device="cuda") + 0.5
    for count in (1, 3):
        a = torch.randn(count, 256, device="cuda").to(torch.bfloat16)
        want = a.double() @ (w.double() * rows.double()).T
        found = fp8.fp8_rowwise_gemv(a, w, rows)
        assert ((found.double() - want).abs().max() / want.abs().max()).item() < 8e-3
        want = a.double() @ wide.T
        found = fp8._fp8_block_gemv(a, w, ws, 128, 128)
        assert ((found.double() - want).abs().max() / want.abs().max()).item() < 8e-3


@pytest.mark.parametrize("permute_x, permute_y", [(False, False), (True, False), (False, True)])
def test_grouped_product(agree, monkeypatch, permute_x, permute_y):
    # Only the tables of its tuner need pandas.
    monkeypatch.setitem(sys.modules, "pandas", types.ModuleType("pandas"))
    sys.modules["pandas"].DataFrame = object
    from unsloth.kernels.moe.grouped_gemm.interface import grouped_gemm
    from unsloth.kernels.moe.grouped_gemm.kernels.tuning import (
        KernelConfigBackward_dW, KernelConfigBackward_dX, KernelConfigForward,
    )

    experts, tokens, topk, k, n = 3, 20, 2, 32, 64
    chosen = torch.stack([torch.randperm(experts)[:topk] for _ in range(tokens)]).to("cuda")
    order = chosen.view(-1).argsort(stable=True)
    sizes = torch.bincount(chosen.view(-1), minlength=experts).to(torch.int32)
    of = chosen.view(-1)[order]

    def reference(x, w):
        rows = x[order // topk] if permute_x else x
        y = torch.einsum("tk,tnk->tn", rows, w[of])
        return torch.zeros_like(y).index_copy(0, order, y) if permute_y else y

    options = dict(permute_x=permute_x, permute_y=permute_y)
    agree(
        lambda x, w: grouped_gemm(
            x, w, sizes, topk, order.to(torch.int32), **options, is_first_gemm=not permute_y,
            kernel_config_fwd=KernelConfigForward(**options),
            kernel_config_bwd_dX=KernelConfigBackward_dX(**options),
            kernel_config_bwd_dW=KernelConfigBackward_dW(**options),
        ),
        reference, made(tokens if permute_x else tokens * topk, k), made(experts, n, k), within=1e-5,
    )
