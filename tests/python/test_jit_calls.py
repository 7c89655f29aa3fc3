"""Functions, returns, containers and values from outside in kernels, compared with Python itself."""

import dataclasses
import sys
from types import ModuleType
from typing import NamedTuple

import girih
import girih.language as tl
import numpy as np
import pytest
from oracle import Cases

case = Cases()
devices = pytest.mark.parametrize("device", ["cpu", "eval"])


# ---- helpers the cases call


@girih.jit
def find(x, n):
    """The first of n elements that is 5, or -1."""
    for i in range(n):
        if tl.load(x + i) == 5:
            return i
    return -1


@girih.jit
def mark_until_three(x, n):
    """Returns no value, early."""
    for i in range(n):
        if i == 3:
            return
        tl.store(x + i, 77)


@girih.jit
def a_tile(x, n):
    lane = tl.arange(0, 4)
    if n > 2:
        return tl.load(x + lane)
    for i in range(n):
        if tl.load(x + i) == 1:
            return lane * 0 + i
    return lane


@girih.jit
def above_two(x, n):
    for i in range(n):
        if tl.load(x + i) > 2:
            return i, tl.load(x + i)
    return -1, 0


@girih.jit
def doubled_if_large(n):
    if n > 5:
        return n * 2
    else:
        return n


@girih.jit
def square_root(n):
    """Has no end but its return."""
    i = 0
    while True:
        if i * i >= n:
            return i
        i += 1


@girih.jit
def factorial(n: tl.constexpr):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@dataclasses.dataclass(frozen=True)
class Settings:
    width: int = 4
    name: str = "first"


class Pair(NamedTuple):
    a: object
    b: object


# ---- returns


@case(10)
@case(2)
def call_in_a_loop(x, n):
    total = 0
    for j in range(n):
        total += find(x + j, n)
    tl.store(x + 20, total)


@case(10)
@case(2)
def call_in_a_condition(x, n):
    total, j = 0, 0
    while find(x + j, n) >= 0:
        total += j
        j += 1
    tl.store(x + 20, total)


@case(10)
@case(2)
def call_without_value(x, n):
    for k in range(n):
        mark_until_three(x + k * 2, n)
    mark_until_three(x, n)


@case(3)
@case(2)
@case(0)
def tile_returned(x, n):
    tl.store(x + 8 + tl.arange(0, 4), a_tile(x, n))


@case(10)
@case(1)
def tuple_returned(x, n):
    i, v = above_two(x, n)
    tl.store(x + 8, i * 100 + v)


@case(7)
@case(3)
def both_sides_return(x, n):
    tl.store(x, doubled_if_large(n))
    total = 0
    for i in range(n):
        total += doubled_if_large(i)
    tl.store(x + 1, total)


@case(9)
@case(50)
def return_is_the_only_end(x, n):
    tl.store(x, square_root(n))
    for i in range(n):
        if square_root(i) == 3:
            break
        tl.store(x + 10 + i, 3)


@case(9)
def kernel_ends_in_a_loop(x, n):
    i = 0
    while True:
        if i == n:
            tl.store(x, i)
            return
        i += 1


@case(10)
@case(4)
def kernel_returns_from_an_unrolled_loop(x, n):
    for i in range(6):
        if i == n:
            return
        tl.store(x + i, 50)


@case(7)
@case(12)
def kernel_returns_from_nested_loops(x, n):
    for i in range(n):
        for j in range(i):
            tl.store(x + i, j)
            if i * j > 20:
                return
        if i == 9:
            break
    tl.store(x + 40, 9)


@girih.jit
def find_if_several(x, n):
    if n > 2:
        for i in range(n):
            if tl.load(x + i) == 5:
                return i, n
        tl.store(x + 50, n)
    tl.store(x + 51, n)
    return -1, -1


@case(3)
@case(30)
@case(1)
def value_from_a_loop_in_a_branch(x, n):
    a, b = find_if_several(x, n)
    tl.store(x + 52, a * 100 + b)


@case(3)
@case(30)
def kernel_returns_from_a_loop_in_a_branch(x, n):
    if n > 2:
        i = 0
        while i < n:
            if tl.load(x + i) == 9:
                tl.store(x, 99)
                return
            i += 1
        tl.store(x, 1)
    tl.store(x + 1, 3)


@case(9)
def nothing_after_a_return(x, n):
    for i in range(n):
        tl.store(x + i, 4)
        continue
        tl.store(x + i, 5)
    return
    tl.store(x, 5)


@case(5)
def recursion_over_constants(x, n):
    tl.store(x, factorial(5) + n)


# ---- loops


@case(10)
@case(4)
def break_from_a_short_loop(x, n):
    for i in range(6):
        if i == n:
            break
        tl.store(x + i, 50)
    for i in range(6):
        if i == 4:
            break
        tl.store(x + 10 + i, 50)


@case(10)
@case(4)
def continue_in_a_short_loop(x, n):
    for i in range(6):
        if i == n:
            continue
        tl.store(x + i, 50)
    for i in tl.static_range(6):
        if i == 4:
            continue
        tl.store(x + 10 + i, 50)


@case(10)
@case(4)
@case(-4)
def condition_of_several_parts(x, n):
    i = 0
    while i < n and tl.load(x + i) < 7 or i == 0:
        i += 1
        if i == 6:
            continue
        tl.store(x + 30 + i, i)
    tl.store(x, i)


@case(5)
@case(0)
def condition_that_names_a_value(x, n):
    i, v = 0, -1
    while (v := tl.load(x + i)) < n:
        i += 1
    tl.store(x + 40, v * 100 + i)


@case(20)
def condition_with_a_call_that_returns_early(x, n):
    at = -1
    for i in range(n):
        if find(x, i) > 0 and (at := i) > 7:
            break
    tl.store(x, at)


@case(4, 0)
@case(4, 3)
def target_keeps_its_value(x, n, m):
    i = 100
    for i in range(m):
        pass
    tl.store(x, i)
    for j in range(n):
        tl.store(x + 1 + j, i)
        i = j


@case(4)
@case(0)
def target_changed_in_the_body(x, n):
    total = 0
    for i in range(n):
        i = i * 2
        total += i
    tl.store(x, total)


@case(3)
def bound_changed_in_the_body(x, n):
    total = 0
    for i in range(n):
        n = 100
        total += i
    tl.store(x, total + n)


@case(4)
@case(2)
def loops_in_branches(x, n):
    acc = 0
    if n > 2:
        for i in range(n):
            acc += i
            if acc > 4:
                break
    else:
        while acc < 3:
            acc += 1
    tl.store(x, acc)


@case(3)
def exchanged(x, n):
    a, b = 1, 2
    for _ in range(n):
        a, b = b, a
    tl.store(x, a * 10 + b)


@case(3)
def value_of_the_iteration_before(x, n):
    before = -1
    for i in range(n):
        now = i * 3
        if before > 0:
            now = before
        before = now + 1
    tl.store(x, before)


@case(9)
def break_deep_in_branches(x, n):
    for i in range(n):
        if i < 5:
            tl.store(x + i, 1)
        elif i == 6:
            continue
        else:
            if i == 7:
                break
            tl.store(x + i, 2)
        tl.store(x + 30 + i, 3)


@case(3)
def four_loops(x, n):
    for a in range(n):
        for b in range(n):
            for c in range(n):
                for d in range(n):
                    if a + b + c + d == 5:
                        break
                    tl.store(x + a + b + c + d, a * d)
                if c == 1:
                    continue
            left = a
            while left > 0:
                left -= 1
                if left == b:
                    break


@case(5)
def loops_that_run_never_or_once(x, n):
    while False:
        tl.store(x, 9)
    for _ in range(0):
        tl.store(x, 9)
    for _ in range(5, 2):
        tl.store(x, 9)
    for i in range(2, 12, 100):
        tl.store(x + i, n)
    for i in range(20, 0, -7):
        tl.store(x + i, 9)
    for i in range(20, -1, -1):
        tl.store(x + i, i + n)


@case(5)
@case(0)
@case(-3)
def down_to_zero(x, n):
    total = 0
    for i in range(n, -1, -1):
        total = total * 2 + i
    tl.store(x, total)


@case(20)
@case(3)
def truth_carried(x, n):
    done = False
    i = 0
    while not done:
        i += 1
        if i > n:
            done = True
    tl.store(x, i)
    flag, count = True, 0
    for i in range(n):
        flag = flag and i < 5
        count += 1 if flag else 0
    tl.store(x + 1, count)


@case(40)
@case(3)
def greatest_and_where(x, n):
    best, where = -1, -1
    for i in range(n):
        v = (i * 7) % 11
        if v > best:
            best, where = v, i
    tl.store(x, best)
    tl.store(x + 1, where)


# ---- memory


@case(7)
def pointers_moved(x, n):
    x += n
    tl.store(x, 1)
    x = x + 2
    for _ in range(n):
        x += 1
    tl.store(x, 2)


@case(7)
@case(0)
def loads_in_choices(x, n):
    v = tl.load(x + n) if n > 3 else 0
    w = (tl.load(x + 1) if n > 5 else 3) if n > 3 else 9
    tl.store(x, v + w)


@case(3)
@case(9)
def stores_between_branches(x, n):
    tl.store(x, n)
    if tl.load(x) > 5:
        tl.store(x + 1, tl.load(x) + 1)
    else:
        for i in range(n):
            tl.store(x + i, tl.load(x + i + 1))
    if tl.load(x + 1) > 3:
        tl.store(x, tl.load(x + 1))
    tl.store(x + 2, tl.load(x))


# ---- functions and containers


@case(7)
def closures_see_later_values(x, n):
    k = 1
    shifted = lambda v: v + k  # noqa: E731
    k = 5
    tl.store(x, shifted(n))
    total = 0
    for i in range(n):
        add = lambda v: v + i  # noqa: B023, E731
        total += add(1)
    tl.store(x + 1, total)


@case(4)
@case(2)
def closures_and_branches(x, n):
    k = 1
    shifted = lambda v: v + k
    if n > 3:
        k = 5
    tl.store(x, shifted(n))
    m = 2

    def scaled(v, by=m, *, more=m + 1):
        return v * by + more + k

    m = 100
    for i in range(n):
        k = k + i
        tl.store(x + i + 1, scaled(i))


@case(3)
@case(1)
def none_at_first(x, n):
    a = None
    for i in tl.static_range(3):
        if a is None:
            a = n
        else:
            a = a + i
    tl.store(x, a)


@case(9, settings=Settings())
@case(9, settings=Settings(7, "second"))
def dataclass_as_a_constant(x, n, settings: tl.constexpr):
    if settings.name == "first":
        tl.store(x, settings.width)
    else:
        tl.store(x + 1, settings.width * n)


@case(4)
def named_tuple_through_branches(x, n):
    s = Pair(1, n)
    if n > 2:
        s = Pair(s.b, s.a)
    for i in range(n):
        if i == 2:
            s = s._replace(a=s.a + i)
    tl.store(x, s.a * 10 + s.b)


@case(4)
def tuples_of_tuples(x, n):
    s = ((1, n), (n, (2, 3)))
    for _ in range(n):
        (a, b), (c, (d, e)) = s
        s = ((b, c), (d, (e, a)))
    tl.store(x, s[0][0] * 1000 + s[1][1][1])


@case(4)
def containers(x, n):
    table = {"a": 1, "b": n}
    tl.store(x, table["a"] + table["b"])
    at = 1
    for _, value in table.items():
        tl.store(x + at, value)
        at += 1
    loaded = (tl.load(x + 30), tl.load(x + 31))
    total = 0
    for i, v in enumerate(loaded):
        total += v + i
    for v, w in zip(loaded, reversed(loaded)):
        total += v * w
    tl.store(x + 5, total + len(loaded) + sum(loaded))
    first, *rest = [*loaded, n]
    tl.store(x + 6, first * 100 + rest[0] * 10 + rest[1])
    for i in tl.static_range(4):
        if i in (1, 2):
            tl.store(x + 10 + i, 9)
    items = []
    for i in range(4):
        items = items + [n + i]
    tl.store(x + 20, items[3] + len(items) + list(range(3))[2])


@girih.jit
def twice(f, v):
    return f(f(v))


@case(4)
def functions_as_arguments(x, n):
    def half_if_large(v):
        if v > 20:
            return v // 2
        return v

    tl.store(x, twice(lambda v: v * n, 3))
    for i in range(n):
        tl.store(x + 1 + i, twice(half_if_large, i * 17))


@case(4)
@case()
@case(m=3)
def defaults(x, n=6, *, m=2):
    tl.store(x, n * m)


@case(4)
def assertions(x, n):
    assert n < 100, f"n is {n}"
    assert 3 < 5
    tl.store(x, 1)


@case.each_launch
def test_like_python(name, number, device):
    case.check(name, number, device)


@pytest.mark.parametrize("name", case)
def test_bytecode_is_read_back(name):
    case.check_bytecode(name)


# ---- what is outside a kernel, and changes

STEP = 3
WIDE = tl.constexpr(2)


@girih.jit
def inner(v):
    return v + 1


@girih.jit
def outside(x):
    tl.store(x, inner(STEP) * WIDE)


def stored(kernel, *arguments, **options):
    x = np.zeros(1, np.int32)
    kernel[1](x, *arguments, **options)
    return int(x[0])


@devices
def test_globals_that_change(monkeypatch, device):
    here = sys.modules[__name__]
    assert stored(outside, device=device) == 8
    monkeypatch.setattr(here, "STEP", 10)
    assert stored(outside, device=device) == 22
    monkeypatch.setattr(here, "WIDE", tl.constexpr(3))
    assert stored(outside, device=device) == 33
    assert "33" in outside.tile_ir(np.zeros(1, np.int32))

    @girih.jit
    def other(v):
        return v - 1

    monkeypatch.setattr(here, "inner", other)
    assert stored(outside, device=device) == 27
    monkeypatch.undo()
    assert stored(outside, device=device) == 8


def test_an_equal_global_makes_no_new_kernel(monkeypatch):
    assert stored(outside) == 8
    kernels = len(outside._dispatcher)
    monkeypatch.setattr(sys.modules[__name__], "WIDE", tl.constexpr(2))
    assert stored(outside) == 8
    assert len(outside._dispatcher) == kernels > 0


def test_a_global_that_is_gone(monkeypatch):
    assert stored(outside) == 8
    monkeypatch.delattr(sys.modules[__name__], "STEP")
    with pytest.raises(girih.CompilationError, match="`STEP` is not defined"):
        stored(outside)


def test_closures_and_attributes_that_change():
    factor = 2
    config = ModuleType("config")
    config.WIDTH = 5

    class Holder:
        BASE = 100

    @girih.jit
    def kernel(x):
        tl.store(x, factor * config.WIDTH + Holder.BASE)

    assert stored(kernel) == 110
    factor = 3
    assert stored(kernel) == 115
    config.WIDTH = 6
    assert stored(kernel) == 118
    Holder.BASE = 0
    assert stored(kernel) == 18


def test_kernels_of_a_class():
    class Operators:
        SCALE = 2

        @girih.jit
        def plain(x, n):
            tl.store(x, n * Operators.SCALE)

        @staticmethod
        @girih.jit
        def static(x, n):
            tl.store(x, n)

    assert stored(Operators.plain, 4) == stored(Operators().plain, 4) == 8
    assert stored(Operators.static, 4) == stored(Operators().static, 4) == 4


def test_kernels_are_read_wherever_they_stand(tmp_path):
    """Continuation lines and texts that reach left of the function, tabs, and letters of several bytes."""
    file = tmp_path / "module_of_kernels.py"
    file.write_text(
        "import girih\n"
        "if True:\n"
        "\tdef make():\n"
        "\t\t@girih.jit\n"
        "\t\tdef kernel(x,\n"
        "   n=3,  # a comment\n"
        "):\n"
        '\t\t\t"""A text\n'
        'over lines."""\n'
        "\t\t\tgröße = n; girih.store(x,\n"
        "größe)\n"
        "\t\t\tgrößer = größe; girih.store(x, nothing)\n"
        "\t\treturn kernel\n"
    )
    namespace = {"__name__": "module_of_kernels"}
    exec(compile(file.read_text(), file, "exec"), namespace)
    with pytest.raises(girih.CompilationError) as caught:
        stored(namespace["make"]())
    assert str(caught.value).splitlines() == [
        f"{file}:12:35: `nothing` is not defined",
        "   12 | \t\t\tgrößer = größe; girih.store(x, nothing)",
        "      | \t\t\t" + " " * 31 + "^~~~~~~",
    ]
