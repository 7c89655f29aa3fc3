"""Who takes part: each makes a function that runs a row's model once and returns its results."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import time
import warnings

import torch

import girih.bench
import girih.torch
from girih.bench import networks

ALL = ("girih", "girih.jit", "torch", "torch.compile", "onnxruntime", "numpy", "jax", "triton", "triton.interpreter")
#: On a GPU.
ON_GPUS = ("girih", "torch", "torch.compile", "triton")
#: Without being asked.
USUAL = ("girih", "torch", "onnxruntime", "numpy")


def show_models_to_dynamo():
    """Lets Dynamo see the models of the suites in this process: it compiles nothing else of the package `girih`."""
    from torch._dynamo import trace_rules

    models = trace_rules._strip_init_py(girih.bench.__file__)
    trace_rules.SKIP_DIRS[:] = [folder for folder in trace_rules.SKIP_DIRS if folder != models]
    trace_rules._recompile_re()


class Absent(Exception):
    """Why someone does not take part."""


class Runner:
    """A contestant that is ready: `run()` returns tensors, or values that `results` makes into tensors."""

    def __init__(self, run, results=lambda r: r):
        self.run = run
        self.results = results
        start = time.perf_counter()
        self.run()
        #: Seconds of the first call.
        self.first = time.perf_counter() - start


def made(who, row, model, inputs, threads):
    """Someone, ready to run. Raises `Absent`."""
    if who in row.without:
        raise Absent(row.without[who])
    if row.device == "cuda" and who not in ON_GPUS:
        raise Absent("it is compared on processors")
    try:
        if who in row.by:
            return Runner(row.by[who](model, inputs, threads))
        return MAKERS[who](row, model, inputs, threads)
    except Absent:
        raise
    except ImportError as e:
        raise Absent(f"{e.name or who} is not installed") from e
    except Exception as e:  # whatever a library refuses a model with
        raise Absent(f"{type(e).__name__}: {str(e).strip().splitlines()[0][:120] if str(e).strip() else ''}") from e


def of_girih(row, model, inputs, threads):
    if row.kernel is not None:
        if row.device != "cpu":
            raise Absent("its kernel is launched on processors")
        return Runner(row.kernel(*inputs, threads))
    if isinstance(model, networks.Step):
        return step(model, inputs, backend="girih", options={"threads": threads})
    if row.onnx is not None:
        loaded = girih.Model.from_onnx(row.onnx(model), threads=threads)
        feed = {port.name: given.numpy() for port, given in zip(loaded.get_inputs(), inputs)}
        return Runner(lambda: loaded.run(None, feed), lambda r: [torch.from_numpy(x) for x in r])
    exported = girih.torch.export(model, inputs, threads=threads, freeze=row.frozen)
    return Runner(lambda: exported(*inputs))


def of_jit(row, model, inputs, threads):
    if row.as_girih is None:
        raise Absent("this row has no kernel of Triton's")
    return Runner(row.as_girih(*inputs, threads))


def of_interpreter(row, model, inputs, threads):
    if row.as_girih is None:
        raise Absent("this row has no kernel of Triton's")
    from girih.bench.interpreted import Interpreter

    one = Interpreter(row.name, inputs, threads)
    return Runner(one.run, one.results)


def eager(row, model, inputs, threads):
    return Runner(lambda: model(*inputs))


def step(model, inputs, **options):
    """A step of training whose model is compiled: gradients are taken outside of the compiled function."""
    torch._dynamo.reset()
    function = networks.Step(torch.compile(model.model, **options))
    return Runner(lambda: function(*inputs))


def compiled(row, model, inputs, threads):
    if isinstance(model, networks.Step):
        return step(model, inputs, fullgraph=True)
    torch._dynamo.reset()
    function = torch.compile(model, fullgraph=True)
    return Runner(lambda: function(*inputs))


def exported_file(model, inputs) -> bytes:
    """The model as PyTorch writes it to an ONNX file."""
    quiet = logging.getLogger("torch.onnx")
    quiet.setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(model, inputs, dynamo=True, verbose=False)
    return program.model_proto.SerializeToString()


def session_of(file, threads):
    """ONNX Runtime, ready to run a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def of_onnxruntime(row, model, inputs, threads):
    session = session_of(row.onnx(model) if row.onnx is not None else exported_file(model, inputs), threads)
    try:
        feed = {port.name: given.numpy() for port, given in zip(session.get_inputs(), inputs)}
    except TypeError as e:
        raise Absent("NumPy does not have these elements") from e
    return Runner(lambda: session.run(None, feed), lambda r: [torch.from_numpy(x) for x in r])


def of_numpy(row, model, inputs, threads):
    import numpy

    if row.arrays is None:
        raise Absent("nothing in NumPy does this")
    limit_blas(threads)
    given = [x.numpy() for x in inputs]
    with numpy.errstate(all="ignore"):
        return Runner(lambda: row.arrays(numpy, *given), lambda r: torch.from_numpy(numpy.asarray(r)))


def limit_blas(threads):
    """Limits the linear algebra behind NumPy to `threads` threads: it has its own setting."""
    try:
        import threadpoolctl
    except ImportError as e:
        raise Absent("threadpoolctl, which limits NumPy's threads, is not installed") from e
    threadpoolctl.threadpool_limits(threads, user_api="blas")


def kernels():
    """The instruction sets that the libraries behind the contestants report to use on this processor."""
    found = {"torch": torch.backends.cpu.get_cpu_capability()}
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401
        import threadpoolctl

        for library in threadpoolctl.threadpool_info():
            if library["user_api"] == "blas":
                found[library["internal_api"]] = f"{library['version']} {library.get('architecture', '')}".strip()
    return found


def of_jax(row, model, inputs, threads):
    import jax

    if row.arrays is None:
        raise Absent("this row has no form for JAX")
    if threads != os.cpu_count():
        raise Absent("JAX runs on all cores of the process")
    given = [jax.numpy.asarray(x.numpy()) for x in inputs]
    function = jax.jit(lambda *x: row.arrays(jax.numpy, *x))
    return Runner(lambda: function(*given).block_until_ready(), lambda r: torch.from_numpy(__import__("numpy").array(r)))


def of_triton(row, model, inputs, threads):
    if row.triton is None:
        raise Absent("this row has no kernel for Triton")
    if row.device != "cuda":
        raise Absent("Triton runs on GPUs")
    from girih.bench import triton_kernels

    kernel = triton_kernels.KERNELS[row.triton]
    return Runner(lambda: kernel(*inputs))


MAKERS = {
    "girih": of_girih, "girih.jit": of_jit, "torch": eager, "torch.compile": compiled, "onnxruntime": of_onnxruntime, "numpy": of_numpy,
    "jax": of_jax, "triton": of_triton, "triton.interpreter": of_interpreter,
}  # fmt: skip


def versions(names):
    """The version of each library, as far as it is installed."""
    found = {"girih": girih.__version__, "torch": torch.__version__}
    for name in ("onnxruntime", "numpy", "jax", "triton"):
        with contextlib.suppress(ImportError):
            found[name] = __import__(name).__version__
    return {name: found[name.split(".")[0]] for name in names if name.split(".")[0] in found}
