"""A random program of a seed.

All sets of arguments are drawn at once and every statement is tried on all of them, so that a program runs with other
extents, other integers and empty tensors too. A template of `operations` that PyTorch refuses is drawn anew.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import replace

import torch

from . import operations
from .program import Arguments, Program, Run, Statement, View, is_float, storage

FLOATS = (torch.float32, torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
#: The most elements of a tensor, and the greatest number.
LARGEST, GREATEST = 400, 2000.0


def extents(rng: random.Random) -> list[dict[str, int]]:
    """Extents by name for each set of arguments: two sets, the second seldom with 0 and 1, or a third that may."""
    first, second, third = rng.sample(range(4, 8), 3), rng.sample(range(2, 8), 3), rng.sample(range(2, 8), 3)
    edges = [rng.choice((0, 1, n)) for n in third]
    draw = rng.random()
    chosen = (first, second) if draw < 0.45 else (first, edges) if draw < 0.8 else (first, second, edges)
    return [dict(zip("mnp", s)) for s in chosen]


class Generator:
    """The state that templates draw from. Names of tensors and numbers are those of the statements."""

    def __init__(self, rng: random.Random, sizes: list[dict[str, int]]):
        self.rng, self.sizes = rng, sizes
        self.program = Program([], [Arguments() for _ in sizes], [], [])
        self.runs = [Run(self.program, a) for a in self.program.sets]
        self.count = 0
        #: The names of dimensions of tensors, of parameters only.
        self.dims: dict[str, tuple] = {}

    # Parameters.

    def parameter(self, values, dims=None) -> str:
        name = f"{'x' if dims is not None else 'k'}{len(self.program.parameters)}"
        self.program.parameters.append(name)
        for run, arguments, value in zip(self.runs, self.program.sets, values):
            if dims is None:
                arguments.values[name] = value
                for world in run.worlds:
                    world[name] = value
            else:
                arguments.values[name] = replace(value, storage=value.storage)
                run.add(name, arguments)
        if dims is not None:
            self.dims[name] = dims
        return name

    def size(self, dims, at) -> tuple:
        """The extents of named dimensions in a set."""
        return tuple(d if isinstance(d, int) else self.sizes[at][d] for d in dims)

    def tensor_parameter(self, dtype, dims, data=None) -> str:
        """A tensor parameter; `data(set, count)` gives its elements."""
        rng = self.rng
        layout = rng.choice(("rows", "rows", "rows", "rows", "columns", "channels", "strided", "offset", "expanded"))
        whole = rng.random() < 0.7
        views = []
        for at, arguments in enumerate(self.program.sets):
            size = self.size(dims, at)
            stride, offset, count = placed(size, layout)
            elements = (data or self.data)(at, count) if data else self.data(dtype, count)
            arguments.storages.append(torch.tensor(elements, dtype=dtype))
            views.append(View(len(arguments.storages) - 1, size, stride, offset, whole))
        return self.parameter(views, dims)

    def data(self, dtype, count):
        rng = self.rng
        if dtype == torch.bool:
            return [rng.random() < 0.5 for _ in range(count)]
        if not dtype.is_floating_point:
            low = 0 if dtype == torch.uint8 else -5
            return [rng.randint(low, 6) for _ in range(count)]
        special = rng.random() < 0.04
        return [
            rng.choice((float("nan"), float("inf"), float("-inf"), -0.0)) if special and rng.random() < 0.2
            else rng.randint(-8, 8) / 4 for _ in range(count)
        ]  # fmt: skip

    def alias_parameter(self, name) -> str:
        """A parameter that shows the storage of another."""
        views = []
        first = self.rng.random() < 0.5
        for arguments in self.program.sets:
            view = arguments.values[name]
            size, stride = view.size[::-1], view.stride[::-1]
            if first and size and size[0] > 1:
                size = (size[0] - 1, *size[1:])
            views.append(View(view.storage, size, stride, view.offset, False))
        dims = tuple(self.dims[name][::-1]) if not first else tuple(-1 for _ in self.dims[name])
        made = f"x{len(self.program.parameters)}"
        self.program.parameters.append(made)
        for arguments, view in zip(self.program.sets, views):
            arguments.values[made] = view
        self.dims[made] = dims
        self.runs = [Run(self.program, a) for a in self.program.sets]
        return made

    # Names.

    def value(self, name, at=0):
        return self.runs[at].eager[name]

    def values(self, name):
        return [run.eager[name] for run in self.runs]

    def shapes(self, name):
        return [tuple(v.shape) for v in self.values(name)]

    def tensors(self, ok=None):
        names = [n for n, v in self.runs[0].eager.items() if isinstance(v, torch.Tensor)]
        return [n for n in names if ok is None or ok(self.value(n))]

    def exact(self, name) -> bool:
        return all(run.exact(name) for run in self.runs)

    def pick(self, kind="n", rank=None, ok=None, exact=False):
        """A tensor: of kind f (floats), i (integers), b (truth values), n (numbers) or a (anything)."""

        def fits(t):
            if kind == "f" and not t.is_floating_point() or kind == "b" and t.dtype != torch.bool:
                return False
            if kind == "n" and t.dtype == torch.bool:
                return False
            if kind == "i" and (t.is_floating_point() or t.dtype == torch.bool):
                return False
            return rank is None or (t.dim() >= -rank if rank < 0 else t.dim() == rank)

        found = [n for n in self.tensors(fits) if (ok is None or ok(n)) and (not exact or self.exact(n))]
        if not found:
            raise operations.Nothing
        # The newest are likelier.
        return found[-1] if self.rng.random() < 0.35 else self.rng.choice(found)

    def numbers(self, kind=int):
        return [n for n, v in self.runs[0].eager.items() if type(v) is kind]

    def partner(self, x, exact=False, same=False):
        """A tensor that broadcasts with `x`, of any dtype of its kind."""
        kinds = [self.value(x).is_floating_point(), self.value(x).dtype == torch.bool]

        def fits(n):
            v = self.value(n)
            if [v.is_floating_point(), v.dtype == torch.bool] != kinds and self.rng.random() < 0.8:
                return False
            if same and v.dtype != self.value(x).dtype:
                return False
            try:
                for a, b in zip(self.shapes(x), self.shapes(n)):
                    torch.broadcast_shapes(a, b)
            except RuntimeError:
                return False
            return True

        return self.pick("a", ok=fits, exact=exact)

    def like(self, x, dtype=None, axis=None):
        """A tensor of x's dtype and extents, but along `axis`."""

        def fits(n):
            if self.value(n).dtype != (dtype or self.value(x).dtype):
                return False
            return all(
                len(a) == len(b) and all(p == q for d, (p, q) in enumerate(zip(a, b)) if d != axis)
                for a, b in zip(self.shapes(x), self.shapes(n))
            )

        return self.pick("a", ok=fits)

    def axis(self, x) -> int:
        rank = self.value(x).dim()
        if not rank:
            raise operations.Nothing
        return self.rng.randrange(rank)

    def dim(self, axis, x) -> int:
        """An axis as it may be written: sometimes from the end."""
        return axis - self.value(x).dim() if self.rng.random() < 0.4 else axis

    def integer(self, low, high):
        """An expression whose value in each set lies from `low(at)` to `high(at)`: changing ones are preferred."""
        rng = self.rng
        names = self.numbers()
        choices = [str(rng.randint(-3, 6)) for _ in range(3)]
        for n in names:
            choices += [n, n, f"{n} + 1", f"{n} - 1", f"-{n}", f"{n} * 2", f"{n} % 3", f"{n} // 2", f"abs({n})"]
        for t in rng.sample(self.tensors(), min(2, len(self.tensors()))):
            if rank := self.value(t).dim():
                d = rng.randrange(rank)
                choices += [f"{t}.shape[{d}]", f"{t}.shape[{d}] - 1", f"-{t}.shape[{d}]"]
        rng.shuffle(choices)
        choices.sort(key=lambda c: c.lstrip("-").isdigit() and rng.random() < 0.6)
        for text in choices:
            found = [eval(text, {}, run.eager) for run in self.runs]
            if all(low(at) <= v <= high(at) for at, v in enumerate(found)):
                return text
        # A constant that fits everywhere.
        first, last = max(map(low, range(len(self.runs)))), min(map(high, range(len(self.runs))))
        if first > last:
            raise operations.Nothing
        return str(rng.randint(int(first), int(min(last, first + 4))))

    def any_integer(self, low=-4, high=6):
        return self.integer(lambda at: low, lambda at: high)

    def number(self):
        """A scalar operand: a literal, or a number among the parameters."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.5:
            return self.any_integer()
        if draw < 0.7 and self.numbers(float):
            return rng.choice(self.numbers(float))
        if draw < 0.95:
            return rng.choice(("0.5", "-1.5", "2.0", "0.25", "3", "-2", "0.1", "-0.75"))
        return rng.choice(("True", "float('inf')", "0", "-1"))

    def index(self, dims, limit, unique=False, negative=False, dtype=None):
        """A parameter of indices: of named dimensions, below `limit(at)`."""
        rng = self.rng
        for at in range(len(self.sizes)):
            count = 1
            for n in self.size(dims, at):
                count *= n
            if limit(at) == 0 and count or unique and count > limit(at):
                raise operations.Nothing

        def data(at, count):
            n = limit(at)
            if unique:
                return rng.sample(range(n), count) if n else [0] * count
            low = -n if negative else 0
            return [rng.randint(low, n - 1) if n else 0 for _ in range(count)]

        # Indices that are each another fill their storage: one that is expanded repeats them.
        kept, self.rng = self.rng, Rows(rng, always=unique)
        try:
            return self.tensor_parameter(dtype or rng.choice((torch.int64, torch.int64, torch.int32)), dims, data)
        finally:
            self.rng = kept

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    # Statements.

    def accept(self, statement: Statement) -> bool:
        """Appends a statement, where all sets of arguments run it."""
        before = [dict(w) for run in self.runs for w in run.worlds]
        try:
            for run in self.runs:
                run.step(statement)
            fine = all(self.modest(run, statement) for run in self.runs)
        except (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError, OverflowError, NotImplementedError):
            fine = False
        if fine:
            self.program.statements.append(statement)
            return True
        if statement.writes:
            self.runs = [Run(self.program, a).whole() for a in self.program.sets]
        else:
            for world, old in zip((w for run in self.runs for w in run.worlds), before):
                world.clear()
                world.update(old)
        return False

    def modest(self, run, statement) -> bool:
        """Returns True if the results of a statement are small, and those that round not far from 1."""
        for name in statement.targets or (statement.writes,):
            value = run.eager.get(name)
            if isinstance(value, torch.Tensor):
                if value.numel() > LARGEST or value.dim() > 5 or value.is_complex():
                    return False
                if is_float(value) and value.numel():
                    finite = value[value.isfinite()]
                    if finite.numel() and finite.abs().max() > GREATEST:
                        return False
                    if value.isnan().all():
                        return False
            elif type(value) is int and abs(value) > 1000:
                return False
        return True

    def statement(self):
        for _ in range(30):
            template = operations.draw(self.rng)
            try:
                made = template(self)
            except (operations.Nothing, IndexError):
                # An axis that only some sets have: `squeeze` takes those of extent 1.
                continue
            if made is not None and self.accept(made):
                return


class Rows:
    """A generator whose choice of a layout is rows: indices are seldom anything else, or never."""

    def __init__(self, rng, always=False):
        self.rng, self.always = rng, always

    def __getattr__(self, name):
        return getattr(self.rng, name)

    def choice(self, items):
        return "rows" if "rows" in items and (self.always or self.rng.random() < 0.9) else self.rng.choice(items)


def placed(size, layout):
    """Strides, offset and number of elements of the storage."""
    rows = [1] * len(size)
    for d in range(len(size) - 2, -1, -1):
        rows[d] = rows[d + 1] * max(size[d + 1], 1)
    offset = 0
    if layout == "columns" and len(size) > 1:
        turned, _, _ = placed((*size[:-2], size[-1], size[-2]), "rows")
        rows = [*turned[:-2], turned[-1], turned[-2]]
    elif layout == "channels" and len(size) > 2:
        # Axis 1 is the innermost, as in channels-last.
        turned, _, _ = placed((size[0], *size[2:], size[1]), "rows")
        rows = [turned[0], turned[-1], *turned[1:-1]]
    elif layout == "strided":
        rows = [2 * r for r in rows]
    elif layout == "offset":
        offset = 3
    elif layout == "expanded" and size:
        rows[0] = 0
    count = offset + 1 + sum((n - 1) * s for n, s in zip(size, rows)) if 0 not in size else offset
    return tuple(rows), offset, count


def make(seed: int, sizes=None, rng=None) -> Program:
    """The program of a seed."""
    rng = rng or random.Random(seed)
    sizes = sizes or extents(rng)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made(Generator(rng, sizes))


def made(g: Generator) -> Program:
    rng = g.rng
    dims = [rng.choice(("m", "n", "p", "m", "n", 1, 2, 3)) for _ in range(3)]
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        dtype = rng.choice(FLOATS) if rng.random() < 0.65 else rng.choice((*INTS, *[torch.bool] * 5))
        rank = rng.choice((0, 1, 2, 2, 2, 3, 3))
        shape = tuple(dims[3 - rank:])
        if rng.random() < 0.3 and rank:
            shape = tuple(rng.choice((d, d, 1, "p")) for d in shape)
        g.tensor_parameter(dtype, shape)
    if rng.random() < 0.04:
        g.alias_parameter(g.program.parameters[0])
    for _ in range(rng.choice((0, 1, 1, 2))):
        draw = rng.random()
        if draw < 0.55:
            g.parameter([rng.randint(-4, 4) for _ in g.sizes])
        elif draw < 0.75:
            extent = rng.choice("mnp")
            g.parameter([s[extent] for s in g.sizes])
        elif draw < 0.9:
            g.parameter([rng.choice((0.5, -1.5, 2.0, 0.25, 0.1, -3.0)) for _ in g.sizes])
        else:
            g.parameter([rng.random() < 0.5 for _ in g.sizes])
    for _ in range(rng.choice((1, 1, 2, 2, 2, 3, 4))):
        g.statement()
    return finished(g)


def finished(g: Generator) -> Program:
    """The program with its results: the last value, and others, views and arguments among them."""
    rng, p = g.rng, g.program
    if not p.statements:
        g.accept(Statement(f"v0 = {p.parameters[0]} * 2"))
    made = [n for s in p.statements for n in (s.targets or (s.writes,))]
    results = [made[-1]]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        results.append(rng.choice(made if rng.random() < 0.75 else [*made, *p.parameters]))
    p.results = list(dict.fromkeys(results)) if rng.random() < 0.9 else results
    return p


def spoiled(program: Program, rng: random.Random) -> Program | None:
    """The program with an argument of its last set changed so that PyTorch raises; None where it does not."""
    last = program.sets[-1]
    names = list(last.values)
    rng.shuffle(names)
    for name in names:
        value = last.values[name]
        changed = Arguments([s.clone() for s in last.storages], dict(last.values))
        if isinstance(value, View):
            elements = changed.storages[value.storage]
            if elements.dtype in (torch.int64, torch.int32) and elements.numel():
                elements[rng.randrange(elements.numel())] = rng.choice((50, -50))
            elif value.size:
                size = list(value.size)
                at = rng.randrange(len(size))
                size[at] += 1
                stride, offset, count = placed(tuple(size), "rows")
                # A storage of its own: another argument may show that of the value.
                changed.storages.append(torch.ones(count, dtype=elements.dtype))
                changed.values[name] = View(len(changed.storages) - 1, tuple(size), stride, 0)
        elif type(value) is int:
            changed.values[name] = rng.choice((17, -17, 0, -1))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Run(program, changed).whole()
        except Exception:
            return replace(program, sets=[*program.sets[:-1], changed])
    return None
