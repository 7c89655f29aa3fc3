"""Memory of kernels: masks, blocks of arrays, atomics, memory of a block, gathers, messages; and random numbers."""

import math

import numpy as np
import pytest

import girih
import girih.language as tl

DEVICES = ["cpu", "eval"]
TYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64]
pytestmark = pytest.mark.parametrize("device", DEVICES)


@girih.jit
def masked(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=1), mask=i % 2 == 0)
    tl.store(out + N + i, tl.load(x + i, mask=i < n))
    tl.store(out + 2 * N + i, tl.load(x + n - 1))
    tl.store(out + 3 * N, 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 13, 16])
def test_masks(n, dtype, device):
    x = (np.arange(n) + 1).astype(dtype)
    out = np.zeros((4, 16), dtype)
    masked[1](x, out, n, 16, device=device)
    full = np.concatenate([x, np.ones(16 - n, dtype)])
    assert np.array_equal(out[0], np.where(np.arange(16) % 2 == 0, full, dtype(0)))
    assert np.array_equal(out[1][:n], x) and not out[1][n:].any()
    assert np.all(out[2] == x[n - 1]) and out[3].sum() == 1


@girih.jit
def by_block(a, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    p = tl.make_block_ptr(a, (M, N), (N, 1), (0, 0), (BM, BN), (1, 0))
    q = tl.make_block_ptr(out, (N, M), (M, 1), (0, 0), (BN, BM), (1, 0))
    p, q = tl.advance(p, (tl.program_id(0) * BM, 0)), tl.advance(q, (0, tl.program_id(0) * BM))
    for _ in range(tl.cdiv(N, BN)):
        tl.store(q, tl.trans(tl.load(p, boundary_check=(0, 1), padding_option="zero")), boundary_check=(0, 1))
        p, q = tl.advance(p, (0, BN)), tl.advance(q, (BN, 0))


@girih.jit
def by_descriptor(a, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(a, (M, N), (N, 1), (BM, BN))
    y = tl.make_tensor_descriptor(out, (N, M), (M, 1), (BN, BM))
    i = tl.program_id(0) * BM
    for j in range(0, N, BN):
        if j % (2 * BN) == 0:
            y.store([j, i], x.load([i, j]).T)
        else:
            tl.store_tensor_descriptor(y, [j, i], tl.load_tensor_descriptor(x, [i, j]).T)


@pytest.mark.parametrize("kernel", [by_block, by_descriptor], ids=lambda k: k.__name__)
@pytest.mark.parametrize("shape", [(8, 16), (7, 13), (1, 1), (17, 33)])
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.float64])
def test_blocks_at_ragged_edges(kernel, shape, dtype, device):
    m, n = shape
    a, guard = np.arange(m * n).astype(dtype).reshape(m, n), 9
    out = np.full(m * n + 2 * 8, guard, dtype)
    inner = out[8:-8].reshape(n, m)
    kernel[(girih.cdiv(m, 8),)](a, inner, m, n, 8, 16, device=device)
    assert np.array_equal(inner, a.T) and np.all(out[:8] == guard) and np.all(out[-8:] == guard)


@girih.jit
def padded(a, out):
    p = tl.make_block_ptr(a, (5,), (1,), (-2,), (8,), (0,))
    tl.store(out + tl.arange(0, 8), tl.load(p, boundary_check=(0,), padding_option="nan"))


def test_padding(device):
    out = np.zeros(8, np.float32)
    padded[1](np.arange(5, dtype=np.float32), out, device=device)
    assert np.array_equal(out, [np.nan, np.nan, 0, 1, 2, 3, 4, np.nan], equal_nan=True)


# ---- atomics

ATOMICS = [
    (tl.atomic_add, lambda a, b: a + b, "iuf"), (tl.atomic_max, max, "iuf"), (tl.atomic_min, min, "iuf"),
    (tl.atomic_and, lambda a, b: a & b, "iu"), (tl.atomic_or, lambda a, b: a | b, "iu"), (tl.atomic_xor, lambda a, b: a ^ b, "iu"),
]  # fmt: skip


@girih.jit
def contended(x, bins, n, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    F(bins + i % 4, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("case", ATOMICS, ids=lambda c: c[0].__name__)
def test_atomics_contended(case, dtype, device):
    function, oracle, kinds = case
    if np.dtype(dtype).kind not in kinds:
        with pytest.raises(girih.CompilationError, match="is not defined for elements of float"):
            contended[1](np.zeros(4, dtype), np.zeros(4, dtype), 4, function, 16, device=device)
        return
    n = 500
    x = np.random.default_rng(1).integers(-50 if np.dtype(dtype).kind != "u" else 0, 50, n).astype(dtype)
    bins = np.array([3, 1, 2, 7], dtype)
    expected = bins.tolist()
    for i, v in enumerate(x.tolist()):
        expected[i % 4] = oracle(expected[i % 4], v)
    contended[(girih.cdiv(n, 16),)](x, bins, n, function, 16, device=device)
    assert bins.tolist() == expected


@girih.jit
def exchanges(memory, old):
    i = tl.arange(0, 8)
    tl.store(old + i, tl.atomic_xchg(memory + i, i * 10, mask=i < 4), mask=i < 4)
    tl.store(old + 8 + i, tl.atomic_cas(memory + i, 20, -1))
    tl.store(old + 16, tl.atomic_add(memory, 5, sem="relaxed", scope="cta"))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_exchanges(dtype, device):
    memory, old = np.array([1, 2, 3, 4, 20, 6, 7, 8], dtype), np.zeros(17, dtype)
    exchanges[1](memory, old, device=device)
    assert old.tolist() == [1, 2, 3, 4, 0, 0, 0, 0, 0, 10, 20, 30, 20, 6, 7, 8, 0]
    assert memory.tolist() == [5, 10, -1, 30, -1, 6, 7, 8]


# ---- memory of a block


@girih.jit
def mirrored(x, out):
    i = tl.arange(0, 64)
    at = tl.program_id(0) * 64 + i
    named = tl.shared(64, tl.int32)
    tl.store(named + i, tl.load(x + at))
    tl.shared_store(i, tl.load(x + at).to(tl.float32))
    tl.sync()
    tl.debug_barrier()
    tl.store(out + at, tl.load(named + 63 - i) + tl.shared_load(63 - i).to(tl.int32))


def test_memory_of_a_block(device):
    x, out = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    mirrored[4](x, out, device=device)
    assert np.array_equal(out.reshape(4, 64), 2 * x.reshape(4, 64)[:, ::-1])


@girih.jit
def gathered(table, ids, out):
    i = tl.arange(0, 8)
    index = tl.load(ids + i)
    tl.store(out + i, tl.gather(table, index))
    tile = tl.load(table + tl.arange(0, 16))
    tl.store(out + 8 + i, tl.gather(tile, index, 0))
    rows = tl.reshape(tile, (4, 4))
    tl.store(out + 16 + tl.arange(0, 8), tl.ravel(tl.gather(rows, tl.reshape(index % 4, (4, 2)), 1)))
    tl.store(out + 24 + tl.arange(0, 8), tl.ravel(tl.load4(table + 4 * tl.arange(0, 2))))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float16, np.float32, np.float64])
def test_gathers(dtype, device):
    table, ids = (np.arange(16) * 3 % 16).astype(dtype), np.array([3, 0, 15, 7, 7, 2, 9, 14], np.int32)
    out = np.zeros(32, dtype)
    gathered[1](table, ids, out, device=device)
    assert np.array_equal(out[:8], table[ids]) and np.array_equal(out[8:16], table[ids])
    assert np.array_equal(out[16:24], np.take_along_axis(table.reshape(4, 4), (ids % 4).reshape(4, 2), 1).ravel())
    assert np.array_equal(out[24:], table[:8])


@girih.jit
def taken(x, places, out, rest, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + rest + tl.load(places + i)))


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES[1:])
def test_elements_from_places(dtype, width, device):
    """Vectors of places are read by an instruction, one by one, or as a vector where they are neighbours."""
    rng = np.random.default_rng(0)
    x = rng.permutation(5000).astype(dtype)
    neighbours = np.arange(64) + 77
    for places in (
        rng.integers(0, 4000, 64), neighbours, neighbours[::-1], neighbours // 2, np.where(np.arange(64) == 15, 3999, neighbours),
        np.where(np.arange(64) < 16, neighbours, 5), np.arange(64) - 40,
    ):  # fmt: skip
        out = np.zeros(64, dtype)
        taken[1](x, places.astype(width), out, 900, 64, device=device)
        assert np.array_equal(out, x[900 + places])


# ---- loops and messages


@girih.jit
def messages(x, n):
    tl.static_assert(x.dtype.element_ty == tl.float32, "float32 is needed")
    tl.assume(n > 0)
    for i in tl.static_range(2):
        tl.device_print("value", tl.load(x + i))
    for i in tl.range(0, n, num_stages=2):
        tl.device_assert(tl.load(x + i) < 3, "below three")


def test_messages(capfd, device):
    messages[1](np.array([1, 2], np.float32), 2, device=device)
    assert capfd.readouterr().out.split() == ["value", "1", "value", "2"]
    with pytest.raises(girih.KernelAssertionError, match="below three"):
        messages[1](np.array([1, 3], np.float32), 2, device=device)
    with pytest.raises(girih.CompilationError, match="float32 is needed"):
        messages[1](np.array([1, 3], np.int32), 2, device=device)


# ---- random numbers


@girih.jit
def words(seed, counter, out):
    c = [tl.load(counter + k) for k in range(4)]
    for k, w in enumerate(tl.philox(tl.load(seed), c[0], c[1], c[2], c[3])):
        tl.store(out + k, w)


# The vectors that the authors of the generator publish for 10 rounds: counter, key, result.
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def of_hex(text):
    return np.array([int(w, 16) for w in text.split()], np.uint32)


@pytest.mark.parametrize(("counter", "key", "result"), VECTORS)
def test_philox(counter, key, result, device):
    low, high = (int(w) for w in of_hex(key))
    out = np.zeros(4, np.uint32)
    words[1](np.array([low | high << 32], np.uint64), of_hex(counter), out, device=device)
    assert np.array_equal(out, of_hex(result))


def philox(seed, offset):
    """The generator on Python's integers, for one 64-bit counter."""
    c, k = [offset & 0xFFFFFFFF, offset >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


@girih.jit
def draws(offsets, ints, floats, seed):
    i = tl.arange(0, 32)
    at = tl.load(offsets + i)
    tl.store(ints + i, tl.randint(seed, at))
    a, b, c, d = tl.randint4x(seed, at)
    tl.store(ints + 32 + i, a ^ b ^ c ^ d)
    tl.store(floats + i, tl.rand(seed, at))
    tl.store(floats + 32 + i, tl.randn(seed, at))
    tl.store(floats + 64 + i, tl.rand4x(seed, at)[3])
    tl.store(floats + 96 + i, tl.randn4x(seed, at)[1])
    tl.store(floats + 128 + i, tl.uint_to_uniform_float(d))
    tl.store(floats + 160 + i, tl.pair_uniform_to_normal(tl.uint_to_uniform_float(a), tl.uint_to_uniform_float(b))[0])


def uniform(word):
    signed = word - (1 << 32) if word >> 31 else word
    return np.float32(-signed - 1 if signed < 0 else signed) * np.float32(4.6566127342e-10)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("seed", [0, 7, -3, 1 << 40])
def test_draws(seed, dtype, device):
    offsets = np.arange(32).astype(dtype) * (1 if dtype == np.int32 else 1 << 28)
    ints, floats = np.zeros((2, 32), np.uint32), np.zeros((6, 32), np.float32)
    draws[1](offsets, ints, floats, seed, device=device)
    # A negative seed is a 32-bit integer: its sign fills no upper word.
    key = seed if seed >= 0 else seed & 0xFFFFFFFF
    w = [philox(key, int(o)) for o in offsets]
    assert ints[0].tolist() == [v[0] for v in w] and ints[1].tolist() == [v[0] ^ v[1] ^ v[2] ^ v[3] for v in w]
    u = np.array([[uniform(x) for x in v] for v in w]).T
    assert np.array_equal(floats[0], u[0]) and np.array_equal(floats[2], u[3]) and np.array_equal(floats[4], u[3])
    radius, angle = np.sqrt(-2 * np.log(np.maximum(u[0], 1e-7).astype(float))), 2 * math.pi * u[1].astype(float)
    assert np.allclose(floats[1], radius * np.cos(angle), rtol=1e-5, atol=2e-6)
    assert np.allclose(floats[3], radius * np.sin(angle), rtol=1e-5, atol=2e-6)
    assert np.array_equal(floats[5], floats[1])


@girih.jit
def many(out, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i))


def test_uniform_numbers_are_uniform(device):
    n = 1 << 14
    out = np.zeros(n, np.float32)
    many[(n // 1024,)](out, 3, 1024, device=device)
    assert 0 <= out.min() and out.max() < 1 and abs(out.mean() - 0.5) < 0.01 and abs(out.var() - 1 / 12) < 0.002
