"""Calls that code outside of Python makes ready: which tensors it takes, and that others are still looked at by Python."""

import sys
import threading

import pytest
import torch

import girih.torch


class Add(torch.nn.Module):
    def forward(self, a, b):
        return a + b


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight, self.bias = torch.nn.Parameter(torch.randn(8, 6)), torch.nn.Parameter(torch.randn(8))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


def exported(module, *inputs, **options):
    model = girih.torch.export(module, inputs, **options)
    model(*inputs)
    return model


def odd(kind):
    """A tensor of 4x6 that has something unusual about it."""
    base = torch.randn(4, 6)
    if kind == "transposed":
        return torch.randn(6, 4).t()
    if kind == "sliced":
        return torch.randn(4, 12)[:, ::2]
    if kind == "expanded":
        return torch.randn(6).expand(4, 6)
    if kind == "negated":
        return torch._neg_view(base)
    if kind == "between two elements":
        return torch.frombuffer(bytearray(base.numpy().tobytes().rjust(97, b"\0")), dtype=torch.float32, offset=1).view(4, 6)
    if kind == "of a subclass":
        return base.as_subclass(type("Own", (torch.Tensor,), {}))
    raise KeyError(kind)


@pytest.mark.parametrize("kind", ["transposed", "sliced", "expanded", "negated", "between two elements", "of a subclass"])
def test_unusual_tensors_are_looked_at_by_python(kind):
    usual = torch.randn(4, 6)
    model = exported(Add(), usual, torch.randn(4, 6))
    assert model._compiled.quick((usual, usual)) is not None
    given = odd(kind)
    assert model._compiled.quick((usual, given)) is None
    torch.testing.assert_close(model(usual, given), usual + torch.tensor(given.tolist()))


def test_other_shapes_and_types_are_not_taken():
    usual = torch.randn(4, 6)
    model = exported(Add(), usual, torch.randn(4, 6))
    for other in (torch.randn(6, 4), torch.randn(24), torch.randn(4, 6).double(), torch.ones(4, 6, dtype=torch.int32), 3.0, None):
        assert model._compiled.quick((usual, other)) is None
    assert model._compiled.quick((usual,)) is None


def test_states_of_one_integer_are_tensors_and_no_places():
    """A batch norm counts its batches in a tensor that Python takes for an index."""
    norm, x = torch.nn.BatchNorm1d(6).eval(), torch.randn(4, 6)
    (found,) = exported(norm, x)._compiled.quick((x,))
    torch.testing.assert_close(found, norm(x))


def test_a_layout_that_was_captured_is_taken():
    a, b = torch.randn(6, 4).t(), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    turned = exported(Add(), a, a.clone())
    (found,) = turned._compiled.quick((a, a))
    torch.testing.assert_close(found, a + a)
    assert found.stride() == a.stride() and not found._is_view()
    assert turned._compiled.quick((a.contiguous(), a)) is None
    images = exported(Add(), b, b.clone())
    (found,) = images._compiled.quick((b, b))
    torch.testing.assert_close(found, b + b)
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_gaps_that_were_captured_are_taken():
    whole = torch.randn(6, 10)
    for take in (lambda x: x[:, 3:8], lambda x: x[1:4, 1::2], lambda x: x[2:3, ::2].expand(4, 5), lambda x: x.t()[1:9:5]):
        gaps = take(whole)
        model = exported(Add(), gaps, gaps.clone())
        (found,) = model._compiled.quick((gaps, gaps.clone()))
        torch.testing.assert_close(found, gaps * 2)
        again = take(torch.randn(6, 10))
        torch.testing.assert_close(model._compiled.quick((again, gaps.clone()))[0], again + gaps)
        assert model._compiled.quick((gaps.clone(), gaps.clone())) is None
    # Kernels may read the elements between those of the tensor, and behind them to the end of a row: all must be in its storage.
    gaps = whole[1:4, 1::2]
    model = exported(Add(), gaps, gaps.clone())
    for elements, taken in ((31, True), (30, True), (29, False)):
        given = torch.randn(elements).as_strided((3, 5), (10, 2), 1 if elements > 29 else 0)
        assert (model._compiled.quick((given, gaps.clone())) is not None) == taken, elements
        torch.testing.assert_close(model(given, gaps.clone()), given + gaps)


@pytest.mark.parametrize("freeze", [False, True])
def test_parameters_that_are_written_to(freeze):
    module, x = Linear(), torch.randn(3, 6)
    model = exported(module, x, freeze=freeze)
    assert model._compiled.quick((x,)) is not None
    with torch.no_grad():
        module.weight.mul_(2)
    # Only what is frozen relies on PyTorch's count of writes.
    assert (model._compiled.quick((x,)) is None) == freeze
    torch.testing.assert_close(model(x), module(x).detach())
    assert model._compiled.quick((x,)) is not None


@torch.no_grad()
def test_parameters_that_are_replaced():
    module, x = Linear(), torch.randn(3, 6)
    run = torch.compile(module, backend="girih")
    for weight in (None, torch.randn(8, 6), torch.randn(6, 8).t(), torch.randn(8, 12)[:, ::2], torch.randn(8, 6)):
        if weight is not None:
            module.weight.data = weight
        for _ in range(3):
            torch.testing.assert_close(run(x), module(x))
            module.weight.data[2].mul_(3)


def test_a_failing_call_fails_as_in_eager_mode():
    run = torch.compile(lambda x, i: x[i] * 2, backend="girih")
    x = torch.randn(5)
    torch.testing.assert_close(run(x, torch.tensor([1, 4])), x[[1, 4]] * 2)
    with pytest.raises(IndexError):
        run(x, torch.tensor([1, 5]))
    torch.testing.assert_close(run(x, torch.tensor([0, 2])), x[[0, 2]] * 2)


def test_results_that_are_views_and_inputs():
    function = lambda x: ((x * 2).view(6, 4), x, (x + 1).t())  # noqa: E731
    run, x = torch.compile(function, backend="girih"), torch.randn(4, 6)
    for _ in range(3):
        for found, wanted in zip(run(x), function(x), strict=True):
            torch.testing.assert_close(found, wanted)
            assert found.stride() == wanted.stride()
    assert run(x)[1] is x


def test_gradients_of_many_steps():
    module, x = Linear(), torch.randn(3, 6)
    run = torch.compile(module, backend="girih")
    for _ in range(3):
        module.zero_grad()
        run(x).square().sum().backward()
        found = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        module(x).square().sum().backward()
        torch.testing.assert_close(found, [p.grad for p in module.parameters()])


def test_calls_of_several_threads():
    module, wrong = Linear(), []
    given = [torch.randn(3, 6) for _ in range(4)]
    model = exported(module, given[0])
    with torch.no_grad():
        wanted = [module(x) for x in given]

    def call(at):
        for _ in range(200):
            if not torch.allclose(model(given[at]), wanted[at], atol=1e-5):
                wrong.append(at)

    threads = [threading.Thread(target=call, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.fixture
def eager_switches():
    """Threads change after every few instructions of Python."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def turned(module):
    """Its weight lies column by column: each call reads a copy where a graph was captured with rows."""
    module.weight = torch.nn.Parameter(module.weight.detach().t().contiguous().t())
    return module


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("second", [lambda module: module, turned])
def test_threads_with_parameters_of_their_own_share_a_graph(eager_switches, freeze, second):
    modules = [second(Linear()) if at % 2 else Linear() for at in range(4)]
    for at, module in enumerate(modules):
        module.weight.data.mul_(at + 1)
    given, wrong = [torch.randn(3, 6) for _ in modules], []
    torch._dynamo.reset()
    model = torch.compile(lambda module, x: module(x), backend="girih", options={"freeze": freeze})
    with torch.no_grad():
        wanted = [module(x) for module, x in zip(modules, given)]
        for module, x, y in zip(modules, given, wanted):
            torch.testing.assert_close(model(module, x), y)

    def call(at):
        with torch.no_grad():
            for _ in range(1500):
                if not torch.allclose(model(modules[at], given[at]), wanted[at], atol=1e-5):
                    wrong.append(at)

    threads = [threading.Thread(target=call, args=(at,)) for at in range(len(modules))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tensors_and_parameters_of_inference_mode():
    with torch.inference_mode():
        module, x = Linear(), torch.randn(3, 6)
        model = exported(module, x, freeze=True)
        assert model._compiled.quick((x,)) is not None
        torch.testing.assert_close(model(x), module(x))


class Cache(torch.nn.Module):
    """Writes rows of a cache, and reads all of it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("cache", torch.randn(2, 8, 4))

    def forward(self, rows, at):
        self.cache.index_copy_(1, at, rows)
        return (self.cache * 2).sum(1)


@pytest.mark.parametrize("way", ["exported", "compiled"])
def test_a_cache_is_written_where_it_lies(way, monkeypatch):
    from girih.torch import _compiled

    graphs, known = [], _compiled.Compiled.__init__

    def made(self, *args, **how):
        known(self, *args, **how)
        graphs.append(self)

    monkeypatch.setattr(_compiled.Compiled, "__init__", made)
    module, eager = Cache(), Cache()
    rows, at = torch.randn(2, 3, 4), torch.tensor([5, 0, 2])
    run = girih.torch.export(module, (rows, at)) if way == "exported" else torch.compile(module, backend="girih")
    place = module.cache.data_ptr()
    with torch.no_grad():
        for step in range(4):
            rows, at = torch.randn(2, 3, 4), torch.randperm(8)[:3]
            version = module.cache._version
            torch.testing.assert_close(run(rows, at), eager(rows, at))
            torch.testing.assert_close(module.cache, eager.cache)
            assert module.cache._version > version and module.cache.data_ptr() == place
    (graph,) = graphs
    assert graph.replaced
    with pytest.raises(Exception, match="index|range"):
        run(rows, torch.tensor([5, 0, 8]))


def old_rows(cache, rows, at):
    before = cache.clone()
    cache.index_copy_(0, at, rows)
    return before


def views_of_both(cache, rows, at):
    first = cache[0] * 1
    cache.index_copy_(0, at, rows)
    return first, cache[1:], cache


def twice(cache, rows, at):
    cache.index_copy_(0, at, rows)
    cache.index_copy_(0, at + 1, rows * 2)
    return cache.sum()


def added(cache, rows, at):
    cache.index_add_(0, at, rows)
    return cache.sum(0)


def of_itself(cache, rows, at):
    cache.index_copy_(0, at, cache[1:3] + rows)
    return cache.sum(0)


@torch.no_grad()
@pytest.mark.parametrize("function", [old_rows, views_of_both, twice, added, of_itself])
def test_inputs_that_are_written_are_as_in_eager_mode(function):
    run = torch.compile(function, backend="girih")
    for _ in range(3):
        cache, rows, at = torch.randn(6, 4), torch.randn(2, 4), torch.tensor([3, 1])
        same = cache.clone()
        found, wanted = run(cache, rows, at), function(same, rows, at)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(cache, same)


@torch.no_grad()
def test_a_written_input_that_shares_memory_with_another():
    run = torch.compile(lambda cache, rows, at: cache.index_copy_(0, at, rows).sum(), backend="girih")
    at = torch.tensor([3, 1])
    for _ in range(3):
        base, apart = torch.randn(8, 4), torch.randn(2, 4)
        same = base.clone()
        torch.testing.assert_close(run(base[:6], apart, at), same[:6].index_copy_(0, at, apart).sum())
        torch.testing.assert_close(base, same)
        # Rows of the cache itself.
        torch.testing.assert_close(run(base[:6], base[2:4], at), same[:6].index_copy_(0, at, same[2:4].clone()).sum())
        torch.testing.assert_close(base, same)
