"""Conditions and bounds that a reduction gives, with what threads of a block do together inside or behind them, on GPUs' simulator."""

import itertools

import girih
import girih.language as tl
import numpy as np
import pytest

TARGETS = ["sm_80", "sm_90a", "sm_100a", "sm_120"]


@girih.jit
def guarded(x, o, B: tl.constexpr, HOW: tl.constexpr, WHAT: tl.constexpr):
    """Something is done if a number that all elements give is large."""
    i = tl.arange(0, B)
    y = tl.load(x + i)
    if HOW == 0:
        c = tl.sum(y, 0) > 100.0
    elif HOW == 1:
        c = tl.max(y, 0) > 50.0
    elif HOW == 2:
        c = tl.min(y, 0) < 1.0
    elif HOW == 3:
        c = tl.sum((y > 3.0).to(tl.int32), 0) == B - 4
    elif HOW == 4:
        c = tl.argmax(y, 0) == B - 1
    else:
        c = tl.xor_sum(y.to(tl.int32), 0) < 3
    if c:
        if WHAT == 0:
            y = y / tl.max(y, 0)
        elif WHAT == 1:
            y = tl.cumsum(y, 0)
        elif WHAT == 2:
            y = tl.flip(y)
        else:
            if tl.sum(y, 0) > 7.0:
                y = y - tl.min(y, 0)
            y = y + tl.sum(y, 0)
    tl.store(o + i, y)


def guarded_by_numpy(y, how, what):
    n = len(y)
    bits = np.bitwise_xor.reduce(y.astype(np.int32))
    c = [y.sum() > 100, y.max() > 50, y.min() < 1, (y > 3).sum() == n - 4, y.argmax() == n - 1, bits < 3][how]
    if not c:
        return y
    if what == 0:
        return y / y.max()
    if what == 1:
        return np.cumsum(y, dtype=np.float32)
    if what == 2:
        return y[::-1]
    if y.sum() > 7:
        y = y - y.min()
    return y + y.sum()


@pytest.mark.parametrize("how", range(6))
def test_a_reduction_decides(how, monkeypatch):
    for (what, size), target in zip(itertools.product(range(4), [32, 64, 256]), itertools.cycle(TARGETS)):
        monkeypatch.setenv("GIRIH_TARGET", target)
        x, o = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
        guarded[(1,)](x, o, B=size, HOW=how, WHAT=what, device="sim")
        np.testing.assert_allclose(o, guarded_by_numpy(x, how, what), rtol=1e-6, err_msg=f"{how} {what} {size} {target}")


@girih.jit
def returns_early(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    y = tl.load(x + tl.program_id(0) * B + i)
    if tl.sum(y, 0) == 0:
        return
    tl.store(o + tl.program_id(0), tl.max(y, 0) + tl.sum(tl.cumsum(y, 0), 0))


@girih.jit
def bisects(x, o, B: tl.constexpr):
    """The number below which a quarter of the elements are."""
    i = tl.arange(0, B)
    y = tl.load(x + i)
    low, high = tl.min(y, 0), tl.max(y, 0)
    while high - low > 0.5:
        middle = (low + high) * 0.5
        if tl.sum((y < middle).to(tl.int32), 0) < B // 4:
            low = middle
        else:
            high = middle
    tl.store(o, high)


@girih.jit
def converges(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    y = tl.load(x + i)
    rounds = 0
    while tl.max(y, 0) > 1.0:
        y = y / (1.0 + tl.sum(y, 0) / B)
        rounds += 1
    tl.store(o + i, y)
    tl.store(o + B, rounds.to(tl.float32))


@girih.jit
def counts_up_to_a_sum(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    y = tl.load(x + i)
    total = tl.zeros([B], tl.float32)
    for k in range(tl.sum(y, 0).to(tl.int32) // B):
        total += tl.cumsum(y + k, 0)
    tl.store(o + i, total)


@girih.jit
def multiplies_if_positive(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    a = tl.load(x + at)
    if tl.sum(tl.sum(a, 1), 0) > 0:
        a = tl.dot(a, a)
    tl.store(o + at, a)


@pytest.mark.parametrize("target", TARGETS)
def test_loops_and_returns_that_reductions_decide(target, monkeypatch):
    monkeypatch.setenv("GIRIH_TARGET", target)
    size = 128
    x = np.zeros((3, size), np.float32)
    x[1] = 1
    o = np.full(3, -1, np.float32)
    returns_early[(3,)](x, o, B=size, device="sim")
    assert o.tolist() == [-1, 1 + size * (size + 1) / 2, -1]

    y, o = np.arange(size, dtype=np.float32), np.zeros(1, np.float32)
    bisects[(1,)](y, o, B=size, device="sim")
    assert (y < o[0]).sum() == size // 4

    o, z, rounds = np.zeros(size + 1, np.float32), y / 16, 0
    converges[(1,)](z, o, B=size, device="sim")
    while z.max() > 1:
        z, rounds = z / (1 + z.sum() / np.float32(size)), rounds + 1
    np.testing.assert_allclose(o, [*z, rounds], rtol=1e-5)

    o = np.zeros(size, np.float32)
    counts_up_to_a_sum[(1,)](np.full(size, 3, np.float32), o, B=size, device="sim")
    np.testing.assert_allclose(o, sum(np.cumsum(np.full(size, 3 + k)) for k in range(3)))

    for sign in (1, -1):
        a, o = np.eye(64, dtype=np.float32) * 2 * sign, np.zeros((64, 64), np.float32)
        multiplies_if_positive[(1,)](a, o, B=64, device="sim")
        np.testing.assert_array_equal(o, a @ a if sign > 0 else a)
