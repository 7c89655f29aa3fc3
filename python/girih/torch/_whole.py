"""Operations that Girih computes as one and PyTorch would take apart, kept whole while a graph is traced.

In: a trace for inference. Out: the same trace, in which `aten.linear`, `aten.softmax` and their like are single operations.

Invariant: an operation that something differentiates inside the trace is taken apart, because derivatives are defined on the
pieces; kept whole, it would be a constant to whoever differentiates. `differentiated` decides that from what PyTorch's
dispatcher holds at the moment of the call: a level of `torch.func` (grad, vjp, jvp, vmap, ...) that is being computed, a dual
level of forward-mode AD, or an operand that wants a gradient while gradients are recorded. Below those levels the pieces
that remain may again be kept.
"""

from __future__ import annotations

import contextlib
import functools

import torch
from torch._C import DispatchKey
from torch._export.utils import _get_decomp_for_cia
from torch._subclasses import fake_impls
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from girih import _library

__all__ = ["differentiated", "kept", "operations", "overloads"]

# Operations that PyTorch would take apart, and Girih computes as one. Only those without side effects may be kept.
NAMES = (
    "linear", "matmul", "rms_norm", "layer_norm", "group_norm", "softmax", "log_softmax", "scaled_dot_product_attention",
    "cosine_similarity", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "adaptive_avg_pool1d", "avg_pool1d",
    "upsample_nearest2d", "upsample_bilinear2d", "lstm", "gru", "rnn_tanh", "rnn_relu",
)  # fmt: skip

AUTOGRAD = (DispatchKey.AutogradCPU, DispatchKey.AutogradCUDA, DispatchKey.AutogradMeta)
BACKENDS = (DispatchKey.CPU, DispatchKey.CUDA, DispatchKey.Meta)


@functools.cache
def operations() -> frozenset[str]:
    """The ATen operations that have a decomposition here."""
    return frozenset(name.removeprefix("aten.") for name in _library.extension().torch_operations())


@functools.cache
def overloads() -> tuple:
    """The overloads of `NAMES` that Girih knows and that PyTorch takes apart."""
    found = []
    for name in NAMES:
        packet = getattr(torch.ops.aten, name, None)
        if packet is None or name not in operations():
            continue
        for overload in packet.overloads():
            op = getattr(packet, overload)
            composite = op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)
            if composite and op._schema.is_mutable is False and overload != "out" and "dimname" not in overload:
                found.append(op)
    return tuple(found)


def differentiated(args, kwargs) -> bool:
    """True if something differentiates the result of an operation with these operands, or maps it over a batch."""
    if torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
        return True
    if not torch.is_grad_enabled():
        return False
    return any(isinstance(a, torch.Tensor) and a.requires_grad for a in pytree.arg_tree_leaves(*args, **kwargs))


def whole(op, pieces):
    """The function that PyTorch asks to take an operation apart: it declines, unless something differentiates the operation."""

    def call(*args, **kwargs):
        return pieces(*args, **kwargs) if differentiated(args, kwargs) else NotImplemented

    return call


def above(op, pieces):
    """The operation where gradients are recorded."""

    def call(*args, **kwargs):
        if differentiated(args, kwargs):
            return pieces(*args, **kwargs)
        with torch._C._AutoDispatchBelowAutograd():
            return op(*args, **kwargs)

    return call


def shapes(pieces):
    """The function that fake tensors call for an operation: it gives the shapes that its pieces have."""

    def call(mode, _op, *args, **kwargs):
        with mode:
            return pieces(*args, **kwargs)

    return call


@contextlib.contextmanager
def kept():
    """A context in which tracing keeps those operations whole, where nothing differentiates them."""
    with contextlib.ExitStack() as changes:
        for op in overloads():
            changes.callback(restore, op, dict(op.py_kernels))
            pieces = _get_decomp_for_cia(op)
            for key in AUTOGRAD:
                op.py_kernels.setdefault(key, above(op, pieces))
            for key in BACKENDS:
                op.py_kernels.setdefault(key, pieces)
            op.py_kernels[DispatchKey.CompositeImplicitAutograd] = whole(op, pieces)
            op._dispatch_cache.clear()
            if not fake_impls._is_op_registered_to_fake_rule(op):
                fake_impls.register_op_impl(op)(shapes(pieces))
                changes.callback(fake_impls._deregister_op_impl, op)
        yield


def restore(op, kernels) -> None:
    op.py_kernels.clear()
    op.py_kernels.update(kernels)
    op._dispatch_cache.clear()
