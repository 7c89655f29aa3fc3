"""Operations that move elements or make them: on every element type."""

import numpy as np

from . import formats as F
from .program import Program, Tile, tile


def move(d):
    p = Program(f"move.{d}")
    a, b = F.random_bits(d, 32).reshape(4, 8), F.random_bits(d, 32).reshape(4, 8)
    x, y = p.load_any(d, a, (4, 8)), p.load_any(d, b, (4, 8))
    row, column = p.load_any(d, a[:1], (1, 8)), p.load_any(d, a[:, :2].reshape(4, 2, 1), (4, 2, 1))
    c = (np.arange(32).astype(F.carrier(d)) if F.is_int(d) and d != "i1" else a).reshape(2, 4, 4)
    cube = p.load_any(d, c, (2, 4, 4))
    p.apply("broadcast", d, f"{row} : {row.type} -> {tile(d, (4, 8))}", d, (4, 8), np.broadcast_to(a[:1], (4, 8)), "rows")
    p.apply("broadcast", d, f"{column} : {column.type} -> {tile(d, (4, 2, 8))}", d, (4, 2, 8),
            np.broadcast_to(a[:, :2].reshape(4, 2, 1), (4, 2, 8)), "columns")
    for dim in (0, 1):
        want = np.concatenate([a, b], dim)
        p.apply("cat", d, f"{x}, {y} dim = {dim} : {x.type}, {y.type} -> {tile(d, want.shape)}", d, want.shape, want, f"dim {dim}")
    i, j = p.scalar("i32", 1), p.scalar("i32", 2)
    p.apply("extract", d, f"{x}[{i}, {j}] : {x.type} -> {tile(d, (2, 2))}", d, (2, 2), a[2:4, 4:6])
    part = p.load_any(d, b[:2, :2], (2, 2))
    want = a.copy()
    want[2:4, 4:6] = b[:2, :2]
    p.apply("insert", d, f"{part}, {x}[{i}, {j}] : {part.type}, {x.type}", d, (4, 8), want)
    p.apply("reshape", d, f"{x} : {x.type} -> {tile(d, (2, 2, 8))}", d, (2, 2, 8), a)
    p.apply("permute", d, f"{x} [1, 0] : {x.type} -> {tile(d, (8, 4))}", d, (8, 4), a.T, "2-D")
    p.apply("permute", d, f"{cube} [2, 0, 1] : {cube.type} -> {tile(d, (4, 2, 4))}", d, (4, 2, 4),
            c.transpose(2, 0, 1), "3-D")
    exact = a & np.uint32(0xFFFFE000) if d == "tf32" else a
    text = [[str(v) if F.is_int(d) else f"0x{v >> (13 if d == 'tf32' else 0):x}" for v in r] for r in exact.tolist()]
    text = "[" + ", ".join("[" + ", ".join(r) + "]" for r in text) + "]"
    p.apply("constant", d, f"<{d}: {text}> : {tile(d, (4, 8))}", d, (4, 8), exact, "list")
    number = "true" if d == "i1" else "-3" if F.is_int(d) else "1.0" if d == "f8E8M0FNU" else "1.5"
    want = F.bits_of(d, [1 if d == "i1" else -3 if F.is_int(d) else float(number)] * 8)
    p.apply("constant", d, f"<{d}: {number}> : {tile(d, (8,))}", d, (8,), want, "one number")
    if d != "f4E2M1FN":
        m = F.random_bits("i1", 32)
        mask = p.load("i1", m, (4, 8))
        p.apply("select", d, f"{mask}, {x}, {y} : {mask.type}, {x.type}", d, (4, 8), np.where(m.reshape(4, 8), a, b))
        one = p.load(d, a[0, :1], ())
        p.apply("select", d, f"{p.scalar('i1', 'false')}, {one}, {one} : tile<i1>, {one.type}", d, (), a[0, 0], "scalar")
    if F.BITS[d] != 8:
        flat = p.load_any(d, a, (32,)) if d != "f4E2M1FN" else p.value(f"reshape {x} : {x.type} -> {tile(d, (32,))}", d, (32,))
        n = 32 * F.BITS[d] // 8
        if F.BITS[d] > 8:
            want = np.ravel(a).view(np.uint8)
        elif d == "i1":
            want = np.packbits(np.ravel(a), bitorder="little")
        else:
            want = np.ravel(a)[0::2] | np.ravel(a)[1::2] << 4
        packed = p.apply("pack", d, f"{flat} : {flat.type} -> {tile('i8', (n,))}", "i8", (n,), want)
        p.apply("unpack", d, f"{packed} : {packed.type} -> {tile(d, (32,))}", d, (32,), a)
    p.apply("internal$optimization_barrier", d, f"{x} : {x.type}", d, (4, 8), a)


def bitcasts():
    for bits in (8, 16, 32, 64):
        kinds = [d for d in F.NUMBERS if F.BITS[d] == bits]
        for s in kinds:
            p = Program(f"bitcast.{s}")
            a = F.random_bits(s, 64)
            x = p.load(s, a)
            for t in kinds:
                p.apply("bitcast", (s, t), f"{x} : {x.type} -> {tile(t, (64,))}", t, (64,), a)
    p = Program("bitcast.small")
    a = F.random_bits("i1", 8)
    x = p.load("i1", a)
    p.apply("bitcast", "i1", f"{x} : {x.type} -> {x.type}", "i1", (8,), a)
    a = F.random_bits("f4E2M1FN", 8)
    x = p.load_any("f4E2M1FN", a, (8,))
    p.apply("bitcast", "f4E2M1FN", f"{x} : {x.type} -> {x.type}", "f4E2M1FN", (8,), a)


def made():
    p = Program("iota")
    for d in F.INTS:
        n = min(256, 1 << F.BITS[d])
        p.apply("iota", d, f": {tile(d, (n,))}", d, (n,), np.arange(n))


def pointers():
    """Addresses move like numbers do."""
    p = Program("pointers")
    for d in F.NUMBERS:
        if d == "f4E2M1FN":
            continue
        a = F.random_bits(d, 16)
        base = p.buffer(d, a)
        at = p.places(base, (16,))
        p.uses("offset", d)

        def read(at, want, name):
            v = Tile(p.fresh(), d, at.shape)
            p.line(f"{v}, {v}t = load_ptr_tko weak {at} : {at.type} -> {v.type}, token")
            p.expect(f"{name} ptr<{d}>", v, want)

        n = p.value(f"ptr_to_int {at} : {at.type} -> tile<16xi64>", "i64", (16,))
        back = p.value(f"int_to_ptr {n} : {n.type} -> {at.type}", at.dtype, (16,))
        read(back, a, "int_to_ptr of ptr_to_int")
        first = p.value(f"extract {n}[{p.constant('i32', 0)}] : {n.type} -> tile<1xi64>", "i64", (1,))
        spread = p.value(f"broadcast {first} : tile<1xi64> -> tile<16xi64>", "i64", (16,))
        step = p.value(f"subi {n}, {spread} : tile<16xi64>", "i64", (16,))
        size = F.BITS[d] // 8 or 1
        p.expect(f"ptr_to_int ptr<{d}>", step, np.arange(16) * size)
        as_bytes = p.value(f"ptr_to_ptr {at} : {at.type} -> tile<16xptr<i8>>", "ptr<i8>", (16,))
        v = Tile(p.fresh(), "i8", (16,))
        p.line(f"{v}, {v}t = load_ptr_tko weak {as_bytes} : {as_bytes.type} -> {v.type}, token")
        p.expect(f"ptr_to_ptr ptr<{d}>", v, np.ascontiguousarray(a).view(np.uint8)[::size])
        p.uses("ptr_to_int", d), p.uses("int_to_ptr", d), p.uses("ptr_to_ptr", d)
        for i in F.INTS[1:]:
            end = p.spread(p.value(f"offset {base}, {p.constant('i32', 15)} : {base.type}, tile<i32> -> {base.type}", base.dtype), (8,))
            by = F.bits_of(i, [0, -1, -2, -3, -15, -7, 0, -4])
            o = p.load(i, by)
            there = p.value(f"offset {end}, {o} : {end.type}, {o.type} -> {end.type}", end.dtype, (8,))
            p.uses("offset", i)
            if d in ("f32", "i8", "f64"):
                read(there, a[[15 + j for j in F.integers(i, by)]], f"offset by {i} of")
    q = Program("pointers.moved")
    a = F.random_bits("i32", 8)
    at = q.places(q.buffer("i32", a), (8,))
    two = q.value(f"reshape {at} : {at.type} -> tile<2x4xptr<i32>>", at.dtype, (2, 4))
    turned = q.value(f"permute {two} [1, 0] : {two.type} -> tile<4x2xptr<i32>>", at.dtype, (4, 2))
    both = q.value(f"cat {turned}, {turned} dim = 1 : {turned.type}, {turned.type} -> tile<4x4xptr<i32>>", at.dtype, (4, 4))
    part = q.value(f"extract {both}[{q.scalar('i32', 1)}, {q.scalar('i32', 1)}] : {both.type} -> tile<2x2xptr<i32>>", at.dtype, (2, 2))
    m = F.bits_of("i1", [1, 0, 0, 1])
    other = q.places(q.buffer("i32", a[::-1]), (2, 2))
    chosen = q.value(f"select {q.load('i1', m, (2, 2))}, {part}, {other} : tile<2x2xi1>, {part.type}", at.dtype, (2, 2))
    v = Tile(q.fresh(), "i32", (2, 2))
    q.line(f"{v}, {v}t = load_ptr_tko weak {chosen} : {chosen.type} -> {v.type}, token")
    want = np.concatenate([a.reshape(2, 4).T] * 2, 1)[2:4, 2:4].ravel()
    q.expect("reshape, permute, cat, extract, select of pointers", v, np.where(m, want, a[::-1][:4]))


def grid():
    """Where a block stands."""
    p = Program("grid", grid="3,2,2")
    out = p.buffer("i32", bytes=12 * 6)
    p.line("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    p.line("%gx, %gy, %gz = get_num_tile_blocks : tile<i32>")
    p.uses("get_tile_block_id"), p.uses("get_num_tile_blocks")
    i = p.value("muli %bz, %gy : tile<i32>", "i32")
    i = p.value(f"addi {i}, %by : tile<i32>", "i32")
    i = p.value(f"muli {i}, %gx : tile<i32>", "i32")
    i = p.value(f"addi {i}, %bx : tile<i32>", "i32")
    i = p.value(f"muli {i}, {p.constant('i32', 6)} : tile<i32>", "i32")
    for k, name in enumerate(["%bx", "%by", "%bz", "%gx", "%gy", "%gz"]):
        at = p.value(f"addi {i}, {p.constant('i32', k)} : tile<i32>", "i32")
        to = p.value(f"offset {out}, {at} : {out.type}, tile<i32> -> {out.type}", out.dtype)
        p.line(f"store_ptr_tko weak {to}, {name} : {to.type}, tile<i32> -> token")
    p.check("block coordinates", out, "i32", [[x, y, z, 3, 2, 2] for z in range(2) for y in range(2) for x in range(3)])


def assumptions():
    p = Program("assume")
    for d in F.INTS:
        a = F.bits_of(d, [0] * 8 if d == "i1" else [8, 9, 10, 11, 16, 17, 18, 19])
        x = p.load(d, a)
        every = "div_by<8, every 4 along 0>" if d != "i1" else "div_by<1>"
        for fact in (every, "same_elements<[1]>", "bounded<?, ?>", "bounded<0, ?>" if d == "i1" else "bounded<8, 19>"):
            p.apply("assume", d, f"{fact}, {x} : {x.type}", d, (8,), a, fact)
    base = p.buffer("f32", np.zeros(4, np.uint32))
    b = p.value(f"assume div_by<16>, {base} : {base.type}", base.dtype)
    at = p.places(b, (4,))
    v = Tile(p.fresh(), "f32", (4,))
    p.line(f"{v}, {v}t = load_ptr_tko weak {at} : {at.type} -> {v.type}, token")
    p.expect("assume of a pointer", v, np.zeros(4))


def build():
    for d in F.NUMBERS:
        move(d)
    bitcasts()
    made()
    pointers()
    grid()
    assumptions()
