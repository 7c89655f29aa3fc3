"""Recurrent layers of PyTorch (`torch.nn.LSTM`, `GRU`, `RNN`) while a model is captured.

PyTorch learns the shapes of what they give by tracing them step by step: a length that changes would be taken for a
constant, and a long sequence would take minutes. Here the shapes are computed. And Dynamo captures such layers only
where it is told to; `watch` tells it for graphs for inference of this backend. In training PyTorch takes the layers
apart, step by step, so there they stay outside of graphs, as with every other backend.
"""

from __future__ import annotations

import contextlib
import sys

import torch
from torch._dynamo.callback import CallbackTrigger
from torch._subclasses import FakeTensor, fake_impls
from torch.fx.experimental.proxy_tensor import get_proxy_mode

__all__ = ["SHAPES", "by_shape", "drops", "watch"]

aten = torch.ops.aten


def padded(x, states, bidirectional, batch_first):
    """Empty tensors for the output and the states of a layer, given `x [length, batch, n]`, or `[batch, length, n]`."""
    length, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    out = x.new_empty(length, batch, states[0].shape[-1] * (2 if bidirectional else 1))
    return out.transpose(0, 1) if batch_first else out, *(s.new_empty(s.shape) for s in states)


def packed(x, states, bidirectional):
    """The same for the rows of a packed sequence, `[sum of lengths, n]`."""
    out = x.new_empty(x.shape[0], states[0].shape[-1] * (2 if bidirectional else 1))
    return out, *(s.new_empty(s.shape) for s in states)


def of_padded(states):
    def shapes(mode, _op, x, hx, _params, _biases, _layers, _dropout, _train, bidirectional, batch_first):
        with mode:
            return padded(x, states(hx), bidirectional, batch_first)

    return shapes


def of_packed(states):
    def shapes(mode, _op, x, _sizes, hx, _params, _biases, _layers, _dropout, _train, bidirectional):
        with mode:
            return packed(x, states(hx), bidirectional)

    return shapes


#: Operations, and what gives the shapes of their results.
SHAPES = {aten.lstm.input: of_padded(list), aten.lstm.data: of_packed(list)} | {
    getattr(packet, overload): kind(lambda h: [h])
    for packet in (aten.gru, aten.rnn_tanh, aten.rnn_relu)
    for overload, kind in (("input", of_padded), ("data", of_packed))
}


def drops(node) -> bool:
    """True if a recurrent layer may draw random numbers; PyTorch's tag claims it for all of them."""
    names = [a.name for a in node.target._schema.arguments]
    rate, train, layers = (node.args[names.index(n)] for n in ("dropout", "train", "num_layers"))
    return bool(rate) and bool(train) and layers > 1


@contextlib.contextmanager
def by_shape():
    """A context in which tracing computes the shapes of what recurrent layers give."""
    from torch._decomp import meta_table

    added = [op for op in SHAPES if not fake_impls._is_op_registered_to_fake_rule(op)]
    saved = {op: dict(op.py_kernels) for op in added}
    unknown = [op for op in added if op not in meta_table]
    for op in added:
        fake_impls.register_op_impl(op)(SHAPES[op])
        for key, kernel in saved[op].items():
            op.py_kernels[key] = unless_fake(op, kernel)
        op._dispatch_cache.clear()
    # PyTorch asks an operation in that table for its shapes before it tries to take the operation apart.
    meta_table.update({op: SHAPES[op] for op in unknown})
    try:
        yield
    finally:
        for op in added:
            fake_impls._deregister_op_impl(op)
            op.py_kernels.clear()
            op.py_kernels.update(saved[op])
            op._dispatch_cache.clear()
        for op in unknown:
            meta_table.pop(op, None)


def unless_fake(op, kernel):
    """PyTorch's decomposition of an operation; for a fake tensor outside a trace, only the shapes."""

    def call(x, *args, **kwargs):
        if isinstance(x, FakeTensor) and get_proxy_mode() is None:
            return SHAPES[op](x.fake_mode, op, x, *args, **kwargs)
        return kernel(x, *args, **kwargs)

    return call


class Capture:
    """Lets Dynamo capture recurrent layers while it compiles for inference with a backend."""

    def __init__(self, backend):
        self.backend = backend
        self.contexts = None

    def begins(self, args):
        # A backward graph is compiled from a graph that was captured before.
        if args.callback_trigger is not CallbackTrigger.DYNAMO:
            return
        if torch.is_grad_enabled() or compiling() is not self.backend:
            return
        with contextlib.ExitStack() as contexts:
            contexts.enter_context(torch._dynamo.config.patch(allow_rnn=True))
            contexts.enter_context(by_shape())
            self.contexts = contexts.pop_all()

    def ends(self, _):
        contexts, self.contexts = self.contexts, None
        if contexts is not None:
            contexts.close()


def compiling():
    """The backend that Dynamo compiles for just now."""
    frame = sys._getframe()
    while frame is not None and "compiler_fn" not in frame.f_locals:
        frame = frame.f_back
    found = frame.f_locals["compiler_fn"] if frame is not None else None
    # PyTorch wraps backends, more than once.
    while found is not None and (inner := wrapped(found)) is not None:
        found = inner
    return found


def wrapped(backend):
    names = ("_torchdynamo_orig_backend", "_compiler_fn", "compiler_fn")
    return next((getattr(backend, n) for n in names if getattr(backend, n, None) is not None), None)


def watch(backend):
    """Lets graphs for inference of a backend have recurrent layers."""
    capture = Capture(backend)
    # Dynamo calls them while it holds the lock of its callbacks, which compiling one of them would wait for.
    begins, ends = torch._dynamo.disable(capture.begins), torch._dynamo.disable(capture.ends)

    def begin():
        handler = torch._dynamo.callback_handler
        # `torch._dynamo.reset` forgets them.
        if begins not in handler.start_callbacks:
            handler.register_start_callback(begins)
            handler.register_end_callback(ends)

    backend._dynamo_backend_init = begin
