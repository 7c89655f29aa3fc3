"""Functions of a tensor and of numbers that change from call to call: results as eager mode gives them, views included."""

import itertools
import os
import subprocess
import sys
import warnings

import pytest
import torch

import girih.torch


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


def aliases(results, inputs):
    """Which of the tensors share memory, as the pairs of their numbers."""
    tensors = [t for t in (*inputs, *results) if isinstance(t, torch.Tensor)]
    addresses = [t.untyped_storage().data_ptr() for t in tensors]
    return {(i, j) for i, j in itertools.combinations(range(len(tensors)), 2) if addresses[i] == addresses[j] != 0}


def steps(tensor):
    """The strides that mean something: those of axes with more than one element."""
    return [s for s, n in zip(tensor.stride(), tensor.shape) if n > 1] if tensor.numel() else []


def same(function, *calls, compiled=None):
    """Calls the function compiled and as it is, and compares values, shapes, strides, offsets, and who shares memory."""
    compiled = compiled or torch.compile(function, backend="girih")
    for inputs in calls:
        given, wanted = compiled(*inputs), function(*inputs)
        given, wanted = ([r] if not isinstance(r, (tuple, list)) else list(r) for r in (given, wanted))
        assert len(given) == len(wanted)
        for at, (g, w) in enumerate(zip(given, wanted)):
            name = f"result {at} for {inputs[1:]}"
            if not isinstance(w, torch.Tensor):
                assert (type(g), g) == (type(w), w) or g != g and w != w, name
                continue
            placed = [(t.shape, t.dtype, steps(t), t.storage_offset()) for t in (g, w)]
            assert placed[0] == placed[1], name
            torch.testing.assert_close(g, w, msg=name, equal_nan=True)
        assert aliases(given, inputs) == aliases(wanted, inputs), inputs[1:]


# Views.

# Each shows a part of a 6 x 6 tensor that depends on a number from 1 to 4.
VIEWS = {
    "select": lambda x, k: x[k],
    "select_column": lambda x, k: x[:, k],
    "select_from_end": lambda x, k: x[-k],
    "slice": lambda x, k: x[k : k + 2],
    "slice_of_end": lambda x, k: x[-k:],
    "slice_between": lambda x, k: x[k:-1],
    "strided": lambda x, k: x[k::2],
    "narrow": lambda x, k: x.narrow(1, k, 2),
    "split": lambda x, k: x.split([k, 6 - k])[1],
    "unbind": lambda x, k: x.unbind(1)[2][k:],
    "chunk": lambda x, k: x.chunk(3, 1)[1][k],
    "diagonal": lambda x, k: x.diagonal(k),
    "unfold": lambda x, k: x.unfold(0, k, 1),
    "as_strided": lambda x, k: x.as_strided((k, 2), (6, 1), k),
    "expand": lambda x, k: x[k : k + 1].expand(k, 6),
    "expand_new": lambda x, k: x[k].expand(2, k, 6),
    "transposed": lambda x, k: x.t()[k:].unsqueeze(0).permute(2, 0, 1),
    "reshaped": lambda x, k: x[k : k + 2].view(3, 4),
    "squeezed": lambda x, k: x[k : k + 1].squeeze(0),
    "movedim": lambda x, k: x.view(3, 2, 6).movedim(0, 2)[:, k + 1],
}

def one_each(of):
    """A function that gives each view of a tensor of its own, so that nothing else shows that tensor."""
    return lambda x, k: tuple(view(of(x, k, at), k) for at, view in enumerate(VIEWS.values()))


def twice(y):
    return y, y[None]


def and_double(y):
    """A view, and what is computed with the same view."""
    return y, y * 2


SETTINGS = {
    "input": lambda x, k: tuple(view(x, k) for view in VIEWS.values()),
    "input_and_itself": lambda x, k: (x, *(view(x, k) for view in VIEWS.values())),
    "intermediate": one_each(lambda x, k, at: x * (at + 2)),
    "intermediate_of_number": one_each(lambda x, k, at: x * k + at),
    "turned": lambda x, k: tuple(VIEWS[v]((x + at).t(), k) for at, v in enumerate(VIEWS) if v not in CONTIGUOUS),
    "all_of_one": lambda x, k: (y := x + k, *(view(y, k) for view in VIEWS.values())),
    "two_of_one": lambda x, k: tuple(v for at, view in enumerate(VIEWS.values()) for v in twice(view(x + at, k))),
    "computed_from": lambda x, k: tuple(v for view in VIEWS.values() for v in (view(x, k), view(x, k) * 2)),
    "computed_with": lambda x, k: tuple(v for view in VIEWS.values() for v in and_double(view(x, k))),
    "computed_with_of_one": lambda x, k: tuple(
        v for at, view in enumerate(VIEWS.values()) for v in and_double(view(x * (at + 2), k))
    ),
}  # fmt: skip

# Views that need rows next to each other.
CONTIGUOUS = ("reshaped", "movedim", "as_strided")

# Views that show an element twice, so that PyTorch refuses to write into them.
OVERLAPPING = ("unfold", "expand", "expand_new")


@pytest.mark.parametrize("setting", SETTINGS)
def test_views(setting):
    x = torch.randn(6, 6)
    same(SETTINGS[setting], *[(x, k) for k in (1, 2, 3, 4)])


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_alone(name):
    x = torch.randn(6, 6)
    same(lambda x, k: VIEWS[name](x * k, k), *[(x, k) for k in (1, 2, 3)])


def test_views_of_an_input_that_is_a_view_itself():
    base = torch.randn(8, 9)
    views = [view for name, view in VIEWS.items() if name not in CONTIGUOUS]
    function = lambda x, k: tuple(view(x, k) for view in views)  # noqa: E731
    same(function, *[(base[2:, 3:], k) for k in (1, 2, 3)])
    torch._dynamo.reset()
    same(function, *[(base[1:7, 2:8].t(), k) for k in (1, 2, 3)])


def test_writing_into_a_view_of_an_input_and_of_a_result():
    compiled = torch.compile(lambda x, k: (y := x * 2, y[k], x[k]), backend="girih")
    for k in (1, 2, 3):
        x = torch.randn(6, 6)
        y, part, shown = compiled(x, k)
        part.fill_(7.0)
        shown.fill_(5.0)
        assert (y[k] == 7).all() and (x[k] == 5).all()


# Strides of a 6 x 6 tensor. What is written into a view keeps the gaps between the elements.
LAYOUTS = {
    "padded_rows": (9, 1),
    "columns": (1, 6),
    "gaps": (12, 2),
    "gaps_in_columns": (2, 13),
}

WRITES = {
    "number": lambda v, k: v.fill_(k),
    "first": lambda v, k: v[:1].add_(k),
    "some": lambda v, k: v[..., k:].neg_(),
    "function": lambda v, k: v.sigmoid_(),
}


def placed_in_memory(strides):
    """A 6 x 6 tensor with these strides that is not a view, and the memory it is in."""
    memory = torch.arange(96.0) - 40
    return torch.empty(0).set_(memory.untyped_storage(), 0, (6, 6), strides), memory


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:girih. ")
def test_a_view_that_was_written_into(layout):
    names = [name for name in VIEWS if name not in (*CONTIGUOUS, *OVERLAPPING)]
    for at, name in enumerate(names):
        # Layouts begin at different writes, so that together they have all pairs of a view and a write.
        write = [*WRITES.values()][(at + list(LAYOUTS).index(layout)) % len(WRITES)]

        def function(x, k, view=VIEWS[name], write=write):
            v = view(x, k)
            write(v, k)
            return v

        torch._dynamo.reset()
        # With symbols for extents PyTorch makes the result anew, by the strides of what was computed.
        compiled = torch.compile(function, backend="girih", dynamic=True)
        for k in (2, 3):
            (x, memory), (y, expected) = (placed_in_memory(LAYOUTS[layout]) for _ in range(2))
            given, wanted = compiled(x, k), function(y, k)
            assert given.untyped_storage().data_ptr() == memory.data_ptr(), (name, k)
            found, due = ((t.shape, steps(t), t.storage_offset()) for t in (given, wanted))
            assert found == due, (name, k)
            torch.testing.assert_close(memory, expected)


# Numbers.

INTS = (3, 7, -2, -7, 1)

OF_INTS = {
    "product": lambda x, k: x * k,
    "sum": lambda x, k: x + k - 2 * k,
    "floor_division": lambda x, k: x * (k // 3) + k % 3,
    "divided_by": lambda x, k: x * (100 // k) + 100 % k,
    "divided_both": lambda x, k: x * ((k * k + 1) // k) + (k + 10) % (k + 20),
    "true_division": lambda x, k: x * (k / 4),
    "power": lambda x, k: x + k**2,
    "extremes": lambda x, k: x + max(k, 2) * min(k, 4) + abs(k),
    "compared": lambda x, k: x * 2 if k > 0 else x - k,
    "clamped": lambda x, k: x.clamp(min=k),
    "where": lambda x, k: torch.where(x > k, x, k),
    "as_tensor": lambda x, k: x + torch.full((6,), k),
    "integers": lambda x, k: x.to(torch.int32) * k,
    "bools": lambda x, k: (x > 0) * k,
    "filled": lambda x, k: x.masked_fill(x > 0, k),
    "alpha": lambda x, k: torch.add(x, x, alpha=k),
    "lower": lambda x, k: x.tril(k),
    "upper": lambda x, k: x.triu(k) * 2,
    "rolled": lambda x, k: x.roll(k, 0) * 2,
    "returned": lambda x, k: (x * 2, k, k * 2 - 7, k / 2, k > 1, k // 2, k % 3),
}


@pytest.mark.parametrize("name", OF_INTS)
def test_integers(name):
    x = torch.randn(6, 6)
    same(OF_INTS[name], *[(x, k) for k in INTS])


@pytest.mark.parametrize("name", ["product", "sum", "floor_division", "integers", "power"])
def test_integers_are_compiled_whatever_their_sign(name, whole):
    same(OF_INTS[name], *[(torch.randn(6, 6), k) for k in INTS])


def test_integers_beyond_what_a_symbol_may_be():
    same(lambda x, k: x * k, *[(torch.arange(4), k) for k in (3, -5, 1 << 45, -(1 << 50), 9)])


def test_indices_that_count_from_the_end():
    x = torch.randn(6, 6)
    for function in (lambda x, k: x[k] * 2, lambda x, k: x[k:] * 2, lambda x, k: x[:k] + 1, lambda x, k: x[:, k] + k):
        torch._dynamo.reset()
        same(function, *[(x, k) for k in (-1, -2, -3, 2, 3, 0, -6)])


def test_indices_of_index_fill_count_from_the_end_too():
    x = torch.arange(15).reshape(5, 3)
    functions = [lambda x, i: x.index_fill(0, i, 7), lambda x, i: (y := x * 2).index_fill_(0, i, -1) + y]
    for function in functions:
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="girih")
        same(function, *[(x, torch.tensor(i, dtype=torch.int64)) for i in ([-1, 0], [-5, 4, -5], [-2], [])], compiled=compiled)
        for beyond in ([-6, 0], [5]):
            with pytest.raises(IndexError, match="out of bounds|out of range"):
                compiled(x, torch.tensor(beyond))


@pytest.mark.filterwarnings("ignore:girih. ")
def test_padding_by_nothing_keeps_the_order_of_axes():
    x = torch.randn(5, 5).t()
    pad = torch.nn.functional.pad
    for function in (lambda x, k: pad(x, (k % 3, abs(k))), lambda x, k: pad(x, (0, 0, k, -k)) * 2, lambda x, k: pad(x, (k, 1))):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="girih", dynamic=True)
        same(function, *[(x, k) for k in (2, 0, 3, 0)], compiled=compiled)


@pytest.mark.filterwarnings("ignore:girih. ")
def test_padding_that_cuts_off_keeps_the_order_of_axes_or_raises():
    x = torch.randn(1, 6, 7).transpose(1, 2)
    pad = torch.nn.functional.pad
    amounts = (
        lambda k: (k - 1, k // 2), lambda k: (k, k), lambda k: (abs(k), k // 2), lambda k: (-abs(k), 1, k, 0), lambda k: (0, k, -1, k),
        lambda k: (k * 2, -k, 0, -2), lambda k: (3, -k), lambda k: (-1, -1, k, k),
    )  # fmt: skip
    for of in amounts:
        torch._dynamo.reset()
        function = lambda x, k, of=of: pad(x, of(k)) + 0 * pad(x, of(k)).sum()  # noqa: E731
        compiled = torch.compile(function, backend="girih", dynamic=True)
        for k in (2, 3, 0, 1, -1, -2, -3, -5, -8, 5, 17, -17):
            try:
                function(x, k)
            except RuntimeError:
                with pytest.raises(RuntimeError, match="negative|exceeds"):
                    compiled(x, k)
                continue
            same(function, (x, k), compiled=compiled)


# Numbers that an integer type may not hold: PyTorch raises, wraps them, or bounds nothing by them.
BEYOND = {
    "clamp": lambda x, k: x.clamp(min=k),
    "clamp_max": lambda x, k: x.clamp(max=k),
    "clamp_low": lambda x, k: x.clamp(k, 3),
    "clamp_high": lambda x, k: x.clamp(2, k),
    "clamp_in_place": lambda x, k: x.clone().clamp_(k),
    "fill": lambda x, k: x.clone().fill_(k),
    "full": lambda x, k: torch.full_like(x, k),
    "new": lambda x, k: x.new_full((2,), k),
    "masked": lambda x, k: x.masked_fill(x > 1, k),
    "where": lambda x, k: torch.where(x > 1, x, k),
    "indexed": lambda x, k: x.index_fill(0, torch.tensor([1]), k),
    "scattered": lambda x, k: x.scatter(0, torch.tensor([1]), k),
    "padded": lambda x, k: torch.nn.functional.pad(x, (1, 1), value=k),
    "threshold": lambda x, k: torch.nn.functional.threshold(x, 1, k),
    "alpha": lambda x, k: torch.add(x, x, alpha=k),
    "added": lambda x, k: x + k,
    "compared": lambda x, k: x < k,
}


def outcome(function, *args):
    try:
        return function(*args).tolist()
    except RuntimeError:
        return "raises"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.filterwarnings("ignore:girih. ")
def test_numbers_beyond_an_integer_type(dtype, dynamic):
    x = torch.tensor([4, 0, 255, 1]).to(dtype)
    wrong = []
    for name, function in BEYOND.items():
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="girih", dynamic=dynamic)
        wrong += [
            (name, k, found, due) for k in (2, -2, 300, -300)
            if (found := outcome(compiled, x, k)) != (due := outcome(function, x, k))
        ]  # fmt: skip
    assert not wrong


def test_a_bound_beyond_an_integer_type_is_compiled(whole):
    x = torch.tensor([4, 0, 255, 1], dtype=torch.uint8)
    same(lambda x, k: (x.clamp(min=-2), x.clamp(max=300), x.clamp(-1, 3)), (x, 0))
    same(lambda x, k: (x.clamp(min=k) + 1, x.clamp(k, 100)), *[(x, k) for k in (3, -2, -300, 2)])


def test_reshapes_by_a_changing_number():
    functions = {
        "rows": lambda x, n: x.reshape(n, -1) * 2,
        "windows": lambda x, n: x.view(6 // n, n, 6).transpose(0, 1).reshape(n, -1).softmax(-1),
        "repeated": lambda x, n: x.repeat(n, 1) + n,
        "new": lambda x, n: torch.arange(n) + x[0, 0],
        "strided": lambda x, n: x[:: n] * 2,
    }
    for function in functions.values():
        torch._dynamo.reset()
        same(function, *[(torch.randn(6, 6), n) for n in (2, 3, 1, 6)])


@pytest.mark.parametrize("values", [(2.5, 3.5, -1.5, 0.0, float("inf")), (True, False, True), (2, 2.5, True, -3)], ids=str)
def test_floats_and_bools(values):
    functions = {
        "product": lambda x, k: x * k,
        "integers": lambda x, k: x.to(torch.int32) * k,
        "doubles": lambda x, k: x.double() + k,
        "halves": lambda x, k: x.bfloat16() * k,
        "returned": lambda x, k: (x + 1, k),
    }
    for function in functions.values():
        torch._dynamo.reset()
        same(function, *[(torch.randn(4, 3), k) for k in values])


# What cannot be compiled, or run.


def test_an_index_out_of_range_is_the_error_of_pytorch():
    compiled = torch.compile(lambda x, i: x[i] * 2, backend="girih")
    x = torch.randn(6, 6)
    same(lambda x, i: x[i] * 2, (x, torch.tensor([1, -6])), compiled=compiled)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, torch.tensor([1, 6]))
    same(lambda x, i: x[i] * 2, (x, torch.tensor([0, 5])), compiled=compiled)


@pytest.mark.parametrize("fault", [RuntimeError, OverflowError, ValueError, MemoryError])
@pytest.mark.parametrize("place", ["compile", "run"])
def test_whatever_fails_runs_in_pytorch_with_one_warning(monkeypatch, fault, place):
    from girih.torch import _compiled

    def fail(*_args, **_kwargs):
        raise fault("made to fail")

    if place == "compile":
        monkeypatch.setattr(_compiled.Compiled, "_plan_results", fail)
    else:
        for name in ("_run", "quick"):
            monkeypatch.setattr(_compiled.Compiled, name, fail)
    x = torch.randn(3, 4)
    compiled = torch.compile(lambda x, k: (x * k).exp() + 1, backend="girih")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        same(lambda x, k: (x * k).exp() + 1, (x, 2), (x, 2), compiled=compiled)
    texts = [str(w.message) for w in said if "girih" in str(w.message)]
    assert texts == ["girih: a graph runs in PyTorch: made to fail"]


def test_without_a_c_compiler_pytorch_runs_the_graph(tmp_path):
    program = (
        "import torch, girih.torch, warnings\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    out = torch.compile(lambda x: x * 2 + 1, backend='girih')(torch.ones(3))\n"
        "assert (out == 3).all()\n"
        "assert len([w for w in said if 'girih: a graph runs in PyTorch' in str(w.message)]) == 1, said\n"
    )
    environment = {
        **os.environ, "GIRIH_CC": str(tmp_path / "no-such-compiler"), "GIRIH_CACHE_DIR": str(tmp_path / "cache"),
        "GIRIH_DEVICE": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Tensors that are not what was predicted.

LIES = {
    "dtype": lambda x: x.double(),
    "narrower": lambda x: x.bfloat16(),
    "integers": lambda x: x.to(torch.int64),
    "shape": lambda x: x[:1].clone(),
    "rank": lambda x: x.flatten().clone(),
    "strides": lambda x: x.t().clone().t(),
    "offset": lambda x: torch.cat([x, x])[x.shape[0] :],
    "expanded": lambda x: x[:1].clone().expand(x.shape),
    "zero": lambda x: torch._efficientzerotensor(x.shape),
    "negated": lambda x: torch._neg_view(x.clone()),
    "sparse": lambda x: x.to_sparse(),
}

_lie = LIES["dtype"]


@torch.library.custom_op("girih_tests::lying", mutates_args=())
def lying(x: torch.Tensor) -> torch.Tensor:
    return _lie(x)


@lying.register_fake
def _(x):
    return torch.empty_like(x)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.filterwarnings("ignore:girih. ")
def test_an_operation_may_give_what_it_did_not_announce(lie, dynamic, monkeypatch):
    monkeypatch.setitem(globals(), "_lie", LIES[lie])

    def step(x):
        return torch.relu(torch.ops.girih_tests.lying(x.exp()) * 2)

    x = torch.randn(5, 5)
    given = torch.compile(step, backend="girih", dynamic=dynamic)(x)
    wanted = step(x)
    assert (given.dtype, given.shape, given.layout) == (wanted.dtype, wanted.shape, wanted.layout)
    torch.testing.assert_close(given.to_dense() if given.is_sparse else given, wanted.to_dense() if wanted.is_sparse else wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.filterwarnings("ignore:girih. ")
def test_instance_norm_with_running_statistics(dtype):
    def step(x, mean, var):
        return torch.nn.functional.instance_norm(x, mean, var, use_input_stats=True) * 2

    for shape in [(2, 4, 6), (3, 4, 5), (1, 4, 33)]:
        x = torch.randn(shape).to(dtype)
        kept = [(torch.zeros(4), torch.ones(4)) for _ in range(2)]
        given = torch.compile(step, backend="girih")(x, *kept[0])
        wanted = step(x, *kept[1])
        torch.testing.assert_close(given, wanted)
        torch.testing.assert_close(kept[0], kept[1])


def test_parameters_whose_memory_is_looked_at_otherwise(whole):
    model = torch.nn.Linear(4, 4, bias=False)
    compiled = torch.compile(model, backend="girih")
    x = torch.randn(2, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
        model.weight.data = model.weight.data.t()
        torch.testing.assert_close(compiled(x), model(x))


# Elements of a storage, after some of them were written.

STORAGE_WRITES = {
    "rows": lambda x: x[:1].fill_(1),
    "turned": lambda x: x.t()[1:].mul_(2),
    "row": lambda x: x[1].fill_(1),
    "two": lambda x: (x[1].fill_(1), x[:, 0].add_(2)),
    "diagonal": lambda x: x.diagonal().fill_(3),
    "by_strides": lambda x: x.as_strided((3,), (5,), x.storage_offset()).fill_(4),
}


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("write", STORAGE_WRITES)
def test_views_by_strides_after_writes(write, offset, dynamic):
    """`as_strided` counts elements of the storage, also of what only a part of was computed."""

    def function(x):
        STORAGE_WRITES[write](x)
        start = x.storage_offset()
        shown = x.as_strided((2, 2), (1, 1), start + 0), x.t().as_strided((3, 2), (2, 1), start + 1) * 2
        return (*shown, x.diagonal().as_strided((3,), (1,), start + 2) + 1)

    def argument():
        return torch.arange(31, dtype=torch.float32).as_strided((7, 4), (4, 1), offset)

    torch._dynamo.reset()
    x, y = argument(), argument()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = torch.compile(function, backend="girih", dynamic=dynamic)(x)
    for a, b in zip(given, function(y)):
        assert a.tolist() == b.tolist()
    assert x.tolist() == y.tolist()


@pytest.mark.parametrize("dynamic", [None, True])
def test_asking_for_strides_adds_no_guards(whole, dynamic):
    def f(x, k):
        return torch.full((k % 3, x.unfold(0, abs(k), 1).shape[0] - 1), -0.75)

    compiled = torch.compile(f, backend="girih", dynamic=dynamic)
    x = torch.arange(5.0)
    for k in (-3, -2, 2, 4, -1):
        assert torch.equal(compiled(x, k), f(x, k)), k


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_a_number_that_multiplies_or_divides_is_not_rounded(whole, dtype, mode):
    x = (torch.arange(-40, 41) / 8).to(dtype)
    for y in (0.1, 0.3, -0.7, 1 / 3, 2.5, torch.tensor(0.1), torch.tensor(0.1, dtype=dtype)):

        def f(x):
            return x * y, x + y, torch.div(x, y, rounding_mode=mode)

        torch._dynamo.reset()
        for got, want in zip(torch.compile(f, backend="girih")(x), f(x)):
            assert torch.equal(got, want), y


@pytest.mark.parametrize("dynamic", [None, True])
def test_integers_and_numbers_meet_as_floats(dynamic):
    def f(x):
        return x / -2, torch.true_divide(x, 300), torch.copysign(x, -2), torch.xlogy(x, 300)

    compiled = torch.compile(f, backend="girih", dynamic=dynamic)
    for x in (torch.tensor([0, 1, 7, 255], dtype=torch.uint8), torch.tensor(1, dtype=torch.uint8)):
        for got, want in zip(compiled(x), f(x)):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("dynamic", [None, True])
def test_log_sigmoid_is_row_major(dynamic):
    compiled = torch.compile(torch.nn.functional.logsigmoid, backend="girih", dynamic=dynamic)
    for x in (torch.randn(6, 2).t(), torch.randn(2, 3, 4).permute(2, 0, 1), torch.randn(4, 6)[:, ::2]):
        want, got = torch.nn.functional.logsigmoid(x), compiled(x)
        assert want.stride() == got.stride()
        torch.testing.assert_close(got, want)


# Numbers that decide which operation it is.


def fewer_graphs_than(most):
    """Asserts that everything compiled is native, in at most `most` graphs."""
    report = girih.torch.report(clear=True)
    assert report.native and len(report.graphs) <= most, str(report)


def test_numbers_that_decide_what_an_operation_is(whole):
    """They are guarded: another number is another compilation, another size is not."""
    girih.torch.report(clear=True)
    w, v = torch.randn(4, 2, 3), torch.randn(2, 4, 3)

    def function(x, stride):
        return torch.nn.functional.conv1d(x, w, stride=stride) if x.shape[1] == 2 else x

    calls = [(torch.randn(2, 2, n), stride) for n, stride in ((9, 1), (12, 2), (15, 2), (17, 2), (11, 3), (13, 3))]
    same(function, *calls)
    fewer_graphs_than(5)

    def transposed(x, padding):
        return torch.nn.functional.conv_transpose1d(x, v, padding=padding)

    same(transposed, *[(torch.randn(2, 2, n), padding) for n, padding in ((9, 0), (12, 1), (15, 1), (8, 2))])
    fewer_graphs_than(4)


def test_extents_that_must_be_equal(whole):
    """Symbols of two tensors that PyTorch does not know to be equal are guarded."""
    girih.torch.report(clear=True)

    def function(x, at, values):
        return torch.index_put(x, (at,), values)

    same(function, *[(torch.zeros(9, m), torch.arange(n), torch.randn(n, m)) for n, m in ((3, 5), (4, 6), (7, 2))])
    fewer_graphs_than(2)


def test_sums_of_extents_that_must_be_equal(whole):
    """Keys and values that grow by a row each: `s0 + 1` and `s1 + 1` are one length."""
    girih.torch.report(clear=True)

    def function(q, keys, key, values, value):
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        return torch.nn.functional.scaled_dot_product_attention(q, keys, values)

    def caches(n):
        return [torch.randn(1, 2, m, 8) for m in (1, n, 1, n, 1)]

    same(function, *[caches(n) for n in (3, 4, 7)])
    fewer_graphs_than(3)
