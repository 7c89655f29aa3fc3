"""reduce and scan: recognised bodies, bodies that are not associative, several operands, every dimension and direction,
lines of NaNs and infinities.

A fold starts from its first element. Some identities below are none for their body, to show that they take no part.
Sums of floats are of small integers and products of powers of two, which every order computes exactly."""

import numpy as np

from . import formats as F
from .program import Program, Tile, tile

SHAPE = (4, 8, 2)


def fold(op, values, dim, body, reverse=False):
    """The outputs: lists of bits. `body(elements and accumulators, in pairs)` gives the new accumulators as bits."""
    arrays = [np.moveaxis(v, dim, 0) for v in values]
    n = arrays[0].shape[0]
    outs = [np.zeros_like(a) for a in arrays]
    for k in range(n):
        at = n - 1 - k if reverse else k
        acc = [a[at] for a in arrays] if k == 0 else body(*[x for pair in zip([a[at] for a in arrays], acc) for x in pair])
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
                    (want,) = fold(op, [a], dim, body, reverse)
                    p.expect(f"{op} {name}{suffix} dim={dim}{' reverse' * reverse} {d}", r, want)


def pattern(d, x):
    """A float as the text of its bits."""
    return f"0x{F.encode(d, x):0{F.BITS[d] // 4}X}"


def float_bodies(d):
    def exact(op):
        return lambda e, a: [F.arithmetic(op, d, [e.ravel(), a.ravel()])["nearest_even"].reshape(e.shape)]

    def extremum(f):
        return lambda e, a: [F.bits_of(d, f(F.values(d, e), F.values(d, a)).ravel().tolist()).reshape(e.shape)]

    yield "addf", "", "0.0", exact("add"), "small"
    yield "mulf", "", "1.0", exact("mul"), "powers"
    yield "maxf", "", pattern(d, -F.inf), extremum(np.fmax), "any"
    yield "minf", "", pattern(d, F.inf), extremum(np.fmin), "any"
    yield "maxf", " propagate_nan", pattern(d, -F.inf), extremum(np.maximum), "any"
    # Neither commutative nor associative: the order shows.
    yield "subf", "", "0.5", exact("sub"), "any"
    yield "divf", "", "1.5", exact("div"), "any"


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
        for name, suffix, identity, body, which in float_bodies(d):
            for dim in range(3):
                for reverse in (False, True) if op == "scan" else (False,):
                    (r,) = emit(p, op, [tiles[which]], dim, [identity], simple(name, d, suffix), reverse)
                    (want,) = fold(op, [data[which]], dim, body, reverse)
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
            wants = fold(op, [a, i], dim, body)
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
                wants = fold(op, [u, v], dim, mixed_body, reverse)
                for k, (o, w) in enumerate(zip(outs, wants)):
                    p.expect(f"{op} two operands dim={dim}{' reverse' * reverse} {k}", o, w)


def special_lines(n):
    """Lines of NaNs, of infinities, and of these among numbers, each at the front, at the back and everywhere."""
    numbers = F.rng.integers(-9, 10, n).astype(float)
    lines = [numbers]
    for x in (F.nan, -F.inf, F.inf):
        lines.append(np.full(n, x))
        for y in (F.nan, -F.inf, F.inf, -3.0):
            for k in (0, n // 2, n - 1):
                lines.append(np.where(np.arange(n) == k, y, x))
        lines.append(np.where(F.rng.random(n) < 0.5, x, numbers))
    lines += [np.full(n, -0.0)] * (64 - len(lines))
    return np.array(lines)


def place(greatest, nans_win):
    """The body that cuTile emits for argmax and argmin, and the same in NumPy."""

    def text(p, args):
        e, a, ei, ai = args
        d = "DTYPE"
        names = [p.fresh() for _ in range(14)]
        win, equal, enan, anan, alone, won, both, same, less, tied, take, v, w, fine = names
        way = "greater_than" if greatest else "less_than"
        better, fine_of = (enan, a) if nans_win else (anan, e)
        lines = [
            f"{win} = cmpf {way} ordered {e}, {a} : tile<{d}> -> tile<i1>",
            f"{equal} = cmpf equal ordered {e}, {a} : tile<{d}> -> tile<i1>",
            f"{enan} = cmpf not_equal unordered {e}, {e} : tile<{d}> -> tile<i1>",
            f"{anan} = cmpf not_equal unordered {a}, {a} : tile<{d}> -> tile<i1>",
            f"{fine} = cmpf equal ordered {fine_of}, {fine_of} : tile<{d}> -> tile<i1>",
            f"{alone} = andi {better}, {fine} : tile<i1>",
            f"{won} = ori {win}, {alone} : tile<i1>",
            f"{both} = andi {enan}, {anan} : tile<i1>",
            f"{same} = ori {equal}, {both} : tile<i1>",
            f"{less} = cmpi less_than {ei}, {ai}, signed : tile<i32> -> tile<i1>",
            f"{tied} = andi {same}, {less} : tile<i1>",
            f"{take} = ori {won}, {tied} : tile<i1>",
            f"{v} = select {take}, {e}, {a} : tile<i1>, tile<{d}>",
            f"{w} = select {take}, {ei}, {ai} : tile<i1>, tile<i32>",
        ]
        return lines, [v, w]

    def first(x):
        """Where the best element of the last axis is: the first of equals, of NaNs too."""
        fill = F.inf if nans_win == greatest else -F.inf
        rank = np.where(np.isnan(x), fill, np.clip(x, -100, 100))
        return (np.argmax if greatest else np.argmin)(rank, -1).astype(np.uint32)

    return text, first


def special(d):
    """The greatest and least of lines with NaNs and infinities, at every length, and where they are."""
    for n in (1, 2, 4, 8, 32, 256):
        p = Program(f"reduce.special.{d}.{n}")
        lines = special_lines(n)
        for dim in (0, 1):
            numbers = lines if dim else lines.T.copy()
            a = F.bits_of(d, numbers.ravel().tolist()).reshape(numbers.shape)
            at = np.broadcast_to(np.arange(n, dtype=np.uint32) if dim else np.arange(n, dtype=np.uint32)[:, None], a.shape)
            x, y = p.load(d, a), p.load("i32", at.copy())
            with np.errstate(all="ignore"):
                for op, suffix, start, best in [
                    ("maxf", "", -F.inf, np.fmax), ("minf", "", F.inf, np.fmin),
                    ("maxf", " propagate_nan", -F.inf, np.maximum), ("minf", " propagate_nan", F.inf, np.minimum),
                ]:  # fmt: skip
                    for flush in ("", " flush_to_zero") if d == "f32" else ("",):
                        body = simple(op, d, (" flush_to_zero" if flush else "") + suffix)
                        what = f"{op}{suffix}{flush} dim={dim} {d} of {n}"
                        (r,) = emit(p, "reduce", [x], dim, [pattern(d, start)], body)
                        p.expect(f"reduce {what}", r, F.bits_of(d, best.reduce(numbers, dim).tolist()))
                        if n > 8:
                            continue
                        (r,) = emit(p, "scan", [x], dim, [pattern(d, start)], body)
                        want = F.bits_of(d, best.accumulate(numbers, dim).ravel().tolist()).reshape(numbers.shape)
                        p.expect(f"scan {what}", r, want)
                for greatest in (False, True):
                    for nans_win in (False, True):
                        text, first = place(greatest, nans_win)
                        typed = lambda p, args: [[t.replace("DTYPE", d) for t in part] for part in text(p, args)]
                        ids = [pattern(d, -F.inf if greatest else F.inf), "0"]
                        _, r = emit(p, "reduce", [x, y], dim, ids, typed)
                        what = f"{'argmax' if greatest else 'argmin'}{' propagate_nan' * nans_win} dim={dim} {d} of {n}"
                        p.expect(f"reduce {what}", r, first(numbers if dim else numbers.T))


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
        special(d)
    long_lines()
    several()
    moved_only()
