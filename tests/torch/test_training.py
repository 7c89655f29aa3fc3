"""Training steps: gradients, statistics and random numbers as PyTorch has them, in few parts."""

import copy
import warnings

import closeness
import pytest
import torch
import torch.nn.functional as F

import girih.torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()
    girih.torch.report(clear=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def step(model, run, *inputs):
    """A training step: the loss, all gradients, and the buffers afterwards."""
    torch.manual_seed(1)
    given = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    model.zero_grad()
    loss = run(*given).square().mean()
    loss.backward()
    grads = [t.grad for t in (*given, *model.parameters()) if t.grad is not None]
    return [loss.detach(), *(g.clone() for g in grads), *(b.clone() for b in model.buffers())]


def trains(model, *inputs, parts=2, left=()):
    """Compares a step compiled with the step as it is, and in float64."""
    fast, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    given = step(fast, torch.compile(fast, backend="girih"), *inputs)
    closeness.close(given, step(model, model, *inputs), step(exact, exact, *wide))
    report = girih.torch.report()
    assert sorted({x.operation for x in report.left}) == sorted(left)
    assert sum(len(g.parts) for g in report.graphs) <= parts, str(report)


CONVOLUTIONS = {
    "plain": (torch.nn.Conv2d(3, 5, 3), (2, 3, 7, 8)),
    "strided": (torch.nn.Conv2d(3, 5, 3, stride=2, padding=1), (2, 3, 8, 7)),
    "dilated": (torch.nn.Conv2d(3, 5, (2, 3), dilation=2, padding=2, bias=False), (2, 3, 8, 7)),
    "grouped": (torch.nn.Conv2d(4, 6, 3, groups=2, padding=1), (2, 4, 6, 6)),
    "depthwise": (torch.nn.Conv2d(4, 8, 3, groups=4, stride=2, padding=1), (2, 4, 9, 6)),
    "line": (torch.nn.Conv1d(3, 5, 4, stride=3), (2, 3, 12)),
    "space": (torch.nn.Conv3d(2, 3, 2, padding=1), (1, 2, 3, 4, 3)),
    "transposed": (torch.nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1), (2, 3, 5, 4)),
    "transposed_grouped": (torch.nn.ConvTranspose2d(4, 6, 3, groups=2, stride=2), (1, 4, 4, 4)),
    # So many channels that operands are swapped, windows share copies, and phases have products of their own.
    "wide": (torch.nn.Conv2d(33, 40, 3, padding=1), (2, 33, 14, 14)),
    "wide_strided": (torch.nn.Conv2d(16, 64, 3, stride=2, padding=1), (3, 16, 28, 15)),
    "wide_transposed": (torch.nn.ConvTranspose2d(40, 32, 3, stride=2, padding=1), (2, 40, 9, 12)),
    "pointwise": (torch.nn.Conv2d(48, 40, 1), (3, 48, 14, 14)),
    "first": (torch.nn.Conv2d(3, 64, 7, stride=2, padding=3), (2, 3, 32, 30)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name):
    model, shape = CONVOLUTIONS[name]
    trains(model, torch.randn(shape))


def test_convolution_of_a_frozen_input():
    model = torch.nn.Conv2d(3, 4, 3)
    x = torch.randn(2, 3, 6, 6)
    fast = torch.compile(model, backend="girih")
    fast(x).sum().backward()
    given = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    torch.testing.assert_close(given, [p.grad for p in model.parameters()])


POOLS = {
    "max": torch.nn.MaxPool2d(3, 2, 1),
    "max_dilated": torch.nn.MaxPool2d(2, 1, dilation=2),
    "max_space": torch.nn.MaxPool3d(2),
    "mean": torch.nn.AvgPool2d(3, 2, 1),
    "mean_uncounted": torch.nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
    "mean_divided": torch.nn.AvgPool2d(2, divisor_override=3),
}


@pytest.mark.parametrize("name", POOLS)
def test_pool(name):
    shape = (2, 3, 4, 6, 6) if name == "max_space" else (2, 3, 7, 8)
    trains(POOLS[name], torch.randn(shape))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    trains(Attention(), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8))


def test_batch_norm_and_its_running_statistics():
    # A bias before the norm has the gradient 0, and rounding replaces it by arbitrary small numbers.
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    trains(model, torch.randn(4, 3, 6, 6))


def test_dropout_draws_pytorchs_numbers():
    """The masks are PyTorch's, and all the rest of a graph stays one part."""
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 16), torch.nn.Dropout(0.6),
        torch.nn.Linear(16, 4),
    )  # fmt: skip
    trains(model, torch.randn(5, 8), left=["aten.bernoulli"])


def test_dropout_of_changing_sizes():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)).train()
    fast = torch.compile(model, backend="girih", dynamic=True)
    for n in (3, 5, 9):
        x = torch.randn(n, 8)
        with torch.no_grad():
            torch.manual_seed(n)
            wanted = model(x)
            torch.manual_seed(n)
            torch.testing.assert_close(fast(x), wanted)


def test_order_of_draws():
    def function(x):
        return torch.rand_like(x) + torch.randn_like(x.t()).sum() * torch.bernoulli(x.sigmoid()), torch.rand(2)

    x = torch.randn(3, 4)
    torch.manual_seed(3)
    wanted = function(x)
    torch.manual_seed(3)
    torch.testing.assert_close(torch.compile(function, backend="girih")(x), wanted)


class Block(torch.nn.Module):
    def __init__(self, c, stride=1):
        super().__init__()
        self.a, self.b = torch.nn.Conv2d(c, c, 3, stride, 1, bias=False), torch.nn.Conv2d(c, c, 3, 1, 1, bias=False)
        self.na, self.nb = torch.nn.BatchNorm2d(c), torch.nn.BatchNorm2d(c)
        self.short = torch.nn.Conv2d(c, c, 1, stride, bias=False)

    def forward(self, x):
        y = self.nb(self.b(F.relu(self.na(self.a(x)))))
        return F.relu(y + self.short(x))


def test_a_residual_network_in_two_parts():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1),
        Block(8), Block(8, 2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5),
    )  # fmt: skip
    trains(model, torch.randn(2, 3, 32, 32))


OPTIMIZERS = [torch.optim.Adam, torch.optim.NAdam, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.Adadelta]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_steps_of_optimizers_leave_nothing(make):
    """Dynamo writes their sums of products as `prims.fma`."""
    torch._dynamo.reset()
    girih.torch.report(clear=True)
    pairs = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Linear(6, 4)
        optimizer = make(model.parameters(), 0.01)
        run = torch.compile(optimizer.step, backend="girih", options={"device": "eval"}) if compiled else optimizer.step
        for _ in range(2):
            model.weight.grad, model.bias.grad = torch.randn(4, 6), torch.randn(4)
            run()
        pairs.append([p.detach() for p in model.parameters()])
    torch.testing.assert_close(*pairs)
    assert girih.torch.report().graphs and not girih.torch.report().left
