"""Graphs whose extents are symbols from the first call on: nothing of them is left to PyTorch."""

import math
import operator
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import girih.torch


@pytest.fixture(autouse=True)
def whole():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()
    girih.torch.report(clear=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="girih: ")
        yield


def r(*size):
    return torch.randn(size)


def i(*size):
    return torch.randint(-20, 20, size)


def patches(x, p):
    b, c, h, w = x.shape
    return x.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, (h // p) * (w // p), -1)


def of_equal_extents(x, y):
    """A guard of PyTorch's makes them equal."""
    s = x.shape[1]
    return x.new_ones(x.shape[0], s // 8 * (s // 8), 32) * x.sum() + y


def convolved(x, first, second):
    """Convolutions whose windows are symbols, because weights are arguments."""
    y = F.conv2d(x, first, stride=4, padding=1)
    return F.conv2d(y.flatten(2).reshape(y.shape), second, stride=4) * 0.02


def attention(*args, **kwargs):
    return F.scaled_dot_product_attention(*args, **kwargs)


# Functions, each with two sets of arguments.
FUNCTIONS = {
    "split": (lambda x: [a * 2 for a in x.split(3, 1)], (r(2, 8),), (r(3, 9),)),
    "split by a symbol": (lambda x: [a * 2 for a in x.split(x.shape[1] // 2, 1)], (r(2, 8),), (r(3, 12),)),
    "chunk": (lambda x: [a * 2 for a in x.chunk(3, -1)], (r(2, 9),), (r(3, 12),)),
    "tensor_split": (lambda x: [a * 2 for a in torch.tensor_split(x, 3, 1)], (r(2, 8),), (r(3, 10),)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), (r(4, 5),), (r(3, 70),)),
    "mode": (lambda x: torch.mode(x, 1), (i(4, 5),), (i(3, 7),)),
    "shifts": (lambda x, k: (x << k, x >> k), (i(4, 5), i(4, 5).abs() % 5), (i(3, 7), i(3, 7).abs() % 5)),
    "gcd": (lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)), (i(4, 5), i(4, 5)), (i(3, 7), i(3, 7))),
    "frexp": (torch.frexp, (r(4, 5),), (r(3, 7),)),
    "nextafter": (torch.nextafter, (r(4, 5), r(4, 5)), (r(3, 7), r(3, 7))),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (r(2, 8, 3, 4),), (r(3, 12, 5, 2),)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), (r(2, 8, 6, 4),), (r(3, 12, 4, 2),)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 2), (r(2, 8, 3, 4),), (r(3, 12, 5, 2),)),
    "group_norm": (lambda x: F.group_norm(x, 4), (r(2, 8, 3, 4),), (r(3, 12, 5, 2),)),
    "diagonal": (lambda x: x.diagonal(1) * 2, (r(5, 8),), (r(7, 4),)),
    "attention": (attention, (r(2, 3, 5, 8), r(2, 3, 6, 8), r(2, 3, 6, 8)), (r(1, 2, 4, 16), r(1, 2, 7, 16), r(1, 2, 7, 16))),
    "patches": (patches, (r(2, 3, 8, 8), 4), (r(3, 3, 16, 8), 4)),
    "convolved": (convolved, (r(2, 3, 64, 96), r(4, 3, 3, 2), r(6, 4, 5, 7)), (r(3, 3, 96, 64), r(8, 3, 3, 2), r(9, 8, 5, 7))),
    "equal extents": (of_equal_extents, (r(2, 32), r(1, 16, 32)), (r(3, 32), r(1, 16, 32))),
    "(n*16)//16": (lambda x, p: x.reshape(x.shape[0], x.shape[1] * p // p, 1, -1) * 2, (r(2, 4, 6), 16), (r(3, 9, 6), 16)),
    "the last ones": (lambda x, y: x[:, -y.shape[1] :] * 2, (r(2, 8), r(1, 3)), (r(2, 9), r(1, 5))),
    "scalar_tensor": (lambda x: x + torch.scalar_tensor(x.shape[0]), (r(2, 8),), (r(3, 9),)),
    "floats of extents": (lambda x: torch.where(x > 0, x, torch.tensor(x.shape[1] * 1.5)), (r(2, 8),), (r(3, 9),)),
    "arange down": (lambda x: torch.arange(x.shape[0], -x.shape[0], -1.0, dtype=torch.int64) * 2, (r(7, 2),), (r(4, 2),)),
    "arange of floats": (lambda x: torch.arange(0.0, x.shape[0], 2.0) * x.shape[1], (r(7, 2),), (r(4, 3),)),
    "ceil": (lambda x: x[: math.ceil(x.shape[0] / 3)] * 2, (r(7, 2),), (r(11, 3),), (r(12, 3),)),
    "ceil of a quotient": (lambda x: torch.ones(math.ceil(x.shape[0] / x.shape[1]), 3) * x.sum(), (r(7, 2),), (r(11, 3),)),
    "int of a product": (lambda x: x[: int(x.shape[0] * 0.75)].sum(0), (r(7, 2),), (r(12, 3),)),
    "int of a negative": (lambda x: torch.ones(9 - int((x.shape[0] - x.shape[1]) / 2), 2) * x.sum(), (r(7, 2),), (r(3, 8),)),
    "rounded up to fours": (lambda x: F.pad(x, (0, math.ceil(x.shape[1] / 4) * 4 - x.shape[1])) * 2, (r(7, 6),), (r(3, 9),)),
    "full of a float": (lambda x: torch.full((3, 2), x.shape[0] / 4) + torch.full_like(x[0, 0], x.shape[1] ** 0.5), (r(2, 8),), (r(3, 9),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_left(name):
    function, *sets = FUNCTIONS[name]
    compiled = torch.compile(function, backend="girih", dynamic=True, options={"device": "eval"})
    with torch.no_grad():
        for arguments in sets:
            torch.testing.assert_close(compiled(*arguments), function(*arguments), rtol=1e-4, atol=1e-5)
    assert girih.torch.report().native


def test_parts_know_the_symbols():
    """Behind an operation that PyTorch runs, everything is compiled."""
    warnings.filterwarnings("ignore", message="girih: ")

    def function(x, w):
        y = torch.linalg.eigvalsh(x @ x.T)[:, None] * x
        n = x.shape[0]
        return (y @ w).relu().reshape(n * 2, -1).softmax(-1), torch.arange(n) * y.shape[1]

    compiled = torch.compile(function, backend="girih", dynamic=True, options={"device": "eval"})
    with torch.no_grad():
        for n in (4, 5):
            x, w = r(n, 6), r(6, 6)
            for given, wanted in zip(compiled(x, w), function(x, w)):
                torch.testing.assert_close(given, wanted, rtol=1e-3, atol=1e-4)
    assert {left.operation for left in girih.torch.report().left} == {"aten._linalg_eigh"}


def test_numbers_at_the_top_have_values(monkeypatch):
    """Without one, what is computed of it would be no number but an operation that nothing knows."""
    warnings.filterwarnings("ignore", message="girih: ")
    lift, lifted = girih.torch._partition.lift_sizes, []
    monkeypatch.setattr(girih.torch._partition, "lift_sizes", lambda module: lift(module) or lifted.append(module.graph))

    def function(x):
        n = (x.shape[0] * 2 + x.shape[1] - 3) // 4 + 1
        return torch.linalg.eigvalsh(x @ x.T).sum() * torch.ones(n, 2), x.new_zeros(x.shape[0] * n)

    x = r(4, 6)
    torch.testing.assert_close(torch.compile(function, backend="girih", dynamic=True, options={"device": "eval"})(x), function(x))
    numbers = [n for n in lifted[0].nodes if n.op == "call_function" and not isinstance(n.target, torch._ops.OpOverload)]
    assert numbers and all(isinstance(n.meta.get("val"), torch.SymInt) for n in numbers if n.target is not operator.getitem)


def test_guards_that_together_give_numbers():
    """Each equates two extents; by all of them they are 1, 1, 2 and 6, and `n` is 13. (A scan halves its axis like this.)"""

    def function(x):
        n = x.shape[0]
        eighth, quarter, half, whole = n // 8, (n // 4 - 1) // 2, (n // 2 - 1) // 2, (n - 1) // 2
        if eighth != 1 or quarter != eighth or half != eighth + quarter or whole != 2 * half + 2:
            return x * 2
        two = torch.cat([x[:eighth].sin(), x[:quarter]]) * x[:half]
        six = torch.stack([F.pad(two, (0, 0, 0, 1)), x[: half + 1]], 1).flatten(0, 1) + x[:whole]
        return torch.stack([six, x[:whole]], 1).view(2 * whole, 3), x[: n - 1].view(whole, 2, 3)

    compiled = torch.compile(function, backend="girih", dynamic=True, options={"device": "eval"})
    for n in (13, 14, 13):
        x = r(n, 3)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-5, atol=1e-6)
    assert girih.torch.report().native, girih.torch.report()


def test_an_equation_of_symbols_by_a_later_guard():
    """PyTorch replaces a symbol by what a guard equates it to, but here that was a quotient."""
    env = ShapeEnv(specialize_zero_one=False, duck_shape=False)
    heads, rows, one = FakeTensorMode(shape_env=env).from_tensor(torch.randn(6, 6, 1)).shape
    assert heads == rows // one and one == 1
    pair = {heads.node.expr, rows.node.expr}
    assert any({left, right} == pair for left, right in girih.torch._guards.facts(env).items())


def test_a_look_at_the_layout_of_nothing_guards_nothing():
    """PyTorch's own test for row-major tensors, asked of symbols whose product is 0, guarded a false equation."""

    def f(x, rows, columns):
        eye = torch.eye(rows % 3, columns - 1)
        return torch.minimum(eye, eye) + x

    compiled = torch.compile(f, backend="girih", dynamic=True, options={"device": "eval"})
    x = r()
    for rows, columns in [(-3, 6), (2, 5), (1, 2), (3, 4)]:
        torch.testing.assert_close(compiled(x, rows, columns), f(x, rows, columns), rtol=0, atol=0)
