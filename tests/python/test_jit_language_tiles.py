"""Shapes, order, reductions, scans and products of tiles against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import girih
import girih.language as tl

DEVICES = ["cpu", "eval"]
TYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16,
    ml_dtypes.bfloat16, np.float32, np.float64,
]  # fmt: skip
NUMBERS = TYPES[1:]


def name(value):
    return getattr(value, "__name__", None) or str(value)


def values(dtype, shape, seed=0):
    """Small whole numbers, which every type holds, so that sums and products are exact."""
    low = 0 if np.dtype(dtype).kind in "bu" else -4
    return np.random.default_rng(seed).integers(low, 2 if dtype == np.bool_ else 5, shape).astype(dtype)


@girih.jit
def through(x, out, F: tl.constexpr, SHAPE: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    """One tile of a shape, the function's result in row-major order."""
    y = F(tl.reshape(tl.load(x + tl.arange(0, N)), SHAPE))
    tl.static_assert(y.dtype == out.dtype.element_ty, y.dtype)
    tl.store(out + tl.arange(0, M), tl.ravel(y))


def apply(function, x, out, device):
    through[1](x, out, girih.jit(function), x.shape, x.size, out.size, device=device)
    return out


def transposed(x):
    return tl.trans(x)


def permuted(x):
    return tl.permute(x, (2, 0, 1))


def turned(x):
    return tl.trans(x, 1, 2, 0)


def viewed(x):
    return tl.view(x, (4, 16))


def widened(x):
    return tl.broadcast_to(tl.expand_dims(x, 1), (4, 2, 8, 2))


def flipped(x):
    return tl.flip(x)


def flipped_first(x):
    return tl.flip(x, 0)


def swapped(x):
    a, b = tl.split(x)
    return tl.join(b, a)


def doubled(x):
    return tl.cat(x, x, 1)


def interleaved(x):
    return tl.interleave(x, tl.zeros_like(x))


def squeezed(x):
    return tl.squeeze(tl.unsqueeze(x, -1), 3) + tl.full_like(x, 0)


SHAPES = [
    (transposed, lambda x: x.swapaxes(1, 2)), (permuted, lambda x: x.transpose(2, 0, 1)), (turned, lambda x: x.transpose(1, 2, 0)),
    (viewed, lambda x: x), (widened, lambda x: np.broadcast_to(x[:, None], (4, 2, 8, 2))), (flipped, lambda x: x[..., ::-1]),
    (flipped_first, lambda x: x[::-1]), (swapped, lambda x: x[..., ::-1]), (doubled, lambda x: np.concatenate([x, x], 1)),
    (interleaved, lambda x: np.stack([x, np.zeros_like(x)], -1)), (squeezed, lambda x: x),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float16, np.float32, np.int64], ids=name)
@pytest.mark.parametrize("case", SHAPES, ids=lambda c: c[0].__name__)
def test_shapes(case, dtype, device):
    x = np.arange(64).astype(dtype).reshape(4, 8, 2)
    expected = case[1](x)
    out = apply(case[0], x, np.zeros(expected.size, dtype), device)
    assert np.array_equal(out, expected.ravel())


@girih.jit
def pieces(x, y, out):
    i = tl.arange(0, 4)
    a, b = tl.broadcast(tl.load(x + i)[:, None], tl.load(y + i)[None, :])
    at = out + 4 * i[:, None] + i
    tl.store(at, a - b)
    tl.store(at + 16, tl.full((4, 4), 3, tl.int32) + tl.zeros((4, 4), tl.int8))
    p, q = tl.swizzle2d(i // 2, i % 2, 2, 2, 2)
    tl.store(out + 32 + i, p * 2 + q)
    tl.store(out + 36 + i, tl.multiple_of(i, 4) + tl.max_contiguous(i, 4) + tl.max_constancy(i, 1))
    tl.store(out + 40 + tl.arange(0, 2), tl.join(tl.load(x + 1), tl.load(y + 2)))


@pytest.mark.parametrize("device", DEVICES)
def test_pieces(device):
    x, y, out = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.int32) * 10, np.zeros(48, np.int32)
    pieces[1](x, y, out, device=device)
    assert np.array_equal(out[:16].reshape(4, 4), x[:, None] - y)
    assert np.all(out[16:32] == 3) and out[32:36].tolist() == [0, 2, 1, 3]
    assert out[36:40].tolist() == [0, 3, 6, 9] and out[40:42].tolist() == [1, 20]


# ---- reductions and scans


def wide(dtype):
    """The type of a sum: at least 32 bits; float16 stays."""
    if dtype in (np.int8, np.int16, np.bool_):
        return np.int32
    return {np.uint8: np.uint32, np.uint16: np.uint32, ml_dtypes.bfloat16: np.float32}.get(dtype, dtype)


def total(x):
    return tl.sum(x, 1)


def whole(x):
    return tl.sum(x)


def product(x):
    return tl.prod(x, 0)


def running(x):
    return tl.cumsum(x, 2)


def running_back(x):
    return tl.cumsum(x, 0, reverse=True)


def running_product(x):
    return tl.cumprod(x, 1)


SUMS = [
    (total, lambda x: x.sum(1)), (whole, lambda x: x.sum()), (product, lambda x: x.prod(0)), (running, lambda x: x.cumsum(2)),
    (running_back, lambda x: x[::-1].cumsum(0)[::-1]), (running_product, lambda x: x.cumprod(1)),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TYPES, ids=name)
@pytest.mark.parametrize("case", SUMS, ids=lambda c: c[0].__name__)
def test_sums(case, dtype, device):
    x = values(dtype, (2, 4, 8))
    if "product" in case[0].__name__:
        x = np.where(np.arange(64).reshape(x.shape) % 5 == 0, x, np.ones(1, dtype)).astype(dtype)
    expected = case[1](x.astype(np.float64))
    assert np.array_equal(apply(case[0], x, np.zeros(expected.size, wide(dtype)), device), expected.ravel())


def greatest(x):
    return tl.max(x, 1)


def least(x):
    return tl.min(x, -1, keep_dims=True)


def where_greatest(x):
    return tl.argmax(x, 1)


def where_least(x):
    return tl.argmin(x, 0)


def both(x):
    best, at = tl.max(x, 2, return_indices=True)
    return at


EXTREMES = [
    (greatest, lambda x: x.max(1)), (least, lambda x: x.min(-1)), (where_greatest, lambda x: x.argmax(1)),
    (where_least, lambda x: x.argmin(0)), (both, lambda x: x.argmax(2)),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
@pytest.mark.parametrize("case", EXTREMES, ids=lambda c: c[0].__name__)
def test_extremes(case, dtype, device):
    x = values(dtype, (2, 4, 8), 7)
    x.ravel()[3:5] = [2, 3]
    expected = case[1](x.astype(np.float64))
    kind = np.int32 if "where" in case[0].__name__ or case[0] is both else wide(dtype) if dtype != np.float16 else np.float32
    assert np.array_equal(apply(case[0], x, np.zeros(expected.size, kind), device), expected.ravel())


@girih.jit
def positions(x, out):
    row = tl.arange(0, 8)[:, None]
    t = tl.load(x + 8 * row + tl.arange(0, 8))
    i = tl.arange(0, 8)
    tl.store(out + i, tl.argmax(t, 1))
    tl.store(out + 8 + i, tl.argmin(t, 1))
    tl.store(out + 16, tl.reduce_max(tl.where(t == t, t, 0.0)).to(tl.int32))
    tl.store(out + 17, tl.reduce_sum(tl.where(t == t, 1, 0)))


@pytest.mark.parametrize("device", DEVICES)
def test_a_nan_is_never_the_extreme(device):
    x = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
    x[0, 0] = x[1, 7] = x[2, 3] = np.nan
    x[3, :] = np.nan
    x[4, :] = -np.inf
    x[5, 2:] = np.nan
    x[6, 1] = 9
    out = np.zeros(24, np.int32)
    positions[1](x, out, device=device)
    assert out[:8].tolist() == np.where(np.isnan(x), -np.inf, x).argmax(1).tolist()
    assert out[8:16].tolist() == np.where(np.isnan(x), np.inf, x).argmin(1).tolist()
    assert out[16] == 9 and out[17] == 64 - 3 - 8 - 6


@girih.jit
def folded(x, out, n, B: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    tl.store(out, tl.sum(tl.load(x + i, mask=inside, other=0) * 3, 0))
    tl.store(out + 1, tl.max(tl.load(x + i, mask=inside, other=LOW), 0))
    tl.store(out + 2, tl.min(tl.load(x + i, mask=inside, other=HIGH), 0))
    first = tl.load(x + i, mask=inside, other=LOW)
    tl.store(out + 3, tl.argmax(first, 0))
    best, at = tl.max(first, 0, return_indices=True)
    tl.store(out + 4, best)
    tl.store(out + 5, at)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64], ids=name)
def test_rows_of_every_length(dtype):
    """Whole vectors, and groups of them, leave some elements over."""
    low, high = (0, 9) if np.dtype(dtype).kind == "u" else (-9, 9)
    for n in [*range(1, 70), 97, 127, 128, 129, 255, 256]:
        x = values(dtype, n, n)
        expected = [x.sum(dtype=np.int64) * 3, x.max(), x.min(), x.argmax(), x.max(), x.argmax()]
        out = np.full(6, 77, wide(dtype))
        folded[1](x, out, n, B=256, LOW=low, HIGH=high, device="cpu")
        assert out.tolist() == [int(e) for e in expected], n


@girih.jit
def larger(a, b):
    return tl.maximum(a, b)


@girih.jit
def line(a1, b1, a2, b2):
    """x -> a2 (a1 x + b1) + b2."""
    return a1 * a2, b1 * a2 + b2


def reduced(x):
    return tl.reduce(x, 1, larger)


def scanned(x):
    return tl.associative_scan(x, 1, larger)


def scanned_back(x):
    return tl.associative_scan(x, 0, lambda a, b: a + b, reverse=True)


FOLDS = [
    (reduced, lambda x: x.max(1)), (scanned, lambda x: np.maximum.accumulate(x, 1)), (scanned_back, lambda x: x[::-1].cumsum(0)[::-1]),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.float16, np.float32, np.float64], ids=name)
@pytest.mark.parametrize("case", FOLDS, ids=lambda c: c[0].__name__)
def test_folds_with_functions(case, dtype, device):
    x = values(dtype, (4, 8, 2), 2)
    expected = case[1](x).astype(dtype)
    assert np.array_equal(apply(case[0], x, np.zeros(expected.size, dtype), device), expected.ravel())


@girih.jit
def lines(a, b, out):
    i = tl.arange(0, 16)
    p, q = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, line)
    tl.store(out + i, p)
    tl.store(out + 16 + i, q)
    p, q = tl.reduce((tl.load(a + i), tl.load(b + i)), 0, line)
    tl.store(out + 32, p)
    tl.store(out + 33, q)


@pytest.mark.parametrize("device", DEVICES)
def test_folds_of_tuples_keep_the_order(device):
    a, b = np.random.default_rng(1).integers(-2, 3, (2, 16)).astype(np.int64)
    out = np.zeros(34, np.int64)
    lines[1](a, b, out, device=device)
    p, q = 1, 0
    for i in range(16):
        p, q = p * a[i], q * a[i] + b[i]
        assert (out[i], out[16 + i]) == (p, q)
    assert (out[32], out[33]) == (p, q)


@girih.jit
def bitwise(x, out):
    i = tl.arange(0, 4)
    t = tl.load(x + 8 * i[:, None] + tl.arange(0, 8))
    tl.store(out + i, tl.xor_sum(t, 1))
    tl.store(out + 4 + i, tl.reduce_or(t, 1))
    tl.store(out + 8 + tl.arange(0, 16), tl.histogram(t & 15, 16))
    tl.store(out + 24 + tl.arange(0, 16), tl.histogram(t & 15, 16, mask=t > 100))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.uint8, np.int64], ids=name)
def test_bits_and_histograms(dtype, device):
    x = np.random.default_rng(4).integers(0, 127, (4, 8)).astype(dtype)
    out = np.zeros(40, np.int64)
    bitwise[1](x, out, device=device)
    assert np.array_equal(out[:4], np.bitwise_xor.reduce(x, 1)) and np.array_equal(out[4:8], np.bitwise_or.reduce(x, 1))
    assert np.array_equal(out[8:24], np.bincount((x & 15).ravel(), minlength=16))
    assert np.array_equal(out[24:], np.bincount((x & 15)[x > 100], minlength=16))


def softened(x):
    return tl.softmax(x, 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=name)
def test_softmax_of_large_numbers(dtype, device):
    x = (np.random.default_rng(6).standard_normal((4, 32)) * 100).astype(dtype)
    x[1, :] = 3e4
    wide_ = x.astype(np.float64)
    e = np.exp(wide_ - wide_.max(1, keepdims=True))
    out = apply(softened, x, np.zeros(128, dtype), device).reshape(4, 32)
    assert np.allclose(out.astype(np.float64), e / e.sum(1, keepdims=True), rtol=4 * float(ml_dtypes.finfo(dtype).eps), atol=1e-7)


# ---- order


def rising(x):
    return tl.sort(x)


def falling(x):
    return tl.sort(x, 0, descending=True)


def best(x):
    return tl.topk(x, 4, 1)


ORDERS = [(rising, lambda x: np.sort(x)), (falling, lambda x: np.sort(x, 0)[::-1]), (best, lambda x: np.sort(x, 1)[:, ::-1][:, :4])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
@pytest.mark.parametrize("case", ORDERS, ids=lambda c: c[0].__name__)
def test_order(case, dtype, device):
    x = values(dtype, (4, 16), 8)
    expected = case[1](x.astype(np.float64))
    assert np.array_equal(apply(case[0], x, np.zeros(expected.size, dtype), device), expected.ravel())


def test_sorting_many():
    x = np.random.default_rng(9).standard_normal((1, 1024)).astype(np.float32)
    assert np.array_equal(apply(rising, x, np.zeros(1024, np.float32), "cpu"), np.sort(x[0]))


# ---- products


@girih.jit
def multiply(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    x, y = tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n)
    tl.store(out + m * N + n, tl.dot(x, y, tl.load(c + m * N + n), input_precision=PRECISION))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint8, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2], ids=name)
def test_products(dtype, device):
    a, b = values(dtype, (16, 32), 1), values(dtype, (32, 8), 2)
    kind = np.int32 if np.dtype(dtype).kind in "iu" else np.float64 if dtype == np.float64 else np.float32
    c = values(kind, (16, 8), 3)
    out = np.zeros((16, 8), kind)
    multiply[1](a, b, c, out, 16, 8, 32, "ieee", device=device)
    assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64) + c)


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_batches(device):
    @girih.jit
    def batches(a, b, out):
        i, j, k = tl.arange(0, 2)[:, None, None], tl.arange(0, 8)[None, :, None], tl.arange(0, 8)[None, None, :]
        at = i * 64 + j * 8 + k
        tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at), allow_tf32=False))

    a, b = values(np.float32, (2, 8, 8), 1), values(np.float32, (2, 8, 8), 2)
    out = np.zeros_like(a)
    batches[1](a, b, out, device=device)
    assert np.array_equal(out, a @ b)
