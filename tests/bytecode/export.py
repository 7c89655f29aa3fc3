"""Bytecode from kernels, by the compiler of the installed cuda-tile package: no GPU, and debug information that names files
from the root of the repository or of the package, so that the bytes are the same on every machine."""
import inspect
import pathlib
import types
import warnings

import cuda.tile
from cuda.tile._bytecode import BytecodeVersion
from cuda.tile._compile import compile_tile
from cuda.tile._exception import TileError
from cuda.tile._passes import ast2hir

ROOTS = [pathlib.Path(__file__).resolve().parents[2], pathlib.Path(cuda.tile.__file__).resolve().parents[2]]
VERSIONS = list(BytecodeVersion)


class Relative:
    """`inspect` as the front end of cuda-tile sees it: functions are in files named without the machine's part."""

    def __getattr__(self, name):
        return getattr(inspect, name)

    def getfile(self, function):
        path = pathlib.Path(inspect.getfile(function))
        for root in ROOTS:
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        raise ValueError(f"{path} is outside {ROOTS}")


ast2hir.inspect = Relative()


def load(path, **names):
    """A Python file as a module. `assert` is left out: nothing is launched here, so nothing that it would check is so."""
    module = types.ModuleType(path.stem)
    module.__dict__.update(names, __file__=str(path))
    exec(compile(path.read_text(), str(path), "exec", optimize=1), module.__dict__)
    return module


def bytecode(kernel, signatures, version):
    """The bytes of a module, or why this version cannot express it."""
    arch = None if version >= BytecodeVersion.V_13_3 else "sm_100"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = compile_tile(kernel._annotated_function, signatures, sm_arch=arch,
                                  compiler_options=kernel._compiler_options, bytecode_version=version, return_bytecode=True,
                                  return_cubin=False)
        except TileError as refused:
            return None, str(refused)
    return bytes(result.bytecode), None
