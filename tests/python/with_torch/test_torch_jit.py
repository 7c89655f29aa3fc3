"""Kernels of ``@girih.jit`` on tensors of PyTorch."""

import pytest

import girih
import girih.language as tl

torch = pytest.importorskip("torch")


@girih.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, (tl.load(x + i, mask=i < n) * factor).to(out.dtype.element_ty), mask=i < n)


@girih.jit
def copy(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_types(dtype, device):
    x = torch.arange(100).to(getattr(torch, dtype))
    out = torch.zeros_like(x)
    scale[2](x, out, 100, 2.0, BLOCK=64, device=device)
    assert torch.equal(out, x * 2)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "float8_e4m3fn", "float8_e5m2"])
def test_other_types(dtype):
    x = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype))
    out = torch.zeros(4).to(getattr(torch, dtype))
    copy[1](x, out, BLOCK=4)
    assert torch.equal(out.to(torch.float32), x.to(torch.float32))


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="the argument `x`: elements of the type torch.complex64"):
        copy[1](torch.zeros(4, dtype=torch.complex64), torch.zeros(4), BLOCK=4)


def test_tensors_on_another_device_are_refused():
    with pytest.raises(ValueError, match="`x` is on meta"):
        copy[1](torch.zeros(4, device="meta"), torch.zeros(4), BLOCK=4)


def test_a_transposed_tensor_is_passed_with_its_strides():
    @girih.jit
    def transposed(x, rows, columns, out, M: tl.constexpr, N: tl.constexpr):
        i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
        tl.store(out + i * N + j, tl.load(x + i * rows + j * columns))

    x = torch.arange(32, dtype=torch.float32).reshape(4, 8).T
    out = torch.zeros(8, 4)
    transposed[1](x, *x.stride(), out, M=8, N=4)
    assert torch.equal(out, x)


def test_a_view_begins_where_it_begins():
    x = torch.arange(12, dtype=torch.float32)
    out = torch.zeros(4)
    copy[1](x[5:9], out, BLOCK=4)
    assert torch.equal(out, x[5:9])


def test_a_tensor_that_is_too_short_is_refused():
    with pytest.raises(girih.LaunchError, match="`x` holds 4 elements"):
        copy[1](torch.zeros(8)[:4], torch.zeros(8), BLOCK=8)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        square[girih.cdiv(x.numel(), 64),](x, out, x.numel(), BLOCK=64)
        return out

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        square_backward[girih.cdiv(x.numel(), 64),](x, gradient.contiguous(), out, x.numel(), BLOCK=64)
        return out


@girih.jit
def square(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value * value, mask=i < n)


@girih.jit
def square_backward(x, gradient, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n) * tl.load(gradient + i, mask=i < n), mask=i < n)


def test_autograd_goes_through_kernels():
    x = torch.randn(10, 13, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Square.apply, (x,))
    Square.apply(x).sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach())


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tuning_leaves_tensors_as_they_were(store, dtype):
    @girih.autotune([girih.Config({"BLOCK": 32}), girih.Config({"BLOCK": 64})], key=["n"])
    @girih.jit
    def double(x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, (tl.load(x + i, mask=i < n) * 2).to(x.dtype.element_ty), mask=i < n)

    x = torch.arange(100).to(getattr(torch, dtype)).requires_grad_()
    double[lambda meta: (girih.cdiv(100, meta["BLOCK"]),)](x, 100)
    assert torch.equal(x.detach(), torch.arange(100).to(x.dtype) * 2)


@girih.jit
def doubled(x, sx, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * sx, mask=i < n) + tl.load(x + i * sx, mask=i < n), mask=i < n)


DTYPES = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_tensors_are_taken_as_they_lie(dtype, step):
    """Without Python, after the first tensor of a process."""
    x, out = torch.arange(60).to(dtype)[::step][:20], torch.zeros(20, dtype=dtype)
    doubled[1](x, x.stride(0), out, 20, BLOCK=32)
    assert torch.equal(out, x + x)


@pytest.mark.skipif(not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="since PyTorch 2.10")
def test_python_is_not_asked_about_usual_tensors(monkeypatch):
    x, out = torch.arange(20.0), torch.zeros(20)
    doubled[1](x, 1, out, 20, BLOCK=32)

    def never(value, name):
        raise AssertionError(f"{name} was looked at by Python")

    monkeypatch.setattr("girih.kernel.describe_torch", never)
    parameter = torch.nn.Parameter(torch.arange(20.0))
    for given in (x, x + 1, parameter, torch.arange(40.0)[::2], torch.ones(1).expand(20), x.view(4, 5)):
        stride = given.stride(-1)
        doubled[1](given, stride, out, 20, BLOCK=32)
        assert torch.equal(out, (given + given).detach().reshape(-1))
    doubled[1](torch.zeros(0), 1, out, 0, BLOCK=32)
    # Unusual tensors are described or refused by Python.
    for given in (torch._neg_view(x), x.to("meta"), torch.sparse_coo_tensor([[0]], [1.0], (20,))):
        with pytest.raises(AssertionError, match="x was looked at by Python"):
            doubled[1](given, 1, out, 20, BLOCK=32)
