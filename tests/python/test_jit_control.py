"""Control flow of kernels, each compared with the same function executed by Python itself."""

import enum
from typing import NamedTuple

import girih
import girih.language as tl
import numpy as np
import pytest
from oracle import Cases

case = Cases()

# ---- helpers the cases call


@girih.jit
def first_negative(x, n):
    """A return inside nested loops."""
    for i in range(n):
        for j in range(4):
            if tl.load(x + i * 4 + j) == 23:
                return i * 100 + j
    return -1


@girih.jit
def sign(v):
    if v > 0:
        return 1
    if v < 0:
        return -1
    return 0


@girih.jit
def pair(a, b=10, *, swap: tl.constexpr = False):
    if swap:
        return b, a
    return a, b


@girih.jit
def clamp(v, low, high):
    if v < low:
        v = low
    elif v > high:
        v = high
    return v


class Mode(enum.IntEnum):
    ADD = 1
    SUB = 2


class Both(NamedTuple):
    total: object
    count: object


WIDTH = tl.constexpr(4)
OFFSETS = (1, 3, 5)


# ---- cases


@case(0)
@case(1)
@case(7)
@case(100)
def counted(x, n):
    total = 0
    for i in range(n):
        total += i * i
    tl.store(x, total)


@case(3, 20, 4)
@case(20, 3, 4)
@case(3, 3, 1)
def stepped(x, low, high, step):
    total = 0
    last = -1
    for i in range(low, high, step):
        total += i
        last = i
    tl.store(x, total)
    tl.store(x + 1, last)


@case(10)
@case(0)
@case(3)
def backwards(x, n):
    at = 0
    for i in range(n, 0, -3):
        tl.store(x + at, i)
        at += 1


@case(5)
@case(50)
def stops(x, n):
    total = 0
    for i in range(n):
        if i == 9:
            break
        if i % 2 == 0:
            continue
        total += i
    tl.store(x, total)


@case(6)
def nested(x, n):
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 3:
                break
            for k in range(2):
                total += i * j + k
        else_seen = i
        total += else_seen
    tl.store(x, total)


@case(27)
@case(1)
@case(97)
def collatz(x, n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(x, steps)


@case(5)
def forever(x, n):
    i = 0
    while True:
        i += 1
        if i * i > n * 7:
            break
    tl.store(x, i)


@case(3)
@case(-3)
@case(0)
def branches(x, n):
    if n > 0:
        a, b = 1, n
    elif n < 0:
        a, b = 2, -n
    else:
        a, b = 3, 5
    tl.store(x, a)
    tl.store(x + 1, b)


@case(3)
@case(40)
def leaves_early(x, n):
    tl.store(x, n)
    if n > 10:
        return
    tl.store(x + 1, n)


@case(4)
@case(12)
def leaves_from_a_loop(x, n):
    for i in range(20):
        if i == n:
            tl.store(x, 1000 + i)
            return
        tl.store(x + i, -i)
    tl.store(x, -1)


@case(10)
@case(3)
def calls(x, n):
    tl.store(x, first_negative(x, n))
    tl.store(x + 1, sign(n - 5))
    tl.store(x + 2, sign(3 - n))
    tl.store(x + 3, clamp(n, 4, 8))


@case(3)
def tuples(x, n):
    a, b = pair(n)
    c, d = pair(n, b=b + 1, swap=True)
    values = (a, b, c, d)
    for i in tl.static_range(4):
        tl.store(x + i, values[i])
    (e, f), g = (n, n * 2), n * 3
    tl.store(x + 4, e + f + g)


@case(9)
def named_tuples(x, n):
    state = Both(0, 0)
    for i in range(n):
        state = Both(state.total + i, state.count + 1)
    tl.store(x, state.total)
    tl.store(x + 1, state.count)


@case(7)
def carried_tuples(x, n):
    a = (0, 1)
    for _ in range(n):
        a = (a[1], a[0] + a[1])
    tl.store(x, a[0])


@case(6)
def carried_tile(x, n):
    lane = tl.arange(0, 8)
    acc = 0
    for i in range(n):
        acc += tl.load(x + i * 8 + lane)
    tl.store(x + lane, acc)


@case(6)
def carried_pointer(x, n):
    p = x
    total = 0
    for _ in range(n):
        total += tl.load(p)
        p += 3
    tl.store(p, total)


@case(2)
def order_of_memory(x, n):
    for i in range(n):
        v = tl.load(x + i)
        tl.store(x + i + 1, v + 10)
    if n > 1:
        tl.store(x, tl.load(x + n) + 1)
    tl.store(x + 5, tl.load(x))


@case(5)
@case(0)
def chosen(x, n):
    a = n if n > 3 else 3
    b = 1 if a == n and n != 0 or n == 2 else 2
    c = 10 if not n else 20
    tl.store(x, a + b + c)


@case(5)
@case(15)
def chained(x, n):
    tl.store(x, 100 if 3 < n <= 10 else 200)


@case(4)
def named_expression(x, n):
    if (m := n * 2) > 5:
        tl.store(x, m)


@case(8, MODE=Mode.ADD)
@case(8, MODE=Mode.SUB)
def constants(x, n, MODE: tl.constexpr):
    if MODE == Mode.ADD:
        v = n + WIDTH
    else:
        v = n - WIDTH
    tl.store(x, v)
    for o in OFFSETS:
        tl.store(x + o, v * o)
    for i, o in enumerate(OFFSETS):
        tl.store(x + 20 + i, o)


@case(N=40)
@case(N=3)
def constant_bounds(x, N: tl.constexpr):
    total = 0
    for i in range(N):
        total += i * 3
    for i in range(0, N, 16):
        total += i
    tl.store(x, total)


@case(3)
def lambdas(x, n):
    double = lambda v: v * 2  # noqa: E731
    lane = tl.arange(0, 8)

    def shifted(v, by=n):
        return v + by

    tl.store(x + lane, shifted(double(tl.load(x + lane))))
    tl.store(x + 10, tl.reduce(tl.load(x + lane), 0, lambda a, b: tl.maximum(a, b)))


@case(4)
def comprehensions(x, n):
    tiles = [tl.load(x + i) + n for i in range(3)]
    tl.store(x, tiles[0] + tiles[1] + tiles[2])


@case(5, grid=3)
def of_several_blocks(x, n):
    me = tl.program_id(0)
    for i in range(me, n, tl.num_programs(0)):
        tl.store(x + 10 + i, me)


@case(2)
@case(9)
def branch_in_a_loop_with_memory(x, n):
    for i in range(n):
        if i % 3 == 1:
            tl.store(x + i, 100)
        else:
            if i % 3 == 2:
                continue
            tl.store(x + i, tl.load(x + i + 1))


@case(11)
def last_value_is_kept(x, n):
    found = -1
    for i in range(n):
        v = tl.load(x + i)
        if v % 5 == 4:
            found = v
    tl.store(x, found)


@case.each_launch
def test_like_python(name, number, device):
    case.check(name, number, device)


@pytest.mark.parametrize("name", case)
def test_bytecode_is_read_back(name):
    case.check_bytecode(name)


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_integers_wrap(device):
    @girih.jit
    def kernel(x, n):
        v = n
        for _ in range(3):
            v = v * v
        tl.store(x, v)

    data = np.zeros(1, np.int32)
    kernel[1](data, 65537, device=device)
    want = np.int32(65537)
    with np.errstate(over="ignore"):
        for _ in range(3):
            want = np.int32(want * want)
    assert data[0] == want


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_a_number_takes_the_type_of_what_is_added(device):
    @girih.jit
    def kernel(x, out, n):
        total = 0.0
        count = 0
        for i in range(n):
            total += tl.load(x + i * 4 + tl.arange(0, 4))
            count += tl.load(x + i).to(tl.int64)
        tl.static_assert(total.dtype == tl.float64 and total.shape == (4,))
        tl.static_assert(count.dtype == tl.int64)
        tl.store(out + tl.arange(0, 4), total + count)

    x, out = np.arange(32, dtype=np.float64), np.zeros(4)
    kernel[1](x, out, 8, device=device)
    assert np.array_equal(out, x.reshape(8, 4).sum(0) + x[:8].sum())


def test_each_definition_is_its_own_kernel():
    def make(k):
        @girih.jit
        def kernel(x):
            tl.store(x, k)

        return kernel

    x = np.zeros(1, np.float32)
    kernels = [make(k) for k in (1, 2, 3)]
    seen = []
    for kernel in kernels:
        kernel[1](x)
        seen.append(x[0])
    assert seen == [1, 2, 3]
