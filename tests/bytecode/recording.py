"""Records the kernels that a program would compile: runs a cuTile script with launches that note the kernel and its
arguments and do nothing else. In: a script that uses CuPy. Out: (kernel, signature) for each different launch.

Arrays are NumPy's. Since nothing is computed, the script's checks would fail: its assertions are left out and its first
exception ends the recording."""
import contextlib
import enum
import io
import signal
import sys
import types

import cuda.tile as ct
import numpy as np
from cuda.tile._annotated_function import HeterogeneousTupleNode, HomogeneousTupleNode
from cuda.tile.compilation import (ArrayConstraint, CallingConvention, ConstantConstraint, KernelSignature, ListConstraint,
                                   ScalarConstraint, TupleConstraint)

import export

DTYPES = {"bool": ct.bool_, "bfloat16": ct.bfloat16, "float8_e4m3fn": ct.float8_e4m3fn, "float8_e5m2": ct.float8_e5m2,
          "float8_e8m0fnu": ct.float8_e8m0fnu, "float4_e2m1fn": ct.float4_e2m1fn}


class CuPy(types.ModuleType):
    """NumPy under the name of CuPy."""
    asnumpy = staticmethod(np.asarray)

    def __init__(self):
        super().__init__("cupy")
        stream = types.SimpleNamespace(ptr=0, synchronize=lambda: None)
        self.cuda = types.SimpleNamespace(
            get_current_stream=lambda: stream, Stream=lambda **_: contextlib.nullcontext(stream),
            Device=lambda *_: types.SimpleNamespace(synchronize=lambda: None, compute_capability="100"),
            runtime=types.SimpleNamespace(deviceSynchronize=lambda: None))

    def __getattr__(self, name):
        return getattr(np, name)


def divisor(n):
    return 16 if n and n % 16 == 0 else 1


def array(value, annotation):
    wanted = annotation.array if annotation.list is None else annotation.list.element
    wanted = wanted or ct.ArrayAnnotation()
    dtype = DTYPES.get(value.dtype.name) or getattr(ct, value.dtype.name)
    strides = [s // value.itemsize for s in value.strides]
    fixed = {d % value.ndim for d in wanted.static_stride_dims}
    sizes = {d % value.ndim for d in wanted.static_shape_dims}
    constant = [s if i in fixed or (not fixed and s == 1) else None for i, s in enumerate(strides)]
    return ArrayConstraint(
        dtype, value.ndim, index_dtype=wanted.index_dtype, stride_lower_bound_incl=0, alias_groups=(),
        may_alias_internally=False, stride_constant=constant,
        shape_constant=[n if i in sizes else None for i, n in enumerate(value.shape)] if sizes else None,
        stride_divisible_by=[1 if c is not None else divisor(s) for s, c in zip(strides, constant)],
        shape_divisible_by=[1 if i in sizes else divisor(n) for i, n in enumerate(value.shape)], base_addr_divisible_by=16)


def constraint(value, annotation):
    if isinstance(value, tuple):
        if isinstance(annotation, HeterogeneousTupleNode):
            return TupleConstraint([constraint(v, a) for v, a in zip(value, annotation.items, strict=True)])
        each = annotation.each if isinstance(annotation, HomogeneousTupleNode) else annotation
        return TupleConstraint([constraint(v, each) for v in value])
    if isinstance(value, list):
        return ListConstraint(array(value[0], annotation), alias_groups=(), elements_may_alias=False)
    if isinstance(value, enum.Enum):
        value = value.value
    if annotation.constant:
        return ConstantConstraint(value)
    if isinstance(value, np.ndarray):
        return array(value, annotation)
    if isinstance(value, (bool, np.bool_)):
        return ScalarConstraint(ct.bool_)
    if isinstance(value, np.generic):
        return ScalarConstraint(DTYPES.get(value.dtype.name) or getattr(ct, value.dtype.name))
    if isinstance(value, int):
        return ScalarConstraint(annotation.scalar.dtype if annotation.scalar else ct.int32)
    if isinstance(value, float):
        return ScalarConstraint(ct.float32)
    return ConstantConstraint(value)


def signature(kernel, arguments):
    convention = CallingConvention.cutile_python_v2()
    annotations = kernel._annotated_function.parameter_annotations
    return KernelSignature([constraint(v, a) for v, a in zip(arguments, annotations, strict=True)], convention)


def programs():
    """The scripts of tests/cutile that launch something with CuPy's arrays alone."""
    found = sorted((export.ROOTS[0] / "tests" / "cutile").rglob("*.py"))
    return [p for p in found if "torch" not in p.parts and "ct.launch" in p.read_text()]


class TooLong(BaseException):
    pass


def too_long(*_):
    raise TooLong


def record(path, seconds=10):
    """The launches of the script at `path`, and the exception that ended it early, if any."""
    launches = {}

    def launch(_stream, _grid, kernel, arguments, **_):
        made = signature(kernel, arguments).with_mangled_symbol(kernel._annotated_function.pyfunc.__name__)
        launches.setdefault((id(kernel._annotated_function), repr(kernel._compiler_options), made.symbol), (kernel, made))

    kept = ct.launch, sys.modules.get("cupy"), {n: f for n, f in vars(np.testing).items() if n.startswith("assert_")}
    ct.launch, sys.modules["cupy"] = launch, CuPy()
    for name in kept[2]:
        setattr(np.testing, name, lambda *_, **__: None)
    ended = None
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            module = export.load(path)
            if hasattr(module, "main"):
                module.main()
    except (Exception, SystemExit, TooLong) as stopped:
        ended = f"{type(stopped).__name__}: {stopped}"
    finally:
        signal.alarm(0)
        ct.launch = kept[0]
        sys.modules.pop("cupy")
        if kept[1] is not None:
            sys.modules["cupy"] = kept[1]
        for name, function in kept[2].items():
            setattr(np.testing, name, function)
    return list(launches.values()), ended
