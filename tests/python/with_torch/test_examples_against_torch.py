"""The kernels of examples/python on PyTorch's tensors, against PyTorch's own functions and gradients."""

import importlib
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "python"))


def example(name):
    return importlib.import_module(name)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def close(got, want, tolerance=1e-5):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def test_vector_add():
    x, y = torch.randn(2, 1000)
    out = torch.empty_like(x)
    example("vector_add").add[(8,)](x, y, out, 1000, BLOCK=128)
    assert torch.equal(out, x + y)


def test_softmax():
    x = torch.randn(9, 100)
    out = torch.empty_like(x)
    example("softmax").softmax[(9,)](x, out, 100, BLOCK=128)
    close(out, x.softmax(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rms_norm(dtype):
    x, w = torch.randn(5, 300).to(dtype), torch.randn(300)
    out = torch.empty_like(x)
    example("rms_norm").rms_norm[(5,)](x, w, out, 300, 1e-6, BLOCK=128)
    close(out, F.rms_norm(x.float(), (300,), w, 1e-6).to(dtype), 1e-5 if dtype is torch.float32 else 1e-2)


def test_layer_norm_and_its_gradients():
    rows, columns = 7, 100
    x, w, b = (torch.randn(s, requires_grad=True) for s in ((rows, columns), (columns,), (columns,)))
    dout = torch.randn(rows, columns)
    want = F.layer_norm(x, (columns,), w, b, 1e-5)
    want.backward(dout)
    module = example("layer_norm")
    out, dx = torch.empty(rows, columns), torch.empty(rows, columns)
    mean, rstd = torch.empty(rows), torch.empty(rows)
    dw, db = torch.zeros(columns), torch.zeros(columns)
    data = [t.detach() for t in (x, w, b)]
    module.forward[(rows,)](*data, out, mean, rstd, columns, 1e-5, BLOCK=128)
    module.backward[(3,)](data[0], data[1], mean, rstd, dout, dx, dw, db, rows, columns, BLOCK=128)
    for got, expected in ((out, want), (dx, x.grad), (dw, w.grad), (db, b.grad)):
        close(got, expected.detach(), 1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    heads, length, head = 3, 70, 32
    q, k, v = torch.randn(3, heads, length, head)
    out = torch.empty_like(q)
    example("attention").attention[(-(-length // 32), heads)](
        q, k, v, out, length, head**-0.5, HEAD=head, BLOCK_M=32, BLOCK_N=32, CAUSAL=causal
    )
    close(out, F.scaled_dot_product_attention(q, k, v, is_causal=causal))


def test_cross_entropy_and_its_gradient():
    rows, classes = 6, 500
    logits = torch.randn(rows, classes, requires_grad=True)
    labels = torch.randint(0, classes, (rows,))
    want = F.cross_entropy(logits, labels, reduction="none")
    want.mean().backward()
    loss, gradient = torch.empty(rows), torch.empty(rows, classes)
    kernel = example("cross_entropy").cross_entropy
    kernel[(rows,)](logits.detach(), labels, loss, gradient, classes, 1.0 / rows, BLOCK=128)
    close(loss, want.detach())
    close(gradient, logits.grad)


def test_matmul():
    m, n, k = 50, 70, 90
    a, b = torch.randn(m, k), torch.randn(k, n)
    c = torch.empty(m, n)
    kernel = example("matmul_ladder").tiled
    kernel[(4 * 5,)](a, b, c, m, n, k, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP=2)
    close(c, a @ b, 1e-4)


def test_gpt_blocks():
    """Attention and GELU of the tiny GPT, forward and backward."""
    module = example("tiny_gpt")
    batch, heads, length, head = 2, 4, 16, 16
    width = heads * head
    qkv = torch.randn(batch * length, 3 * width, requires_grad=True)
    q, k, v = (t.view(batch, length, heads, head).transpose(1, 2) for t in qkv.split(width, 1))
    want = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(-1, width)
    dout = torch.randn_like(want)
    want.backward(dout)
    out, dqkv = torch.empty(batch * length, width), torch.empty(batch * length, 3 * width)
    data = qkv.detach()
    module.attend[(batch, heads)](data, out, head**-0.5, T=length, H=heads, HEAD=head)
    module.attend_backward[(batch, heads)](data, dout, dqkv, head**-0.5, T=length, H=heads, HEAD=head)
    close(out, want.detach())
    close(dqkv, qkv.grad, 1e-4)

    x = torch.randn(1000, requires_grad=True)
    want = F.gelu(x, approximate="tanh")
    want.sum().backward()
    out, gradient = torch.empty(1000), torch.ones(1000)
    module.gelu[(8,)](x.detach(), out, 1000, BLOCK=128)
    module.gelu_backward[(8,)](x.detach(), gradient, 1000, BLOCK=128)
    close(out, want.detach())
    close(gradient, x.grad)
