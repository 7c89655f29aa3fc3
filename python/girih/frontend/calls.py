"""Calls in a kernel: other kernels and functions defined inside are inlined, functions of the language applied, and
some of Python's own computed at compile time.

An inlined function is traced as it is; where it returns early under a condition known only at run time, it is
traced again in the form without early returns (`source.without_returns`).
"""

from __future__ import annotations

import ast
import builtins
import contextvars
import difflib
import inspect
import re
from types import FunctionType
from typing import TYPE_CHECKING, Any

from . import source as src
from . import types as ty
from .control import Again, Attempt, KernelRange
from .errors import Code, CompilationError, GirihError, Place, UnsupportedError
from .tensor import cast, describe, fail, is_constexpr, tensor, unwrap
from .types import DType

if TYPE_CHECKING:
    from .trace import Tracer

MAX_DEPTH = 64

# The tracer at work, for functions of the language that call functions of the user's.
CURRENT_TRACER: contextvars.ContextVar[Tracer] = contextvars.ContextVar("girih_tracer")


class Frame:
    """A function being traced: the kernel itself or one inlined into it."""

    def __init__(
        self,
        source: src.Source,
        node: ast.FunctionDef,
        env: dict[str, Any],
        parent: Place | None = None,
        outside: int = 0,
    ):
        self.source = source
        self.node = node
        self.env = env
        # The place where each name was assigned last, for later messages.
        self.assigned: dict[str, ast.Name] = {}
        self.parent = parent
        self.first_context = outside  # how many loops and branches are around the call
        self.result: Any = None


class Closure:
    """A function or a lambda defined inside a kernel; it sees the variables of the function around it as they are."""

    def __init__(self, node: ast.FunctionDef | ast.Lambda, frame: Frame, defaults: dict[str, Any]):
        self.node = node
        self.frame = frame
        self.defaults = defaults

    @property
    def __name__(self) -> str:
        return getattr(self.node, "name", "lambda")


def define(tracer: Tracer, node: ast.FunctionDef | ast.Lambda) -> Closure:
    """A function inside a kernel, with its defaults as they are now."""
    positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    given = [
        *zip(positional[::-1], node.args.defaults[::-1]),
        *zip([a.arg for a in node.args.kwonlyargs], node.args.kw_defaults),
    ]
    return Closure(node, tracer.frame, {name: tracer.evaluate(value) for name, value in given if value is not None})


def trace_call(tracer: Tracer, node: ast.Call) -> Any:
    callee = unwrap(tracer.evaluate(node.func))
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args += list(unwrap(tracer.evaluate(arg.value)))
        else:
            args.append(tracer.evaluate(arg))
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            kwargs.update(unwrap(tracer.evaluate(keyword.value)))
        else:
            kwargs[keyword.arg] = tracer.evaluate(keyword.value)
    tracer.at(node)
    place = tracer.builder.place
    result = call(tracer, callee, args, kwargs, ast.unparse(node.func))
    tracer.builder.place = place
    return result


def call(tracer: Tracer, callee: Any, args: list[Any], kwargs: dict[str, Any], spelled: str = "") -> Any:
    """Traces a call: a kernel is inlined, a function of the language applied."""
    callee = unwrap(callee)
    function = getattr(callee, "__girih_function__", None)
    if function is not None:
        return inline(tracer, function, args, kwargs)
    if isinstance(callee, Closure):
        return inline_closure(tracer, callee, args, kwargs)
    if getattr(callee, "__girih_builtin__", False):
        return checked(callee, args, kwargs)
    if callee is builtins.range:
        if kwargs:
            raise fail(
                f"`range` takes no keyword arguments, but `{next(iter(kwargs))}` is given",
                "write `range(start, stop, step)`",
                code=Code.CALL,
            )
        return KernelRange(*args)
    try:
        special = SPECIAL.get(callee)
    except TypeError:
        raise not_a_function(tracer, callee, spelled) from None
    if special is not None:
        return special(*args, **kwargs)
    plain = [a.items() if isinstance(a, KernelRange) else unwrap(a) for a in args]
    if callee in STRUCTURAL:
        result = checked(callee, plain, {k: unwrap(v) for k, v in kwargs.items()})
        # An iterator would be used up by an attempt that is thrown away.
        return tuple(result) if isinstance(result, (enumerate, zip, reversed)) else result
    static = not any(holds_tensor(v) for v in [*plain, *kwargs.values()])
    if callee in PURE or getattr(callee, "__module__", None) == "math" or getattr(callee, "__girih_host__", False):
        if not static:
            raise fail(
                f"`{spelled}` is computed at compile time, but an argument is known only at run time",
                HELP_MATH.get(getattr(callee, "__name__", "")),
                code=Code.NOT_CONSTANT,
            )
        return checked(callee, plain, {k: unwrap(v) for k, v in kwargs.items()})
    if isinstance(callee, type) and issubclass(callee, tuple) and hasattr(callee, "_fields"):
        return callee(*args, **kwargs)
    owner = getattr(callee, "__self__", None)
    if isinstance(owner, (list, dict)) and callee.__name__ in IN_PLACE_METHODS:
        raise UnsupportedError(
            f"changing a {type(owner).__name__} in place is not supported in a kernel",
            tracer.builder.place,
            "make a new one: `items = items + [item]`" if isinstance(owner, list) else None,
        )
    ours = isinstance(callee, FunctionType) and (callee.__module__ or "").startswith("girih.")
    if ours or isinstance(owner, (tensor, tuple, list, dict, str)):
        return checked(callee, args, kwargs)
    if isinstance(callee, FunctionType):
        raise fail(
            f"`{spelled or callee.__name__}` is an ordinary Python function",
            "decorate it with `@girih.jit` to call it from a kernel",
            code=Code.OUTSIDE,
        )
    raise not_a_function(tracer, callee, spelled)


def bind(name: str, node: ast.arguments, defaults: dict[str, Any], args: list, kwargs: dict) -> dict[str, Any]:
    """The parameters of a call by name, defaults included."""
    if node.vararg is not None or node.kwarg is not None:
        raise fail(f"`{name}` takes `*args` or `**kwargs`, which kernels do not have", "name each parameter", code=Code.UNSUPPORTED)
    names = [a.arg for a in [*node.posonlyargs, *node.args]]
    only = [a.arg for a in node.kwonlyargs]
    if len(args) > len(names):
        raise fail(f"`{name}` takes {len(names)} arguments, but {len(args)} are given", code=Code.CALL)
    bound = dict(zip(names, args))
    for key, value in kwargs.items():
        if key not in names and key not in only:
            near = difflib.get_close_matches(key, names + only, 1)
            raise fail(f"`{name}` has no parameter `{key}`", f"did you mean `{near[0]}`?" if near else None, code=Code.CALL)
        if key in bound:
            raise fail(f"`{name}` is given its parameter `{key}` twice", code=Code.CALL)
        bound[key] = value
    for parameter in names + only:
        if parameter not in bound:
            if parameter not in defaults:
                raise fail(f"the call of `{name}` is missing the argument `{parameter}`", code=Code.CALL)
            bound[parameter] = defaults[parameter]
    return bound


def defaults_of(function: FunctionType) -> dict[str, Any]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    return {**dict(zip(names[::-1], (function.__defaults__ or ())[::-1])), **(function.__kwdefaults__ or {})}


def inline(tracer: Tracer, function: FunctionType, args: list, kwargs: dict) -> Any:
    """A call of another kernel."""
    source = src.read(function)
    env = bind(source.name, source.node.args, defaults_of(function), args, kwargs)
    for name, annotation in function.__annotations__.items():
        if is_constexpr(annotation) and holds_tensor(env.get(name)):
            note_runtime(tracer, name, source.name, env[name])
    return run(tracer, source, source.node, env)


def note_runtime(tracer: Tracer, name: str, callee: str, value: Any) -> None:
    """A constexpr parameter has a value of run time: an error only if a constant is needed, which then names both."""
    value = unwrap(value)
    if isinstance(value, tensor):
        tracer.builder.runtime_constants[id(value)] = (value, name, callee)
    elif isinstance(value, (tuple, list)):
        for v in value:
            note_runtime(tracer, name, callee, v)


def inline_closure(tracer: Tracer, closure: Closure, args: list, kwargs: dict) -> Any:
    """A call of a function defined inside the kernel."""
    bound = bind(closure.__name__, closure.node.args, closure.defaults, args, kwargs)
    env = {**closure.frame.env, **bound}
    node = closure.node
    if isinstance(node, ast.Lambda):
        result = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(ast.FunctionDef("lambda", node.args, [result], []), node)
    return run(tracer, closure.frame.source, node, env)


def run(tracer: Tracer, source: src.Source, node: ast.FunctionDef, env: dict[str, Any]) -> Any:
    """The body of an inlined function; its result."""
    if len(tracer.frames) >= MAX_DEPTH:
        itself = any(f.node is node or f.source.function is source.function for f in tracer.frames)
        raise fail(
            f"`{source.name}` calls itself, here {MAX_DEPTH} deep" if itself else f"calls are nested {MAX_DEPTH} deep",
            "kernels are not recursive at run time; write a loop",
            code=Code.RECURSION,
        )
    parent = tracer.builder.place
    for form in (node, None):
        start = Attempt(tracer)
        frame = Frame(source, form or src.without_returns(node), dict(env), parent, len(tracer.contexts))
        depth = len(tracer.frames)
        tracer.frames.append(frame)
        if tracer.watch is not None:
            tracer.watch.parameters(source, frame.node, frame.env)
        try:
            tracer.block(frame.node.body)
            return frame.result
        except Again as again:
            if again.context is not frame or form is None:
                raise
            del tracer.frames[depth:]
            start.undo()
        finally:
            del tracer.frames[depth:]
            tracer.builder.place = parent
    raise AssertionError("the second form has no early return")


# ---- Python's own functions on values


def is_too_large(op: type, left: Any, right: int) -> bool:
    """Returns True if an operation on constants would take more memory than any kernel needs."""
    if op is ast.Mult and isinstance(left, (str, tuple, list)):
        return len(left) * right > 1 << 20
    if isinstance(left, int) and op in (ast.Pow, ast.LShift):
        return (left.bit_length() * right if op is ast.Pow else left.bit_length() + right) > 4096
    return False


def apply(function: Any, *operands: Any) -> Any:
    """A Python operator on values; its complaints become errors of the kernel."""
    try:
        return function(*operands)
    except GirihError:
        raise
    except ZeroDivisionError:
        raise fail("division by zero at compile time", code=Code.CONSTANT) from None
    except KeyError as e:
        raise fail(f"the key {e} is not there", code=Code.OPERAND) from None
    except (TypeError, ValueError, IndexError, OverflowError) as e:
        if any(isinstance(o, tensor) for o in operands):
            other = next((o for o in operands if not isinstance(o, tensor)), None)
            raise fail(f"the operation is not defined between a tile and {describe(other)}", code=Code.OPERAND) from None
        raise fail(str(e), code=Code.OPERAND) from None


def checked(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call whose wrong arguments are errors of the kernel."""
    try:
        return function(*args, **kwargs)
    except (GirihError, Again):
        raise
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, ZeroDivisionError) as e:
        name = getattr(function, "__name__", "the function")
        if (unknown := unknown_keyword(function, kwargs)) is not None:
            raise fail(f"`{name}` has no parameter `{unknown[0]}`", unknown[1], code=Code.CALL) from None
        reason = re.sub(r"^(\w+\.)?(\w+)\(\)", r"`\2`", str(e))
        help = usage(function) if isinstance(e, TypeError) and reason.startswith(f"`{name}`") else None
        raise fail(reason if reason.startswith("`") else f"{name}: {reason}", help, code=Code.CALL) from e


def usage(function: Any) -> str | None:
    """How a function is called: its parameters up to the first that may be left out, and the others' names."""
    try:
        parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    except (TypeError, ValueError):
        return None
    needed = [p.name for p in parameters if p.default is p.empty]
    optional = [p.name for p in parameters if p.default is not p.empty]
    call = f"write `{function.__name__}({', '.join(needed)})`"
    return call + (f"; it takes {', '.join(f'`{o}`' for o in optional)} too" if optional else "")


def unknown_keyword(function: Any, kwargs: dict[str, Any]) -> tuple[str, str] | None:
    """A keyword argument that a function does not take, and a similar name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    for key in kwargs:
        if key not in parameters:
            near = difflib.get_close_matches(key, parameters, 1)
            return key, f"did you mean `{near[0]}`?" if near else f"it has {', '.join(f'`{p}`' for p in parameters)}"
    return None


def not_a_function(tracer: Tracer, callee: Any, spelled: str) -> CompilationError:
    """The error of a call of a value; if its name hides a function, the help says where."""
    hidden = tracer.frame.assigned.get(spelled)
    hides = hasattr(builtins, spelled) or spelled in tracer.frame.source.function.__globals__
    if hidden is not None and hides:
        help = f"it was assigned at line {hidden.lineno}, which hides the function `{spelled}`: give the value another name"
    elif spelled in tracer.env:
        parameter = f"it is a parameter, which hides the function `{spelled}`: give it another name"
        help = parameter if hides else f"`{spelled}` is a value of the kernel, not a function"
    elif ty.is_type(callee):
        help = f"cast a tile with `x.to(girih.{callee})`, and make one of a number with `girih.full(shape, value, girih.{callee})`"
    else:
        help = None
    return fail(f"{describe(callee)} cannot be called in a kernel", help, code=Code.OUTSIDE)


def holds_tensor(value: Any) -> bool:
    value = unwrap(value)
    if isinstance(value, (tuple, list)):
        return any(holds_tensor(v) for v in value)
    return isinstance(value, tensor)


IN_PLACE_METHODS = (
    "append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault", "sort", "update",
)  # fmt: skip

HELP_MATH = {
    "exp": "use `girih.exp`", "log": "use `girih.log`", "sqrt": "use `girih.sqrt`", "sin": "use `girih.sin`",
    "cos": "use `girih.cos`", "floor": "use `girih.floor`", "ceil": "use `girih.ceil`", "tanh": "use `girih.tanh`",
    "erf": "use `girih.erf`", "pow": "use `girih.pow`", "round": "use `girih.round`, which rounds to whole numbers",
}  # fmt: skip

# Functions of Python that are applied to values known at compile time.
PURE = {bool, str, round, repr, divmod, sorted, id, format, getattr, slice}

# Functions of Python that look at the structure of values, whether these are known or not.
STRUCTURAL = {len, tuple, list, dict, enumerate, zip, reversed, isinstance, issubclass, hasattr, type, all, any, sum}


def to_number(kind: type, dtype: DType):
    def convert(value: Any = 0) -> Any:
        value = unwrap(value)
        return cast(value, dtype) if isinstance(value, tensor) else checked(kind, [value], {})

    return convert


def least_or_greatest(name: str):
    def choose(*values: Any, **kwargs: Any) -> Any:
        from ..language import elementwise

        if len(values) == 1 and isinstance(unwrap(values[0]), tensor):
            raise fail(
                f"Python's `{name}` of one tile is not its {'least' if name == 'min' else 'greatest'} element",
                f"reduce it: `girih.{name}(x, axis)`",
                code=Code.CALL,
            )
        if len(values) == 1:
            (values,) = map(unwrap, values)
        values = [unwrap(v) for v in values]
        if not any(isinstance(v, tensor) for v in values):
            return {"min": min, "max": max}[name](values)
        result = values[0]
        for v in values[1:]:
            result = {"min": elementwise.minimum, "max": elementwise.maximum}[name](result, v)
        return result

    return choose


def absolute(value: Any) -> Any:
    from ..language import elementwise

    value = unwrap(value)
    return elementwise.abs(value) if isinstance(value, tensor) else checked(abs, [value], {})


def say(*values: Any, **_: Any) -> None:
    """`print` in a kernel: at run time if a tile is among the values, else at compile time."""
    from ..language import messages

    if any(holds_tensor(v) for v in values):
        text = " ".join(str(unwrap(v)) for v in values if not isinstance(unwrap(v), tensor))
        messages.device_print(text, *(v for v in values if isinstance(unwrap(v), tensor)))
    else:
        messages.static_print(*values)


def stop_here(*_: Any, **__: Any) -> None:
    """`breakpoint()` in a kernel."""
    from .breakpoints import observe

    if CURRENT_TRACER.get().stops:
        observe(CURRENT_TRACER.get())


SPECIAL = {
    breakpoint: stop_here, print: say, int: to_number(int, ty.int32), float: to_number(float, ty.float32),
    min: least_or_greatest("min"), max: least_or_greatest("max"), abs: absolute,
}  # fmt: skip
