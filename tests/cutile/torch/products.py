"""Products that PyTorch computes for tensors of the device round as a GPU's: f16 and bf16 once, f32 to tf32 where that is allowed."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def tf32(x):
    """To ten bits, to nearest, ties away from zero, by arithmetic on the significand."""
    significand, exponent = torch.frexp(x.double())
    scaled = significand * 2**11
    return torch.ldexp(torch.sign(scaled) * torch.floor(scaled.abs() + 0.5) / 2**11, exponent)


def ulps(given, exact):
    """The greatest error in units in the last place of the type of `given`."""
    step = torch.finfo(given.dtype).eps * 2.0 ** torch.floor(torch.log2(exact.abs().clamp_min(1e-30)))
    return ((given.cpu().double() - exact).abs() / step).max().item()


# Positive, so that a sum has no cancellation: half a last place is what one rounding may lose, and f32's sum a little more.
for dtype in (torch.float16, torch.bfloat16):
    a, b = (torch.rand(s, device="cuda").to(dtype) for s in ((33, 700), (700, 17)))
    exact = a.cpu().double() @ b.cpu().double()
    bias = torch.rand(17, device="cuda").to(dtype)
    results = {
        "@": a @ b, "matmul": torch.matmul(a, b), "mm": a.mm(b), "bmm": torch.bmm(a[None], b[None])[0],
        "einsum": torch.einsum("ij,jk->ik", a, b), "linear": F.linear(a, b.T, bias), "addmm": torch.addmm(bias, a, b),
    }  # fmt: skip
    for name, y in results.items():
        assert y.dtype == dtype and y.is_cuda, name
        wanted = exact + bias.cpu().double() if name in ("linear", "addmm") else exact
        assert ulps(y, wanted) <= 0.51, (name, dtype, ulps(y, wanted))
    q, k, v = (torch.rand(2, 4, 50, 16, device="cuda").to(dtype) for _ in range(3))
    wide = [t.cpu().double() for t in (q, k, v)]
    wanted = torch.softmax(wide[0] @ wide[1].mT / 4, -1) @ wide[2]
    assert ulps(F.scaled_dot_product_attention(q, k, v), wanted) <= 0.51

a, b = torch.randn(20, 300, device="cuda", requires_grad=True), torch.randn(300, 9, device="cuda")
bias = torch.randn(9, device="cuda")
host = [t.detach().cpu() for t in (a, b, bias)]
full, short = host[0].double() @ host[1].double(), tf32(host[0]) @ tf32(host[1])
assert (full - short).abs().max() > 1e-3
for allowed, wanted in ((False, full), (True, short), (False, full)):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    for y, more in ((a @ b, 0), (F.linear(a, b.T, bias), host[2].double()), (torch.addmm(bias, a, b), host[2].double())):
        assert (y.detach().cpu().double() - wanted - more).abs().max() < 5e-5
    # What is the host's stays exact.
    assert (host[0] @ host[1] - full).abs().max() < 5e-5
torch.backends.cuda.matmul.allow_tf32 = True
(a @ b).sum().backward()
assert (a.grad.cpu() - tf32(host[1]).sum(1)).abs().max() < 1e-4
x = torch.tensor([float("inf"), float("nan"), 3e38], device="cuda")
assert (x[:1] @ x[:1]).isinf() and (x[1:2] @ x[1:2]).isnan()
