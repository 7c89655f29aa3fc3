"""Making an unchanged ``cuda.tile`` run on Girih.

    install()        # before the program imports cuda.tile, torch or cupy

Four places of cuda-tile are changed, each when its module is imported; a version of cuda-tile that has moved one of
them is refused with its number, not run half-way:

* ``cuda.tile.launch`` takes arrays of main memory, and raises Girih's exceptions.
* ``cuda.tile._compile.compile_tile`` hands the bytecode over instead of starting a compiler.
* ``cuda.tile._compile``'s questions about the compiler (its version, the bytecode it reads, its disassembler) are
  answered without looking for one.
* ``cuda.tile.tune._tune``'s runs are as ``launch`` is, and a time limit ends a run instead of a process.
"""

import functools
import inspect

from girih import __version__, _girih
from girih.cutile import arrays, driver, standin, torch_cpu
from girih.cutile.hooks import when_imported

# The newest bytecode that Girih reads, among those cuTile knows.
_BYTECODE = ("13.4", "13.3", "13.2", "13.1")

_installed = False


class UnsupportedVersion(ImportError):
    """This cuda-tile is not laid out as the ones Girih knows."""


def install(device=None, check=None, threads=None):
    """Makes this process run cuTile programs on Girih.

    ``device`` is ``"cpu"``, ``"eval"`` or ``"sim"``; ``check`` tests every memory access; ``threads`` is the number of
    worker threads. What is not given follows ``GIRIH_DEVICE``, ``GIRIH_CHECK`` and ``GIRIH_THREADS``. Options may be changed by
    calling it again.
    """
    global _installed
    driver.configure(device=device, check=check, threads=threads)
    if _installed:
        return
    driver.load()
    standin.offer()
    when_imported("cuda.tile", _host_launch)
    when_imported("cuda.tile._compile", _host_compiler)
    when_imported("cuda.tile.tune._tune", _host_tuner)
    when_imported("torch", torch_cpu.redirect)
    _installed = True


def _version():
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cuda-tile")
    except PackageNotFoundError:
        return "of an unknown version"


def _part(module, name):
    """An attribute that this module changes or builds on."""
    try:
        return getattr(module, name)
    except AttributeError:
        raise _moved(f"{module.__name__}.{name}") from None


def _moved(what):
    return UnsupportedVersion(
        f"girih {__version__} does not support cuda-tile {_version()}: {what} has changed since 1.7.0; "
        "install cuda-tile 1.7.0 or a newer girih"
    )


def _takes(function, *names):
    """Refuses a function that lacks one of the parameters."""
    parameters = inspect.signature(function).parameters
    for name in names:
        if name not in parameters:
            raise _moved(f"{function.__module__}.{function.__qualname__}({name}=)")


def _host_launch(module):
    # cuTile's launch(stream, grid, kernel, kernel_args) has no named parameters there.
    module.launch = _girih.Launcher(_part(module, "launch"), 3, arrays.classify, driver.explain)


def _host_compiler(module):
    versions = _part(module, "BytecodeVersion")
    compile_tile = _part(module, "compile_tile")
    _takes(compile_tile, "sm_arch", "compiler_options", "bytecode_version", "return_bytecode", "return_cubin")
    for name in ("_get_max_supported_bytecode_version", "_get_compiler_version_string", "_bytecode_to_mlir_text"):
        _part(module, name)
    known = {v.as_string(): v for v in versions}
    newest = next((known[name] for name in _BYTECODE if name in known), None)
    if newest is None:
        raise _moved(f"{module.__name__}.BytecodeVersion")

    @functools.wraps(compile_tile)
    def compile_for_girih(*args, return_bytecode=False, return_cubin=True, bytecode_version=None, **options):
        result = compile_tile(
            *args,
            return_bytecode=return_bytecode or return_cubin,
            return_cubin=False,
            bytecode_version=bytecode_version or newest,
            **options,
        )
        if return_cubin:
            result.cubin = driver.container(result.bytecode, _names(args))
            if not return_bytecode:
                result.bytecode = None
        return result

    module.compile_tile = compile_for_girih
    module._get_max_supported_bytecode_version = lambda *args, **options: newest
    module._get_compiler_version_string = lambda: f"girih {__version__}"
    module._bytecode_to_mlir_text = _text


def _names(compiled):
    """The names of a kernel's parameters, of what cuTile compiles; none where they cannot be told."""
    code = getattr(getattr(compiled[0] if compiled else None, "pyfunc", None), "__code__", None)
    return code.co_varnames[: code.co_argcount] if code is not None else ()


def _text(bytecode, **_options):
    return _girih.disassemble(bytes(bytecode))


def _host_tuner(module):
    benchmark = _girih.Launcher(_part(module, "_benchmark"), 3, arrays.classify, driver.explain)
    _part(module, "benchmark_with_timeout")

    def with_timeout(stream, grid, kernel, tuples, seconds, flush_l2=True):
        with driver.time_limit(seconds, f"the kernel ran longer than the time limit of {seconds} s"):
            return benchmark(stream, grid, kernel, tuples, flush_l2), None

    module._benchmark = benchmark
    module.benchmark_with_timeout = with_timeout
