"""The syntax tree of a kernel, with places in the user's file."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import linecache
import tokenize
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .errors import Code, CompilationError


@dataclasses.dataclass(frozen=True)
class Source:
    """A function's tree and the meaning of its names.

    Attributes:
        node: the `def`; line numbers are those of the file.
        file: the file's path, or a name such as `<stdin>`.
        text: the lines of the text; its first line is line `first` of the file.
        lines: the same, if the text is more than ASCII.
    """

    function: FunctionType
    node: ast.FunctionDef
    file: str
    first: int
    text: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.function.__name__

    def column(self, line: int, offset: int) -> int:
        """The column of a node, which Python's trees count in bytes."""
        at = line - self.first
        return len(self.lines[at].encode()[:offset].decode(errors="replace")) if 0 <= at < len(self.lines) else offset

    @functools.cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        """The words of the text, without comments and line ends; none where it cannot be divided into words."""
        skipped = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
        try:
            found = list(tokenize.generate_tokens(iter(self.text).__next__))
        except (tokenize.TokenError, SyntaxError):
            return []
        return [t for t in found if t.type not in skipped]

    def in_parentheses(self, node: ast.expr) -> bool:
        """Returns True if an operand of an operator has parentheses of its own around it, and where that is not
        known."""
        line, end = node.lineno - self.first + 1, node.end_lineno - self.first + 1
        begins = (line, self.column(node.lineno, node.col_offset))
        ends = (end, self.column(node.end_lineno, node.end_col_offset))
        before = [t.string for t in self.tokens if t.end <= begins][-1:]
        after = [t.string for t in self.tokens if t.start >= ends][:1]
        return not before or not after or (before == ["("] and after == [")"])

    def look_up(self, name: str) -> tuple[Any, Callable[[str], Any] | None]:
        """A closure variable, a global or a built-in, and for the first two how to look again; raises `KeyError`."""
        cells = self.function.__closure__ or ()
        free = self.function.__code__.co_freevars
        if name in free:
            cell = cells[free.index(name)]
            try:
                return cell.cell_contents, lambda _: cell.cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in self.function.__globals__:
            return self.function.__globals__[name], self.function.__globals__.get
        builtins = self.function.__globals__["__builtins__"]
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        return builtins[name], None


def read(function: FunctionType) -> Source:
    """Parses the source of a function; raises `CompilationError` when Python does not have it."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise CompilationError(
            f"the source of the kernel `{function.__name__}` cannot be read",
            help="kernels are compiled from their source text: define them in a file, or in a cell of a notebook, "
            "rather than with exec or at the prompt",
            code=Code.NO_SOURCE,
        ) from None
    text = "".join(lines)
    indented = text[:1].isspace()
    try:
        tree = ast.parse("if True:\n" + text if indented else text)
    except SyntaxError:
        raise CompilationError(
            f"the source of the kernel `{function.__name__}` cannot be parsed by itself",
            help="write it as a `def` with its decorators, each on lines of its own",
            code=Code.NO_SOURCE,
        ) from None
    node = tree.body[0].body[0] if indented else tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise CompilationError(
            f"`{function.__name__}` is not a function made with `def`", help="write the kernel as a `def`", code=Code.UNSUPPORTED
        )
    ast.increment_lineno(tree, first - 1 - indented)
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    linecache.checkcache(file)
    return Source(function, node, file, first, tuple(lines), () if text.isascii() else tuple(lines))


def assigned_names(body: list[ast.stmt]) -> list[str]:
    """The names that statements assign, in order of appearance; functions defined inside are not entered."""
    names: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id)
        if isinstance(node, ast.FunctionDef):
            names.setdefault(node.name)
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in body:
        visit(statement)
    return list(names)


def walk(body: list[ast.stmt]):
    """Every node inside, but not inside functions defined there."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def runs_until_return(node: ast.For | ast.While) -> bool:
    """Returns True if only a `return` can leave a loop: a `while True:` without a `break` of its own."""

    def breaks(body: list[ast.stmt]) -> bool:
        return any(
            isinstance(s, ast.Break) or isinstance(s, ast.If) and (breaks(s.body) or breaks(s.orelse)) for s in body
        )

    return (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and bool(node.test.value)
        and not breaks(node.body)
    )


RESULT, RETURNED = "$result", "$returned"


def without_returns(node: ast.FunctionDef) -> ast.FunctionDef:
    """The same function with one `return` at its end.

    `return e` becomes `$result = e; break` out of a `while True:` that runs once; where it is in a loop, it also
    sets `$returned`, and the loops around it are left as soon as they see that. A path that reaches the end returns
    `None`.
    """
    values = any(isinstance(n, ast.Return) and n.value is not None for n in walk(node.body))

    def rewrite(body: list[ast.stmt], depth: int) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, ast.Return):
                made: list[ast.stmt] = []
                if values:
                    value = statement.value or ast.Constant(None)
                    made.append(ast.Assign([ast.Name(RESULT, ast.Store())], value))
                if depth:
                    made.append(ast.Assign([ast.Name(RETURNED, ast.Store())], ast.Constant(True)))
                made.append(ast.Break())
                out += [ast.copy_location(m, statement) for m in made]
                break
            if isinstance(statement, (ast.For, ast.While)) and any(
                isinstance(n, ast.Return) for n in walk([statement])
            ):
                copy = type(statement)(**{f: getattr(statement, f) for f in statement._fields})
                ast.copy_location(copy, statement)
                copy.body = rewrite(statement.body, depth + 1)
                leave: ast.stmt = ast.Break()
                if not runs_until_return(statement):
                    leave = ast.If(ast.Name(RETURNED, ast.Load()), [leave], [])
                out.extend([copy, ast.copy_location(leave, statement)])
            elif isinstance(statement, ast.If):
                copy = ast.If(statement.test, rewrite(statement.body, depth), rewrite(statement.orelse, depth))
                out.append(ast.copy_location(copy, statement))
            else:
                out.append(statement)
        return out

    end: list[ast.stmt] = [ast.Assign([ast.Name(RESULT, ast.Store())], ast.Constant(None))] if values else []
    end.append(ast.Break())
    for statement in end:
        ast.copy_location(statement, node.body[-1])
    made = [
        ast.Assign([ast.Name(RETURNED, ast.Store())], ast.Constant(False)),
        ast.While(ast.Constant(True), rewrite(node.body, 0) + end, []),
        ast.Return(ast.Name(RESULT, ast.Load()) if values else None),
    ]
    copy = ast.FunctionDef(node.name, node.args, made, [], node.returns)
    ast.copy_location(copy, node)
    for statement in made:
        ast.copy_location(statement, node)
    return ast.fix_missing_locations(copy)
