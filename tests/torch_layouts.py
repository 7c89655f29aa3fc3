"""Where results of PyTorch's own list of operations lie, for operands that lie in several ways, against eager mode.

    python tests/torch_layouts.py [--filter NAME] [--dtype f32] [--samples N] [--first K] [--every N] [--predicted]

In: `op_db` of PyTorch's tests, with each sample's tensors in each of `LAYOUTS`. Out: one line for each operation and layout whose
results differ in strides, offset, element type, memory format, `requires_grad` or what they share memory with; exit code 1 where one
does. With `--predicted` nothing is compiled or run: the strides are those that the traced graph says, which is what Girih's results
get, and all of the list takes minutes.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

import girih.torch
from girih.torch import _backend, _draws, _graph, _layouts, _whole

sys.path.insert(0, str(Path(__file__).resolve().parent))

from opinfo import DTYPES, UNINITIALISED, first_line, known, samples_of  # noqa: E402

__all__ = ["LAYOUTS", "differences", "predicted"]

#: In eager mode, `diff` of order 0 gives a copy that keeps strides along axes of one element, where they do not matter.
NOT_COMPARED = {"diff"} | UNINITIALISED


def turned(order):
    """A tensor whose memory has the axes in another order; `order` is told their number."""

    def lie(t):
        axes = order(t.dim())
        return t.permute(axes).contiguous().permute([axes.index(a) for a in range(t.dim())])

    return lie


def sliced(t):
    wide = torch.zeros(*t.shape[:-1], 2 * t.shape[-1], dtype=t.dtype)[..., ::2]
    return wide.copy_(t)


def offset(t):
    more = torch.zeros(t.shape[0] + 1, *t.shape[1:], dtype=t.dtype)[1:]
    return more.copy_(t)


def expanded(t):
    return t[:1].clone().expand(t.shape) if t.shape[0] > 1 else t


transposed = turned(lambda n: [*range(n)][::-1])
channels_last = turned(lambda n: [0, *range(2, n), 1] if n > 2 else [*range(n)])

#: From the number of a tensor among the operands to how it lies.
LAYOUTS = {
    "rows": lambda at: torch.Tensor.contiguous,
    "transposed": lambda at: transposed,
    "channels_last": lambda at: channels_last,
    "rotated": lambda at: turned(lambda n: [n - 1, *range(n - 1)]),
    "sliced": lambda at: sliced,
    "offset": lambda at: offset,
    "expanded": lambda at: expanded,
    "first transposed": lambda at: transposed if at == 0 else torch.Tensor.contiguous,
    "second transposed": lambda at: transposed if at == 1 else torch.Tensor.contiguous,
    "first of one": lambda at: (lambda t: transposed(t[:1])) if at == 0 else transposed,
}


def laid(sample, layout):
    """The operands of a sample in a layout."""
    count = iter(range(1000))

    def lie(t):
        if not isinstance(t, torch.Tensor):
            return t
        at = next(count)
        return LAYOUTS[layout](at)(t.detach()) if t.layout is torch.strided and t.dim() else t

    return pytree.tree_map(lie, (sample.input, sample.args, sample.kwargs))


def place(t):
    formats = [t.is_contiguous()]
    if t.dim() in (4, 5):
        formats.append(t.is_contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d))
    return t.dtype, tuple(t.shape), t.stride() if t.numel() else None, t.storage_offset(), formats, t.requires_grad


def strides(t):
    return tuple(t.shape), t.stride() if t.numel() else None


def shared(tensors):
    storages = [t.untyped_storage()._cdata if t.numel() else None for t in tensors]
    return [storages.index(s) for s in storages]


def predicted(module, inputs):
    """A backend whose results have the strides that the traced graph says, and no elements of anything."""
    from torch._dynamo.backends.common import aot_autograd

    _draws.free_order(module)

    def compiler(traced, _inputs):
        nodes = next(n for n in traced.graph.nodes if n.op == "output").args[0]

        def result(node):
            value = node.meta.get("val") if isinstance(node, torch.fx.Node) else node
            if not isinstance(value, torch.Tensor):
                return value
            return torch.empty_strided(value.shape, _layouts.strides_of_view(node, _graph.viewed), dtype=value.dtype)

        return _backend.boxed(lambda *_args: [result(n) for n in nodes])

    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler, decompositions=_backend.traced())
    with _whole.kept():
        return backend(module, inputs)


def differences(name, dtype="f32", samples=2, layouts=tuple(LAYOUTS), backend="girih", **options):
    """Where results of an operation lie otherwise, and how many cases there were: a list of sentences, a number."""
    op, found, count = known()[name], [], 0
    look = strides if backend is predicted else place

    def function(x, args, kwargs):
        return op.op(x, *args, **kwargs)

    def call(f, operands):
        torch.manual_seed(1)
        with torch.no_grad():
            return [t for t in pytree.tree_leaves(f(*operands)) if isinstance(t, torch.Tensor)]

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, dynamic=False, **options)
    for number, sample in enumerate(samples_of(op, name, dtype, samples)):
        for layout in layouts:
            try:
                operands = laid(sample, layout)
                wanted = call(function, operands)
            except Exception:
                continue
            try:
                given = call(compiled, operands)
            except Exception as e:
                # PyTorch's own: it refuses to trace writes to expanded tensors, among others.
                if "when making fake tensor call" not in str(e):
                    found.append(f"{name}, {layout}, sample {number}: raises {type(e).__name__}: {first_line(e)}")
                continue
            count += 1
            mine, theirs = ([look(t) for t in results if t.layout is torch.strided] for results in (given, wanted))
            if mine != theirs:
                found.append(f"{name}, {layout}, sample {number}: {mine}, not {theirs}")
            elif look is place:
                inputs = [t for t in pytree.tree_leaves(operands) if isinstance(t, torch.Tensor)]
                a, b = (shared([*inputs, *results]) for results in (given, wanted))
                if a != b:
                    found.append(f"{name}, {layout}, sample {number}: shares {a}, not {b}")
    return found, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="only each N-th operation, from the first on")
    parser.add_argument("--predicted", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    options = {"backend": predicted} if args.predicted else {"options": {"device": "eval"}}
    failed = total = 0
    for name in [n for n in known() if args.filter in n][args.first :: args.every]:
        if name in NOT_COMPARED or getattr(torch, DTYPES[args.dtype]) not in known()[name].dtypes:
            continue
        try:
            found, count = differences(name, args.dtype, args.samples, **options)
        except Exception as e:
            found, count = [f"{name}: {type(e).__name__}: {first_line(e)}"], 0
        failed, total = failed + len(found), total + count
        for sentence in found:
            print(sentence, flush=True)
    print(f"{total} cases, {failed} differ")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
