"""The kernels of `styles.py` against PyTorch in float64: natively, on the evaluator, and on the simulator of a GPU."""

import math

import pytest
import styles
import triton
import triton.language as tl

torch = pytest.importorskip("torch")


@pytest.fixture(params=["cpu", "eval", "sim"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", request.param)
    torch.manual_seed(0)
    for kernel in vars(styles).values():
        kernel = getattr(kernel, "fn", kernel)
        if isinstance(kernel, triton.runtime.JITFunction):
            kernel.device_caches.clear()


def close(a, b, within=1e-4):
    a, b = a.double(), b.double()
    worst = (a - b).abs().max().item() / max(b.abs().max().item(), 1e-30)
    assert worst < within, worst


def test_int4_products():
    for dt in (torch.float16, torch.bfloat16, torch.float32):
        M, N, K, G = (50, 96, 256, 64)
        a = torch.randn(M, K).to(dt)
        q = torch.randint(0, 16, (K, N))
        z = torch.randint(0, 16, (K // G, N))
        s = torch.rand(K // G, N) * 0.1
        pack = torch.zeros(K // 8, N, dtype=torch.int64)
        for i in range(8):
            pack |= q[i::8] << 4 * i
        zp = torch.zeros(K // G, N // 8, dtype=torch.int64)
        for i in range(8):
            zp |= z[:, i::8] << 4 * i
        i32 = lambda t: torch.where(t >= 2 ** 31, t - 2 ** 32, t).to(torch.int32)
        c = torch.empty(M, N, dtype=dt)
        BM, BN = (16, 32)
        styles.int4_product[(triton.cdiv(M, BM) * triton.cdiv(N, BN),)](a, i32(pack), c, s, i32(zp), M, N, K, a.stride(0), 1, N, 1, N, 1, G, BM=BM, BN=BN, BK=64, GROUP_M=4)
        w = ((q - z.repeat_interleave(G, 0)) * s.repeat_interleave(G, 0)).to(dt)
        close(c, a.double() @ w.double(), 0.01 if dt != torch.float32 else 0.0001)


def test_int8_products():
    M, N, K = (70, 45, 100)
    a = torch.randint(-128, 128, (M, K), dtype=torch.int8)
    b = torch.randint(-128, 128, (N, K), dtype=torch.int8)
    sa, sb, bias = (torch.rand(M), torch.rand(N), torch.randn(N).bfloat16())
    c = torch.empty(M, N)
    styles.int8_product[5, 2](a, b, c, sa, sb, bias, M, N, K, BM=16, BN=32, BK=32, HAS_BIAS=True, EVEN_K=False)
    close(c, a.double() @ b.double().T * sa[:, None].double() * sb.double() + bias.double())


def test_paged_attention():
    S, H, KVH, D, BS, NB = (4, 8, 2, 24, 16, 30)
    q = torch.randn(S, H, D)
    k = torch.randn(NB, BS, KVH, D)
    v = torch.randn(NB, BS, KVH, D)
    lens = torch.tensor([1, 37, 64, 100], dtype=torch.int32)
    bt = torch.randperm(NB)[:28].reshape(4, 7).to(torch.int32)
    out = torch.empty_like(q)
    styles.paged_attention[S, KVH](q, k, v, bt, lens, out, D ** (-0.5), q.stride(0), q.stride(1), k.stride(0), k.stride(1), k.stride(2), 7, H=H, KVH=KVH, D=D, DP=32, BS=BS, QP=16)
    for s in range(S):
        kk = k[bt[s].long()].reshape(-1, KVH, D)[:lens[s]].repeat_interleave(H // KVH, 1).double()
        vv = v[bt[s].long()].reshape(-1, KVH, D)[:lens[s]].repeat_interleave(H // KVH, 1).double()
        p = torch.softmax(torch.einsum("hd,khd->hk", q[s].double(), kk) * D ** (-0.5), -1)
        close(out[s], torch.einsum("hk,khd->hd", p, vv) * 1)


def test_rotary_embedding():
    B, S, Hn, D = (2, 7, 6, 20)
    for back in (0, 1):
        q = torch.randn(B * S, Hn * D)
        ang = torch.rand(S, D // 2) * 6
        c, s = (ang.cos(), ang.sin())
        x = q.clone()
        styles.rotate[B * S, 2](x, Hn * D, c, D // 2, s, D // 2, S, head_dim=D, n_heads=Hn, BACKWARD_PASS=back, BLOCK=16, GROUP=4)
        qq = q.view(B, S, Hn, 2, D // 2).double()
        cc, ss = (c[None, :, None].double(), s[None, :, None].double() * (-1 if back else 1))
        close(x.view(B, S, Hn, 2, D // 2), torch.stack([qq[..., 0, :] * cc - qq[..., 1, :] * ss, qq[..., 1, :] * cc + qq[..., 0, :] * ss], 3))


def test_rms_norm_and_its_gradients():
    for dt, tol in ((torch.float32, 1e-05), (torch.bfloat16, 0.02)):
        rows, n = (13, 100)
        x = torch.randn(rows, n).to(dt)
        w = torch.randn(n).to(dt)
        y = torch.empty_like(x)
        R = torch.empty(rows)
        styles.rms_forward[(rows,)](y, x, w, R, n, 1e-06, BLOCK=128)
        xd = x.double().requires_grad_()
        wd = w.double().requires_grad_()
        yd = xd * torch.rsqrt((xd * xd).mean(-1, keepdim=True) + 1e-06) * wd
        close(y, yd.detach(), tol)
        dy = torch.randn(rows, n).to(dt)
        yd.backward(dy.double())
        dx = torch.empty_like(x)
        dw = torch.empty(4, n)
        styles.rms_backward[(4,)](dy, dx, x, w, R, dw, n, rows, 4, BLOCK=128)
        close(dx, xd.grad, tol)
        close(dw.sum(0), wd.grad, tol)


def test_cross_entropy_and_its_gradient():
    for ls, cap in ((0.0, 0.0), (0.1, 0.0), (0.0, 5.0), (0.1, 5.0)):
        x = torch.randn(9, 100) * 4
        t = torch.randint(0, 100, (9,))
        t[3] = -100
        g = x.clone()
        lo = torch.zeros(9)
        styles.cross_entropy[(9,)](g, t, lo, 100, -100, ls=ls, softcap=cap, BLOCK=32, CAP=cap > 0)
        xd = x.double().requires_grad_()
        z = torch.tanh(xd / cap) * cap if cap else xd
        l = torch.nn.functional.cross_entropy(z, t, ignore_index=-100, label_smoothing=ls, reduction="none")
        l.sum().backward()
        close(lo, l.detach())
        close(g, xd.grad)


def test_selective_scan():
    b, L, d, N = (2, 50, 3, 8)
    x = torch.randn(b, L, d)
    dt = torch.randn(b, L, d)
    A = -torch.rand(d, N)
    B = torch.randn(b, L, N)
    C = torch.randn(b, L, N)
    D = torch.randn(d)
    o = torch.empty(b, L, d)
    styles.selective_scan[b, d](x, dt, A, B, C, D, o, L, N=N, CH=16)
    h = torch.zeros(b, d, N).double()
    ys = []
    de = torch.nn.functional.softplus(dt.double())
    for t in range(L):
        h = torch.exp(de[:, t, :, None] * A.double()) * h + de[:, t, :, None] * B[:, t, None, :].double() * x[:, t, :, None].double()
        ys.append((h * C[:, t, None, :].double()).sum(-1) + x[:, t].double() * D.double())
    close(o, torch.stack(ys, 1))


def test_fused_experts():
    T, K, N, E, tk, BM = (21, 50, 40, 5, 2, 16)
    x = torch.randn(T, K)
    w = torch.randn(E, N, K)
    ex = torch.stack([torch.randperm(E)[:tk] for _ in range(T)])
    tw = torch.rand(T, tk)
    flat = ex.flatten()
    ids = []
    eids = []
    for e in range(E):
        l = (flat == e).nonzero().flatten().tolist()
        l += [T * tk] * (-len(l) % BM)
        ids += l
        eids += [e if e != 4 else -1] * (len(l) // BM)
    np_ = len(ids)
    ids += [T * tk] * BM
    eids += [0]
    out = torch.full((T * tk, N), 7.0)
    styles.fused_experts[(triton.cdiv(len(ids), BM) * triton.cdiv(N, 32),)](x, w, out, tw, torch.tensor(ids, dtype=torch.int32), torch.tensor(eids, dtype=torch.int32), torch.tensor([np_], dtype=torch.int32), N, K, len(ids), T * tk, K, 1, N * K, 1, K, N, 1, MUL=True, top_k=tk, ct=tl.float32, BM=BM, BN=32, BK=32, G=2)
    ref = torch.stack([w[flat[i]].double() @ x[i // tk].double() * tw.flatten()[i].double() * (flat[i] != 4) for i in range(T * tk)])
    close(out, ref)


def test_the_greatest():
    x = torch.randn(6, 50)
    K = 8
    for k in (styles.packed_top, styles.repeated_maxima):
        v = torch.empty(6, K)
        i = torch.empty(6, K, dtype=torch.int32)
        k[(6,)](x, v, i, 50, K=K, BLOCK=64)
        rv, ri = x.topk(K)
        assert (v == rv).all() and (i == ri).all()


def test_a_pass_of_radix_sort():
    n = 1000
    x = torch.randint(-2 ** 31, 2 ** 31 - 1, (n,), dtype=torch.int32)
    c = torch.zeros(16, dtype=torch.int32)
    styles.digits_counted[(8,)](x, c, n, SHIFT=4, BITS=4, BLOCK=128)
    ref = torch.bincount((x >> 4 & 15).long(), minlength=16)
    assert (c == ref).all()
    base = (torch.cumsum(c, 0) - c).to(torch.int32)
    out = torch.empty_like(x)
    styles.digits_scattered[(1,)](x, base, out, n, SHIFT=4, BITS=4, BLOCK=1024)
    assert (out == x[torch.argsort(x >> 4 & 15, stable=True)]).all()


def test_split_k():
    M, N, K = (40, 50, 200)
    a, b, c = (torch.randn(M, K), torch.randn(K, N), torch.zeros(M, N))
    styles.split_k_product[3 * 2, 4](a, b, c, c, M, N, K, BM=16, BN=32, BK=16, SK=4)
    close(c, a.double() @ b.double())


def test_sums_under_locks():
    x = torch.randn(9, 30)
    o = torch.empty(2, 30)
    l = torch.zeros(2, dtype=torch.int32)
    k = torch.zeros(2, dtype=torch.int32)
    styles.locked_sums[(9,)](x, o, l, k, 30, BLOCK=32)
    close(o, torch.stack([x[0::2].sum(0), x[1::2].sum(0)]).double())


def test_four_bit_floats():
    n = 700
    q = torch.randint(0, 256, (n // 2,), dtype=torch.uint8)
    code = torch.randn(16)
    am = torch.rand(11) + 0.5
    ref = torch.stack([code[(q >> 4).long()], code[(q & 15).long()]], 1).flatten() * am.repeat_interleave(64)[:n]
    for k in (styles.nf4_by_loads, styles.nf4_by_gather):
        out = torch.empty(n)
        k[(triton.cdiv(n // 2, 128),)](q, am, code, out, n, BLOCK=128, QB=64)
        assert (out == ref).all()


def test_blocks_of_fp8():
    M, N, K = (20, 64, 64)
    x = torch.randn(M, K)
    y = torch.empty(M, K, dtype=torch.float8_e4m3fn)
    s = torch.empty(M, K // 32)
    styles.quantised_blocks[(M * K // 32,)](x, y, s, BLOCK=32)
    sr = x.view(M, K // 32, 32).abs().amax(-1) / 448
    assert (s == sr).all()
    yr = (x.view(M, K // 32, 32) / sr[..., None]).view(M, K).to(torch.float8_e4m3fn)
    assert (y.float() == yr.float()).all()
    w = torch.randn(N, K).to(torch.float8_e4m3fn)
    sb = torch.rand(N // 32, K // 32)
    c = torch.empty(M, N)
    styles.scaled_fp8_product[2, 4](y, w, c, s, sb, M, N=N, K=K, BM=16, BN=16, BK=32)
    A = y.double() * s.double().repeat_interleave(32, 1)
    B = w.double() * sb.double().repeat_interleave(32, 0).repeat_interleave(32, 1)
    close(c, A @ B.T, 0.001)


def test_group_norm():
    x = torch.randn(5, 100) + 3
    y = torch.empty_like(x)
    m = torch.empty(5)
    r = torch.empty(5)
    styles.group_norm[(5,)](x, y, m, r, 100, 1e-05, BLOCK=32)
    xd = x.double()
    close(y, (xd - xd.mean(1, keepdim=True)) / torch.sqrt(xd.var(1, unbiased=False, keepdim=True) + 1e-05))
    close(m, xd.mean(1))


def test_window_attention():
    lens = [5, 32, 50]
    H, D = (2, 16)
    T = sum(lens)
    cu = torch.tensor([0, 5, 37, 87], dtype=torch.int32)
    q, k, v = (torch.randn(T, H, D) for _ in range(3))
    o = torch.empty_like(q)
    L = torch.empty(T, H)
    styles.window_attention[4, H, 3](q, k, v, o, L, cu, D ** (-0.5), H * D, H=H, D=D, BM=16, BN=16, WINDOW=20)
    for i, n in enumerate(lens):
        a = cu[i]
        Q, K_, V_ = (t[a:a + n].double().transpose(0, 1) for t in (q, k, v))
        S = Q @ K_.transpose(1, 2) * D ** (-0.5)
        r = torch.arange(n)
        bad = (r[:, None] < r) | (r[:, None] - r > 20)
        S = S.masked_fill(bad, float("-inf"))
        close(o[a:a + n].transpose(0, 1), torch.softmax(S, -1) @ V_)
        close(L[a:a + n].T * math.log(2), torch.logsumexp(S, -1))
