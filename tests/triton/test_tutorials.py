"""The kernels of the tutorials against PyTorch: natively, on the evaluator, and on the simulator of two GPUs under several schedules."""

import math
import os

import kernels
import numpy as np
import pytest
import triton
from girih.bench import tutorials as t

torch = pytest.importorskip("torch")

SIMULATED = {"sm_80": "sim", "sm_90a": "sim"}


@pytest.fixture(params=["cpu", "eval", *SIMULATED], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", SIMULATED.get(request.param, request.param))
    if request.param in SIMULATED:
        monkeypatch.setenv("GIRIH_TARGET", request.param)
        monkeypatch.setenv("GIRIH_SCHEDULES", os.environ.get("GIRIH_TUTORIAL_SCHEDULES", "3"))
    # A kernel that was loaded for another device is loaded again.
    for kernel in [*vars(t).values(), *vars(kernels).values()]:
        if isinstance(kernel, triton.runtime.JITFunction):
            kernel.device_caches.clear()
    return request.param


def random(*shape, seed=0, dtype=torch.float32):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def close(found, expected, within):
    torch.testing.assert_close(found.double(), expected.double(), rtol=within, atol=within)


def test_vector_add():
    x, y, out = random(700), random(700, seed=1), torch.empty(700)
    kernels.add[(3,)](x, y, out, 700, BLOCK=256)
    assert torch.equal(out, x + y)


def test_softmax():
    x, out = random(9, 50), torch.empty(9, 50)
    t.rows_softmax[(4,)](x, out, x.stride(0), out.stride(0), 9, 50, BLOCK=64)
    close(out, torch.softmax(x.double(), 1), 1e-6)


@pytest.mark.parametrize("activation", ["", "leaky"])
def test_matmul(activation):
    m, n, k = 90, 70, 40
    a, b, c = random(m, k, dtype=torch.float16), random(k, n, seed=1, dtype=torch.float16), torch.empty(m, n, dtype=torch.float16)
    grid = (triton.cdiv(m, 32) * triton.cdiv(n, 32),)
    t.grouped_matmul[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), BM=32, BN=32, BK=16, GROUP=2, ACTIVATION=activation
    )
    expected = a.double() @ b.double()
    close(c, torch.nn.functional.leaky_relu(expected) if activation else expected, 1e-2)


def test_dropout():
    n = 500
    x, first, again, other = random(n), torch.empty(n), torch.empty(n), torch.empty(n)
    for out, seed in [(first, 123), (again, 123), (other, 512)]:
        t.seeded_dropout[(triton.cdiv(n, 128),)](x, out, n, 0.5, seed, BLOCK=128)
    assert torch.equal(first, again) and not torch.equal(first, other)
    kept = first != 0
    assert 200 < kept.sum() < 300
    close(first[kept], 2 * x[kept], 1e-6)


def test_layer_norm_and_its_gradients():
    m, n, groups = 6, 40, 2
    x, w, b, dy = random(m, n), random(n, seed=1), random(n, seed=2), random(m, n, seed=3)
    y, mean, rstd = torch.empty_like(x), torch.empty(m), torch.empty(m)
    t.norm_forward[(m,)](x, y, w, b, mean, rstd, x.stride(0), n, 1e-5, BLOCK=16)
    wide = [v.double().requires_grad_() for v in (x, w, b)]
    expected = torch.nn.functional.layer_norm(wide[0], (n,), wide[1], wide[2], 1e-5)
    close(y, expected, 1e-5)

    dx, lock = torch.empty_like(x), torch.zeros(2 * groups, dtype=torch.int32)
    parts = torch.zeros(2, groups, n)
    t.norm_backward_rows[(m,)](dx, dy, parts[0], parts[1], x, w, mean, rstd, lock, x.stride(0), n, GROUPS=groups, BLOCK=64)
    dw, db = torch.empty(n), torch.empty(n)
    t.norm_backward_weights[(triton.cdiv(n, 16),)](parts[0], parts[1], dw, db, groups, n, BM=4, BN=16)
    for found, want in zip((dx, dw, db), torch.autograd.grad(expected, wide, dy.double())):
        close(found, want, 1e-4)


def heads(seed, dtype):
    return random(1, 2, 64, 16, seed=seed, dtype=dtype)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    q, k, v = (heads(i, torch.float16) for i in range(3))
    out, lse = torch.empty_like(q), torch.empty(2, 64)
    t.attention[(2, 2)](q, k, v, out, lse, 0.5, 64, D=16, BM=32, BN=16, CAUSAL=causal)
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal, scale=0.5)
    close(out, expected, 1e-2)


def test_gradients_of_attention():
    q, k, v, dout = (heads(i, torch.float32) for i in range(4))
    out, lse, delta = torch.empty_like(q), torch.empty(2, 64), torch.empty(2, 64)
    t.attention[(2, 2)](q, k, v, out, lse, 0.5, 64, D=16, BM=32, BN=16, CAUSAL=True)
    t.attention_before_backward[(4,)](out, dout, delta, D=16, BM=32)
    dq, dk, dv = (torch.empty_like(q) for _ in range(3))
    t.attention_backward[(2, 2)](q, k, v, dout, dq, dk, dv, lse, delta, 0.5, 64, D=16, BM=16, BN=32)
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=True, scale=0.5)
    for found, want in zip((dq, dk, dv), torch.autograd.grad(expected, wide, dout.double())):
        close(found, want, 1e-4)


def test_grouped_gemm():
    shapes = [(32, 48, 32), (16, 16, 64), (48, 32, 16)]
    made = [
        (random(m, k, seed=i, dtype=torch.float16), random(k, n, seed=9 + i, dtype=torch.float16), torch.zeros(m, n, dtype=torch.float16))
        for i, (m, n, k) in enumerate(shapes)
    ]
    addresses = [torch.tensor([of[i].data_ptr() for of in made]) for i in range(3)]
    leads = torch.tensor([[x.stride(0) for x in of] for of in made], dtype=torch.int32)
    t.group_gemm[(3,)](*addresses, torch.tensor(shapes, dtype=torch.int32), leads, len(shapes), PROGRAMS=3, BM=16, BN=16, BK=16)
    for a, b, c in made:
        close(c, a.double() @ b.double(), 2e-2)


def test_persistent_matmul():
    m, n, k = 90, 48, 40
    a, b, c = random(m, k, dtype=torch.float16), random(n, k, seed=1, dtype=torch.float16), torch.empty(m, n, dtype=torch.float16)
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    t.persistent_matmul[(3,)](a, b, c, m, n, k, PROGRAMS=3, BM=32, BN=16, BK=16, GROUP=2)
    close(c, a.double() @ b.double().T, 2e-2)


# The numbers of e2m1, by their codes.
HALVES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@pytest.mark.parametrize("kind", ["e4m3", "e2m1"])
def test_block_scaled_matmul(kind):
    m, n, k = 32, 32, 128
    rng = np.random.default_rng(0)
    scales = [torch.from_numpy(rng.integers(124, 131, (rows, k // 32), dtype=np.uint8)) for rows in (m, n)]
    given, wide = [], []
    for rows, scale in zip((m, n), scales):
        if kind == "e2m1":
            codes = torch.from_numpy(rng.integers(0, 16, (rows, k), dtype=np.uint8))
            numbers = HALVES[(codes & 7).long()] * torch.where(codes > 7, -1.0, 1.0)
            given.append(codes[:, ::2] | codes[:, 1::2] << 4)
        else:
            given.append(random(rows, k, seed=rows).to(torch.float8_e4m3fn))
            numbers = given[-1].float()
        wide.append(numbers.double() * 2.0 ** (scale.double() - 127).repeat_interleave(32, 1))
    c = torch.empty(m, n)
    pack = 2 if kind == "e2m1" else 1
    t.block_scaled_matmul[(1, 1)](given[0], scales[0], given[1], scales[1], c, m, n, k, BM=32, BN=32, BK=64, PACK=pack, KIND=kind)
    close(c / math.sqrt(k), wide[0] @ wide[1].T / math.sqrt(k), 1e-4)
