"""Graphs whose tensors are on a CUDA device, on the stand-in for a driver.

No tensor of PyTorch can be there without a GPU, so a tensor of the processor over the stand-in's memory says that it is. Graphs
are captured with fake tensors of the device, as Dynamo captures them. Each script has a process of its own, since a process has
one driver.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from girih import _library

SETUP = """
import ctypes, os, warnings
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from girih.torch import _backend, _compiled, _graph, _report

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "CUDA initialization")
# PyTorch's own runtime does not know the stand-in.
torch.cuda.is_available = lambda: False
driver = ctypes.CDLL(os.environ["GIRIH_CUDA_DRIVER"])
CUDA = torch.device("cuda", 0)
stream = ctypes.c_size_t()
assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0


class OnDevice(torch.Tensor):
    device = CUDA

    def contiguous(self):
        return self if self.is_contiguous() else to_device(self.as_subclass(torch.Tensor).contiguous())


def empty(shape, dtype, there=True):
    count = max(1, torch.Size(shape).numel() * dtype.itemsize)
    address = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(count)) == 0
    held = (ctypes.c_char * count).from_address(address.value)
    return torch.frombuffer(held, dtype=dtype)[: torch.Size(shape).numel()].view(shape).as_subclass(OnDevice)


def to_device(tensor):
    return empty(tensor.shape, tensor.dtype).copy_(tensor)


# What PyTorch does where there is a GPU.
allocated = []
def allocate(self, shape, dtype):
    assert self.device == CUDA
    allocated.append(empty(shape, dtype))
    return allocated[-1]
_compiled.Compiled._empty = allocate
_compiled.stream_of = lambda index: stream.value
# Code that looks at tensors without Python sees those of the processor.
_compiled.example = lambda dtype, device, shape=(0,): torch.empty(shape, dtype=dtype)
_compiled.strided_empty = lambda device: lambda shape, strides, dtype: empty(shape, dtype).as_subclass(torch.Tensor)

taken = []
real = _compiled.Compiled._run
def run(self, addresses, *rest):
    taken.append(list(addresses))
    return real(self, addresses, *rest)
_compiled.Compiled._run = run


def captured(function, *inputs, devices=None):
    devices = devices or [CUDA] * len(inputs)
    with FakeTensorMode():
        fake = [torch.empty(i.shape, dtype=i.dtype, device=d) for i, d in zip(inputs, devices)]
        return make_fx(function)(*fake)


def compiled(function, *inputs, options={}, parameters=(), **how):
    module = captured(function, *inputs, **how)
    places = [n for n in module.graph.nodes if n.op == "placeholder"]
    return _backend.build(module, [places[i] for i in parameters], options, _report.begin("inference"))


torch.manual_seed(0)
x, w, b = torch.randn(24, 32), torch.randn(48, 32), torch.randn(48)
layer = lambda x, w, b: torch.relu(torch.nn.functional.linear(x, w, b)) * 2
"""


def passes(script, **variables):
    env = {**os.environ, "GIRIH_CUDA_DRIVER": str(_library.find("libcuda.so.1")), **variables}
    done = subprocess.run(
        [sys.executable, "-c", SETUP + textwrap.dedent(script)], capture_output=True, text=True, env=env, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0", "12.0"])
def test_a_graph_runs_where_its_tensors_are(capability):
    passes(
        """
        there = [to_device(t) for t in (x, w, b)]
        run = compiled(layer, x, w, b)
        assert isinstance(run, _backend.OrPyTorch) and run.run.model.device == "cuda"
        (result,) = run(*there)
        torch.testing.assert_close(result.as_subclass(torch.Tensor), layer(x, w, b))
        # The tensors' own memory was read, and a tensor of the device written.
        assert taken == [[t.data_ptr() for t in there]] and result is allocated[-1]
        # The other way through the same graph.
        (again,) = run.run.quick([t.as_subclass(torch.Tensor) for t in there])
        torch.testing.assert_close(again, layer(x, w, b))
        """,
        GIRIH_SHIM_CAPABILITY=capability,
    )


def test_parameters_stay_on_the_device_until_they_change():
    passes(
        """
        X, W, B = (to_device(t) for t in (x, w, b))
        run = compiled(layer, x, w, b, parameters=(1, 2))
        for _ in range(2):
            torch.testing.assert_close(run(X, W, B)[0].as_subclass(torch.Tensor), layer(x, w, b))
        assert taken[-1] == [X.data_ptr()]
        W.mul_(2)
        torch.testing.assert_close(run(X, W, B)[0].as_subclass(torch.Tensor), layer(x, 2 * w, b))
        other = to_device(3 * w)
        torch.testing.assert_close(run(X, other, B)[0].as_subclass(torch.Tensor), layer(x, 3 * w, b))
        """
    )


def test_views_and_gaps_of_tensors_of_the_device():
    passes(
        """
        wide = to_device(torch.randn(24, 64))
        for part in (wide[:, ::2], wide[:, 1:33], wide.T[:32].T):
            run = compiled(layer, x, w, b)
            want = layer(part.as_subclass(torch.Tensor).contiguous(), w, b)
            torch.testing.assert_close(run(part, to_device(w), to_device(b))[0].as_subclass(torch.Tensor), want)
            assert not run.failed
        # Results that are views of what is computed.
        run = compiled(lambda x: (x * 2).T, x)
        result = run(to_device(x))[0]
        assert result.stride() == (1, 32)
        torch.testing.assert_close(result.as_subclass(torch.Tensor), (x * 2).T)
        """
    )


def test_tensors_of_the_processor_among_those_of_the_device_stay_with_pytorch():
    passes(
        """
        # A number on the processor may meet a tensor of the device; PyTorch computes what it is in.
        function = lambda x, s: torch.exp(x) * s + x.sum(1, keepdim=True)
        number = torch.tensor(2.0)
        module = captured(function, x, number, devices=[CUDA, "cpu"])
        document = _graph.document(module)
        assert document.device == CUDA
        reasons = {str(n): why for n, why in document.refused.items()}
        assert any("on the device cpu, but the graph is compiled for cuda:0" in why for why in reasons.values()), reasons
        warnings.simplefilter("default")
        run = compiled(function, x, number, devices=[CUDA, "cpu"])
        result = run(to_device(x), number)
        torch.testing.assert_close(torch.utils._pytree.tree_leaves(result)[0].as_subclass(torch.Tensor), function(x, number))
        assert taken, "no part of it ran here"
        """
    )


def test_what_does_not_fit_is_refused():
    passes(
        """
        run = compiled(layer, x, w, b)
        # Tensors of the processor where the graph has those of the device: not read as if they were there.
        try:
            run.run(x, w, b)
            raise SystemExit("not refused")
        except _compiled.Misfit as error:
            assert "on cpu, torch.strided, but was torch.float32 on cuda:0" in str(error), error
        # A device that cannot read them.
        module = captured(layer, x, w, b)
        try:
            _compiled.Compiled(module, _graph.document(module), {"device": "sim"})
            raise SystemExit("not refused")
        except _graph.Unsupported as error:
            assert "on cuda:0, where device='sim' cannot read them" in str(error), error
        # A second device.
        module = captured(layer, x, w, b, devices=[torch.device("cuda", 1)] * 3)
        refused = _graph.document(module).refused.values()
        assert any("cuda:1, but Girih runs on the processor and on cuda:0" in why for why in refused), refused
        """
    )


def test_constants_of_the_processor_are_given_to_the_device():
    passes(
        """
        rows = lambda: torch.tensor([3, 0, 0])
        for function in (lambda x: x[[0, 2]] * 2, lambda x: x[:, rows()] + x[:, rows() + 1]):
            run = compiled(function, x)
            torch.testing.assert_close(run(to_device(x))[0].as_subclass(torch.Tensor), function(x))
            assert not run.failed and run.run.model.device == "cuda"
        # One that is a result stays where it is.
        function = lambda x: (x * 2, torch.tensor([1, 2]))
        document = _graph.document(captured(function, x))
        assert any("on the device cpu" in why for why in document.refused.values()), document.refused
        """
    )
