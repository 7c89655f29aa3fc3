"""Empty tensors, integers that change from call to call, and sums of bools, through `torch.compile`."""

import math
import random

import pytest
import torch
import torch.nn.functional as F

import girih
import girih.torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def same(function, *args):
    """Asserts that the compiled function gives PyTorch's result, or that both raise."""
    compiled = torch.compile(function, backend="girih")
    try:
        expected = function(*args)
    except Exception:
        with pytest.raises(Exception):
            compiled(*args)
        return
    torch.testing.assert_close(compiled(*args), expected, rtol=2e-5, atol=2e-5, equal_nan=True)


INDEXED = {
    "x[i]": lambda x, i: x[i],
    "x[:, i]": lambda x, i: x[:, i] * 2,
    "x[i, i]": lambda x, i: x[i, i],
    "index_select": lambda x, i: x.index_select(1, i),
    "embedding": lambda x, i: F.embedding(i, x),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take": lambda x, i: x.take(i),
    "take_along_dim": lambda x, i: torch.take_along_dim(x, i[:, None], 0),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], torch.ones(i.shape[0], 1)),
    "index_add": lambda x, i: x.index_add(0, i, torch.ones(i.shape[0], x.shape[1])),
    "index_put": lambda x, i: x.index_put((i,), torch.ones(i.shape[0], x.shape[1]), accumulate=True),
    "index_fill": lambda x, i: x.index_fill(1, i, 2.0),
    "one_hot": lambda x, i: F.one_hot(i, 6).sum(0) + x.sum(),
}


@pytest.mark.parametrize("shape", [(6, 6), (0, 6), (6, 0), (0, 0)])
@pytest.mark.parametrize("name", INDEXED)
def test_an_empty_index(name, shape):
    same(INDEXED[name], torch.randn(shape), torch.zeros(0, dtype=torch.int64))


@pytest.mark.parametrize("shape", [(0, 6), (6, 0), (0, 0)])
@pytest.mark.parametrize("name", INDEXED)
def test_an_index_into_nothing_is_an_error(name, shape):
    same(INDEXED[name], torch.randn(shape), torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize("m", [0, 3])
@pytest.mark.parametrize("k", [0, 4])
@pytest.mark.parametrize("n", [0, 5])
def test_empty_products_and_what_follows_them(m, k, n):
    def f(a, b, c, w):
        y = torch.addmm(c, a, b) + F.linear(a, b.T, c)
        return y, y.sum(0), torch.softmax(y, -1), torch.cat([y, y], 1).T @ w, y.mean(), y.cumsum(0), y[:, :0]

    same(f, torch.randn(m, k), torch.randn(k, n), torch.randn(n), torch.randn(m, 2))


def test_a_sum_of_nothing_is_positive_zero():
    y = torch.compile(lambda x: (x.sum(), x.sum(0)), backend="girih")(torch.randn(0, 5))
    assert all(not v.signbit().any() and not v.any() for v in y)


TARGET = torch.tensor([0, 1, 2, 3, 1])
CHANGING = {
    "add": lambda x, k: torch.add(x, x, alpha=k),
    "sub": lambda x, k: torch.sub(x, 2 * x, alpha=k),
    "triu": lambda x, k: x.triu(k),
    "tril": lambda x, k: x.tril(k),
    "diagonal": lambda x, k: x.diagonal(k) * 2,
    "diag_embed": lambda x, k: torch.diag_embed(x, k),
    "vector_norm": lambda x, k: torch.linalg.vector_norm(x, k + 1, dim=1),
    "threshold": lambda x, k: F.threshold(x, k - 2, k),
    "leaky_relu": lambda x, k: F.leaky_relu(x, k),
    "elu": lambda x, k: F.elu(x, k),
    "softplus": lambda x, k: F.softplus(x, k + 1, 2),
    "softshrink": lambda x, k: F.softshrink(x, k),
    "hardtanh": lambda x, k: F.hardtanh(x, -k, k),
    "clamp": lambda x, k: x.clamp(-k, k),
    "addmm": lambda x, k: torch.addmm(x, x, x, beta=k, alpha=k + 1),
    "addcmul": lambda x, k: torch.addcmul(x, x, x, value=k),
    "std": lambda x, k: torch.std(x, dim=1, correction=k),
    "var": lambda x, k: torch.var(x, correction=k),
    "cross_entropy": lambda x, k: F.cross_entropy(x, TARGET, ignore_index=k),
    "slice_scatter": lambda x, k: torch.slice_scatter(x, x[:1] * 2, 0, k, k + 1),
    "index_add": lambda x, k: x.index_add(0, TARGET[:2], x[:2], alpha=k),
    "full": lambda x, k: x + torch.full_like(x, k),
    "pad": lambda x, k: F.pad(x, (1, 1), value=k),
    "nan_to_num": lambda x, k: torch.nan_to_num(x / x.new_zeros(()), k, k, k),
    "logit": lambda x, k: torch.logit(x.sigmoid(), k),
    "roll": lambda x, k: x.roll(k, 1),
    "kthvalue": lambda x, k: x.kthvalue(k + 1, 1).values,
}


@pytest.mark.parametrize("name", CHANGING)
def test_an_integer_that_changes(name):
    function = CHANGING[name]
    compiled = torch.compile(function, backend="girih")
    x = torch.randn(5, 5)
    for k in (1, 2, 3, 0, 1):
        torch.testing.assert_close(compiled(x, k), function(x, k), rtol=1e-4, atol=1e-4, equal_nan=True)


def test_bools_add_as_or():
    yes, at = torch.tensor([True, True, False, True]), torch.tensor([0, 0, 1, 2])

    def f(z):
        return (
            z.scatter_add(0, at, yes),
            z.index_add(0, at, yes),
            z.index_put((at,), yes, accumulate=True),
            z.scatter_reduce(0, at, yes, "sum"),
            z.scatter_reduce(0, at, yes, "prod"),
            F.pad(z, (1, 1), value=True),
            torch.sum(yes[None] | yes[:, None], 0, dtype=torch.bool),
        )

    same(f, torch.zeros(4, dtype=torch.bool))
    same(f, torch.ones(4, dtype=torch.bool))


SOURCES = {
    "index_add": lambda x, i, s: x.index_add(-1, i, s, alpha=2),
    "index_copy": lambda x, i, s: x.index_copy(-1, i, s),
    "index_reduce": lambda x, i, s: x.index_reduce(-1, i, s, "prod"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_would_be_repeated_is_an_error(name):
    f = SOURCES[name]
    compiled = torch.compile(f, backend="girih")
    x, at = torch.ones(3, 2, 5), torch.tensor([0, 3, 2])
    # First as it should be, then with one element, or too many, along an axis that is not indexed; the sizes become symbols.
    torch.testing.assert_close(compiled(x, at, torch.full((3, 2, 3), 2.0)), f(x, at, torch.full((3, 2, 3), 2.0)))
    for size in ((3, 1, 3), (1, 2, 3), (3, 4, 3), (3, 1, 0)):
        with pytest.raises(Exception):
            f(x, at[: size[-1]], torch.ones(size))
        with pytest.raises(Exception):
            compiled(x, at[: size[-1]], torch.ones(size))
    x, source = torch.ones(4, 3, 5), torch.full((4, 3, 2), 2.0)
    torch.testing.assert_close(compiled(x, at[:2], source), f(x, at[:2], source))


# Functions with tensors of the shapes that they take; then each with other shapes, which would be broadcast.
FITTING = {
    "diagonal_scatter": (
        lambda x, y: torch.diagonal_scatter(x, y, 1, -2, -1),
        [(2, 4, 5), (2, 4)],
        [[(2, 4, 5), (2, 1)], [(2, 4, 5), (1, 4)], [(2, 4, 5), (2, 5)], [(2, 1, 5), (2, 4)], [(2, 4, 2), (2, 4)]],
    ),
    "select_scatter": (
        lambda x, y: torch.select_scatter(x, y, 1, 2),
        [(2, 4, 5), (2, 5)],
        [[(2, 4, 5), (1, 5)], [(2, 4, 5), (2, 1)], [(2, 4, 6), (2, 5)], [(1, 4, 5), (2, 5)]],
    ),
    "slice_scatter": (
        lambda x, y: torch.slice_scatter(x, y, 1, 1, 3),
        [(2, 4, 5), (2, 2, 5)],
        [[(2, 4, 5), (2, 3, 5)], [(3, 4, 5), (2, 2, 5)], [(2, 4, 5), (2, 5)]],
    ),
    "index_add": (
        lambda x, y: x.index_add(0, torch.zeros(1, dtype=torch.int64), y),
        [(3,), (1,)],
        [[(3,), ()], [(), (1,)], [(1,), ()]],
    ),
    "index_select": (
        lambda x, y: x.index_select(0, y.abs().clamp(0, 0).long()),
        [(3,), (2,)],
        [[(3,), (1, 1)], [(3,), (1, 2)], [(), (1, 1)]],
    ),
    "lu_unpack": (
        lambda x, y: torch.lu_unpack(x, y.abs().to(torch.int32).clamp(1, 3)),
        [(2, 4, 3), (2, 3)],
        [[(2, 4, 3), (2, 1)], [(2, 4, 3), (1, 3)], [(2, 4, 1), (2, 3)], [(2, 2, 3), (2, 3)]],
    ),
    "soft_margin_loss": (F.soft_margin_loss, [(4, 5), (4, 5)], [[(1, 5), (4, 5)], [(5,), (4, 5)], [(4, 1), (4, 5)]]),
}


@pytest.mark.parametrize("name", FITTING)
def test_operands_that_would_be_broadcast_are_an_error(name):
    f, right, wrong = FITTING[name]
    for dynamic in (False, None):
        torch._dynamo.reset()
        compiled = torch.compile(f, backend="girih", dynamic=dynamic)
        given = [torch.randn(shape) for shape in right]
        torch.testing.assert_close(compiled(*given), f(*given))
        for shapes in wrong:
            given = [torch.randn(shape) for shape in shapes]
            with pytest.raises(Exception):
                f(*given)
            with pytest.raises(Exception):
                compiled(*given)


def test_a_class_outside_is_an_error():
    f = torch.compile(lambda x: F.one_hot(x, 3), backend="girih")
    for wrong in (5, 3, -1):
        with pytest.raises(Exception):
            f(torch.tensor([0, wrong]))
    assert f(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("shapes", [((20, 8), (3, 8, 16)), ((3, 8, 16), (16, 24)), ((8, 24), (24, 16)), ((3, 8, 16), (3, 16, 8))])
@pytest.mark.parametrize("ends", [(8, 8, 16), (0, 0, 16), (1, 5, 16), (16, 16, 16)])
def test_products_of_groups(shapes, ends):
    a, b = (torch.randn(s, dtype=torch.bfloat16) for s in shapes)
    along = {(2, 3): a.shape[0], (3, 2): b.shape[1], (2, 2): a.shape[1]}.get((a.dim(), b.dim()))
    offs = None if along is None else torch.tensor(ends, dtype=torch.int32) + (along - 16)
    f = lambda a, b: torch.nn.functional.grouped_mm(a, b, offs=offs)
    torch._dynamo.reset()
    girih.torch.report(clear=True)
    found, wanted = torch.compile(f, backend="girih")(a, b), f(a, b)
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)
    assert girih.torch.report(clear=True).native


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("alpha", [0, 1])
def test_infinite_products_times_nothing(dtype, alpha):
    """BLAS leaves a product times 0 out."""
    x, c = torch.full((2, 2), float("inf"), dtype=dtype), torch.ones(2, 2, dtype=dtype)
    same(lambda c, x, k: torch.addmm(c, x, x, alpha=k), c, x, alpha)
    same(lambda c, x, k: torch.addmv(c[0], x, x[0], alpha=k), c, x, alpha)
    same(lambda c, x, k: torch.addbmm(c, x[None], x[None], alpha=k), c, x, alpha)
    same(lambda c, x: torch.addmm(c, x, -x, alpha=alpha, beta=0), c, x)


def test_numbers_are_exact_to_the_last_bit():
    """The ends of f32 too: one more bit, and no f32 would hold them."""
    rng = random.Random(5)
    numbers = [rng.choice((-1, 1)) * rng.random() * 10.0 ** rng.randrange(-300, 300) for _ in range(40)]
    numbers += [1 / 3, 5e-324, 2.2250738585072014e-308, torch.finfo(torch.float64).max, torch.finfo(torch.float32).min]
    least = torch.finfo(torch.float32).min

    def f(x):
        full = [torch.full((1,), v, dtype=torch.float64, device=x.device) for v in numbers]
        return [x * 0 + v for v in numbers], full, torch.scalar_tensor(least, device=x.device), torch.where(x > 2, 1.0, least)

    x = torch.ones(1, dtype=torch.float64)
    girih.torch.report(clear=True)
    given = torch.compile(f, backend="girih", options={"device": "eval"})(x)
    torch.testing.assert_close(given, f(x), rtol=0, atol=0)
    assert girih.torch.report(clear=True).native


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lengths_do_not_leave_the_range(dtype):
    sizes = [0.0, -0.0, 1.0, 3.0, 1e-30, 1e30, math.inf, -math.inf, math.nan] + [1e-200, 1e200] * (dtype is torch.float64)
    x, y = (t.flatten() for t in torch.meshgrid(*[torch.tensor(sizes, dtype=dtype)] * 2, indexing="ij"))
    given = torch.compile(torch.hypot, backend="girih")(x, y)
    torch.testing.assert_close(given, torch.hypot(x, y), rtol=4 * torch.finfo(dtype).eps, atol=0, equal_nan=True)


@pytest.mark.parametrize("alpha", [math.inf, math.nan, -1.0, 0.0])
@pytest.mark.parametrize("name", ["elu", "celu"])
def test_exponentials_below_nothing(name, alpha):
    if name == "celu" and alpha == 0.0:
        return
    function = lambda x: getattr(torch.nn.functional, name)(x, alpha)
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan])
    torch.testing.assert_close(torch.compile(function, backend="girih")(x), function(x), equal_nan=True)


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.3, -0.3, 2.5, -2.5, 1e-30, -1e-30, 1e30, -1e30, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floored_quotients_with_their_signs(dtype):
    x, y = torch.cartesian_prod(*[torch.tensor(SPECIAL, dtype=dtype)] * 2).unbind(1)
    expected = x // y
    got = torch.compile(lambda x, y: x // y, backend="girih")(x, y)
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
    number = ~expected.isnan()
    assert torch.equal(got.signbit()[number], expected.signbit()[number])


@pytest.mark.parametrize("power", [0.5, -0.5, 2, -1, 3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_known_powers_of_special_numbers(dtype, power):
    x = torch.tensor(SPECIAL * 4).to(dtype)
    got, expected = torch.compile(lambda x: x**power, backend="girih")(x), x**power
    torch.testing.assert_close(got, expected, equal_nan=True)
    assert torch.equal(got.signbit() & ~got.isnan(), expected.signbit() & ~got.isnan())


@pytest.mark.parametrize("terms", [1, 3, 33, 127, (17, 18, 33, 64)])
def test_products_of_pairs_whose_last_has_one_term(terms):
    """A processor adds two products of bf16, or of bytes, at once: a zero stands beside the last of an odd number of terms."""
    several = terms if isinstance(terms, tuple) else (terms,)
    compiled = torch.compile(torch.matmul, backend="girih", dynamic=len(several) > 1)
    for k in several:
        # Behind the elements are others, which are not read.
        x, y = (torch.full((n * k + 64,), math.nan, dtype=torch.bfloat16)[: n * k] for n in (40, 48))
        x, y = x.copy_(torch.randn(40 * k)).view(40, k), y.copy_(torch.randn(48 * k)).view(k, 48)
        torch.testing.assert_close(compiled(x, y).double(), x.double() @ y.double(), rtol=1e-2, atol=1e-2 * k**0.5)
        x[3, -1], y[-1, 5] = math.inf, math.nan
        want = x.float() @ y.float()
        got = compiled(x, y)
        assert torch.equal(got.isnan(), want.isnan()) and torch.equal(got.isinf(), want.isinf())
        if len(several) == 1:
            x, y = (torch.randint(-128, 128, size, dtype=torch.int8) for size in ((40, k), (k, 48)))
            assert torch.equal(torch.compile(torch._int_mm, backend="girih")(x, y), x.int() @ y.int())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8])
def test_the_complement_of_erf_where_that_is_nearly_1(dtype):
    x = torch.arange(10).to(dtype) if dtype == torch.uint8 else torch.linspace(-3, 9, 97, dtype=dtype)
    torch.testing.assert_close(torch.compile(torch.erfc, backend="girih")(x), torch.erfc(x), rtol=2e-6 if x.itemsize < 8 else 1e-13, atol=0)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode, dims", [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)])
def test_samples_at_positions_that_are_not_numbers(mode, dims, padding):
    x = torch.arange(1.0, 121.0).reshape(1, 2, *((3, 4, 5) if dims == 3 else (6, 10)))
    grid = torch.rand(1, *(1,) * (dims - 1), 12, dims) * 2.4 - 1.2
    for at, position in enumerate((math.nan, math.inf, -math.inf)):
        for axis in range(dims):
            grid[..., at * 3 + axis, axis] = position
    for align in (False, True):
        same(lambda x, g: F.grid_sample(x, g, mode, padding, align), x, grid)
