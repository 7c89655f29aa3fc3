"""Random kernels on both devices against NumPy.

A seed gives the text of a kernel: expressions over several types, runtime loops and branches with carried tiles,
reductions, scans, masked loads and stores, helper kernels. The oracle executes the same text with Python, with typed
NumPy arrays in place of tiles and the common types of two operands from the table of `test_jit_language_types`.
Results are equal to the bit except for the sign of zero: every operation used is exact or correctly rounded.
"""

import importlib.util
import os
import random
import textwrap
import types

import numpy as np
import pytest
from test_jit_language_types import NUMPY, sums

import girih
import girih.language as tl

LANES = 32
PROGRAMS = int(os.environ.get("GIRIH_RANDOM_KERNELS", "24"))
MEETS = {pair: c for a, b, c in sums() for pair in ((a, b), (b, a))}
INPUTS = ["int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"]
FLOATS = ("float16", "float32", "float64")


# ---- the oracle


class Tile:
    """A NumPy array and the name of its type, with the operators of a kernel's tile."""

    def __init__(self, value, name):
        self.value, self.name = np.asarray(value).astype(NUMPY[name]), name

    def meet(self, other):
        if not isinstance(other, Tile):
            return self.value, NUMPY[self.name](other), self.name
        name = self.name if self.name == other.name else MEETS[self.name, other.name]
        return self.to(name).value, other.to(name).value, name

    def apply(self, function, other, result=None):
        a, b, name = self.meet(other)
        with np.errstate(all="ignore"):
            return Tile(function(a, b), result or name)

    def __add__(self, other):
        return self.apply(np.add, other)

    def __sub__(self, other):
        return self.apply(np.subtract, other)

    def __mul__(self, other):
        return self.apply(np.multiply, other)

    def __truediv__(self, other):
        a, b, name = self.meet(other)
        kind = "float32" if name == "float16" else name
        with np.errstate(all="ignore"):
            return Tile(a.astype(NUMPY[kind]) / b.astype(NUMPY[kind]), kind)

    def __floordiv__(self, other):
        return self.apply(lambda a, b: (a - np.fmod(a, b)) // b, other)

    def __mod__(self, other):
        return self.apply(np.fmod, other)

    def __and__(self, other):
        return self.apply(np.bitwise_and, other)

    def __or__(self, other):
        return self.apply(np.bitwise_or, other)

    def __xor__(self, other):
        return self.apply(np.bitwise_xor, other)

    def __lshift__(self, other):
        return self.apply(np.left_shift, other)

    def __rshift__(self, other):
        return self.apply(np.right_shift, other)

    def __lt__(self, other):
        return self.apply(np.less, other, "int1")

    def __ge__(self, other):
        return self.apply(np.greater_equal, other, "int1")

    def __eq__(self, other):
        return self.apply(np.equal, other, "int1")

    def __invert__(self):
        return Tile(~self.value, self.name)

    def __neg__(self):
        with np.errstate(all="ignore"):
            return Tile(-self.value, self.name)

    def __bool__(self):
        return bool(self.value)

    def __index__(self):
        return int(self.value)

    def to(self, name):
        with np.errstate(all="ignore"):
            return Tile(self.value, name)


class Pointer:
    def __init__(self, array, at=0):
        self.array, self.at = array, at

    def __add__(self, by):
        return Pointer(self.array, self.at + (by.value.astype(np.int64) if isinstance(by, Tile) else by))


def load(pointer, mask=None, other=0):
    name = next(n for n in INPUTS if NUMPY[n] == pointer.array.dtype)
    inside = np.broadcast_to(True if mask is None else mask.value, np.shape(pointer.at))
    return Tile(np.where(inside, pointer.array[np.where(inside, pointer.at, 0)], pointer.array.dtype.type(other)), name)


def store(pointer, value, mask=None):
    inside = np.broadcast_to(True if mask is None else mask.value, np.shape(pointer.at))
    pointer.array[np.asarray(pointer.at)[inside]] = np.broadcast_to(value.value, inside.shape)[inside].astype(
        pointer.array.dtype
    )


def choose(condition, x, y):
    a, b, name = x.meet(y)
    return Tile(np.where(condition.value, a, b), name)


def pick(function, whole):
    """`maximum` or `minimum`: of a number and a NaN the number."""
    return lambda x, y: x.apply(function if x.name in FLOATS else whole, y)


def wide(name):
    return {"int8": "int32", "int16": "int32", "uint8": "uint32", "int1": "int32"}.get(name, name)


def total(x, axis):
    return Tile(np.add.reduce(x.to(wide(x.name)).value, axis, dtype=NUMPY[wide(x.name)]), wide(x.name))


def running(x, axis):
    return Tile(np.add.accumulate(x.to(wide(x.name)).value, axis, dtype=NUMPY[wide(x.name)]), wide(x.name))


def oracle(block):
    maximum, minimum = pick(np.fmax, np.maximum), pick(np.fmin, np.minimum)
    names = {n: n for n in NUMPY}
    return types.SimpleNamespace(
        **names, load=load, store=store, where=choose, maximum=maximum, minimum=minimum, constexpr=tl.constexpr,
        program_id=lambda axis: Tile(block, "int32"), arange=lambda a, b: Tile(np.arange(a, b), "int32"),
        abs=lambda x: Tile(np.abs(x.value), x.name), sqrt=lambda x: Tile(np.sqrt(x.value), x.name),
        floor=lambda x: Tile(np.floor(x.value), x.name), clamp=lambda x, a, b: minimum(maximum(x, a), b),
        sum=total, cumsum=running, max=lambda x, axis: Tile(np.max(x.to(wide(x.name)).value, axis), wide(x.name)),
        min=lambda x, axis: Tile(np.min(x.to(wide(x.name)).value, axis), wide(x.name)),
        flip=lambda x: Tile(x.value[::-1], x.name), sort=lambda x: Tile(np.sort(x.value), x.name),
    )  # fmt: skip


# ---- the generator


class Writer:
    """The text of a kernel; `names` are the tiles in reach with their types."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {}
        self.lines = []
        self.depth = 1
        self.count = 0

    def say(self, text):
        self.lines.append("    " * self.depth + text)

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def leaf(self, kinds=INPUTS):
        """A tile of one of the types, cast to one if there is none."""
        pick = self.random.choice
        fitting = [n for n, t in self.names.items() if t in kinds]
        if fitting and self.random.random() < 0.9:
            name = pick(fitting)
            return name, self.names[name]
        name, kind = pick(list(self.names)), pick(list(kinds))
        return self.cast(name, self.names[name], kind), kind

    def cast(self, text, source, target):
        if source in FLOATS and target not in FLOATS:
            low = 0.0 if target.startswith("u") else -100.0
            return f"tl.clamp({text}, {low}, 100.0).to(tl.{target})"
        return f"({text}).to(tl.{target})"

    def condition(self):
        a, t = self.leaf()
        b, _ = self.leaf()
        return self.random.choice(
            [f"({a} < {b})", f"({a} >= {self.random.randrange(5)})", f"(({a} < {b}) & ({b} >= 2))", f"~({a} == {b})"]
        )

    def expression(self, depth=0):
        """A text and its type."""
        r = self.random
        if depth > 2 or r.random() < 0.15:
            return self.leaf()
        choice = r.randrange(8)
        a, ta = self.expression(depth + 1)
        if choice == 0:
            target = r.choice(INPUTS)
            return self.cast(a, ta, target), target
        if choice == 1:
            b, tb = self.expression(depth + 1)
            return f"tl.where({self.condition()}, {a}, {b})", ta if ta == tb else MEETS[ta, tb]
        if choice == 2 and ta in FLOATS:
            b, tb = self.leaf(FLOATS)
            t = ta if ta == tb else MEETS[ta, tb]
            return f"({a} / (tl.abs({b}) + 1.0))", "float32" if t == "float16" else t
        if choice == 2:
            b = f"(({self.cast(*self.leaf(), ta)} & 7) + 1)"
            return f"({a} {r.choice(['//', '%'])} {b})", ta
        if choice == 3 and ta in FLOATS:
            return r.choice([f"tl.sqrt(tl.abs({a}))", f"tl.floor({a})", f"(-{a})", f"tl.clamp({a}, -9.0, 9.0)"]), ta
        if choice == 3:
            b = self.cast(*self.leaf(), ta)
            return r.choice(
                [f"({a} {r.choice('&|^')} {b})", f"({a} {r.choice(['<<', '>>'])} ({b} & 7))", f"(~{a})", f"({a} * 3)"]
            ), ta
        b, tb = self.expression(depth + 1)
        t = ta if ta == tb else MEETS[ta, tb]
        if choice == 4:
            return f"tl.{r.choice(['maximum', 'minimum'])}({a}, {b})", t
        return f"({a} {r.choice('+-*')} {b})", t

    def assignment(self):
        text, kind = self.expression()
        name = self.fresh()
        self.say(f"{name} = {text}")
        self.names[name] = kind

    def changed(self):
        """A tile that is there gets another value of its type."""
        name = self.random.choice(list(self.names))
        text, kind = self.expression()
        self.say(f"{name} = {self.cast(text, kind, self.names[name])}")

    def inside(self, header, least=1):
        """A block in which tiles change and new ones come and go."""
        self.say(header)
        outer = dict(self.names)
        self.depth += 1
        for _ in range(least + self.random.randrange(2)):
            self.statement()
            self.changed()
        self.depth -= 1
        self.names = outer

    def scalar(self):
        """A reduction of integers, or an extreme of anything."""
        name, kind = self.leaf([t for t in INPUTS if t not in FLOATS])
        function = self.random.choice(["sum", "max", "min"])
        return f"tl.{function}({name}, 0)", wide(kind)

    def statement(self):
        r = self.random
        choice = r.randrange(9) if self.depth < 3 else r.randrange(6)
        if choice < 3:
            self.assignment()
        elif choice == 3:
            text, kind = self.scalar()
            name, source = self.fresh(), r.choice(list(self.names))
            self.say(f"{name} = {source} + {text}")
            self.names[name] = MEETS[self.names[source], kind]
        elif choice == 4:
            name, source = self.fresh(), self.leaf([t for t in INPUTS if t not in FLOATS])
            function, kind = r.choice([("cumsum", wide(source[1])), ("flip", source[1]), ("sort", source[1])])
            self.say(f"{name} = tl.{function}({source[0]}{', 0' if function == 'cumsum' else ''})")
            self.names[name] = kind
        elif choice == 5:
            name, kind = self.fresh(), r.choice(INPUTS)
            index = self.cast(*self.leaf(), "int32")
            self.say(
                f"{name} = tl.load(x_{kind} + ({index} & {LANES - 1}), mask={self.condition()}, other={r.randrange(4)})"
            )
            self.names[name] = kind
        elif choice == 6:
            self.inside(f"for k{self.depth} in range({r.randrange(2)}, trips, {r.choice([1, 2])}):")
        elif choice == 7:
            self.inside(f"if {self.scalar()[0]} {r.choice(['<', '>='])} {r.randrange(50)}:")
            if r.random() < 0.7:
                self.inside("else:")
        else:
            a, t = self.leaf()
            self.say(f"tl.store(scratch + block * {LANES} + lane, {self.cast(a, t, 'int64')}, mask={self.condition()})")
            name = self.fresh()
            self.say(f"{name} = tl.load(scratch + (block * {LANES} + {LANES - 1} - lane))")
            self.names[name] = "int64"

    def kernel(self):
        arguments = ", ".join(f"x_{t}" for t in INPUTS)
        self.say("block, lane = tl.program_id(0), tl.arange(0, LANES)")
        self.say("v0 = lane + block")
        self.names["v0"] = "int32"
        for t in self.random.sample(INPUTS, 4):
            self.say(f"a_{t} = tl.load(x_{t} + lane, mask=lane < {self.random.randrange(20, LANES + 1)}, other=1)")
            self.names[f"a_{t}"] = t
        self.say(f"b = tl.load(x_int32 + ((lane + block) & {LANES - 1}))")
        self.names["b"] = "int32"
        for _ in range(5):
            self.statement()
        for i, (name, kind) in enumerate(list(self.names.items())[-8:]):
            out, target = ("floats", "float64") if kind in FLOATS else ("ints", "int64")
            self.say(f"tl.store({out} + (block * 8 + {i}) * {LANES} + lane, {name}.to(tl.{target}))")
        head = f"def kernel({arguments}, scratch, ints, floats, trips, LANES: tl.constexpr):"
        return "\n".join([head, *self.lines]) + "\n"


def inputs():
    rng = np.random.default_rng(11)
    arrays = []
    for t in INPUTS:
        values = rng.standard_normal(LANES) * 20 if t in FLOATS else rng.integers(0 if t[0] == "u" else -60, 120, LANES)
        arrays.append(np.asarray(values).astype(NUMPY[t]))
    return arrays


BLOCKS, TRIPS = 2, 5


def results(run):
    arrays = inputs()
    scratch, ints, floats = (
        np.zeros(BLOCKS * LANES, np.int64),
        np.zeros((BLOCKS, 8, LANES), np.int64),
        np.zeros((BLOCKS, 8, LANES)),
    )
    run(*arrays, scratch, ints, floats)
    return ints, floats


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_kernel(seed, tmp_path):
    text = Writer(seed).kernel()
    path = tmp_path / f"kernel{seed}.py"
    path.write_text("import girih.language as tl\n\n\n" + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def by_python(*arrays):
        flat = [Pointer(a.reshape(-1)) for a in arrays]
        for block in range(BLOCKS):
            names = {
                "tl": oracle(block),
                "range": lambda *b: map(lambda i: Tile(i, "int32"), range(*(int(v) for v in b))),
            }
            exec(text, names)
            names["kernel"](*flat, TRIPS, LANES)

    expected = results(by_python)
    kernel = girih.jit(module.kernel)
    for device in ("eval", "cpu"):
        given = results(lambda *arrays: kernel[(BLOCKS,)](*arrays, TRIPS, LANES, device=device))
        for e, g in zip(expected, given):
            same = (e == g) | (np.isnan(e) & np.isnan(g))
            assert same.all(), (
                f"{device}, seed {seed}: {np.argwhere(~same)[:4].tolist()} of\n{textwrap.indent(text, '  ')}"
            )
