"""Random numbers of tensors in every layout, through `torch.compile`: under one seed those that eager mode draws."""

import pytest
import torch
import torch.nn.functional as F

import girih.torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


LAYOUTS = {
    "transposed": lambda: torch.randn(6, 5).t(),
    "permuted": lambda: torch.randn(3, 4, 2, 5).permute(3, 1, 0, 2),
    "channels-last": lambda: torch.randn(2, 4, 3, 3).to(memory_format=torch.channels_last),
    "sliced": lambda: torch.randn(6, 10)[:, ::2],
    "sliced and transposed": lambda: torch.randn(10, 6)[::2].t(),
    "expanded": lambda: torch.randn(5, 1).expand(5, 6),
}
TRAINED = ("transposed", "channels-last")

DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.5, True),
    "dropout of a product": lambda x: F.dropout(x * 2, 0.5, True) + 1,
    "dropout twice": lambda x: F.dropout(F.dropout(x.sin(), 0.3, True).cos(), 0.6, True),
    "dropout of a transposed one": lambda x: F.dropout(x.transpose(0, 1) + 1, 0.5, True),
    "rand_like": lambda x: torch.rand_like(x) + x,
    "randint_like": lambda x: torch.randint_like(x, 100) + x,
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "bernoulli of a number": lambda x: torch.bernoulli(x.detach(), 0.3) + x,
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.3) * x,
    "exponential_": lambda x: x.clone().exponential_() + x,
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
    "feature_dropout": lambda x: torch.feature_dropout(x, 0.5, True),
    "rrelu": lambda x: F.rrelu(x * 2, training=True),
    "normal of tensors": lambda x: torch.normal(x, x.abs() + 1),
}


def drawn(function, x, train):
    """The result of a function under a seed, the next random numbers, and the gradient."""
    x = x.detach()
    x = x.requires_grad_() if train else x
    torch.manual_seed(1)
    y = function(x)
    after = torch.rand(3)
    found = [y.detach(), after]
    if train and y.requires_grad:
        found += torch.autograd.grad(y.sum(), x)
    return found


@pytest.mark.parametrize("name", DRAWS)
def test_draws_in_every_layout(name):
    torch.manual_seed(0)
    for layout, train in [*((layout, False) for layout in LAYOUTS), *((layout, True) for layout in TRAINED)]:
        x, function = LAYOUTS[layout](), DRAWS[name]
        torch._dynamo.reset()
        given, wanted = drawn(torch.compile(function, backend="girih"), x, train), drawn(function, x, train)
        for g, w in zip(given, wanted, strict=True):
            torch.testing.assert_close(g, w, rtol=1e-5, atol=1e-5, msg=f"{layout}, train={train}")


@pytest.mark.parametrize("name", ["dropout of a product", "bernoulli_"])
def test_draws_of_layouts_that_change(name):
    torch.manual_seed(0)
    compiled = torch.compile(DRAWS[name], backend="girih", dynamic=True)
    for n in (5, 7):
        for x in (torch.randn(n, 6).t(), torch.randn(2, n, 3, 3).to(memory_format=torch.channels_last)):
            given, wanted = drawn(compiled, x, False), drawn(DRAWS[name], x, False)
            torch.testing.assert_close(given, wanted, rtol=1e-5, atol=1e-5)
