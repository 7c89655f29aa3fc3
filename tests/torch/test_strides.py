"""Results lie in memory as PyTorch's do: strides, offsets, what shares memory with what, memory formats, and `requires_grad`."""

import copy
import itertools
import warnings

import pytest
import torch
import torch.nn.functional as F

import girih.torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    girih.torch._partition._warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


LAYOUTS = {
    "rows": lambda: torch.randn(2, 8, 6, 6),
    "channels_last": lambda: torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last),
    "transposed": lambda: torch.randn(6, 8, 6, 2).transpose(0, 3),
    "turned": lambda: torch.randn(8, 6, 2, 6).permute(2, 0, 3, 1),
    "sliced": lambda: torch.randn(2, 8, 6, 12)[..., ::2],
    "offset": lambda: torch.randn(3, 8, 6, 6)[1:],
    "one channel": lambda: torch.randn(2, 1, 6, 6).to(memory_format=torch.channels_last).expand(2, 8, 6, 6),
}

WEIGHT = torch.randn(4, 8, 3, 3)
DEPTHWISE = torch.randn(8, 1, 3, 3)
MATRIX = torch.randn(6, 5)

FUNCTIONS = {
    "roll": lambda x: x.roll(1, 2),
    "roll of all": lambda x: x.roll(3),
    "log sigmoid": lambda x: F.logsigmoid(x),
    "log sigmoid and more": lambda x: F.logsigmoid(x).clamp(min=-0.5) * 2,
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive_avg_pool2d(1)": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d with indices": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "var": lambda x: x.var(0),
    "var of a written one": lambda x: (x.clone().add_(1)).var(0),
    "std kept": lambda x: x.std(1, keepdim=True),
    "mean": lambda x: x.mean((2, 3)),
    "sum": lambda x: x.sum(1),
    "amax": lambda x: x.amax(1, keepdim=True),
    "max": lambda x: x.max(1),
    "sort": lambda x: x.sort(1),
    "topk": lambda x: x.topk(2, 1),
    "cumsum": lambda x: x.cumsum(1),
    "elu": lambda x: F.elu(x),
    "elu of unflatten": lambda x: F.elu(x.unflatten(1, (2, 4))),
    "relu": lambda x: x.relu(),
    "gelu": lambda x: F.gelu(x),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "add": lambda x: x + 1,
    "add of rows": lambda x: x + torch.ones(2, 8, 6, 6),
    "add of a channel": lambda x: x + torch.ones(8, 1, 1),
    "where": lambda x: torch.where(x > 0, x, torch.zeros(())),
    "comparison": lambda x: x > 0,
    "to": lambda x: x.to(torch.float64),
    "to rows": lambda x: x.to(torch.float64, memory_format=torch.contiguous_format),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last) * 2,
    "zeros_like": lambda x: torch.zeros_like(x),
    "full_like": lambda x: torch.full_like(x, 2.0),
    "permute": lambda x: x.permute(0, 2, 3, 1) * 2,
    "transpose": lambda x: (x * 2).transpose(1, 3),
    "flip": lambda x: x.flip(1),
    "pad": lambda x: F.pad(x, (1, 1)),
    "reflected": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicated": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "circular": lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"),
    "cat": lambda x: torch.cat([x, x], 1),
    "stack": lambda x: torch.stack([x, x + 1], 1),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda x: F.interpolate(x, size=(9, 7), mode="bilinear"),
    "conv2d": lambda x: F.conv2d(x, WEIGHT, padding=1),
    "depthwise": lambda x: F.conv2d(x, DEPTHWISE, groups=8),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(8), torch.ones(8)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "instance_norm": lambda x: F.instance_norm(x),
    "matmul": lambda x: x @ MATRIX,
    "matmul of two": lambda x: x @ x.transpose(2, 3),
    "einsum": lambda x: torch.einsum("nchw,ndhw->ncd", x, x),
    "linear": lambda x: F.linear(x, MATRIX.t()),
    "gather": lambda x: x.gather(1, torch.zeros(2, 8, 6, 6, dtype=torch.int64)),
    "index": lambda x: x[:, [0, 2]],
    "index of two": lambda x: x[[0, 1], :, [1, 2]],
    "index_select": lambda x: x.index_select(1, torch.tensor([1, 0])),
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "tril": lambda x: x.tril(),
    "diagonal": lambda x: x.diagonal(0, 2, 3),
    "unfold": lambda x: F.unfold(x, 2),
    "slice": lambda x: x[:, 1:3],
    "narrow of a result": lambda x: (x + 1)[:, 1:3],
    "flatten": lambda x: x.flatten(1) * 1,
    "reshape": lambda x: x.reshape(2, 4, 2, 36),
    "view of both": lambda x: ((y := x * 3), y[0]),
    "split": lambda x: (x + 1).split(4, 1),
    "glu": lambda x: F.glu(x, 1),
    "normalize": lambda x: F.normalize(x, dim=1),
    "dropout2d of none": lambda x: F.dropout2d(x, 0.5, False),
    "local_response_norm": lambda x: F.local_response_norm(x, 2),
    "clamp": lambda x: x.clamp(-1, 1),
    "written": lambda x: x.clone().mul_(2),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
    "cdist": lambda x: torch.cdist(x, x),
    "logsumexp": lambda x: x.logsumexp(1),
    "linalg norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "prelu": lambda x: F.prelu(x, torch.full((8,), 0.1)),
    "rot90": lambda x: x.rot90(1, (2, 3)),
    "movedim": lambda x: x.movedim(1, -1).exp(),
    "argmax": lambda x: x.argmax(1),
    "scatter": lambda x: x.scatter(1, torch.zeros(2, 1, 6, 6, dtype=torch.int64), 1.0),
    "new_zeros": lambda x: x.new_zeros(3, 2),
    "lerp": lambda x: torch.lerp(x, x.relu(), 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x),
}


def place(tensor):
    """How a tensor lies: what says where its elements are, and what PyTorch says of its memory."""
    formats = [tensor.is_contiguous()]
    if tensor.dim() == 4:
        formats.append(tensor.is_contiguous(memory_format=torch.channels_last))
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), formats, tensor.requires_grad


def shared(tensors):
    """For each tensor the first that lies in the same storage."""
    storages = [t.untyped_storage()._cdata for t in tensors]
    return [storages.index(s) for s in storages]


def compare(run, given, wanted_of):
    """The differences between the results of `run` and those of the functions by name, for the same tensors."""
    x, y = given
    results, wanted = run(x), {name: f(y) for name, f in wanted_of.items()}
    found = []
    flat = lambda v: [v] if isinstance(v, torch.Tensor) else list(v)  # noqa: E731
    for name, result in results.items():
        mine, theirs = [x, *flat(result)], [y, *flat(wanted[name])]
        for m, t in zip(mine, theirs):
            if place(m) != place(t):
                found.append(f"{name}: {place(m)}, not {place(t)}")
            # Which of equal elements `topk` takes, nothing says.
            elif not (name == "topk" and t.dtype == torch.int64) and not torch.allclose(m.double(), t.double(), rtol=1e-4, atol=1e-5):
                found.append(f"{name}: another value")
        if shared(mine) != shared(theirs):
            found.append(f"{name}: shares {shared(mine)}, not {shared(theirs)}")
    return found


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results(layout, dynamic):
    if dynamic and layout not in ("channels_last", "turned"):
        pytest.skip("two layouts show it")
    x = LAYOUTS[layout]()
    functions = {name: f for name, f in FUNCTIONS.items() if runs(f, x)}
    assert len(functions) > 80
    run = torch.compile(lambda x: {n: f(x) for n, f in functions.items()}, backend="girih", dynamic=dynamic, options={"device": "eval"})
    with torch.no_grad():
        found = compare(run, (x, x), functions)
    assert not found, "\n".join(found)


def runs(f, x):
    try:
        f(x)
    except (RuntimeError, NotImplementedError):
        return False
    return True


@pytest.mark.parametrize("layout", ["rows", "channels_last", "turned"])
def test_gradients_and_results_of_training(layout):
    smooth = {n: f for n, f in FUNCTIONS.items() if n not in ("zeros_like", "full_like", "comparison", "argmax", "new_zeros", "cdist")}
    x = LAYOUTS[layout]()
    # A tensor of its own: what a view of one has is another matter.
    one, two = (torch.empty_strided(x.shape, x.stride()).copy_(x).requires_grad_() for _ in range(2))
    smooth = {n: f for n, f in smooth.items() if runs(f, two)}
    run = torch.compile(lambda x: {n: f(x) for n, f in smooth.items()}, backend="girih", options={"device": "eval"})
    found = compare(run, (one, two), smooth)
    assert not found, "\n".join(found)
    assert not gradients(smooth, x)


def gradients(functions, x):
    """The differences between gradients, in a graph in which each function has an argument of its own."""
    empty = torch.empty_strided(x.shape, x.stride())
    mine, theirs = ({n: empty.clone().copy_(x).requires_grad_() for n in functions} for _ in range(2))

    def loss(arguments):
        results = [f(arguments[n]) for n, f in functions.items()]
        return sum((first * first).sum() for first in (r if isinstance(r, torch.Tensor) else r[0] for r in results))

    torch.compile(loss, backend="girih", options={"device": "eval"})(mine).backward()
    loss(theirs).backward()
    found = []
    for name in functions:
        grads = mine[name].grad, theirs[name].grad
        if place(grads[0]) != place(grads[1]):
            found.append(f"{name}: gradient {place(grads[0])}, not {place(grads[1])}")
        elif not torch.allclose(*grads, rtol=1e-3, atol=1e-4):
            found.append(f"{name}: another gradient")
    return found


#: Functions whose gradients are computed from another tensor that lies as the result does.
DIFFERENTIATED = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[2:]),
    "group_norm": lambda x: F.group_norm(x, 2),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    **{name: getattr(F, name) for name in ("elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu")},
    **{name: getattr(F, name) for name in ("logsigmoid", "mish", "relu6", "selu", "silu", "softplus", "softshrink", "tanh")},
    "prelu": lambda x: F.prelu(x, torch.full((x.shape[1],), 0.3)),
    "replication_pad2d": lambda x: F.pad(x, (1, 2, 0, 1), mode="replicate"),
    "reflection_pad2d": lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"),
    "replication_pad3d": lambda x: F.pad(x, (1, 1, 0, 1, 2, 0), mode="replicate"),
    "reflection_pad3d": lambda x: F.pad(x, (1, 1, 0, 1, 2, 0), mode="reflect"),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "mse_loss": lambda x: F.mse_loss(x, WITH.expand_as(x), reduction="none"),
    "huber_loss": lambda x: F.huber_loss(x, WITH.expand_as(x), reduction="none"),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, WITH.expand_as(x), reduction="none"),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x, WITH.expand_as(x), reduction="none"),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x.sigmoid(), WITH.expand_as(x).abs(), reduction="none"),
}
WITH = torch.randn(6).clamp(-1, 1)
#: The order in which the axes of a gradient lie.
ORDERS = {"rows": (0, 1, 2, 3), "channels_last": (0, 2, 3, 1), "reversed": (3, 2, 1, 0), "channels first": (1, 0, 2, 3)}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layout", ["rows", "channels_last", "transposed"])
def test_gradients_of_results_whose_own_gradients_lie_otherwise(layout, order):
    axes = ORDERS[order]

    def all_of(x, *given):
        return [torch.autograd.grad(f(x), x, g)[0] for f, g in zip(DIFFERENTIATED.values(), given)]

    x = LAYOUTS[layout]().requires_grad_()
    given = [torch.randn_like(f(x)).permute(axes).contiguous() for f in DIFFERENTIATED.values()]
    given = [g.permute([axes.index(axis) for axis in range(4)]) for g in given]
    found = torch.compile(all_of, backend="girih")(x, *given)
    wanted = all_of(x, *given)
    assert {n: t.stride() for n, t in zip(DIFFERENTIATED, found)} == {n: t.stride() for n, t in zip(DIFFERENTIATED, wanted)}
    for name, a, b in zip(DIFFERENTIATED, found, wanted):
        torch.testing.assert_close(a, b, msg=lambda text, name=name: f"{name}: {text}")


def test_filled_places_of_an_operand_with_gaps_lie_as_a_copy():
    places = torch.tensor([0, 2])
    gaps = (LAYOUTS["sliced"]().transpose(1, 3), torch.randn(80).as_strided((4, 2, 7), (1, 40, 5)), LAYOUTS["turned"]())
    operands = [(x, -1, index) for x in gaps for index in (places, places[:0])]
    # Each axis in turn has one element, and each is moved to the end, whole and with gaps.
    for narrow, moved, end in itertools.product(range(4), range(4), (7, 4)):
        x = torch.randn([1 if axis == narrow else 4 + axis for axis in range(4)]).movedim(moved, -1)[:, :end]
        operands.append((x, 2, places[:1]))
    for x, axis, index in operands:
        torch._dynamo.reset()
        found = torch.compile(lambda x, i, axis=axis: x.index_fill(axis, i, 4), backend="girih")(x, index)
        wanted = x.index_fill(axis, index, 4)
        assert found.stride() == wanted.stride(), (x.shape, x.stride())
        assert torch.equal(found, wanted)


def test_gradients_under_vmap_lie_as_in_eager_mode():
    def gradient(x):
        norm = torch.func.vmap(lambda x: F.batch_norm(x, None, None, training=True))
        return torch.autograd.grad(norm(torch.stack([x, x * 0.5])).sum(0).pow(2).sum(), x)[0]

    for size in ((2, 4), (3, 4, 5), (2, 4, 3, 3)):
        x = torch.randn(size, requires_grad=True)
        torch._dynamo.reset()
        found, wanted = torch.compile(gradient, backend="girih")(x), gradient(x)
        assert found.stride() == wanted.stride()
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


def transposed(*size):
    return torch.randn(size).transpose(1, 2)


OF_SEQUENCES = {
    "nearest": lambda x: F.interpolate(x, size=13, mode="nearest"),
    "nearest-exact": lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "linear": lambda x: F.interpolate(x, size=13, mode="linear"),
    "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "max_pool1d of one": lambda x: F.max_pool1d(x[:1], 2),
    "max_pool1d of no batch": lambda x: F.max_pool1d(x[0], 2, 1, 1),
    "max_pool1d with indices": lambda x: F.max_pool1d(x, 2, return_indices=True)[1],
    "avg_pool1d": lambda x: F.avg_pool1d(x[:1], 2),
    "diff of no times": lambda x: x.diff(n=0),
    "xlog1py": lambda x: torch.special.xlog1py(x.abs(), x.abs()),
    "dropout_backward": lambda x: torch.ops.aten.native_dropout_backward(x, x > 0, 2.0),
    "normal": lambda x: torch.normal(x, x.abs()),
    "normal of a mean": lambda x: torch.normal(x, 1.0),
    "normal of a deviation": lambda x: torch.normal(0.0, x.abs()),
    "rrelu": lambda x: F.rrelu(x),
}


@pytest.mark.parametrize("dynamic", [None, True])
def test_sequences(dynamic):
    """Results of sequences with their channels last, as 1-D convolutions of transformers have them."""
    run = torch.compile(lambda x: {n: f(x) for n, f in OF_SEQUENCES.items()}, backend="girih", dynamic=dynamic, options={"device": "eval"})
    x = transposed(2, 9, 4)
    with torch.no_grad():
        given = run(x)
        found = {n: (given[n].stride(), f(x).stride()) for n, f in OF_SEQUENCES.items()}
    assert not {n: pair for n, pair in found.items() if pair[0] != pair[1]}


def depthwise_net():
    block = lambda c, k, s: [  # noqa: E731
        torch.nn.Conv2d(c, c, 3, s, 1, groups=c, bias=False), torch.nn.BatchNorm2d(c), torch.nn.ReLU6(),
        torch.nn.Conv2d(c, k, 1, bias=False), torch.nn.BatchNorm2d(k), torch.nn.ReLU6(),
    ]  # fmt: skip
    first = [torch.nn.Conv2d(3, 8, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(8)]
    return torch.nn.Sequential(*first, *block(8, 16, 1), *block(16, 24, 2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(24, 5))


@pytest.mark.parametrize("layout", ["rows", "channels_last"])
def test_gradients_of_a_depthwise_network(layout):
    model = depthwise_net()
    x = torch.randn(2, 3, 16, 16)
    if layout == "channels_last":
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    other = copy.deepcopy(model)
    torch.compile(model, backend="girih")(x).square().sum().backward()
    other(x).square().sum().backward()
    found = {n: (place(p.grad), place(q.grad)) for (n, p), q in zip(model.named_parameters(), other.parameters())}
    assert not {n: pair for n, pair in found.items() if pair[0] != pair[1]}


PLACES = {
    "rows": lambda x, i, j: x[i],
    "rows and more": lambda x, i, j: x[i] * 2 + 1,
    "columns": lambda x, i, j: x[:, i],
    "the last axis": lambda x, i, j: x[:, :, i] + 1,
    "two axes": lambda x, i, j: x[i, j] + 1,
    "axes apart": lambda x, i, j: x[i, :, j] + 1,
    "axes apart, behind one": lambda x, i, j: x[:, i, None, j] + 1,
    "a turned operand": lambda x, i, j: x.permute(2, 0, 1)[i] + 1,
    "places of one axis": lambda x, i, j: x[i[0], j] + 1,
    "a mask": lambda x, i, j: x[x > 0] + 1,
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PLACES)
def test_places_that_are_not_row_major(name, dynamic):
    x = torch.randn(7, 4, 5)
    for shape, order in (((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 4), (1, 0, 2)), ((1, 6), (1, 0))):
        i, j = (torch.randint(-4, 4, shape).permute(order) for _ in range(2))
        torch._dynamo.reset()
        wanted = PLACES[name](x, i, j)
        given = torch.compile(PLACES[name], backend="girih", dynamic=dynamic)(x, i, j)
        torch.testing.assert_close(given, wanted, rtol=0, atol=0)
        # Where an axis has one element, its step says nothing.
        steps = [[step for step, n in zip(t.stride(), t.shape) if n > 1] for t in (given, wanted)]
        assert steps[0] == steps[1]


OVERLAPPING = {
    "unfolded": lambda x, k: x.flatten().unfold(0, k, 1), "unfolded_by_2": lambda x, k: x.flatten().unfold(0, k + 1, 2),
    "rows": lambda x, k: x.unfold(1, k, 1).transpose(0, 1), "strided": lambda x, k: x.as_strided((4, k), (2, 1)),
    "expanded": lambda x, k: x[:, :1].expand(-1, k), "apart": lambda x, k: x.unfold(1, k, k), "sliced": lambda x, k: x[:, :k],
}  # fmt: skip
SCATTERED = {
    "select": lambda v: v.select_scatter(v.select(1, 0) * 2, 1, 0),
    "slice": lambda v: v.slice_scatter(v[:, 1:] * 2, 1, 1),
    "diagonal": lambda v: v.diagonal_scatter(v.diagonal() * 2),
    "twice": lambda v: v.select_scatter(v.select(0, 1) * 3, 0, 1).slice_scatter(v[:1] * 2, 0, 0, 1) + 1,
}


@pytest.mark.filterwarnings("ignore:girih. ")
@pytest.mark.parametrize("view", OVERLAPPING)
def test_copies_of_views_whose_elements_share_memory(view):
    """The copies share as the views do: a write to one element changes another."""
    for part in SCATTERED.values():
        torch._dynamo.reset()
        function = lambda x, k, part=part: part(OVERLAPPING[view](x, k))  # noqa: E731
        for dynamic in (False, True):
            compiled = torch.compile(function, backend="girih", dynamic=dynamic)
            for k in (2, 1, 3):
                x = torch.randn(5, 6)
                given, wanted = compiled(x, k), function(x, k)
                torch.testing.assert_close(given, wanted)
                assert given.stride() == wanted.stride()
