"""Ten kernels whose blocks race: the lines that do are marked `here`, or `here and here` where one line meets itself."""

import triton
import triton.language as tl


@triton.jit
def total(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + i), axis=0)
    before = tl.load(out)  # here
    tl.store(out, before + part)  # here


@triton.jit
def overlapping(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v)  # here and here


@triton.jit
def in_place(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(out + i)  # here
    tl.store(out + i + 1, left)  # here


@triton.jit
def flag(x, out, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out + 1, 5.0)  # here
    else:
        tl.store(out + 2, tl.load(out + 1))  # here


@triton.jit
def counted(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bin = i % 4
    seen = tl.load(out + bin)  # here
    tl.store(out + bin, seen + 1)  # here


@triton.jit
def split_k(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    part = tl.load(x + tl.program_id(0) * BLOCK + i)
    tl.store(out + i, part)  # here and here


@triton.jit
def greatest(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = tl.max(tl.load(x + i), axis=0)
    if here > tl.load(out):  # here
        tl.store(out, here)  # here


@triton.jit
def transposed(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    line = tl.load(out + row * BLOCK + i)  # here
    tl.store(out + i * BLOCK + row, line)  # here


@triton.jit
def initialised(x, out, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, 0.0)  # here
    else:
        tl.atomic_add(out, 1.0)  # here


@triton.jit
def unlocked(x, out, BLOCK: tl.constexpr):
    if tl.program_id(0) == 1:
        tl.store(out + tl.arange(0, BLOCK), tl.load(x))  # here
    else:
        tl.store(out + 3, tl.load(x + 1))  # here


ALL = [total, overlapping, in_place, flag, counted, split_k, greatest, transposed, initialised, unlocked]
