"""The kernels that Triton's tutorials teach, written anew: each shows one way of dividing work that programs use."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def rows_softmax(src, dst, src_stride, dst_stride, rows, columns, BLOCK: tl.constexpr):
    """Each program takes a row, and then the row that is the number of programs further, until none is left."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        x = tl.load(src + row * src_stride + at, mask=inside, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(dst + row * dst_stride + at, e / tl.sum(e, axis=0), mask=inside)


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def tile_of(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """The place of a tile where groups of rows of tiles come one after the other, so that they share columns in L2."""
    per_group = GROUP * tiles_n
    first = (tile // per_group) * GROUP
    height = min(tiles_m - first, GROUP)
    return first + (tile % per_group) % height, (tile % per_group) // height


@triton.jit
def grouped_matmul(
    a, b, c, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    m, n = tile_of(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    tl.assume(m >= 0)
    tl.assume(n >= 0)
    tl.assume(stride_am > 0)
    # What is outside wraps around: it is read, and not written.
    rows = (m * BM + tl.arange(0, BM)) % M
    columns = (n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    left = a + (rows[:, None] * stride_am + k[None, :] * stride_ak)
    right = b + (k[:, None] * stride_bk + columns[None, :] * stride_bn)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK * stride_ak
        right += BK * stride_bk
    if ACTIVATION == "leaky":
        total = leaky(total)
    rows = m * BM + tl.arange(0, BM)
    columns = n * BN + tl.arange(0, BN)
    where = c + stride_cm * rows[:, None] + stride_cn * columns[None, :]
    tl.store(where, total.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def seeded_dropout(src, dst, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(src + at, mask=at < n)
    keep = tl.rand(seed, at) > p
    tl.store(dst + at, tl.where(keep, x / (1 - p), 0.0), mask=at < n)


@triton.jit
def norm_forward(src, dst, weight, bias, mean, rstd, stride, columns, eps, BLOCK: tl.constexpr):
    """The row does not fit a block: two passes for the statistics, one for the result."""
    row = tl.program_id(0)
    src += row * stride
    dst += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(src + at, mask=at < columns, other=0.0).to(tl.float32)
    m = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(src + at, mask=at < columns, other=0.0).to(tl.float32)
        x = tl.where(at < columns, x - m, 0.0)
        squares += x * x
    r = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(src + at, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + at, mask=inside)
        b = tl.load(bias + at, mask=inside)
        tl.store(dst + at, (x - m) * r * w + b, mask=inside)


@triton.jit
def norm_backward_rows(
    dx, dy, dw, db, x, weight, mean, rstd, lock, stride, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    """A row's gradient, and its part of the weights': rows of a group add to one buffer, one at a time, under a lock."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    group = row % GROUPS
    lock += group
    count = lock + GROUPS
    dw += group * columns + at
    db += group * columns + at
    v = tl.load(x + row * stride + at, mask=inside, other=0).to(tl.float32)
    g = tl.load(dy + row * stride + at, mask=inside, other=0).to(tl.float32)
    w = tl.load(weight + at, mask=inside).to(tl.float32)
    r = tl.load(rstd + row)
    hat = tl.where(inside, (v - tl.load(mean + row)) * r, 0.0)
    wg = tl.where(inside, w * g, 0.0)
    c1 = tl.sum(hat * wg, axis=0) / columns
    c2 = tl.sum(wg, axis=0) / columns
    tl.store(dx + row * stride + at, (wg - (hat * c1 + c2)) * r, mask=inside)
    part_w = (g * hat).to(w.dtype)
    part_b = g.to(w.dtype)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        part_w += tl.load(dw, mask=inside)
        part_b += tl.load(db, mask=inside)
    tl.store(dw, part_w, mask=inside)
    tl.store(db, part_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def norm_backward_weights(dw, db, final_dw, final_db, M, N, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    sum_w = tl.zeros((BM, BN), dtype=tl.float32)
    sum_b = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, M, BM):
        rows = start + tl.arange(0, BM)
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        at = rows[:, None] * N + columns[None, :]
        sum_w += tl.load(dw + at, mask=inside, other=0.0)
        sum_b += tl.load(db + at, mask=inside, other=0.0)
    tl.store(final_dw + columns, tl.sum(sum_w, axis=0), mask=columns < N)
    tl.store(final_db + columns, tl.sum(sum_b, axis=0), mask=columns < N)


@triton.jit
def _attend(acc, l, m, q, keys, values, start, low, high, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    rows = start * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    for first in range(low, high, BN):
        first = tl.multiple_of(first, BN)
        columns = first + tl.arange(0, BN)
        k = tl.load(keys + columns[None, :] * D + d[:, None])
        s = tl.dot(q, k) * scale
        if MASKED:
            s += tl.where(rows[:, None] >= columns[None, :], 0, -1.0e6)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        kept = tl.math.exp2(m - new)
        l = l * kept + tl.sum(p, 1)
        v = tl.load(values + columns[:, None] * D + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * kept[:, None])
        m = new
    return acc, l, m


@triton.jit
def attention(Q, K, V, out, lse, scale, tokens, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Keys before the block's own without a mask, those within it with one."""
    start = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * tokens * D
    rows = start * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + base + rows[:, None] * D + d[None, :])
    m = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l = tl.zeros([BM], dtype=tl.float32) + 1.0
    # 1 / ln 2: powers of two are taken.
    l = l - 1.0
    scale *= 1.4426950408889634
    acc = tl.zeros([BM, D], dtype=tl.float32)
    if CAUSAL:
        acc, l, m = _attend(acc, l, m, q, K + base, V + base, start, 0, start * BM, scale, D, BM, BN, False)
        acc, l, m = _attend(acc, l, m, q, K + base, V + base, start, start * BM, (start + 1) * BM, scale, D, BM, BN, True)
    else:
        acc, l, m = _attend(acc, l, m, q, K + base, V + base, start, 0, tokens, scale, D, BM, BN, False)
    tl.store(lse + tl.program_id(1) * tokens + rows, m + tl.math.log2(l))
    tl.store(out + base + rows[:, None] * D + d[None, :], (acc / l[:, None]).to(out.dtype.element_ty))


@triton.jit
def attention_before_backward(out, dout, delta, D: tl.constexpr, BM: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    products = tl.load(out + at).to(tl.float32) * tl.load(dout + at).to(tl.float32)
    tl.store(delta + rows, tl.sum(products, axis=1))


@triton.jit
def attention_backward(
    Q, K, V, dout, dQ, dK, dV, lse, delta, scale, tokens, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """A block of keys meets the queries after it; then the same block as queries meets the keys before it."""
    head = tl.program_id(1)
    base = head.to(tl.int64) * tokens * D
    own = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    tile = base + own[:, None] * D + d[None, :]
    k, v = tl.load(K + tile), tl.load(V + tile)
    dk = tl.zeros([BN, D], dtype=tl.float32)
    dv = tl.zeros([BN, D], dtype=tl.float32)
    log2e: tl.constexpr = 1.4426950408889634
    for first in range(tl.program_id(0) * BN, tokens, BM):
        rows = first + tl.arange(0, BM)
        at = base + rows[:, None] * D + d[None, :]
        q, do = tl.load(Q + at), tl.load(dout + at)
        pt = tl.math.exp2(tl.dot(k, tl.trans(q)) * (scale * log2e) - tl.load(lse + head * tokens + rows)[None, :])
        pt = tl.where(rows[None, :] >= own[:, None], pt, 0.0)
        dv += tl.dot(pt.to(do.dtype), do)
        dpt = tl.dot(v, tl.trans(do)).to(tl.float32)
        dst = pt * (dpt - tl.load(delta + head * tokens + rows)[None, :])
        dk += tl.dot(dst.to(q.dtype), q)
    tl.store(dV + tile, dv)
    tl.store(dK + tile, dk * scale)
    q, do = tl.load(Q + tile), tl.load(dout + tile)
    m = tl.load(lse + head * tokens + own)[:, None]
    part = tl.load(delta + head * tokens + own)[:, None]
    dq = tl.zeros([BN, D], dtype=tl.float32)
    for first in range(0, (tl.program_id(0) + 1) * BN, BM):
        columns = first + tl.arange(0, BM)
        at = base + columns[:, None] * D + d[None, :]
        keys, values = tl.load(K + at), tl.load(V + at)
        p = tl.math.exp2(tl.dot(q, tl.trans(keys)) * (scale * log2e) - m)
        p = tl.where(own[:, None] >= columns[None, :], p, 0.0)
        ds = p * (tl.dot(do, tl.trans(values)).to(tl.float32) - part)
        dq += tl.dot(ds.to(keys.dtype), keys)
    tl.store(dQ + tile, dq * scale)


@triton.jit
def group_gemm(addresses_a, addresses_b, addresses_c, sizes, leads, count, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Products of several shapes in one launch: the tiles of all are numbered, and dealt to the programs in turn."""
    tile = tl.program_id(0)
    before = 0
    for g in range(count):
        M, N, K = tl.load(sizes + g * 3), tl.load(sizes + g * 3 + 1), tl.load(sizes + g * 3 + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        while tile >= before and tile < before + tiles:
            lda, ldb, ldc = tl.load(leads + g * 3), tl.load(leads + g * 3 + 1), tl.load(leads + g * 3 + 2)
            a = tl.load(addresses_a + g).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses_b + g).to(tl.pointer_type(tl.float16))
            c = tl.load(addresses_c + g).to(tl.pointer_type(tl.float16))
            rows = (tile - before) // across * BM + tl.arange(0, BM)
            columns = (tile - before) % across * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            left = a + rows[:, None] * lda + k[None, :]
            right = b + k[:, None] * ldb + columns[None, :]
            total = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(0, tl.cdiv(K, BK)):
                tl.multiple_of(left, [16, 16])
                total += tl.dot(tl.load(left), tl.load(right))
                left += BK
                right += BK * ldb
            tl.store(c + rows[:, None] * ldc + columns[None, :], total.to(tl.float16))
            tile += PROGRAMS
        before += tiles


@triton.jit
def persistent_matmul(a, b, c, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """As many programs as processors, through tensor descriptors: `c = a @ b.T`, and each tile is written in two halves."""
    from_a = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    from_b = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    to = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2])
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        m, n = tile_of(tile, tiles_m, tiles_n, GROUP)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x = from_a.load([m * BM, step * BK])
            y = from_b.load([n * BN, step * BK])
            total = tl.dot(x, y.T, total)
        halves = tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1))
        first, second = tl.split(halves)
        to.store([m * BM, n * BN], first.to(c.dtype.element_ty))
        to.store([m * BM, n * BN + BN // 2], second.to(c.dtype.element_ty))


@triton.jit
def block_scaled_matmul(a, a_scale, b, b_scale, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PACK: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """8-bit floats, or pairs of 4-bit ones in bytes; a power of two for each 32 of them along k. `b` is N x K."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK // PACK)
    s = tl.arange(0, BK // 32)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + rows[:, None] * (K // PACK) + start // PACK + k[None, :])
        y = tl.load(b + columns[:, None] * (K // PACK) + start // PACK + k[None, :])
        xs = tl.load(a_scale + rows[:, None] * (K // 32) + start // 32 + s[None, :])
        ys = tl.load(b_scale + columns[:, None] * (K // 32) + start // 32 + s[None, :])
        total = tl.dot_scaled(x, xs, KIND, y.T, ys, KIND, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)
