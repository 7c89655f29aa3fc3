"""The arguments that a kernel may be launched with: a first guess, and alternatives to try.

In: a kernel and the launches of its script. Out: for each parameter a list of looks, as the dispatcher gives them
(`("ptr", "float32", 16)`, `("int", 32, True, 1)`, `("constant", 64)`), the likeliest first.

A parameter is an address if the body loads from it, stores to it or passes it to a kernel that does; a constant has the
values of the launches, of `autotune`, or its default. All values are tried for a parameter without such a sign.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

from ..frontend import source as src
from ..frontend import types as ty
from ..frontend.tensor import is_constexpr
from ..kernel import JITFunction
from .definitions import Defined, Scope, Unknowable, look_up

# Functions whose first argument is an address.
TAKES_ADDRESS = (
    "load", "store", "make_block_ptr", "make_tensor_descriptor", "load4", "multiple_of",
    *(f"atomic_{n}" for n in ("add", "max", "min", "and", "or", "xor", "xchg", "cas")),
)  # fmt: skip

ADDRESSES = [("ptr", name, 16) for name in ("float32", "int32", "float16", "int64", "float64", "bfloat16", "int8", "int1")]
NUMBERS = [("int", 32, True, 1), ("float",)]
CONSTANTS = [("constant", value) for value in (64, 32, 16, 1, 128, 0, 4, 2, 0.5, ty.float32, ty.int32, None)]


def looks(defined: Defined, launches: list[ast.Call]) -> dict[str, list[tuple]]:
    """The looks of each parameter."""
    kernel = defined.kernel
    addresses = addresses_of(kernel, set())
    given = of_launches(kernel, launches, defined.scope)
    out = {}
    for name, parameter in inspect.signature(kernel.fn).parameters.items():
        default = parameter.default
        if is_constexpr(parameter.annotation) or getattr(parameter.annotation, "__name__", "") == "constexpr":
            known = [defined.constants[name]] if name in defined.constants else given.get(name, [])
            known = known + ([default] if default is not parameter.empty else [])
            if not known:
                defined.guessed.append(name)
            tried = [("constant", value) for value in known] or CONSTANTS
        else:
            known = given.get(name, []) + ([default] if default is not parameter.empty else [])
            numbers = [look for value in known if (look := look_of(value))] + NUMBERS
            tried = ADDRESSES + numbers if name in addresses else numbers + ADDRESSES[:2]
            tried.append(("none",))
        out[name] = list(dict.fromkeys(tried)) if all(hashable(t) for t in tried) else tried
    return out


def hashable(value: Any) -> bool:
    try:
        hash(value)
        return True
    except TypeError:
        return False


def look_of(value: Any) -> tuple | None:
    """How a number of Python's looks to a kernel that is not specialised for it."""
    if isinstance(value, bool):
        return ("bool",)
    if isinstance(value, int):
        return ("int", 32 if -(1 << 31) <= value < 1 << 31 else 64, True, 1)
    if isinstance(value, float):
        return ("float",)
    return ("none",) if value is None else None


def launches_of(tree: ast.AST) -> dict[str, list[ast.Call]]:
    """Calls `kernel[grid](...)`, and `kernel.run(grid, ...)` as such, by the name of the kernel."""
    found: dict[str, list[ast.Call]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        callee, args = node.func, node.args
        if isinstance(callee, ast.Attribute) and callee.attr == "run":
            callee, args = callee.value, args[1:]
        elif isinstance(callee, ast.Subscript):
            callee = callee.value
        else:
            continue
        name = callee.id if isinstance(callee, ast.Name) else callee.attr if isinstance(callee, ast.Attribute) else None
        if name is not None and not any(isinstance(a, ast.Starred) for a in args):
            found.setdefault(name, []).append(ast.Call(callee, args, node.keywords))
    return found


def of_launches(kernel: Any, calls: list[ast.Call], scope: Scope) -> dict[str, list[Any]]:
    """The numbers and other constants that launches pass."""
    out: dict[str, list[Any]] = {}
    for call in calls:
        named = {k.arg: k.value for k in call.keywords if k.arg is not None}
        for name, node in {**dict(zip(kernel.params, call.args)), **named}.items():
            known, value = constant(node, scope)
            if known:
                out.setdefault(name, []).append(value)
    return out


def constant(node: ast.expr, scope: Scope) -> tuple[bool, Any]:
    """Returns whether an argument is known, and its value: a literal, or a name of the script's constants."""
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        pass
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = look_up(node, scope)
        known = value is None or not hasattr(value, "shape")
        return value is not None and known, value
    return False, None


def addresses_of(kernel: Any, seen: set) -> set[str]:
    """The parameters that the body uses as addresses."""
    seen.add(kernel)
    try:
        node = src.read(kernel.fn).node
    except Exception:
        return set()
    roots = {name: name for name in kernel.params}
    found: set[str] = set()

    def root(e: ast.expr | None) -> str | None:
        """The parameter that an address is counted from: the leftmost of a sum."""
        if isinstance(e, ast.Name):
            return roots.get(e.id)
        if isinstance(e, ast.BinOp) and isinstance(e.op, (ast.Add, ast.Sub)):
            return root(e.left) or root(e.right)
        if isinstance(e, ast.IfExp):
            return root(e.body) or root(e.orelse)
        if isinstance(e, ast.Subscript):
            return root(e.value)
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in ("to", "cast", "advance", "multiple_of"):
            return root(e.func.value) or next((r for r in map(root, e.args) if r), None)
        return None

    def call(e: ast.Call) -> None:
        name = e.func.attr if isinstance(e.func, ast.Attribute) else e.func.id if isinstance(e.func, ast.Name) else ""
        first = e.args[0] if e.args else next((k.value for k in e.keywords if k.arg in ("pointer", "base")), None)
        if name in TAKES_ADDRESS and (r := root(first)):
            found.add(r)
        called = callee(e.func, kernel)
        if called is None or called in seen:
            return
        inner = addresses_of(called, seen)
        named = {k.arg: k.value for k in e.keywords}
        for p, value in {**dict(zip(called.params, e.args)), **named}.items():
            if p in inner and (r := root(value)):
                found.add(r)

    # Twice, since a loop may use names that it sets further down.
    for _ in range(2):
        for part in src.walk(node.body):
            if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
                target = part.targets[0].id
                if (r := root(part.value)) and target not in kernel.params:
                    roots[target] = r
            elif isinstance(part, ast.Call):
                call(part)
    return found


def callee(node: ast.expr, kernel: Any) -> Any:
    """The kernel of the script that is called; None for anything else."""
    from ..autotune import Wrapped
    from . import triton_kernels

    scope = kernel.fn.__globals__
    try:
        value = look_up(node, scope)
    except Unknowable:
        return None
    value = value.innermost if isinstance(value, Wrapped) else value
    if isinstance(value, JITFunction):
        return value
    found = triton_kernels.of(value)
    return found[0] if found else None
