"""The numbers of a graph that change from run to run, and what the compiled model is told of them.

In: ints, floats and bools of PyTorch's tracing (SymInt, SymFloat, SymBool). Out: expressions of the JSON form for the
compiled model, and Python for what is evaluated at every run.

The compiled model knows **symbols**, each with a range. PyTorch's symbols are such symbols; so is an expression that the
JSON form cannot say (a division by something of unknown sign, a rounding, a power): Python computes it at every run and
passes its value. A range is what PyTorch's guards established and what the use of a symbol implies: an extent is not
negative, a divisor has the sign that it had when the graph was captured.

Invariant: a range is checked at every run, when the model binds its symbols; outside it, the graph runs in PyTorch. So a
range may be assumed, and nothing is compiled that is wrong where the assumption fails.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from . import _guards
from ._extents import OPERATIONS, ROUNDED, Inexpressible, in_integers

__all__ = ["Scalars"]

# The greatest magnitude of a symbol, as in `crates/girih-graph/src/graph/ir.rs`.
LIMIT = 1 << 40


class Scalars:
    """The numbers of one graph, as the JSON form and Python write them.

    Attributes:
        symbols: what the compiled model is told, in order, with ranges.
        computed: for those that Python computes, how.
        known: PyTorch's symbols that occur anywhere, in order.
        fixed: symbols, and other expressions, that are taken for another expression.
        ranges: of symbols whose ranges are not those of PyTorch's tracing, these.
        divided: whether symbols that PyTorch guards to be multiples of a number are written as such products.
        used: of what PyTorch guards, the equations that were used, with the environment of their symbols.
    """

    def __init__(self):
        self.symbols: dict[str, tuple[int, int]] = {}
        self.computed: dict[str, str] = {}
        self.known: dict[str, None] = {}
        self.fixed: dict[Any, Any] = {}
        self.ranges: dict[Any, Any] = {}
        self.used: dict[tuple[Any, Any], Any] = {}
        self.divided = False
        self._names: dict[Any, str] = {}

    def extent(self, value):
        """The length of an axis."""
        written = self.index(value)
        if isinstance(written, str):
            self._narrow(written, 0, LIMIT)
        return written

    def index(self, value):
        """An integer, as the JSON form writes it."""
        if isinstance(value, torch.SymInt):
            return self._expression(value.node.expr, value.node.shape_env)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Inexpressible(f"{value!r} is not an integer")
        return value

    def text(self, value) -> str:
        """A number as Python, over the symbols."""
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._text(value.node.expr)
        if isinstance(value, float):
            return f"float({str(value)!r})"
        return repr(value)

    def _text(self, expr) -> str:
        from torch.utils._sympy.printers import PythonPrinter

        for symbol in sorted(expr.free_symbols, key=str):
            self.known[symbol.name] = None
        return f"({PythonPrinter().doprint(expr)})"

    # Expressions.

    def _expression(self, expr, env):
        of = functools.partial(self._expression, env=env)
        name = type(expr).__name__
        if expr.is_Integer:
            if abs(int(expr)) >= 1 << 62:
                raise Inexpressible(f"{expr} is too large")
            return int(expr)
        if expr in self.fixed:
            return of(self.fixed[expr])
        if env is not None and (known := _guards.facts(env).get(expr)) is not None:
            self.used[expr, known] = env
            return of(known)
        if expr.is_Symbol:
            divisor = self._divisor(expr, env)
            return self._symbol(expr, env) if divisor is None else self._multiple(expr, divisor, env)
        if expr.is_Pow and expr.exp.is_Integer and 0 < int(expr.exp) <= 8:
            return folded("*", [of(expr.base)] * int(expr.exp))
        if expr.is_Add or expr.is_Mul:
            return folded("+" if expr.is_Add else "*", map(of, expr.args))
        if name in ("Max", "Min"):
            if (one := _guards.decided(expr, env)) is not None:
                self.used[expr, one] = env
                return of(one)
            return folded(name.lower(), map(of, expr.args))
        if name in ("FloorDiv", "CleanDiv", "Mod", "PythonMod"):
            return self._divided("//" if name.endswith("Div") else "%", *expr.args, env)
        if name in ROUNDED:
            try:
                return of(in_integers(expr))
            except Inexpressible:
                pass
        return self._compute(expr)

    def _divisor(self, symbol, env) -> int | None:
        """A number that a symbol is a multiple of."""
        trial = _guards.divisors_of(self.fixed)
        return trial.get(symbol) or (_guards.divisors(env).get(symbol) if self.divided else None)

    def _multiple(self, symbol, divisor, env):
        """A symbol as the product of a number and of how often that goes into it."""
        from torch.utils._sympy.functions import FloorDiv, Mod

        import sympy

        lo, hi = self._bounds(symbol, env)
        name = self._compute(FloorDiv(symbol, sympy.Integer(divisor)))
        self._narrow(name, -(-lo // divisor), hi // divisor)
        self.used[Mod(symbol, sympy.Integer(divisor)), sympy.Integer(0)] = env
        return ["*", name, divisor]

    def _divided(self, op, dividend, divisor, env):
        """Python's quotient or remainder. The JSON form divides by positive numbers."""
        if not divisor.is_Integer and (whole := whole_quotient(dividend, divisor)) is not None:
            return self._expression(whole, env) if op == "//" else 0
        a, b = self._expression(dividend, env), self._expression(divisor, env)
        lo, hi = self._interval(b)
        if lo < 1 and hi > -1:
            sign = example(divisor, env)
            if not sign:
                raise Inexpressible(f"the sign of the divisor {divisor} is not known")
            if not isinstance(b, str):
                b = self._compute(divisor)
            self._narrow(b, *((1, LIMIT) if sign > 0 else (-LIMIT, -1)))
            lo = sign
        if lo > 0:
            return [op, a, b]
        turned = [op, ["*", a, -1], ["*", b, -1]]
        return turned if op == "//" else ["*", turned, -1]

    def _compute(self, expr) -> str:
        """A symbol that stands for an expression."""
        if expr not in self._names:
            text = self._text(expr)
            name = f"computed_{len(self.computed)}"
            self.computed[name] = text
            self.symbols[name] = (-LIMIT, LIMIT)
            self._names[expr] = name
        return self._names[expr]

    def _symbol(self, symbol, env) -> str:
        self.known[symbol.name] = None
        if symbol.name not in self.symbols:
            self.symbols[symbol.name] = self._bounds(symbol, env)
        return symbol.name

    def _bounds(self, symbol, env) -> tuple[int, int]:
        bounds = self.ranges.get(symbol) or env.var_to_range.get(symbol)
        lo, hi = -LIMIT, LIMIT
        if bounds is not None and bounds.lower.is_Integer:
            lo = max(lo, int(bounds.lower))
        if bounds is not None and bounds.upper.is_Integer:
            hi = min(hi, int(bounds.upper))
        for equal in (self.fixed, _guards.facts(env)):
            least, most = _guards.ranges(equal).get(symbol, (lo, hi))
            if max(lo, least) <= min(hi, most):
                lo, hi = max(lo, least), min(hi, most)
        return lo, hi

    # Ranges.

    def _narrow(self, name, lo, hi):
        least, most = self.symbols[name]
        self.symbols[name] = (max(least, lo), min(most, hi))

    def _interval(self, e) -> tuple[int, int]:
        """The values that an expression may have, operation by operation, as the compiler's `Facts::range` has them."""
        if isinstance(e, int):
            return e, e
        if isinstance(e, str):
            return self.symbols[e]
        op, (a, b), (c, d) = e[0], self._interval(e[1]), self._interval(e[2])
        if op == "+":
            return a + c, b + d
        if op == "-":
            return a - d, b - c
        if op in ("min", "max"):
            of = min if op == "min" else max
            return of(a, c), of(b, d)
        if op == "%":
            return 0, d - 1
        every = [x * y if op == "*" else x // max(y, 1) for x in (a, b) for y in (c, d)]
        return min(every), max(every)


def whole_quotient(dividend, divisor):
    """The quotient of two polynomials, where it is one with whole coefficients: of `16*p*q` by `p*q` it is 16."""
    import sympy

    quotient = sympy.cancel(dividend / divisor)
    numerator, denominator = sympy.fraction(sympy.together(quotient))
    return sympy.expand(numerator) if denominator == 1 else None


def folded(op, parts):
    return functools.reduce(lambda a, b: [op, a, b], parts)


def hints(env) -> dict:
    """The values that symbols had when the graph was captured."""
    found = getattr(env, "backed_var_to_val", None)
    return getattr(env, "var_to_val", {}) if found is None else found


def example(expr, env):
    """The value that an expression had when the graph was captured; None where that is not known."""
    known = hints(env)
    value = expr.xreplace({s: known[s] for s in expr.free_symbols if s in known})
    return int(value) if value.is_Integer else None


def evaluator(scalars: Scalars, sources: dict[str, str], groups):
    """A function of a run's arguments that gives the values of the symbols, and then those of groups of expressions.

    Args:
        sources: Python over `args` for each symbol that is not computed.
        groups: nested tuples of expressions: JSON ones, or Python in a `Text`.
    """
    lines = [f"    {name} = {text}" for name, text in sources.items()]
    lines += [f"    {name} = {text}" for name, text in scalars.computed.items()]
    values = nested((tuple(scalars.symbols), *groups))
    source = "\n".join(["def evaluate(args):", *lines, f"    return {values}"])
    import math

    scope = {"min": min, "max": max, "math": math, "torch": torch}
    exec(source, scope)
    return scope["evaluate"]


class Text(str):
    """An expression that is Python already."""


def nested(value) -> str:
    from ._extents import text

    if isinstance(value, Text):
        return str(value)
    if isinstance(value, tuple) or (isinstance(value, list) and not (len(value) == 3 and value[0] in OPERATIONS)):
        return "(" + "".join(f"{nested(v)}, " for v in value) + ")"
    return text(value)
