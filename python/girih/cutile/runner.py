"""``python -m girih.cutile`` and ``python -m girih.triton``: run a script, a module or a line of code as ``python`` would, with
Girih in place. A `Product` says how they differ.
"""

import argparse
import io
import os
import runpy
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass

from girih import __version__, _girih


@dataclass(frozen=True)
class Product:
    """The kind of programs that are run.

    Attributes:
        module: what is run with ``-m``.
        package: what the programs import, of the `distribution`.
        programs: what they are called.
        install: puts Girih in place.
        children: the variable that asks for the processes that a program starts to be redirected, too; none where they cannot be.
        dumps: whether the bytecode of kernels can be written out.
    """

    module: str
    package: str
    distribution: str
    programs: str
    install: Callable[..., None]
    children: str = ""
    dumps: bool = False


USAGE = """\
usage: python -m {module} [options] SCRIPT.py ARGS...
       python -m {module} [options] -m MODULE ARGS...
       python -m {module} [options] -c CODE ARGS...

Runs {programs} on the processor.

options:
  --device cpu|eval|sim native code (the default); the reference evaluator: slow, exact, and
                        strict about what the language leaves undefined; or the simulator of a
                        GPU, which finds races between threads [env: GIRIH_DEVICE]
  --target NAME         the GPU that is simulated: sm_80, sm_90a (the default), sm_100a or sm_120
                        [env: GIRIH_TARGET]
  --check               test every memory access of a kernel [env: GIRIH_CHECK=1]
{children}  --threads N           worker threads; one per core by default [env: GIRIH_THREADS]
{dumps}  --version             show the versions of girih, {distribution} and Python
  -h, --help            show this help

GIRIH_CC (or CC) names the C compiler, GIRIH_CACHE_DIR the folder of compiled kernels and GIRIH_CACHE_SIZE how large it
may grow, 1G by default.
"""

CHILDREN = """\
  --children            redirect the Python processes that the program starts, too
                        [env: {children}=1]
"""

DUMPS = """\
  --dump-bytecode DIR   write the bytecode of every kernel that is compiled
  --dump-tile DIR       write it as text
"""


def _usage(product):
    return USAGE.format(
        module=product.module,
        programs=product.programs,
        distribution=product.distribution,
        children=CHILDREN.format(children=product.children) if product.children else "",
        dumps=DUMPS if product.dumps else "",
    )


_TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120")


class _Usage(Exception):
    pass


def _options(argv, product):
    """The options before the program, how the program is given, and the program with its arguments."""
    chosen = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.partition("=")
        if word in ("-h", "--help"):
            return chosen | {"help": True}, "", []
        if word == "--version":
            return chosen | {"version": True}, "", []
        if word == "--check" or word == "--children" and product.children:
            chosen[word[2:]] = True
        elif name in ("--device", "--target", "--threads") or product.dumps and name in ("--dump-bytecode", "--dump-tile"):
            if not has_value:
                if not rest:
                    raise _Usage(f"{name} needs a value")
                value = rest.pop(0)
            chosen[name[2:].replace("-", "_")] = value
        elif word[:2] in ("-m", "-c") and not word.startswith("--"):
            given = word[2:] or (rest.pop(0) if rest else None)
            if given is None:
                raise _Usage(f"{word[:2]} needs {'a module' if word[:2] == '-m' else 'code'}")
            return chosen, word[:2], [given, *rest]
        elif word == "--":
            break
        elif word.startswith("-") and word != "-":
            raise _Usage(f"unknown option {word}")
        else:
            rest.insert(0, word)
            break
    if not rest:
        raise _Usage("expected a program to run")
    return chosen, "", rest


def _environment(chosen):
    """Options of the library and of cuTile, for this process and for those it starts."""
    if "device" in chosen:
        if chosen["device"] not in ("cpu", "eval", "sim"):
            raise _Usage(f"--device: unknown device `{chosen['device']}`; the devices are cpu, eval and sim")
        os.environ["GIRIH_DEVICE"] = chosen["device"]
    if "target" in chosen:
        if chosen["target"] not in _TARGETS:
            raise _Usage(f"--target: unknown target `{chosen['target']}`; the simulated ones are {', '.join(_TARGETS)}")
        os.environ["GIRIH_TARGET"] = chosen["target"]
    if "threads" in chosen:
        text = chosen["threads"]
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1024):
            raise _Usage(f"--threads: expected a number of threads from 1 to 1024, found `{text}`")
        os.environ["GIRIH_THREADS"] = text
    if chosen.get("check"):
        os.environ["GIRIH_CHECK"] = "1"
    if "dump_bytecode" in chosen:
        os.environ["CUDA_TILE_DUMP_BYTECODE"] = chosen["dump_bytecode"]
    if "dump_tile" in chosen:
        os.environ["CUDA_TILE_DUMP_TILEIR"] = chosen["dump_tile"]


def _has(package):
    import importlib.util

    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False


def main(argv, product):
    global _module
    _module = product.module
    try:
        chosen, form, program = _options(argv, product)
        if chosen.get("help"):
            return _say(_usage(product))
        _environment(chosen)
    except _Usage as error:
        print(f"{_module}: {_girih.shorten(str(error))}\n{_usage(product).split(chr(10) * 2)[0]}", file=sys.stderr)
        return 2
    if chosen.get("version"):
        return _say_version(product)

    sys.argv = program
    # Python itself puts the script's folder, or the current one, first on the path.
    if form == "":
        sys.argv[0] = program[0]
        sys.path[0] = os.path.dirname(os.path.realpath(program[0]))
    elif form == "-c":
        sys.path[0] = ""
    else:
        sys.path[0] = os.getcwd()

    if not _has(product.package):
        print(
            f"{_module}: this Python has no {product.distribution}, the package that {product.programs} import; "
            f"install it with\n    {sys.executable} -m pip install {product.distribution}",
            file=sys.stderr,
        )
        return 2
    try:
        product.install(**({"children": chosen.get("children", False)} if product.children else {}))
    except (ImportError, FileNotFoundError, ValueError) as error:
        print(str(error), file=sys.stderr)
        return 2
    return _run(form, program)


def _say_version(product):
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(product.distribution)
    except PackageNotFoundError:
        found = "not installed"
    return _say(f"girih {__version__}, {product.distribution} {found}, Python {sys.version.split()[0]}\n")


def _say(text):
    """Writes to standard output; gives the exit code."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
        return 0
    except OSError as error:
        # Python would try to write the rest of the buffer at exit, and complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 141
        print(f"{_module}: standard output cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _run(form, program):
    """Runs the program as ``__main__``; its exceptions are shown without the frames of this package."""
    try:
        if form == "-m":
            sys.argv = [program[0], *program[1:]]
            runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        elif form == "-c":
            sys.argv = ["-c", *program[1:]]
            _execute(program[0], "<string>", None)
        elif os.path.isdir(program[0]) or program[0].endswith((".zip", ".pyz")):
            runpy.run_path(program[0], run_name="__main__")
        else:
            return _run_file(program[0])
    except SystemExit:
        raise
    except BaseException as error:
        return _show(error)
    return 0


def _run_file(path):
    try:
        with io.open_code(os.path.abspath(path)) as file:
            code = file.read()
    except OSError as error:
        print(f"{_module}: can't open file '{path}': {error.strerror}", file=sys.stderr)
        return 2
    _execute(code, path, path)
    return 0


def _execute(code, name, path):
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if path is not None:
        main.__file__ = os.path.abspath(path)
    main.__spec__ = None
    # The module this replaces holds the functions that are running.
    _kept.append(sys.modules["__main__"])
    sys.modules["__main__"] = main
    exec(compile(code, name, "exec", dont_inherit=True), main.__dict__)


_kept = []
# The beginning of messages.
_module = "girih"


def _show(error):
    """Prints an exception that nobody caught, as Python does; gives the exit code."""
    trace = error.__traceback__ = _without_ours(error.__traceback__)
    try:
        sys.excepthook(type(error), error, trace)
    finally:
        with_flush = getattr(sys.stdout, "flush", None)
        if with_flush is not None:
            with_flush()
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _without_ours(trace):
    """A traceback less the frames of this package."""
    kept = []
    while trace is not None:
        if not _ours(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    for frame, following in zip(kept, [*kept[1:], None]):
        frame.tb_next = following
    return kept[0] if kept else None


def _ours(filename):
    return filename == runpy.__file__ or filename == "<frozen runpy>" or os.path.dirname(filename) == _HERE


_HERE = os.path.dirname(os.path.abspath(__file__))
