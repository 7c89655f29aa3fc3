"""Complex tensors as pairs of reals.

In: a functional FX graph of ATen operations on real and complex tensors. Out: the same graph over real tensors: a complex tensor
of shape ``[..]`` becomes one of shape ``[.., 2]``, with real and imaginary parts side by side, as PyTorch lays out complex
numbers. So arguments and results change their type without a copy, by `torch.view_as_real` and `torch.view_as_complex`.

Each operation on complex tensors has a rule here: a function in terms of real operations, which is traced and takes the
operation's place. One without a rule stays, between two views, and PyTorch runs it.

Fourier transforms are products with the matrix of roots of unity; one whose length is composite is taken apart into shorter ones
(Cooley and Tukey, Math. Comp. 19 (1965), 297-301), each a product again.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.utils import _pytree as pytree

__all__ = ["Pairs", "as_pairs", "as_reals", "bridges"]

aten = torch.ops.aten

# A transform up to this length is one product.
LONGEST_PRODUCT = 64

# Fourier transforms: a library is faster at those that take more than one product.
TRANSFORMS = {"_fft_c2c", "_fft_r2c", "_fft_c2r"}

# PyTorch's numbers for the scaling of a transform: none, by the root of the number of points, by their number.
BY_NOTHING, BY_ROOT, BY_COUNT = 0, 1, 2


class Pair:
    """A complex tensor: `both` has real and imaginary parts along its last axis."""

    def __init__(self, both: torch.Tensor):
        self.both = both

    @property
    def re(self):
        return self.both.select(-1, 0)

    @property
    def im(self):
        return self.both.select(-1, 1)

    @property
    def rank(self):
        return self.both.dim() - 1

    @property
    def shape(self):
        return self.both.shape[:-1]

    def at(self, axis, more=0):
        """An axis counted from the first one."""
        return axis % max(self.rank + more, 1)


def pair(re, im) -> Pair:
    return Pair(torch.stack(torch.broadcast_tensors(re, im), -1))


def parts(value):
    """The real and the imaginary part of an operand; None for one that is zero."""
    if isinstance(value, Pair):
        return value.re, value.im
    if isinstance(value, complex):
        return value.real, value.imag
    return value, None


def beside(real):
    """A real operand for both parts; what has no axes keeps none, since then it does not decide the element type."""
    return real.unsqueeze(-1) if isinstance(real, torch.Tensor) and real.dim() else real


def pair_of(value, like: torch.Tensor) -> Pair:
    """Any operand as a pair, with the element type of another."""
    if isinstance(value, Pair):
        return Pair(value.both.to(like.dtype))
    re, im = (torch.as_tensor(0 if v is None else v, dtype=like.dtype, device=like.device) for v in parts(value))
    return pair(re, im)


# Arithmetic.


def add(a, b, alpha=1, sign=1):
    if isinstance(b, Pair) and isinstance(a, Pair):
        return Pair(torch.add(a.both, b.both, alpha=sign * alpha))
    (ar, ai), (br, bi) = parts(a), parts(b)
    factor = sign * alpha
    im = ai if bi is None else bi * factor if ai is None else ai + bi * factor
    re = ar + br * factor
    return pair(re, im if isinstance(im, torch.Tensor) else torch.full_like(re, im))


def sub(a, b, alpha=1):
    return add(a, b, alpha, -1)


def mul(a, b):
    (ar, ai), (br, bi) = parts(a), parts(b)
    if ai is None or bi is None:
        number, scale = (b, ar) if ai is None else (a, br)
        if isinstance(number, Pair):
            return Pair(number.both * beside(scale))
        return pair(scale * number.real, scale * number.imag)
    return pair(ar * br - ai * bi, ar * bi + ai * br)


def div(a, b):
    """A quotient; a divisor is scaled by its larger part, so that its square does not overflow."""
    br, bi = parts(b)
    if bi is None:
        return Pair(a.both / beside(b))
    if not isinstance(b, Pair):
        return mul(a, 1 / b)
    ar, ai = parts(a)
    scale = torch.maximum(br.abs(), bi.abs())
    br, bi = br / scale, bi / scale
    length = (br * br + bi * bi) * scale
    if ai is None:
        return pair(ar * br / length, -(ar * bi) / length)
    return pair((ar * br + ai * bi) / length, (ai * br - ar * bi) / length)


def conj(a):
    return pair(a.re, -a.im) if isinstance(a, Pair) else a


def angle(a):
    return torch.atan2(a.im, a.re)


def absolute(a):
    return torch.hypot(a.re, a.im)


def exp(a):
    size = torch.exp(a.re)
    return pair(size * torch.cos(a.im), size * torch.sin(a.im))


def product(multiply) -> Callable:
    """A rule for matrix products."""

    def rule(a, b):
        return pair(multiply(a.re, b.re) - multiply(a.im, b.im), multiply(a.re, b.im) + multiply(a.im, b.re))

    return rule


def reduced(f) -> Callable:
    """A rule for sums: along the axes that are named, or all."""

    def rule(a, axes=None, keep=False, *, dtype=None):
        axes = range(a.rank) if axes is None or axes == [] else [axes] if isinstance(axes, int) else axes
        return Pair(f(a.both, [a.at(d) for d in axes], keep))

    return rule


def same(a, b):
    like = reals(a, b)
    both = torch.eq(pair_of(a, like).both, pair_of(b, like).both)
    return torch.logical_and(both.select(-1, 0), both.select(-1, 1))


def reals(*operands) -> torch.Tensor:
    return next(v.both for v in operands if isinstance(v, Pair))


# Operations that move elements.


def kept(a, *_args, **_kwargs):
    return a


def sized(f) -> Callable:
    return lambda a, size, **_: Pair(f(a.both, [*size, 2]))


def as_pair(both):
    return [Pair(x) for x in both] if isinstance(both, (list, tuple)) else Pair(both)


def along(f, more=0) -> Callable:
    """A rule for what is done along one axis, which comes first or is 0."""

    def rule(a, axis=0, *args, **kwargs):
        return as_pair(f(a.both, a.at(axis, more), *args, **kwargs))

    return rule


def along_second(f) -> Callable:
    def rule(a, what, axis=0):
        return as_pair(f(a.both, what, a.at(axis)))

    return rule


def joined(f, more=0) -> Callable:
    def rule(operands, axis=0):
        like = reals(*operands)
        pairs = [pair_of(x, like) for x in operands]
        return Pair(f([p.both for p in pairs], pairs[0].at(axis, more)))

    return rule


def permute(a, axes):
    return Pair(a.both.permute([*(a.at(d) for d in axes), a.rank]))


def transpose(a, first, second):
    return Pair(a.both.transpose(a.at(first), a.at(second)))


def squeeze(a, axes=None):
    axes = range(a.rank) if axes is None else [axes] if isinstance(axes, int) else axes
    return Pair(a.both.squeeze([a.at(d) for d in axes])) if a.rank else a


def pad(a, amounts, value=0):
    re, im = parts(value)
    if re or im:
        return NotImplemented
    return Pair(aten.constant_pad_nd(a.both, [0, 0, *amounts]))


def roll(a, shifts, axes=()):
    if not axes:
        return NotImplemented
    return Pair(torch.roll(a.both, shifts, [a.at(d) for d in axes]))


def where(condition, a, b):
    like = reals(a, b)
    return Pair(torch.where(condition.unsqueeze(-1), pair_of(a, like).both, pair_of(b, like).both))


def index(a, indices):
    return Pair(aten.index(a.both, indices))


def copy(a, *, dtype=None, **_):
    if isinstance(a, Pair):
        if dtype is None or dtype.is_complex:
            return Pair(a.both.to(real_of(dtype)) if dtype else a.both)
        return a.re.to(dtype)
    re = a.to(real_of(dtype))
    return pair(re, torch.zeros_like(re))


def convert(a, dtype):
    return copy(a, dtype=dtype)


def real_of(dtype):
    return {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}[dtype]


def filled(size, value, *, dtype=None, device=None, **_):
    re, im = parts(value)
    kind = real_of(dtype)
    both = (torch.full(list(size), part or 0, dtype=kind, device=device) for part in (re, im))
    return pair(*both)


def filled_like(value) -> Callable:
    def rule(a, given=None, *, dtype=None, device=None, **_):
        if dtype is not None and not dtype.is_complex:
            return NotImplemented
        re, im = parts(value if given is None else given)
        like = a.re if isinstance(a, Pair) else a
        kind = real_of(dtype) if dtype else like.dtype
        return pair(torch.full_like(like, re, dtype=kind), torch.full_like(like, im or 0, dtype=kind))

    return rule


# Fourier transforms.


# Tables that rules ask for while they are traced: what stands for each in the trace, and the table.
_tables: list[tuple[torch.Tensor, torch.Tensor]] = []


def table(make: Callable[[], torch.Tensor], fixed: bool, like: torch.Tensor) -> torch.Tensor:
    """The result of `make`; it is a constant of the graph if its extents are fixed."""
    mode = detect_fake_mode([like])
    if not fixed or mode is None:
        return make()
    with unset_fake_temporarily(), disable_proxy_modes_tracing(), torch.no_grad():
        real = make()
    with disable_proxy_modes_tracing():
        _tables.append((mode.from_tensor(real, static_shapes=True), real))
    return _tables[-1][0]


def turns(rows, columns, n, sign, like):
    """`exp(sign * 2 pi i * j * k / n)` for `j` below `rows` and `k` below `columns`: pairs `[rows, columns, 2]`.

    Products are reduced modulo `n` as integers, angles are of double precision, and where a part is zero it is zero: the spectrum of
    a real signal is real where it must be.
    """
    j, k = (torch.arange(count, dtype=torch.int64, device=like.device) for count in (rows, columns))
    turn = j.unsqueeze(1) * k.unsqueeze(0) % n
    angle = turn.to(torch.float64) * (sign * 2 * math.pi / n)
    straight = turn * 2 % n == 0
    upright = torch.logical_and(turn * 4 % n == 0, ~straight)
    cos, sin = torch.where(upright, 0.0, torch.cos(angle)), torch.where(straight, 0.0, torch.sin(angle))
    return torch.stack([cos, sin], -1).to(like.dtype)


def roots(rows, columns, n, sign, like):
    """The numbers of `turns`, as a table."""
    fixed = all(isinstance(x, int) for x in (rows, columns, n))
    return table(lambda: turns(rows, columns, n, sign, like), fixed, like)


def turning(rows, columns, n, sign, like):
    """The numbers of `turns` as a real matrix `[2 rows, 2 columns]`, which multiplies rows of pairs."""

    def make():
        cos, sin = turns(rows, columns, n, sign, like).unbind(-1)
        above, below = torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)
        return torch.stack([above, below], 1).reshape(2 * rows, 2 * columns)

    return table(make, all(isinstance(x, int) for x in (rows, columns, n)), like)


def rotated(x, n, m, sign) -> torch.Tensor:
    """Pairs `[.., n, 2]` times the first `m` columns of the roots for `n`: one real product."""
    batch = x.shape[:-2]
    return torch.matmul(x.reshape(*batch, 2 * n), turning(n, m, n, sign, x)).reshape(*batch, m, 2)


def known(n):
    """A number of points as an `int` where it is one now."""
    found = n if isinstance(n, int) else n.node.maybe_as_int()
    return n if found is None else found


def divisor(n) -> int | None:
    """The divisor of a length that is too long for one product: the greatest that is not; None where there is none."""
    if not isinstance(n, int) or n <= LONGEST_PRODUCT:
        return None
    return next((d for d in range(LONGEST_PRODUCT, 1, -1) if n % d == 0), None)


def transformed(x, sign) -> torch.Tensor:
    """The transform of pairs `[.., n, 2]` along their points."""
    n = known(x.shape[-2])
    d = divisor(n)
    if d is None:
        return rotated(x, n, n, sign)
    # Point `rest * j + k`, and frequency `u + d * v`: first over `j`, then the roots of `u k`, then over `k`.
    rest, batch = n // d, x.shape[:-2]
    x = rotated(x.reshape(*batch, d, rest, 2).transpose(-3, -2), d, d, sign)
    x = mul(Pair(x), Pair(roots(rest, d, n, sign, x))).both
    x = transformed(x.transpose(-3, -2), sign)
    return x.transpose(-3, -2).reshape(*batch, n, 2)


def scale_of(extents, normalization):
    count = math.prod(extents)
    return {BY_NOTHING: 1, BY_ROOT: count**0.5, BY_COUNT: count}[normalization]


def over(x, axes, sign):
    """The transform of pairs along several axes."""
    rank = x.dim() - 1
    for axis in axes:
        axis %= rank
        x = transformed(x.transpose(axis, -2), sign).transpose(axis, -2)
    return x


def fft_c2c(a, axes, normalization, forward):
    x = over(a.both, axes, -1 if forward else 1)
    return Pair(x / scale_of([a.shape[d] for d in axes], normalization))


def fft_r2c(a, axes, normalization, onesided):
    *others, last = axes
    n = known(a.shape[last])
    d = divisor(n)
    x = a.transpose(last, -1)
    half = n // 2 + 1 if onesided else n
    if d is None:
        matrix = roots(n, half, n, -1, a).reshape(n, 2 * half)
        x = torch.matmul(x, matrix).reshape(*x.shape[:-1], half, 2)
    else:
        x = transformed(torch.stack([x, torch.zeros_like(x)], -1), -1)
        x = x.narrow(-2, 0, half)
    x = over(x.transpose(last % a.dim(), -2), others, -1)
    return Pair(x / scale_of([a.shape[d] for d in axes], normalization))


def fft_c2r(a, axes, normalization, n):
    *others, last = axes
    x = over(a.both, others, 1).transpose(a.at(last), -2)
    n = known(n)
    half = n // 2 + 1
    extents = [a.shape[d] for d in others] + [n]
    x = x.narrow(-2, 0, half)

    def weights():
        # Every frequency but the first, and the last of an even length, stands for two.
        at = torch.arange(half, dtype=torch.int64, device=x.device)
        return torch.where(at * 2 % n == 0, 1.0, 2.0).to(x.dtype)

    def matrix():
        cos, sin = turns(half, n, n, 1, x).unbind(-1)
        return (torch.stack([cos, -sin], 1) * weights().reshape(half, 1, 1)).reshape(2 * half, n)

    if divisor(n) is None:
        y = torch.matmul(x.reshape(*x.shape[:-2], 2 * half), table(matrix, isinstance(n, int), x))
    else:
        x = x * table(weights, isinstance(n, int), x).unsqueeze(-1)
        y = transformed(aten.constant_pad_nd(x, [0, 0, 0, n - half]), 1).select(-1, 0)
    return y.transpose(a.at(last), -1) / scale_of(extents, normalization)


RULES: dict[str, Callable] = {
    "add": add, "sub": sub, "mul": mul, "div": div, "neg": lambda a: Pair(-a.both), "reciprocal": lambda a: div(1.0, a),
    "rsub": lambda a, b, alpha=1: add(b, a, alpha, -1), "conj": conj, "_conj": conj, "_conj_physical": conj, "conj_physical": conj,
    "real": lambda a: a.re, "imag": lambda a: a.im, "abs": absolute, "angle": angle, "exp": exp,
    "log": lambda a: pair(torch.log(absolute(a)), angle(a)), "eq": same, "ne": lambda a, b: ~same(a, b),
    "complex": pair, "polar": lambda size, turn: pair(size * torch.cos(turn), size * torch.sin(turn)),
    "view_as_real": lambda a: a.both, "view_as_complex": Pair, "_to_copy": copy, "convert_element_type": convert,
    "mm": product(torch.mm), "bmm": product(torch.bmm), "matmul": product(torch.matmul), "dot": product(torch.dot),
    "mv": product(torch.mv), "sum": reduced(torch.sum), "mean": reduced(torch.mean), "cumsum": along(torch.cumsum),
    "alias": kept, "clone": lambda a, **_: Pair(a.both.clone()), "detach": kept, "contiguous": kept, "lift_fresh_copy": kept,
    "resolve_conj": kept, "resolve_neg": kept, "view": sized(torch.reshape), "_unsafe_view": sized(torch.reshape),
    "reshape": sized(torch.reshape), "expand": lambda a, size, **_: Pair(a.both.expand([*size, 2])),
    "repeat": lambda a, times: Pair(a.both.repeat([*times, 1])),
    "permute": permute, "transpose": transpose, "t": lambda a: transpose(a, 0, 1) if a.rank == 2 else a,
    "unsqueeze": along(torch.unsqueeze, 1), "squeeze": squeeze, "slice": along(aten.slice.Tensor), "select": along(torch.select),
    "narrow": along(torch.narrow), "unbind": along(torch.unbind), "split": along_second(torch.split),
    "split_with_sizes": along_second(torch.split), "flip": lambda a, axes: Pair(a.both.flip([a.at(d) for d in axes])),
    "index_select": lambda a, axis, which: Pair(torch.index_select(a.both, a.at(axis), which)), "index": index,
    "cat": joined(torch.cat), "stack": joined(torch.stack, 1), "constant_pad_nd": pad, "roll": roll, "where": where,
    "slice_scatter": lambda a, b, axis=0, *span: Pair(aten.slice_scatter(a.both, b.both, a.at(axis), *span)),
    "select_scatter": lambda a, b, axis, at: Pair(aten.select_scatter(a.both, b.both, a.at(axis), at)),
    "sym_size": lambda a, axis: a.both.size(a.at(axis)), "full": filled, "full_like": filled_like(None), "zeros_like": filled_like(0), "ones_like": filled_like(1),
    "zeros": lambda size, **k: filled(size, 0, **k), "ones": lambda size, **k: filled(size, 1, **k),
    "_fft_c2c": fft_c2c, "_fft_r2c": fft_r2c, "_fft_c2r": fft_c2r,
}  # fmt: skip


# Graphs.


def bridges(node) -> bool:
    """True if a node only converts between pairs and PyTorch's complex tensors."""
    return getattr(node.target, "overloadpacket", None) in (aten.view_as_complex, aten.view_as_real)


def is_complex(value) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_complex


def touches(node) -> bool:
    """True if a node reads or gives complex tensors."""
    values = [node.meta.get("val"), *(n.meta.get("val") for n in node.all_input_nodes)]
    return any(is_complex(v) for v in pytree.tree_leaves(values))


def as_reals(tensor):
    """A complex tensor as the pairs that it is made of; anything else as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if is_complex(tensor) else tensor


class Pairs:
    """A graph over reals that stands for one with complex tensors.

    Attributes:
        module: the graph.
        given, gives: positions of arguments and of results that are pairs there.
    """

    def __init__(self, module, given, gives):
        self.module, self.given, self.gives = module, given, gives

    def around(self, run):
        """A callable for the complex graph, of one for the real graph."""

        def call(*args):
            args = [as_reals(a) if i in self.given else a for i, a in enumerate(args)]
            results = list(run(*args))
            for i in self.gives:
                results[i] = torch.view_as_complex(results[i])
            return tuple(results)

        return call


def as_pairs(module: torch.fx.GraphModule, pieces: dict, long_transforms: bool, fix: bool) -> Pairs | None:
    """The graph over reals; None where no tensor is complex.

    Args:
        pieces: decompositions of what rules are made of.
        long_transforms: whether Fourier transforms of more points than one product takes are taken apart, too; otherwise they stay.
        fix: whether a number of points that may change is taken as it is now, which PyTorch guards.
    """
    if not any(touches(n) for n in module.graph.nodes):
        return None
    for node in module.graph.nodes if fix else ():
        for n in points(node):
            if isinstance(n, torch.SymInt) and n.node.has_hint() and (long_transforms or n.node.hint <= LONGEST_PRODUCT):
                # Asking for the value is what makes PyTorch guard it.
                int(n)
    return Rewriter(module, pieces, long_transforms).rewritten()


def points(node) -> list:
    """The numbers of points of a Fourier transform; none of other nodes."""
    if getattr(node.target, "_opname", "") not in TRANSFORMS:
        return []
    return [value.shape[d] for d in node.args[1] for value in (node.args[0].meta["val"], node.meta["val"])]


def is_long(node) -> bool:
    """True if a node is a Fourier transform that takes more than one product along an axis."""
    counts = [n if isinstance(n, int) else n.node.maybe_as_int() for n in points(node)]
    return any(n is None or n > LONGEST_PRODUCT for n in counts)


class Rewriter:
    def __init__(self, module, pieces, long_transforms):
        self.module, self.pieces, self.long_transforms = module, pieces, long_transforms
        self.graph = torch.fx.Graph()
        # The copy of each node, and the pairs of each complex one. Either may be missing if nothing needs it.
        self.copies: dict[torch.fx.Node, torch.fx.Node] = {}
        self.pairs: dict[torch.fx.Node, Any] = {}

    def rewritten(self) -> Pairs:
        given, gives = [], []
        nodes = list(self.module.graph.nodes)
        placeholders = [n for n in nodes if n.op == "placeholder"]
        for node in nodes:
            if node.op == "placeholder" and is_complex(node.meta.get("val")):
                given.append(placeholders.index(node))
                new = self.pairs[node] = self.graph.placeholder(node.name)
                new.meta = {**node.meta, "val": as_reals(node.meta["val"])}
            elif node.op == "output":
                results = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
                complex_ = [isinstance(r, torch.fx.Node) and is_complex(r.meta.get("val")) for r in results]
                gives = [i for i, c in enumerate(complex_) if c]
                self.graph.output(tuple(
                    self.pair(r) if c else self.copy(r) if isinstance(r, torch.fx.Node) else r
                    for r, c in zip(results, complex_)
                ))  # fmt: skip
            elif node.op == "call_function" and touches(node) and self.replaced(node):
                pass
            else:
                self.copies[node] = self.graph.node_copy(node, self.copy)
        module = torch.fx.GraphModule(self.module, self.graph)
        module.graph.eliminate_dead_code()
        module.recompile()
        return Pairs(module, given, gives)

    def copy(self, node):
        """The node that gives what a node of the old graph gives."""
        if node not in self.copies:
            self.copies[node] = self.view(torch.ops.aten.view_as_complex.default, self.pairs[node], node)
        return self.copies[node]

    def pair(self, node):
        """The node that gives a complex tensor as pairs."""
        if node not in self.pairs:
            self.pairs[node] = self.view(torch.ops.aten.view_as_real.default, self.copies[node], node)
        return self.pairs[node]

    def view(self, op, source, of):
        new = self.graph.call_function(op, (source,))
        new.meta = {**of.meta, "val": op(source.meta["val"].resolve_conj())}
        return new

    def replaced(self, node) -> bool:
        """Puts the trace of a rule in the place of a node, if there is one that knows it."""
        if node.target is operator.getitem and node.args[0] in self.pairs:
            found = self.pairs[node.args[0]][node.args[1]]
            (self.pairs if is_complex(node.meta["val"]) else self.copies)[node] = found
            return True
        rule = RULES.get(getattr(node.target, "_opname", ""))
        if rule is None or not self.long_transforms and is_long(node):
            return False
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        operands = [x for x in leaves if isinstance(x, torch.fx.Node)]
        complex_ = [is_complex(x.meta["val"]) for x in operands]
        sources = [self.pair(x) if c else self.copy(x) for x, c in zip(operands, complex_)]
        refused = False

        def traced(*values):
            nonlocal refused
            given = iter([Pair(v) if c else v for v, c in zip(values, complex_)])
            args, kwargs = pytree.tree_unflatten(
                [next(given) if isinstance(x, torch.fx.Node) else x for x in leaves], spec
            )  # fmt: skip
            try:
                found = rule(*args, **kwargs)
            except (TypeError, AttributeError, KeyError, RuntimeError):
                found = NotImplemented
            if found is NotImplemented:
                refused = True
                return ()
            found = found if isinstance(found, list) else [found]
            return [f.both if isinstance(f, Pair) else f for f in found]

        values = [s.meta["val"] for s in sources]
        _tables.clear()
        with detect_fake_mode(values) or contextlib.nullcontext():
            inner = make_fx(traced, decomposition_table=self.pieces)(*values)
        if refused:
            return False
        results = self.inlined(inner, sources, node)
        value = node.meta["val"]
        if isinstance(value, (tuple, list)):
            self.pairs[node] = results
        else:
            (self.pairs if is_complex(value) else self.copies)[node] = results[0]
        return True

    def inlined(self, inner, sources, of) -> list[torch.fx.Node]:
        """Copies the nodes of a trace in place of the node `of`: they keep their meaning, and take their source line from it."""
        made: dict[torch.fx.Node, torch.fx.Node] = {}
        origin = {k: v for k, v in of.meta.items() if k in ("stack_trace", "nn_module_stack", "source_fn_stack")}
        given = iter(sources)
        for node in inner.graph.nodes:
            if node.op == "placeholder":
                made[node] = next(given)
            elif node.op == "output":
                return [made[n] for n in node.args[0]]
            elif node.op == "get_attr":
                name, stands = f"_complex_{of.name}_{node.target}", getattr(inner, node.target)
                setattr(self.module, name, next((real for fake, real in _tables if fake is stands), stands))
                made[node] = self.graph.get_attr(name)
                made[node].meta = {**node.meta, **origin}
            else:
                made[node] = self.graph.node_copy(node, made.__getitem__)
                made[node].meta = {**node.meta, **origin}
        raise AssertionError("a trace ends with its output")
