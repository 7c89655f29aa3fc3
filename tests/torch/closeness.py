"""How far a result may be from another: what PyTorch itself loses against float64 is the measure."""

import copy

import torch
from torch.utils import _pytree as pytree

EPS = {torch.float64: 2.0**-52, torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


def widened(value):
    """Every float as float64."""
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).double()
    return pytree.tree_map(lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t, value)


def close(given, eager, exact, name=""):
    """Asserts that `given` is as near to float64 as PyTorch's own result, up to a factor and a few roundings.

    The error allowed is 4 times PyTorch's plus 16 roundings of the greatest result. Everything but floats is equal.
    """
    flat = [pytree.tree_leaves(v) for v in (given, eager, exact)]
    assert len(flat[0]) == len(flat[1]), f"{len(flat[0])} results, not {len(flat[1])}"
    for i, (g, e, x) in enumerate(zip(*flat)):
        if not isinstance(e, torch.Tensor):
            assert g == e
            continue
        assert (g.shape, g.dtype) == (e.shape, e.dtype)
        if not e.is_floating_point():
            assert torch.equal(g, e), f"{name} result {i}"
            continue
        assert torch.equal(g.isnan(), e.isnan()) and torch.equal(g.isinf(), e.isinf()), f"{name} result {i}"
        finite = e.isfinite()
        if not finite.any():
            continue
        x = x[finite].double()
        error, theirs = ((v[finite].double() - x).abs().max().item() for v in (g, e))
        allowed = 4 * theirs + 16 * EPS[e.dtype] * x.abs().max().item()
        print(f"{name} result {i}: error {error:.2e}, PyTorch's {theirs:.2e}, allowed {allowed:.2e}")
        assert error <= allowed, f"{name} result {i}: error {error:.2e}, PyTorch's {theirs:.2e}, allowed {allowed:.2e}"


def matches(model, *inputs, compiled=None, name="", **options):
    """Runs a model compiled, as it is, and in float64, on copies of the inputs; compares results and what was written."""
    compiled = compiled or torch.compile(copy.deepcopy(model), backend="girih", **options)
    given, eager = pytree.tree_map(clone, inputs), pytree.tree_map(clone, inputs)
    exact = widened(pytree.tree_map(clone, inputs))
    with torch.no_grad():
        results = compiled(*given), copy.deepcopy(model)(*eager), widened(model)(*exact)
    close(*results, name=name)
    close(given, eager, exact, name=f"{name} inputs")
    return results[0]


def clone(value):
    return value.clone() if isinstance(value, torch.Tensor) else value
