"""Kernels in Triton's words, one for each part of the language that Girih reads differently."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask) + tl.load(y + i, mask), mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    line = tl.load(x + row * columns + i, mask, other=-float("inf"))
    e = tl.exp(line - tl.max(line, axis=0))
    tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask)


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * k + inner[None, :]
    right = b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        x = tl.load(left, (rows[:, None] < m) & (inner[None, :] + at < k), other=0.0)
        y = tl.load(right, (inner[:, None] + at < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * n
    where = c + rows[:, None] * n + columns[None, :]
    tl.store(where, total, (rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def pieces(src, out, n, BLOCK: tl.constexpr):
    """The mean, the mean square and the greatest number of a row, which is read in pieces."""
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    most = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(src + row * n + at, mask=at < n, other=0.0)
        total += x
        squares += x * x
        most = tl.maximum(most, tl.where(at < n, x, float("-inf")))
    tl.store(out + row * 3, tl.sum(total, axis=0) / n)
    tl.store(out + row * 3 + 1, tl.sum(squares, axis=0) / n)
    tl.store(out + row * 3 + 2, tl.max(most, axis=0))


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    line = tl.load(x + row * columns + i, mask, other=0.0).to(tl.float32)
    mean = tl.sum(line, axis=0) / columns
    centred = tl.where(mask, line - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(weight + i, mask)
    b = tl.load(bias + i, mask)
    tl.store(out + row * columns + i, centred * scale * w + b, mask)


@triton.jit
def early(x, out, n):
    i = tl.program_id(0)
    if i >= n:
        return
    v = tl.load(x + i)
    if v < 0:
        tl.store(out + i, -1.0)
        return
    if v > 10:
        v = v * 2
    else:
        v = v + 1
    tl.store(out + i, v)


@triton.jit
def collatz(x, out):
    i = tl.program_id(0)
    n = tl.load(x + i)
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out + i, steps)


@triton.jit
def _first_negative(a, b):
    return tl.where(a < 0, a, b)


@triton.jit
def _affine(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def folds(x, a, b, index, first, ra, rb, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(index, tl.argmax(v, axis=0))
    tl.store(index + 1, tl.argmin(v, axis=0))
    tl.store(first, tl.reduce(v, 0, _first_negative))
    sa, sb = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, _affine)
    tl.store(ra + i, sa)
    tl.store(rb + i, sb)


@triton.jit
def atomics(x, counts, total, lock, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i)
    tl.atomic_add(counts + v, 1)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + tl.sum(v, axis=0))
    tl.atomic_xchg(lock, 0)


@triton.jit
def moves(x, index, out, pairs, bins, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.gather(v, tl.load(index + i), 0))
    p = tl.interleave(v, v + 1)
    tl.store(pairs + tl.arange(0, 2 * N), p)
    even, odd = tl.split(tl.reshape(p, (N, 2)))
    tl.store(out + N + i, odd - even)
    tl.store(bins + tl.arange(0, 16), tl.histogram(v & 15, 16))


@triton.jit(noinline=True)
def _twice(x, k):
    return x * k


@triton.jit
def called(x, out):
    i = tl.program_id(0)
    v = tl.load(x + i)
    tl.store(out + i, _twice(v, 3) + _twice(v, 4))


@triton.jit
def functions(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.erf(v))
    tl.store(out + N + i, libdevice.tanh(v))
    tl.store(out + 2 * N + i, libdevice.rint(v))
    tl.store(out + 3 * N + i, libdevice.asin(v / 8))
    tl.store(out + 4 * N + i, tl.clamp(v, -1.0, 1.0))
    tl.store(out + 5 * N + i, libdevice.copysign(v, -v))


@triton.jit
def precisions(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    tl.store(out + at, tl.dot(x, y, input_precision="ieee"))
    tl.store(out + N * N + at, tl.dot(x, y, input_precision="tf32"))
    tl.store(out + 2 * N * N + at, tl.dot(x, y, input_precision="tf32x3"))
    tl.store(out + 3 * N * N + at, tl.dot(x, y, input_precision="bf16x3"))
    tl.store(out + 4 * N * N + at, tl.dot(x, y, input_precision="bf16x6"))


@triton.jit(debug=True)
def messages(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.device_print("v", v)
    tl.device_print("scalar", tl.load(x))
    square = tl.reshape(v, (2, N // 2))
    tl.device_print("", square, tl.full((2, N // 2), 1.5, tl.float32))
    tl.device_print("hex", v, hex=True)
    tl.device_print("done")
    tl.device_assert(v < 1000, "too large")


@triton.jit
def _sign(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1


@triton.jit
def _steps(n):
    steps = n * 0
    if n > 0:
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
    return steps


@triton.jit
def _in_order(a, b):
    if a > b:
        return b, a, a + b, a + b
    return a, b, b + a, b + a


@triton.jit
def elements(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    u, v = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.map_elementwise(_sign, u, v))
    tl.store(out + N + i, tl.map_elementwise(_steps, u))
    low_or_high, sums = tl.map_elementwise(_in_order, u, pack=2)
    tl.store(out + 2 * N + i, low_or_high)
    tl.store(out + 3 * N + i, sums)


@triton.jit
def _checked_sum(a, b):
    wide = a.to(tl.int64) + b.to(tl.int64)
    tl.device_assert(wide < 1 << 31, "too large")
    return a + b


@triton.jit
def _last_even(kept, v):
    if v % 2 == 0:
        kept = v
    return kept


@triton.jit(debug=True)
def checked_folds(x, sums, scans, last, REVERSE: tl.constexpr):
    at = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    v = tl.load(x + at)
    tl.store(sums + tl.arange(0, 8), tl.reduce(v, 0, _checked_sum))
    tl.store(scans + at, tl.associative_scan(v, 1, _checked_sum, reverse=REVERSE))
    tl.store(last + tl.arange(0, 4), tl.reduce(v, 1, _last_even))


@triton.jit(noinline=True)
def _grade(v):
    if v < 0:
        return -1
    if v < 3:
        return v * 10
    return v + 100


@triton.jit
def graded(x, out):
    i = tl.program_id(0)
    tl.store(out + i, _grade(tl.load(x + i)))


@triton.jit
def half_sums(x, out, running, DTYPE: tl.constexpr):
    i = tl.arange(0, 1024)
    v = tl.load(x + i).to(DTYPE)
    tl.store(out, tl.sum(v).to(tl.float32))
    tl.store(running + i, tl.cumsum(v, 0).to(tl.float32))


@triton.jit
def swapped(x, n, N: tl.constexpr):
    i = tl.minimum(tl.arange(0, N), n - 1)
    zero = tl.zeros((N,), dtype=x.dtype.element_ty)
    tl.atomic_cas(x + i, zero, zero + 2)


@triton.jit
def polled(flag, out, limit):
    found = tl.atomic_poll(flag, 1, timeout_ns=limit)
    tl.store(out, found.to(tl.int32))


@triton.jit
def doubles(out, value: tl.float64):
    tl.store(out, value.to(tl.float64))


@triton.jit
def singles(out, value: tl.float32):
    tl.store(out, value.to(tl.float64))


@triton.jit
def halves(out, value: tl.float16):
    tl.store(out, value.to(tl.float64))


@triton.jit
def brains(out, value: tl.bfloat16):
    tl.store(out, value.to(tl.float64))


# The kernels with what Triton specialises them for: types, constants, and what 16 divides.
SIGNATURES = {
    add: ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 256}),
    softmax: ({"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"BLOCK": 128}),
    matmul: ({"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32"}, {"BM": 32, "BN": 32, "BK": 16}),
    layer_norm: ({"x": "*bf16", "weight": "*fp32", "bias": "*fp32", "out": "*bf16", "columns": "i32", "eps": "fp32"}, {"BLOCK": 128}),
    early: ({"x": "*fp32", "out": "*fp32", "n": "i32"}, {}),
    collatz: ({"x": "*i64", "out": "*i32"}, {}),
    folds: ({"x": "*fp32", "a": "*fp32", "b": "*fp32", "index": "*i32", "first": "*fp32", "ra": "*fp32", "rb": "*fp32"}, {"N": 64}),
    atomics: ({"x": "*i32", "counts": "*i32", "total": "*i32", "lock": "*i32"}, {"N": 64}),
    moves: ({"x": "*i32", "index": "*i32", "out": "*i32", "pairs": "*i32", "bins": "*i32"}, {"N": 64}),
    called: ({"x": "*fp32", "out": "*fp32"}, {}),
    functions: ({"x": "*fp32", "out": "*fp32"}, {"N": 64}),
    precisions: ({"a": "*fp32", "b": "*fp32", "out": "*fp32"}, {"N": 32}),
    messages: ({"x": "*i32"}, {"N": 4}),
    elements: ({"x": "*i32", "y": "*i32", "out": "*i32"}, {"N": 64}),
    checked_folds: ({"x": "*i32", "sums": "*i32", "scans": "*i32", "last": "*i32"}, {"REVERSE": True}),
    graded: ({"x": "*i32", "out": "*i32"}, {}),
    polled: ({"flag": "*i32", "out": "*i32", "limit": "i32"}, {}),
}  # fmt: skip


@triton.jit
def counted(x, out, n, N: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + i), BINS, mask=i < n))


@triton.jit
def chosen(x, places, out, N: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, M)
    tl.store(out + i, tl.gather(tl.load(x + tl.arange(0, N)), tl.load(places + i), 0))


@triton.jit
def tile_by_tile(a, b, c, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr = True):  # fmt: skip
    """`c = a @ b.T`, by programs that each take tile after tile; where they are not even, every second tile has half of the terms."""
    rows = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    columns = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    to = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    wide = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * wide, PROGRAMS):
        m, n = tile // wide * BM, tile % wide * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K if EVEN else K // (tile % 2 + 1), BK):
            total = tl.dot(rows.load([m, k]), columns.load([n, k]).T, total)
        to.store([m, n], total.to(c.dtype.element_ty))


@triton.jit
def strided_attention(
    Q, K, V, out, scale, q_head, q_row, k_head, k_row, v_head, v_row, o_head, o_row, tokens,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Heads and rows lie as far apart as the launch says; the last rows and keys are masked off."""
    start, head = tl.program_id(0), tl.program_id(1)
    rows, d = start * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + head * q_head + rows[:, None] * q_row + d[None, :], mask=rows[:, None] < tokens, other=0.0)
    most, total = tl.full([BM], float("-inf"), tl.float32), tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for first in range(0, (start + 1) * BM if CAUSAL else tokens, BN):
        keys = first + tl.arange(0, BN)
        k = tl.load(K + head * k_head + keys[None, :] * k_row + d[:, None], mask=keys[None, :] < tokens, other=0.0)
        seen = keys[None, :] < tokens
        if CAUSAL:
            seen = seen & (rows[:, None] >= keys[None, :])
        scores = tl.where(seen, tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        p, kept = tl.exp(scores - new[:, None]), tl.exp(most - new)
        total, acc, most = total * kept + tl.sum(p, 1), acc * kept[:, None], new
        v = tl.load(V + head * v_head + keys[:, None] * v_row + d[None, :], mask=keys[:, None] < tokens, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
    to = out + head * o_head + rows[:, None] * o_row + d[None, :]
    tl.store(to, (acc / total[:, None]).to(out.dtype.element_ty), mask=rows[:, None] < tokens)
