"""Making an unchanged ``cuda.tile`` run on Girih.

    install()        # before the program imports cuda.tile, torch or cupy

Three places of cuda-tile are changed, each when its module is imported; a version of cuda-tile that has moved one of
them is refused with its number, not run half-way:

* What ``cuda.tile._cext`` offers that takes a kernel's arguments (``launch``, ``_benchmark`` and the parameters' constraints)
  takes arrays of main memory, and raises Girih's exceptions.
* ``cuda.tile._compile.compile_tile`` hands the bytecode over instead of starting a compiler, and that module's questions about
  the compiler (where it is, its version, the bytecode it reads, its disassembler) are answered from this package.
* ``cuda.tile.tune._tune_utils``' time limit ends a run in this process instead of another process.
"""

import functools
import inspect
import os
import threading
import time

from girih import __version__, _girih, _library
from girih.cutile import arrays, driver, standin, torch_cpu
from girih.cutile.children import SITE, hand_down, truth
from girih.cutile.hooks import when_imported

# The newest bytecode that Girih reads, among those cuTile knows.
_BYTECODE = ("13.4", "13.3", "13.2", "13.1")

# Asks for Girih in every Python that starts.
CHILDREN = "GIRIH_CUTILE"

__all__ = ["SITE", "UnsupportedVersion", "install", "wanted"]

_installed = False


class UnsupportedVersion(ImportError):
    """This cuda-tile is not laid out as the ones Girih knows."""


def wanted():
    """Returns True if GIRIH_CUTILE asks for Girih in every Python that starts."""
    return truth(CHILDREN)


def install(device=None, check=None, threads=None, children=False):
    """Makes this process run cuTile programs on Girih.

    ``device`` is ``"cpu"``, ``"eval"`` or ``"sim"``; ``check`` tests every memory access; ``threads`` is the number of
    worker threads. ``children`` does the same in the Python processes that this one starts, through GIRIH_CUTILE=1 and a folder on
    PYTHONPATH in this process's environment; GIRIH_CUTILE=1 from outside asks for it too. An option that is not given follows ``GIRIH_DEVICE``, ``GIRIH_CHECK`` and ``GIRIH_THREADS``. Options may be changed by
    calling it again.
    """
    global _installed
    driver.configure(device=device, check=check, threads=threads)
    if children or wanted():
        hand_down(CHILDREN, device, check, threads)
    if _installed:
        return
    driver.load()
    standin.offer()
    when_imported("cuda.tile._cext", _host_arguments)
    when_imported("cuda.tile._compile", _host_compiler)
    when_imported("cuda.tile.tune._tune_utils", _host_tuner)
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
        "install cuda-tile 1.6.0 or 1.7.0, or a newer girih"
    )


def _takes(function, *names):
    """Refuses a function that lacks one of the parameters."""
    parameters = inspect.signature(function).parameters
    for name in names:
        if name not in parameters:
            raise _moved(f"{function.__module__}.{function.__qualname__}({name}=)")


# Which positional parameter holds a kernel's arguments: they have no names.
_TAKE_ARGUMENTS = {"launch": 3, "_benchmark": 3, "get_parameter_constraints_from_pyargs": 1}


def _host_arguments(module):
    for name, position in _TAKE_ARGUMENTS.items():
        launcher = _girih.Launcher(_part(module, name), position, arrays.classify, driver.explain, driver.found, driver.warn)
        setattr(module, name, launcher)


def _host_compiler(module):
    versions = _part(module, "BytecodeVersion")
    compile_tile = _part(module, "compile_tile")
    _takes(compile_tile, "sm_arch", "compiler_options", "bytecode_version", "return_bytecode", "return_cubin")
    for name in ("_get_max_supported_bytecode_version", "_get_compiler_version_string", "_find_compiler_bin"):
        _part(module, name)
    binary = _part(module, "_CompilerBinary")
    _takes(binary, "path", "bin_path", "ld_path", "pass_cuda_home_var")
    known = {v.as_string(): v for v in versions}
    newest = next((known[name] for name in _BYTECODE if name in known), None)
    if newest is None:
        raise _moved(f"{module.__name__}.BytecodeVersion")

    theirs = _part(module, "compile_cubin")
    failed = threading.local()

    @functools.wraps(theirs)
    def compile_cubin(*args, **options):
        if getattr(failed, "error", None) is not None:
            raise failed.error
        return theirs(*args, **options)

    @functools.wraps(compile_tile)
    def compile_for_girih(*args, return_bytecode=False, return_cubin=True, **options):
        if return_cubin and module.compile_cubin is not compile_cubin:
            # A program has put a compiler of its own in its place.
            return compile_tile(*args, return_bytecode=return_bytecode, **options)
        result = compile_tile(*args, return_bytecode=return_bytecode or return_cubin, return_cubin=False, **options)
        if return_cubin:
            try:
                result.cubin = driver.container(result.bytecode, _names(args))
            except _part(module, "TileCompilerError") as error:
                _dump(error, *args, **options)
                raise
            if not return_bytecode:
                result.bytecode = None
        return result

    def _dump(error, *args, **options):
        """Lets cuTile write what it writes of a failure of its compiler, where the program asks for that."""
        given = inspect.signature(compile_tile).bind(*args, **options).arguments
        if not given.get("context", module.default_tile_context).config.enable_crash_dump:
            return
        failed.error = error
        try:
            compile_tile(*args, **options)
        except type(error):
            pass
        finally:
            failed.error = None

    module.compile_cubin = compile_cubin
    module.compile_tile = compile_for_girih
    module._get_max_supported_bytecode_version = lambda *args, **options: newest
    module._get_compiler_version_string = lambda: f"girih {__version__}"
    # Who asks where the compiler is gets Girih's, which takes the same options.
    module._find_compiler_bin = functools.cache(
        lambda: binary(
            path=str(_library.find("tileiras")),
            bin_path=os.environ.get("PATH", ""),
            ld_path=os.environ.get("LD_LIBRARY_PATH", ""),
            pass_cuda_home_var=False,
        )
    )
    # Not in 1.6.
    module._bytecode_to_mlir_text = _text


def _names(compiled):
    """The names of the parameters that cuTile compiles for a kernel; empty where they are unknown."""
    code = getattr(getattr(compiled[0] if compiled else None, "pyfunc", None), "__code__", None)
    return code.co_varnames[: code.co_argcount] if code is not None else ()


def _text(bytecode, **_options):
    return _girih.disassemble(bytes(bytecode))


def _host_tuner(module):
    runner = _part(module, "_TimedBenchmarkRunner")
    _takes(_part(runner, "run"), "payload", "timeout_sec")
    _part(module, "_export_ipc_benchmark_payload")
    benchmark, late = _part(module, "_benchmark"), _part(module, "TileLaunchTimeoutError")

    def run(_self, payload, timeout_sec):
        began = time.perf_counter()
        with driver.time_limit(timeout_sec, late, f"CUDA kernel launch exceeded timeout {timeout_sec} sec"):
            return benchmark(*payload), time.perf_counter() - began

    # Nothing has to reach another process.
    module._export_ipc_benchmark_payload = lambda *arguments: arguments
    runner.run = run
