"""A function as straight-line Python, its arguments, and PyTorch's results.

In: statements and several sets of arguments. Out: for each set the results of eager PyTorch, and for each result either
"exact" or how far another order of rounding may lie from it.

Each statement runs in several worlds that hold the same names: as it is; with every float in float64; and in float64
with each result disturbed by one rounding of its type. The difference of a disturbed world's results is the cost of
rounding in this function, with the amplification of its operations. Values are exact while both of the first worlds
agree and no operation behind them rounds: these must come out the same, bit for bit (but for the sign of zero), and
only they may enter operations that jump (floor, comparisons, sorting).
"""

from __future__ import annotations

import functools
import re
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

EPS = {torch.float64: 2.0**-52, torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
GLOBALS = {"torch": torch, "F": F}
#: Worlds beside the eager one: float64, and float64 disturbed.
DISTURBED = 2


@dataclass(frozen=True)
class View:
    """A tensor among the arguments: elements of a storage. `whole` is false for tensors that PyTorch knows as views."""

    storage: int
    size: tuple
    stride: tuple
    offset: int = 0
    whole: bool = True


@dataclass
class Arguments:
    """One set of arguments: flat tensors, and for each parameter a `View` of one of them or a number."""

    storages: list = field(default_factory=list)
    values: dict = field(default_factory=dict)

    def make(self, wide=False):
        """Fresh values for the parameters, and the storages that they show."""
        storages = [s.double() if wide and s.is_floating_point() else s.clone() for s in self.storages]
        # `double` of float64 is the tensor itself.
        storages = [s.clone() if s is own else s for s, own in zip(storages, self.storages)]

        def tensor(view):
            base = storages[view.storage]
            if not view.whole:
                return base.as_strided(view.size, view.stride, view.offset)
            empty = torch.empty(0, dtype=base.dtype)
            return empty.set_(base.untyped_storage(), view.offset, view.size, view.stride)

        values = {n: tensor(v) if isinstance(v, View) else v for n, v in self.values.items()}
        return values, storages

    def text(self) -> list[str]:
        """Lines of Python that make the arguments."""
        lines = [f"s{i} = torch.tensor({literal(s)}, dtype={s.dtype})" for i, s in enumerate(self.storages)]
        for name, v in self.values.items():
            if not isinstance(v, View):
                lines.append(f"{name} = {v!r}")
            elif v.whole:
                made = f"torch.empty(0, dtype=s{v.storage}.dtype).set_"
                lines.append(f"{name} = {made}(s{v.storage}.untyped_storage(), {v.offset}, {v.size}, {v.stride})")
            else:
                lines.append(f"{name} = s{v.storage}.as_strided({v.size}, {v.stride}, {v.offset})")
        return lines


def literal(storage) -> str:
    return re.sub(r"\b(inf|nan)\b", r"float('\1')", str(storage.tolist()))


@dataclass(frozen=True)
class Statement:
    """A line of Python. `rounds`: its floats depend on the order or the way of computing. `writes`: what it changes."""

    text: str
    rounds: bool = False
    writes: str | None = None

    @property
    def targets(self):
        """The names it defines."""
        if self.writes or " = " not in self.text:
            return ()
        return tuple(t.strip() for t in self.text.split(" = ")[0].split(",") if t.strip())


@dataclass
class Program:
    parameters: list[str]
    sets: list[Arguments]
    statements: list[Statement]
    results: list[str]

    def source(self, name="f") -> str:
        lines = [f"def {name}({', '.join(self.parameters)}):"]
        lines += [f"    {s.text}" for s in self.statements]
        return "\n".join(lines + [f"    return ({', '.join(self.results)},)"]) + "\n"

    def text(self) -> str:
        """The function and its arguments as Python."""
        parts = ["import torch, girih.torch\nimport torch.nn.functional as F\n", self.source()]
        for arguments in self.sets:
            parts.append("\n".join([*arguments.text(), f"print(f({', '.join(self.parameters)}))\n"]))
        return "\n".join(parts)


@functools.cache
def code(text: str, wide: bool):
    if wide:
        text = re.sub(r"torch\.(float16|float32|bfloat16)\b|\btorch\.half\b", "torch.float64", text)
    return compile(text, "<program>", "exec")


@functools.cache
def names(text: str) -> frozenset:
    return frozenset(re.findall(r"\b[a-z]\w*\b", text))


def is_float(value) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def storage(tensor) -> int:
    """A tensor's storage, as a number; views have that of what they show."""
    return tensor.untyped_storage()._cdata


class Run:
    """The worlds of a function with one set of arguments, statement by statement."""

    def __init__(self, program: Program, arguments: Arguments):
        self.program = program
        made = [arguments.make(wide=i > 0) for i in range(2 + DISTURBED)]
        #: For each world its names: eager, wide, disturbed...
        self.worlds = [values for values, _ in made]
        self.storages = [storages for _, storages in made]
        #: Storages of the eager world whose floats are not exact.
        self.inexact: set[int] = set()
        self.drawn = torch.Generator().manual_seed(len(arguments.values))

    @property
    def eager(self):
        return self.worlds[0]

    def exact(self, name) -> bool:
        value = self.eager[name]
        return not is_float(value) or storage(value) not in self.inexact

    def add(self, name, arguments):
        """A parameter that was added to the arguments."""
        for i, world in enumerate(self.worlds):
            values, storages = arguments.make(wide=i > 0)
            world[name] = values[name]
            self.storages[i].append(storages[-1])

    def step(self, statement: Statement):
        """Runs a statement in every world; raises the same exception as PyTorch in the first."""
        eager = self.eager
        known = {storage(v) for v in eager.values() if isinstance(v, torch.Tensor)}
        operands = [n for n in names(statement.text) if n in eager]
        exact = not statement.rounds and all(self.exact(n) for n in operands)
        exec(code(statement.text, False), GLOBALS, eager)
        with torch.no_grad(), floats_of(torch.float64):
            for i, world in enumerate(self.worlds[1:]):
                kept = {}
                if i > 0 and statement.rounds and not statement.writes:
                    kept = {n: world[n] for n in operands if is_float(world[n]) and self.exact(n)}
                    world.update({n: self.disturbed(v, eager[n].dtype) for n, v in kept.items()})
                exec(code(statement.text, True), GLOBALS, world)
                world.update(kept)
        made = statement.targets or ((statement.writes,) if statement.writes else ())
        for name in made:
            value = eager[name]
            if not is_float(value):
                continue
            fresh = storage(value) not in known
            if exact and (fresh or statement.writes):
                exact = same(value.double(), self.worlds[1][name].double())
            if exact or not (fresh or statement.writes):
                continue
            self.inexact.add(storage(value))
            for world in self.worlds[2:]:
                if world[name].is_floating_point():
                    world[name].copy_(self.disturbed(world[name], value.dtype))

    def disturbed(self, value, dtype):
        signs = torch.randint(0, 2, value.shape, generator=self.drawn).double() * 2 - 1
        return value * (1 + signs * EPS[dtype])

    def whole(self):
        """All statements."""
        for statement in self.program.statements:
            self.step(statement)
        return self

    def allowed(self, value, others):
        """For a float result and its like in the other worlds: which elements are defined, and how far they may lie."""
        wide, *disturbed = (o.double() for o in others)
        defined = torch.ones_like(wide, dtype=torch.bool)
        for d in disturbed:
            defined &= (d.isnan() == wide.isnan()) & (d.isinf() == wide.isinf())
        defined &= (value.isnan() == wide.isnan()) & (value.isinf() == wide.isinf())
        finite = defined & wide.isfinite()
        if not finite.any():
            return defined, 0.0
        theirs = (value.double() - wide)[finite].abs().max().item()
        apart = max((d - wide)[finite].abs().max().item() for d in disturbed)
        return defined, 4 * theirs + 32 * apart + 16 * EPS[value.dtype] * wide[finite].abs().max().item()


@contextmanager
def floats_of(dtype):
    """Floats made of integers have this type: `integers + 0.1`."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def same(a, b) -> bool:
    """Returns True if tensors have equal elements, NaN being equal to itself."""
    return bool(((a == b) | (a.isnan() & b.isnan())).all())
