"""Forms that kernels of public repositories use: dtypes of pointers, scalars as tiles, helpers with run-time constants."""

import numpy as np
import pytest

import girih
import girih.language as tl

DEVICES = ["cpu", "eval", "sim"]
TYPES = [np.float16, np.float32, np.float64, np.int32]


@girih.jit
def through_blocks(x, y, n, B: tl.constexpr):
    p = tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (B, B), (1, 0))
    q = tl.make_block_ptr(y, (n, n), (n, 1), (0, 0), (B, B), (1, 0))
    d = tl.make_tensor_descriptor(y, (n, n), (n, 1), (B, B))
    tl.static_assert(d.dtype == y.dtype.element_ty and q.dtype.element_ty == q.type.element_ty)
    value = tl.load(p, boundary_check=(0, 1)).to(tl.float32) * 2
    tl.store(q, value.to(q.dtype.element_ty), boundary_check=(0, 1))
    d.store([0, 0], d.load([0, 0]) + value.to(d.dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("n", [3, 4])
def test_blocks_have_a_dtype(n, dtype, device):
    x = np.arange(n * n).reshape(n, n).astype(dtype)
    y = np.zeros_like(x)
    through_blocks[1](x, y, n, 4, device=device)
    assert np.array_equal(y, x * 4)


@girih.jit
def scaled(value, BY: tl.constexpr, OFFSET: tl.constexpr = 0):
    if OFFSET > 2:
        value += 1
    return value * BY + OFFSET


@girih.jit
def runtime_constants(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(y + i, scaled(scaled(value, value, n), 3, tl.load(x + 1)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 3, 7])
def test_constexpr_parameters_of_helpers_take_values_of_run_time(n, device):
    x = np.arange(8, dtype=np.int32) * 2
    y = np.zeros_like(x)
    runtime_constants[1](x, y, n, 8, device=device)
    first = (x + (n > 2)) * x + n
    assert np.array_equal(y, (first + (x[1] > 2)) * 3 + x[1])


@girih.jit
def zeros(N: tl.constexpr):
    return tl.zeros((N,), tl.float32)


@girih.jit
def needs_a_constant(x):
    tl.store(x, zeros(tl.load(x)))


def test_a_constant_that_is_really_needed_is_named():
    with pytest.raises(girih.GirihError, match="must be known at compile time") as caught:
        needs_a_constant[1](np.ones(1, np.int32), device="eval")
    text = str(caught.value)
    assert "the constexpr parameter `N` of `zeros`" in text
    assert "return tl.zeros((N,), tl.float32)" in text


@girih.jit
def scalars(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    first = tl.load(x)
    tile = first[:, None] + i[None, :] + n[None, :]
    tl.static_assert(first[:, None].shape == (1,) and first[None, None].shape == (1, 1))
    tl.store(y + i[None, :], tile)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 5, 16])
def test_scalars_take_new_dimensions(n, device):
    x, y = np.array([7], np.int32), np.zeros(8, np.int32)
    scalars[1](x, y, n, 8, device=device)
    assert np.array_equal(y, 7 + np.arange(8) + n)


@girih.jit
def padded(x, y, n, B: tl.constexpr, PADDING: tl.constexpr):
    d = tl.make_tensor_descriptor(x, (n, n), (n, 1), (1, B), PADDING)
    i = tl.arange(0, B)[None, :]
    for row in range(n + 1):
        tl.store(y + row * B + i, d.load([row, 1]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("n", [1, 3])
def test_descriptors_pad_with_what_was_asked(n, padding, device):
    x = np.arange(1, n * n + 1, dtype=np.float32).reshape(n, n)
    y = np.ones((n + 1, 4), np.float32)
    padded[1](x, y, n, 4, padding, device=device)
    expected = np.full_like(y, np.nan if padding == "nan" else 0)
    expected[:n, : n - 1] = x[:, 1:]
    assert np.array_equal(y, expected, equal_nan=True)


@pytest.mark.parametrize(("dtype", "padding", "words"), [(np.int32, "nan", "is for floats"), (np.float32, "one", "must be")])
def test_a_wrong_padding_is_refused(dtype, padding, words):
    with pytest.raises(girih.GirihError, match=words):
        padded[1](np.ones((1, 1), dtype), np.ones((2, 4), dtype), 1, 4, padding, device="eval")
