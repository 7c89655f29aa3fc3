"""Layer normalisation as an autograd function and as a module in a small network that is trained for a few steps."""
import cuda.tile as ct
import torch

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def forward(x, w, b, y, mean, rstd, eps, t: ct.Constant[int]):
    row = ct.bid(0)
    n = x.shape[1]
    inside = (ct.arange(t, dtype=ct.int32) < n)[None, :]
    tile = ct.load(x, (row, 0), (1, t), padding_mode=ZERO).astype(ct.float32)
    mu = ct.sum(tile, axis=1, keepdims=True) / n
    centred = ct.where(inside, tile - mu, 0.0)
    r = ct.rsqrt(ct.sum(centred * centred, axis=1, keepdims=True) / n + eps)
    scaled = centred * r * ct.load(w, (0,), (t,), padding_mode=ZERO) + ct.load(b, (0,), (t,), padding_mode=ZERO)
    ct.store(y, (row, 0), scaled.astype(y.dtype))
    ct.store(mean, (row,), mu.reshape((1,)))
    ct.store(rstd, (row,), r.reshape((1,)))


@ct.kernel
def backward(x, w, dy, mean, rstd, dx, dw, db, t: ct.Constant[int]):
    row = ct.bid(0)
    n = x.shape[1]
    cols = ct.arange(t, dtype=ct.int32)
    tile = ct.load(x, (row, 0), (1, t), padding_mode=ZERO).astype(ct.float32)
    grad = ct.load(dy, (row, 0), (1, t), padding_mode=ZERO).astype(ct.float32)
    r = ct.load(rstd, (row,), (1,))
    hat = ct.where((cols < n)[None, :], (tile - ct.load(mean, (row,), (1,))) * r, 0.0)
    scaled = ct.load(w, (0,), (t,), padding_mode=ZERO) * grad
    c1 = ct.sum(hat * scaled, axis=1, keepdims=True) / n
    c2 = ct.sum(scaled, axis=1, keepdims=True) / n
    ct.store(dx, (row, 0), ((scaled - hat * c1 - c2) * r).astype(dx.dtype))
    ct.atomic_add(dw, cols, (grad * hat).reshape((t,)), memory_order=ct.MemoryOrder.RELAXED)
    ct.atomic_add(db, cols, grad.reshape((t,)), memory_order=ct.MemoryOrder.RELAXED)


class LayerNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        rows, n = x.shape
        y = torch.empty_like(x)
        mean, rstd = (torch.empty(rows, device=x.device) for _ in range(2))
        ctx.tile = 1 << (n - 1).bit_length()
        ct.launch(torch.cuda.current_stream(), (rows,), forward, (x, weight, bias, y, mean, rstd, eps, ctx.tile))
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        dx = torch.empty_like(x)
        dw, db = (torch.zeros(x.shape[1], device=x.device) for _ in range(2))
        ct.launch(torch.cuda.current_stream(), (x.shape[0],), backward,
                  (x, weight, dy.contiguous(), mean, rstd, dx, dw, db, ctx.tile))
        return dx, dw.to(weight.dtype), db.to(weight.dtype), None


class LayerNorm(torch.nn.Module):
    def __init__(self, n, eps=1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))
        self.bias = torch.nn.Parameter(torch.zeros(n))
        self.eps = eps

    def forward(self, x):
        flat = LayerNormFunction.apply(x.reshape(-1, x.shape[-1]), self.weight, self.bias, self.eps)
        return flat.reshape(x.shape)


def compare():
    for rows, n in ((16, 64), (7, 100)):
        x = torch.randn(rows, n, device="cuda", requires_grad=True)
        w = torch.randn(n, device="cuda", requires_grad=True)
        b = torch.randn(n, device="cuda", requires_grad=True)
        seed = torch.randn(rows, n, device="cuda")
        y = LayerNormFunction.apply(x, w, b, 1e-5)
        y.backward(seed)
        wide = [t.detach().double().requires_grad_() for t in (x, w, b)]
        want = torch.nn.functional.layer_norm(wide[0], (n,), wide[1], wide[2], 1e-5)
        want.backward(seed.double())
        for got, expected in [(y, want)] + [(t.grad, u.grad) for t, u in zip((x, w, b), wide)]:
            torch.testing.assert_close(got.double(), expected, rtol=0, atol=3e-5)


def train():
    """The same network with PyTorch's layer takes the same steps."""
    losses = []
    for norm in (LayerNorm, torch.nn.LayerNorm):
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(12, 48), norm(48), torch.nn.ReLU(), torch.nn.Linear(48, 1)).to("cuda")
        x = torch.randn(64, 12, device="cuda")
        y = torch.sin(x.sum(dim=1, keepdim=True))
        optimiser = torch.optim.SGD(net.parameters(), lr=0.05)
        steps = []
        for _ in range(10):
            optimiser.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimiser.step()
            steps.append(loss.item())
        losses.append(steps)
    assert losses[0][-1] < losses[0][0]
    torch.testing.assert_close(torch.tensor(losses[0]), torch.tensor(losses[1]), rtol=1e-4, atol=1e-5)


def main():
    torch.manual_seed(4)
    compare()
    train()


if __name__ == "__main__":
    main()
