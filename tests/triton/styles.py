"""Kernels in the styles of libraries: each is one way of writing that several of them share."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def int4_product(a_ptr, b_ptr, c_ptr, s_ptr, z_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, group, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    num_m, num_n = (tl.cdiv(M, BM), tl.cdiv(N, BN))
    width = GROUP_M * num_n
    gid = pid // width
    size = min(num_m - gid * GROUP_M, GROUP_M)
    pm = gid * GROUP_M + pid % size
    pn = pid % width // size
    om = (pm * BM + tl.arange(0, BM)) % M
    on = pn * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    a = a_ptr + om[:, None] * stride_am + ok[None, :] * stride_ak
    b = b_ptr + ok[:, None] // 8 * stride_bk + on[None, :] * stride_bn
    shift = ok % 8 * 4
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        g = (k * BK + ok) // group
        scale = tl.load(s_ptr + g[:, None] * N + on[None, :], mask=on[None, :] < N, other=0.0)
        zero = tl.load(z_ptr + g[:, None] * (N // 8) + on[None, :] // 8, mask=on[None, :] < N, other=0)
        zero = zero >> on[None, :] % 8 * 4 & 15
        av = tl.load(a)
        bv = tl.load(b, mask=on[None, :] < N, other=0)
        bv = bv >> shift[:, None] & 15
        w = (bv - zero) * scale
        acc += tl.dot(av, w.to(av.dtype))
        a += BK * stride_ak
        b += BK // 8 * stride_bk
    c = acc.to(c_ptr.dtype.element_ty)
    om = pm * BM + tl.arange(0, BM)
    tl.store(c_ptr + om[:, None] * stride_cm + on[None, :] * stride_cn, c, mask=(om[:, None] < M) & (on[None, :] < N))


@triton.jit
def int8_product(a_ptr, b_ptr, c_ptr, sa, sb, bias, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HAS_BIAS: tl.constexpr, EVEN_K: tl.constexpr):
    pm, pn = (tl.program_id(0), tl.program_id(1))
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BM), BM)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BN), BN)
    rk = tl.arange(0, BK)
    A = a_ptr + ram[:, None] * K + rk[None, :]
    B = b_ptr + rk[:, None] + rbn[None, :] * K
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(K, 0, -BK):
        if EVEN_K:
            a = tl.load(A)
            b = tl.load(B)
        else:
            a = tl.load(A, mask=rk[None, :] < k, other=0)
            b = tl.load(B, mask=rk[:, None] < k, other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        A += BK
        B += BK
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    x = acc.to(tl.float32) * tl.load(sa + rm, mask=rm < M, other=0)[:, None] * tl.load(sb + rn, mask=rn < N, other=0)[None, :]
    if HAS_BIAS:
        x += tl.load(bias + rn, mask=rn < N, other=0)[None, :].to(tl.float32)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], x.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def paged_attention(q_ptr, k_ptr, v_ptr, bt, lens, out, scale, stride_q0, stride_q1, bs0, bs1, bs2, max_blocks, H: tl.constexpr, KVH: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, QP: tl.constexpr):
    seq, kvh = (tl.program_id(0), tl.program_id(1))
    QPK: tl.constexpr = H // KVH
    hid = kvh * QPK + tl.arange(0, QP)
    hm = hid < (kvh + 1) * QPK
    d = tl.arange(0, DP)
    dm = d < D
    q = tl.load(q_ptr + seq * stride_q0 + hid[:, None] * stride_q1 + d[None, :], mask=hm[:, None] & dm[None, :], other=0.0)
    n = tl.load(lens + seq)
    M = tl.full([QP], float("-inf"), dtype=tl.float32)
    L = tl.full([QP], 1.0, dtype=tl.float32)
    acc = tl.zeros([QP, DP], dtype=tl.float32)
    nb = (n + BS - 1) // BS
    for j in range(0, nb):
        b = tl.load(bt + seq * max_blocks + j).to(tl.int64)
        t = tl.arange(0, BS)
        K = tl.load(k_ptr + b * bs0 + t[None, :] * bs1 + kvh * bs2 + d[:, None], mask=dm[:, None], other=0.0)
        V = tl.load(v_ptr + b * bs0 + t[:, None] * bs1 + kvh * bs2 + d[None, :], mask=dm[None, :], other=0.0)
        pos = j * BS + t
        m = (pos < n)[None, :]
        S = tl.where(hm[:, None] & m, 0.0, float("-inf")).to(tl.float32)
        S += scale * tl.dot(q, K)
        mj = tl.maximum(M, tl.max(S, axis=1))
        mj = tl.where(mj > float("-inf"), mj, 0.0)
        P = tl.exp(S - mj[:, None])
        lj = tl.sum(P, axis=1)
        alpha = tl.exp(M - mj)
        acc = acc * alpha[:, None]
        L = L * alpha + lj
        M = mj
        acc += tl.dot(P.to(V.dtype), V)
    acc = acc / L[:, None]
    tl.store(out + seq * stride_q0 + hid[:, None] * stride_q1 + d[None, :], acc, mask=hm[:, None] & dm[None, :])


@triton.heuristics({"BACKWARD_PASS": lambda args: bool(args["BACKWARD_PASS"])})
@triton.jit
def rotate(Q, q_row, cos, cos_row, sin, sin_row, seqlen, head_dim: tl.constexpr, n_heads: tl.constexpr, BACKWARD_PASS: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    row = tl.program_id(0)
    ghp = tl.program_id(1)
    col = tl.arange(0, BLOCK)
    half = head_dim // 2
    mask = col < half
    s = tl.load(sin + row % seqlen * sin_row + half * 0 + col, mask=mask, other=0)
    c = tl.load(cos + row % seqlen * cos_row + half * 0 + col, mask=mask, other=0)
    if BACKWARD_PASS:
        s = -s
    h0 = ghp * GROUP
    h1 = min(h0 + GROUP, n_heads)
    for k in range(h0, h1):
        o1 = row * q_row + k * head_dim + col
        o2 = row * q_row + k * head_dim + col + half
        q1 = tl.load(Q + o1, mask=mask, other=0).to(s.dtype)
        q2 = tl.load(Q + o2, mask=mask, other=0).to(s.dtype)
        tl.store(Q + o1, q1 * c - q2 * s, mask=mask)
        tl.store(Q + o2, q2 * c + q1 * s, mask=mask)


@triton.jit
def rms_forward(Y, X, W, R, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    m = col < n
    x = tl.load(X + row * n + col, mask=m, other=0).to(tl.float32)
    w = tl.load(W + col, mask=m, other=0)
    r = libdevice.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(R + row, r)
    y = (x * r).to(w.dtype)
    tl.store(Y + row * n + col, w * y, mask=m)


@triton.jit
def rms_backward(dY, dX, X, W, R, dW, n, rows, per, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    m = col < n
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    w = tl.load(W + col, mask=m, other=0.0).to(tl.float32)
    start = pid * per
    end = min((pid + 1) * per, rows)
    for i in range(start, end):
        dy = tl.load(dY + i * n + col, mask=m, other=0.0).to(tl.float32)
        x = tl.load(X + i * n + col, mask=m, other=0.0).to(tl.float32)
        r = tl.load(R + i)
        md = dy * w
        dx = r * md
        dx += r * (-(1 / n) * r * r * tl.sum(md * x, axis=0) * x)
        dw += dy * (x * r)
        tl.store(dX + i * n + col, dx.to(dX.dtype.element_ty), mask=m)
    tl.store(dW + pid * n + col, dw, mask=m)


@triton.jit
def cross_entropy(X, T, Lo, n, ignore, ls: tl.constexpr, softcap, BLOCK: tl.constexpr, CAP: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    y = tl.load(T + pid)
    X += pid * n
    if y == ignore:
        for i in range(0, n, BLOCK):
            o = i + tl.arange(0, BLOCK)
            tl.store(X + o, 0.0, mask=o < n)
        return
    m = float("-inf")
    d = 0.0
    ssum = 0.0
    ori = tl.load(X + y).cast(tl.float32)
    if CAP:
        ori = softcap * libdevice.tanh(ori / softcap)
    eps = ls / n
    for i in range(0, n, BLOCK):
        o = i + tl.arange(0, BLOCK)
        x = tl.load(X + o, mask=o < n, other=float("-inf")).cast(tl.float32)
        if CAP:
            x = softcap * libdevice.tanh(x / softcap)
        bm = tl.max(x)
        if ls > 0:
            ssum += tl.sum(tl.where(o < n, -eps * x, 0.0))
        mn = tl.maximum(m, bm)
        d = d * tl.exp(m - mn) + tl.sum(tl.exp(x - mn))
        m = mn
    lse = m + tl.log(d)
    for i in range(0, n, BLOCK):
        o = i + tl.arange(0, BLOCK)
        x = tl.load(X + o, mask=o < n, other=float("-inf")).cast(tl.float32)
        if CAP:
            inter = libdevice.tanh(x / softcap)
            x = softcap * inter
        g = tl.exp(x - m) / d - eps
        g = tl.where(o != y, g, g - (1 - ls))
        if CAP:
            g = g * (1 - inter * inter)
        tl.store(X + o, g, mask=o < n)
    tl.debug_barrier()
    loss = lse - ori
    if ls > 0:
        loss = loss * (1 - ls) + (ssum + ls * lse)
    tl.store(Lo + pid, loss)


@triton.jit
def joined_steps(a1, b1, a2, b2):
    return (a1 * a2, a2 * b1 + b2)


@triton.jit
def selective_scan(x, dt, A, B, C, D, out, L, N: tl.constexpr, CH: tl.constexpr):
    b, d = (tl.program_id(0), tl.program_id(1))
    nd = tl.num_programs(1)
    t = tl.arange(0, CH)
    s = tl.arange(0, N)
    a = tl.load(A + d * N + s)
    h = tl.zeros((N,), tl.float32)
    for c in range(0, tl.cdiv(L, CH)):
        tt = c * CH + t
        m = tt < L
        dd = tl.load(dt + (b * L + tt) * nd + d, mask=m, other=0.0)
        dd = tl.where(dd <= 20.0, tl.math.log(1 + tl.exp(dd)), dd)
        dd = tl.where(m, dd, 0.0)
        xx = tl.load(x + (b * L + tt) * nd + d, mask=m, other=0.0)
        BB = tl.load(B + (b * L + tt)[:, None] * N + s[None, :], mask=m[:, None], other=0.0)
        CC = tl.load(C + (b * L + tt)[:, None] * N + s[None, :], mask=m[:, None], other=0.0)
        dA = tl.exp(dd[:, None] * a[None, :])
        dB = dd[:, None] * BB * xx[:, None]
        P, S = tl.associative_scan((dA, dB), 0, joined_steps)
        H = P * h[None, :] + S
        y = tl.sum(H * CC, axis=1) + xx * tl.load(D + d)
        tl.store(out + (b * L + tt) * nd + d, y, mask=m)
        h = tl.sum(tl.where((t == CH - 1)[:, None], H, 0.0), axis=0)


@triton.jit
def fused_experts(a, b, c, tw, ids, eids, npost, N, K, EM, nvalid, sam, sak, sbe, sbk, sbn, scm, scn, MUL: tl.constexpr, top_k: tl.constexpr, ct: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    nm = tl.cdiv(EM, BM)
    nn = tl.cdiv(N, BN)
    nig = G * nn
    g = pid // nig
    fm = g * G
    gs = min(nm - fm, G)
    pm = fm + pid % nig % gs
    pn = pid % nig // gs
    np_ = tl.load(npost)
    if pm * BM >= np_:
        return
    oti = (pm * BM + tl.arange(0, BM)).to(tl.int64)
    ot = tl.load(ids + oti)
    tm = ot < nvalid
    e = tl.load(eids + pm).to(tl.int64)
    if e == -1:
        cn = pn * BN + tl.arange(0, BN)
        tl.store(c + scm * ot[:, None] + scn * cn[None, :], tl.zeros((BM, BN), dtype=ct), mask=tm[:, None] & (cn[None, :] < N))
        return
    bn = (pn * BN + tl.arange(0, BN).to(tl.int64)) % N
    k = tl.arange(0, BK)
    ap = a + (ot[:, None] // top_k * sam + k[None, :] * sak)
    bp = b + e * sbe + (k[:, None] * sbk + bn[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        av = tl.load(ap, mask=tm[:, None] & (k[None, :] < K - i * BK), other=0.0)
        bv = tl.load(bp, mask=k[:, None] < K - i * BK, other=0.0)
        acc += tl.dot(av, bv)
        ap += BK * sak
        bp += BK * sbk
    if MUL:
        acc = acc * tl.load(tw + ot, mask=tm, other=0)[:, None]
    cn = pn * BN + tl.arange(0, BN)
    tl.store(c + scm * ot[:, None] + scn * cn[None, :], acc.to(ct), mask=tm[:, None] & (cn[None, :] < N))


@triton.jit
def packed_top(x, vals, idx, n, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=float("-inf"))
    bits = v.to(tl.uint32, bitcast=True)
    key = bits ^ tl.where(bits >> 31 != 0, 4294967295, 2147483648).to(tl.uint32)
    packed = key.to(tl.uint64) << 32 | (BLOCK - 1 - c).to(tl.uint64)
    s = tl.topk(packed, K)
    k = (s >> 32).to(tl.uint32)
    b = k ^ tl.where(k >> 31 != 0, 2147483648, 4294967295).to(tl.uint32)
    o = tl.arange(0, K)
    tl.store(vals + row * K + o, b.to(tl.float32, bitcast=True))
    tl.store(idx + row * K + o, (BLOCK - 1 - (s & 4294967295)).to(tl.int32))


@triton.jit
def repeated_maxima(x, vals, idx, n, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + c, mask=c < n, other=float("-inf"))
    for k in tl.static_range(K):
        m, i = tl.max(v, axis=0, return_indices=True)
        tl.store(vals + row * K + k, m)
        tl.store(idx + row * K + k, i)
        v = tl.where(c == i, float("-inf"), v)


@triton.jit
def digits_counted(x, cnt, n, SHIFT: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + o, mask=m, other=0).to(tl.uint32, bitcast=True)
    d = (v >> SHIFT & (1 << BITS) - 1).to(tl.int32)
    h = tl.histogram(d, 1 << BITS, mask=m)
    tl.atomic_add(cnt + tl.arange(0, 1 << BITS), h, sem="relaxed")


@triton.jit
def digits_scattered(x, base, out, n, SHIFT: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + o, mask=m, other=0)
    d = (v.to(tl.uint32, bitcast=True) >> SHIFT & (1 << BITS) - 1).to(tl.int32)
    hot = ((d[:, None] == tl.arange(0, 1 << BITS)[None, :]) & m[:, None]).to(tl.int32)
    ex = tl.cumsum(hot, 0) - hot
    rank = tl.sum(tl.where(hot != 0, ex, 0), 1)
    start = tl.load(base + d, mask=m, other=0)
    tl.store(out + start + rank, v, mask=m)


@triton.jit
def split_k_product(a, b, c, lock, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SK: tl.constexpr):
    pid = tl.program_id(0)
    pk = tl.program_id(1)
    nn = tl.cdiv(N, BN)
    pm = pid // nn
    pn = pid % nn
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = pk * BK + tl.arange(0, BK)
    A = a + rm[:, None] * K + rk[None, :]
    B = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SK)):
        rem = K - k * BK * SK
        acc = tl.dot(tl.load(A, mask=(rm[:, None] < M) & (rk[None, :] < rem), other=0.0), tl.load(B, mask=(rk[:, None] < rem) & (rn[None, :] < N), other=0.0), acc)
        A += BK * SK
        B += BK * SK * N
    tl.atomic_add(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N), sem="relaxed")


@triton.jit
def locked_sums(x, out, lock, count, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < n
    v = tl.load(x + pid * n + c, mask=m, other=0.0)
    g = pid % 2
    while tl.atomic_cas(lock + g, 0, 1) == 1:
        pass
    k = tl.load(count + g)
    if k == 0:
        tl.atomic_xchg(count + g, 1)
    else:
        v += tl.load(out + g * n + c, mask=m, other=0.0)
    tl.store(out + g * n + c, v, mask=m)
    tl.debug_barrier()
    tl.atomic_xchg(lock + g, 0)


@triton.jit
def nf4_by_loads(q, absmax, code, out, n, BLOCK: tl.constexpr, QB: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n // 2
    p = tl.load(q + o, mask=m, other=0)
    hi = tl.load(code + (p >> 4).to(tl.int32))
    lo = tl.load(code + (p & 15).to(tl.int32))
    s = tl.load(absmax + o * 2 // QB, mask=m, other=0.0)
    r = tl.interleave(hi * s, lo * s)
    oo = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    tl.store(out + oo, r.to(out.dtype.element_ty), mask=oo < n)


@triton.jit
def nf4_by_gather(q, absmax, code, out, n, BLOCK: tl.constexpr, QB: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n // 2
    p = tl.load(q + o, mask=m, other=0).to(tl.int32)
    table = tl.load(code + tl.arange(0, 16))
    hi = tl.gather(table, p >> 4, 0)
    lo = tl.gather(table, p & 15, 0)
    s = tl.load(absmax + o * 2 // QB, mask=m, other=0.0)
    r = tl.join(hi * s, lo * s).reshape(BLOCK * 2)
    oo = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    tl.store(out + oo, r.to(out.dtype.element_ty), mask=oo < n)


@triton.jit
def quantised_blocks(x, y, s, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    o = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o).to(tl.float32)
    sc = tl.max(tl.abs(v)) / 448.0
    tl.store(y + o, (v / sc).to(y.dtype.element_ty))
    tl.store(s + pid, sc)


@triton.jit
def scaled_fp8_product(a, b, c, sa, sb, M, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = (tl.program_id(0), tl.program_id(1))
    k = tl.cdiv(K, BK)
    om = (pm * BM + tl.arange(0, BM)) % M
    on = (pn * BN + tl.arange(0, BN)) % N
    ok = tl.arange(0, BK)
    A = a + om[:, None] * K + ok[None, :]
    B = b + on[None, :] * K + ok[:, None]
    SA = sa + om * k
    SB = sb + on // BK * k
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(k):
        x = tl.load(A, mask=ok[None, :] < K - i * BK, other=0.0)
        y = tl.load(B, mask=ok[:, None] < K - i * BK, other=0.0)
        acc += tl.dot(x, y) * tl.load(SA)[:, None] * tl.load(SB)[None, :]
        A += BK
        B += BK
        SA += 1
        SB += 1
    om = pm * BM + tl.arange(0, BM)
    on = pn * BN + tl.arange(0, BN)
    tl.store(c + om[:, None] * N + on[None, :], acc.to(c.dtype.element_ty), mask=(om[:, None] < M) & (on[None, :] < N))


@triton.jit
def joined_moments(m1, v1, w1, m2, v2, w2):
    d = m2 - m1
    w = w1 + w2
    r = tl.where(w == 0.0, 0.0, w2 / w)
    return (m1 + d * r, v1 + v2 + d * d * w1 * r, w)


@triton.jit
def group_norm(x, y, mean, rstd, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = tl.zeros((BLOCK,), tl.float32)
    v = tl.zeros((BLOCK,), tl.float32)
    w = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, n, BLOCK):
        c = i + tl.arange(0, BLOCK)
        k = c < n
        e = tl.load(x + row * n + c, mask=k, other=0.0)
        d = e - m
        nw = w + 1
        nm = m + d / nw
        nv = v + d * (e - nm)
        m = tl.where(k, nm, m)
        v = tl.where(k, nv, v)
        w = tl.where(k, nw, w)
    M, V, W = tl.reduce((m, v, w), 0, joined_moments)
    r = tl.rsqrt(V / W + eps)
    tl.store(mean + row, M)
    tl.store(rstd + row, r)
    for i in range(0, n, BLOCK):
        c = i + tl.arange(0, BLOCK)
        k = c < n
        tl.store(y + row * n + c, (tl.load(x + row * n + c, mask=k, other=0.0) - M) * r, mask=k)


@triton.jit
def window_attention(Q, K, V, O, LSE, cu, scale, stride, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WINDOW: tl.constexpr):
    st = tl.program_id(0)
    h = tl.program_id(1)
    s = tl.program_id(2)
    b = tl.load(cu + s)
    e = tl.load(cu + s + 1)
    n = e - b
    if st * BM > n:
        return
    om = st * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + (b + om)[:, None] * stride + h * D + d[None, :], mask=om[:, None] < n, other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    lo = tl.maximum(0, (st * BM - WINDOW) // BN * BN)
    hi = tl.minimum((st + 1) * BM, n)
    for j in tl.range(lo, hi, BN):
        j = tl.multiple_of(j, BN)
        on = j + tl.arange(0, BN)
        k = tl.load(K + (b + on)[None, :] * stride + h * D + d[:, None], mask=on[None, :] < n, other=0.0)
        qk = tl.dot(q, k) * (scale * 1.44269504)
        ok = (om[:, None] >= on[None, :]) & (on[None, :] < n) & (om[:, None] - on[None, :] <= WINDOW)
        qk = tl.where(ok, qk, float("-inf"))
        mn = tl.maximum(m, tl.max(qk, 1))
        ms = tl.where(mn == float("-inf"), 0.0, mn)
        p = tl.exp2(qk - ms[:, None])
        al = tl.exp2(m - ms)
        l = l * al + tl.sum(p, 1)
        acc = acc * al[:, None]
        v = tl.load(V + (b + on)[:, None] * stride + h * D + d[None, :], mask=on[:, None] < n, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m = mn
    l = tl.where(l == 0.0, 1.0, l)
    tl.store(O + (b + om)[:, None] * stride + h * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=om[:, None] < n)
    tl.store(LSE + (b + om) * H + h, m + tl.log2(l), mask=om < n)
