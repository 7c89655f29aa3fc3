"""Control flow, assertions, printing, functions and the other extensions."""

import numpy as np

from . import formats as F
from .program import Program, Tile, tile


def loops():
    p = Program("for")
    for d in F.INTS[1:]:
        for unsigned in ("", "unsigned "):
            # Counts the iterations and adds up the counter; -1 is a large number when unsigned.
            ranges = [(0, 10, 1), (3, 20, 4), (5, 5, 1), (-7, 6, 3), (9, 2, 2), (100, 120, 7)]
            if unsigned:
                ranges += [(-100, -1, 30)]
            p.uses("for", d)
            for lo, hi, step in ranges:
                a, b = F.integers(d, F.bits_of(d, [lo, hi]), not unsigned)
                visited = list(range(a, b, step)) if a < b else []
                if len(visited) > 300:
                    continue
                lower, upper, by = p.scalar(d, lo), p.scalar(d, hi), p.scalar(d, step)
                zero, n = p.constant(d, 0), p.constant("i32", 0)
                one = p.constant("i32", 1)
                r, i, s, c, s2, c2 = (p.fresh() for _ in range(6))
                p.line(f"{r}:2 = for {unsigned}{i} in ({lower} to {upper}, step {by}) : tile<{d}> iter_values({s} = {zero}, {c} = {n}) -> (tile<{d}>, tile<i32>) {{")
                p.line(f"  {s2} = addi {s}, {i} : tile<{d}>")
                p.line(f"  {c2} = addi {c}, {one} : tile<i32>")
                p.line(f"  continue {s2}, {c2} : tile<{d}>, tile<i32>")
                p.line("}")
                p.expect(f"for {unsigned}{d} {lo} to {hi} step {step} sum", Tile(f"{r}#0", d, ()), F.bits_of(d, [sum(visited)]))
                p.expect(f"for {unsigned}{d} {lo} to {hi} step {step} count", Tile(f"{r}#1", "i32", ()), len(visited))
    # Tiles carried around, and swapped.
    p = Program("for.tiles")
    a, b = F.random_bits("i32", 32), F.random_bits("i32", 32)
    x, y = p.load("i32", a), p.load("i32", b)
    zero, one, n = p.constant("i32", 0), p.constant("i32", 1), p.scalar("i32", 5)
    p.line(f"%r:2 = for %i in ({zero} to {n}, step {one}) : tile<i32> iter_values(%a = {x}, %b = {y}) -> (tile<32xi32>, tile<32xi32>) {{")
    p.line("  %c = muli %a, %b : tile<32xi32>")
    p.line("  %d = addi %c, %a : tile<32xi32>")
    p.line("  continue %b, %d : tile<32xi32>, tile<32xi32>")
    p.line("}")
    for _ in range(5):
        a, b = b, a * b + a
    p.expect("for swaps tiles 0", Tile("%r#0", "i32", (32,)), a)
    p.expect("for swaps tiles 1", Tile("%r#1", "i32", (32,)), b)
    p.uses("continue")
    # Stores in a nest of loops.
    p = Program("for.nest")
    out = p.buffer("i32", bytes=24)
    p.line("%0 = constant <i32: 0> : tile<i32>")
    one, six, four = p.constant("i32", 1), p.constant("i32", 6), p.constant("i32", 4)
    p.line(f"for %i in (%0 to {four}, step {one}) : tile<i32> {{")
    p.line(f"  for %j in (%i to {six}, step {one}) : tile<i32> {{")
    p.line(f"    %k = muli %i, {six} : tile<i32>")
    p.line("    %l = addi %k, %j : tile<i32>")
    p.line(f"    %at = offset {out}, %l : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
    p.line("    %t = store_ptr_tko weak %at, %l : tile<ptr<i32>>, tile<i32> -> token")
    p.line("  }")
    p.line("}")
    p.check("nested for", out, "i32", [i * 6 + j if j >= i else 0 for i in range(4) for j in range(6)])
    for step in (0, -1):
        p = Program(f"for.step{step}", exit=3, stderr="step")
        lo, hi, by = p.scalar("i32", 0), p.scalar("i32", 4), p.scalar("i32", step)
        p.line(f"for %i in ({lo} to {hi}, step {by}) : tile<i32> {{")
        p.line("}")


def branches():
    p = Program("if")
    for word, truth in (("true", True), ("false", False)):
        c = p.scalar("i1", word)
        x, y = p.load("f32", F.bits_of("f32", [1.0] * 8)), p.load("f32", F.bits_of("f32", [2.0] * 8))
        n, m = p.constant("i32", 3), p.constant("i32", 4)
        r = p.fresh()
        p.line(f"{r}:2 = if {c} -> (tile<8xf32>, tile<i32>) {{")
        p.line(f"  %z = addf {x}, {x} : tile<8xf32>".replace("%z", r + "z"))
        p.line(f"  yield {r}z, {n} : tile<8xf32>, tile<i32>")
        p.line("} else {")
        p.line(f"  yield {y}, {m} : tile<8xf32>, tile<i32>")
        p.line("}")
        p.expect(f"if {word} 0", Tile(f"{r}#0", "f32", (8,)), F.bits_of("f32", [2.0] * 8))
        p.expect(f"if {word} 1", Tile(f"{r}#1", "i32", ()), 3 if truth else 4)
        out = p.buffer("i32", F.bits_of("i32", [7]))
        p.line(f"if {c} {{")
        p.line(f"  {r}t = store_ptr_tko weak {out}, {n} : tile<ptr<i32>>, tile<i32> -> token")
        p.line("}")
        p.check(f"if {word} without else", out, "i32", 3 if truth else 7)
    p.uses("if"), p.uses("yield")
    # A block that returns early, in a grid.
    p = Program("return", grid="4")
    out = p.buffer("i32", bytes=4)
    p.line("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    p.line(f"%c = cmpi equal %bx, {p.constant('i32', 2)}, signed : tile<i32> -> tile<i1>")
    p.line("if %c {")
    p.line("  return")
    p.line("}")
    p.line(f"%at = offset {out}, %bx : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
    p.line(f"%t = store_ptr_tko weak %at, {p.constant('i32', 9)} : tile<ptr<i32>>, tile<i32> -> token")
    p.check("return from an if", out, "i32", [9, 9, 0, 9])
    p.uses("return")


def endless():
    """Collatz steps: `loop` with `break` and `continue` inside branches, and results of other types."""
    p = Program("loop")
    for d in ("i32", "i64"):
        for start in (1, 6, 27):
            n, steps, x = start, 0, []
            while n != 1:
                n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
            v = p.scalar(d, start)
            zero, one, three = p.constant(d, 0), p.constant(d, 1), p.constant(d, 3)
            k = p.fresh()
            p.line(f"{k} = loop iter_values({k}n = {v}, {k}s = {zero}) : tile<{d}>, tile<{d}> -> tile<{d}> {{")
            p.line(f"  {k}c = cmpi equal {k}n, {one}, signed : tile<{d}> -> tile<i1>")
            p.line(f"  if {k}c {{")
            p.line(f"    break {k}s : tile<{d}>")
            p.line("  }")
            p.line(f"  {k}t = addi {k}s, {one} : tile<{d}>")
            p.line(f"  {k}b = andi {k}n, {one} : tile<{d}>")
            p.line(f"  {k}o = cmpi equal {k}b, {one}, signed : tile<{d}> -> tile<i1>")
            p.line(f"  if {k}o {{")
            p.line(f"    {k}m = muli {k}n, {three} : tile<{d}>")
            p.line(f"    {k}p = addi {k}m, {one} : tile<{d}>")
            p.line(f"    continue {k}p, {k}t : tile<{d}>, tile<{d}>")
            p.line("  }")
            p.line(f"  {k}h = shri {k}n, {one} signed : tile<{d}>")
            p.line(f"  continue {k}h, {k}t : tile<{d}>, tile<{d}>")
            p.line("}")
            p.expect(f"loop {d} from {start}", Tile(k, d, ()), steps)
    # A loop without values, ended by a value that it stored; and a for inside a loop inside an if.
    out = p.buffer("i32", F.bits_of("i32", [0]))
    one, ten, zero = p.constant("i32", 1), p.constant("i32", 10), p.constant("i32", 0)
    p.line("loop {")
    p.line(f"  %old, %oldt = load_ptr_tko weak {out} : tile<ptr<i32>> -> tile<i32>, token")
    p.line(f"  %sum = for %i in ({zero} to %old, step {one}) : tile<i32> iter_values(%acc = %old) -> (tile<i32>) {{")
    p.line("    %next = addi %acc, %i : tile<i32>")
    p.line("    continue %next : tile<i32>")
    p.line("  }")
    p.line(f"  %new = addi %sum, {one} : tile<i32>")
    p.line(f"  %st = store_ptr_tko weak {out}, %new token = %oldt : tile<ptr<i32>>, tile<i32> -> token")
    p.line(f"  %far = cmpi greater_than %new, {ten}, signed : tile<i32> -> tile<i1>")
    p.line("  if %far {")
    p.line("    break")
    p.line("  }")
    p.line("}")
    n = 0
    while n <= 10:
        n = n + sum(range(n)) + 1
    p.check("loop until memory says so", out, "i32", n)
    for op in ("loop", "break"):
        p.uses(op)


def assertions():
    p = Program("assert.true")
    p.uses("assert")
    out = p.buffer("i32", F.bits_of("i32", [0]))
    p.line(f'assert {p.load("i1", F.bits_of("i1", [1] * 8))}, "never" : tile<8xi1>')
    p.line(f'assert {p.scalar("i1", "true")}, "never" : tile<i1>')
    p.line(f"%t = store_ptr_tko weak {out}, {p.constant('i32', 1)} : tile<ptr<i32>>, tile<i32> -> token")
    p.check("after an assert", out, "i32", 1)
    for shape, bits in [((8,), [1, 1, 1, 0, 1, 1, 1, 1]), ((), [0])]:
        p = Program(f"assert.false{len(shape)}", exit=3, stderr="the third one is off")
        x = p.load("i1", F.bits_of("i1", bits), shape)
        p.line(f'assert {x}, "the third one is off" : {x.type}')


def prints():
    numbers = [("i1", 1), ("i8", -5), ("i16", -300), ("i32", 123456), ("i64", -(2**62))]
    p = Program("print.ints", stdout="".join(f"{d} {v}|\n" for d, v in numbers) + "ff 377 FF 0x2a | 0042|+7|4294967295\nA 100%\n")
    for d, v in numbers:
        p.line(f'{p.fresh()} = print_tko "{d} %d|\\n", {p.scalar(d, "true" if d == "i1" else v)} : tile<{d}> -> token')
        p.uses("print_tko", d)
    c, m, s, h = p.constant("i32", 255), p.constant("i32", 42), p.constant("i32", 7), p.constant("i32", -1)
    p.line(f'%pa = print_tko "%x %o %X %#x | %04d|%+d|%u\\n", {c}, {c}, {c}, {m}, {m}, {s}, {h} : tile<i32>, tile<i32>, tile<i32>, tile<i32>, tile<i32>, tile<i32>, tile<i32> -> token')
    p.line(f'%pb = print_tko "%c 100%%\\n", {p.constant("i32", 65)} token = %pa : tile<i32> -> token')
    floats = [d for d in F.EVERY_FLOAT if d not in ("f8E8M0FNU", "f4E2M1FN")]
    text = "".join(f"{d} 1.500000\n" for d in floats) + "f8E8M0FNU 2.000000\n"
    text += "-0.25 2.500e-01 0.25 0x1p-2|  0.2| inf nan\n"
    p = Program("print.floats", stdout=text)
    for d in floats + ["f8E8M0FNU"]:
        p.line(f'{p.fresh()} = print_tko "{d} %f\\n", {p.constant(d, "2.0" if d == "f8E8M0FNU" else "1.5")} : tile<{d}> -> token')
        p.uses("print_tko", d)
    q, r = p.constant("f32", -0.25), p.constant("f64", 0.25)
    i, n = p.constant("f32", "0x7F800000"), p.constant("f16", "0x7E00")
    p.line(f'%pc = print_tko "%g %.3e %G %a|%5.1f| %f %f\\n", {q}, {r}, {r}, {r}, {r}, {i}, {n} : tile<f32>, tile<f64>, tile<f64>, tile<f64>, tile<f64>, tile<f32>, tile<f16> -> token')
    p = Program("print.tiles", stdout="[1, 2, 3, 4]\n[[1.0, -2.0], [0.5, 4.0]] and [1, 0]\n")
    a = p.load("i16", F.bits_of("i16", [1, 2, 3, 4]))
    b = p.load("f32", F.bits_of("f32", [1.0, -2.0, 0.5, 4.0]), (2, 2))
    c = p.load("i1", F.bits_of("i1", [1, 0]))
    p.line(f'%pd = print_tko "%d\\n", {a} : {a.type} -> token')
    p.line(f'%pe = print_tko "%.1f and %d\\n", {b}, {c} : {b.type}, {c.type} -> token')
    four = F.bits_of("i8", [0x21, 0x43])
    p = Program("print.f4", stdout="[0.5, 1, 1.5, 2]\n")
    x = p.load("i8", four)
    y = p.value(f"unpack {x} : {x.type} -> tile<4xf4E2M1FN>", "f4E2M1FN", (4,))
    p.line(f'%pf = print_tko "%g\\n", {y} : {y.type} -> token')
    p.uses("print_tko", "f4E2M1FN")
    p = Program("print.blocks", grid="3", stdout="block 0\nblock 1\nblock 2\n", flags=["--print-order", "index"])
    p.line("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    p.line('%pg = print_tko "block %d\\n", %bx : tile<i32> -> token')


def extensions():
    p = Program("experimental$call")
    p.uses("experimental$call")
    p.top += ["experimental$func @twice(%a: tile<8xf32>, %n: tile<i32>) -> (tile<8xf32>, tile<i32>) {",
              "  %b = addf %a, %a : tile<8xf32>", "  %one = constant <i32: 1> : tile<i32>",
              "  %m = addi %n, %one : tile<i32>", "  return %b, %m : tile<8xf32>, tile<i32>", "}"]
    x, n = p.load("f32", F.bits_of("f32", range(8))), p.scalar("i32", 41)
    sig = "(tile<8xf32>, tile<i32>) -> (tile<8xf32>, tile<i32>)"
    p.line(f"%a, %b = experimental$call @twice({x}, {n}) : {sig}")
    p.line(f"%c, %d = experimental$call @twice(%a, %b) : {sig}")
    p.expect("experimental$call tiles", Tile("%c", "f32", (8,)), F.bits_of("f32", [4.0 * k for k in range(8)]))
    p.expect("experimental$call scalars", Tile("%d", "i32", ()), 43)
    p = Program("experimental$generate")
    for d in F.INTS + F.FLOATS:
        p.uses("experimental$generate", d)
        r = p.fresh()
        p.line(f"{r} = experimental$generate {{")
        p.line(f"^bb0({r}i: tile<i32>, {r}j: tile<i32>):")
        p.line(f"  {r}k = constant <i32: 3> : tile<i32>")
        p.line(f"  {r}m = muli {r}i, {r}k : tile<i32>")
        p.line(f"  {r}n = addi {r}m, {r}j : tile<i32>")
        if F.is_int(d):
            convert = None if d == "i32" else f"exti {r}n signed" if d == "i64" else f"trunci {r}n"
        else:
            convert = f"itof {r}n signed"
        if convert:
            p.line(f"  {r}v = {convert} : tile<i32> -> tile<{d}>")
        p.line(f"  yield {r}{'v' if convert else 'n'} : tile<{d}>")
        p.line(f"}} : tile<4x8x{d}>")
        want = F.bits_of(d, [float(i * 3 + j) if not F.is_int(d) else i * 3 + j for i in range(4) for j in range(8)])
        p.expect(f"experimental$generate {d}", Tile(r, d, (4, 8)), want)
    # Its library is missing, which is noticed before anything runs.
    p = Program("experimental$extern_elementwise", exit=1, stderr="E0607")
    p.uses("experimental$extern_elementwise")
    x = p.load("f32", F.bits_of("f32", [1.0]))
    p.value(f'experimental$extern_elementwise {x} {{libname = "none", libpath = "", pure = true, symbol = "s"}} : '
            f"({x.type}) -> {x.type}", "f32", (1,))


def build():
    loops()
    branches()
    endless()
    assertions()
    prints()
    extensions()
