"""Comparisons, `and` and `or`, element by element as Python means them; and the mistakes that Python's precedence hides.

In: `ast.Compare` and `ast.BoolOp`. Out: a value known at compile time, or a tensor.

    0 <= i < n          (0 <= i) & (i < n), `i` computed once
    n or 5              n where n is not 0, else 5
    j >= 0 and load(p + j) > v    the load happens only where j >= 0, as in Python, if both are scalars
    i < n & i > 2       refused: Python reads `i < (n & i) > 2`

Invariant: a right side that reads or writes memory, or assigns a name, is computed only where Python computes it, unless
it is a tile.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import Code
from .calls import apply
from .control import Attempt, Flow, branch, scalar_truth
from .slots import Undefined
from .tensor import as_tensor, describe, fail, is_number, logical, select, tensor, truth, unwrap

if TYPE_CHECKING:
    from .trace import Tracer

COMPARE = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
}  # fmt: skip
IDENTITY = {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}
BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}


# ---- comparisons


def trace_compare(tracer: Tracer, node: ast.Compare) -> Any:
    parts = [node.left, *node.comparators]
    loose = [p for p in parts if is_loose(tracer, p)]
    if loose and len(parts) > 2:
        tracer.at(node)
        raise fail(
            f"`{spell(node, loose[:1])}` is a chain of comparisons: `{sign(loose[0])}` binds tighter than a comparison",
            f"put each comparison in parentheses: `{intended(tracer, node)}`",
            code=Code.CONDITION,
        )
    left, kinds = operand(tracer, node.left, loose)
    return links(tracer, node, 0, left, kinds)


def links(tracer: Tracer, node: ast.Compare, at: int, left: Any, kinds: set[bool]) -> Any:
    """The comparisons of a chain from the one numbered `at` on; `left` is the value before it."""
    right, more = operand(tracer, node.comparators[at], [c for c in node.comparators if is_loose(tracer, c)])
    tracer.at(node)
    check_booleans(tracer, node, left, right, kinds | more)
    result = link(node.ops[at], left, right)
    if at + 1 == len(node.ops):
        return result
    return combine(tracer, node, "and", result, lambda: links(tracer, node, at + 1, right, set()))


def link(op: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(op, (ast.Is, ast.IsNot)):
        if any(isinstance(v, tensor) for v in (left, right)) and any(is_number(v) for v in (left, right)):
            sign = "==" if isinstance(op, ast.Is) else "!="
            raise fail(
                f"`{IDENTITY[type(op)]}` compares objects, and no value of run time is the object {describe(right)}",
                f"compare the values with `{sign}`",
                code=Code.CONDITION,
            )
        return (left is right) == isinstance(op, ast.Is)
    if isinstance(op, (ast.In, ast.NotIn)):
        if isinstance(left, tensor):
            raise fail("`in` needs values known at compile time", "compare with each: `(x == a) | (x == b)`", code=Code.NOT_CONSTANT)
        return apply(lambda a, b: a in b, left, right) == isinstance(op, ast.In)
    return apply(COMPARE[type(op)][1], left, right)


def operand(tracer: Tracer, node: ast.expr, loose: list[ast.expr]) -> tuple[Any, set[bool]]:
    """A side of a comparison; and, for bits combined without parentheses, whether each of them is a boolean."""
    if node not in loose:
        return unwrap(tracer.evaluate(node)), set()
    parts = [node.left, node.right]
    values = [operand(tracer, p, [p] if is_loose(tracer, p) else []) for p in parts]
    tracer.at(node)
    kinds = {is_boolean(v) for v, _ in values}.union(*(k for _, k in values))
    return unwrap(tracer.binary(type(node.op), values[0][0], values[1][0])), kinds


def check_booleans(tracer: Tracer, node: ast.Compare, left: Any, right: Any, kinds: set[bool]) -> None:
    """Refuses `i < n & mask` and `x < y == flag`, which compare a number with a truth value."""
    if not any(isinstance(v, tensor) for v in (left, right)) and not kinds:
        return
    sides = {is_boolean(left), is_boolean(right)}
    loose = [p for p in (node.left, *node.comparators) if is_loose(tracer, p)]
    if loose and True in kinds and len(kinds | sides) == 2:
        raise fail(
            f"Python reads this as `{spell(node, loose)}`, which compares a number with a boolean: "
            f"`{sign(loose[0])}` binds tighter than a comparison",
            f"put the comparison in parentheses: `{intended(tracer, node)}`",
            code=Code.CONDITION,
        )
    if len(node.ops) > 1 and len(sides) == 2:
        parts = [text_of(p) for p in (node.left, *node.comparators)]
        pairs = [f"{a} {spell_op(op)} {b}" for a, op, b in zip(parts, node.ops, parts[1:])]
        raise fail(
            f"`{spell(node, [])}` is a chain of comparisons, which Python reads as `{' and '.join(pairs)}`: it compares "
            f"{describe(left)} with {describe(right)}",
            f"for the truth of the first comparison write `({pairs[0]}) {spell_op(node.ops[1])} {parts[2]}`",
            code=Code.CONDITION,
        )


def is_boolean(value: Any) -> bool:
    value = unwrap(value)
    return value.dtype.is_bool() if isinstance(value, tensor) else isinstance(value, bool)


# ---- how a comparison was written


def is_loose(tracer: Tracer, node: ast.expr) -> bool:
    """Returns True if a bit operation has no parentheses around it."""
    return isinstance(node, ast.BinOp) and type(node.op) in BITS and not tracer.frame.source.in_parentheses(node)


def sign(node: ast.BinOp) -> str:
    return BITS[type(node.op)]


def spell_op(op: ast.cmpop) -> str:
    return COMPARE[type(op)][0] if type(op) in COMPARE else IDENTITY[type(op)]


def text_of(node: ast.expr) -> str:
    """An operand of a comparison, with the parentheses that it must have."""
    text = ast.unparse(node)
    bare = isinstance(node, (ast.Compare, ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Lambda))
    return f"({text})" if bare or isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else text


def spell(node: ast.Compare, loose: list[ast.expr]) -> str:
    """The comparison as Python reads it, with the parentheses that were left out."""
    parts = [f"({ast.unparse(p)})" if p in loose else text_of(p) for p in (node.left, *node.comparators)]
    return parts[0] + "".join(f" {spell_op(op)} {p}" for op, p in zip(node.ops, parts[1:]))


def intended(tracer: Tracer, node: ast.Compare) -> str:
    """The same words with parentheses around each comparison."""

    def words(part: ast.expr) -> list[str]:
        if not is_loose(tracer, part):
            return [text_of(part)]
        return [*words(part.left), sign(part), *words(part.right)]

    terms, signs = [words(node.left)[:1]], []
    rest = words(node.left)[1:]
    for op, part in zip((None, *node.ops), (None, *node.comparators)):
        new = rest if op is None else words(part)
        if op is not None:
            terms[-1] += [spell_op(op), new.pop(0)]
        for bits, word in zip(new[::2], new[1::2]):
            signs.append(bits)
            terms.append([word])
    spelled = [f"({' '.join(t)})" if len(t) > 1 else t[0] for t in terms]
    return spelled[0] + "".join(f" {s} {t}" for s, t in zip(signs, spelled[1:]))


# ---- and, or


def trace_bool(tracer: Tracer, node: ast.BoolOp) -> Any:
    word = "and" if isinstance(node.op, ast.And) else "or"
    result = unwrap(tracer.evaluate(node.values[0]))
    for value in node.values[1:]:
        result = combine(tracer, node, word, result, lambda value=value: unwrap(tracer.evaluate(value)))
    return result


def combine(tracer: Tracer, node: ast.expr, word: str, left: Any, right: Callable[[], Any]) -> Any:
    """`left and right` or `left or right`: `right` is asked for only if it is needed, where that is known."""
    if not isinstance(left, tensor):
        return left if bool(left) == (word == "or") else right()
    start = Attempt(tracer)
    value = right()
    tracer.at(node)
    if left.shape or isinstance(value, tensor) and value.shape or not start.had_effects():
        return either(word, left, value)
    start.undo()
    return only_where_needed(tracer, node, word, left, right)


def either(word: str, left: tensor, right: Any) -> tensor:
    """Both sides are computed."""
    condition, right = truth(left), as_tensor(right)
    if left.dtype.is_bool() and right.dtype.is_bool():
        return logical(word, left, right)
    return select(condition, right, left) if word == "and" else select(condition, left, right)


def only_where_needed(tracer: Tracer, node: ast.expr, word: str, left: tensor, right: Callable[[], Any]) -> Any:
    name = f"${word}{node.lineno}_{node.col_offset}_{len(tracer.contexts)}"

    def side(value: Callable[[], Any]) -> Callable[[], Flow]:
        def trace() -> Flow:
            tracer.env[name] = value()
            return Flow.NORMAL

        return trace

    then, other = side(right), side(lambda: left)
    if word == "or":
        then, other = other, then
    branch(tracer, scalar_truth(left), then, other)
    value = tracer.env.pop(name)
    if isinstance(value, Undefined):
        raise fail(f"the two sides of `{word}` do not match: {value.why}", code=Code.FLOW)
    return value
