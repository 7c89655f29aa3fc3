"""Kernels executed by Python itself, as the reference.

The oracle runs a kernel's body, block by block, with NumPy in place of the language: loops, branches and calls are
Python's own there.
"""

import functools
import importlib.util
import os
import subprocess
import tempfile
import types
from pathlib import Path

import girih
import girih.language as tl
import numpy as np
import pytest


def tileiras():
    """NVIDIA's compiler from its package, which the tests install."""
    spec = importlib.util.find_spec("nvidia.cu13")
    path = Path(next(iter(spec.submodule_search_locations))) / "bin" / "tileiras" if spec else None
    return path if path and path.is_file() else None


class Cases(dict):
    """Kernels by name, each with the launches to compare; as a decorator it adds one.

    A kernel's first parameter is an array of 64 int32, 0 to 63.
    """

    def __call__(self, *arguments, grid=1, **constants):
        def register(function):
            self.setdefault(function.__name__, (girih.jit(function), []))[1].append((arguments, constants, grid))
            return self[function.__name__][0].fn

        return register

    def check(self, name, number, device):
        """One launch has the same effect on memory as Python."""
        kernel, runs = self[name]
        arguments, constants, grid = runs[number]
        data = np.arange(64, dtype=np.int32)
        kernel[grid](data, *arguments, **constants, device=device)
        assert np.array_equal(data, expected(kernel, arguments, constants, grid))

    def check_bytecode(self, name):
        """The kernel is written as bytecode and read again; NVIDIA's compiler takes it where it is installed."""
        kernel, runs = self[name]
        arguments, constants, _ = runs[0]
        data = np.arange(64, dtype=np.int32)
        code = kernel.bytecode(data, *arguments, **constants)
        assert "entry @" + name in girih.disassemble(code)
        if tileiras() is not None:
            with tempfile.NamedTemporaryFile(suffix=".tileirbc") as file:
                file.write(code)
                file.flush()
                command = [tileiras(), "--gpu-name", "sm_100", "-O0", file.name, "-o", os.devnull]
                done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr

    def each_launch(self, test):
        launches = [(n, i) for n, (_, runs) in self.items() for i in range(len(runs))]
        test = pytest.mark.parametrize(("name", "number"), launches)(test)
        return pytest.mark.parametrize("device", ["cpu", "eval"])(test)


class Pointer:
    """An address for the oracle."""

    def __init__(self, array, at=0):
        self.array, self.at = array, at

    def __add__(self, by):
        return Pointer(self.array, self.at + by)


class Oracle(types.SimpleNamespace):
    """The language on NumPy, for one block."""

    def __init__(self, block, grid):
        super().__init__(constexpr=tl.constexpr, int32=np.int32, int64=np.int64, float32=np.float32)
        self.block, self.grid = block, grid

    def program_id(self, axis):
        return (self.block, 0, 0)[axis]

    def num_programs(self, axis):
        return (self.grid, 1, 1)[axis]

    arange = staticmethod(lambda a, b: np.arange(a, b, dtype=np.int32))
    zeros = staticmethod(np.zeros)
    full = staticmethod(np.full)
    where = staticmethod(np.where)
    sum = staticmethod(lambda x, axis=None: np.sum(x, axis=axis, dtype=x.dtype))
    max = staticmethod(lambda x, axis=None: np.max(x, axis=axis))
    maximum = staticmethod(np.maximum)
    static_range = staticmethod(range)
    range = staticmethod(range)
    cdiv = staticmethod(lambda a, b: -(-a // b))
    reduce = staticmethod(lambda x, axis, f: functools.reduce(f, list(x)))

    @staticmethod
    def load(p, mask=None, other=0):
        return p.array[p.at] if mask is None else np.where(mask, p.array[np.where(mask, p.at, 0)], other)

    @staticmethod
    def store(p, value, mask=None):
        if mask is None:
            p.array[p.at] = value
        else:
            p.array[np.asarray(p.at)[mask]] = np.broadcast_to(value, np.shape(p.at))[mask]


def expected(kernel, arguments, constants, grid):
    data = np.arange(64, dtype=np.int32)
    for block in range(grid):
        oracle = Oracle(block, grid)
        scope = {}
        for name, value in kernel.fn.__globals__.items():
            scope[name] = plain(value, scope)
        scope["tl"] = oracle
        body = plain(kernel, scope)
        body(Pointer(data), *arguments, **constants)
    return data


def plain(value, scope):
    """A kernel as an ordinary function that sees the oracle; anything else as it is."""
    if isinstance(value, girih.JITFunction):
        f = value.fn
        cells = tuple(types.CellType(plain(c.cell_contents, scope)) for c in f.__closure__ or ())
        made = types.FunctionType(f.__code__, scope, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        return made
    return value.value if isinstance(value, tl.constexpr) else value
