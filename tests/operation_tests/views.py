"""Tensor views and the tiles cut from them: partition, strided, gather and scatter; partial edges, padding, dim_map."""

import numpy as np

from . import formats as F
from .program import Program, Tile, tile

ROWS, COLUMNS = 6, 10
FILL = {"zero": 0.0, "neg_zero": -0.0, "nan": F.nan, "pos_inf": F.inf, "neg_inf": -F.inf}


def padding_bits(d, word):
    return 0 if word == "zero" or F.is_int(d) else F.encode(d, FILL[word])


def cut(array, size, start, dims, fill):
    """The tile at `start` (one number, or a list, per tile dimension) along tensor dimensions `dims`."""
    out = np.full(size, fill, array.dtype)
    for t in np.ndindex(*size):
        at = [0] * len(size)
        for d, (s, i) in enumerate(zip(start, t)):
            at[dims[d]] = s[i] if isinstance(s, list) else s + i
        if all(a < n for a, n in zip(at, array.shape)):
            out[t] = array[tuple(at)]
    return out


def paste(array, tile, start, dims):
    for t in np.ndindex(*tile.shape):
        at = [0] * tile.ndim
        for d, (s, i) in enumerate(zip(start, t)):
            at[dims[d]] = s[i] if isinstance(s, list) else s + i
        if all(a < n for a, n in zip(at, array.shape)):
            array[tuple(at)] = tile[t]


def dynamic_tensor(p, d, base, index):
    """A view of ROWS x COLUMNS whose extents and a stride come at launch."""
    m, n = p.scalar(index, ROWS), p.scalar(index, COLUMNS)
    ty = f"tensor_view<?x?x{d}, strides=[?,1]>"
    t = p.fresh()
    p.line(f"{t} = make_tensor_view {base}, shape = [{m}, {n}], strides = [{n}, 1] : tile<{index}> -> {ty}")
    return t, ty


def static_tensor(p, d, base, shape=(ROWS, COLUMNS), strides=None):
    strides = strides or (shape[1], 1)
    s, r = ", ".join(map(str, shape)), ", ".join(map(str, strides))
    ty = f"tensor_view<{shape[0]}x{shape[1]}x{d}, strides=[{strides[0]},{strides[1]}]>"
    t = p.fresh()
    p.line(f"{t} = make_tensor_view {base}, shape = [{s}], strides = [{r}] : {ty}")
    return t, ty


def packed(d, bits):
    flat = np.ravel(bits)
    return (flat[0::2] | flat[1::2] << 4).astype(np.uint8) if d == "f4E2M1FN" else flat


def buffer(p, d, bits):
    return p.buffer(d, packed(d, bits))


def variants(d):
    """(name, kind of view, tile, distance of tiles, dim_map, padding)"""
    yield "partition", "partition", (4, 8), (4, 8), (0, 1), "zero"
    for pad in FILL:
        if not F.is_int(d) and pad != "zero" and not (d == "f4E2M1FN" and pad == "nan"):
            yield f"partition {pad}", "partition", (4, 8), (4, 8), (0, 1), pad
    if d in ("f4E2M1FN",):
        return
    yield "partition dim_map", "partition", (8, 4), (8, 4), (1, 0), "zero"
    yield "strided", "strided", (4, 8), (3, 5), (0, 1), "zero"
    yield "strided dim_map", "strided", (2, 4), (5, 3), (1, 0), "zero"


def loads(d):
    p = Program(f"load_view.{d}", grid="2,2")
    a = F.random_bits(d, ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    base = buffer(p, d, a)
    p.line("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    p.uses("load_view_tko", d), p.uses("make_tensor_view", d), p.uses("make_partition_view", d), p.uses("make_strided_view", d)
    p.uses("store_view_tko", d)
    orders = ["weak", "relaxed device", "acquire sys"]
    for k, (name, kind, size, step, dims, pad) in enumerate(variants(d)):
        t, ty = static_tensor(p, d, base) if k % 2 or d == "f4E2M1FN" else dynamic_tensor(p, d, base, ("i32", "i64", "i16")[k % 3])
        mapped = f", dim_map=[{dims[0]}, {dims[1]}]" if dims != (0, 1) else ""
        stride = f" traversal_strides=[{step[0]},{step[1]}]," if kind == "strided" else ""
        view = f"{kind}_view<tile=({size[0]}x{size[1]}),{stride} padding_value = {pad}, {ty}{mapped}>"
        v, x = p.fresh(), Tile(p.fresh(), d, size)
        p.line(f"{v} = make_{kind}_view {t} : {view}")
        p.line(f"{x}, {x}t = load_view_tko {orders[k % 3]} {v}[%bx, %by] : {view}, tile<i32> -> {x.type}, token")
        whole = (2 * size[0], 2 * size[1])
        out = p.buffer(d, bytes=whole[0] * whole[1] // (2 if d == "f4E2M1FN" else 1))
        o, oty = static_tensor(p, d, out, whole)
        w = p.fresh()
        oview = f"partition_view<tile=({size[0]}x{size[1]}), {oty}>"
        p.line(f"{w} = make_partition_view {o} : {oview}")
        p.line(f"{p.fresh()} = store_view_tko weak {x}, {w}[%bx, %by] : {x.type}, {oview}, tile<i32> -> token")
        want = np.zeros(whole, a.dtype)
        for i in range(2):
            for j in range(2):
                want[i * size[0] : (i + 1) * size[0], j * size[1] : (j + 1) * size[1]] = cut(
                    a, size, (i * step[0], j * step[1]), dims, padding_bits(d, pad))
        case_want = packed(d, want)
        if d == "f4E2M1FN":
            p.check(f"load_view_tko {name} {d}", out, d, want)
        else:
            p.check(f"load_view_tko {name} {d}", out, d, case_want)


def stores(d):
    p = Program(f"store_view.{d}", grid="2,2")
    p.line("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    orders = ["weak", "relaxed device", "release sys"]
    before = F.random_bits(d, ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    four = d == "f4E2M1FN"
    ways = [("partition", (4, 8), (4, 8), (0, 1))]
    if not four:
        ways += [("partition", (8, 4), (8, 4), (1, 0)), ("strided", (2, 4), (3, 5), (0, 1))]
    for k, (kind, size, step, dims) in enumerate(ways):
        b = F.random_bits(d, size[0] * size[1]).reshape(size)
        x = p.load_any(d, b, size)
        to = buffer(p, d, before)
        t, ty = static_tensor(p, d, to) if k % 2 or four else dynamic_tensor(p, d, to, "i32")
        mapped = f", dim_map=[{dims[0]}, {dims[1]}]" if dims != (0, 1) else ""
        stride = f" traversal_strides=[{step[0]},{step[1]}]," if kind == "strided" else ""
        view = f"{kind}_view<tile=({size[0]}x{size[1]}),{stride} {ty}{mapped}>"
        v = p.fresh()
        p.line(f"{v} = make_{kind}_view {t} : {view}")
        p.line(f"{p.fresh()} = store_view_tko {orders[k]} {x}, {v}[%bx, %by] : {x.type}, {view}, tile<i32> -> token")
        want = before.copy()
        for i in range(2):
            for j in range(2):
                paste(want, b, (i * step[0], j * step[1]), dims)
        p.check(f"store_view_tko {kind}{mapped} {d}", to, d, want)


def gathers(d):
    """Rows and columns picked by an index tile; positions outside are padded, and dropped when stored."""
    p = Program(f"gather_scatter.{d}")
    p.uses("make_gather_scatter_view", d)
    a = F.random_bits(d, ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    base = buffer(p, d, a)
    for sparse, size, picks in [(0, (4, 8), [5, 0, 3, 77]), (1, (4, 8), [9, 1, 2, 50, 4, 0, 7, 6])]:
        if d == "f4E2M1FN" and sparse == 1:
            continue
        index, other = p.load("i32", F.bits_of("i32", picks)), p.scalar("i32", 3)
        t, ty = static_tensor(p, d, base)
        view = f"gather_scatter_view<tile=(4x8), padding_value = zero, {ty}, sparse_dim={sparse}>"
        v, x = p.fresh(), Tile(p.fresh(), d, size)
        places = f"{index}, {other}" if sparse == 0 else f"{other}, {index}"
        types = "tile<4xi32>, tile<i32>" if sparse == 0 else "tile<i32>, tile<8xi32>"
        p.line(f"{v} = make_gather_scatter_view {t} : {view}")
        p.line(f"{x}, {x}t = load_view_tko weak {v}[{places}] : {view}, {types} -> {x.type}, token")
        start = (picks, 3) if sparse == 0 else (3, picks)
        p.expect(f"load_view_tko gather_scatter sparse_dim={sparse} {d}", x, cut(a, size, start, (0, 1), 0))
        b = F.random_bits(d, 32).reshape(size)
        y, to = p.load_any(d, b, size), buffer(p, d, a)
        t, ty = static_tensor(p, d, to)
        v = p.fresh()
        p.line(f"{v} = make_gather_scatter_view {t} : {view}")
        p.line(f"{p.fresh()} = store_view_tko weak {y}, {v}[{places}] : {y.type}, {view}, {types} -> token")
        want = a.copy()
        paste(want, b, start, (0, 1))
        p.check(f"store_view_tko gather_scatter sparse_dim={sparse} {d}", to, d, want)
        if d != "f4E2M1FN":
            to = buffer(p, d, a)
            t, ty = static_tensor(p, d, to)
            p.line(f"{p.fresh()} = experimental$scatter_store {y}, {t}, {index}, [{other}] <{{dim = {sparse} : i64}}> : {y.type}, {ty}, {index.type}, tile<i32> -> token")
            p.check(f"experimental$scatter_store dim {sparse} {d}", to, d, want)
            p.uses("experimental$scatter_store", d)


def extents():
    p = Program("extents")
    base = p.buffer("f32", np.zeros(60, np.uint32))
    p.uses("get_tensor_shape"), p.uses("get_index_space_shape")
    for index in ("i32", "i64", "i16"):
        t, ty = dynamic_tensor(p, "f32", base, index)
        for out in ("i32", "i64", "i8"):
            r = p.fresh()
            p.line(f"{r}:2 = get_tensor_shape {t} : {ty} -> tile<{out}>")
            for i, n in enumerate((ROWS, COLUMNS)):
                p.expect(f"get_tensor_shape {index} {out} {i}", Tile(f"{r}#{i}", out, ()), n)
        for kind, text, want in [
            ("partition", f"partition_view<tile=(4x8), {ty}>", (2, 2)),
            ("partition", f"partition_view<tile=(4x8), {ty}, dim_map=[1, 0]>", (3, 1)),
            ("strided", f"strided_view<tile=(4x2), traversal_strides=[4,3], {ty}>", (2, 4)),
            ("strided", f"strided_view<tile=(4x2), traversal_strides=[4,3], {ty}, dim_map=[1, 0]>", (3, 2)),
        ]:
            v, r = p.fresh(), p.fresh()
            p.line(f"{v} = make_{kind}_view {t} : {text}")
            p.line(f"{r}:2 = get_index_space_shape {v} : {text} -> tile<i32>")
            for i, n in enumerate(want):
                p.expect(f"get_index_space_shape {text.split(',')[0]} {want} {index} {i}", Tile(f"{r}#{i}", "i32", ()), n)
    big = "tensor_view<64x16xf32, strides=[16,1]>"
    p.line(f"%big = make_tensor_view {base}, shape = [64, 16], strides = [16, 1] : {big}")
    for dims, want in [("", (16, 6)), (", dim_map=[1, 0]", (4, 22))]:
        text = f"strided_view<tile=(4x2), traversal_strides=[4,3], {big}{dims}>"
        v, r = p.fresh(), p.fresh()
        p.line(f"{v} = make_strided_view %big : {text}")
        p.line(f"{r}:2 = get_index_space_shape {v} : {text} -> tile<i32>")
        for i, n in enumerate(want):
            p.expect(f"get_index_space_shape strided{dims} {i}", Tile(f"{r}#{i}", "i32", ()), n)


def layouts():
    """Ranks 0, 1 and 3, column-major memory, every index type."""
    p = Program("view_layouts")
    a = F.random_bits("i32", 60)
    base = p.buffer("i32", a)
    p.line(f"%t0 = make_tensor_view {base}, shape = [], strides = [] : tensor_view<i32>")
    t, ty = static_tensor(p, "i32", base, (10, 6), (1, 10))
    view = f"partition_view<tile=(8x4), padding_value = zero, {ty}>"
    p.line(f"%cv = make_partition_view {t} : {view}")
    for index in F.INTS[1:]:
        i, j, x = p.constant(index, 1), p.constant(index, 0), Tile(p.fresh(), "i32", (8, 4))
        p.line(f"{x}, {x}t = load_view_tko weak %cv[{i}, {j}] inbounds = [false, true] : {view}, tile<{index}> -> {x.type}, token")
        p.expect(f"load_view_tko column-major index {index}", x, cut(a.reshape(6, 10).T, (8, 4), (8, 0), (0, 1), 0))
    cube = "tensor_view<3x4x5xi32, strides=[20,5,1]>"
    view = f"partition_view<tile=(2x4x4), padding_value = zero, {cube}, dim_map=[2, 0, 1]>"
    p.line(f"%t3 = make_tensor_view {base}, shape = [3, 4, 5], strides = [20, 5, 1] : {cube}")
    p.line(f"%cubes = make_partition_view %t3 : {view}")
    i = [p.constant("i32", k) for k in (2, 0, 0)]
    x = Tile(p.fresh(), "i32", (2, 4, 4))
    p.line(f"{x}, {x}t = load_view_tko weak %cubes[{i[0]}, {i[1]}, {i[2]}] optimization_hints = <sm_100 = {{allow_tma = false}}> : {view}, tile<i32> -> {x.type}, token")
    p.expect("load_view_tko rank 3 dim_map", x, cut(a.reshape(3, 4, 5), (2, 4, 4), (4, 0, 0), (2, 0, 1), 0))
    line = "tensor_view<?xi32, strides=[?]>"
    p.line(f"%t1 = make_tensor_view {base}, shape = [{p.scalar('i32', 13)}], strides = [{p.scalar('i32', 3)}] : tile<i32> -> {line}")
    view = f"strided_view<tile=(8), traversal_strides=[3], padding_value = zero, {line}>"
    p.line(f"%lines = make_strided_view %t1 : {view}")
    x = Tile(p.fresh(), "i32", (8,))
    p.line(f"{x}, {x}t = load_view_tko weak %lines[{p.constant('i32', 2)}] : {view}, tile<i32> -> {x.type}, token")
    p.expect("load_view_tko rank 1 strided", x, cut(a[:39:3], (8,), (6,), (0,), 0))


def build():
    for d in F.NUMBERS:
        loads(d)
        stores(d)
        gathers(d)
    extents()
    layouts()
