"""gemlite's products with packed weights, in each of its kernels."""

import pytest

torch = pytest.importorskip("torch")
gemlite = pytest.importorskip("gemlite")
from conftest import near  # noqa: E402
from gemlite import helper  # noqa: E402

# It packs with PTX where a GPU's assembler is installed.
gemlite.set_ptx_fp4_pack(False)
# Some kernels read scales beyond a shorter sum.
K, N = 512, 64
KERNELS = {1: ["GEMV", "GEMV_SPLITK", "GEMV_REVSPLITK", "GEMM_SPLITK", "GEMM"], 5: ["GEMM_SPLITK", "GEMM"]}
ROWS = [(rows, kernel) for rows, kernels in KERNELS.items() for kernel in kernels]


def numbers(rows, dtype=torch.float16):
    return (torch.randn(rows, K, device="cuda") / 4).to(dtype)


@pytest.mark.parametrize("rows, kernel", ROWS)
@pytest.mark.parametrize("bits, group", [(4, 32), (2, 64), (8, 128), (1, 64)])
def test_groups_of_integers(bits, group, rows, kernel):
    w = torch.randint(1 << bits, (N, K), device="cuda", dtype=torch.uint8)
    scales = (torch.rand(N * K // group, 1, device="cuda") / 8 + 0.1).to(torch.float16)
    zeros = torch.randint(1 << bits, (N * K // group, 1), device="cuda").to(torch.float16)
    wide = ((w.double().view(-1, group) - zeros.double()) * scales.double()).view(N, K)
    layer = helper.A16Wn(device="cuda", dtype=torch.float16).from_weights(w, scales, zeros, bits, group)
    x = numbers(rows)
    # Sums of halves, and scales that are folded into zeros in halves.
    near(layer.forward_manual(x, kernel), x.double() @ wide.T, 1e-2, kernel)


@pytest.mark.parametrize("rows, kernel", ROWS)
@pytest.mark.parametrize("float8", [False, True])
def test_eight_bits(float8, rows, kernel):
    weight = torch.randn(N, K, device="cuda").to(torch.float16)
    kind = helper.A16W8_FP8 if float8 else helper.A16W8_INT8
    layer = kind(device="cuda", dtype=torch.float16).from_weights(weight.clone())
    x = numbers(rows)
    # The weights are rounded to 8 bits.
    near(layer.forward_manual(x, kernel), x.double() @ weight.double().T, 6e-2 if float8 else 2e-2, kernel)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("float8", [False, True])
def test_eight_bits_of_both(float8, rows):
    weight = torch.randn(N, K, device="cuda").to(torch.float16)
    kind = helper.A8W8_fp8_dynamic if float8 else helper.A8W8_int8_dynamic
    layer = kind(device="cuda", dtype=torch.float16).from_weights(weight.clone())
    x = numbers(rows)
    near(layer(x), x.double() @ weight.double().T, 8e-2 if float8 else 3e-2, "product")


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("rows, kernel", [(1, "GEMM_SPLITK"), (5, "GEMM")])
def test_microscaling(bits, rows, kernel):
    powers = torch.randint(124, 130, (N, K // 32), device="cuda", dtype=torch.uint8)
    if bits == 8:
        weight = torch.randn(N, K, device="cuda").to(torch.float8_e4m3fn)
        values = weight.double()
    else:
        half = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        weight = torch.randint(16, (N, K), device="cuda", dtype=torch.uint8)
        values = torch.tensor(half + [-x for x in half], dtype=torch.float64)[weight.long()]
    wide = values * torch.exp2(powers.double() - 127).repeat_interleave(32, 1)
    kind = helper.A16W8_MXFP if bits == 8 else helper.A16W4_MXFP
    layer = kind(device="cuda", dtype=torch.float16).from_weights(weight, powers.view(torch.float8_e8m0fnu))
    x = numbers(rows)
    near(layer.forward_manual(x, kernel), x.double() @ wide.T, 1e-2, kernel)


def test_activations_by_row():
    from gemlite.quant_utils import scale_activations_per_token

    x = numbers(6)
    for kind, limit in ((torch.int8, 127), (torch.float8_e4m3fn, 448)):
        y, s = scale_activations_per_token(x, w_dtype=kind)
        near(s.reshape(-1).double(), x.abs().amax(1).double() / limit, 1e-3, "scales")
        near(y.double() * s.double().reshape(-1, 1), x.double(), 0.5 / 127 + 1e-3 if limit == 127 else 4e-2, "numbers")
