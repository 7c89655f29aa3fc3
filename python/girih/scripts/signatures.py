"""The text of one kernel of a script, for arguments of types that are written out: what ``girih build script.py:kernel`` asks.

    python -m girih.scripts.signatures add.py add "*fp32:16, *fp32:16, *fp32:16, i32, BLOCK=1024"

In: the script, which is imported, the kernel's name, and a signature. Out: on standard output, TTIR of a kernel of Triton's, Tile IR of
``@girih.jit``. A signature has the parameters in order, as Triton's own compiler ahead of time has them: `*fp32` a pointer, `i32` an
integer, a number or a quoted text a constant. `:16` promises that 16 divides an address or a number, `:1` that a number is 1. A
parameter may be named, ``BLOCK=1024``; after one, all are.
"""

import ast
import importlib.util
import os
import re
import sys
from dataclasses import dataclass
from typing import Any

TYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5",
    "i1": "int1", **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)}, **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}  # fmt: skip


class Wrong(Exception):
    """The requested kernel cannot be compiled; the text says why."""


@dataclass
class Given:
    """The description of one parameter: a type and a divisor, or a constant."""

    type: str | None = None
    divisor: int = 1
    constant: Any = None


def parse(text: str, names: list[str], defaults: dict[str, Any]) -> dict[str, Given]:
    """The types and constants that a signature gives to each parameter."""
    found: dict[str, Given] = {}
    parts = [part.strip() for part in _split(text)] if text.strip() else []
    for at, part in enumerate(parts):
        name, named, value = part.partition("=")
        name = name.strip()
        if not named:
            if at >= len(names) or any("=" in before for before in parts[:at]):
                raise Wrong(f"`{part}` names no parameter; the parameters are {', '.join(names)}")
            name, value = names[at], part
        if name not in names:
            raise Wrong(f"the kernel has no parameter `{name}`; the parameters are {', '.join(names)}")
        if name in found:
            raise Wrong(f"the parameter `{name}` is given twice")
        found[name] = one(value.strip())
    for name, value in defaults.items():
        found.setdefault(name, Given(constant=value))
    if missing := [name for name in names if name not in found]:
        raise Wrong(f"the signature says nothing of {', '.join(f'`{name}`' for name in missing)}; it has the parameters {', '.join(names)}")
    return {name: found[name] for name in names}


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets and no quotes."""
    return re.findall(r"""(?:[^,("'\[]|\([^)]*\)|\[[^\]]*\]|"[^"]*"|'[^']*')+""", text)


def one(text: str) -> Given:
    kind, hinted, hint = text.partition(":")
    kind = kind.strip()
    if kind.lstrip("*") in TYPES and kind.count("*") <= 1:
        if hinted and hint.strip() not in ("1", "16"):
            raise Wrong(f"`{text}`: expected `:16` or `:1` after a type, found `:{hint.strip()}`")
        if hinted and hint.strip() == "1":
            if kind[0] not in "iu":
                raise Wrong(f"`{text}`: only an integer can be 1")
            return Given(constant=1)
        return Given(kind, 16 if hinted else 1)
    try:
        return Given(constant=ast.literal_eval(text))
    except (ValueError, SyntaxError):
        types = ", ".join(TYPES)
        raise Wrong(f"`{text}` is neither a type nor a constant; the types are {types}, and pointers to them such as *fp32") from None


def kernel_of(path: str, name: str) -> Any:
    """A kernel of a script, which is imported."""
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise Wrong(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise Wrong(f"{path} has no kernel `{name}`; it has {', '.join(sorted(_kernels(module))) or 'none'}")
        found = getattr(found, part)
    kernel = innermost(found)
    if kernel is None:
        raise Wrong(f"`{name}` of {path} is not a kernel; the kernels are {', '.join(sorted(_kernels(module))) or 'none'}")
    return kernel


def innermost(value: Any) -> Any:
    """The kernel under what chooses its constants; None for anything else."""
    from ..autotune import Wrapped
    from ..kernel import JITFunction

    if isinstance(value, Wrapped):
        return value.innermost
    if isinstance(value, JITFunction):
        return value
    runtime = sys.modules.get("triton.runtime.jit")
    while runtime is not None and isinstance(value, runtime.KernelInterface):
        if isinstance(value, runtime.JITFunction):
            return value
        value = getattr(value, "fn", None)
    return None


def _kernels(module: Any) -> list[str]:
    return [name for name, value in vars(module).items() if innermost(value) is not None]


def text_of(kernel: Any, signature: str) -> str:
    """The text of a kernel for a signature."""
    import inspect

    parameters = inspect.signature(kernel.fn).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    given = parse(signature, list(parameters), defaults)
    if hasattr(kernel, "_trace"):
        return kernel._trace({name: _look(g) for name, g in given.items()}).text()
    from girih.triton.ahead import ttir

    return ttir(kernel, given)


def _look(given: Given) -> tuple:
    """How an argument of these looks to ``@girih.jit``."""
    if given.type is None:
        return ("constant", given.constant)
    name = TYPES[given.type.lstrip("*")]
    if given.type.startswith("*"):
        return ("ptr", name, given.divisor)
    if name == "int1":
        return ("bool",)
    if "int" in name:
        return ("int", int(re.sub(r"\D", "", name)), not name.startswith("u"), given.divisor)
    if name != "float32":
        raise Wrong(f"a number is passed to `@girih.jit` as fp32, not as {given.type}")
    return ("float",)


def main(argv: list[str]) -> int:
    if len(argv) != 3:
        print("usage: python -m girih.scripts.signatures SCRIPT.py KERNEL SIGNATURE", file=sys.stderr)
        return 2
    # The script may print, too: standard output is for the kernel only.
    answer, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)
    path, name, signature = argv
    try:
        text = text_of(kernel_of(path, name), signature)
    except Wrong as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 1
    except Exception as error:
        print(f"error: {path}:{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    with answer:
        answer.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
