"""mmaf, mmai and mmaf_scaled: k ascending, one fused step each, rounded once per step (f16 accumulators at the end)."""

import numpy as np

from . import formats as F
from .program import Program, tile

FLOAT_PRODUCTS = [("f8E4M3FN", "f16"), ("f8E4M3FN", "f32"), ("f8E5M2", "f16"), ("f8E5M2", "f32"), ("f16", "f16"), ("f16", "f32"),
                  ("bf16", "f32"), ("tf32", "f32"), ("f32", "f32"), ("f64", "f64")]  # fmt: skip


def widened(d, bits):
    """A float's bits as those of f32 (or f64, for f64)."""
    return bits if d in ("f64", "f32") else F.values(d, bits).astype(np.float32).view(np.uint32)


def stepwise(d, a, b, c, acc):
    """[.., m, k] times [.., k, n] plus [.., m, n], all bits; `acc` is the accumulator's type."""
    inside = "f64" if acc == "f64" else "f32"
    total = widened(acc, c).copy()
    for k in range(a.shape[-1]):
        x = np.broadcast_to(a[..., :, k, None], total.shape).ravel()
        y = np.broadcast_to(b[..., k, None, :], total.shape).ravel()
        total = F.arithmetic("fma", inside, [x, y, total.ravel()])["nearest_even"].reshape(total.shape)
    if acc in ("f16", "bf16"):
        return np.array([F.encode(acc, v) for v in F.values("f32", total).ravel().tolist()], F.carrier(acc)).reshape(c.shape)
    return total


def numbers(d, shape, special=False):
    n = int(np.prod(shape))
    x = F.bits_of(d, F.rng.standard_normal(n).tolist())
    if d.startswith("f8"):
        x = F.random_bits(d, n) & F.carrier(d)(0xBF)
    if d == "f4E2M1FN":
        x = F.random_bits(d, n)
    if special:
        x[:2] = F.bits_of(d, [F.inf, F.nan])[: 2]
    return x.reshape(shape)


def mmaf():
    for d, acc in FLOAT_PRODUCTS:
        p = Program(f"mmaf.{d}.{acc}")
        for name, batch, (m, n, k), words in [("", (), (4, 8, 16), ""), ("fast_acc", (), (8, 4, 8), " fast_acc"),
                                             ("batched", (2,), (4, 4, 8), ""), ("narrow", (), (1, 16, 4), ""), ("specials", (), (4, 4, 4), "")]:  # fmt: skip
            if words and not d.startswith("f8"):
                words = ""
            a, b, c = (numbers(t, batch + s, name == "specials") for t, s in ((d, (m, k)), (d, (k, n)), (acc, (m, n))))
            x, y, z = p.load(d, a), p.load(d, b), p.load(acc, c)
            want = stepwise(d, widened(d, a), widened(d, b), c, acc)
            p.apply("mmaf", (d, acc), f"{x}, {y}, {z}{words} : {x.type}, {y.type}, {z.type}", acc, batch + (m, n), want, name)
        # Integers small enough for every order to be exact.
        a, b = (F.bits_of(d, F.rng.integers(-2, 3, 64 * 64).astype(float).tolist()).reshape(64, 64) for _ in "ab")
        c = F.bits_of(acc, [1.0] * 4096).reshape(64, 64)
        x, y, z = p.load(d, a), p.load(d, b), p.load(acc, c)
        want = F.bits_of(acc, (F.values(d, a) @ F.values(d, b) + 1).ravel().tolist())
        p.apply("mmaf", (d, acc), f"{x}, {y}, {z} : {x.type}, {y.type}, {z.type}", acc, (64, 64), want, "64x64x64")


def mmai():
    p = Program("mmai")
    for left in ("signed", "unsigned"):
        for right in ("signed", "unsigned"):
            for batch, (m, n, k) in [((), (4, 8, 16)), ((2,), (8, 4, 32)), ((), (64, 64, 64))]:
                a, b = F.random_bits("i8", np.prod(batch + (m, k), dtype=int)), F.random_bits("i8", np.prod(batch + (k, n), dtype=int))
                c = F.random_bits("i32", np.prod(batch + (m, n), dtype=int))
                a, b, c = a.reshape(batch + (m, k)), b.reshape(batch + (k, n)), c.reshape(batch + (m, n))
                ints = lambda v, s: v.view(np.int8).astype(np.int64) if s == "signed" else v.astype(np.int64)
                want = (ints(a, left) @ ints(b, right) + c.astype(np.int64)).astype(np.uint64) & np.uint64(0xFFFFFFFF)
                x, y, z = p.load("i8", a), p.load("i8", b), p.load("i32", c)
                text = f"{x}, {y}, {z} {left} {right} : {x.type}, {y.type}, {z.type}"
                p.apply("mmai", ("i8", "i32"), text, "i32", c.shape, want, f"{left} {right} {c.shape}")


def scaled():
    kinds = [("f8E4M3FN", "f8E4M3FN", "f8E8M0FNU", 32), ("f8E5M2", "f8E5M2", "f8E8M0FNU", 32), ("f8E4M3FN", "f8E5M2", "f8E8M0FNU", 32),
             ("f4E2M1FN", "f4E2M1FN", "f8E8M0FNU", 16), ("f4E2M1FN", "f4E2M1FN", "f8E8M0FNU", 32), ("f4E2M1FN", "f4E2M1FN", "f8E4M3FN", 16),
             ("f4E2M1FN", "f4E2M1FN", "f8E5M3FNU", 16)]  # fmt: skip
    for left, right, scale, block in kinds:
        p = Program(f"mmaf_scaled.{left}.{right}.{scale}.{block}")
        for batch in ((), (2,)):
            m, n, k = 4, 8, 64
            a, b, c = numbers(left, batch + (m, k)), numbers(right, batch + (k, n)), numbers("f32", batch + (m, n))
            few = lambda s: (F.rng.integers(120, 134, s) if scale == "f8E8M0FNU" else F.rng.integers(0x20, 0x60, s)).astype(np.uint8)
            sa, sb = few(batch + (m, k // block)), few(batch + (k // block, n))
            fa = (F.values(left, a) * np.repeat(F.values(scale, sa), block, axis=-1)).astype(np.float32).view(np.uint32)
            fb = (F.values(right, b) * np.repeat(F.values(scale, sb), block, axis=-2)).astype(np.float32).view(np.uint32)
            want = stepwise("f32", fa, fb, c, "f32")
            x, y, z = p.load_any(left, a, a.shape), p.load_any(right, b, b.shape), p.load("f32", c)
            s, t = p.load(scale, sa), p.load(scale, sb)
            text = f"{x}, {y}, {z}, {s}, {t} : {x.type}, {y.type}, {z.type}, {s.type}, {t.type}"
            p.apply("mmaf_scaled", (left, right, scale), text, "f32", c.shape, want, f"block {block} {batch}")


def build():
    mmaf()
    mmai()
    scaled()
