"""Dropout with random numbers that depend on a seed and an element's place alone: Philox with ten rounds, in integers,
so a backward pass draws the same numbers and stores no mask."""
import cuda.tile as ct
import cupy as cp
import numpy as np


def high_low(a, b):
    """The 64-bit product of two 32-bit numbers."""
    product = a.astype(ct.uint64) * b
    return (product >> 32).astype(ct.uint32), product.astype(ct.uint32)


def philox(counter, seed):
    c0, c1, c2, c3 = counter, ct.zeros(counter.shape, ct.uint32), ct.zeros(counter.shape, ct.uint32), \
        ct.zeros(counter.shape, ct.uint32)
    k0 = ct.full((), 0, dtype=ct.uint32) + seed.astype(ct.uint32)
    k1 = (seed >> 32).astype(ct.uint32)
    for _ in range(10):
        h0, l0 = high_low(c0, 0xD2511F53)
        h1, l1 = high_low(c2, 0xCD9E8D57)
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
        k0 = k0 + ct.uint32(0x9E3779B9)
        k1 = k1 + ct.uint32(0xBB67AE85)
    return c0, c1, c2, c3


@ct.kernel
def random_bits(out, seed: ct.ScalarInt64, t: ct.Constant[int]):
    i = ct.bid(0)
    counter = (i * t + ct.arange(t, dtype=ct.int32)).astype(ct.uint32)
    bits = philox(counter, ct.astile(seed, dtype=ct.int64))
    for j in ct.static_iter(range(4)):
        ct.store(out, (j, i), bits[j].reshape((1, t)))


@ct.kernel
def dropout(x, y, p, seed: ct.ScalarInt64, t: ct.Constant[int]):
    i = ct.bid(0)
    counter = (i * t + ct.arange(t, dtype=ct.int32)).astype(ct.uint32)
    bits = philox(counter, ct.astile(seed, dtype=ct.int64))[0]
    uniform = (bits >> 8).astype(ct.float32) * 2.0**-24
    values = ct.load(x, (i,), (t,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, (i,), ct.where(uniform >= p, values / (1.0 - p), 0.0))


def reference(counter, seed):
    low = np.uint64(0xFFFFFFFF)
    c = [counter.astype(np.uint64)] + [np.zeros_like(counter, dtype=np.uint64) for _ in range(3)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        shift = np.uint64(32)
        c = [(p1 >> shift) ^ c[1] ^ np.uint64(k[0]), p1 & low, (p0 >> shift) ^ c[3] ^ np.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c).astype(np.uint32)


def main():
    rng = np.random.default_rng(15)
    stream = cp.cuda.get_current_stream()
    # The published test vector of a counter and a key of zeros.
    assert [hex(v) for v in reference(np.array([0]), 0)[:, 0]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    for n, seed in ((1024, 0), (300, 0x123456789ABC)):
        bits = cp.zeros((4, n), dtype=np.uint32)
        ct.launch(stream, (ct.cdiv(n, 128),), random_bits, (bits, seed, 128))
        want = reference(np.arange(n), seed)
        np.testing.assert_array_equal(cp.asnumpy(bits), want)
        x = rng.standard_normal(n).astype(np.float32)
        for p in (0.0, 0.25, 0.9):
            y = cp.zeros(n, dtype=np.float32)
            ct.launch(stream, (ct.cdiv(n, 128),), dropout, (cp.asarray(x), y, p, seed, 128))
            kept = (want[0] >> 8) * 2.0**-24 >= np.float32(p)
            np.testing.assert_allclose(cp.asnumpy(y), np.where(kept, x / (1 - p), 0), rtol=1e-6)


if __name__ == "__main__":
    main()
