"""Symbolic extents: integer expressions of PyTorch as expressions of the JSON form, and those as Python.

An extent is an int, the name of a symbol, or ``[op, a, b]`` with ``+ - * // % min max``, whose meaning is Python's.
"""

from __future__ import annotations

import functools

import torch

__all__ = ["OPERATIONS", "Inexpressible", "extent", "text"]

OPERATIONS = ("+", "-", "*", "//", "%", "min", "max")


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
    raise Inexpressible(f"the size {expr} is not made of + - * // % min max")


def text(extent):
    """The extent as Python."""
    if isinstance(extent, int):
        return f"({extent})" if extent < 0 else str(extent)
    if isinstance(extent, str):
        return extent
    op, a, b = extent
    return f"{op}({text(a)}, {text(b)})" if op in ("min", "max") else f"({text(a)} {op} {text(b)})"
