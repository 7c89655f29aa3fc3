"""The definitions of a script, without its other statements.

In: a tree. Out: a scope, in which functions are made and names of constants have their values, and the kernels.

Only this is executed: imports of modules without side effects, and of files beside the script, whose definitions are made
in the same way; decorators that are Girih's; assignments and defaults that are made of literals, names, operators and
calls of Girih, ``math`` and types of Python. All other names are *unknown*: code that reads one ends with `Unknowable`.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..autotune import Wrapped
from ..kernel import JITFunction

# Imported as they are. Kernels do not use the other modules that scripts import.
HARMLESS = ("__future__", "collections", "dataclasses", "enum", "functools", "girih", "math", "numpy", "operator", "triton", "typing")
# Imported only for a kernel that reads them, which is a mistake: they take seconds.
SLOW = ("torch",)
# Modules of Girih that import PyTorch, Triton or cuda-tile, or do more than define names.
NOT_HARMLESS = ("girih.bench", "girih.cutile", "girih.scripts", "girih.torch", "girih.triton", "girih.tune")
CALLED = ("girih", "math", "collections", "triton", "typing", "operator")
CALLED_TYPES = ("bool", "dict", "float", "int", "len", "list", "max", "min", "range", "str", "tuple", "zip", "enumerate", "sorted")


class Unknowable(Exception):
    """A value that only a run of the script has."""


class Unknown:
    """Stands for one; `slow` is the module that it is, if that may be imported after all."""

    def __init__(self, slow: str | None = None):
        self.slow = slow


class Scope(dict):
    """The globals of a script's functions."""

    def __getitem__(self, name):
        value = super().__getitem__(name)
        if isinstance(value, Unknown):
            raise Unknowable(name)
        return value

    def load(self, name: str) -> bool:
        """Imports a slow module; returns False for a name that stays unknown."""
        value = dict.get(self, name)
        if not isinstance(value, Unknown) or value.slow is None:
            return False
        try:
            self[name] = importlib.import_module(value.slow)
        except Exception:
            value.slow = None
            return False
        return True


class Beside(ModuleType):
    """A file beside the script whose definitions are made."""

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if isinstance(value, Unknown):
            raise Unknowable(name)
        return value


@dataclasses.dataclass
class Defined:
    """A kernel of the script."""

    #: A `JITFunction`, or a `TritonKernel`, which has the same names.
    kernel: Any
    #: The constants that `girih.autotune`, or Triton's, tries first.
    constants: dict[str, Any]
    scope: Scope
    #: The file, the function or the class that it is defined in, where its launches are.
    within: ast.AST
    #: Constants whose value is a guess.
    guessed: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Wrong:
    """A definition that Girih refuses, at a line."""

    node: ast.stmt
    message: str


@dataclasses.dataclass
class Definitions:
    kernels: list[Defined] = dataclasses.field(default_factory=list)
    wrong: list[Wrong] = dataclasses.field(default_factory=list)
    scope: Scope = dataclasses.field(default_factory=Scope)


def of_tree(tree: ast.Module, file: str, loaded: dict | None = None) -> Definitions:
    """The definitions of a file; `loaded` has those of the files that are being read."""
    found = Definitions()
    found.scope.update({"__builtins__": builtins, "__name__": Path(file).stem, "__file__": file})
    reader = _Reader(tree, file, found, {} if loaded is None else loaded)
    reader.body(tree.body, found.scope)
    # Last, since functions see names that are defined further down.
    while reader.inner:
        reader.nested(*reader.inner.pop(0))
    return found


class _Reader:
    def __init__(self, tree: ast.Module, file: str, found: Definitions, loaded: dict):
        self.file, self.found, self.loaded = file, found, loaded
        #: Functions and classes whose bodies are still to be read, and the scopes around them.
        self.inner: list[tuple[ast.FunctionDef | ast.ClassDef, Scope]] = []
        self.within: ast.AST = tree

    def body(self, body: list[ast.stmt], scope: Scope) -> None:
        for node in body:
            self.statement(node, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node, scope)
        elif isinstance(node, ast.FunctionDef):
            self.function(node, scope)
        elif isinstance(node, ast.ClassDef):
            self.a_class(node, scope)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self.assignment(node, scope)
        else:
            # Branches, loops and `with` blocks hold definitions too; which branch runs is not known.
            for name in _assigned([node]):
                scope[name] = Unknown()
            for part in ("body", "orelse", "finalbody"):
                self.body(getattr(node, part, []), scope)
            for handler in getattr(node, "handlers", []):
                self.body(handler.body, scope)

    def execute(self, node: ast.stmt, scope: Scope) -> None:
        exec(compile(ast.Module([node], []), self.file, "exec", dont_inherit=True), scope)

    def imports(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            module = alias.name if isinstance(node, ast.Import) else node.module or ""
            try:
                loaded = self.module(module, getattr(node, "level", 0))
                if isinstance(node, ast.ImportFrom):
                    if alias.name == "*":
                        scope.update({n: v for n, v in vars(loaded).items() if not n.startswith("_")})
                        continue
                    loaded = self.module(f"{module}.{alias.name}") if f"{module}.{alias.name}".startswith(NOT_HARMLESS) else getattr(loaded, alias.name)
                elif alias.asname is None and "." in alias.name:
                    loaded = importlib.import_module(name)
                scope[name] = loaded
            except (ImportError, AttributeError, Unknowable):
                slow = isinstance(node, ast.Import) and module.split(".")[0] in SLOW
                scope[name] = Unknown((module if alias.asname else name) if slow else None)

    def module(self, name: str, level: int = 0) -> ModuleType:
        root = name.split(".")[0]
        if not level and root in HARMLESS:
            if name.startswith(NOT_HARMLESS):
                raise ImportError(name)
            return importlib.import_module(name)
        folder = Path(self.file).resolve().parent
        for _ in range(level - 1):
            folder = folder.parent
        path = folder.joinpath(*name.split(".")).with_suffix(".py") if name else folder / "__init__.py"
        if path not in self.loaded:
            try:
                tree = ast.parse(path.read_text())
            except (OSError, SyntaxError, ValueError):
                raise ImportError(name) from None
            module = self.loaded[path] = Beside(name)
            vars(module).update(of_tree(tree, str(path), self.loaded).scope)
        return self.loaded[path]

    def function(self, node: ast.FunctionDef, scope: Scope) -> None:
        kept = [d for d in node.decorator_list if self.is_constant(d, scope)]
        # Lines stay as they are, so that messages and Python's `inspect` find the text.
        made = ast.copy_location(ast.FunctionDef(node.name, self.arguments(node.args, scope), node.body, kept, None), node)
        made.type_params = getattr(node, "type_params", [])
        kernel = any(self.is_kernel(d, scope) for d in node.decorator_list)
        try:
            self.execute(made, scope)
        except Unknowable:
            scope[node.name] = Unknown()
        except Exception as error:
            scope[node.name] = Unknown()
            if kernel:
                self.found.wrong.append(Wrong(node, str(error)))
        value = dict.get(scope, node.name)
        if kernel and isinstance(value, (JITFunction, Wrapped)):
            constants: dict[str, Any] = {}
            inner = value
            while isinstance(inner, Wrapped):
                if configs := getattr(inner, "configs", None):
                    constants = {**configs[0].kwargs, **constants}
                inner = inner.kernel
            self.found.kernels.append(Defined(inner, constants, scope, self.within))
        elif kernel:
            from . import triton_kernels

            if found := triton_kernels.of(value):
                self.found.kernels.append(Defined(*found, scope, self.within))
        if not kernel:
            self.inner.append((node, scope))

    def nested(self, node: ast.FunctionDef | ast.ClassDef, scope: Scope) -> None:
        """Kernels inside of a function or a class; they see the names around them as globals."""
        if not any(isinstance(n, ast.FunctionDef) and n is not node for n in ast.walk(node)):
            return
        self.within = node
        inner = Scope(scope)
        if isinstance(node, ast.FunctionDef):
            a = node.args
            names = [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])]]
            inner.update({name: Unknown() for name in names})
        self.body(node.body, inner)

    def arguments(self, given: ast.arguments, scope: Scope) -> ast.arguments:
        """Parameters whose defaults are constants; another default is none that can be known."""

        def known(default: ast.expr | None) -> ast.expr | None:
            return default if default is None or self.is_constant(default, scope) else ast.copy_location(ast.Constant(None), default)

        def annotated(p: ast.arg | None) -> ast.arg | None:
            if p is None or p.annotation is None or self.is_constant(p.annotation, scope):
                return p
            return ast.copy_location(ast.arg(p.arg), p)

        return ast.arguments(
            [annotated(p) for p in given.posonlyargs], [annotated(p) for p in given.args], annotated(given.vararg),
            [annotated(p) for p in given.kwonlyargs], [known(d) for d in given.kw_defaults], annotated(given.kwarg),
            [known(d) for d in given.defaults],
        )  # fmt: skip

    def a_class(self, node: ast.ClassDef, scope: Scope) -> None:
        fields = all(
            isinstance(s, (ast.AnnAssign, ast.Assign, ast.Pass))
            or isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in node.body
        )  # fmt: skip
        parts = [*node.bases, *node.decorator_list]
        if fields and not node.keywords and all(self.is_constant(e, scope) for e in [*parts, *_values(node.body)]):
            try:
                return self.execute(node, scope)
            except Exception:
                pass
        scope[node.name] = Unknown()
        self.inner.append((node, scope))

    def assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope) -> None:
        plain = all(isinstance(n, (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context)) for t in _targets(node) for n in ast.walk(t))
        if node.value is not None and plain and self.is_constant(node.value, scope):
            simple = node
            if isinstance(node, ast.AnnAssign):
                simple = ast.copy_location(ast.Assign([node.target], node.value), node)
            try:
                return self.execute(simple, scope)
            except Exception:
                pass
        for name in _assigned([node]):
            scope[name] = Unknown()

    def is_constant(self, node: ast.expr, scope: Scope) -> bool:
        """Returns True if the evaluation of an expression has no side effect."""
        for part in ast.walk(node):
            if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            if isinstance(part, ast.Call) and not self.is_harmless(part.func, scope):
                return False
        return True

    def is_harmless(self, function: ast.expr, scope: Scope) -> bool:
        value = look_up(function, scope)
        if value is None:
            return False
        if isinstance(value, type) and issubclass(value, tuple):
            return True
        if getattr(value, "__module__", None) == "builtins" and getattr(value, "__name__", "") in CALLED_TYPES:
            return True
        return (getattr(value, "__module__", None) or "").split(".")[0] in CALLED or is_arithmetic(value)

    def is_kernel(self, decorator: ast.expr, scope: Scope) -> bool:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        return getattr(look_up(called, scope), "__name__", None) == "jit" and self.is_harmless(called, scope)


def is_arithmetic(value: Any) -> bool:
    """NumPy's numbers, its functions on types, and its elementwise functions."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    if isinstance(value, type):
        return issubclass(value, (numpy.generic, numpy.finfo, numpy.iinfo, numpy.dtype))
    return isinstance(value, numpy.ufunc)


def look_up(node: ast.expr, scope: Scope) -> Any:
    """The value of a name or a chain of attributes; None where it is not known."""
    try:
        if isinstance(node, ast.Name):
            return scope[node.id] if node.id in scope else getattr(builtins, node.id, None)
        if isinstance(node, ast.Attribute):
            owner = look_up(node.value, scope)
            return getattr(owner, node.attr, None) if isinstance(owner, (ModuleType, type)) else None
    except Unknowable:
        pass
    return None


def _targets(node: ast.stmt) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _values(body: list[ast.stmt]) -> list[ast.expr]:
    out = []
    for node in body:
        out += [v for v in (getattr(node, "value", None), getattr(node, "annotation", None)) if v is not None]
    return out


def _assigned(body: list[ast.stmt]) -> list[str]:
    """Names that statements assign, not in functions and not in nested bodies."""
    names = []
    for node in body:
        for part in ("targets", "target", "items", "names"):
            given = getattr(node, part, None) or []
            for one in given if isinstance(given, list) else [given]:
                if isinstance(one, ast.AST):
                    names += [n.id for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return names
