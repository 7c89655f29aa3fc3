"""Complex tensors as pairs of reals: every rule against PyTorch, compiled and exported, with changing sizes."""
import girih.torch
import pytest
import torch

REAL = torch.randn(3, 6, 10, generator=torch.Generator().manual_seed(1))
OTHER = torch.randn(3, 6, 10, generator=torch.Generator().manual_seed(2))


def z(x):
    """A complex tensor of reals."""
    return torch.complex(x, x.flip(-1) + 0.5)


FUNCTIONS = {
    "rfft": lambda x, y: torch.fft.rfft(x),
    "fft": lambda x, y: torch.fft.fft(x, n=7, dim=1),
    "fft of complex": lambda x, y: torch.fft.fft(z(x), norm="ortho"),
    "ifft": lambda x, y: torch.fft.ifft(z(x), norm="forward"),
    "fft2": lambda x, y: torch.fft.fft2(x),
    "rfftn": lambda x, y: torch.fft.rfftn(x, norm="backward"),
    "irfft": lambda x, y: torch.fft.irfft(z(x)),
    "irfft odd": lambda x, y: torch.fft.irfft(z(x), n=11),
    "irfftn": lambda x, y: torch.fft.irfftn(z(x)),
    "hfft": lambda x, y: torch.fft.hfft(z(x)),
    "ihfft": lambda x, y: torch.fft.ihfft(x),
    "shifted": lambda x, y: torch.fft.fftshift(torch.fft.fftn(x), dim=(0, 2)).abs(),
    "stft": lambda x, y: torch.stft(x.reshape(3, -1), 16, 5, window=torch.ones(16), return_complex=True),
    "round trip": lambda x, y: torch.fft.ifft(torch.fft.fft(x, dim=0), dim=0).real,
    "mul": lambda x, y: z(x) * z(y),
    "mul by real": lambda x, y: z(x) * y[0] + x * z(y),
    "mul by scalars": lambda x, y: 2 * z(x) * 1j + (1 - 2j) * x,
    "div": lambda x, y: z(x) / z(y),
    "div by real": lambda x, y: z(x) / (y * y + 1) / 3,
    "reals over complex": lambda x, y: x / z(y) + 1 / z(x),
    "add": lambda x, y: torch.add(z(x), z(y), alpha=2) - x + 1 - (3 - z(y)),
    "parts": lambda x, y: (z(x).real, z(x).imag, z(x).conj().imag, (-z(x)).abs(), (z(x) * z(y)).angle()),
    "exp and log": lambda x, y: torch.exp(z(x)) + torch.log(z(y)),
    "polar": lambda x, y: torch.polar(x.abs(), y),
    "views": lambda x, y: torch.view_as_real(torch.view_as_complex(x.view(3, 6, 5, 2)) * 1j),
    "equal": lambda x, y: (z(x) == z(x)) & (z(x) != z(y)),
    "shapes": lambda x, y: z(x).permute(2, 0, 1)[1:7:2, :, -2].unsqueeze(1).expand(-1, 4, -1).reshape(-1, 3).t(),
    "joined": lambda x, y: torch.cat([z(x), z(y)[:, :1]], 1).flip(0).roll((1, 2), (1, 2)),
    "stacked": lambda x, y: torch.stack([z(x), z(y)], -1).squeeze().select(-1, 1),
    "split": lambda x, y: [p.sum(-1) for p in z(x).split(4, -1)] + list(z(y).unbind(0)),
    "padded": lambda x, y: torch.nn.functional.pad(z(x), (1, 2, 0, 1)),
    "chosen": lambda x, y: torch.where(x > y, z(x), z(y)),
    "indexed": lambda x, y: z(x)[:, torch.tensor([0, 2, 2])].index_select(2, torch.tensor([1, 3])),
    "products": lambda x, y: z(x) @ z(y).transpose(1, 2) + z(x)[0] @ z(y)[1].t(),
    "sums": lambda x, y: z(x).sum() + z(x).mean((0, 2)).cumsum(0),
    "filled": lambda x, y: torch.zeros(3, 1, 10, dtype=torch.complex64) + torch.full_like(z(x), 2) + torch.ones_like(z(y)),
    "cast": lambda x, y: (z(x).to(torch.complex128) + x.to(torch.complex64)).to(torch.complex64),
    "rotary": lambda x, y: torch.view_as_real(torch.view_as_complex(x.view(3, 6, 5, 2)) * z(y)[:, :, :5]).flatten(2),
}


def agree(found, wanted):
    for f, w in zip(*(v if isinstance(v, (list, tuple)) else [v] for v in (found, wanted)), strict=True):
        assert f.dtype == w.dtype and f.shape == w.shape
        if w.is_complex():
            f, w = torch.view_as_real(f.resolve_conj()), torch.view_as_real(w.resolve_conj())
        torch.testing.assert_close(f, w, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled(name):
    f = FUNCTIONS[name]
    torch._dynamo.reset()
    girih.torch.report(clear=True)
    agree(torch.compile(f, backend="girih")(REAL, OTHER), f(REAL, OTHER))
    report = girih.torch.report(clear=True)
    assert report.native, str(report)


@pytest.mark.parametrize("name", ["mul", "div", "fft of complex", "irfft", "rfft", "joined", "sums", "equal"])
def test_changing_sizes(name):
    f = FUNCTIONS[name]
    torch._dynamo.reset()
    compiled = torch.compile(f, backend="girih", dynamic=True)
    for sizes in ((3, 6, 10), (4, 5, 10), (2, 3, 12), (3, 7, 9)):
        x, y = torch.randn(2, *sizes)
        agree(compiled(x, y), f(x, y))


def test_a_complex_argument_and_result():
    f = lambda a: (a * a.conj(), a[:, 1:])
    torch._dynamo.reset()
    compiled = torch.compile(f, backend="girih")
    for a in (z(REAL), z(REAL).conj(), z(REAL).transpose(0, 1), z(REAL).to(torch.complex128)):
        agree(compiled(a), f(a))


def test_what_has_no_rule_runs_in_pytorch():
    f = lambda x: torch.sqrt(z(x)) * 2
    torch._dynamo.reset()
    girih.torch.report(clear=True)
    with pytest.warns(UserWarning, match="aten.sqrt runs in PyTorch: it has no rule for complex numbers"):
        agree(torch.compile(f, backend="girih")(REAL), f(REAL))
    (graph,) = girih.torch.report().graphs
    assert [left.operation for left in graph.left] == ["aten.sqrt"] and len(graph.parts) == 2


@pytest.mark.parametrize("n", [60, 64, 65, 96, 1000, 1024, 2 * 61, 67, 134])
def test_long_transforms_in_exported_models(n):
    class Spectrum(torch.nn.Module):
        def forward(self, x):
            spectrum = torch.fft.rfft(x)
            return spectrum, torch.fft.irfft(spectrum, n=n), torch.fft.fft2(x)

    x = torch.randn(3, n)
    found, wanted = girih.torch.export(Spectrum(), (x,))(x), Spectrum()(x)
    for f, w in zip(found, wanted):
        assert (f - w).abs().max() <= 1e-5 * w.abs().max()


def test_an_exported_model_names_what_has_no_rule():
    class Root(torch.nn.Module):
        def forward(self, x):
            return torch.sqrt(torch.fft.rfft(x))

    with pytest.raises(girih.ProgramError) as error:
        girih.torch.export(Root(), (torch.randn(4, 8),))
    assert [d.message for d in error.value.diagnostics] == ["aten.sqrt: it has no rule for complex numbers"]


def test_long_transforms_stay_with_the_library():
    torch._dynamo.reset()
    girih.torch.report(clear=True)
    with pytest.warns(UserWarning, match="aten._fft_r2c runs in PyTorch: a library does long transforms faster"):
        torch.compile(lambda x: torch.fft.rfft(x + 1).abs(), backend="girih")(torch.randn(4, 500))


def test_complex_buffers_arguments_and_results_of_exported_models():
    class Rotary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("turns", torch.polar(torch.ones(8, 5), torch.randn(8, 5)))

        def forward(self, x, w):
            y = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * self.turns
            return torch.view_as_real(y).flatten(2), y * w

    x, w = torch.randn(2, 8, 10), torch.randn(5, dtype=torch.complex64)
    model = Rotary()
    exported = girih.torch.export(model, (x, w))
    agree(exported(x, w), model(x, w))
    model.turns.mul_(2)
    agree(exported(x, w), model(x, w))
    with pytest.raises(girih.frontend.errors.GirihError, match="argument `w`"):
        exported(x, w.real)
