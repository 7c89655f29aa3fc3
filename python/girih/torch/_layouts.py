"""Operations whose results lie otherwise in PyTorch's kernels than fake tensors say.

In: an operation while a functional graph is traced. Out: the same operation and, where its fake result has other strides than eager
mode gives, a copy that has those: what follows in the graph takes its layout from there.

A function here takes the place of PyTorch's decomposition of an operation. It gives NotImplemented where PyTorch asks it for the
operation that it traces itself.
"""

from __future__ import annotations

import contextlib
import operator
import threading

import torch
from torch._C import DispatchKey
from torch._dispatch.python import no_python_dispatcher
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch._subclasses.functional_tensor import disable_functional_mode
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils import _pytree as pytree

__all__ = ["as_eager", "early_pieces", "is_dense", "is_rows", "strides_of_view"]

aten = torch.ops.aten


def rows(size) -> tuple:
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step = step * n
    return tuple(reversed(strides))


def like_if_channels_last(results, x, *_rest):
    """Channels-last where the operand is; else rows."""
    if x.dim() in (4, 5) and torch._prims_common.suggest_memory_format(x) is not torch.contiguous_format:
        return [torch.empty_like(x).stride()]
    return [rows(results[0].shape)]


def like_second_if_channels_last(results, _grad, x, *_rest):
    """A gradient that is channels-last where the operand that it belongs to is; else rows."""
    return like_if_channels_last(results, x)


def like_copy(results, x, *_rest):
    """As a copy of the operand, which keeps the order of its axes. Fake tensors copy axes of one element otherwise than kernels."""
    size, strides = lying(x)
    with kernels_alone():
        return [torch.empty_strided(size, strides, device="meta").clone().stride()]


def of_rows(results, *_operands, **_named):
    return [rows(results[0].shape)]


def each_of_rows(results, *_operands, **_named):
    return [None if r is None else rows(r.shape) for r in results]


def rolled(results, x, _shifts, dims=()):
    """Channels-last where the operand is; rolled over all elements, rows."""
    return like_if_channels_last(results, x) if dims else [rows(x.shape)]


#: Functions that give the strides of the first results, for operations whose kernels do not do what PyTorch predicts.
STRIDES = {
    "roll": rolled,
    "channel_shuffle": like_if_channels_last,
    "native_channel_shuffle": like_if_channels_last,
    "index_fill": like_copy,
    "native_batch_norm": like_if_channels_last,
    "_native_batch_norm_legit": like_if_channels_last,
    "_native_batch_norm_legit_no_training": like_if_channels_last,
    "_native_batch_norm_legit_functional": like_if_channels_last,
    "_batch_norm_with_update": like_if_channels_last,
    "_batch_norm_with_update_functional": like_if_channels_last,
    "_batch_norm_no_update": like_if_channels_last,
    "native_batch_norm_backward": like_second_if_channels_last,
    "batch_norm_backward": like_second_if_channels_last,
    "replication_pad2d_backward": like_second_if_channels_last,
    "replication_pad3d_backward": like_second_if_channels_last,
    "reflection_pad2d_backward": like_second_if_channels_last,
    "reflection_pad3d_backward": like_second_if_channels_last,
    "native_layer_norm_backward": each_of_rows,
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), of_rows),
    "log_sigmoid_forward": of_rows,
    **dict.fromkeys(("rrelu_with_noise", "rrelu_with_noise_functional"), of_rows),
    **dict.fromkeys(("normal", "upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d", "max_pool1d"), of_rows),
}  # fmt: skip

#: Operations that read elements at places that a tensor gives. PyTorch predicts their strides from the other operand alone.
INDEXING = ("index", "_unsafe_index")
#: Operations whose kernels go through their operands element by element, and do not say so.
ELEMENTWISE = (
    "floor_divide", *INDEXING, "_prelu_kernel_backward", "binary_cross_entropy_backward", "elu_backward",
    "hardsigmoid_backward", "hardswish_backward", "hardtanh_backward", "huber_loss_backward", "leaky_relu_backward",
    "log_sigmoid_backward", "mish_backward", "mse_loss_backward", "rrelu_with_noise_backward", "smooth_l1_loss_backward",
    "soft_margin_loss_backward", "softplus_backward", "softshrink_backward",
)  # fmt: skip


def of_kernels(op, *args, **kwargs) -> list:
    """The strides of the results by the operation's own kernel, on small tensors that lie as the operands: `small`."""
    operands = [x for x in pytree.arg_tree_leaves(*args, **kwargs) if isinstance(x, torch.Tensor)]
    # PyTorch's `is_contiguous` adds guards on symbols, and a false one where a symbolic tensor has no elements.
    indexing = op._opname in INDEXING
    if not indexing and all(is_rows(x.shape, x.stride(), range(x.dim())) for x in operands):
        return []
    # A mask decides how large the result is.
    if indexing and any(x.dtype in (torch.bool, torch.uint8) for x in operands[1:]):
        return []
    filled = torch.zeros if indexing else torch.ones
    shrunk = iter(small([lying(x) for x in operands]))

    def stand_in(value):
        if isinstance(value, torch.Tensor):
            size, stride = next(shrunk)
            reach = 1 + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else 0
            return filled(reach, dtype=value.dtype).as_strided(size, stride)
        return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat)) else value

    with kernels_alone():
        results = op(*pytree.tree_map(stand_in, args), **pytree.tree_map(stand_in, kwargs))
    return [r.stride() for r in (results if isinstance(results, tuple) else (results,))]


@contextlib.contextmanager
def kernels_alone():
    """A context in which operations are those of C++, on real tensors, though a graph is being traced."""
    with unset_fake_temporarily(), disable_functional_mode(), no_python_dispatcher(), torch.no_grad():
        yield


def is_rows(shape, strides, order) -> bool:
    """True if a tensor is row-major for all values of its symbols, where its axes are taken in this order. The test adds no guard."""
    # PyTorch gives a tensor without elements a null address, so its strides do not matter.
    if any(statically_known_true(n == 0) for n in shape):
        return True
    step = 1
    for axis in reversed(order):
        if not statically_known_true(shape[axis] == 1):
            if not statically_known_true(strides[axis] == step):
                return False
            step = step * shape[axis]
    return True


def is_dense(tensor) -> bool:
    """True if the elements fill a stretch of memory, each once."""
    step = 1
    for stride, size in sorted((stride, n) for stride, n in zip(tensor.stride(), tensor.shape) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def overlaps(value) -> bool:
    """True if two elements share an address in the example that was captured."""
    return not are_apart((hint(step), hint(n)) for step, n in zip(value.stride(), value.shape))


def statically_apart(value) -> bool:
    """True if no two elements share an address, whatever the values of symbols. The test adds no guard."""
    return are_apart(zip(value.stride(), value.shape))


def are_apart(axes) -> bool:
    """True if each axis, a step and an extent, is known to step past the reach of the axes inside it."""
    reach = 0
    for step, n in sorted(axes, key=lambda axis: (hint(axis[0]), hint(axis[1]))):
        if not statically_known_true(n <= 1):
            if not statically_known_true(step > reach):
                return False
            reach = reach + (n - 1) * step
    return True


def lying(x) -> tuple[list[int], list[int]]:
    """The shape and the strides of a tensor; of symbols, their values."""
    return [hint(n) for n in x.shape], [hint(n) for n in x.stride()]


def small(tensors) -> list[tuple[list[int], list[int]]]:
    """Shapes and strides of small tensors whose layouts kernels treat like those of `tensors`: they agree in which extents are 1,
    which are equal, the order of extents and of steps, and where elements are dense or repeat.

        [100, 1, 50] with steps 1, 100, 100    -->    [3, 1, 2] with steps 1, 3, 3
    """
    extents = sorted({n for size, _ in tensors for n in size if n > 1})
    number = {0: 0, 1: 1, **{n: 2 + at for at, n in enumerate(extents)}}
    found = []
    for size, stride in tensors:
        steps = [0] * len(size)
        # The last axis as it was and as it is: its step, and how far it reaches.
        was, reached, now, reaches = 0, 1, 0, 1
        for axis in sorted(range(len(size)), key=lambda d: (stride[d], size[d])):
            step, n = stride[axis], size[axis]
            if step == 0:
                continue
            if step != was:
                now = reaches if step == reached else max(now + 1, reaches + 1 if step > reached else now + 1)
            steps[axis] = now
            was, reached, reaches = step, step * max(n, 1), now * max(number[n], 1)
        found.append(([number[n] for n in size], steps))
    return found


class AsEager:
    """An operation whose results lie as in eager mode."""

    def __init__(self, op, strides, pieces):
        """`strides` gives those of the first results, of them and of the operands; where it is None, the kernel does. `pieces` decomposes
        the operation, where PyTorch must."""
        self.op, self.strides, self.pieces = op, strides, pieces
        self.inner = threading.local()

    def __call__(self, *args, **kwargs):
        if getattr(self.inner, "asked", False):
            return NotImplemented
        self.inner.asked = True
        try:
            results = (self.pieces or self.op)(*args, **kwargs)
            if results is NotImplemented:
                return results
            with disable_proxy_modes_tracing(), torch.no_grad():
                wanted = self._wanted(results, args, kwargs)
        finally:
            self.inner.asked = False
        if isinstance(results, tuple):
            return (*map(placed, results, wanted), *results[len(wanted) :])
        return placed(results, wanted[0]) if wanted else results

    def _wanted(self, results, args, kwargs) -> list:
        """The strides of the first results."""
        if self.strides is not None:
            return self.strides(results if isinstance(results, tuple) else (results,), *args, **kwargs)
        try:
            return of_kernels(self.op, *args, **kwargs)
        except Exception:
            # The kernel itself reports an error for operands that it refuses.
            return []


#: Operations in `STRIDES` that PyTorch takes apart before any table of decompositions is asked, and where.
EARLY = ("upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d")
KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


@contextlib.contextmanager
def early_pieces():
    """A context in which the results of operations that PyTorch takes apart early lie as in eager mode too."""
    saved = {op: dict(op.py_kernels) for op in overloads(EARLY) if gives_new(op)}
    for op, kernels in saved.items():
        op.py_kernels.update({key: piece(kernels[key], STRIDES[op._opname]) for key in KEYS if key in kernels})
        op._dispatch_cache.clear()
    try:
        yield
    finally:
        for op, kernels in saved.items():
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def piece(kernel, strides):
    def call(*args, **kwargs):
        result = kernel(*args, **kwargs)
        if result is NotImplemented:
            return result
        with disable_proxy_modes_tracing(), torch.no_grad():
            (wanted,) = strides((result,), *args, **kwargs)
        return placed(result, wanted)

    return call


def placed(tensor, strides):
    """The tensor itself where it has these strides, or strides in their order, else a copy. A result that was not asked for is None."""
    if tensor is None:
        return None
    size, found = lying(tensor)
    if 0 in size or order_of(found, size) == order_of(strides, size):
        return tensor
    order = order_of(strides, size)
    copy = torch.ops.aten.clone.default(tensor.permute(order), memory_format=torch.contiguous_format)
    return copy.permute([order.index(axis) for axis in range(tensor.dim())])


def order_of(strides, size) -> list[int]:
    """The axes from the widest step to the narrowest. An axis of one element is inside the one whose step it has."""
    return sorted(range(len(size)), key=lambda axis: (-hint(strides[axis]), hint(size[axis]) == 1, axis))


def hint(n) -> int:
    """An extent's value, of a symbolic one in the example that was captured; asking adds no guard."""
    return n if isinstance(n, int) else n.node.hint


def as_eager(pieces) -> dict:
    """The functions by operation: for those in `STRIDES`, and for all elementwise operations whose results PyTorch predicts in
    Python; `pieces` are PyTorch's decompositions."""
    from torch._decomp import global_decomposition_table

    predicted = {op for table in ("meta", "post_autograd", "pre_autograd") for op in global_decomposition_table[table]}
    found = {}
    elementwise = {op for op in predicted if torch.Tag.pointwise in getattr(op, "tags", ()) and not is_drawn(op)}
    for op in elementwise | overloads(ELEMENTWISE) | overloads(STRIDES):
        if gives_new(op):
            found[op] = AsEager(op, STRIDES.get(op._opname), pieces.get(op))
    return found


def overloads(names) -> set:
    return {getattr(packet, overload) for packet in (getattr(aten, name) for name in names) for overload in packet.overloads()}


def is_drawn(op) -> bool:
    return torch.Tag.nondeterministic_seeded in op.tags


def gives_new(op) -> bool:
    """True if an operation reads a tensor, writes to none of its operands, and returns new tensors."""
    schema = op._schema
    aliases = any(value.alias_info is not None for value in (*schema.arguments, *schema.returns))
    tensors = any(isinstance(a.type, torch.TensorType) for a in schema.arguments)
    return tensors and not aliases and "out" not in op._overloadname


def strides_of_view(node, viewed):
    """The strides of a node's result; of a view, those that PyTorch's own view operations give, which along axes of one element are
    others than those of fake tensors. `viewed` says what a node is a view of."""
    value, source = node.meta["val"], viewed(node)
    # An element of a list of views.
    at = node.args[1] if node.target is operator.getitem else None
    view = node if at is None else node.args[0]
    if source is None or not is_static([view.args[1:], view.kwargs, value.shape]):
        return value.stride()
    try:
        size, strides = source.meta["val"].shape, strides_of_view(source, viewed)
        with kernels_alone():
            results = view.target(torch.empty_strided(size, strides, device="meta"), *view.args[1:], **view.kwargs)
        result = results if at is None else results[at]
    except Exception:
        # The strides that hold for all values of the symbols.
        return value.stride()
    return result.stride() if result.shape == value.shape else value.stride()


def is_static(values) -> bool:
    return not any(isinstance(v, (torch.SymInt, torch.fx.Node)) for v in pytree.tree_leaves(values))
