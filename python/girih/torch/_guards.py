"""Facts about extents that follow from PyTorch's guards.

In: the environment of PyTorch's symbols. Out: a map from each expression that a guard equates with a simpler one to that simpler
one. Dynamo tests guards before it calls compiled code, so they hold in every run; code that uses one has it tested again all the
same (`Scalars.used`), because exported models run without Dynamo.

    Eq((s53//8)**2, 16)        (s53//8)**2 is 16, and s53//8 is 4, as an extent is not negative
    Eq(s7*s9, s3)              s7*s9 is s3
    Eq((s7//8)*(s9//8), 16)    the product is 16; its factors are what `factors` gives
    Eq(s7//8, 1), Eq((s7 - 1)//2, s7//8 + 5)     the second is 6: see `numbers`
    Eq((s7 - 1)//2, 6), Eq((s7//2 - 1)//2, 2)    s7 is 13: the first leaves 13 and 14, the second 10 to 13
"""

from __future__ import annotations

import functools
import math
import weakref

import sympy

__all__ = ["decided", "divisors", "divisors_of", "facts", "factors", "ranges"]


#: The facts found in an environment, by how many guards and replacements it had.
_known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def remembered(find):
    """Looks again only where guards were added: there may be hundreds, and every part of a graph asks."""

    @functools.wraps(find)
    def found(env):
        state = len(env.guards), len(env.replacements), len(getattr(env, "divisible", ()))
        of_env = _known.setdefault(env, {})
        if of_env.get(find.__name__, (None,))[0] != state:
            of_env[find.__name__] = state, find(env)
        return of_env[find.__name__][1]

    return found


@remembered
def facts(env) -> dict[sympy.Expr, sympy.Expr]:
    """Maps each expression that has a simpler equal to that equal. PyTorch itself replaces a symbol by another, but not where the
    equation becomes so simple by a later guard."""
    found: dict[sympy.Expr, sympy.Expr] = {}
    for left, right in equations(env):
        for form in {left, sympy.expand(left)}:
            if not form.is_Integer and (right.is_Symbol or not form.is_Symbol):
                found.setdefault(form, right)
        root = root_of(left, right, env)
        if root is not None:
            found.setdefault(left.base, root)
    found.update(numbers(env))
    for symbol, (lo, hi) in ranges(found).items():
        if lo == hi:
            found[symbol] = sympy.Integer(lo)
    return found


def numbers(env) -> dict[sympy.Expr, sympy.Integer]:
    """The expressions that all equations together make numbers: one with two unknown sides may have a known one by another."""
    found: dict[sympy.Expr, sympy.Integer] = {}
    equal, before = list(equations(env)), -1
    while before != len(found):
        before = len(found)
        for sides in equal:
            left, right = (side.xreplace(found) for side in sides)
            for expr, number in ((left, right), (right, left)):
                if number.is_Integer and not expr.is_Integer:
                    found.update({expr: number, sympy.expand(expr): number})
    return found


@remembered
def factors(env) -> list[sympy.Expr]:
    """The factors of products that are equal to a number."""
    found: dict[sympy.Expr, None] = {}
    for left, right in equations(env):
        if right.is_Integer and left.is_Mul:
            found.update((f, None) for f in left.args if not f.is_Integer)
    return list(found)


@remembered
def divisors(env) -> dict[sympy.Symbol, int]:
    """The symbols that are multiples of a number, with that: reshapes by factors ask for it."""
    zeros = [left for left, right in equations(env) if right == 0]
    return divisors_of([*zeros, *getattr(env, "divisible", ())])


def divisors_of(zeros) -> dict[sympy.Symbol, int]:
    """The same where these expressions are 0."""
    found: dict[sympy.Symbol, int] = {}
    for rest in zeros:
        if type(rest).__name__ not in ("Mod", "PythonMod"):
            continue
        of, by = rest.args
        if of.is_Symbol and by.is_Integer and by > 1:
            found[of] = math.lcm(found.get(of, 1), int(by))
    return found


def decided(expr, env):
    """The operand that a minimum or a maximum is, where guards tell."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    least = type(expr).__name__ == "Min"
    for one in expr.args:
        pairs = [(one, other) if least else (other, one) for other in expr.args if other is not one]
        if all(statically_known_true(env.create_symboolnode(sympy.Le(a, b))) for a, b in pairs):
            return one
    return None


def ranges(equal) -> dict[sympy.Symbol, tuple[int, int]]:
    """The symbols' ranges where expressions of one symbol are equal to numbers: where `s//8` is 4, `s` is from 32 to 39."""
    found: dict[sympy.Symbol, tuple[int, int]] = {}
    for expr, number in equal.items():
        if number.is_Integer and len(expr.free_symbols) == 1:
            narrow(expr, int(number), int(number), found)
    return found


def narrow(expr, lo, hi, found) -> None:
    """Enters the range of a symbol where an expression of it is from `lo` to `hi`."""
    factor, rest = expr.as_coeff_Mul()
    offset, term = expr.as_coeff_Add()
    if expr.is_Symbol:
        least, most = found.get(expr, (lo, hi))
        found[expr] = max(lo, least), min(hi, most)
    elif type(expr).__name__ in ("FloorDiv", "CleanDiv") and expr.args[1].is_Integer and expr.args[1] > 0:
        by = int(expr.args[1])
        narrow(expr.args[0], lo * by, hi * by + by - 1, found)
    elif offset.is_Integer and offset != 0:
        narrow(term, lo - int(offset), hi - int(offset), found)
    elif factor.is_Integer and factor > 1:
        narrow(rest, -(-lo // int(factor)), hi // int(factor), found)
    elif factor == -1:
        narrow(rest, -hi, -lo, found)


def equations(env):
    """The equations among the guards, each with what is simpler on the right."""
    for guard in env.guards:
        for expr in guard.expr.args if isinstance(guard.expr, sympy.And) else [guard.expr]:
            if not isinstance(expr, sympy.Eq):
                continue
            sides = sorted((env.replace(side) for side in expr.args), key=size)
            if size(sides[0]) < size(sides[1]):
                yield sides[1], sides[0]


def size(expr) -> tuple:
    """Orders expressions: numbers, symbols, and the rest by what it is made of."""
    return not expr.is_Integer, sum(1 for _ in sympy.preorder_traversal(expr)), str(expr)


def root_of(left, right, env):
    """The base of a power that is equal to a number; None if it has no exact root or may be negative."""
    if not left.is_Pow or not right.is_Integer or not left.exp.is_Integer or left.exp <= 0 or right < 0:
        return None
    root, exact = sympy.integer_nthroot(int(right), int(left.exp))
    if not exact or env.bound_sympy(left.base).lower < 0:
        return None
    return sympy.Integer(root)
