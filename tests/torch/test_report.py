"""`girih.torch.report()`: what ran natively, what did not, why, and at which line of the model."""

import inspect
import warnings

import pytest
import torch

import girih.torch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    girih.torch._partition._warned.clear()
    girih.torch.report(clear=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def line_of(function, text):
    """The number of the line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_nothing():
    report = girih.torch.report()
    assert report.native and not report.graphs
    assert str(report) == "nothing was compiled"


def test_a_native_graph():
    torch.compile(lambda x: torch.relu(x).sum(-1), backend="girih")(torch.randn(3, 4))
    report = girih.torch.report()
    (graph,) = report.graphs
    assert report.native and graph.kind == "inference"
    assert [(p.operations, p.kernels) for p in graph.parts] == [(2, 1)]
    assert str(report) == "graph 1 (inference): 2 operations in 1 kernel"


class Solver(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4))

    def forward(self, x):
        a = self.inner(x).exp()
        b = torch.linalg.qr(a).Q
        return b + 1


def test_what_is_left_and_where():
    with torch.no_grad():
        torch.compile(Solver(), backend="girih")(torch.randn(4, 4))
    report = girih.torch.report()
    (graph,) = report.graphs
    assert not report.native and len(graph.parts) == 2
    (left,) = report.left
    assert (left.operation, left.reason, left.module) == ("aten.linalg_qr", "it is not supported", "")
    file, line = left.place.rsplit(":", 1)
    assert file.endswith("test_report.py") and int(line) == line_of(Solver.forward, "linalg.qr")
    assert f"test_report.py:{line}  aten.linalg_qr  it is not supported" in str(report)
    assert "; 1 operation in PyTorch" in str(report)


def test_training_names_both_graphs():
    x = torch.randn(3, 4, requires_grad=True)
    torch.compile(lambda x: torch.tanh(x).sum(), backend="girih")(x).backward()
    assert [g.kind for g in girih.torch.report().graphs] == ["forward", "backward"]


def test_a_run_that_goes_to_pytorch():
    fast = torch.compile(lambda x, n: x * n, backend="girih", dynamic=True)
    for n in (3, 1 << 45):
        assert torch.equal(fast(torch.arange(4.0), n), torch.arange(4.0) * n)
    (graph,) = girih.torch.report().graphs
    assert graph.parts and not graph.left and not graph.native
    assert len(graph.misfits) == 1 and "a run went to PyTorch: " in str(graph)


def test_breaks_of_dynamo():
    def function(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    torch.compile(function, backend="girih")(torch.randn(3))
    report = girih.torch.report(clear=True)
    assert len(report.graphs) == 2 and sum(report.breaks.values()) == 1 and not report.native
    assert "Dynamo broke a graph" in str(report)
    assert not girih.torch.report().graphs and not girih.torch.report().breaks


def test_a_compilation_that_fails(monkeypatch):
    def broken(*_args, **_how):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(girih.torch._backend, "Compiled", broken)
    x = torch.randn(3)
    assert torch.equal(torch.compile(lambda x: torch.neg(x), backend="girih")(x), -x)
    (left,) = girih.torch.report().left
    assert (left.operation, left.reason) == ("aten.neg", "no compiler")


def test_attention_that_draws_nothing_is_not_refused_for_drawing():
    """PyTorch's tag of random numbers is on attention whatever its dropout is."""
    from torch.fx.experimental.proxy_tensor import make_fx

    from girih.torch import _partition

    def nodes(dropout):
        attention = torch.nn.functional.scaled_dot_product_attention
        traced = make_fx(lambda q: attention(q, q, q, dropout_p=dropout))(torch.ones(1, 2, 3, 4))
        return [n for n in traced.graph.nodes if n.op == "call_function" and "attention" in str(n.target)]

    found = [[_partition.is_random(n) for n in nodes(dropout)] for dropout in (0.0, 0.5)]
    assert found[0] and not any(found[0])
    assert not found[1] or all(found[1])


@pytest.mark.parametrize("place", ["compile", "run"])
def test_every_graph_that_fails_is_warned_about_once(monkeypatch, place):
    """Also the second one of a process, and a graph of two parts that both fail."""
    from girih.torch import _compiled

    def fail(*_args, **_kwargs):
        raise RuntimeError("made to fail")

    for name in ("_plan_results",) if place == "compile" else ("_run", "quick"):
        monkeypatch.setattr(_compiled.Compiled, name, fail)
    for function in (lambda x: x.exp() + 1, lambda x: x.sin() * 2, lambda x: torch.linalg.eigvalsh(x * 2).exp() + 1):
        run, x = torch.compile(function, backend="girih"), torch.eye(3)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                torch.testing.assert_close(run(x), function(x))
        texts = [str(w.message) for w in said if "a graph runs" in str(w.message)]
        assert texts == ["girih: a graph runs in PyTorch: made to fail"]


def test_a_check_of_values_is_not_called_a_random_number():
    run = torch.compile(lambda i: torch.nn.functional.one_hot(i, 4) * 2, backend="girih", options={"device": "eval"})
    assert run(torch.tensor([1, 3])).tolist() == [[0, 2, 0, 0], [0, 0, 0, 2]]
    assert {entry.reason for entry in girih.torch.report().left} <= {"it does more than give a result"}
