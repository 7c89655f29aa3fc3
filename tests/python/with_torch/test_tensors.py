"""Tensors of PyTorch whose memory does not tell their elements: refused or resolved, wherever they enter."""

import numpy as np
import pytest
import torch

import girih
import girih.torch
from girih import _tensors


@girih.jit
def double(x, out, n, BLOCK: girih.constexpr):
    i = girih.arange(0, BLOCK)
    girih.store(out + i, girih.load(x + i, mask=i < n) * 2, mask=i < n)


def misaligned(dtype, n=8):
    """A tensor that begins a byte after an element would."""
    size = torch.empty(0, dtype=dtype).element_size()
    return torch.from_numpy(np.zeros(n * size + 64, np.uint8)[1 : 1 + n * size].view(torch.empty(0, dtype=dtype).numpy().dtype))


def negated():
    return torch.complex(torch.zeros(8), torch.ones(8)).conj().imag


def resized(size):
    """A tensor whose storage was made smaller, as FSDP does with weights that are not in use."""
    tensor = torch.ones(8)
    tensor.untyped_storage().resize_(size)
    return tensor


ODD = {
    "negative": (lambda: torch._neg_view(torch.ones(8)), r"negates when it is read \(`is_neg\(\)`\); pass `x.resolve_neg\(\)`"),
    "negative part": (negated, "resolve_neg"),
    "sparse": (lambda: torch.ones(8).to_sparse(), r"has the layout torch.sparse_coo; pass `x.to_dense\(\)`"),
    "without memory": (lambda: torch._efficientzerotensor(8), "has no memory of its own"),
    "freed": (lambda: resized(0), "has no memory of its own"),
    "misaligned f4": (lambda: misaligned(torch.float32), "its elements of 4 bytes do not divide"),
    "misaligned i8": (lambda: misaligned(torch.int64), "its elements of 8 bytes do not divide"),
    "misaligned f2": (lambda: misaligned(torch.float16), "its elements of 2 bytes do not divide"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("at", [0, 1])
def test_kernels_refuse(name, at):
    make, why = ODD[name]
    tensors = [torch.ones(8), torch.ones(8)]
    tensors[at] = make()
    with pytest.raises(ValueError, match=f"the argument `{'x' if at == 0 else 'out'}` is a tensor that .*{why}"):
        double[(1,)](*tensors, 8, BLOCK=8)


def test_what_is_resolved_is_taken():
    out = torch.empty(8)
    double[(1,)](negated().resolve_neg().contiguous(), out, 8, BLOCK=8)
    assert out.tolist() == [-2.0] * 8
    # An empty tensor has no memory either, and needs none.
    double[(1,)](torch.empty(0), out, 0, BLOCK=8)


@pytest.mark.parametrize("name", ["negative", "negative part", "misaligned f4", "without memory"])
def test_models_resolve(name):
    x = ODD[name][0]()
    model = girih.Model.from_expr("x*2 + 1", x="f32[8]")
    assert np.array_equal(model(x), (x * 2 + 1).numpy())
    compiled = torch.compile(lambda x: x * 2 + 1, backend="girih")
    assert torch.equal(compiled(x), x * 2 + 1)
    if name != "without memory":
        assert torch.equal(girih.torch.export(Affine(), (torch.ones(8),))(x), x * 2 + 1)


class Affine(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 1


def test_calls_with_tensors_that_look_alike():
    """The second call on tensors that look alike goes the short way, and any other call works as before."""
    model = girih.Model.from_expr("a + b", a="f32[2, 8]", b="f32[8]")
    a, b = torch.randn(2, 8), torch.randn(8, requires_grad=True)
    want = (a + b).detach().numpy()
    for _ in range(3):
        np.testing.assert_array_equal(model(a, b), want)
        np.testing.assert_array_equal(model(b=b, a=a), want)
        np.testing.assert_array_equal(model.run(None, {"a": a, "b": b.detach().numpy()})[0], want)
    assert model._quick((a, b)) is not None and model._quick((a, b.detach().numpy())) is not None
    first = model(a, b)
    assert isinstance(first, np.ndarray) and not np.may_share_memory(first, model(a, b))
    for other in (a.t().contiguous().t(), a.double(), torch.randn(8, 2), a.as_subclass(type("Mine", (torch.Tensor,), {})), a.to_sparse(), a.to("meta"), resized(32)):
        assert model._quick((other, b)) is None
    for name, (make, _) in ODD.items():
        if "misaligned i8" != name:
            assert model._quick((a, make())) is None, name
    with pytest.raises(girih.ProgramError):
        model(a.double(), b)
    np.testing.assert_array_equal(model(a.t().contiguous().t(), b), want)


def test_calls_of_a_module_with_arrays_and_tensors():
    linear = torch.nn.Linear(8, 4)
    model = girih.Model.from_torch(linear, (torch.randn(3, 8),))
    for x in (torch.randn(3, 8), np.random.rand(3, 8).astype("f4")):
        for _ in range(3):
            found = model(x)
            want = linear(torch.as_tensor(x)).detach().numpy()
            assert isinstance(found, np.ndarray)
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
        assert model._quick((x,), None) is not None
        assert model._quick((x[::2],), None) is None and model._quick((x, x), None) is None
        with torch.no_grad():
            linear.weight.mul_(2)


def test_models_take_what_numpy_does_not():
    x = torch.randn(4, 8, requires_grad=True)
    assert np.allclose(girih.Model.from_expr("x*2", x="f32[4,8]")(x), x.detach().numpy() * 2)
    pytest.importorskip("ml_dtypes")
    half = torch.randn(4, 8).bfloat16()
    given = girih.Model.from_expr("x*2", x="bf16[4,8]")(half)
    assert np.array_equal(np.asarray(given, np.float32), (half * 2).float().numpy())
    with pytest.raises(girih.ProgramError, match="input `x` is not an array of float32: it is a tensor that has the layout"):
        girih.Model.from_expr("x*2", x="f32[8]")(torch.ones(8).to_sparse())


@pytest.mark.parametrize("make, said", [
    (lambda: resized(0), "more elements than its storage"),
    (lambda: resized(28), "more elements than its storage"),
    (lambda: torch.ones(8, device="meta"), "on the device meta"),
    (lambda: torch.ones(8).to_mkldnn(), "has the layout torch._mkldnn"),
])  # fmt: skip
def test_models_refuse_tensors_without_elements(make, said):
    with pytest.raises(girih.ProgramError, match=f"input `x` is not an array of float32: it is a tensor .*{said}"):
        girih.Model.from_expr("x*2", x="f32[8]")(make())


def test_conjugated_arguments_of_a_graph():
    z = torch.complex(torch.randn(8), torch.randn(8))
    f = lambda z: z * 2 + z.conj()  # noqa: E731
    compiled = torch.compile(f, backend="girih")
    for given in (z, z.conj(), z.conj().t(), torch.view_as_complex(torch.view_as_real(z)).conj()):
        torch.testing.assert_close(compiled(given), f(given))
    parts = torch.compile(lambda y: y + 1, backend="girih")
    torch.testing.assert_close(parts(z.conj().imag), z.conj().imag + 1)


MODEL = girih.Model.from_expr("torch.softmax(x, -1)", x="f32[8,8]")


def test_results_are_written_to_tensors():
    x = torch.rand(8, 8)
    for give in (lambda o: o, lambda o: [o], lambda o: (o,), lambda o: {MODEL.outputs[0].name: o}):
        out = torch.zeros(8, 8)
        assert MODEL(x, out=give(out)) is out
        torch.testing.assert_close(out, torch.softmax(x, -1))
    # PyTorch counts that the tensor was written to.
    saved = torch.ones(8, 8)
    before = saved._version
    MODEL(x, out=saved)
    assert saved._version > before


BAD = {
    "requires a gradient": (lambda: torch.zeros(8, 8, requires_grad=True), r"is a tensor that requires a gradient; pass `x.detach\(\)`"),
    "negative": (lambda: torch._neg_view(torch.zeros(8, 8)), "is a tensor that PyTorch negates when it is read"),
    "misaligned": (lambda: misaligned(torch.float32, 64).view(8, 8), "is a tensor that begins at"),
    "transposed": (lambda: torch.zeros(8, 8).t(), "must be C-contiguous, aligned and writable"),
    "another shape": (lambda: torch.zeros(4, 8), r"is float32\[4, 8\]: the run gives float32\[8, 8\]"),
    "another type": (lambda: torch.zeros(8, 8, dtype=torch.float64), r"is float64\[8, 8\]: the run gives float32\[8, 8\]"),
    "text": (lambda: "zeros", "is str: the run gives float32"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_results_are_not_written_to(name):
    make, why = BAD[name]
    with pytest.raises(girih.ProgramError, match=why):
        MODEL(torch.rand(8, 8), out=make())


def test_a_result_over_an_input():
    x = torch.rand(8, 8)
    with pytest.raises(girih.ProgramError, match="overlaps another array of the run"):
        MODEL(x, out=x)


def test_devices_refuse(monkeypatch):
    """The checks apply to tensors on a GPU too: here a tensor that says it is on one."""
    from girih import device

    class There:
        def __init__(self, tensor):
            self.tensor = tensor

        def __getattr__(self, name):
            return torch.device("cuda", 0) if name == "device" else getattr(self.tensor, name)

    for make in (negated, lambda: misaligned(torch.float32)):
        with pytest.raises(girih.GirihError, match="an array is a tensor that"):
            device.view(There(make()))


def test_programs_of_cutile_refuse():
    from girih.cutile import arrays

    for make in (negated, lambda: misaligned(torch.float32)):
        with pytest.raises(TypeError, match="an argument is a tensor that"):
            arrays._torch_capsule(make())
    assert arrays._torch_capsule(torch.ones(8)) is not None


def test_problems_are_found_without_pytorch():
    """The module imports nothing of PyTorch's: packages without it load it."""
    assert "import torch" not in open(_tensors.__file__).read()
