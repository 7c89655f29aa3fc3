"""torchao's Triton kernels: quantised products, conversions to 8 bits, and sparse products."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchao")
from conftest import made, near  # noqa: E402

E4M3 = torch.float8_e4m3fn


def same(found, expected):
    """Float8 tensors of the same codes."""
    assert torch.equal(found.contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))


def blocks(scale, rows, columns):
    return scale.double().repeat_interleave(rows, 0).repeat_interleave(columns, 1)


def test_blocks_of_float8():
    from torchao.kernel import blockwise_quantization as ao

    x, w = made(6, 256, grad=False), made(128, 256, grad=False)
    y, s = ao.fp8_blockwise_act_quant(x)
    largest = x.view(6, 2, 128).abs().amax(-1)
    assert torch.allclose(s, largest / 448, rtol=1e-6)
    same(y, (x / s.repeat_interleave(128, 1)).to(E4M3))
    q, t = ao.fp8_blockwise_weight_quant(w)
    assert torch.allclose(t, w.view(128, 2, 128).abs().amax((0, 2))[None] / 448, rtol=1e-6)
    same(q, (w / t.repeat_interleave(128, 0).repeat_interleave(128, 1)).to(E4M3))
    wide = q.double() * blocks(t, 128, 128)
    near(ao.fp8_blockwise_weight_dequant(q, t).double(), wide, 4e-3, "weight")
    product = ao.blockwise_fp8_gemm(y, s, q, t)
    near(product, (y.double() * blocks(s, 1, 128)) @ wide.T, 4e-3, "product")


def test_blocks_of_float8_in_training():
    from torchao.prototype.blockwise_fp8_training import kernels as ao

    x = made(128, 256, grad=False)
    a, a_s = ao.triton_fp8_blockwise_act_quant_lhs(x)
    want, want_s = ao.torch_blockwise_scale_act_quant_lhs(x)
    same(a, want)
    assert torch.allclose(a_s.float(), want_s.float(), rtol=1e-6)
    b = torch.randn(128, 256, device="cuda").to(E4M3).T
    b_s = (torch.rand(1, 2, device="cuda") + 0.5).T
    product = ao.triton_fp8_gemm_1x128_128x128(a, b, a_s, b_s)
    near(product, (a.double() * blocks(a_s, 1, 128)) @ (b.double() * blocks(b_s, 128, 128)), 1e-5, "product")


@pytest.mark.parametrize("scalar", [False, True])
def test_scaled_products_of_integers(scalar):
    from torchao.prototype.quantized_training.int8_mm import scaled_int8_mm

    a = torch.randint(-128, 128, (20, 64), dtype=torch.int8, device="cuda")
    b = torch.randint(-128, 128, (64, 48), dtype=torch.int8, device="cuda")
    rows, columns = torch.rand(20, device="cuda"), torch.rand(1 if scalar else 48, device="cuda")
    want = (a.double() @ b.double()) * rows.double()[:, None] * columns.double()
    near(scaled_int8_mm(a, b, rows, columns), want, 1e-6, "product")


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_four_bits(transposed):
    from torchao.prototype.hqq.mixed_mm import pack_2xint4, triton_mixed_mm

    k, n, group = 64, 32, 32
    w = torch.randint(16, (n, k), device="cuda", dtype=torch.uint8)
    scales = (torch.rand(n, k // group, device="cuda") + 0.5).to(torch.float16)
    zeros = torch.randint(16, (n, k // group), device="cuda").to(torch.float16)
    wide = (w.double() - zeros.double().repeat_interleave(group, 1)) * scales.double().repeat_interleave(group, 1)
    packed = pack_2xint4(w.T.contiguous())
    x = torch.randn(16, n if transposed else k, device="cuda").to(torch.float16)
    found = triton_mixed_mm(
        x, packed, scales.T.contiguous(), zeros.T.contiguous(), group_size=group, transposed=transposed,
        # Transposed, a block is one group.
        kernel_type="debug", BLOCK_M=16, BLOCK_N=group if transposed else 16, BLOCK_K=32,
    )
    near(found, x.double() @ (wide if transposed else wide.T), 5e-3, "product")


@pytest.mark.parametrize("mode", ["floor"])
def test_mx(mode):
    from torchao.prototype.mx_formats import kernels as ao
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_mx

    x = torch.randn(128, 128, device="cuda").to(torch.bfloat16)
    if not ao._triton_kernels_available:
        pytest.skip("torchao finds no GPU with these formats")
    for found, given in ((ao.triton_to_mxfp8_dim0(x, 32, mode), x), (ao.triton_to_mxfp8_dim1(x, 32, mode), x.T.contiguous())):
        scale, numbers = to_mx(given, E4M3, 32, scaling_mode=ScaleCalculationMode(mode))
        same(found[0] if given is x else found[0].T, numbers)
        same(found[1].view(torch.uint8).reshape(scale.shape), scale.view(torch.uint8))
    numbers, scale = ao.triton_to_mxfp8_dim0(x, 32, mode)
    wide = numbers.double() * torch.exp2(scale.view(torch.uint8).double() - 127).reshape(128, 4).repeat_interleave(32, 1)
    assert torch.equal(ao.triton_mxfp8_dequant_dim0(numbers, scale.view(torch.uint8).reshape(128, 4), torch.float32).double(), wide)


def test_scales_in_the_order_of_a_product():
    from torchao.prototype.mx_formats.kernels import triton_mx_block_rearrange

    scale = torch.randint(256, (130, 6), device="cuda", dtype=torch.uint8)
    padded = torch.zeros(256, 8, dtype=torch.uint8)
    padded[:130, :6] = scale
    want = padded.view(2, 4, 32, 2, 4).permute(0, 3, 2, 1, 4).reshape(-1)
    assert torch.equal(triton_mx_block_rearrange(scale).view(-1).to("cpu"), want)


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0.5, 2)])
def test_sparse_blocks(beta, alpha):
    from torchao.kernel.bsr_triton_ops import bsr_dense_addmm

    dense = made(64, 64, grad=False) * (torch.rand(4, 4, device="cuda") > 0.5).float().repeat_interleave(16, 0).repeat_interleave(16, 1)
    other, added = made(64, 32, grad=False), made(64, 32, grad=False)
    meta = dict(GROUP_SIZE_ROW=1, SPLIT_N=1, num_stages=1, num_warps=4)
    found = bsr_dense_addmm(added, dense.to_sparse_bsr((16, 16)), other, beta=beta, alpha=alpha, meta=meta, skip_checks=True)
    near(found, beta * added.double() + alpha * (dense.double() @ other.double()), 1e-5, "product")


def test_indices_of_experts():
    import importlib.util

    import torchao

    # By itself: its package has a kernel that Triton refuses since 3.7, tuned by a name that its parameters lack.
    path = f"{torchao.__path__[0]}/prototype/moe_training/ep/kernels.py"
    spec = importlib.util.spec_from_file_location("ep_kernels", path)
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    generate_permute_indices = module.generate_permute_indices
    tokens = torch.tensor([4, 2, 1, 3, 1, 2, 3, 4], dtype=torch.int32, device="cuda")
    found = generate_permute_indices(tokens, 4, 2, 64, 8)
    want = generate_permute_indices(tokens.cpu(), 4, 2, 64, 8, use_cpu=True)
    for a, b in zip(found, want):
        assert torch.equal(a.cpu(), b)


@pytest.mark.parametrize("way", ["row_major", "row_major_t", "col_major", "col_major_t"])
@pytest.mark.parametrize("algorithm", ["ATOMIC_MAX", "REDUCTION"])
def test_float8_of_a_whole_tensor(way, algorithm):
    from torchao.float8.float8_training_tensor import LinearMMConfig
    from torchao.prototype.float8nocompile.kernels import fp8_dynamic_tensorwise as ao

    # The masks of its transposition are right for squares of whole blocks only.
    x = torch.randn(128, 128, device="cuda").to(torch.bfloat16)
    found = getattr(ao, f"hp_to_fp8_{way}")(x, E4M3, LinearMMConfig(), algo=ao.KernelAlgorithm[algorithm])
    scale = 448 / x.abs().max().double()
    near(found._scale.reshape(()).double(), scale, 1e-6, "scale")
    given = x.T if way.endswith("_t") else x
    same(found._data, (given.float() * found._scale).clamp(-448, 448).to(E4M3))
