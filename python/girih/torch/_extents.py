"""Symbolic extents: integer expressions of PyTorch as expressions of the JSON form, and those as Python.

An extent is an int, the name of a symbol, or ``[op, a, b]`` with ``+ - * // % min max``, whose meaning is Python's.
"""

from __future__ import annotations

import functools
import math

import torch

__all__ = ["OPERATIONS", "ROUNDED", "Inexpressible", "extent", "in_integers", "text"]

OPERATIONS = ("+", "-", "*", "//", "%", "min", "max")

#: How PyTorch makes an integer of a float.
ROUNDED = ("FloorToInt", "CeilToInt", "TruncToInt")


class Inexpressible(Exception):
    """An expression that extents cannot say."""


def extent(value):
    """The extent that an int or a SymInt is."""
    if isinstance(value, bool):
        raise Inexpressible("a truth value is not an extent")
    if isinstance(value, int):
        return value
    if isinstance(value, torch.SymInt):
        return expression(value.node.expr)
    raise Inexpressible(f"{value!r} is not an integer")


def expression(expr):
    """The extent that a sympy expression is."""
    import sympy

    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return expr.name
    if expr.is_Add:
        return functools.reduce(lambda a, b: ["+", a, b], map(expression, expr.args))
    if expr.is_Mul:
        return functools.reduce(lambda a, b: ["*", a, b], map(expression, expr.args))
    if expr.is_Pow and expr.exp.is_Integer and 0 < int(expr.exp) <= 8:
        base = expression(expr.base)
        return functools.reduce(lambda a, b: ["*", a, b], [base] * int(expr.exp))
    kinds = {"FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%"}
    name = type(expr).__name__
    if name in kinds:
        a, b = map(expression, expr.args)
        return [kinds[name], a, b]
    if isinstance(expr, sympy.Max) or name == "Max":
        return functools.reduce(lambda a, b: ["max", a, b], map(expression, expr.args))
    if isinstance(expr, sympy.Min) or name == "Min":
        return functools.reduce(lambda a, b: ["min", a, b], map(expression, expr.args))
    if name in ROUNDED:
        return expression(in_integers(expr))
    raise Inexpressible(f"the size {expr} is not made of + - * // % min max")


def in_integers(expr):
    """The same integer without floats, where `expr` is a float of sizes that is made an integer, as `math.ceil(s / 2)` is."""
    import sympy
    from torch.utils._sympy.functions import FloorDiv

    above, below = fraction(expr.args[0])
    low, high = FloorDiv(above, below), -FloorDiv(-above, below)
    name = type(expr).__name__
    if name == "TruncToInt":
        return sympy.Max(low, 0) + sympy.Min(high, 0)
    return low if name == "FloorToInt" else high


def fraction(expr):
    """A float computed from sizes, as an integer numerator and an integer denominator.

    Sizes are below 2^40, so that floats hold their sums, products and quotients by powers of two exactly, and no other quotient of
    them is rounded to an integer that it is not. Nothing is computed from a rounded quotient.
    """
    import sympy

    name, one = type(expr).__name__, sympy.Integer(1)
    if name == "ToFloat":
        return expr.args[0], one
    if expr.is_Number and expr.is_finite:
        above, below = float(expr).as_integer_ratio()
        if max(abs(above), below) <= 4096:
            return sympy.Integer(above), sympy.Integer(below)
    elif expr.is_Add or expr.is_Mul:
        parts = [exact(part) for part in expr.args]
        below = math.prod(b for _, b in parts)
        if expr.is_Mul:
            return math.prod(a for a, _ in parts), below
        return sum(a * (below // b) for a, b in parts), below
    elif name in ("FloatTrueDiv", "IntTrueDiv"):
        (a, b), (c, d) = map(exact, expr.args) if name == "FloatTrueDiv" else ((x, one) for x in expr.args)
        above, below = a * d, c * b
        return (-above, -below) if below.is_negative else (above, below)
    raise Inexpressible(f"the size {expr} is computed in floats")


def exact(expr):
    """A fraction that a float holds exactly: its denominator is a power of two."""
    above, below = fraction(expr)
    if below.is_Integer and int(below).bit_count() == 1:
        return above, below
    raise Inexpressible(f"the size {expr} is computed from a rounded float")


def text(extent):
    """The extent as Python."""
    if isinstance(extent, int):
        return f"({extent})" if extent < 0 else str(extent)
    if isinstance(extent, str):
        return extent
    op, a, b = extent
    return f"{op}({text(a)}, {text(b)})" if op in ("min", "max") else f"({text(a)} {op} {text(b)})"
