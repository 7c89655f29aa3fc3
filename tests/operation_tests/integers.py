"""Integer and bitwise operations, one element at a time."""

import numpy as np

from . import formats as F
from .floats import PREDICATES
from .program import N, Program, tile



def floor_div(x, y):
    return x // y


def truncated_div(x, y):
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def truncated_rem(x, y):
    return x - y * truncated_div(x, y)


def arithmetic(d):
    """Everything that wraps, and everything that compares; expectations in Python's integers."""
    a, b = F.operands(d, 2)
    bits, top = F.BITS[d], 1 << (F.BITS[d] - 1)
    signed = F.integers(d, a), F.integers(d, b)
    unsigned = F.integers(d, a, False), F.integers(d, b, False)
    p = Program(f"wrapping.{d}")
    x, y = p.load(d, a), p.load(d, b)

    def binary(op, f, numbers=signed, how="", variant=""):
        want = F.bits_of(d, [f(i, j) for i, j in zip(*numbers)])
        p.apply(op, d, f"{x}, {y}{how} : {x.type}", d, (N,), want, (variant or how).strip(), inputs=[a, b])

    binary("addi", lambda i, j: i + j)
    binary("subi", lambda i, j: i - j)
    binary("muli", lambda i, j: i * j)
    binary("mulhii", lambda i, j: i * j >> bits, unsigned)
    binary("andi", lambda i, j: i & j)
    binary("ori", lambda i, j: i | j)
    binary("xori", lambda i, j: i ^ j)
    for op, f in [("maxi", max), ("mini", min)]:
        binary(op, f, signed, " signed")
        binary(op, f, unsigned, " unsigned")
    p.apply("negi", d, f"{x} : {x.type}", d, (N,), F.bits_of(d, [-i for i in signed[0]]), inputs=[a])
    p.apply("absi", d, f"{x} : {x.type}", d, (N,), F.bits_of(d, [abs(i) for i in signed[0]]), inputs=[a])
    small = F.bits_of(d, [j % bits for j in unsigned[1]])
    n = p.load(d, small)
    p.apply("shli", d, f"{x}, {n} : {x.type}", d, (N,),
            F.bits_of(d, [i << int(j) for i, j in zip(signed[0], small)]), inputs=[a, small])
    for how, numbers in [("signed", signed), ("unsigned", unsigned)]:
        want = F.bits_of(d, [i >> int(j) for i, j in zip(numbers[0], small)])
        p.apply("shri", d, f"{x}, {n} {how} : {x.type}", d, (N,), want, how, inputs=[a, small])
    p = Program(f"cmpi.{d}")
    x, y = p.load(d, a), p.load(d, b)
    for word, f in PREDICATES.items():
        for how, (i, j) in [("signed", signed), ("unsigned", unsigned)]:
            want = f(np.array(i, object), np.array(j, object)).astype(np.uint8)
            text = f"{word} {x}, {y}, {how} : {x.type} -> {tile('i1', (N,))}"
            p.apply("cmpi", d, text, "i1", (N,), want, f"{word} {how}", inputs=[a, b])


def promised(d):
    """The overflow promises, on numbers that keep them."""
    bits = F.BITS[d]
    if d == "i1":
        a, b = np.array([0, 1] * 8, np.uint8), np.zeros(16, np.uint8)
    else:
        a = F.bits_of(d, F.rng.integers(0, 8, 16))
        b = F.bits_of(d, F.rng.integers(0, 4, 16))
        a, b = np.maximum(a, b), np.minimum(a, b)
    p = Program(f"promised.{d}")
    x, y = p.load(d, a), p.load(d, b)
    i, j = F.integers(d, a, d != "i1"), F.integers(d, b)
    for how in ("none", "no_signed_wrap", "no_unsigned_wrap", "no_wrap"):
        for op, f in [("addi", lambda i, j: i + j), ("subi", lambda i, j: i - j), ("muli", lambda i, j: i * j),
                      ("shli", lambda i, j: i << j)]:
            want = F.bits_of(d, [f(m, n) for m, n in zip(i, j)])
            p.apply(op, d, f"{x}, {y} overflow<{how}> : {x.type}", d, (16,), want, f"overflow<{how}>", inputs=[a, b])
        if how in ("none", "no_signed_wrap") and d != "i1":
            p.apply("negi", d, f"{x} overflow<{how}> : {x.type}", d, (16,), F.bits_of(d, [-m for m in i]),
                    f"overflow<{how}>", inputs=[a])


def division(d):
    """Defined quotients against Python; the others have the stated native value."""
    a, b = F.operands(d, 2)
    low = 1 << (F.BITS[d] - 1)
    si, sj = F.integers(d, a), F.integers(d, b)
    ui, uj = F.integers(d, a, False), F.integers(d, b, False)
    defined = [j != 0 and not (i == -low and j == -1) for i, j in zip(si, sj)]
    safe_b = np.where(defined, b, F.carrier(d)(1))
    if d == "i1":
        # Signed, 1 is -1 and -1 / -1 overflows: only 0 / 1 is left.
        safe_a = np.where(np.array([i == -1 for i in si]) , F.carrier(d)(0), a)
    else:
        safe_a = a
    ways = [("divi", "signed", "", truncated_div), ("divi", "signed", "rounding<negative_inf>", floor_div),
            ("divi", "signed", "rounding<positive_inf>", lambda i, j: -(-i // j)),
            ("divi", "unsigned", "", floor_div), ("divi", "unsigned", "rounding<positive_inf>", lambda i, j: -(-i // j)),
            ("remi", "signed", "", truncated_rem), ("remi", "unsigned", "", lambda i, j: i % j)]
    p = Program(f"division.{d}")
    x, y = p.load(d, safe_a), p.load(d, safe_b)
    for op, sign, how, f in ways:
        i, j = F.integers(d, safe_a, sign == "signed"), F.integers(d, safe_b, sign == "signed")
        want = F.bits_of(d, [f(m, n) for m, n in zip(i, j)])
        p.apply(op, d, f"{x}, {y} {sign} {how} : {x.type}", d, (N,), want, f"{sign} {how}".strip(), inputs=[safe_a, safe_b])
    q = Program(f"undefined.{d}", devices=("cpu",))
    x, y = q.load(d, a), q.load(d, b)
    for op, sign, how, f in ways:
        i, j = (si, sj) if sign == "signed" else (ui, uj)
        def native(m, n):
            if n == 0:
                return 0
            if sign == "signed" and m == -low and n == -1:
                return m if op == "divi" else 0
            return f(m, n)
        want = F.bits_of(d, [native(m, n) for m, n in zip(i, j)])
        q.apply(op, d, f"{x}, {y} {sign} {how} : {x.type}", d, (N,), want, f"{sign} {how} anywhere", inputs=[a, b])
    far = [j for j in uj]
    shift = [j >= F.BITS[d] for j in far]
    q.apply("shli", d, f"{x}, {y} : {x.type}", d, (N,), F.bits_of(d, [0 if s else i << j for i, j, s in zip(ui, far, shift)]),
            "anywhere", inputs=[a, b])
    q.apply("shri", d, f"{x}, {y} unsigned : {x.type}", d, (N,),
            F.bits_of(d, [0 if s else i >> j for i, j, s in zip(ui, far, shift)]), "unsigned anywhere", inputs=[a, b])
    q.apply("shri", d, f"{x}, {y} signed : {x.type}", d, (N,),
            F.bits_of(d, [i >> min(j, 64) for i, j in zip(si, far)]), "signed anywhere", inputs=[a, b])


def poison(d):
    """The evaluator refuses to store values that the specification leaves undefined."""
    width = F.BITS[d]
    ways = [("divi", 1, 0, " signed"), ("remi", 1, 0, " unsigned")]
    if d != "i1":
        low = 1 << (width - 1)
        ways += [("divi", low, -1, " signed"), ("shli", 1, width, ""), ("shri", 1, width, " unsigned"),
                 ("addi", low - 1, 1, " overflow<no_signed_wrap>"), ("addi", -1, 1, " overflow<no_unsigned_wrap>"),
                 ("subi", 0, 1, " overflow<no_unsigned_wrap>"), ("muli", low - 1, 2, " overflow<no_wrap>"),
                 ("shli", low, 1, " overflow<no_unsigned_wrap>")]  # fmt: skip
    for k, (op, a, b, how) in enumerate(ways):
        p = Program(f"poison.{op}.{d}.{k}", exit=3, stderr=op, devices=("eval",))
        x, y = p.load(d, F.bits_of(d, [a] * 4)), p.load(d, F.bits_of(d, [b] * 4))
        p.apply(op, d, f"{x}, {y}{how} : {x.type}", d, (4,), None)


def widths():
    """exti and trunci between every two integer types."""
    for s in F.INTS:
        p = Program(f"exti.{s}")
        a = F.operands(s, 1)[0]
        x = p.load(s, a)
        for t in F.INTS:
            if F.BITS[t] > F.BITS[s]:
                for how in ("signed", "unsigned"):
                    want = F.bits_of(t, F.integers(s, a, how == "signed"))
                    p.apply("exti", (s, t), f"{x} {how} : {x.type} -> {tile(t, (N,))}", t, (N,), want, how, inputs=[a])
            if F.BITS[t] < F.BITS[s]:
                want = F.bits_of(t, F.integers(s, a))
                p.apply("trunci", (s, t), f"{x} : {x.type} -> {tile(t, (N,))}", t, (N,), want, inputs=[a])
                small = F.bits_of(s, F.rng.integers(0, 1 << (F.BITS[t] - 1), N) if t != "i1" else [0] * N)
                y = p.load(s, small)
                for how in ("none", "no_signed_wrap", "no_unsigned_wrap", "no_wrap"):
                    p.apply("trunci", (s, t), f"{y} overflow<{how}> : {x.type} -> {tile(t, (N,))}", t, (N,),
                            F.bits_of(t, F.integers(s, small)), f"overflow<{how}>", inputs=[small])


def four_bits():
    """i4 comes from unpack, and goes through pack."""
    p = Program("i4")
    bytes = F.random_bits("i8", 64)
    x = p.load("i8", bytes)
    nibbles = np.stack([bytes & 15, bytes >> 4], axis=1).ravel()
    four = p.value(f"unpack {x} : {x.type} -> tile<128xi4>", "i4", (128,))
    p.uses("unpack", "i4")
    for t in ("i8", "i16", "i32", "i64"):
        for how in ("signed", "unsigned"):
            want = F.bits_of(t, [n - 16 if n > 7 and how == "signed" else n for n in map(int, nibbles)])
            wide = p.apply("exti", ("i4", t), f"{four} {how} : tile<128xi4> -> {tile(t, (128,))}", t, (128,), want, how)
        back = p.value(f"trunci {wide} : {wide.type} -> tile<128xi4>", "i4", (128,))
        p.uses("trunci", "i4")
        p.apply("pack", "i4", f"{back} : tile<128xi4> -> tile<64xi8>", "i8", (64,), bytes, f"of trunci {t}")


def build():
    for Program.piece in (None, 1, 4):
        for d in F.INTS:
            arithmetic(d)
            division(d)
        widths()
    Program.piece = None
    four_bits()
    for d in F.INTS:
        promised(d)
        poison(d)
