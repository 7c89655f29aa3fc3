"""Random kernels whose conditions and bounds are reduced over tiles, as text, and NumPy in place of the language for the oracle.

A seed gives a kernel of two blocks over tiles of int32: `if`, `for`, `while`, `break`, `continue` and `return` that a reduction
decides, with reductions, scans, products, gathers, masked loads and stores inside and behind them. All numbers are whole and
loops are short, so each kernel ends and has one answer.
"""

import random

import numpy as np

REDUCTIONS = ("sum", "max", "min", "xor_sum", "argmax", "argmin")
# Numbers that a block stores one by one, behind its three tiles.
SCALARS = 80


class Writer:
    def __init__(self, seed, size):
        self.random, self.size, self.lines, self.loops = random.Random(seed), size, [], 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def tile(self, depth=2):
        kind = self.random.randrange(12 if depth else 3)
        if kind <= 2:
            return self.pick("v", "w", "u")
        a = self.tile(depth - 1)
        if kind == 3:
            return f"({a} {self.pick('+', '-', '*', '^', '|')} {self.tile(depth - 1)})"
        if kind == 4:
            return f"({a} + {self.scalar(depth - 1)})"
        if kind == 5:
            condition = f"{a} {self.pick('<', '>', '==', '<=')} {self.scalar(depth - 1)}"
            return f"tl.where({condition}, {self.tile(depth - 1)}, {self.tile(depth - 1)})"
        if kind == 6:
            return f"(tl.cumsum({a} & 1023, 0) & 4095)"
        if kind == 7:
            return f"tl.flip({a})"
        if kind == 8:
            return f"tl.load(x + ({a} & {self.size - 1}))"
        if kind == 9 and self.size == 256:
            square = [f"tl.reshape(({t} & 7).to(tl.float16), [16, 16])" for t in (a, self.tile(depth - 1))]
            return f"tl.reshape(tl.dot({square[0]}, {square[1]}).to(tl.int32), [256])"
        if kind == 10:
            return f"tl.load(x + i, mask={a} > {self.scalar(depth - 1)}, other={self.random.randrange(9)})"
        rows = self.pick(4, 8, self.size // 4)
        shape, (axis, back) = [rows, self.size // rows], self.pick((1, "[:, None]"), (0, "[None, :]"))
        folded = f"tl.{self.pick('sum', 'max', 'min')}(tl.reshape({a}, {shape}), {axis}){back}"
        return f"tl.reshape(tl.broadcast_to({folded}, {shape}), [{self.size}])"

    def scalar(self, depth=2):
        kind = self.random.randrange(10 if depth > 0 else 4)
        if kind == 0:
            return str(self.random.randrange(40))
        if kind <= 3:
            return self.pick("a", "b", "c", "n", *(f"i{k}" for k in range(self.loops)))
        if kind <= 6:
            return f"(tl.{self.pick(*REDUCTIONS)}({self.tile(depth - 1)}, 0) & 1023)"
        if kind == 7:
            condition = f"{self.tile(depth - 1)} {self.pick('<', '>', '==')} {self.scalar(depth - 1)}"
            return f"tl.sum(({condition}).to(tl.int32), 0)"
        if kind == 8:
            return f"tl.load(x + ({self.scalar(depth - 1)} & 63))"
        return f"(({self.scalar(depth - 1)} {self.pick('+', '-', '*', '^')} {self.scalar(depth - 1)}) & 1023)"

    def truth(self, depth=2):
        kind = self.random.randrange(6)
        if kind <= 3:
            return f"{self.scalar(depth)} {self.pick('<', '>', '<=', '==', '!=')} {self.scalar(depth - 1)}"
        if kind == 4 and depth:
            return f"({self.truth(depth - 1)} {self.pick('and', 'or')} {self.truth(depth - 1)})"
        return f"({self.scalar(depth)} & 3) == {self.random.randrange(4)}"

    def body(self, depth, budget):
        for _ in range(self.random.randrange(1, 4)):
            if self.statement(depth, budget):
                return

    def statement(self, depth, budget):
        """Writes one; true where nothing can follow."""
        kind = self.random.randrange(14 if budget else 7)
        if kind <= 2:
            self.line(depth, f"{self.pick('v', 'w', 'u')} = {self.tile()} & 4095")
        elif kind <= 4:
            self.line(depth, f"{self.pick('a', 'b', 'c')} = {self.scalar()}")
        elif kind == 5 and self.random.random() < 0.5:
            self.line(depth, f"tl.store(o + {3 * self.size} + ({self.scalar()} & 63), {self.scalar()})")
        elif kind == 5:
            self.line(depth, f"tl.store(o + i, {self.tile()}, mask={self.tile(1)} > {self.scalar(1)})")
        elif kind == 6 and self.loops:
            self.line(depth, self.pick("break", "continue", "return", "break"))
            return True
        elif kind == 6:
            self.line(depth, f"u = {self.tile()} & 4095")
        elif kind <= 10:
            self.line(depth, f"if {self.truth()}:")
            self.body(depth + 1, budget - 1)
            if self.random.random() < 0.5:
                self.line(depth, "else:")
                self.body(depth + 1, budget - 1)
        else:
            self.loop(depth, budget)
        return False

    def loop(self, depth, budget):
        name = f"i{self.loops}"
        if self.random.random() < 0.5:
            self.line(depth, f"{name} = 0")
            self.line(depth, f"while {self.truth()} and {name} < 3:")
            self.line(depth + 1, f"{name} += 1")
        else:
            self.line(depth, f"for {name} in range({self.scalar()} & 3):")
        self.loops += 1
        self.body(depth + 1, budget - 1)
        self.loops -= 1


def program(seed, size):
    """The text of a module with the kernel `kernel(x, o, n)`."""
    writer = Writer(seed, size)
    writer.lines = ["import girih as tl", "", "", "@tl.jit", "def kernel(x, o, n):"]
    writer.line(1, f"p, i = tl.program_id(0), tl.arange(0, {size})")
    writer.line(1, f"o += p * {3 * size + SCALARS}")
    writer.line(1, f"v, w = tl.load(x + i), tl.load(x + {size} + i + p)")
    writer.line(1, "u, a, b, c = v + w, n, p + 1, tl.sum(v, 0) & 255")
    if writer.random.random() < 0.5:
        writer.line(1, f"if {writer.truth()}:")
        writer.line(2, "return")
    for _ in range(writer.random.randrange(2, 5)):
        writer.statement(1, 2)
    for place, name in enumerate("vwu"):
        writer.line(1, f"tl.store(o + {place * size} + i, {name})")
    for place, name in enumerate("abc"):
        writer.line(1, f"tl.store(o + {3 * size + 64 + place}, {name})")
    return "\n".join(writer.lines) + "\n"


# ---- the oracle


class Tile(np.ndarray):
    def to(self, dtype):
        return tile(np.asarray(self).astype(dtype))


def tile(value):
    return np.asarray(value).view(Tile) if np.ndim(value) else value


class Pointer:
    def __init__(self, array, at=0):
        self.array, self.at = array, at

    def __add__(self, by):
        return Pointer(self.array, self.at + np.asarray(by).astype(np.int64))


class Language:
    """NumPy in place of the language, for one block."""

    int32, float16 = np.int32, np.float16

    def __init__(self, block):
        self.block = block

    def jit(self, function):
        return function

    def program_id(self, _):
        return np.int32(self.block)

    def arange(self, low, high):
        return tile(np.arange(low, high, dtype=np.int32))

    def load(self, p, mask=None, other=0):
        if mask is None:
            return tile(p.array[p.at])
        return tile(np.where(mask, p.array[np.where(mask, p.at, 0)], np.int32(other)))

    def store(self, p, value, mask=None):
        if mask is None:
            p.array[p.at] = value
        else:
            p.array[p.at[mask]] = np.broadcast_to(value, np.shape(p.at))[mask]

    def sum(self, t, axis):
        return tile(np.asarray(t).sum(axis, dtype=np.int32))

    def max(self, t, axis):
        return tile(np.asarray(t).max(axis))

    def min(self, t, axis):
        return tile(np.asarray(t).min(axis))

    def xor_sum(self, t, axis):
        return np.bitwise_xor.reduce(np.asarray(t), axis)

    def argmax(self, t, axis):
        return np.int32(np.asarray(t).argmax(axis))

    def argmin(self, t, axis):
        return np.int32(np.asarray(t).argmin(axis))

    def cumsum(self, t, axis):
        return tile(np.cumsum(np.asarray(t), axis, dtype=np.int32))

    def flip(self, t):
        return t[::-1]

    def where(self, condition, a, b):
        return tile(np.where(condition, a, b))

    def reshape(self, t, shape):
        return tile(np.reshape(t, shape))

    def broadcast_to(self, t, shape):
        return tile(np.broadcast_to(t, shape))

    def dot(self, a, b):
        return tile(np.asarray(a).astype(np.float32) @ np.asarray(b).astype(np.float32))


def expected(text, x, size, n, blocks):
    """The results of a program: `o` as the blocks leave it."""
    o = np.zeros(blocks * (3 * size + SCALARS), np.int32)
    for block in range(blocks):
        names = {"tl": Language(block), "range": lambda *a: map(np.int32, range(*map(int, a)))}
        with np.errstate(all="ignore"):
            exec(text.replace("import girih as tl\n", ""), names)
            names["kernel"](Pointer(x), Pointer(o), np.int32(n))
    return o
