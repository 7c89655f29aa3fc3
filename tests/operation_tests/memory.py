"""Loads, stores and atomics through pointers; allocas, globals, tokens."""

import numpy as np

from . import formats as F
from .program import Program, Tile, tile

LOADS = ["weak"] + [f"{o} {s}" for o in ("relaxed", "acquire") for s in ("tl_blk", "device", "sys")]
STORES = ["weak"] + [f"{o} {s}" for o in ("relaxed", "release") for s in ("tl_blk", "device", "sys")]
ATOMICS = [f"{o} {s}" for o in ("relaxed", "acquire", "release", "acq_rel") for s in ("tl_blk", "device", "sys")]


def canonical(d, bits):
    """The value of a load: i1 is zero or one."""
    return (bits != 0).astype(np.uint8) if d == "i1" else bits


def through_pointers(d):
    p = Program(f"pointers.{d}")
    n = 16
    a, m, pad = F.random_bits(d, n), F.random_bits("i1", n), F.random_bits(d, n)
    order = F.rng.permutation(n).astype(np.uint32)
    base = p.buffer(d, a)
    at = p.places(base, (n,))
    mask, padding = p.load("i1", m), p.load(d, pad)
    index = p.load("i32", order)
    mixed = p.value(f"offset {p.spread(base, (n,))}, {index} : {at.type}, {index.type} -> {at.type}", at.dtype, (n,))
    x = p.load(d, a)
    p.uses("load_ptr_tko", d), p.uses("store_ptr_tko", d)
    for how in LOADS if d in ("i32", "f32") else ["weak", "relaxed device", "acquire sys"]:
        v = Tile(p.fresh(), d, (n,))
        p.line(f"{v}, {v}t = load_ptr_tko {how} {mixed}, {mask}, {padding} : {at.type}, {mask.type}, {x.type} -> {x.type}, token")
        p.expect(f"load_ptr_tko {how} {d}", v, np.where(m, a[order], pad))
    # Masked off without padding: the lanes are not looked at.
    v = Tile(p.fresh(), d, (n,))
    p.line(f"{v}, {v}t = load_ptr_tko weak {at}, {mask} : {at.type}, {mask.type} -> {x.type}, token")
    p.uses("select", d)
    chosen = p.value(f"select {mask}, {v}, {padding} : {mask.type}, {x.type}", d, (n,))
    p.expect(f"load_ptr_tko masked {d}", chosen, np.where(m, a, pad))
    for how in STORES if d in ("i32", "f32") else ["weak", "relaxed device", "release sys"]:
        to = p.buffer(d, pad)
        there = p.value(f"offset {p.spread(to, (n,))}, {index} : {at.type}, {index.type} -> {at.type}", at.dtype, (n,))
        t = p.fresh()
        p.line(f"{t} = store_ptr_tko {how} {there}, {x}, {mask} : {at.type}, {x.type}, {mask.type} -> token")
        want = pad.copy()
        want[order] = np.where(m, a, pad[order])
        p.check(f"store_ptr_tko {how} {d}", to, d, want)
    # One element, and tokens from store to load.
    to = p.buffer(d, pad)
    one = p.value(f"extract {x}[{p.constant('i32', 3)}] : {x.type} -> {tile(d, (1,))}", d, (1,))
    one = p.value(f"reshape {one} : {one.type} -> {tile(d, ())}", d, ())
    p.line(f"%s0 = store_ptr_tko weak {to}, {one} : {to.type}, {one.type} -> token")
    p.line(f"%r0, %r1 = load_ptr_tko weak {to} token = %s0 : {to.type} -> {one.type}, token")
    p.expect(f"store then load {d}", Tile("%r0", d, ()), a[3])


MODES = {
    "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "add": lambda x, y: x + y,
    "max": max, "min": min, "umax": max, "umin": min, "xchg": lambda x, y: y,
}  # fmt: skip


def combined(d, mode, a, b):
    if mode == "addf":
        return F.arithmetic("add", d, [a, b])["nearest_even"]
    if mode == "xchg":
        return b.copy()
    signed = mode in ("max", "min")
    return F.bits_of(d, [MODES[mode](x, y) for x, y in zip(F.integers(d, a, signed), F.integers(d, b, signed))])


def modes(d):
    if d in ("i32", "i64"):
        return list(MODES)
    return ["addf"] + ["xchg"] * (d in ("f32", "f64"))


def atomics(d):
    p = Program(f"atomics.{d}")
    n = 64
    a = np.concatenate([F.specials(d), F.moderate(d, n - 16)])
    b = np.concatenate([F.rng.permutation(F.specials(d)), F.moderate(d, n - 16)])
    m = F.random_bits("i1", n)
    mask, y = p.load("i1", m), p.load(d, b)
    p.uses("atomic_rmw_tko", d)
    ways = ATOMICS
    for mode in modes(d):
        for k, how in enumerate(ways if mode in ("add", "addf") else ways[:1]):
            to = p.buffer(d, a)
            at = p.places(to, (n,))
            old = Tile(p.fresh(), d, (n,))
            masked = k % 2 == 1
            end = (f", {mask} : {at.type}, {y.type}, {mask.type}" if masked else f" : {at.type}, {y.type}")
            p.line(f"{old}, {old}t = atomic_rmw_tko {how} {at}, {mode}, {y}{end} -> {y.type}, token")
            new = combined(d, mode, a, b)
            p.check(f"atomic_rmw_tko {how} {mode} {d}", to, d, np.where(m, new, a) if masked else new)
            if masked:
                zero = p.constant(d, 0 if F.is_int(d) else "0.0", (n,))
                old = p.value(f"select {mask}, {old}, {zero} : {mask.type}, {y.type}", d, (n,))
            p.expect(f"atomic_rmw_tko {how} {mode} {d}, what was there", old, np.where(m, a, 0) if masked else a)
    # Many lanes on one element.
    mode = "add" if F.is_int(d) else "addf"
    few = F.bits_of(d, list(range(8)) * 4)
    where = F.bits_of("i32", [0, 1, 1, 3] * 8)
    z, index = p.load(d, few), p.load("i32", where)
    to = p.buffer(d, F.bits_of(d, [5, 6, 7, 8]))
    all = p.spread(to, (32,))
    at = p.value(f"offset {all}, {index} : {all.type}, {index.type} -> {all.type}", all.dtype, (32,))
    old = p.fresh()
    p.line(f"{old}, {old}t = atomic_rmw_tko relaxed device {at}, {mode}, {z} : {at.type}, {z.type} -> {z.type}, token")
    total = [5, 6, 7, 8]
    for i, w in zip(list(range(8)) * 4, where.tolist()):
        total[w] += i
    p.check(f"atomic_rmw_tko {mode} {d} on one element", to, d, F.bits_of(d, total))
    one = p.buffer(d, F.bits_of(d, [5]))
    arg = p.constant(d, 2 if F.is_int(d) else "2.0")
    p.line(f"%was, %wast = atomic_rmw_tko acq_rel sys {one}, {mode}, {arg} : {one.type}, {arg.type} -> {arg.type}, token")
    p.check(f"atomic_rmw_tko {mode} {d} scalar", one, d, F.bits_of(d, [7]))
    p.expect(f"atomic_rmw_tko {mode} {d} scalar, what was there", Tile("%was", d, ()), F.bits_of(d, [5]))
    if d in ("f16", "bf16"):
        return
    q = Program(f"atomic_cas.{d}")
    q.uses("atomic_cas_tko", d)
    compare = np.where(F.random_bits("i1", n), a, b)
    c, y, mask = q.load(d, compare), q.load(d, b), q.load("i1", m)
    for k, how in enumerate(ATOMICS):
        to = q.buffer(d, a)
        at = q.places(to, (n,))
        old = Tile(q.fresh(), d, (n,))
        masked = k % 2 == 1
        end = f", {mask} : {at.type}, {y.type}, {mask.type}" if masked else f" : {at.type}, {y.type}"
        q.line(f"{old}, {old}t = atomic_cas_tko {how} {at}, {c}, {y}{end} -> {y.type}, token")
        hit = (a == compare) & ((m == 1) | (not masked))
        q.check(f"atomic_cas_tko {how} {d}", to, d, np.where(hit, b, a))
        q.expect(f"atomic_cas_tko {how} {d}, what was there", old, np.where((m == 1) | (not masked), a, compare))


def red_views(d):
    p = Program(f"atomic_red_view.{d}", grid="2,2")
    p.uses("atomic_red_view_tko", d)
    a, b = F.moderate(d, 60), F.moderate(d, 64)
    tensor = f"tensor_view<6x10x{d}, strides=[10,1]>"
    shape = np.arange(60).reshape(6, 10)
    p.line("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    y = p.load(d, b[:32], (4, 8))
    for kind in ("partition", "strided"):
        view = f"partition_view<tile=(4x8), {tensor}>" if kind == "partition" else f"strided_view<tile=(4x8), traversal_strides=[4, 8], {tensor}>"
        for mode in [m for m in modes(d) if m != "xchg"]:
            for scope in ("tl_blk", "device") if kind == "partition" else ("device",):
                to = p.buffer(d, a)
                t, v, r = p.fresh(), p.fresh(), p.fresh()
                p.line(f"{t} = make_tensor_view {to}, shape = [6, 10], strides = [10, 1] : {tensor}")
                p.line(f"{v} = make_{kind}_view {t} : {view}")
                p.line(f"{r} = atomic_red_view_tko relaxed {scope} {v}[%bx, %by], {mode}, {y} : {y.type}, {view}, tile<i32> -> token")
                want = a.copy()
                for i in range(6):
                    for j in range(10):
                        k = shape[i, j]
                        want[k : k + 1] = combined(d, mode, a[k : k + 1], b[i % 4 * 8 + j % 8][None])
                p.check(f"atomic_red_view_tko {scope} {mode} {d} {kind}", to, d, want)


def multicasts(d):
    """Memory that devices share, on one device: loads, stores and atomics of its one copy."""
    p = Program(f"multimem.{d}", grid="2,2")
    a, b = F.moderate(d, 60), F.moderate(d, 64)
    tensor = f"tensor_view<6x10x{d}, strides=[10,1], #cuda_tile.ptr_attr<multicast>>"
    view = f"partition_view<tile=(4x8), padding_value = zero, {tensor}>"
    cell = np.indices((6, 10)).reshape(2, -1)
    given = b[cell[0] % 4 * 8 + cell[1] % 8]
    p.line("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    y = p.load(d, b[:32], (4, 8))

    def there(content):
        """A parameter, and its view as multicast memory."""
        to, number, shared, t, v = p.buffer(d, content), p.fresh(), p.fresh(), p.fresh(), p.fresh()
        p.line(f"{number} = ptr_to_int {to} : {to.type} -> tile<i64>")
        p.line(f"{shared} = int_to_ptr {number} : tile<i64> -> tile<ptr<{d}, <multicast>>>")
        p.line(f"{t} = make_tensor_view {shared}, shape = [6, 10], strides = [10, 1] : tile<ptr<{d}, <multicast>>> -> {tensor}")
        p.line(f"{v} = make_partition_view {t} : {view}")
        return to, v

    def kind(word):
        return "" if word == "add" else f" attributes {{reduction = #cuda_tile.multimem_reduction_kind<{word}>}}"

    p.uses("multimem_reduce_view_tko", d), p.uses("multimem_store_view_tko", d), p.uses("multimem_load_reduce_view_tko", d)
    words = ["add"] + ["min", "max", "and", "or", "xor", "umin", "umax"] * F.is_int(d)
    for k, word in enumerate(words):
        how = STORES[1:][k % 6]
        to, v = there(a)
        p.line(f"{p.fresh()} = multimem_reduce_view_tko {how} {v}, {y}[%bx, %by]{kind(word)} : {view}, {y.type}, tile<i32> -> token")
        mode = "addf" if word == "add" and not F.is_int(d) else word
        p.check(f"multimem_reduce_view_tko {how} {word} {d}", to, d, combined(d, mode, a, given))
    for how in STORES:
        to, v = there(a)
        p.line(f"{p.fresh()} = multimem_store_view_tko {how} {v}, {y}[%bx, %by] : {view}, {y.type}, tile<i32> -> token")
        p.check(f"multimem_store_view_tko {how} {d}", to, d, given)
    words = words if F.is_int(d) else ["add", "min", "max"] if d in ("f16", "bf16") else ["add"]
    for k, how in enumerate(LOADS):
        word = words[k % len(words)]
        _, source = there(a)
        to, v = there(b[:60])
        x, t = p.fresh(), p.fresh()
        p.line(f"{x}, {t} = multimem_load_reduce_view_tko {how} {source}[%bx, %by]{kind(word)} : {view}, tile<i32> -> {y.type}, token")
        p.line(f"{p.fresh()} = multimem_store_view_tko weak {v}, {x}[%bx, %by] token = {t} : {view}, {y.type}, tile<i32>, token -> token")
        p.check(f"multimem_load_reduce_view_tko {how} {word} {d}", to, d, a)


def allocas():
    p = Program("alloca")
    for d in F.NUMBERS:
        if d == "f4E2M1FN":
            continue
        a = F.random_bits(d, 16)
        x = p.load(d, a)
        for word in ("", " global"):
            base = p.value(f"alloca num_elem = 16, alignment = {64 if word else 8}{word} : tile<ptr<{d}>>", f"ptr<{d}>")
            p.uses("alloca", d)
            at = p.places(base, (16,))
            t, v = p.fresh(), Tile(p.fresh(), d, (16,))
            p.line(f"{t} = store_ptr_tko weak {at}, {x} : {at.type}, {x.type} -> token")
            p.line(f"{v}, {v}t = load_ptr_tko weak {at} token = {t} : {at.type} -> {x.type}, token")
            p.expect(f"alloca{word} {d}", v, a)


def globals():
    p = Program("global")
    for d in F.NUMBERS:
        if d == "f4E2M1FN":
            continue
        a = F.random_bits(d, 4)
        if d == "tf32":
            a &= np.uint32(0xFFFFE000)
        text = [str(v) if F.is_int(d) else f"0x{v >> (13 if d == 'tf32' else 0):x}" for v in a.tolist()]
        for words, name, align in [("", "g", ""), ("private constant ", "c", " alignment = 64")]:
            p.top.append(f"global {words}@{name}_{d}{align} <{d}: [{', '.join(text)}]> : tile<4x{d}>")
            base = p.value(f"get_global @{name}_{d} : tile<ptr<{d}>>", f"ptr<{d}>")
            p.uses("get_global", d)
            at = p.places(base, (4,))
            v = Tile(p.fresh(), d, (4,))
            p.line(f"{v}, {v}t = load_ptr_tko weak {at} : {at.type} -> {v.type}, token")
            p.expect(f"get_global {words}{d}", v, a)
    base = p.value("get_global @g_i32 : tile<ptr<i32>>", "ptr<i32>")
    p.line(f"%gs = store_ptr_tko weak {base}, {p.constant('i32', 77)} : {base.type}, tile<i32> -> token")
    v = Tile(p.fresh(), "i32", ())
    p.line(f"{v}, {v}t = load_ptr_tko weak {base} token = %gs : {base.type} -> {v.type}, token")
    p.expect("get_global written", v, 77)


def tokens():
    p = Program("tokens")
    for op in ("make_token", "join_tokens", "gdc_launch_dependents_tko", "gdc_wait_tko", "memory_fence_alias_tko"):
        p.uses(op)
    x = p.buffer("i32", F.bits_of("i32", [1, 2]))
    p.line("%t0 = make_token : token")
    p.line("%t1 = gdc_wait_tko token = %t0 -> token")
    p.line("%t2 = gdc_wait_tko -> token")
    p.line("%t3 = join_tokens %t0, %t1, %t2 : token")
    p.line(f"%v, %t4 = load_ptr_tko weak {x} token = %t3 optimization_hints = <sm_100 = {{latency = 5}}> : {x.type} -> tile<i32>, token")
    p.line(f"%t5 = store_ptr_tko weak {x}, {p.constant('i32', 9)} token = %t4 : {x.type}, tile<i32> -> token")
    p.line("%t6 = memory_fence_alias_tko %t5")
    p.line(f"%w, %t7 = load_ptr_tko weak {x} token = %t6 : {x.type} -> tile<i32>, token")
    p.line("%t8 = gdc_launch_dependents_tko token = %t7 -> token")
    p.line("%t9 = gdc_launch_dependents_tko -> token")
    p.expect("load before the store", Tile("%v", "i32", ()), 1)
    p.expect("load after the store", Tile("%w", "i32", ()), 9)


def build():
    for d in F.NUMBERS:
        if d != "f4E2M1FN":
            through_pointers(d)
    for d in ["i32", "i64"] + F.FLOATS:
        atomics(d)
        red_views(d)
        multicasts(d)
    allocas()
    globals()
    tokens()
