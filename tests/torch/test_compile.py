"""`torch.compile(model, backend="girih")` against PyTorch and float64."""

import copy
import warnings

import closeness
import pytest
import torch
import torch.nn.functional as F

import girih
import girih.torch

torch.manual_seed(0)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()


@pytest.fixture
def whole():
    """No operation may be left to PyTorch."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="girih: ")
        yield


class Of(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


X, Y = (3, 5, 8), (5, 8)
FUNCTIONS = {
    "arithmetic": (lambda x, y: (x + y) * 2 - x / 3 + y**2, X, Y),
    "alpha": (lambda x, y: torch.add(x, y, alpha=2.5) - torch.sub(1.5, x, alpha=2), X, Y),
    "integers_meet_floats": (lambda x: x * torch.arange(8) + 1, X),
    "silu": (F.silu, X),
    "gelu": (F.gelu, X),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), X),
    "relu_sigmoid_tanh": (lambda x: F.relu(x) + torch.sigmoid(x) * torch.tanh(x), X),
    "exp_log": (lambda x: torch.log(torch.exp(x) + 1) + torch.log1p(x.abs()), X),
    "powers": (lambda x: x.abs().sqrt() + torch.rsqrt(x.abs() + 1) + x.abs().pow(0.3), X),
    "trigonometry": (lambda x: torch.sin(x) * torch.cos(x) + torch.atan2(x, x + 2), X),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0.1), X),
    "softmax": (lambda x: F.softmax(x, -1) + F.log_softmax(x, 1), X),
    "reductions": (lambda x: (x.sum(), x.mean(-1), x.amax((0, 2)), x.var(1), x.std(), x.prod(-1, keepdim=True)), X),
    "max_and_where": (lambda x: x.max(dim=1), X),
    "argmax": (lambda x: (x.argmax(), x.argmax(-1), x.argmin(0)), X),
    "norms": (lambda x: (x.norm(), torch.linalg.vector_norm(x, dim=-1), F.normalize(x, dim=-1)), X),
    "comparisons": (lambda x, y: ((x > y) & (x < 1)) | (x == y), X, Y),
    "where": (lambda x, y: torch.where(x > 0, x, y), X, Y),
    "masked_fill": (lambda x: x.masked_fill(x > 0, float("-inf")), X),
    "views": (lambda x: x.view(15, 8).t().reshape(4, -1).unsqueeze(0).expand(2, 4, 30).flatten(1), X),
    "slices": (lambda x: (x[:, 1:4, ::2], x[..., -1], x[0], x[:, None, 2]), X),
    "cat_stack": (lambda x, y: (torch.cat([x, x], 1), torch.stack([y, y * 2], -1)), X, Y),
    "split_chunk": (lambda x: x.split(3, -1)[1] + x.chunk(4, -1)[0].sum() + x.unbind(0)[1][:, :3], X),
    "matmul": (lambda x, y: (x @ y.t(), torch.bmm(x, x.transpose(1, 2)), torch.mv(y, y[0])), X, Y),
    "einsum": (lambda x, y: torch.einsum("bij,kj->bik", x, y), X, Y),
    "baddbmm": (lambda x: torch.baddbmm(x[:, :, :5], x, x.transpose(1, 2), beta=0.5, alpha=2), X),
    "rms_norm": (lambda x: F.rms_norm(x, (8,), eps=1e-6), X),
    "layer_norm": (lambda x: F.layer_norm(x, (5, 8)), X),
    "cumsum": (lambda x: x.cumsum(1) + x.cumprod(-1), X),
    "sort": (lambda x: torch.sort(x, dim=-1, descending=True), X),
    "topk": (lambda x: torch.topk(x, 3), X),
    "tril": (lambda x: x.tril() + x.triu(1), X),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), X),
    "gather": (lambda x: x.gather(1, torch.zeros(3, 2, 8, dtype=torch.int64) + 1), X),
    "index": (lambda x: x[torch.tensor([2, 0]), torch.tensor([1, 4])], X),
    "index_put": (lambda x: x.index_put((torch.tensor([1, 0]),), torch.ones_like(x[:2])), X),
    "roll_flip": (lambda x: x.roll(1, -1) + x.flip(1), X),
    "repeat": (lambda x: x.repeat(1, 2, 1) + x.repeat_interleave(2, 1), X),
    "creation": (lambda x: x + torch.ones_like(x) + torch.full((8,), 0.25) + torch.arange(5).unsqueeze(1), X),
    "conversion": (lambda x: x.to(torch.int32).to(torch.float64) + x.to(torch.bool), X),
    "rounding": (lambda x: torch.floor(x) + torch.round(x * 3) + torch.trunc(x) + x.sign(), X),
    "remainders": (lambda x: torch.remainder(x, 0.3) + torch.fmod(x, 0.7) + x // 0.5, X),
    "cross_entropy": (lambda x: F.cross_entropy(x.view(15, 8), torch.arange(15) % 8), X),
    "mse": (lambda x, y: F.mse_loss(x[0], y), X, Y),
    "glu": (lambda x: F.glu(x) + F.elu(x)[..., :4] + F.leaky_relu(x)[..., 4:] + F.softplus(x)[..., :4], X),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (2, 4, 6, 8)),
    "attention_of_groups": (lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), (2, 4, 6, 8), (2, 2, 6, 8)),
    "attention_mask": (lambda x, m: F.scaled_dot_product_attention(x, x, x, attn_mask=m), (2, 4, 6, 8), (6, 6)),
    "nothing": (lambda x: x, X),
    "constant": (lambda x: (x.sum() * 0 + 1, 3), X),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, whole):
    function, *shapes = FUNCTIONS[name]
    closeness.matches(Of(function), *[randn(*s) for s in shapes], name=name)


MODULES = {
    "linear": (lambda: torch.nn.Linear(8, 6), X),
    "linear_without_bias": (lambda: torch.nn.Linear(8, 6, bias=False), X),
    "mlp": (lambda: torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)), X),
    "rms_norm": (lambda: torch.nn.RMSNorm(8), X),
    "layer_norm": (lambda: torch.nn.LayerNorm(8), X),
    "group_norm": (lambda: torch.nn.GroupNorm(2, 4), (2, 4, 6)),
    "batch_norm": (lambda: torch.nn.BatchNorm2d(4).eval(), (2, 4, 6, 6)),
    "conv1d": (lambda: torch.nn.Conv1d(4, 6, 3, padding=1), (2, 4, 10)),
    "conv2d": (lambda: torch.nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9, 9)),
    "conv_transpose2d": (lambda: torch.nn.ConvTranspose2d(4, 6, 3, stride=2), (2, 4, 5, 5)),
    "pools": (lambda: torch.nn.Sequential(torch.nn.MaxPool2d(2), torch.nn.AvgPool2d(2), torch.nn.AdaptiveAvgPool2d(1)), (2, 4, 8, 8)),
    "upsample": (lambda: torch.nn.Upsample(scale_factor=2), (1, 2, 4, 4)),
    "transformer": (lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), X),
    "attention": (lambda: torch.nn.MultiheadAttention(8, 2, batch_first=True).eval(), X, X, X),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_modules(name, whole, monkeypatch):
    # A path of PyTorch's own through the layers of a transformer, as one operation.
    monkeypatch.setattr(torch.backends.mha, "_is_fastpath_enabled", False)
    make, *shapes = MODULES[name]
    closeness.matches(make(), *[randn(*s) for s in shapes], name=name)


def test_embedding(whole):
    closeness.matches(torch.nn.Embedding(10, 4), torch.tensor([[1, 9], [0, 3]]), name="embedding")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_floats(dtype, whole):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.RMSNorm(16)).to(dtype)
    closeness.matches(model, randn(3, 8, dtype=dtype), name=str(dtype))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8])
def test_integers(dtype, whole):
    x = torch.arange(12).view(3, 4).to(dtype)
    closeness.matches(Of(lambda x: (x * 3 + 1, x.sum(), x // 2, x % 3, x > 4, x.max(), x / 2)), x, name=str(dtype))


def test_bools(whole):
    x = torch.tensor([[True, False], [True, True]])
    closeness.matches(Of(lambda x: (~x, x.all(1), x.any(), x ^ x.t(), x.sum(), x.to(torch.float32))), x)


def test_scalars_and_empty_tensors(whole):
    closeness.matches(Of(lambda x, y: (x * y, x + 1, y.sum(), y * 2)), torch.tensor(2.5), torch.empty(0, 3))
    closeness.matches(Of(lambda x: (x @ x.t(), F.softmax(x, -1))), torch.empty(0, 3))


def test_strides(whole):
    model = Of(lambda x, y: x.t() @ y + 1)
    closeness.matches(model, randn(4, 3), randn(5, 4).t())
    closeness.matches(model, randn(4, 3), randn(8, 10)[::2, ::2])
    closeness.matches(model, randn(4, 3), randn(1, 5).expand(4, 5))


def test_results_have_the_strides_of_pytorch(whole):
    for function in (lambda x: (x * 2).transpose(0, 1), lambda x: x.transpose(0, 1) * 2):
        compiled = torch.compile(function, backend="girih")
        x = randn(3, 4)
        assert compiled(x).stride() == function(x).stride()


# Extents that change.


def test_batch_and_sequence_of_any_length(whole):
    model = torch.nn.Sequential(torch.nn.RMSNorm(8), torch.nn.Linear(8, 8), torch.nn.Softmax(-1))
    compiled = torch.compile(copy.deepcopy(model), backend="girih", dynamic=True, fullgraph=True)
    counter = torch._dynamo.testing.CompileCounterWithBackend("girih")
    counted = torch.compile(copy.deepcopy(model), backend=counter, dynamic=True)
    for batch, length in [(2, 5), (3, 7), (4, 64), (2, 5)]:
        x = randn(batch, length, 8)
        closeness.matches(model, x, compiled=compiled, name=f"{batch}x{length}")
        with torch.no_grad():
            counted(x)
    assert counter.frame_count == 1


def test_sizes_in_the_computation(whole):
    def attention(x):
        q = x.view(x.shape[0], x.shape[1], 2, -1).transpose(1, 2)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        scores = (q @ q.transpose(-1, -2)) / x.shape[1] + x.shape[0] * 2
        scores = scores.masked_fill(~mask, float("-inf"))
        return (F.softmax(scores, -1) @ q).transpose(1, 2).reshape(x.shape), torch.arange(x.shape[1]), x.shape[0] + 3

    compiled = torch.compile(attention, backend="girih")
    for batch, length in [(2, 5), (3, 8), (4, 11)]:
        closeness.matches(Of(attention), randn(batch, length, 8), compiled=compiled)


# Writing into operands, and views.


def test_writes_into_inputs():
    def step(x, y):
        x.mul_(2)
        y[0] += x[1]
        y[:, 1:3].fill_(0.5)
        return x + y

    closeness.matches(Of(step), randn(3, 4), randn(3, 4))


def test_writes_into_a_view(whole):
    def step(x):
        row = x[0]
        row.add_(1)
        x.t()[1].zero_()
        return row * 2, x

    closeness.matches(Of(step), randn(3, 4))


def test_views_as_results():
    def step(x):
        return x[0], x.view(-1), x.t()

    x = randn(3, 4)
    first, flat, turned = torch.compile(step, backend="girih")(x)
    x.fill_(7.0)
    assert all((view == 7).all() for view in (first, flat, turned))


def test_views_of_intermediate_results(whole):
    def step(x):
        y = x * 2
        return y, y[0], y.t()

    y, first, turned = torch.compile(step, backend="girih")(randn(3, 4))
    y.fill_(3.0)
    assert (first == 3).all() and (turned == 3).all()


def test_inputs_that_overlap():
    def step(x, y):
        x.add_(1)
        return x * y

    base = randn(6)
    expected = base.clone()
    wanted = step(expected[:4], expected[2:])
    given = torch.compile(step, backend="girih")(base[:4], base[2:])
    torch.testing.assert_close(given, wanted)
    torch.testing.assert_close(base, expected)


def test_buffers(whole):
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x):
            self.calls += 1
            self.total.add_(x.sum(0))
            return x * self.calls

    model = Count()
    compiled = torch.compile(model, backend="girih")
    x = torch.ones(3, 4)
    for call in range(1, 4):
        assert (compiled(x) == call).all()
    assert model.calls == 3 and (model.total == 9).all()


def test_parameters_that_change(whole):
    model = torch.nn.Linear(4, 3)
    compiled = torch.compile(model, backend="girih")
    x = randn(2, 4)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x), model(x))
            model.weight.mul_(-2)
        model.weight.data = randn(3, 4)
        torch.testing.assert_close(compiled(x), model(x))
        model.bias = torch.nn.Parameter(randn(3))
        torch.testing.assert_close(compiled(x), model(x))


def test_parameters_of_inference_mode(whole):
    with torch.inference_mode():
        model = torch.nn.Linear(4, 3)
        compiled = torch.compile(model, backend="girih")
        x = randn(2, 4)
        torch.testing.assert_close(compiled(x), model(x))
        model.weight.mul_(-2)
        torch.testing.assert_close(compiled(x), model(x))


def test_large_constants_of_a_graph(whole):
    table = torch.randn(2000)
    closeness.matches(Of(lambda x: x + table), randn(2000))


# What is left to PyTorch.


@torch.library.custom_op("girih_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def test_an_operation_that_is_not_known_runs_in_pytorch_and_says_so_once():
    def step(x):
        y = twice(x.exp() + 1)
        return twice(y.sin() * y.shape[0]).cos()

    compiled = torch.compile(step, backend="girih", dynamic=True)
    x = randn(3, 4)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        closeness.matches(Of(step), x, compiled=compiled)
        compiled(randn(5, 4))
    texts = [str(w.message) for w in said if "girih" in str(w.message)]
    assert texts == [
        "girih: girih_tests.twice runs in PyTorch: girih_tests.twice is not an operation of ATen"
    ]


def test_random_numbers_are_those_of_pytorch():
    def step(x):
        a, b = torch.rand_like(x), torch.randn(3)
        return (x.exp() * a).sin() + 1, b * 2

    x = randn(3, 4)
    compiled = torch.compile(step, backend="girih")
    with pytest.warns(UserWarning, match="runs in PyTorch"), torch.no_grad():
        torch.manual_seed(1)
        given = compiled(x)
        torch.manual_seed(1)
        torch.testing.assert_close(given, step(x))


def test_data_dependent_shapes():
    def step(x):
        kept = x[x > 0]
        return kept * 2

    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    try:
        with pytest.warns(UserWarning, match="girih: aten"):
            closeness.matches(Of(step), randn(3, 8))
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False


# Gradients.


def gradients(model, x, compiled=None):
    model.zero_grad()
    x = x.clone().requires_grad_()
    y = (model if compiled is None else compiled)(x)
    (y * torch.arange(y.numel(), dtype=y.dtype).view(y.shape).cos()).sum().backward()
    return [y.detach(), x.grad, *[p.grad.clone() for p in model.parameters()]]


TRAINED = {
    "mlp": (lambda: torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)), X),
    "norms": (lambda: torch.nn.Sequential(torch.nn.RMSNorm(8), torch.nn.LayerNorm(8), torch.nn.SiLU()), X),
    "attention": (lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), X),
    "conv": (lambda: torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)), (1, 2, 8, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.filterwarnings("ignore:girih. aten")
def test_gradients(name):
    make, shape = TRAINED[name]
    model, x = make(), randn(*shape)
    compiled = torch.compile(model, backend="girih")
    given, eager = gradients(model, x, compiled), gradients(model, x)
    exact = gradients(copy.deepcopy(model).double(), x.double())
    closeness.close(given, eager, exact, name=name)


@pytest.mark.filterwarnings("ignore:girih. aten")
def test_training_steps():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, backend="girih")
    x, y = randn(32, 4), randn(32, 1)
    for net, forward in ((model, compiled), (twin, twin)):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            F.mse_loss(forward(x), y).backward()
            optimizer.step()
    for p, q in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(p, q)


# Mistakes.


def test_unknown_options():
    compiled = torch.compile(lambda x: x + 1, backend="girih", options={"treads": 2})
    with pytest.raises(Exception, match="girih has no option `treads`; the options are"):
        compiled(randn(3))


def test_threads_and_cache(whole):
    compiled = torch.compile(lambda x: x.exp() + 1, backend="girih", options={"threads": 1, "cache": False})
    closeness.matches(Of(lambda x: x.exp() + 1), randn(3), compiled=compiled)
