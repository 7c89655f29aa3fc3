"""Kernels of kinds that people publish against PyTorch in float64: natively, on the evaluator, and on the simulator of a GPU."""

import math
import os

import pytest
import triton
import triton.language as tl

torch = pytest.importorskip("torch")
PI = tl.constexpr(math.pi)


@pytest.fixture(params=["cpu", "eval", "sim"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", request.param)
    torch.manual_seed(0)
    for kernel in globals().values():
        if isinstance(kernel, triton.runtime.JITFunction):
            kernel.device_caches.clear()


def close(a, b, within=1e-4):
    worst = (a.double() - b.double()).abs().max().item() / max(b.abs().max().item(), 1e-30)
    assert worst < within, worst


@triton.jit
def stream_k(a, b, c, M, N, K, stretches, per_tile, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Each program takes the same number of stretches of k, of several tiles where they come so."""
    per = tl.cdiv(stretches, PROGRAMS)
    start = tl.program_id(0) * per
    last = tl.minimum(start + per, stretches)
    while start < last:
        done = start % per_tile
        end = tl.minimum(start + per_tile - done, last)
        tile = start // per_tile
        across = tl.cdiv(N, BN)
        m = tile // across * BM + tl.arange(0, BM)
        n = tile % across * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        left = a + (m[:, None] * K + k[None, :]) + BK * done
        right = b + (k[:, None] * N + n[None, :]) + BK * N * done
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(start, end):
            at = (step % per_tile) * BK + k
            x = tl.load(left, mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
            y = tl.load(right, mask=(at[:, None] < K) & (n[None, :] < N), other=0.0)
            total += tl.dot(x, y, input_precision="ieee")
            left += BK
            right += BK * N
        tl.atomic_add(c + m[:, None] * N + n[None, :], total, mask=(m < M)[:, None] & (n < N)[None, :], sem="relaxed")
        start = end


def test_stream_k():
    m, n, k = 70, 50, 100
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.zeros(m, n)
    per_tile = triton.cdiv(k, 16)
    stretches = triton.cdiv(m, 32) * triton.cdiv(n, 32) * per_tile
    stream_k[(5,)](a, b, c, m, n, k, stretches, per_tile, 32, 32, 16, 5)
    close(c, a.double() @ b.double())


@triton.jit
def rows_and_columns(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    n = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + start + k[None, :], mask=start + k[None, :] < K, other=0.0)
        y = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=start + k[:, None] < K, other=0.0)
        total += tl.dot(x, y, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize(
    "m, n, k", [(64, 64, 32), (64, 72, 33), (50, 37, 20), (7, 5, 3), (64, 48, 32), (48, 80, 64), (33, 16, 17), (16, 16, 48)]
)
def test_rows_and_columns_that_wrap_around(m, n, k):
    """Columns modulo N are neighbours up to where they wrap, which is inside a vector here."""
    if os.environ["GIRIH_DEVICE"] != "cpu":
        pytest.skip("programs write the same elements, which is a race")
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.zeros(m, n)
    rows_and_columns[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, c, m, n, k, 32, 32, 16)
    close(c, a.double() @ b.double())


@triton.jit
def rows_of_experts(x, w, out, rows, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WIDE: tl.constexpr):
    """Each row of a block is where a list says."""
    row = tl.load(rows + tl.program_id(0) * BM + tl.arange(0, BM))
    if WIDE:
        row = row.to(tl.int64)
    n = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    left, right = x + row[:, None] * K + k[None, :], w + k[:, None] * N + n[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        inside = k < K - step * BK
        total = tl.dot(
            tl.load(left, mask=inside[None, :], other=0.0), tl.load(right, mask=inside[:, None], other=0.0), total,
            input_precision="ieee",
        )
        left += BK
        right += BK * N
    where = tl.program_id(1) * BN + tl.arange(0, BN)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(out + m[:, None] * N + where[None, :], total, mask=where[None, :] < N)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n, k", [(64, 64), (48, 40), (37, 33)])
def test_rows_where_a_list_says(n, k, wide):
    x, w, out = torch.randn(80, k), torch.randn(k, n), torch.zeros(64, n)
    rows = torch.randperm(80)[:64].to(torch.int32)
    rows_of_experts[(2, triton.cdiv(n, 32))](x, w, out, rows, n, k, 32, 32, 32, wide)
    close(out, x.double()[rows.long()] @ w.double())


@triton.jit
def look_back(x, y, state, n, BLOCK: tl.constexpr):
    """Programs in the order they begin; each waits for the sum of those before it."""
    mine = tl.atomic_add(state, 1)
    i = mine * BLOCK + tl.arange(0, BLOCK)
    part = tl.load(x + i, mask=i < n, other=0)
    before = tl.full((), 0, tl.int32)
    if mine > 0:
        while tl.atomic_add(state + 1 + mine, 0, sem="acquire") == 0:
            pass
        before = tl.atomic_add(state + 65 + mine, 0)
    tl.atomic_xchg(state + 66 + mine, before + tl.sum(part, 0))
    tl.atomic_xchg(state + 2 + mine, 1, sem="release")
    tl.store(y + i, tl.cumsum(part, 0) + before, mask=i < n)


def test_programs_that_wait_for_those_before():
    x = torch.randint(-9, 9, (1000,), dtype=torch.int32)
    y, state = torch.empty_like(x), torch.zeros(200, dtype=torch.int32)
    look_back[(16,)](x, y, state, 1000, 64)
    assert torch.equal(y, x.cumsum(0).int())


@triton.jit
def butterfly(re, im, half: tl.constexpr, groups: tl.constexpr, N: tl.constexpr):
    a, b = tl.split(tl.permute(tl.reshape(re, (groups, 2, half)), (0, 2, 1)))
    c, d = tl.split(tl.permute(tl.reshape(im, (groups, 2, half)), (0, 2, 1)))
    angle = -PI * tl.arange(0, half).to(tl.float32) / half
    cos, sin = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
    p, q = b * cos - d * sin, b * sin + d * cos
    re = tl.reshape(tl.permute(tl.join(a + p, a - p), (0, 2, 1)), (N,))
    return re, tl.reshape(tl.permute(tl.join(c + q, c - q), (0, 2, 1)), (N,))


@triton.jit
def fourier(x, out, N: tl.constexpr, LOG: tl.constexpr):
    i = tl.arange(0, N)
    mirrored, left = tl.zeros([N], tl.int32), i
    for _ in tl.static_range(LOG):
        mirrored = (mirrored << 1) | (left & 1)
        left = left >> 1
    re = tl.load(x + tl.program_id(0) * N + mirrored)
    im = tl.zeros_like(re)
    for s in tl.static_range(LOG):
        re, im = butterfly(re, im, 1 << s, N // (2 << s), N)
    tl.store(out + (tl.program_id(0) * N + i) * 2, re)
    tl.store(out + (tl.program_id(0) * N + i) * 2 + 1, im)


@pytest.mark.parametrize("n", [2, 16, 64])
def test_butterflies(n):
    x, out = torch.randn(3, n), torch.empty(3, n, 2)
    fourier[(3,)](x, out, n, n.bit_length() - 1)
    close(out, torch.view_as_real(torch.fft.fft(x.double())))


@triton.jit
def causal_convolution(x, w, state, y, L, D, K: tl.constexpr, BLOCK: tl.constexpr):
    """The last K - 1 inputs are a tuple that the loop carries."""
    d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = d < D
    held = ()
    for j in tl.static_range(K - 1):
        held = held + (tl.load(state + d * (K - 1) + j, mask=inside, other=0.0),)
    for t in range(L):
        now = tl.load(x + t * D + d, mask=inside, other=0.0)
        total = now * tl.load(w + d * K + K - 1, mask=inside, other=0.0)
        for j in tl.static_range(K - 1):
            total += held[j] * tl.load(w + d * K + j, mask=inside, other=0.0)
        tl.store(y + t * D + d, total * tl.sigmoid(total), mask=inside)
        held = held[1:] + (now,)
    for j in tl.static_range(K - 1):
        tl.store(state + d * (K - 1) + j, held[j], mask=inside)


def test_a_state_that_is_a_tuple():
    length, d, k = 9, 20, 4
    x, w, state, y = torch.randn(length, d), torch.randn(d, k), torch.randn(d, k - 1), torch.empty(length, d)
    both = torch.cat([state, x.T], 1).double()
    causal_convolution[(2,)](x, w, state, y, length, d, k, 16)
    close(y, torch.nn.functional.silu(torch.nn.functional.conv1d(both[None], w.double()[:, None], groups=d)[0].T))
    assert torch.equal(state.double(), both[:, 1 - k :])


@triton.jit
def inverse(a, out, N: tl.constexpr):
    """The inverse of a unit lower triangle, row by row."""
    r = tl.arange(0, N)
    at = tl.program_id(0) * N * N + r[:, None] * N + r[None, :]
    x = -tl.where(r[:, None] > r[None, :], tl.load(a + at), 0.0)
    for i in range(1, N):
        row = tl.sum(tl.where((r == i)[:, None], x, 0.0), 0)
        row = row + tl.sum(row[:, None] * x, 0) * (r < i)
        x = tl.where((r == i)[:, None], row[None, :], x)
    tl.store(out + at, x + (r[:, None] == r[None, :]))


def test_triangles():
    a = torch.randn(3, 16, 16) * 0.3
    out = torch.empty_like(a)
    inverse[(3,)](a, out, 16)
    close(out, torch.linalg.inv(a.double().tril(-1) + torch.eye(16).double()))
