"""reduce and scan: recognised bodies, bodies that are not associative, several operands, every dimension and direction.

Sums of floats are of small integers and products of powers of two, which every order computes exactly."""

import numpy as np

from . import formats as F
from .program import Program, Tile, tile

SHAPE = (4, 8, 2)


def fold(op, dtypes, values, dim, identities, body, reverse=False):
    """The outputs: lists of bits. `body(elements and accumulators, in pairs)` gives the new accumulators as bits."""
    arrays = [np.moveaxis(v, dim, 0) for v in values]
    n = arrays[0].shape[0]
    outs = [np.zeros_like(a) for a in arrays]
    acc = [np.full(a.shape[1:], i, a.dtype) for a, i in zip(arrays, identities)]
    for k in range(n):
        at = n - 1 - k if reverse else k
        acc = body(*[x for pair in zip([a[at] for a in arrays], acc) for x in pair])
        for o, a in zip(outs, acc):
            o[at] = a
    return [np.moveaxis(o, 0, dim) for o in outs] if op == "scan" else acc


def emit(p, op, operands, dim, identities, text, reverse=False):
    """`text(names of the arguments)` gives body lines and yields; identities are texts."""
    n = len(operands)
    args = [f"%{p.fresh()[1:]}_{w}" for _ in operands for w in ("e", "a")]
    typed = ", ".join(f"{a}: tile<{operands[i // 2].dtype}>" for i, a in enumerate(args))
    shape = operands[0].shape if op == "scan" else operands[0].shape[:dim] + operands[0].shape[dim + 1 :]
    outs = [Tile("", o.dtype, shape) for o in operands]
    r = p.fresh()
    way = f" reverse={'true' if reverse else 'false'}" if op == "scan" else ""
    ids = ", ".join(f"{i} : {o.dtype}" for i, o in zip(identities, operands))
    p.line(f"{r}{':%d' % n if n > 1 else ''} = {op} {', '.join(map(str, operands))} dim={dim}{way} identities=[{ids}] : "
           f"{', '.join(o.type for o in operands)} -> {', '.join(o.type for o in outs)} ({typed}) {{")
    lines, yields = text(p, args)
    for line in lines:
        p.line("  " + line)
    p.line(f"  yield {', '.join(yields)} : {', '.join(f'tile<{o.dtype}>' for o in operands)}")
    p.line("}")
    for i, o in enumerate(outs):
        o.name = f"{r}#{i}" if n > 1 else r
    return outs


def simple(op, d, suffix=""):
    def text(p, args):
        r = p.fresh()
        return [f"{r} = {op} {args[0]}, {args[1]}{suffix} : tile<{d}>"], [r]

    return text


def integer_bodies(d):
    signed = lambda f: lambda e, a: [F.bits_of(d, [f(x, y) for x, y in zip(F.integers(d, e), F.integers(d, a))]).reshape(e.shape)]
    unsigned = lambda f: lambda e, a: [F.bits_of(d, [f(x, y) for x, y in zip(F.integers(d, e, False), F.integers(d, a, False))]).reshape(e.shape)]
    low, high = -(1 << F.BITS[d] - 1), (1 << F.BITS[d] - 1) - 1
    yield "addi", "", 0, signed(lambda x, y: x + y)
    yield "muli", "", 1, signed(lambda x, y: x * y)
    yield "andi", "", -1, signed(lambda x, y: x & y)
    yield "ori", "", 0, signed(lambda x, y: x | y)
    yield "xori", "", 0, signed(lambda x, y: x ^ y)
    yield "maxi", " signed", low, signed(max)
    yield "mini", " signed", high, signed(min)
    yield "maxi", " unsigned", 0, unsigned(max)
    yield "mini", " unsigned", -1, unsigned(min)
    yield "subi", "", 3 & high, signed(lambda x, y: x - y)


def number(d, n):
    return ("true" if n else "false") if d == "i1" else str(n)


def integers(d):
    a = F.random_bits(d, 64).reshape(SHAPE)
    for op in ("reduce", "scan"):
        p = Program(f"{op}.{d}")
        x = p.load(d, a)
        p.uses(op, d)
        for k, (name, suffix, identity, body) in enumerate(integer_bodies(d)):
            for dim in range(3) if name in ("addi", "subi", "maxi") else [k % 3]:
                for reverse in (False, True) if op == "scan" else (False,):
                    (r,) = emit(p, op, [x], dim, [number(d, identity)], simple(name, d, suffix), reverse)
                    start = [int(F.bits_of(d, [identity])[0])]
                    (want,) = fold(op, [d], [a], dim, start, body, reverse)
                    p.expect(f"{op} {name}{suffix} dim={dim}{' reverse' * reverse} {d}", r, want)


def float_bodies(d):
    def exact(op):
        return lambda e, a: [F.arithmetic(op, d, [e.ravel(), a.ravel()])["nearest_even"].reshape(e.shape)]

    def extremum(f):
        return lambda e, a: [F.bits_of(d, f(F.values(d, e), F.values(d, a)).ravel().tolist()).reshape(e.shape)]

    yield "addf", "", "0.0", 0.0, exact("add"), "small"
    yield "mulf", "", "1.0", 1.0, exact("mul"), "powers"
    yield "maxf", "", "0x" + {"f16": "FC00", "bf16": "FF80", "f32": "FF800000", "f64": "FFF0000000000000"}[d], -F.inf, extremum(np.fmax), "any"
    yield "minf", "", "0x" + {"f16": "7C00", "bf16": "7F80", "f32": "7F800000", "f64": "7FF0000000000000"}[d], F.inf, extremum(np.fmin), "any"
    yield "maxf", " propagate_nan", "0x" + {"f16": "FC00", "bf16": "FF80", "f32": "FF800000", "f64": "FFF0000000000000"}[d], -F.inf, extremum(np.maximum), "any"
    # Neither commutative nor associative: the order shows.
    yield "subf", "", "0.5", 0.5, exact("sub"), "any"
    yield "divf", "", "1.5", 1.5, exact("div"), "any"


def floats(d):
    data = {
        "small": F.bits_of(d, F.rng.integers(-8, 9, 64).astype(float).tolist()).reshape(SHAPE),
        "powers": F.bits_of(d, np.exp2(F.rng.integers(-1, 2, 64)).tolist()).reshape(SHAPE),
        "any": F.bits_of(d, [F.nan if k == 13 else x for k, x in enumerate(F.rng.standard_normal(64).tolist())]).reshape(SHAPE),
    }
    for op in ("reduce", "scan"):
        p = Program(f"{op}.{d}")
        p.uses(op, d)
        tiles = {k: p.load(d, a) for k, a in data.items()}
        for name, suffix, identity, start, body, which in float_bodies(d):
            for dim in range(3):
                for reverse in (False, True) if op == "scan" else (False,):
                    (r,) = emit(p, op, [tiles[which]], dim, [identity], simple(name, d, suffix), reverse)
                    (want,) = fold(op, [d], [data[which]], dim, [F.encode(d, start)], body, reverse)
                    p.expect(f"{op} {name}{suffix} dim={dim}{' reverse' * reverse} {d}", r, want)


def long_lines():
    """Lines longer than a vector, and sums that are not exact."""
    p = Program("reduce.long")
    a = F.rng.standard_normal((4, 1024)).astype(np.float32)
    x = p.load("f32", a.view(np.uint32))
    for dim in (0, 1):
        (r,) = emit(p, "reduce", [x], dim, ["0.0"], simple("addf", "f32"))
        k = a.shape[dim]
        want = F.bits_of("f32", a.astype(np.float64).sum(dim).tolist())
        p.expect(f"reduce addf f32 dim={dim} of {k}", r, want, within=4 * np.sqrt(k) * 2.0**-24 * np.sqrt(k))
    b = F.random_bits("i64", 4096).reshape(4, 1024)
    y = p.load("i64", b)
    (r,) = emit(p, "reduce", [y], 1, ["0"], simple("addi", "i64"))
    p.expect("reduce addi i64 of 1024", r, b.sum(1))
    (r,) = emit(p, "scan", [y], 1, ["0"], simple("addi", "i64"))
    p.expect("scan addi i64 of 1024", r, np.cumsum(b, 1))
    c = F.random_bits("i32", 1024)
    line = p.load("i32", c)
    (r,) = emit(p, "reduce", [line], 0, ["0"], simple("xori", "i32"))
    p.expect("reduce of a line to a scalar", r, np.bitwise_xor.reduce(c))


def several():
    """Two operands: the largest element and where it stands; a pair of sums that feed each other."""
    for op in ("reduce", "scan"):
        p = Program(f"{op}.several")
        a = F.bits_of("f32", F.rng.integers(-20, 20, 64).astype(float).tolist()).reshape(4, 16)
        i = np.broadcast_to(np.arange(16, dtype=np.uint32), (4, 16)).copy()
        x, y = p.load("f32", a), p.load("i32", i)

        def largest(p, args):
            e, a, ei, ai = args
            c, v, w = p.fresh(), p.fresh(), p.fresh()
            return [f"{c} = cmpf greater_than ordered {e}, {a} : tile<f32> -> tile<i1>",
                    f"{v} = select {c}, {e}, {a} : tile<i1>, tile<f32>",
                    f"{w} = select {c}, {ei}, {ai} : tile<i1>, tile<i32>"], [v, w]

        def body(e, a, ei, ai):
            c = F.values("f32", e) > F.values("f32", a)
            return [np.where(c, e, a), np.where(c, ei, ai)]

        for dim in (0, 1):
            outs = emit(p, op, [x, y], dim, ["0xFF800000", "-1"], largest)
            wants = fold(op, ["f32", "i32"], [a, i], dim, [0xFF800000, 0xFFFFFFFF], body)
            for name, o, w in zip(("values", "places"), outs, wants):
                p.expect(f"{op} argmax dim={dim} {name}", o, w)

        def mixed(p, args):
            e, a, f, b = args
            r, s, t = p.fresh(), p.fresh(), p.fresh()
            return [f"{r} = muli {a}, {f} : tile<i32>", f"{s} = addi {r}, {e} : tile<i32>", f"{t} = subi {s}, {b} : tile<i32>"], [s, t]

        def mixed_body(e, a, f, b):
            with np.errstate(all="ignore"):
                s = a * f + e
                return [s, s - b]

        u, v = F.random_bits("i32", 64).reshape(4, 16), F.random_bits("i32", 64).reshape(4, 16)
        tu, tv = p.load("i32", u), p.load("i32", v)
        for dim in (0, 1):
            for reverse in (False, True) if op == "scan" else (False,):
                outs = emit(p, op, [tu, tv], dim, ["7", "-2"], mixed, reverse)
                wants = fold(op, ["i32", "i32"], [u, v], dim, [7, 0xFFFFFFFE], mixed_body, reverse)
                for k, (o, w) in enumerate(zip(outs, wants)):
                    p.expect(f"{op} two operands dim={dim}{' reverse' * reverse} {k}", o, w)


def moved_only():
    """Bodies that only choose: any element type can be folded over."""
    for d in F.EVERY_FLOAT:
        if d in F.FLOATS or d == "f4E2M1FN":
            continue
        for op in ("reduce", "scan"):
            p = Program(f"{op}.{d}")
            p.uses(op, d)
            a = F.random_bits(d, 32).reshape(4, 8)
            x = p.load(d, a)
            (r,) = emit(p, op, [x], 1, ["1.0"], lambda p, args: ([], [args[0]]))
            p.expect(f"{op} keeping the element {d}", r, a if op == "scan" else a[:, -1])


def build():
    for d in F.INTS:
        integers(d)
    for d in F.FLOATS:
        floats(d)
    long_lines()
    several()
    moved_only()
