"""A kernel's Python, executed on symbolic values: constants are computed, all other operations become Tile IR.

`trace(source, params)` runs the body of a function with tensors for its run-time parameters and returns the builder
that holds the kernel. Python values (numbers, types, tuples, functions, `constexpr`) behave as in Python; a `tensor`
appends operations. Calls of other kernels are inlined, with the place of the call kept for messages.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import operator
from types import ModuleType
from typing import Any

from . import source as src
from .builder import Builder, Value
from .calls import CURRENT_TRACER, Frame, apply, define, is_too_large, trace_call
from .conditions import trace_bool, trace_compare
from .control import (
    SEQUENCES,
    Again,
    Attempt,
    Context,
    Flow,
    KernelRange,
    branch,
    leave,
    scalar_truth,
    trace_for,
    trace_if,
    trace_while,
)
from .elsewhere import NAMES, help_for
from .errors import Code, CompilationError, Place, UnsupportedError
from .names import attribute, check_global, may_change, tensor_attribute
from .seen import WATCH
from .slots import Undefined
from .tensor import CURRENT, as_tensor, cast, constexpr, describe, fail, is_constexpr, is_number, static, tensor, truth, unwrap
from .types import DType, PointerType


@dataclasses.dataclass(frozen=True)
class Param:
    """A parameter of the kernel that is computed with at run time.

    `divisible` is a power of two that divides the integer, or the address, or 1.
    """

    name: str
    type: DType | PointerType
    divisible: int = 1


class Tracer:
    """The state of tracing one kernel."""

    def __init__(self, builder: Builder, stops: bool = True):
        self.builder = builder
        self.stops = stops
        self.frames: list[Frame] = []
        self.contexts: list[Context] = []
        self.unrolled = 1
        self.watch = WATCH.get()

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def env(self) -> dict[str, Any]:
        return self.frame.env

    @env.setter
    def env(self, env: dict[str, Any]) -> None:
        self.frame.env = env

    # ---- places and errors

    def at(self, node: ast.AST | None) -> None:
        """Makes `node` the place of the operations that follow, if it is in the text."""
        if not hasattr(node, "lineno"):
            return
        frame = self.frame
        source, line = frame.source, node.lineno
        start = source.column(line, node.col_offset)
        end = source.column(line, node.end_col_offset) if node.end_lineno == line else 0
        self.builder.place = Place(source.file, line, start, end, source.name, frame.parent)

    def unsupported(self, node: ast.AST, what: str, help: str | None = None) -> UnsupportedError:
        self.at(node)
        return UnsupportedError(f"{what} is not supported in a kernel", self.builder.place, help)

    # ---- statements

    def block(self, body: list[ast.stmt]) -> Flow:
        for statement in body:
            self.at(statement)
            flow = self.statement(statement)
            if flow is not Flow.NORMAL:
                return flow
        return Flow.NORMAL

    def statement(self, node: ast.stmt) -> Flow:
        handler = STATEMENTS.get(type(node))
        if handler is None:
            what, help = UNSUPPORTED_STATEMENTS.get(type(node), (f"`{type(node).__name__.lower()}`", None))
            raise self.unsupported(node, what, help)
        return handler(self, node) or Flow.NORMAL

    def do_assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            return
        value = self.evaluate(node.value)
        if isinstance(node.annotation, (ast.Name, ast.Attribute)) and is_constexpr(self.evaluate(node.annotation)):
            self.at(node.value)
            static(value, f"`{ast.unparse(node.target)}`, which is annotated with constexpr,")
        self.assign(node.target, value)

    def do_augmented(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(node.target, "changing a part of a value in place", IN_PLACE)
        left = self.name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        right = self.evaluate(node.value)
        self.at(node)
        self.assign(node.target, self.binary(type(node.op), left, right))

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, tensor) and not value.value.hint:
                value.value.hint = target.id
            self.env[target.id] = value
            self.frame.assigned[target.id] = target
            if self.watch is not None:
                self.watch.name(self.frame.source, target, target.id, value, "assigned")
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = unwrap(value)
            if not isinstance(parts, (tuple, list)):
                raise fail(f"{describe(value)} cannot be unpacked into {len(target.elts)} names", code=Code.OPERAND)
            names = len(target.elts)
            star = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
            if star is None and len(parts) != names or star is not None and len(parts) < names - 1:
                raise fail(f"{len(parts)} values cannot be unpacked into {names} names", code=Code.OPERAND)
            if star is not None:
                after = len(parts) - (names - 1 - star)
                parts = [*parts[:star], list(parts[star:after]), *parts[after:]]
            for t, v in zip(target.elts, parts):
                self.assign(t.value if isinstance(t, ast.Starred) else t, v)
        else:
            help = IN_PLACE
            if isinstance(target, ast.Subscript) and is_address(unwrap(self.evaluate(target.value))):
                help = f"an address is stored to: `girih.store({ast.unparse(target.value)} + {ast.unparse(target.slice)}, value)`"
            raise self.unsupported(target, "changing a part of a value in place", help)

    def do_expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        before = self.builder.effects
        value = unwrap(self.evaluate(node.value))
        if isinstance(value, tensor) and self.builder.effects == before and not is_promise(node.value):
            self.at(node)
            self.builder.unused.append(self.builder.place)

    def do_return(self, node: ast.Return) -> Flow:
        value = self.evaluate(node.value) if node.value is not None else None
        self.at(node)
        runtime = any(c.kind != "unrolled" for c in self.contexts[self.frame.first_context :])
        if len(self.frames) == 1:
            if value is not None:
                raise fail("a kernel cannot return a value", "store the result: `girih.store(pointer, value)`", code=Code.UNSUPPORTED)
            if any(c.kind in ("for", "loop") for c in self.contexts):
                raise Again(self.frame)
            if runtime:
                self.builder.op(["return"], pure=False)
            return Flow.RETURN
        if runtime:
            raise Again(self.frame)
        self.frame.result = value
        return Flow.RETURN

    def do_assert(self, node: ast.Assert) -> None:
        from ..language import messages

        condition = unwrap(self.evaluate(node.test))
        message = self.evaluate(node.msg) if node.msg is not None else ast.unparse(node.test)
        self.at(node)
        if isinstance(condition, tensor):
            messages.device_assert(condition, message)
        else:
            messages.static_assert(condition, message)

    def do_raise(self, node: ast.Raise) -> None:
        text = ast.unparse(node.exc) if node.exc is not None else ""
        if isinstance(node.exc, ast.Call) and len(node.exc.args) == 1:
            text = str(unwrap(self.evaluate(node.exc.args[0])))
        self.at(node)
        if any(c.kind != "unrolled" for c in self.contexts):
            raise fail(
                "a kernel cannot raise an exception at run time", "use `girih.device_assert(condition, message)`",
                code=Code.UNSUPPORTED,
            )
        raise fail(text, code=Code.STATIC)

    def do_function(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise self.unsupported(node, "a decorated function inside a kernel", "define it outside of the kernel")
        self.env[node.name] = define(self, node)

    # ---- expressions

    def evaluate(self, node: ast.expr) -> Any:
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            what, help = UNSUPPORTED_EXPRESSIONS.get(type(node), (f"`{ast.unparse(node)}`", None))
            raise self.unsupported(node, what, help)
        return handler(self, node)

    def do_name(self, node: ast.Name) -> Any:
        value = self.name(node)
        if self.watch is not None:
            self.watch.name(self.frame.source, node, node.id, value, "read")
        return value

    def name(self, node: ast.Name) -> Any:
        if node.id in self.env:
            value = self.env[node.id]
            if isinstance(value, Undefined):
                self.at(node)
                raise fail(f"`{node.id}` may have no value here: {value.why}", value.help, code=Code.FLOW)
            return value
        try:
            value, again = self.frame.source.look_up(node.id)
        except KeyError:
            self.at(node)
            help = help_for(node.id, NAMES, [*self.env, *self.frame.source.function.__globals__])
            raise fail(f"`{node.id}` is not defined", help, code=Code.UNKNOWN) from None
        self.at(node)
        if again is not None and not isinstance(value, ModuleType):
            self.builder.outside[id(self.frame.source.function), node.id] = (again, node.id, value)
        return check_global(node.id, value)

    def do_constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (complex, bytes)):
            raise self.unsupported(node, f"the constant {node.value!r}")
        return node.value

    def do_binary(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        self.at(node)
        return self.binary(type(node.op), left, right)

    def binary(self, op: type, left: Any, right: Any) -> Any:
        left, right = unwrap(left), unwrap(right)
        if op is ast.MatMult:
            from ..language import core

            return core.dot(left, right)
        if op not in BINARY:
            raise fail(f"the operator {op.__name__} is not supported in a kernel", code=Code.UNSUPPORTED)
        if isinstance(right, int) and is_too_large(op, left, right):
            raise fail("this constant is too large to be computed at compile time", code=Code.TOO_LARGE)
        return apply(BINARY[op], left, right)

    def do_unary(self, node: ast.UnaryOp) -> Any:
        value = unwrap(self.evaluate(node.operand))
        self.at(node)
        if isinstance(node.op, ast.Not):
            return ~truth(value) if isinstance(value, tensor) else not value
        if isinstance(node.op, ast.Invert) and isinstance(value, bool):
            raise fail(
                f"`~` of the Python bool {value} is {~int(value)}, which counts as true",
                f"write `not {ast.unparse(node.operand)}`",
                code=Code.CONDITION,
            )
        return apply(
            {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[type(node.op)], value
        )

    def do_choice(self, node: ast.IfExp) -> Any:
        condition = unwrap(self.evaluate(node.test))
        self.at(node)
        if not isinstance(condition, tensor):
            return self.evaluate(node.body if condition else node.orelse)
        name = f"$choice{node.lineno}_{node.col_offset}"

        def side(expression: ast.expr):
            def trace() -> Flow:
                self.env[name] = self.evaluate(expression)
                return Flow.NORMAL

            return trace

        branch(self, scalar_truth(condition), side(node.body), side(node.orelse))
        value = self.env.pop(name)
        if isinstance(value, Undefined):
            raise fail(f"the two sides of this choice do not match: {value.why}", code=Code.FLOW)
        return value

    def do_tuple(self, node: ast.Tuple | ast.List) -> Any:
        out = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                out += list(unwrap(self.evaluate(element.value)))
            else:
                out.append(self.evaluate(element))
        return tuple(out) if isinstance(node, ast.Tuple) else out

    def do_dict(self, node: ast.Dict) -> Any:
        if any(k is None for k in node.keys):
            raise self.unsupported(node, "`**` in a dictionary")
        return {unwrap(self.evaluate(k)): self.evaluate(v) for k, v in zip(node.keys, node.values)}

    def do_subscript(self, node: ast.Subscript) -> Any:
        value = unwrap(self.evaluate(node.value))
        key = self.key(node.slice)
        self.at(node)
        if is_number(value):
            value = as_tensor(value)
        return apply(operator.getitem, value, key)

    def key(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if p is None else unwrap(self.evaluate(p)) for p in parts))
        if isinstance(node, ast.Tuple):
            return tuple(self.key(e) for e in node.elts)
        return unwrap(self.evaluate(node))

    def do_attribute(self, node: ast.Attribute) -> Any:
        found = self.attribute(node)
        if self.watch is not None:
            self.watch.name(self.frame.source, node, node.attr, found, "read")
        return found

    def attribute(self, node: ast.Attribute) -> Any:
        value = self.evaluate(node.value)
        self.at(node)
        if isinstance(value, constexpr) and node.attr == "value":
            return value.value
        value = unwrap(value)
        if isinstance(value, tensor):
            return tensor_attribute(value, node.attr)
        if is_number(value) and node.attr == "to":
            return lambda dtype, *rest, **more: cast(as_tensor(value), dtype)
        try:
            found = getattr(value, node.attr)
        except AttributeError:
            what = f"the module `{value.__name__}`" if isinstance(value, ModuleType) else describe(value)
            names = NAMES if isinstance(value, ModuleType) and value.__name__.startswith("girih") else {}
            help = help_for(node.attr, names, dir(value))
            raise fail(f"{what} has no attribute `{node.attr}`", help, code=Code.UNKNOWN) from None
        if may_change(value):
            read = functools.partial(attribute, value)
            self.builder.outside[id(value), node.attr] = (read, node.attr, found)
        return check_global(node.attr, found) if isinstance(value, ModuleType) else found

    def do_lambda(self, node: ast.Lambda) -> Any:
        return define(self, node)

    def do_comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        out: list[Any] = []
        outer = dict(self.env)

        def loop(generators: list[ast.comprehension]) -> None:
            if not generators:
                out.append(self.evaluate(node.elt))
                return
            items = unwrap(self.evaluate(generators[0].iter))
            self.at(node)
            if isinstance(items, KernelRange):
                items = items.items()
            if not isinstance(items, SEQUENCES):
                raise fail("a comprehension runs over values known at compile time", code=Code.NOT_CONSTANT)
            for item in items:
                self.assign(generators[0].target, item)
                if all(unwrap(self.evaluate(c)) for c in generators[0].ifs):
                    loop(generators[1:])

        loop(node.generators)
        self.env = outer
        return out

    def do_string(self, node: ast.JoinedStr) -> str:
        text = ""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = unwrap(self.evaluate(part.value))
                spec = self.do_string(part.format_spec) if part.format_spec is not None else ""
                text += describe(value) if isinstance(value, tensor) else format(value, spec)
            else:
                text += part.value
        return text

    def do_named(self, node: ast.NamedExpr) -> Any:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value


def is_address(value: Any) -> bool:
    return isinstance(value, tensor) and value.dtype.is_ptr()


# Functions that Triton's programs call for what they promise about an argument.
PROMISES = ("multiple_of", "max_contiguous", "max_constancy", "assume")


def is_promise(node: ast.expr) -> bool:
    """Returns True if an expression is written for something else than its value."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in PROMISES


IN_PLACE = "a tile is a value: make a new one, with `girih.where(condition, x, y)`, or store to memory"

STATEMENTS = {
    ast.Assign: Tracer.do_assign, ast.AnnAssign: Tracer.do_annotated, ast.AugAssign: Tracer.do_augmented,
    ast.Expr: Tracer.do_expression, ast.Return: Tracer.do_return, ast.Assert: Tracer.do_assert,
    ast.Raise: Tracer.do_raise, ast.FunctionDef: Tracer.do_function, ast.Pass: lambda t, n: None,
    ast.For: trace_for, ast.While: trace_while, ast.If: trace_if,
    ast.Break: lambda t, n: leave(t, Flow.BREAK), ast.Continue: lambda t, n: leave(t, Flow.CONTINUE),
}  # fmt: skip

EXPRESSIONS = {
    ast.Name: Tracer.do_name, ast.Constant: Tracer.do_constant, ast.BinOp: Tracer.do_binary,
    ast.UnaryOp: Tracer.do_unary, ast.Compare: trace_compare, ast.BoolOp: trace_bool,
    ast.IfExp: Tracer.do_choice, ast.Tuple: Tracer.do_tuple, ast.List: Tracer.do_tuple, ast.Dict: Tracer.do_dict,
    ast.Subscript: Tracer.do_subscript, ast.Attribute: Tracer.do_attribute, ast.Call: trace_call,
    ast.Lambda: Tracer.do_lambda, ast.ListComp: Tracer.do_comprehension, ast.GeneratorExp: Tracer.do_comprehension,
    ast.JoinedStr: Tracer.do_string, ast.NamedExpr: Tracer.do_named,
}  # fmt: skip

UNSUPPORTED_STATEMENTS = {
    ast.Try: ("`try`", "check conditions with `if` or `girih.device_assert`"),
    ast.With: ("`with`", None),
    ast.Import: ("`import`", "import at the top of the file"),
    ast.ImportFrom: ("`import`", "import at the top of the file"),
    ast.Global: ("`global`", "a kernel changes memory only through `girih.store`"),
    ast.Nonlocal: ("`nonlocal`", "return the value instead"),
    ast.ClassDef: ("a class", "use tuples, or a NamedTuple defined outside"),
    ast.Delete: ("`del`", "leave it out: values cost nothing once they are no longer used"),
    ast.AsyncFor: ("`async`", None),
    ast.AsyncWith: ("`async`", None),
    ast.AsyncFunctionDef: ("`async`", None),
    ast.Match: ("`match`", "write it with `if` and `elif`"),
}

UNSUPPORTED_EXPRESSIONS = {
    ast.Yield: ("`yield`", "store results to memory"),
    ast.YieldFrom: ("`yield`", "store results to memory"),
    ast.Await: ("`await`", None),
    ast.Set: ("a set", "use a tuple"),
    ast.SetComp: ("a set", "use a tuple"),
    ast.DictComp: ("a dictionary comprehension", "write the dictionary out, or build it outside of the kernel"),
}

BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip

def trace(
    source: src.Source,
    params: list[Param],
    constants: dict[str, Any],
    name: str,
    checked: bool = False,
    stops: bool = True,
) -> Builder:
    """The kernel for one specialisation.

    `params` are the run-time parameters in order, `constants` the others by name, `name` the entry's. With
    `checked` the kernel stops where an index lies outside of its tile; without `stops` it has no breakpoints.
    Raises `CompilationError`.
    """
    builder = Builder(name, checked)
    token = CURRENT.set(builder)
    try:
        tracer = Tracer(builder, stops)
        CURRENT_TRACER.set(tracer)
        env: dict[str, Any] = dict(constants)
        frame = Frame(source, source.node, env)
        tracer.frames.append(frame)
        tracer.at(source.node)
        builder.start = builder.place
        for p in params:
            value = Value(p.type, (), hint=p.name)
            builder.params.append(value)
            env[p.name] = tensor(assumed(builder, value, p), p.type)
        if tracer.watch is not None:
            tracer.watch.parameters(source, source.node, env)
        start = builder.place
        first = Attempt(tracer)
        try:
            tracer.block(frame.node.body)
        except Again as again:
            if again.context is not frame:
                raise
            first.undo()
            frame.node = src.without_returns(source.node)
            tracer.block(frame.node.body[:-1])
        builder.place = start
        # Where both sides of an `if` return, the second of them ends the kernel.
        if not builder.entry.ops or builder.entry.ops[-1].pieces != ("return",):
            builder.op(["return"], pure=False)
        return builder
    except RecursionError:
        raise CompilationError("the kernel is nested too deep", builder.place, code=Code.TOO_LARGE) from None
    finally:
        CURRENT.reset(token)


def assumed(builder: Builder, value: Value, param: Param) -> Value:
    if param.divisible <= 1:
        return value
    result = Value(value.type, (), hint=param.name)
    builder.op([f"assume div_by<{param.divisible}>, ", value, f" : {value.ir_type()}"], (result,))
    return result
