"""Programs written for ``device="cuda"``, on CPU tensors."""

import copy
import io
import time

import cuda.tile as ct
import pytest

import girih.cutile  # noqa: F401

torch = pytest.importorskip("torch")

T = 8


@ct.kernel
def doubles(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (T,)) * 2)


@ct.kernel
def copies(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (T,)))


STREAMS = {
    "current": lambda: torch.cuda.current_stream(),
    "new": lambda: torch.cuda.Stream(),
    "handle": lambda: torch.cuda.current_stream().cuda_stream,
}


@pytest.mark.parametrize("stream", STREAMS)
def test_kernels_take_tensors_and_streams(stream):
    x = torch.arange(16, dtype=torch.float32, device="cuda")
    y = torch.empty_like(x)
    ct.launch(STREAMS[stream](), (2,), doubles, (x, y))
    torch.cuda.synchronize()
    torch.testing.assert_close(y, x * 2)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int64", "uint8", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"],
)
def test_element_types(dtype):
    x = (torch.arange(16, device="cuda") % 2).to(getattr(torch, dtype))
    y = torch.zeros(16, device="cuda").to(getattr(torch, dtype))
    ct.launch(torch.cuda.current_stream(), (2,), copies, (x, y))
    assert x.view(torch.uint8).tolist() == y.view(torch.uint8).tolist()


def test_a_tensor_that_requires_grad():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            y = torch.empty_like(x)
            ct.launch(torch.cuda.current_stream(), (2,), doubles, (x, y))
            return y

        @staticmethod
        def backward(context, gradient):
            out = torch.empty_like(gradient)
            ct.launch(torch.cuda.current_stream(), (2,), doubles, (gradient.contiguous(), out))
            return out

    x = torch.randn(16, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 16


FACTORIES = {
    "zeros": lambda d: torch.zeros(2, device=d),
    "ones": lambda d: torch.ones((2, 3), device=d, dtype=torch.float16),
    "tensor": lambda d: torch.tensor([1, 2], device=d),
    "arange": lambda d: torch.arange(4, device=d),
    "randn": lambda d: torch.randn(3, device=d),
    "randint": lambda d: torch.randint(0, 5, (3,), device=d),
    "full_like": lambda d: torch.full_like(torch.zeros(2), 3, device=d),
    "new_zeros": lambda d: torch.zeros(2).new_zeros(3, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 3, device=d),
    "to": lambda d: torch.zeros(2).to(d),
    "to with a type": lambda d: torch.zeros(2).to(d, torch.float16, non_blocking=True),
    "cuda": lambda d: torch.zeros(2).cuda(),
    "module": lambda d: torch.nn.Linear(2, 2, device=d).weight,
    "module to": lambda d: torch.nn.Linear(2, 2).to(d).weight,
    "pinned": lambda d: torch.zeros(2, pin_memory=True).to(d, non_blocking=True),
}


@pytest.mark.parametrize("make", FACTORIES)
@pytest.mark.parametrize("device", ["cuda", "cuda:0", 0, torch.device("cuda")], ids=repr)
def test_what_takes_a_device(make, device):
    made = FACTORIES[make](device)
    assert made.device == torch.device("cuda:0") and made.is_cuda and not made.is_cpu
    assert torch.zeros(1, device=made.device).is_cuda


def test_a_device_that_is_not_there():
    with pytest.raises(RuntimeError, match="unknown device cuda:1"):
        torch.zeros(1, device="cuda:1")


HOSTS = {
    "ones": lambda c: torch.ones(3, device="cpu"),
    "no device": lambda c: torch.arange(4.0),
    "computed": lambda c: torch.arange(4.0) * 2 + 1,
    "cpu": lambda c: c.cpu(),
    "cpu, computed": lambda c: c.cpu() + 1,
    "to": lambda c: (c * 2).to("cpu", torch.float64),
    "to another": lambda c: c.to(torch.ones(1)),
    "numpy": lambda c: torch.from_numpy(c.cpu().numpy()),
    "as_tensor": lambda c: torch.as_tensor(c, device="cpu"),
    "module": lambda c: torch.nn.Linear(2, 2)(torch.ones(1, 2)).detach(),
    "parameter": lambda c: torch.nn.Linear(2, 2).to("cuda").cpu().weight,
    "a number of the device": lambda c: torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), alpha=c[1]),
    "an index of the device": lambda c: torch.ones(5)[c[2].long()] + 0,
    "like": lambda c: torch.full_like(torch.ones(3), c[1]),
    "new": lambda c: torch.ones(3).new_tensor(c[1]),
    "filled": lambda c: torch.full((2,), c[1]),
    "as many": lambda c: torch.arange(c.max()),
    "gradient": lambda c: torch.autograd.grad((w := torch.ones(2, requires_grad=True)).to("cuda").sum(), [w])[0],
}

DEVICES = {
    "computed": lambda c: torch.sin(c) + 1,
    "view": lambda c: c[1:].reshape(-1, 1).T,
    "detached": lambda c: (c * 2).requires_grad_().detach(),
    "split": lambda c: c.split(2)[1],
    "sorted": lambda c: c.sort().values,
    "like": lambda c: torch.zeros_like(c),
    "new": lambda c: c.new_ones(3),
    "number": lambda c: 1 - c,
    "new, of a number": lambda c: c[1].new_tensor(torch.ones(3)),
    "numbers": lambda c: c[1] + c[2] * torch.tensor(2.0),
    "mixed": lambda c: c * torch.tensor(2.0),
    "in place": lambda c: c.clone().add_(1),
    "as_tensor": lambda c: torch.as_tensor(torch.ones(2), device="cuda"),
    "module": lambda c: torch.nn.Linear(4, 2).cuda()(c).detach(),
    "functional": lambda c: torch.nn.functional.softmax(c, 0),
    "to another": lambda c: torch.ones(1).to(c),
}


@pytest.mark.parametrize("make", HOSTS)
def test_host_tensors_stay_host_tensors(make):
    made = HOSTS[make](torch.arange(4.0, device="cuda"))
    assert made.device == torch.device("cpu") and made.is_cpu and not made.is_cuda and made.get_device() == -1


@pytest.mark.parametrize("make", DEVICES)
def test_what_comes_of_a_device_tensor_is_on_the_device(make):
    made = DEVICES[make](torch.arange(4.0, device="cuda"))
    assert made.device == torch.device("cuda:0") and made.is_cuda and made.get_device() == 0


def test_a_tensor_stays_itself_where_it_is():
    for place in ("cuda", "cpu"):
        x = torch.zeros(3, device=place)
        assert x.to(place) is x and x.to(x.device) is x and x.to(torch.ones(1, device=place)) is x
        x.to(x.device)[1] = 5
        assert x.tolist() == [0, 5, 0]
        assert x.to(place, copy=True) is not x and x.to(place, torch.float16).device == x.device
    layer = torch.nn.Linear(2, 2).cuda()
    weight = layer.weight.data_ptr()
    assert layer.to("cuda").weight.data_ptr() == weight


def test_places_are_compared():
    x = torch.arange(4.0, device="cuda")
    torch.testing.assert_close(x.cpu(), torch.arange(4.0))
    with pytest.raises(AssertionError, match="device"):
        torch.testing.assert_close(x, torch.arange(4.0))
    leaf = torch.ones(2, device="cuda", requires_grad=True)
    (leaf * 3).sum().backward()
    assert leaf.grad.is_cuda


def operator(name, device):
    """An operator of Python that doubles a tensor, for one device or for all; its gradient is made on the device."""
    side = {"device_types": device} if device else {}

    @torch.library.custom_op(f"girih_tests::{name}", mutates_args=(), **side)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        made = torch.full(x.shape, 2.0, device=x.device)
        assert made.device == x.device
        return made * x

    def backward(ctx, gradient):
        assert gradient.is_cuda == ctx.cuda
        return torch.full(gradient.shape, 2.0, device=gradient.device) * gradient

    doubled.register_autograd(backward, setup_context=lambda ctx, inputs, output: setattr(ctx, "cuda", inputs[0].is_cuda))
    return doubled


@pytest.mark.skipif(not hasattr(torch.library, "get_kernel"), reason="this PyTorch does not give its kernels to others")
def test_operators_of_pytorch_are_replaced_on_the_device_alone():
    library = torch.library.Library("aten", "IMPL")

    def absolute(x):
        made = torch.full(x.shape, 7.0, device=x.device)
        assert x.is_cuda and made.is_cuda
        return made

    library.impl("abs", absolute, "CUDA")
    library.impl("ones", lambda size, **options: torch.full(size, 5.0, device=options["device"]), "CUDA")
    # One that PyTorch makes of others, and one that it has on devices only.
    library.impl("tile", lambda x, dims: torch.full((2,), 9.0, device=x.device), "CUDA")
    library.impl("bitwise_left_shift", lambda x, y: x, "CUDA")  # it has no overload of that name
    library.impl("mul.Tensor", lambda x, y: torch.full_like(x, 3.0), "CUDA")
    library.impl("_flash_attention_forward", lambda *args, **options: (args[0] + 1,) * 5, "CUDA")
    try:
        for side, found in (("cuda", (7.0, 5.0, 9.0)), ("cpu", (1.0, 1.0, -1.0))):
            x = torch.tensor([-1.0], device=side)
            made = torch.abs(x), torch.ones(3, device=side), torch.tile(x, (2,))
            assert [y.flatten()[0].item() for y in made] == list(found)
            assert all(y.is_cuda == (side == "cuda") for y in made)
        assert torch.mul(2.5, 2).item() == 5 and torch.mul(2.5, 2).dtype == torch.float32
        assert (torch.tensor([2]) * 0.1).dtype == torch.float32
        assert (torch.ones(1, dtype=torch.float64) * 0.1).item() == 0.1
        assert (torch.ones(1, device="cuda") * 0.1).item() == 3
        q = torch.zeros(1, device="cuda")
        again = torch.ops.aten._flash_attention_forward(q, q, q, None, None, 1, 1, 0.0, False, False)
        assert again[0].item() == 1 and again[0].is_cuda
    finally:
        library._destroy()
    assert torch.abs(torch.tensor([-1.0], device="cuda")).item() == 1


def test_what_compiled_code_calls():
    with torch.cuda._DeviceGuard(0):
        assert torch.cuda.current_device() == 0
    made = torch._C._dynamo.guards._empty_strided_cuda((3, 2), (1, 4), torch.float16)
    assert made.is_cuda and made.shape == (3, 2) and made.stride() == (1, 4) and made.dtype == torch.float16


def test_the_generator_of_the_device():
    (generator,) = torch.cuda.default_generators
    torch.manual_seed(5)
    seed, offset = generator.get_state().view(torch.int64).tolist()
    assert (seed, offset) == (5, 0) and torch.cuda.initial_seed() == 5 and generator.device.type == "cuda"
    # A kernel that draws numbers moves the offset on.
    state = generator.get_state()
    state.view(torch.int64)[1] += 8
    generator.set_state(state)
    assert generator.get_state().view(torch.int64).tolist() == [5, 8] and generator.get_offset() == 8
    # Going back to a state gives the same numbers again, and PyTorch's numbers count.
    first, here = torch.rand(4, device="cuda"), generator.get_state()
    second = torch.rand(4, device="cuda")
    assert not torch.equal(here, generator.get_state())
    generator.set_state(here)
    assert torch.equal(torch.rand(4, device="cuda"), second)
    generator.set_state(state)
    torch.manual_seed(5)
    assert generator.get_state().view(torch.int64).tolist() == [5, 0]
    assert torch.equal(torch.rand(4, device="cuda"), first)
    with pytest.raises(RuntimeError, match="size"):
        generator.set_state(torch.get_rng_state())
    torch.cuda.manual_seed(-1)
    assert generator.get_state().view(torch.int64).tolist() == [-1, 0]


@pytest.mark.parametrize("device, sides", [("cuda", ["cuda"]), (None, ["cuda", "cpu"]), ("cpu", ["cpu"])])
def test_operators_of_python_run_where_their_operands_are(device, sides):
    doubled = operator(f"doubled_{device}", device)
    for side in sides:
        x = torch.rand(3, device=side, requires_grad=True)
        for call in (doubled, getattr(torch.ops.girih_tests, f"doubled_{device}")):
            y = call(x)
            assert y.is_cuda == x.is_cuda == (side == "cuda") and torch.equal(y, 2 * x)
            (gradient,) = torch.autograd.grad(y.sum(), x)
            assert (gradient == 2).all()


@pytest.mark.parametrize("order", [("CPU", "CUDA"), ("CUDA", "CPU")])
def test_an_operator_with_a_function_for_each_device(order):
    name = "of_" + "_".join(order)
    library = torch.library.Library("girih_tests", "FRAGMENT")
    library.define(f"{name}(Tensor x) -> Tensor")
    for key in order:
        library.impl(name, lambda x, key=key: torch.full_like(x, key == "CUDA"), key)
    run = getattr(torch.ops.girih_tests, name)
    assert run(torch.rand(2, device="cuda")).tolist() == [1, 1] and run(torch.rand(2)).tolist() == [0, 0]


def test_an_autograd_function_sees_gradients_of_the_device():
    seen = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            seen.append(gradient.is_cuda)
            return 2 * gradient

    for device in ("cuda", "cpu"):
        x = torch.rand(3, device=device, requires_grad=True)
        # A product's gradient is new memory that PyTorch makes on its own.
        (Twice.apply(x) * torch.rand(3, device=device)).sum().backward()
    assert seen == [True, False]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("fullgraph", [True, False])
def test_compiled_functions_run_where_their_operands_are(device, fullgraph):
    @torch.compile(fullgraph=fullgraph)
    def function(x):
        return torch.relu(x * 2) + torch.ones(3, device=x.device)

    x = torch.rand(3, device=device, requires_grad=True)
    y = function(x)
    assert y.is_cuda == (device == "cuda") and torch.equal(y, 2 * x + 1)
    y.sum().backward()
    assert x.grad.is_cuda == y.is_cuda and (x.grad == 2).all()
    model = torch.compile(torch.nn.Linear(3, 4).to(device), fullgraph=fullgraph)
    z = model(x.detach())
    assert z.is_cuda == y.is_cuda and model.weight.is_cuda == y.is_cuda
    assert torch.equal(z, model._orig_mod(x.detach()))


def test_another_thread_sees_the_same():
    import threading

    seen = []
    c = torch.ones(2, device="cuda")
    thread = threading.Thread(target=lambda: seen.append((torch.ones(1).is_cuda, (c + 1).is_cuda)))
    thread.start()
    thread.join()
    assert seen == [(False, True)]


def test_a_graph_records_launches_and_replays_them():
    x, y = torch.zeros(16, device="cuda"), torch.zeros(16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        x += 1
        ct.launch(torch.cuda.current_stream(), (2,), doubles, (x, y))
        z = y + 1
        ct.launch(torch.cuda.current_stream(), (2,), doubles, (z, x))
    assert not torch.cuda.is_current_stream_capturing()
    assert x.tolist() == [0.0] * 16 == y.tolist()
    wanted = 0.0
    for _ in range(3):
        graph.replay()
        wanted = 2 * (2 * (wanted + 1) + 1)
        assert x.tolist() == [wanted] * 16 and z.tolist() == [wanted / 2] * 16
    with pytest.raises(TypeError), torch.cuda.graph(graph):
        ct.launch(torch.cuda.current_stream(), (2,), doubles, (x,))
    ct.launch(torch.cuda.current_stream(), (2,), copies, (torch.ones(16, device="cuda"), y))
    assert y.tolist() == [1.0] * 16


def test_signatures_from_arguments():
    import numpy as np

    from cuda.tile.compilation import CallingConvention, KernelSignature

    convention = CallingConvention.cutile_python_v1()
    kinds = {
        "device": (torch.zeros(16, device="cuda"), torch.zeros(16, device="cuda")),
        "host": (torch.zeros(16), torch.zeros(16)),
        "numpy": (np.zeros(16, np.float32), np.zeros(16, np.float32)),
    }
    for kind, arguments in kinds.items():
        signature = KernelSignature.from_kernel_args(doubles, arguments, convention)
        assert signature.symbol.startswith("doubles_"), (kind, signature.symbol)
        assert "A1f32" in signature.symbol


def test_what_others_import_from_the_extension():
    from cuda.tile._cext import _benchmark, launch

    assert launch is ct.launch
    x, y = torch.ones(16), torch.zeros(16)
    launch(0, (2,), doubles, (x, y))
    assert y.tolist() == [2.0] * 16
    assert _benchmark(0, (2,), doubles, (x, y)) > 0


def test_host_and_device_share_nothing():
    x = torch.zeros(4, device="cuda")
    host = x.cpu()
    assert not host.is_cuda and host.device.type == "cpu"
    x += 1
    assert host.tolist() == [0.0] * 4
    y = host.cuda()
    host += 5
    assert y.tolist() == [0.0] * 4 and y.is_cuda
    assert x.to("cpu").device.type == "cpu"


def test_training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cuda")
    x, y = torch.randn(32, 4, device="cuda"), torch.randn(32, 1, device="cuda")
    losses = []
    for _ in range(30):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = ((model(x) - y) ** 2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        optimiser.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    copy.deepcopy(model)
    kept = io.BytesIO()
    torch.save(model.state_dict(), kept)
    kept.seek(0)
    model.load_state_dict(torch.load(kept, map_location="cuda"))


# What a GPU gives for a tensor of float16 and one of float32, by PyTorch's page of automatic mixed precision.
MIXED = {
    "float16": (lambda x, w: x @ w, lambda x, w: torch.nn.functional.linear(w, w), lambda x, w: torch.mv(w, w[0]), lambda x, w: x + 1, lambda x, w: x.mean()),
    "float32": (
        lambda x, w: torch.nn.functional.softmax(x, -1),
        lambda x, w: x.log_softmax(0),
        lambda x, w: torch.nn.functional.softmin(x, -1),
        lambda x, w: torch.nn.functional.layer_norm(x, (8,)),
        lambda x, w: x.exp(),
        lambda x, w: x**2,
        lambda x, w: x.sum(),
        lambda x, w: x.norm(),
        lambda x, w: torch.nn.functional.mse_loss(x, x),
        lambda x, w: torch.addcmul(x, w[:4], w[:4]),
        lambda x, w: w + 1,
    ),
    "float64": (lambda x, w: torch.nn.functional.softmax(x, -1, dtype=torch.float64), lambda x, w: w.double().exp()),
}


@pytest.mark.parametrize("dtype", MIXED)
def test_mixed_precision_is_that_of_a_gpu(dtype):
    x, w = torch.randn(4, 8, device="cuda", dtype=torch.float16), torch.randn(8, 8, device="cuda")
    for function in MIXED[dtype]:
        with torch.autocast("cuda"):
            made = function(x, w)
        assert made.dtype == getattr(torch, dtype) and made.is_cuda
    host = x.cpu()
    with torch.autocast("cuda"):
        assert host.exp().dtype == torch.float16
    with torch.autocast("cpu"):
        assert host.exp().dtype == torch.float16


def test_every_operator_that_cuda_casts_has_a_rule():
    from girih.cutile import mixed

    casts = torch._C._dispatch_has_kernel_for_dispatch_key
    known = {f"aten::{name}" for name in f"{mixed._WIDE} {mixed._NARROW} {mixed._WIDEST}".split()}
    # `einsum` is made of products that the host casts; the others are the parts of convolutions, attention and recurrent layers.
    parts = {"einsum", "convolution", "_convolution", "_scaled_dot_product_flash_attention", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"}
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"):
        if name.startswith("aten::") and "cudnn" not in name and name[6:] not in parts:
            assert casts(name, "AutocastCPU") or name in known, name


def test_programs_ask_whether_precision_is_mixed():
    seen = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(_context, x):
            seen.append((torch.is_autocast_enabled(), torch.get_autocast_dtype("cuda")))
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(_context, gradient):
            seen.append((torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")))
            return gradient * 2

    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        made = Doubled.apply(x)
        with torch.autocast("cuda", enabled=False):
            assert not torch.is_autocast_enabled() and (x[None] @ x[:, None]).dtype == torch.float32
    made.sum().backward()
    assert seen == [(True, torch.bfloat16)] * 2
    assert not torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")


def test_gradients_of_convolutions_add_in_float32():
    torch.manual_seed(0)
    weight, gradient = torch.randn(64, 3, 7, 7).half(), torch.randn(1, 64, 12, 12).half()
    made = torch.nn.grad.conv2d_input((1, 3, 12, 12), weight.cuda(), gradient.cuda(), 1, 3)
    assert made.dtype == torch.float16 and made.is_cuda
    expected = torch.nn.grad.conv2d_input((1, 3, 12, 12), weight.double(), gradient.double(), 1, 3)
    # Half a last place of the greatest number.
    assert (made.cpu().double() - expected).abs().max() <= 2**-11 * expected.abs().max()


def test_products_of_mixed_precision_add_in_float32():
    x = torch.full((1, 4096), 1.001, device="cuda")
    with torch.autocast("cuda"):
        made = x @ x.T
    assert made.dtype == torch.float16 and made.item() == torch.tensor(4096 * float(torch.tensor(1.001).half()) ** 2).half().item()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind):
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    torch.manual_seed(0)
    x = torch.randn(5, 2, 4)
    host = getattr(torch.nn, kind)(4, 3, bidirectional=True)
    layer = copy.deepcopy(host).cuda()
    expected, lengths = pad_packed_sequence(host(pack_padded_sequence(x, torch.tensor([5, 3])))[0])
    packed = pack_padded_sequence(x.cuda(), torch.tensor([5, 3]))
    made, counted = pad_packed_sequence(layer(packed)[0])
    assert made.is_cuda and counted.is_cpu and torch.equal(counted, lengths)
    torch.testing.assert_close(made.cpu(), expected)
    with torch.autocast("cuda"):
        made = layer(x.cuda())[0]
    assert made.dtype == torch.float16
    torch.testing.assert_close(made.float().cpu(), host(x)[0], atol=2e-3, rtol=0)
    made.sum().backward()
    assert layer.weight_hh_l0.grad.is_cuda


def test_seeds_and_generators():
    draws = []
    for _ in range(2):
        generator = torch.Generator(device="cuda").manual_seed(7)
        torch.cuda.manual_seed_all(3)
        draws.append((torch.randn(2, generator=generator, device="cuda").tolist(), torch.rand(2, device="cuda").tolist()))
    assert draws[0] == draws[1]
    assert isinstance(torch.Generator(), torch.Generator)


def test_default_devices():
    with torch.device("cuda"):
        assert torch.zeros(1).is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(1).is_cuda
    finally:
        torch.set_default_device(None)


def test_what_is_asked_of_the_device():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_capability() == (10, 0)
    assert "Girih" in torch.cuda.get_device_name()
    assert torch.cuda.get_device_properties("cuda").multi_processor_count >= 1
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 0
    with torch.cuda.stream(torch.cuda.Stream()) as stream, torch.cuda.device(0):
        assert stream is None or torch.cuda.current_stream() is not None
    with torch.cuda.nvtx.range("x"):
        pass
    assert torch.cuda.device(0).idx == 0 and torch._C._cuda_getCurrentRawStream(0) == 0


def test_events():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    before = time.perf_counter()
    start.record()
    end.record()
    end.synchronize()
    after = time.perf_counter()
    assert 0 <= start.elapsed_time(end) <= (after - before) * 1000


def test_a_tensor_no_kernel_can_take():
    with pytest.raises(TypeError, match="girih: an argument is a tensor that has the layout torch.sparse_coo"):
        ct.launch(0, (1,), copies, (torch.zeros(T).to_sparse(), torch.zeros(T)))


def test_torch_imported_before_girih(tmp_path):
    import subprocess
    import sys

    code = "import torch; import girih.cutile; girih.cutile.install(); print(torch.zeros(1, device='cuda').is_cuda)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert out.stdout == "True\n", out.stderr
