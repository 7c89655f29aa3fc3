"""Kernels of Triton's in a script that is not run: compiled by Triton's front end as far as TTIR, and by Girih from there."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from ..frontend.errors import CompilationError, GirihError, Place
from ..language.messages import STATIC_ASSERTION
from .definitions import Unknowable, Unknown
from .signatures import TYPES, Given

# Girih's names of element types, as Triton's signatures have them.
SHORT = {name: short for short, name in TYPES.items()}


class TritonKernel:
    """One of them, as `check` takes kernels."""

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self.fn = kernel.fn
        self.params = list(kernel.arg_names)
        self.__name__ = kernel.fn.__name__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TritonKernel) and other.kernel is self.kernel

    def __hash__(self) -> int:
        return id(self.kernel)

    def attempt(self, arguments: dict[str, tuple]) -> Exception | None:
        """The error of the kernel for arguments that look so, or None."""
        from girih.triton.ahead import ttir

        errors = sys.modules["triton.errors"]
        self._known()
        try:
            ttir(self.kernel, {name: given(look) for name, look in arguments.items()})
        except GirihError as error:
            # Triton's front end has read all of the kernel.
            error.whole = True
            return error
        except errors.TritonError as error:
            return self._error(error)
        return None

    def _known(self) -> None:
        """Refuses a kernel that reads a global which only a run of the script has."""
        for name in self.fn.__code__.co_names:
            if isinstance(dict.get(self.fn.__globals__, name), Unknown):
                raise Unknowable(name)

    def _error(self, error: Any) -> CompilationError:
        """Triton's error as one with a place; those of functions that it was called through are its parents."""
        place, reason, function = None, str(error), self.kernel
        while True:
            node = getattr(error, "node", None)
            if hasattr(node, "lineno") and function is not None:
                first, indent = _definition(function.fn)
                line = first - 1 + node.lineno
                end = (node.end_col_offset or 0) if node.end_lineno == node.lineno else 0
                file = function.fn.__code__.co_filename
                place = Place(file, line, node.col_offset + indent, end + indent if end else 0, function.fn.__name__, place)
            reason = getattr(error, "error_message", None) or reason
            if type(error).__name__ == "CompileTimeAssertionFailure":
                reason = f"{STATIC_ASSERTION}: {reason}"
            inner = error.__cause__
            if inner is None or not hasattr(inner, "node"):
                break
            error, function = inner, self._function(getattr(inner, "src", None))
        return CompilationError(reason, place)

    def _function(self, text: str | None) -> Any:
        """The function of this source text, among those that the script sees."""
        runtime = sys.modules["triton.runtime.jit"]
        modules = [v for v in self.fn.__globals__.values() if isinstance(v, type(sys))]
        for scope in [self.fn.__globals__, *map(vars, modules)]:
            for value in list(scope.values()):
                if isinstance(value, runtime.JITFunction) and value.src == text:
                    return value
        return None


def _definition(fn: Any) -> tuple[int, int]:
    """The line of a function's `def` behind its decorators, from which Triton counts, and its indentation."""
    lines, first = inspect.getsourcelines(fn)
    for at, line in enumerate(lines):
        if (text := line.lstrip()).startswith("def "):
            return first + at, len(line) - len(text)
    return first, 0


def given(look: tuple) -> Given:
    """A look of `arguments` in the words of a signature."""
    kind, *rest = look
    if kind == "ptr":
        return Given(f"*{SHORT[rest[0]]}", rest[1])
    if kind == "int":
        return Given(f"{'i' if rest[1] else 'u'}{rest[0]}", rest[2])
    if kind in ("float", "bool"):
        return Given("fp32" if kind == "float" else "i1")
    value = rest[0] if rest else None
    name = getattr(value, "name", None)
    # An element type of Girih's, which is tried where nothing says what a constant is.
    if type(value).__module__.startswith("girih.") and name:
        import triton.language as tl

        value = getattr(tl, name, value)
    return Given(constant=value)


def of(value: Any) -> tuple[TritonKernel, dict[str, Any]] | None:
    """The kernel under what Triton's decorators make, and the constants of the first configuration."""
    runtime = sys.modules.get("triton.runtime.jit")
    if runtime is None or not isinstance(value, runtime.KernelInterface):
        return None
    constants: dict[str, Any] = {}
    while not isinstance(value, runtime.JITFunction):
        if configs := getattr(value, "configs", None):
            constants = {**configs[0].kwargs, **constants}
        value = getattr(value, "fn", None)
        if value is None:
            return None
    return TritonKernel(value), constants
