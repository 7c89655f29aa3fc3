"""Kernels in Triton's words against NumPy and PyTorch: natively, on the evaluator and on the simulator of a GPU."""

import kernels
import numpy as np
import pytest
import triton
from triton._C.libtriton import ir

torch = pytest.importorskip("torch")


@pytest.fixture(params=["cpu", "eval", "sim"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", request.param)
    # A kernel that was loaded for another device is loaded again.
    for kernel in vars(kernels).values():
        if isinstance(kernel, triton.runtime.JITFunction):
            kernel.device_caches.clear()
    return request.param


def close(found, expected, within):
    np.testing.assert_allclose(found.to(torch.float64).numpy(), np.asarray(expected, dtype=np.float64), rtol=within, atol=within)


def random(*shape, seed=0, dtype=torch.float32):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


@pytest.mark.parametrize("n", [1, 256, 1000])
def test_add(n):
    x, y, out = random(n), random(n, seed=1), torch.zeros(n)
    kernels.add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    assert torch.equal(out, x + y)


def test_an_unaligned_tensor():
    x, y, out = random(1001)[1:], random(1001, seed=1)[1:], torch.zeros(1001)[1:]
    kernels.add[(4,)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)


def test_softmax():
    x, out = random(5, 100), torch.zeros(5, 100)
    kernels.softmax[(5,)](x, out, 100, BLOCK=128)
    close(out, torch.softmax(x.double(), 1), 1e-6)


def test_matmul():
    m, n, k = 50, 70, 40
    a, b = random(m, k, dtype=torch.float16), random(k, n, seed=1, dtype=torch.float16)
    c = torch.zeros(m, n)
    kernels.matmul[(2, 3)](a, b, c, m, n, k, BM=32, BN=32, BK=16)
    close(c, a.double() @ b.double(), 1e-4)


@pytest.mark.parametrize("n", [1, 100, 256, 700, 2048, 4500])
def test_a_row_in_pieces(n):
    x, out = random(2, n), torch.zeros(2, 3)
    kernels.pieces[(2,)](x, out, n, BLOCK=256)
    wide = x.double()
    close(out, torch.stack([wide.mean(1), (wide * wide).mean(1), wide.amax(1)], 1), 1e-5)


def test_layer_norm():
    x, w, b = random(4, 100, dtype=torch.bfloat16), random(100, seed=1), random(100, seed=2)
    out = torch.zeros_like(x)
    kernels.layer_norm[(4,)](x, w, b, out, 100, 1e-5, BLOCK=128)
    expected = torch.nn.functional.layer_norm(x.double(), (100,), w.double(), b.double(), 1e-5)
    close(out, expected.to(torch.bfloat16).double(), 1e-2)


def test_early_returns():
    x = torch.tensor([1.0, -3.0, 20.0, 10.0, 5.0, 7.0])
    out = torch.full((6,), 100.0)
    kernels.early[(6,)](x, out, 5)
    assert out.tolist() == [2.0, -1.0, 40.0, 11.0, 6.0, 100.0]


def test_while():
    x, out = torch.tensor([1, 6, 27, 97]), torch.zeros(4, dtype=torch.int32)
    kernels.collatz[(4,)](x, out)
    assert out.tolist() == [0, 8, 111, 118]


def test_folds():
    x, a, b = random(64), random(64, seed=1), random(64, seed=2)
    x[3] = x[40] = 9.0
    index, first = torch.zeros(2, dtype=torch.int32), torch.zeros(1)
    ra, rb = torch.zeros(64), torch.zeros(64)
    kernels.folds[(1,)](x, a, b, index, first, ra, rb, N=64)
    assert index.tolist() == [3, int(x.argmin())]
    assert first.item() == x[x < 0][0].item()
    p, q, expected = 1.0, 0.0, []
    for u, v in zip(a.double().tolist(), b.double().tolist()):
        p, q = p * u, q * u + v
        expected.append((p, q))
    close(ra, [p for p, _ in expected], 1e-5)
    close(rb, [q for _, q in expected], 1e-5)


def test_atomics():
    x = torch.arange(256, dtype=torch.int32) % 10
    counts, total, lock = (torch.zeros(n, dtype=torch.int32) for n in (10, 1, 1))
    kernels.atomics[(4,)](x, counts, total, lock, N=64)
    assert counts.tolist() == torch.bincount(x).tolist()
    assert total.item() == x.sum().item() and lock.item() == 0


def test_moves():
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 1000, 64, dtype=np.int32))
    index = torch.from_numpy(np.random.default_rng(1).integers(0, 64, 64, dtype=np.int32))
    out, pairs, bins = (torch.zeros(n, dtype=torch.int32) for n in (128, 128, 16))
    kernels.moves[(1,)](x, index, out, pairs, bins, N=64)
    assert torch.equal(out[:64], x[index.long()])
    assert torch.equal(pairs, torch.stack([x, x + 1], 1).flatten())
    assert out[64:].tolist() == [1] * 64
    assert torch.equal(bins, torch.bincount(x & 15, minlength=16).int())


def test_calls():
    x, out = random(6), torch.zeros(6)
    kernels.called[(6,)](x, out)
    close(out, 7 * x, 1e-6)


def test_functions():
    x = torch.linspace(-7.5, 7.5, 64)
    out = torch.zeros(6, 64)
    kernels.functions[(1,)](x, out, N=64)
    wide = x.double()
    expected = [wide.erf(), wide.tanh(), wide.round(), (wide / 8).asin(), wide.clamp(-1, 1), -wide]
    for row, want in zip(out, expected):
        close(row, want, 1e-6)


@pytest.mark.skipif(not hasattr(ir.INPUT_PRECISION, "BF16x3"), reason="this version of Triton has no products of bf16 parts")
def test_precisions(device):
    a, b = random(32, 32), random(32, 32, seed=1)
    out = torch.zeros(5, 32, 32)
    kernels.precisions[(1,)](a, b, out, N=32)
    exact = a.double() @ b.double()
    for row, within in zip(out, [1e-5, 2e-2, 2e-5, 2e-4, 2e-5]):
        close(row, exact, within)
    assert not torch.equal(out[0], out[1])
