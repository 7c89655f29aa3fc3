"""Floating-point operations and conversions, one element at a time."""

import numpy as np

from . import formats as F
from .program import N, Program, tile

PREDICATES = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less_than": np.less,
    "less_than_or_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_than_or_equal": np.greater_equal,
}
# Bounds in units in the last place against long double; f16 and bf16 round an f32 result once more.
ULPS = {"f16": 0.51, "bf16": 0.51, "f32": 2.0, "f64": 2.5}
TRANSCENDENTAL = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
}  # fmt: skip


def rounding(mode, ftz=False):
    return ("" if mode == "nearest_even" else f" rounding<{mode}>") + (" flush_to_zero" if ftz else "")


def arithmetic(d):
    """add, sub, mul, div, fma and sqrt in every rounding mode, each rounded exactly once."""
    a, b, c = F.operands(d, 3)
    # Sums that cancel almost, where one rounding differs from two.
    c[-100:] = F.arithmetic("mul", d, [a[-100:], b[-100:]])["nearest_even"] ^ F.carrier(d)(1 << (F.BITS[d] - 1))
    for op, name in [("add", "addf"), ("sub", "subf"), ("mul", "mulf"), ("div", "divf"), ("fma", "fma"), ("sqrt", "sqrt")]:
        p = Program(f"{name}.{d}")
        x, y, z = p.load(d, a), p.load(d, b), p.load(d, c)
        bits = {"sqrt": [a], "fma": [a, b, c]}.get(op, [a, b])
        text = ", ".join(v.name for v in [x, y, z][: len(bits)])
        for ftz in [False, True] if d == "f32" else [False]:
            want = F.arithmetic(op, d, bits, ftz)
            modes = list(F.MODES)
            if d == "f32" and op in ("div", "sqrt"):
                want |= {m: want["nearest_even"] for m in ("approx", "full")}
                modes += ["approx", "full"] if op == "div" else ["approx"]
            for mode in modes:
                how = rounding(mode, ftz)
                p.apply(name, d, f"{text}{how} : {x.type}", d, (N,), want[mode], how.strip(), inputs=bits)


def extremum(d, a, b, best, propagate, ftz):
    if ftz:
        a, b = F.flush_bits(a), F.flush_bits(b)
    x, y = F.values(d, a), F.values(d, b)
    sign = F.carrier(d)(1 << (F.BITS[d] - 1))
    with np.errstate(all="ignore"):
        first = (x > y) if best == "max" else (x < y)
        zeros = (x == 0) & (y == 0)
    first |= zeros & (((a & sign) == 0) if best == "max" else ((a & sign) != 0))
    out = np.where(first, a, b)
    nx, ny = np.isnan(x), np.isnan(y)
    out = np.where(nx & ~ny, b, np.where(ny & ~nx, a, out))
    either = (nx | ny) if propagate else (nx & ny)
    return np.where(either, F.carrier(d)(F.nan_bits(d)), out)


def simple(d):
    """Operations that need no rounding: signs, integral parts, remainders, extrema, comparisons, selection."""
    p = Program(f"simple.{d}")
    a, b = F.operands(d, 2)
    x, y = p.load(d, a), p.load(d, b)
    va, vb = F.values(d, a), F.values(d, b)
    top = F.carrier(d)(1 << (F.BITS[d] - 1))
    p.apply("absf", d, f"{x} : {x.type}", d, (N,), a & ~top, inputs=[a])
    p.apply("negf", d, f"{x} : {x.type}", d, (N,), a ^ top, inputs=[a])
    with np.errstate(all="ignore"):
        p.apply("ceil", d, f"{x} : {x.type}", d, (N,), F.bits_of(d, np.ceil(va).tolist()), inputs=[a])
        p.apply("floor", d, f"{x} : {x.type}", d, (N,), F.bits_of(d, np.floor(va).tolist()), inputs=[a])
        p.apply("remf", d, f"{x}, {y} : {x.type}", d, (N,), F.bits_of(d, np.fmod(va, vb).tolist()), inputs=[a, b])
    for op, best in [("maxf", "max"), ("minf", "min")]:
        for propagate in (False, True):
            for ftz in (False, True) if d == "f32" else (False,):
                how = " propagate_nan" * propagate + " flush_to_zero" * ftz
                want = extremum(d, a, b, best, propagate, ftz)
                p.apply(op, d, f"{x}, {y}{how} : {x.type}", d, (N,), want, how.strip(), inputs=[a, b])
    p = Program(f"cmpf.{d}")
    x, y = p.load(d, a), p.load(d, b)
    unordered = np.isnan(va) | np.isnan(vb)
    for word, f in PREDICATES.items():
        for ordered in ("ordered", "unordered"):
            want = (f(va, vb) & ~unordered) | (unordered & (ordered == "unordered"))
            text = f"{word} {ordered} {x}, {y} : {x.type} -> {tile('i1', (N,))}"
            p.apply("cmpf", d, text, "i1", (N,), want, f"{word} {ordered}", inputs=[a, b])


def transcendental_inputs(d):
    a, b = F.operands(d, 2)
    a[256 + 128 :: 3] = F.bits_of(d, F.rng.uniform(-12, 12, len(a[256 + 128 :: 3])).tolist())
    return a, b


def transcendental(d):
    """Against long double; and bit for bit between the devices."""
    a, b = transcendental_inputs(d)
    wide = F.values(d, a).astype(np.longdouble), F.values(d, b).astype(np.longdouble)
    p = Program(f"transcendental.{d}")
    x, y = p.load(d, a), p.load(d, b)
    with np.errstate(all="ignore"):
        for op, f in TRANSCENDENTAL.items():
            want = f(wide[0])
            variants = [""]
            if op in ("exp", "tanh"):
                variants += [" rounding<full>"] + [" rounding<approx>"] * (d == "f32")
            for how in variants:
                p.apply(op, d, f"{x}{how} : {x.type}", d, (N,), None, how.strip(), reals=want, ulps=ULPS[d], inputs=[a])
        p = Program(f"powers.{d}")
        x, y = p.load(d, a), p.load(d, b)
        want = 1 / np.sqrt(wide[0])
        p.apply("rsqrt", d, f"{x} : {x.type}", d, (N,), None, reals=want, ulps=ULPS[d], inputs=[a])
        want = np.power(*wide)
        p.apply("pow", d, f"{x}, {y} : {x.type}", d, (N,), None, reals=want, ulps=ULPS[d], inputs=[a, b])
        want = np.arctan2(*wide)
        p.apply("atan2", d, f"{x}, {y} : {x.type}", d, (N,), None, reals=want, ulps=ULPS[d], inputs=[a, b])
        e = np.concatenate([F.operands("i32", 1)[0][:256], F.rng.integers(-9, 10, 256).astype(np.uint32)])
        k = p.load("i32", e)
        want = np.power(wide[0], e.view(np.int32).astype(np.longdouble))
        p.apply("fpowi", d, f"{x}, {k} : {x.type}, {k.type}", d, (N,), None, reals=want, ulps=ULPS[d], inputs=[a, e])
        if d == "f32":
            flat = F.flush_bits(a).view(np.float32).astype(np.longdouble)
            for op, want in [("exp2", np.exp2(flat)), ("rsqrt", 1 / np.sqrt(flat))]:
                want = np.where(np.abs(want) < 2.0**-126, np.copysign(0, want), want)
                p.apply(op, d, f"{x} flush_to_zero : {x.type}", d, (N,), None, "flush_to_zero", reals=want, ulps=2.0,
                        inputs=[a])


def roundings(s, t):
    """The rounding modes that the dialect has for a conversion that rounds."""
    if t == "f8E8M0FNU":
        return ["zero", "positive_inf"]
    if F.BITS[t] <= 8:
        return ["nearest_even"]
    more = {("f64", "f32"): ["negative_inf", "positive_inf"], ("f32", "tf32"): ["nearest_away"]}
    return ["nearest_even", "zero", *more.get((s, t), [])]


def conversions(s):
    """From one float type to every other number."""
    p = Program(f"convert.{s}")
    if F.BITS[s] <= 8:
        a = np.arange(N, dtype=np.uint8) & np.uint8(F.mask(s))
    else:
        a = F.operands(s, 1)[0]
        # Numbers that the small formats can hold, and those halfway between.
        a[256:384] = F.bits_of(s, np.round(F.rng.uniform(-20, 20, 128) * 64).tolist()) if s == "f16" else F.bits_of(
            s, (np.round(F.rng.uniform(-20, 20, 128) * 8) / 8 * 2.0 ** F.rng.integers(-12, 12, 128)).tolist())
    if s == "f4E2M1FN":
        packed = p.load("i8", a[0::2] | a[1::2] << 4)
        x = p.value(f"unpack {packed} : {packed.type} -> {tile(s, (N,))}", s, (N,))
        p.uses("unpack", s)
    else:
        x = p.load(s, a)
    v = F.values(s, a)
    for t in F.EVERY_FLOAT:
        if t == s or (t == "f4E2M1FN" and Program.piece):
            continue
        for mode in roundings(s, t):
            want = np.array([F.encode(t, e, mode) for e in v.tolist()], F.carrier(t))
            how = rounding(mode)
            where = None
            if t == "f8E8M0FNU":
                where = ~(v < 0)
            if t == "f8E5M3FNU":
                where = ~np.signbit(v)
            text = f"{x}{how} : {x.type} -> {tile(t, (N,))}"
            if t == "f4E2M1FN":
                small = p.value("ftof " + text, t, (N,))
                packed = want[0::2] | want[1::2] << 4
                p.apply("pack", t, f"{small} : {small.type} -> {tile('i8', (N // 2,))}", "i8", (N // 2,), packed,
                        f"of ftof {s}")
                p.uses("ftof", t)
            else:
                p.apply("ftof", (s, t), text, t, (N,), want, how.strip(), inputs=[a], where=where)
    q = Program(f"ftoi.{s}")
    if s == "f4E2M1FN":
        packed = q.load("i8", a[0::2] | a[1::2] << 4)
        x = q.value(f"unpack {packed} : {packed.type} -> {tile(s, (N,))}", s, (N,))
    else:
        x = q.load(s, a)
    zero = {"f8E8M0FNU": 1.0}.get(s, 0.0)
    for t in F.INTS:
        for signed in ("signed", "unsigned"):
            bits = F.BITS[t]
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed == "signed" else (0, (1 << bits) - 1)
            # A boolean asks whether the number is not zero; nothing of it is out of range.
            whole = [e != 0 for e in v.tolist()] if t == "i1" else [0 if e != e else high if e == F.inf else low if e == -F.inf else min(max(int(e), low), high) for e in v.tolist()]
            want = F.bits_of(t, whole)
            text = f"{x} {signed} saturating : {x.type} -> {tile(t, (N,))}"
            q.apply("ftoi", (s, t), text, t, (N,), want, f"{signed} saturating", inputs=[a])
            # Out of range is undefined otherwise: the evaluator gets only values that fit.
            fits = np.array([t == "i1" or e == e and abs(e) != F.inf and low <= int(e) <= high for e in v.tolist()])
            text = f"{x} {signed} : {x.type} -> {tile(t, (N,))}"
            if s == "f4E2M1FN" or not fits.any():
                continue
            ok = q.load("i1", fits.astype(np.uint8))
            other = q.constant(s, zero, (N,))
            y = q.value(f"select {ok}, {x}, {other} : {ok.type}, {x.type}", s, (N,))
            want = F.bits_of(t, [w if f else int(zero) for w, f in zip(whole, fits)])
            q.apply("ftoi", (s, t), f"{y} {signed} : {x.type} -> {tile(t, (N,))}", t, (N,), want, signed, inputs=[a])
            q.uses("select", s)


def from_integers(s):
    p = Program(f"itof.{s}")
    a = F.operands(s, 1)[0]
    x = p.load(s, a)
    for t in F.EVERY_FLOAT:
        if t == "f8E8M0FNU" or (t == "f4E2M1FN" and Program.piece):
            continue
        for signed in ("signed", "unsigned"):
            numbers = F.integers(s, a, signed == "signed")
            want = np.array([F.encode(t, F.Fraction(n)) for n in numbers], F.carrier(t))
            text = f"{x} {signed} : {x.type} -> {tile(t, (N,))}"
            if t == "f4E2M1FN":
                small = p.value("itof " + text, t, (N,))
                packed = want[0::2] | want[1::2] << 4
                p.apply("pack", t, f"{small} : {small.type} -> {tile('i8', (N // 2,))}", "i8", (N // 2,), packed,
                        f"of itof {s}")
                p.uses("itof", t)
                continue
            where = np.array([n >= 0 for n in numbers]) if t == "f8E5M3FNU" else None
            p.apply("itof", (s, t), text, t, (N,), want, signed, inputs=[a], where=where)


def out_of_range(s):
    """Native code saturates where the evaluator refuses."""
    a = F.operands(s, 1)[0]
    v = F.values(s, a).tolist()
    p = Program(f"ftoi_native.{s}", devices=("cpu",))
    x = p.load(s, a)
    for t in F.INTS:
        for sign in ("signed", "unsigned"):
            bits = F.BITS[t]
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "signed" else (0, (1 << bits) - 1)
            if t == "i1":
                continue
            want = [0 if e != e else int(min(max(e, -(2.0**70)), 2.0**70)) for e in v]
            want = F.bits_of(t, [min(max(e, low), high) for e in want])
            p.apply("ftoi", (s, t), f"{x} {sign} : {x.type} -> {tile(t, (N,))}", t, (N,), want, f"{sign} anywhere", inputs=[a])


def build():
    for Program.piece in (None, 1, 4):
        for d in F.FLOATS:
            arithmetic(d)
            simple(d)
            transcendental(d)
            out_of_range(d)
        for d in F.EVERY_FLOAT:
            if d != "f4E2M1FN" or not Program.piece:
                conversions(d)
        for d in F.INTS:
            from_integers(d)
    Program.piece = None
