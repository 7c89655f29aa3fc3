"""Divisions of integers, and numbers that become integers, through `torch.compile`: what PyTorch gives on processors, or raises."""

import math

import pytest
import torch

import girih.torch

INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


DIVISIONS = {
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "divmod": lambda x, y: (torch.floor_divide(x, y), torch.remainder(x, y)),
    "fmod": torch.fmod,
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "in place": lambda x, y: x.clone().floor_divide_(y),
    "of a sum": lambda x, y: ((x + 1) // (y * 2 - y)).sum(),
    "of a row": lambda x, y: x[None] % y[:, None] if y.dim() else x % y,
}


def outcome(function, *args):
    """The result of a function, or the type and the message of the exception that it raises."""
    try:
        return function(*args)
    except Exception as e:
        return type(e), str(e)


def compare(function, *args):
    given, wanted = outcome(torch.compile(function, backend="girih"), *args), outcome(function, *args)
    if isinstance(wanted, tuple) and isinstance(wanted[0], type):
        assert given == wanted
    else:
        torch.testing.assert_close(given, wanted, rtol=0, atol=0, equal_nan=True)


def integers(dtype, n, zero=None):
    """Numbers other than 0; a 0 at one place."""
    found = torch.randint(1, 100, (n,), dtype=dtype)
    if dtype != torch.uint8:
        found = torch.where(torch.rand(n) < 0.5, -found, found)
    if zero is not None:
        found[zero] = 0
    return found


PAIRS = [(name, dtype) for name in DIVISIONS for dtype in (INTEGERS if name in ("//", "%") else INTEGERS[::2])]


@pytest.mark.parametrize("name, dtype", PAIRS)
def test_a_divisor_that_is_0_is_the_error_of_pytorch(name, dtype):
    for n, zero in ((3, 1), (100, 99), (100, None)):
        compare(DIVISIONS[name], integers(dtype, n), integers(dtype, n, zero))


@pytest.mark.parametrize("name", ["//", "%", "fmod", "floor", "trunc"])
def test_divisors_that_are_one_number(name):
    x = integers(torch.int64, 9)
    for y in (torch.tensor(0), torch.tensor(3), torch.zeros(1, dtype=torch.int32), torch.tensor(0, dtype=torch.uint8)):
        compare(DIVISIONS[name], x, y)
        compare(DIVISIONS[name], y, integers(torch.int64, 9, 4))
    for y in (0, 7, -7):
        torch._dynamo.reset()
        compare(lambda x, y=y: DIVISIONS[name](x, y), x)
    compare(lambda y: 5 // y if name == "//" else 5 % y, integers(torch.int32, 9, 2))
    # Constants, and extents.
    compare(lambda x: DIVISIONS[name](x, torch.zeros(9, dtype=torch.int64)), x)
    compare(lambda x: DIVISIONS[name](x, torch.arange(9, device=x.device)), x)
    compare(lambda x: DIVISIONS[name](x, torch.arange(9, device=x.device) + 1), x)
    compare(lambda x: DIVISIONS[name](x, x.shape[0] - 9 + torch.zeros(9, dtype=torch.int64)), x)


def test_floats_divide_by_0():
    x, y = torch.tensor([1.0, -1.0, 0.0]), torch.zeros(3)
    for name in ("//", "%", "fmod", "floor", "trunc"):
        torch.testing.assert_close(torch.compile(DIVISIONS[name], backend="girih")(x, y), DIVISIONS[name](x, y), equal_nan=True)
    compare(lambda x: x / 0, integers(torch.int32, 4))


#: Floats whose conversion C leaves undefined, or nearly: beyond the ends of 8, 16, 32 and 64 bits on both sides.
NUMBERS = [
    *(s * v for v in (0.5, 1.0, 2.18, 127.6, 128.5, 255.9, 256.2, 300.7, 32768.5, 40000.0, 65536.0, 70000.0) for s in (1, -1)),
    *(s * (2.0**31 + 257 * d) for d in (-300, 0, 1, 300) for s in (1, -1)), 3e9, 5000000259.0, 1e10, -1e10,
    *(s * v for v in (9e18, 2.0**63, 1e19, 1.9e19, 1e20, math.inf) for s in (1, -1)), math.nan,
]  # fmt: skip

CONVERSIONS = {
    "to": lambda x, to: x.to(to),
    "of a sum": lambda x, to: (x + 0).to(to) + 1,
    "type": lambda x, to: x.type(to),
    "copy_": lambda x, to: torch.zeros(x.shape, dtype=to, device=x.device).copy_(x),
    "a part": lambda x, to: torch.zeros((2, *x.shape), dtype=to, device=x.device).index_fill(0, torch.tensor([1]), 1)[1] + x.to(to),
    "into a view": lambda x, to: written(torch.zeros((2, *x.shape), dtype=to, device=x.device), x),
    "cumsum": lambda x, to: x.cumsum(0, dtype=to),
    "sum": lambda x, to: x.sum(dtype=to),
}


def written(whole, x):
    whole[1] = x
    return whole


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("to", [*INTEGERS, torch.uint16, torch.uint32, torch.uint64])
def test_numbers_beyond_an_integer_type_become_what_they_become_in_pytorch(dtype, to):
    x = torch.tensor(NUMBERS, dtype=torch.float64).to(dtype)
    if to is torch.uint32:
        # There PyTorch's vectors and its single elements differ.
        x = x[(x > -(2.0**31)) & (x < 2.0**32)]
    compare(CONVERSIONS["to"], x, to)


@pytest.mark.parametrize("name", CONVERSIONS)
def test_wherever_numbers_become_integers(name):
    for to, dtype in ((torch.uint8, torch.float32), (torch.int8, torch.bfloat16), (torch.int64, torch.float32)):
        x = torch.tensor([-2.18, -1.0, 300.7, 5.5, -40000.0, 3e9], dtype=dtype)
        compare(CONVERSIONS[name], x, to)


def test_a_range_of_negative_numbers_as_bytes():
    compare(lambda x: torch.arange(-3.0, 3.0, dtype=torch.uint8) + x, torch.zeros((), dtype=torch.uint8))
    compare(lambda x: torch.linspace(-3, 3, 4, dtype=torch.uint8) + x, torch.zeros((), dtype=torch.uint8))


COMPARISONS = {
    "comparisons": lambda x, k: (x > k, x >= k, x < k, x <= k, x == k, x != k),
    "arithmetic": lambda x, k: (x + k, k - x, x * k, x & k, torch.where(x > 1, x, k), x.masked_fill(x > 1, k)),
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("shape", [(), (1,), (2,)])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_integer_that_changes_has_the_type_of_the_tensor_beside_it(dtype, shape, name):
    compiled = torch.compile(COMPARISONS[name], backend="girih", dynamic=True)
    for k in (2, -1, -2, -100, 127):
        x = integers(dtype, 2)[: shape[0] if shape else 1].reshape(shape)
        torch.testing.assert_close(compiled(x, k), COMPARISONS[name](x, k), rtol=0, atol=0)


@pytest.mark.parametrize("to", [torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int8])
def test_numbers_beyond_a_float_of_8_bits(dtype, to):
    numbers = [0.0, 100.0, 447.0, 464.0, 465.0, 480.0, 500.0, 57344.0, 61439.0, 61441.0, 65504.0]
    numbers = torch.tensor([*numbers, *(-n for n in numbers)])
    x = numbers.clamp(-128, 127).to(dtype) if dtype is torch.int8 else numbers.to(dtype)
    if x.is_floating_point():
        x = torch.cat([x, torch.tensor([math.inf, -math.inf, math.nan], dtype=dtype)])
    compare(lambda x: x.to(to).float(), x)
    compare(lambda x: torch.zeros(x.shape, dtype=to).copy_(x).float(), x)
    compare(lambda x: (x * 2).to(to).float() + 1, x)


def test_a_product_of_many_numbers_that_change_wraps():
    """It is a number like any other, not a number of elements."""

    def function(x, k):
        return (torch.arange(16) + k).prod() + x

    compiled = torch.compile(function, backend="girih", dynamic=True, options={"device": "eval"})
    for k in (2, 9, -5, 12345):
        x = torch.zeros(3, dtype=torch.int64)
        assert torch.equal(compiled(x, k), function(x, k))
