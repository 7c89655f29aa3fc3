"""LSTM, GRU and RNN of PyTorch: loops over time, of any length."""

import itertools
import os
import re
import warnings

import closeness
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import girih
import girih.torch

KINDS = {
    "lstm": torch.nn.LSTM,
    "gru": torch.nn.GRU,
    "rnn_tanh": torch.nn.RNN,
    "rnn_relu": lambda *args, **kwargs: torch.nn.RNN(*args, nonlinearity="relu", **kwargs),
}
# Extents that change are at least 2, says PyTorch. The simulator of a GPU takes minutes for the longest.
LENGTHS = (2, 7, 64) if os.environ.get("GIRIH_DEVICE") == "sim" else (2, 7, 64, 1000)


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()
    girih.torch._partition._warned.clear()
    girih.torch.report(clear=True)
    with warnings.catch_warnings():
        # PyTorch's export warns of the list in which such a module keeps its weights.
        warnings.filterwarnings("ignore", message=".*_flat_weights.*")
        yield


def layers(kind, **options):
    model = KINDS[kind](5, 6, **options).eval()
    with torch.no_grad():
        for weight in model.parameters():
            # Small, so that rounding does not grow with the steps.
            weight.mul_(0.7)
    return model


def of_any_length(model, *state):
    """The model for any length and any batch."""
    x = torch.randn(4, 4, 5)
    first, second = (torch.export.Dim(n, max=4096) for n in ("first", "second"))
    shapes = [{0: first, 1: second}]
    if state:
        batch = first if model.batch_first else second
        of_state = {1: batch}
        shapes.append((of_state,) * len(state[0]) if isinstance(state[0], tuple) else of_state)
    return girih.torch.export(model, (x, *state), dynamic_shapes=tuple(shapes))


CASES = [
    dict(zip(("num_layers", "bidirectional", "batch_first", "bias"), values))
    for values in itertools.product((1, 2), (False, True), (False, True), (True, False))
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", [CASES[0], CASES[7], CASES[10], CASES[14]], ids=str)
def test_any_length(kind, case):
    model = layers(kind, **case)
    compiled = of_any_length(model)
    for length in LENGTHS:
        shape = (3, length, 5) if case["batch_first"] else (length, 3, 5)
        closeness.matches(model, torch.randn(shape), compiled=compiled, name=f"{length} steps")
    x = torch.randn(1, 1, 5)
    closeness.matches(model, x, compiled=girih.torch.export(model, (x,)), name="1 step")


@pytest.mark.parametrize("kind", KINDS)
def test_initial_state(kind):
    model = layers(kind, num_layers=2, bidirectional=True)
    state = lambda batch: torch.randn(4, batch, 6)
    both = lambda batch: (state(batch), state(batch)) if kind == "lstm" else state(batch)
    compiled = of_any_length(model, both(4))
    for length, batch in ((2, 2), (9, 3), (30, 5)):
        closeness.matches(model, torch.randn(length, batch, 5), both(batch), compiled=compiled)


def test_without_a_batch_and_known_lengths():
    for length in (1, 3, 12):
        model = layers("gru", num_layers=2)
        x = torch.randn(length, 5)
        closeness.matches(model, x, compiled=girih.torch.export(model, (x,)))


def test_projections():
    model = layers("lstm", num_layers=2, bidirectional=True, proj_size=3)
    closeness.matches(model, torch.randn(17, 2, 5), compiled=of_any_length(model))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_element_types(dtype):
    model = layers("lstm").to(dtype)
    x = torch.randn(12, 2, 5, dtype=dtype)
    closeness.matches(model, x, compiled=girih.torch.export(model, (x,)))


def launches(length):
    model = layers("lstm", num_layers=2)
    text = girih.torch.export(model, (torch.randn(length, 2, 5),)).ir("loop")
    return len(re.findall("^loop kernel", text, re.MULTILINE)), len(text)


def test_code_does_not_grow_with_the_length():
    (kernels, size), (more, longer) = launches(50), launches(1000)
    assert kernels == more and longer < size + 200


class Packs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = layers("gru")

    def forward(self, x, sizes, state):
        return torch._VF.gru(x, sizes, state, list(self.inner.parameters()), True, 1, 0.0, False, False)


def test_a_packed_sequence_is_refused_or_left_to_pytorch():
    x, sizes = torch.randn(5, 5), torch.tensor([3, 2])
    with pytest.raises(girih.ProgramError) as error:
        girih.torch.export(Packs(), (x, sizes, torch.zeros(1, 3, 6)))
    assert "a packed sequence has another batch at each step" in error.value.diagnostics[0].message
    model = layers("gru")
    packed = pack_padded_sequence(torch.randn(4, 2, 5), torch.tensor([4, 2]))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, wanted = torch.compile(model, backend="girih")(packed), model(packed)
    torch.testing.assert_close(given[0].data, wanted[0].data)
    torch.testing.assert_close(given[1], wanted[1])


def test_dropout_is_refused_where_it_drops():
    model = KINDS["lstm"](5, 6, num_layers=2, dropout=0.5)
    x = torch.randn(6, 2, 5)
    with pytest.raises(girih.ProgramError) as error:
        girih.torch.export(model.train(), (x,))
    assert "draws the random numbers" in error.value.diagnostics[0].message
    closeness.matches(model.eval(), x, compiled=girih.torch.export(model, (x,)))
    # Behind the last layer there is none.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single = KINDS["lstm"](5, 6, dropout=0.5).train()
    closeness.matches(single, x, compiled=girih.torch.export(single, (x,)))


@pytest.mark.parametrize("kind", KINDS)
def test_compile(kind):
    model = torch.nn.Sequential(torch.nn.Linear(5, 5), layers(kind, num_layers=2, bidirectional=True))
    fast = torch.compile(model, backend="girih")
    for length in (6, 9, 40):
        closeness.matches(model, torch.randn(length, 2, 5), compiled=fast)
    report = girih.torch.report()
    assert report.native, str(report)
    # One for the first length, one for all others.
    assert [len(g.parts) for g in report.graphs] == [1, 1], str(report)


def test_other_backends_and_training_are_as_they_were():
    model = layers("gru")
    x = torch.randn(6, 2, 5)
    with torch.no_grad():
        torch.compile(model, backend="girih")(x)
        assert not torch._dynamo.config.allow_rnn
        graphs = []
        torch._dynamo.reset()
        torch.compile(torch.nn.Sequential(model), backend=lambda g, _: graphs.append(g) or g)(x)
    assert not any("gru" in str(n.target) for g in graphs for n in g.graph.nodes)
    # With gradients Dynamo leaves the layer to PyTorch.
    given = torch.compile(model, backend="girih")(x)[0].sum()
    wanted = model(x)[0].sum()
    torch.testing.assert_close(given, wanted)
    torch.testing.assert_close(
        torch.autograd.grad(given, model.parameters()), torch.autograd.grad(wanted, model.parameters())
    )
