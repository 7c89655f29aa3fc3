"""Writes language.md from the docstrings of the package, and runs their examples.

    python docs/python/generate.py            writes the page
    python docs/python/generate.py --check    fails when an example gives another result, or the page is stale

A docstring opens with what the function computes. `Args:`, `Returns:` and `Source:` may follow, and `Example:` ends it.
An example is the body of a kernel, in the form of a Python session: the line after an expression is what it gives and,
behind a colon, its type. Functions for the host have ordinary Python sessions as examples.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import linecache
import re
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np

import girih
import girih.language
import girih.testing
from girih.frontend.tensor import describe, tensor, unwrap
from girih.language.core import METHODS

# Where the source of examples is while they run.
SOURCES = tempfile.TemporaryDirectory()
PAGE = Path(__file__).with_name("language.md")

HEAD = """# The language of kernels

Made from the docstrings of the package by `python docs/python/generate.py`; [guide.md](guide.md) is the place to start.

All of this is in `girih` and in `girih.language`. A kernel's values are *tiles*: a dtype and a shape of powers of two,
up to 2^24 elements, `()` for a scalar. Operands broadcast as in NumPy. In the examples, which are bodies of kernels,
`floats` is the address of the float32 0 to 15 and `ints` that of 16 zeros of int32; after the colon is the type
of the result.

## Types and operators

The dtypes are `int1` (booleans), `int8`, `int16`, `int32`, `int64`, `uint8` to `uint64`, `float8e4nv`, `float8e5`,
`float16`, `bfloat16`, `float32` and `float64`; `pointer_type(dtype)` is an address of elements. An array argument is
the address of its first element, a Python integer the first of int32, int64 and uint64 that holds it, a Python float a
float32; NumPy's scalars are numbers as well. A parameter annotated with `constexpr`, a global `constexpr(...)` and an
argument None are known when the kernel is compiled; each new value compiles it anew, as does an integer that becomes 1,
or divisible by 16, or ceases to be so.

| operators | operands | result |
|---|---|---|
| `+ - *` | numbers; an address `+` or `-` integers, counted in elements | their common type; integers wrap; booleans count as int32 |
| `/` | numbers | float; integers become float32 first |
| `//`, `%` | integers; `%` also floats | rounded towards zero; the remainder has the sign of the dividend |
| `**` | floats, or any number to a constant 1 to 8 | |
| `& \\| ^ ~ << >>` | integers, booleans | `>>` keeps the sign of a signed integer |
| `< <= == != >= >` | numbers, addresses | int1; a NaN is unequal to all |
| `and`, `or`, `not` | scalars and tiles | Python's result for each element: `n or 5` is n, or 5 where n is 0; a right side that reads memory runs only where Python runs it, if both sides are scalars |
| `x[:, None]`, `x[None, :]`, `x[...]` | a tile | the same elements, with dimensions of extent 1 |
| `x.to(dtype)`, `x.to(dtype, bitcast=True)` | a tile | the values, or the bits, as another dtype |
| `x.T`, `x.shape`, `x.dtype`, `x.numel` | a tile | |

Two dtypes combine as in Triton, whether they are a tile's or a scalar's. A float wins over an integer, an integer over
a boolean, and the wider of two floats or integers over the narrower. Among equally wide ones float16 wins over bfloat16,
and the unsigned integer over the signed. 8-bit floats are computed in float16, and beside a bfloat16 in float32;
quotients and remainders of 16-bit floats are float32; `/` of integers is float32. `//` and `%` of a signed and an
unsigned integer are refused. A Python number takes the dtype of the tile or scalar beside it, unless it is of a higher
kind (bool, integer, float) or does not fit: then 2.5 is a float32, and a whole number the first of int32, uint32, int64
and uint64 that holds it.

METHODS

## Python in a kernel

| | |
|---|---|
| statements | assignment (of tuples and with operators too), `if`, `for` over `range`, tuples and lists, `while`, `break`, `continue`, `return`, `pass`, `assert`, nested `def` |
| expressions | arithmetic, comparisons (chained too), `and`, `or`, `not`, `x if c else y`, calls with names and defaults, tuples, lists, dictionaries, f-strings, `lambda`, comprehensions over constants, `:=` |
| called | the language, `@girih.jit` functions, functions of `math` and the like with constants, `print`, `len`, `min`, `max`, `abs`, `zip`, `enumerate` |
| read from outside | numbers, strings, dtypes, functions, modules, tuples of these; a change of a global compiles the kernel anew |
| not supported | `try`, `with`, `import`, `global`, `nonlocal`, `class`, `del`, `match`, `async`, `yield`, `else` after loops, changing a part of a value in place, recursion without a constant end |

A condition of `if` and `while` is a scalar. Variables that they and loops change keep their dtype and shape; a variable
that has a value on one path only cannot be used afterwards. Everything known when the kernel is compiled is computed
then, by Python's rules.
"""

TAIL = """## Errors

| exception | also a | when |
|---|---|---|
ERRORS

All are `girih.GirihError`, and [cuTile programs](../cutile.md#finding-mistakes) raise the same `KernelError`s. A message begins
with file, line and column and shows the line. The attribute `code` names the kind of mistake, such as `"E0117"` for shapes that do not
match ([the list](../diagnostics.md)); `girih check` prints the same. Tracebacks leave Girih's own frames out.

## Settings

| environment | launch | |
|---|---|---|
| `GIRIH_DEVICE=eval` | `device="eval"` | the reference evaluator in place of native code, `cpu` |
| `GIRIH_CHECK=1` | `check=True` | test every access of native code |
| `GIRIH_THREADS=4` | `threads=4` | worker threads; one for each core unless set |
| `GIRIH_CC=clang` | | the C compiler; by default that of `CC`, or `cc`, or that of the package `ziglang` |
| `GIRIH_CACHE_DIR` | | where compiled kernels and tuned choices are kept |
| `GIRIH_CACHE_SIZE=2G` | | how large that may grow, 1G by default; the least recently used kernels are removed first |
| `GIRIH_AUTOTUNE=0` | | the first configuration; `memory`: times are not stored |
| `GIRIH_TRACEBACK=full` | | keep Girih's own frames in tracebacks |

A setting that is on or off takes `1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off`; anything else is refused.
"""
ERRORS = [girih.CompilationError, girih.UnsupportedError, girih.LaunchError, girih.KernelError, girih.KernelAssertionError,
          girih.OutOfBoundsError, girih.UndefinedValueError, girih.AssumptionError, girih.KernelValueError]  # fmt: skip

# Names in the order in which a reader of a kernel looks for them; every name that the package offers is in one group.
GROUPS: dict[str, str] = {
    "Programs and loops": "program_id num_programs swizzle2d range static_range",
    "Memory": "load store load4 multiple_of max_contiguous max_constancy assume",
    "Making tiles": "arange full zeros full_like zeros_like",
    "Shapes": "reshape view ravel expand_dims squeeze unsqueeze broadcast broadcast_to trans permute cat join split interleave flip",
    "Choices and comparisons": "where maximum minimum clamp logical_and logical_or relu",
    "Arithmetic": "abs fma fdiv div_rn umulhi cdiv floor ceil rint round trunc sqrt sqrt_rn rsqrt exp exp2 expm1 log log1p log2 "
    "pow sin cos tan atan2 sinh cosh tanh sigmoid erf cast add sub mul map_elementwise",
    "Reductions and scans": "sum prod max min argmax argmin xor_sum reduce_or reduce_sum reduce_max reduce softmax histogram cumsum "
    "cumprod associative_scan sort topk",
    "Products": "dot",
    "Gathers": "gather",
    "Blocks of arrays": "make_block_ptr advance make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor",
    "Atomics": "atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_cas",
    "Random numbers": "rand randn randint rand4x randn4x randint4x philox uint_to_uniform_float "
    "pair_uniform_to_normal",
    "Messages": "device_print device_assert static_print static_assert",
    "Memory of a block": "shared shared_store shared_load sync debug_barrier",
}
NOTES = {"Atomics": girih.language.atomic.__doc__, "Memory of a block": girih.language.shared.__doc__,
         "Random numbers": girih.language.random.__doc__}  # fmt: skip

HOST = {
    "Kernels": [girih.jit, girih.JITFunction.run, girih.JITFunction.warmup, girih.JITFunction.tile_ir, girih.JITFunction.ir,
                girih.JITFunction.source, girih.JITFunction.explain, girih.JITFunction.bytecode],
    "Tuning": [girih.autotune, girih.Config, girih.heuristics],
    "Measuring": [girih.testing.do_bench, girih.testing.perf_report, girih.testing.Benchmark, girih.testing.Report.run],
    "On the host": [girih.next_power_of_2, girih.constexpr_function],
}  # fmt: skip
# Functions for both sides: shown with the host's, with examples of kernels.
BOTH = {"next_power_of_2", "constexpr_function"}
# Names that are there to say that something is not.
REFUSED = {"inline_asm_elementwise", "dot_scaled"}


def functions() -> list[str]:
    """The language's functions, in the order they are defined."""
    offered = {n: getattr(girih.language, n) for n in girih.language.__all__}
    return [
        n for n, f in offered.items()
        if getattr(f, "__girih_builtin__", False) and not inspect.isclass(f) and n not in REFUSED | {"constexpr_function"}
    ]  # fmt: skip


def grouped() -> dict[str, list[str]]:
    known = set(functions())
    groups = {title: [n for n in names.split() if n in known] for title, names in GROUPS.items()}
    rest = known - {n for names in groups.values() for n in names} - BOTH
    if rest:
        raise SystemExit(f"no group of {Path(__file__).name} has {', '.join(sorted(rest))}")
    return groups


# ---- examples


def steps(function) -> list[doctest.Example]:
    """The examples of a docstring."""
    return doctest.DocTestParser().get_examples(inspect.getdoc(function) or "")


def show(number, value):
    """In a kernel: prints a value after the number of its example."""
    number, value = unwrap(number), unwrap(value)
    for v in value if isinstance(value, tuple) else (value,):
        v = unwrap(v)
        if isinstance(v, tensor):
            girih.device_print(f"@{number} {v.describe()};", v)
        elif v is not None:
            girih.device_print(f"@{number} ; {describe(v)}")


show.__girih_builtin__ = True


def results(name: str) -> list[tuple[str, str, str]]:
    """Runs a function's examples as one kernel on the evaluator: each with its source, what is said, and what it gives."""
    examples = steps(getattr(girih.language, name))
    body = []
    for i, e in enumerate(examples):
        try:
            compile(e.source, name, "eval")
            body.append(f"show({i}, {e.source.strip()})")
        except SyntaxError:
            body.append(e.source.rstrip())
    code = "def example(floats, ints):\n" + textwrap.indent("\n".join(body), "    ") + "\n"
    given = [""] * len(examples)
    kernel = girih.jit(execute(name, code, {"girih": girih, "show": show})["example"])
    printed = capture(lambda: kernel[(1,)](np.arange(16, dtype=np.float32), np.zeros(16, np.int32), device="eval"))
    at = 0
    for line in printed.splitlines(keepends=True):
        found = re.match(r"@(\d+) (.*?);(?: (.*))?$", line)
        if found:
            at, kind, value = int(found[1]), found[2], (found[3] or "").strip()
            line = f"{value} : {kind}\n" if kind else f"{value}\n"
        given[at] += line
    return [(e.source, e.want, g) for e, g in zip(examples, given)]


def host_names() -> dict:
    """The names that the examples for the host use: two vectors of a thousand elements and the kernel that adds
    them."""
    names = {"girih": girih, "np": np}
    (example,) = (e for e in steps(girih.jit) if e.source.startswith("@"))
    execute("host", example.source, names)
    n = 1000
    return names | {"n": n, "x": np.arange(n, dtype=np.float32), "y": np.ones(n, np.float32), "out": np.zeros(n, np.float32)}


def host_failures() -> str:
    """The differences between the results of the examples for the host and their docstrings."""
    names, said = host_names(), []
    for function in (m for members in HOST.values() for m in members if m.__name__ not in BOTH):
        name = host_name(function)
        examples = steps(function)
        if not examples:
            said.append(f"{name} has no example\n")
        if function is girih.jit:
            examples = [e for e in examples if not e.source.startswith("@")]
        test = doctest.DocTest(examples, dict(names), name, None, None, None)
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return "".join(said)


def execute(name: str, code: str, names: dict) -> dict:
    """Runs code from a file, as kernels need one; gives the names it made."""
    path = Path(SOURCES.name) / f"{name}.py"
    path.write_text(code)
    linecache.checkcache(str(path))
    exec(compile(code, str(path), "exec"), names)
    return names


def capture(action) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        action()
    return out.getvalue()


# ---- the page


def markdown(doc: str) -> str:
    """A docstring as Markdown: sections become lists and blocks."""
    out: list[str] = []
    section = ""
    for paragraph in re.split(r"\n(?=(?:Args|Returns|Source|Example|Attributes):)|\n\n", doc):
        head = re.match(r"(Args|Attributes|Example):\n", paragraph)
        if head:
            section = head[1]
            text = textwrap.dedent(paragraph[head.end() :]).strip("\n")
            if section == "Example":
                out.append(f"```pycon\n{text}\n```")
            else:
                items = [" ".join(i.split()) for i in re.split(r"\n(?=\S)", text)]
                out.append("\n".join("* " + re.sub(r"^([\w, ]+):", code, i) for i in items))
        else:
            out.append(paragraph.strip())
    return "\n\n".join(p for p in out if p)


def code(found: re.Match) -> str:
    return ", ".join(f"`{n.strip()}`" for n in found[1].split(",")) + ":"


def entry(name: str, function) -> str:
    signature = re.sub(r": '[^']*'|: [A-Z]\w*(\[.*?\])?(?=[,)=]| =)| -> .*", "", str(inspect.signature(function)))
    signature = signature.replace("(self, ", "(").replace("(self)", "()").replace(" = ", "=")
    return f"### {name}\n\n`{name}{signature}`\n\n{markdown(inspect.getdoc(function))}\n"


def host_name(function) -> str:
    name = function.__qualname__.replace("JITFunction.", "kernel.").replace("Report.", "report.")
    return f"testing.{name}" if function.__module__ == "girih.testing" and "." not in name else name


def page() -> str:
    methods = ", ".join(f"`{n}`" for n in sorted({*METHODS, "permute", "reshape", "trans"}))
    out = [HEAD.replace("METHODS", f"These functions are methods of tiles too, as in `x.sum(axis=0)`: {methods}.")]
    for title, names in grouped().items():
        out.append(f"## {title}\n")
        if title in NOTES:
            out.append(inspect.cleandoc(NOTES[title]) + "\n")
        out += [entry(n, getattr(girih.language, n)) for n in names]
    for title, members in HOST.items():
        out.append(f"## {title}\n")
        out += [entry(host_name(m), m) for m in members]
    rows = []
    for e in ERRORS:
        also = ", ".join(f"`{b.__name__}`" for b in e.__bases__ if b is not girih.GirihError)
        rows.append(f"| `{e.__name__}` | {also} | {inspect.getdoc(e).splitlines()[0]} |")
    out.append(TAIL.replace("ERRORS", "\n".join(rows)))
    return "\n".join(out)


def main() -> None:
    if "--check" not in sys.argv:
        PAGE.write_text(page())
        return
    wrong = [f"{n}: {s.strip()} gives\n{g}" for n in functions() for s, want, g in results(n) if want != g]
    wrong += [host_failures()] if host_failures() else []
    if PAGE.read_text() != page():
        wrong.append(f"{PAGE.name} is stale: python {sys.argv[0]}")
    sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
