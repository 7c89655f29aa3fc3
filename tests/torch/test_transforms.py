"""Function transforms inside compiled functions: `torch.func`, `torch.autograd.grad`, checkpoints, against PyTorch."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import func
from torch.autograd import forward_ad

import girih.torch
from girih.torch import _whole

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from torch_programs import layers, transforms  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()
    girih.torch.report(clear=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("seed", [3, 11])
def test_random_functions_under_random_stacks(seed):
    """In processes of their own: see `torch_programs.transforms.damages`."""
    command = [sys.executable, "-W", "ignore", TESTS / "torch_random.py", "--device", "eval", "--jobs", "1"]
    done = subprocess.run([*command, "--seed", str(seed), "--count", "6"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and " 0 differ," in done.stdout, done.stdout + done.stderr


#: Layers that are mostly operations that stay whole.
WHOLE = [layer for layer in layers.CORE if layer.startswith(("F.", "{x} @", "({x} @", "W["))]


@pytest.mark.parametrize("transform", ["grad", "vmap"])
def test_every_operation_is_differentiated(transform):
    stacks = [transforms.Stack((layer,), (transform,)) for layer in WHOLE]
    stacks = [stack for stack in stacks if transforms.result(stack) is not None]
    assert len(stacks) > 20
    found = transforms.differences(stacks, options={"device": "eval"})
    assert not found, "\n".join(f"{stack.text()}{what}" for stack, what in found)


def test_forward_mode():
    """Attention has no `jvp` in PyTorch."""
    stacks = [transforms.Stack((layer,), ("jvp",)) for layer in WHOLE]
    stacks = [stack for stack in stacks if transforms.result(stack) is not None]
    stacks = [stack for stack in stacks if not transforms.damages(stack)]
    assert sum("norm" in stack.layers[0] for stack in stacks) >= 3 and len(stacks) > 20
    found = transforms.differences(stacks, options={"device": "eval"})
    assert not found, "\n".join(f"{stack.text()}{what}" for stack, what in found)


def test_tangents_of_zeros_have_memory():
    """Forward-mode AD makes zeros without memory. Kernels of PyTorch would read them at the null address."""
    w = torch.randn(2, 4, dtype=torch.float64)
    layers = (F.softplus, F.mish, lambda a: F.logsigmoid(a) * w, lambda a: torch.special.erfcx(a) + F.softplus(w))
    for layer in layers:
        tangent = lambda a, layer=layer: func.jvp(layer, (a,), (w,))[1]  # noqa: E731
        twice = lambda a, f=tangent: func.jacfwd(lambda b: func.jacfwd(f)(b).tanh().sum((2, 3)))(a)  # noqa: E731
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(twice, backend="girih")(w * 0.5), twice(w * 0.5))


@pytest.mark.parametrize("transform", ["vjp", "jacrev", "jacfwd", "hessian", "of_weights", "checkpoint"])
def test_layers_together(transform):
    """All layers as one function of many."""
    stacks = [transforms.Stack((layer,), (transform,)) for layer in layers.CORE[::3]]
    stacks = [stack for stack in stacks if not transforms.damages(stack) and transforms.result(stack) is not None]
    assert len(stacks) >= 8
    found = transforms.differences(stacks, options={"device": "eval"})
    assert not found, "\n".join(f"{stack.text()}{what}" for stack, what in found)


def test_operations_that_nothing_differentiates_stay_whole(monkeypatch):
    """Beside a gradient in the same graph."""
    w, graphs, build = torch.randn(6, 8), [], girih.torch._backend.build
    monkeypatch.setattr(girih.torch._backend, "build", lambda module, *rest: graphs.append(module) or build(module, *rest))

    def function(x):
        return F.linear(x, w).softmax(-1), func.grad(lambda a: F.linear(a, w).softmax(-1).pow(2).sum())(x)

    x = torch.randn(3, 8)
    torch.testing.assert_close(torch.compile(function, backend="girih")(x), function(x))
    operations = [getattr(node.target, "_opname", None) for node in graphs[0].graph.nodes]
    assert operations.count("linear") == operations.count("softmax") == 1, operations


def test_what_is_differentiated():
    x = torch.randn(3)
    assert not _whole.differentiated((x,), {})
    assert not _whole.differentiated((torch.randn(3, requires_grad=True).detach(),), {})
    with torch.no_grad():
        assert not _whole.differentiated((torch.randn(3, requires_grad=True),), {})
    assert _whole.differentiated((), {"x": [torch.randn(3, requires_grad=True)]})
    with forward_ad.dual_level():
        assert _whole.differentiated((x,), {})
    seen = []
    func.grad(lambda a: seen.append(_whole.differentiated((a,), {})) or a.sum())(x)
    func.vmap(lambda a: seen.append(_whole.differentiated((a,), {})) or a)(x)
    assert seen == [True, True]


def test_tables_are_as_they_were():
    before = {op: dict(op.py_kernels) for op in _whole.overloads()}
    with pytest.raises(ZeroDivisionError), _whole.kept():
        assert {op: dict(op.py_kernels) for op in _whole.overloads()} != before
        _ = 1 / 0
    assert {op: dict(op.py_kernels) for op in _whole.overloads()} == before


def test_a_gradient_wanted_inside_of_a_graph():
    w = torch.randn(6, 8)

    def function(x):
        a = x.detach().requires_grad_()
        return torch.autograd.grad(F.layer_norm(F.linear(a, w), (6,)).pow(3).sum(), a)[0]

    x = torch.randn(3, 8)
    torch.testing.assert_close(torch.compile(function, backend="girih")(x), function(x), rtol=1e-4, atol=1e-4)


def said_of(function, *inputs):
    """The warnings while a function is compiled and run; asserts that its result is PyTorch's."""
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        warnings.simplefilter("always")
        given = torch.compile(function, backend="girih", options={"device": "eval"})(*inputs)
        torch.testing.assert_close(given, function(*inputs), rtol=1e-4, atol=1e-4, equal_nan=True)
    return [str(w.message) for w in said if str(w.message).startswith("girih:")]


X, NANS = torch.randn(2, 3), torch.tensor([1.0, float("nan"), float("inf"), -0.0])


def squares(w):
    return F.linear(X, w).pow(2).sum()


@pytest.mark.parametrize(
    "function",
    [
        lambda w: func.grad(squares)(w),
        lambda w: (F.linear(X, w), func.grad(squares)(w)),
        lambda w: func.vjp(lambda a: F.softmax(a, -1), w)[1](w)[0],
        lambda w: func.jacrev(lambda a: F.layer_norm(a, (3,)))(w),
    ],
)
def test_a_trace_that_loses_its_inputs_is_an_error_and_no_answer(function, monkeypatch):
    """Operations that are differentiated stay whole here, as they must not."""
    monkeypatch.setattr(_whole, "differentiated", lambda args, kwargs: False)
    said = said_of(function, torch.randn(4, 3))
    assert len(said) == 1 and "internal error" in said[0], said
    assert not girih.torch.report().native


@pytest.mark.parametrize(
    "function",
    [
        lambda x: func.grad(lambda a: (a * 3).sum())(x),
        lambda x: func.hessian(lambda a: a.sum())(x),
        lambda x: (x.sin(), func.grad(lambda a: a.sum())(x)),
        lambda x: func.jvp(lambda a: a * 2, (x,), (torch.ones(4),))[1],
        lambda x: torch.zeros_like(x) + 1,
        lambda x: torch.arange(x.shape[0]),
        lambda x: torch.where(x > 0, 1.0, 1.0),
        lambda x: torch.cat([torch.ones(2), x])[:2],
        lambda x: x[:0].sum(),
        lambda x: x[:, None].softmax(-1),
        lambda x: x * 0,
        lambda x: x - x,
        lambda x: x == x,
        lambda x: x / x,
        lambda x: x.clamp(3, 3),
        lambda x: x.pow(0),
        lambda x: 0 / x,
        lambda x: x.fmin(torch.tensor(float("-inf"))),
        lambda x: x.maximum(torch.tensor(float("inf"))),
        lambda x: (x > float("inf")) | (x <= float("inf")),
        lambda x: x.isfinite() & False,
        lambda x: (x.nan_to_num() * 0).int() * 0,
    ],
)
def test_constants_that_are_constant(function):
    """Nothing is said of results that truly depend on no input, and NaN stays NaN in those that only seem to."""
    assert not said_of(function, NANS)
