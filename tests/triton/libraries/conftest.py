"""Libraries of Triton kernels: each function beside PyTorch in float64, forward and backward.

`make triton-libraries` runs these tests with the plugin, so that `device="cuda"` is the host's memory."""

import os

import pytest

# liger-kernel has the same functions in other languages too.
os.environ["LIGER_KERNEL_IMPL_JSD_LOSS_AND_GRAD"] = "triton"
# flash-linear-attention takes the name of Triton's target for that of a device of PyTorch's.
os.environ["TRITON_DEFAULT_BACKEND"] = "cpu"
torch = pytest.importorskip("torch")
import triton  # noqa: E402


def first_alone(prune):
    """Keeps the first of the configurations that fit a launch: most differ in numbers of warps and stages, which change nothing here."""
    return lambda tuner, *args: prune(tuner, *args)[:1]


Autotuner = triton.runtime.Autotuner
Autotuner.prune_configs = first_alone(Autotuner.prune_configs)
# One alone is not measured.
Autotuner._bench = lambda tuner, *args, config, **options: [0.0, 0.0, 0.0]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def leaves(values):
    return [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]


def results(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [v for v in value or () if isinstance(v, torch.Tensor)]


def widened(value):
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.detach().double().requires_grad_(value.requires_grad)


def near(found, expected, within, name):
    assert found.shape == expected.shape, name
    scale = expected.abs().max().clamp(min=1e-30)
    error = ((found.double() - expected).abs().max() / scale).item()
    assert error <= within, f"{name}: {error:.2e} of the greatest number, more than {within:.0e}"


@pytest.fixture
def agree():
    """Runs a function of a library on float32 and one of PyTorch's on float64, and compares results and gradients."""

    def check(found, expected, *given, within=1e-5):
        wide = [widened(v) for v in given]
        reference = results(expected(*wide))
        # A library may write into its operands.
        copies = [v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v for v in given]
        made = results(found(*[v.clone() if isinstance(v, torch.Tensor) and v.requires_grad else v for v in copies]))
        assert len(made) >= len(reference)
        made = made[: len(reference)]
        for i, (a, b) in enumerate(zip(made, reference)):
            near(a.detach(), b.detach(), within, f"result {i}")
        inputs = leaves(wide)
        if inputs:
            ways = [torch.randn_like(a) for a in made]
            torch.autograd.backward(made, [w.clone() for w in ways])
            gradients = torch.autograd.grad(reference, inputs, [w.double() for w in ways])
            for i, (a, b) in enumerate(zip(leaves(copies), gradients)):
                near(a.grad, b, within, f"gradient {i}")

    return check


def made(*shape, grad=True, scale=1.0):
    return (torch.randn(*shape, device="cuda") * scale).requires_grad_(grad)
