"""The templates of statements, with weights. Each draws operands from a generator and gives a `Statement`.

`rounds` is set where a result's last bits depend on the method. Operations that jump take exact operands only, and
undefined results (the order of equal elements, which of several writes wins) are not drawn.
"""

from __future__ import annotations

import torch

from .program import Statement, is_float

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = "float32 float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()


class Nothing(Exception):
    """No operand fits."""


TEMPLATES: list = []
WEIGHTS: list[int] = []


def op(weight):
    def register(template):
        TEMPLATES.append(template)
        WEIGHTS.append(weight)
        return template

    return register


def draw(rng):
    return rng.choices(TEMPLATES, WEIGHTS)[0]


def value(g, text, rounds=False) -> Statement:
    return Statement(f"{g.new()} = {text}", rounds)


# Elementwise.

SMOOTH = (
    "sin cos tanh exp sigmoid erf erfc atan sinh asinh expm1 exp2 square reciprocal rsqrt sqrt log log1p log2 log10 "
    "deg2rad rad2deg tan acos asin atanh acosh cosh sinc logit"
).split()
ACTIVATIONS = (
    "F.silu({x}) F.gelu({x}) F.mish({x}) F.elu({x},{k}) F.celu({x}) F.selu({x}) F.softplus({x},{k}) F.softsign({x}) "
    "F.tanhshrink({x}) F.logsigmoid({x}) F.leaky_relu({x},{k}) F.hardswish({x}) F.gelu({x},approximate='tanh')"
).split()
EXACT = (
    "torch.neg({x}) torch.abs({x}) F.relu({x}) torch.sign({x}) torch.square({x}) torch.positive({x}) {x}.clone() "
    "torch.nan_to_num({x},{k}) F.relu6({x}) F.hardtanh({x}) torch.sgn({x}) torch.isnan({x}) torch.isfinite({x}) "
    "torch.isinf({x}) F.threshold({x},{k},{k}) torch.zeros_like({x}) torch.ones_like({x}) torch.full_like({x},{k}) "
    "F.hardshrink({x}) F.softshrink({x}) torch.logical_not({x}) {x}.detach() {x}.contiguous()"
).split()
JUMPS = "floor ceil trunc round frac fix isposinf isneginf".split()


@op(8)
def smooth(g):
    x = g.pick("f") if g.rng.random() < 0.85 else g.pick("a")
    if g.rng.random() < 0.65:
        return value(g, f"torch.{g.rng.choice(SMOOTH)}({x})", True)
    text = g.rng.choice(ACTIVATIONS).format(x=x, k=g.rng.choice((g.number(), "0.5", "2")))
    return value(g, text.replace(",", ", "), True)


@op(6)
def exact_unary(g):
    x = g.pick("a", exact=True)
    text = g.rng.choice(EXACT)
    return value(g, text.format(x=x, k=g.number()).replace(",", ", "))


@op(2)
def jump(g):
    x = g.pick("n", exact=True)
    name = g.rng.choice(JUMPS)
    if name == "round" and g.rng.random() < 0.3:
        return value(g, f"torch.round({x}, decimals={g.rng.choice((0, 1, -1))})", True)
    return value(g, f"torch.{name}({x})")


@op(14)
def arithmetic(g):
    x = g.pick("a")
    symbol = g.rng.choice("+ - * + - * /".split())
    y = g.partner(x) if g.rng.random() < 0.55 else g.number()
    if y[0].isdigit() or not y.isidentifier():
        y = f"({y})" if y.startswith("-") else y
    a, b = (x, y) if g.rng.random() < 0.75 else (y, x)
    return value(g, f"{a} {symbol} {b}", symbol == "/")


@op(5)
def alpha(g):
    x = g.pick("n")
    y = g.partner(x) if g.rng.random() < 0.7 else g.number()
    k = g.any_integer() if g.rng.random() < 0.7 else g.number()
    # PyTorch rounds `x + alpha*y` once in whole vectors, and twice in the rest of a row where `y` is a number.
    names = [a for a in (x, y) if a in g.runs[0].eager]
    rounds = any(isinstance(v, float) or is_float(v) for v in map(g.value, names)) or "." in str(k)
    return value(g, f"torch.{g.rng.choice(('add', 'sub', 'rsub'))}({x}, {y}, alpha={k})", rounds)


@op(4)
def binary_named(g):
    x = g.pick("n", exact=True)
    y = g.partner(x, exact=True)
    name = g.rng.choice("maximum minimum fmax fmin atan2 hypot logaddexp xlogy float_power copysign pow".split())
    if name in ("atan2", "copysign") and not (x.startswith("x") and y.startswith("x")):
        raise Nothing  # the sign of a zero that was computed
    return value(g, f"torch.{name}({x}, {y})", name in ("atan2", "hypot", "logaddexp", "xlogy", "float_power", "pow"))


@op(4)
def division(g):
    x = g.pick("n", exact=True)
    if g.rng.random() < 0.5:
        y = g.partner(x, exact=True)
        if any(bool((v == 0).any()) for v in g.values(y)):
            raise Nothing
    else:
        y = g.any_integer() if g.rng.random() < 0.7 else g.number()
    text = g.rng.choice(
        ("torch.floor_divide({x}, {y})", "torch.remainder({x}, {y})", "torch.fmod({x}, {y})", "{x} // {y}", "{x} % {y}",
         "torch.div({x}, {y}, rounding_mode='floor')", "torch.div({x}, {y}, rounding_mode='trunc')",
         "torch.true_divide({x}, {y})")
    )  # fmt: skip
    y = f"({y})" if not y.isidentifier() else y
    made = text.format(x=x, y=y)
    for at, v in enumerate(g.values(y) if y in g.runs[0].eager else [eval(y, {}, r.eager) for r in g.runs]):
        if not isinstance(v, torch.Tensor) and v == 0:
            raise Nothing
    return value(g, made, "true" in made)


@op(3)
def power(g):
    x = g.pick("n")
    k = g.rng.choice((g.any_integer(0, 3), "2", "3", "0.5", "2.5", "-1", "1.5"))
    return value(g, f"{x} ** ({k})" if g.rng.random() < 0.5 else f"torch.pow({x}, {k})", True)


@op(5)
def compare(g):
    x = g.pick("a", exact=True)
    y = g.partner(x, exact=True) if g.rng.random() < 0.5 else g.number()
    symbol = g.rng.choice("< <= > >= == !=".split())
    return value(g, f"{x} {symbol} {y}")


@op(4)
def logic(g):
    x = g.pick("b") if g.rng.random() < 0.6 else g.pick("i")
    if g.rng.random() < 0.2:
        return value(g, f"~{x}")
    if g.rng.random() < 0.15:
        x = g.pick("i")
        by = g.partner(x, exact=True) if g.rng.random() < 0.5 else g.any_integer(0, 4)
        if by in g.runs[0].eager and any(getattr(v, "dtype", None) not in INTEGERS for v in g.values(by)):
            raise Nothing
        if g.rng.random() < 0.2 and by in g.runs[0].eager:
            return value(g, f"torch.{g.rng.choice(('gcd', 'lcm'))}({x}, {by})")
        return value(g, f"{x} {g.rng.choice(('<<', '>>'))} {by}")
    y = g.partner(x) if g.rng.random() < 0.7 else g.rng.choice(("True", "1", "3", g.any_integer()))
    if g.rng.random() < 0.3:
        return value(g, f"torch.logical_{g.rng.choice(('and', 'or', 'xor'))}({x}, {g.partner(x, exact=True)})")
    return value(g, f"{x} {g.rng.choice('&|^')} {y}")


@op(5)
def clamp(g):
    x = g.pick("n")
    k = [g.number() for _ in range(2)]
    if g.rng.random() < 0.2:
        y = g.partner(x)
        return value(g, f"torch.clamp({x}, min={y})")
    text = g.rng.choice((f"min={k[0]}", f"max={k[0]}", f"{k[0]}, {k[1]}"))
    return value(g, f"torch.clamp({x}, {text})")


@op(4)
def convert(g):
    x = g.pick("a")
    to = g.rng.choice(DTYPES)
    dtype = getattr(torch, to)
    if not dtype.is_floating_point and not g.exact(x):
        raise Nothing
    if g.rng.random() < 0.8:
        return value(g, f"{x}.to(torch.{to})")
    names = {"float32": "float()", "float64": "double()", "int64": "long()", "int32": "int()", "bool": "bool()"}
    return value(g, f"{x}.{names.get(to, f'type(torch.{to})')}")


def condition(g, like=None):
    """Truth values that broadcast to `like`, or any: a tensor, or a comparison."""
    try:
        return g.pick("b", ok=like and (lambda n: broadcasts(g, n, like)))
    except Nothing:
        x = g.pick("n", ok=like and (lambda n: broadcasts(g, n, like)), exact=True)
        return f"{x} {g.rng.choice(('>', '<=', '!='))} {g.any_integer(-2, 2)}"


@op(4)
def where(g):
    c = condition(g)
    x = g.partner(c.split()[0])
    y = g.partner(x) if g.rng.random() < 0.6 else g.number()
    a, b = (x, y) if g.rng.random() < 0.7 else (y, x)
    return value(g, f"torch.where({c}, {a}, {b})")


@op(3)
def masked_fill(g):
    x = g.pick("a")
    c = condition(g, x)
    return value(g, f"{x}.masked_fill({c}, {g.number()})")


def broadcasts(g, a, b) -> bool:
    """Returns True if `a` can be expanded to the shape of `b`."""
    try:
        return all(torch.broadcast_shapes(p, q) == torch.Size(q) for p, q in zip(g.shapes(a), g.shapes(b)))
    except RuntimeError:
        return False


@op(3)
def three(g):
    x = g.pick("f")
    y, z = g.partner(x), g.partner(x)
    k = g.any_integer()
    text = g.rng.choice(
        (f"torch.lerp({x}, {y}, {g.number()})", f"torch.addcmul({x}, {y}, {z}, value={k})",
         f"torch.addcdiv({x}, {y}, {z}, value={k})", f"torch.lerp({x}, {y}, {z})")
    )  # fmt: skip
    return value(g, text, True)


# Reductions.


def some_axes(g, x):
    rank = g.value(x).dim()
    if not rank:
        raise Nothing
    axes = [d for d in range(rank) if g.rng.random() < 0.5] or [g.rng.randrange(rank)]
    return [g.dim(d, x) for d in axes]


def keepdim(g):
    return ", keepdim=True" if g.rng.random() < 0.35 else ""


@op(8)
def total(g):
    x = g.pick("a")
    dtype = f", dtype=torch.{g.rng.choice(('float32', 'float64', 'int64'))}" if g.rng.random() < 0.2 else ""
    if "int64" in dtype and not g.exact(x):
        dtype = ""
    if g.rng.random() < 0.3:
        return value(g, f"{x}.sum({dtype[2:]})")
    return value(g, f"{x}.sum({g.rng.choice((some_axes(g, x), g.dim(g.axis(x), x)))}{keepdim(g)}{dtype})")


@op(5)
def reduction(g):
    name = g.rng.choice("mean prod amax amin logsumexp nansum nanmean var std norm vector_norm count_nonzero".split())
    x = g.pick("a", exact=True) if name == "count_nonzero" else g.pick("n" if name in ("amax", "amin") else "f")
    axes = some_axes(g, x)
    keep = keepdim(g)
    if name == "prod":
        return value(g, f"{x}.prod({axes[0]}{keep})" if g.rng.random() < 0.6 else f"{x}.prod()", True)
    if name in ("var", "std"):
        correction = f", correction={g.any_integer(0, 3)}" if g.rng.random() < 0.6 else ""
        return value(g, f"{x}.{name}({axes}{correction}{keep})", True)
    if name == "norm":
        return value(g, f"{x}.norm({g.rng.choice(('1', '2', '3', '2.5', g.any_integer(0, 3)))}, {axes}{keep})", True)
    if name == "vector_norm":
        return value(g, f"torch.linalg.vector_norm({x}, {g.any_integer(0, 3)}, {axes}{keep})", True)
    if name == "count_nonzero":
        return value(g, f"torch.count_nonzero({x}, {axes})")
    if name in ("mean", "amax", "amin", "nansum", "nanmean") and g.rng.random() < 0.2:
        return value(g, f"{x}.{name}()", "mean" in name)
    return value(g, f"{x}.{name}({axes}{keep})", name not in ("amax", "amin", "nansum"))


@op(4)
def truth(g):
    x = g.pick("a", exact=True)
    if g.rng.random() < 0.3:
        return value(g, f"{x}.{g.rng.choice(('any', 'all'))}()")
    return value(g, f"{x}.{g.rng.choice(('any', 'all'))}({g.dim(g.axis(x), x)}{keepdim(g)})")


@op(4)
def extreme(g):
    x = g.pick("n", exact=True)
    name = g.rng.choice("max min argmax argmin aminmax".split())
    if name == "aminmax":
        return Statement(f"{g.new()}, {g.new()} = torch.aminmax({x}, dim={g.axis(x)})")
    if g.rng.random() < 0.3:
        return value(g, f"{x}.{name}()")
    d = g.dim(g.axis(x), x)
    if name.startswith("arg"):
        return value(g, f"{x}.{name}({d}{keepdim(g)})")
    return Statement(f"{g.new()}, {g.new()} = {x}.{name}({d}{keepdim(g)})")


@op(3)
def scan(g):
    name = g.rng.choice("cumsum cumsum cumprod cummax logcumsumexp".split())
    x = g.pick("a", exact=name == "cummax")
    if name == "cummax":
        return Statement(f"{g.new()}, {g.new()} = torch.cummax({x}, {g.axis(x)})")
    return value(g, f"torch.{name}({x}, {g.dim(g.axis(x), x)})", name != "cumsum")


@op(4)
def softmax(g):
    x = g.pick("f")
    d = g.dim(g.axis(x), x)
    text = g.rng.choice(
        (f"torch.softmax({x}, {d})", f"torch.log_softmax({x}, {d})", f"F.softmin({x}, {d})",
         f"F.normalize({x}, dim={d})", f"F.glu({x}, {d})")
    )  # fmt: skip
    return value(g, text, True)


@op(3)
def norm(g):
    x = g.pick("f", rank=-1)
    n = [s[-1] for s in g.shapes(x)]
    text = g.rng.choice(("F.layer_norm({x}, ({x}.shape[-1],))", "F.rms_norm({x}, ({x}.shape[-1],))"))
    if g.rng.random() < 0.4 and len(set(n)) == 1:
        w = g.tensor_parameter(g.value(x).dtype, (n[0],))
        text = text[:-1] + f", {w})"
    if g.rng.random() < 0.2 and g.value(x).dim() >= 2 and len({s[1] for s in g.shapes(x)}) == 1:
        groups = g.rng.choice([k for k in (1, 2, 3) if g.shapes(x)[0][1] % k == 0])
        text = f"F.group_norm({{x}}, {groups})" if g.rng.random() < 0.6 else "F.instance_norm({x})"
    return value(g, text.format(x=x), True)


# Order.


@op(3)
def order(g):
    x = g.pick("n", exact=True)
    d = g.axis(x)
    kind = g.rng.randrange(6)
    if kind == 0:
        return Statement(f"{g.new()}, {g.new()} = torch.sort({x}, stable=True, dim={d}, descending={g.rng.random() < 0.5})")
    if kind == 1:
        return value(g, f"{x}.sort({d})[0]")
    if kind == 2:
        return value(g, f"torch.msort({x})")
    least = [s[d] for s in g.shapes(x)]
    if kind == 3:
        return value(g, f"torch.argsort({x}, {d}, stable=True)")
    k = g.integer(lambda at: 0 if kind == 4 else 1, lambda at: least[at])
    if kind == 4:
        return value(g, f"{x}.topk({k}, {d}, largest={g.rng.random() < 0.6})[0]")
    return value(g, f"{x}.kthvalue({k}, {d})[0]")


# Views.


@op(6)
def select(g):
    x = g.pick("a", rank=-1)
    d = g.axis(x)
    n = [s[d] for s in g.shapes(x)]
    k = g.integer(lambda at: -n[at], lambda at: n[at] - 1)
    text = g.rng.choice((f"{x}.select({d}, {k})", f"{x}[{'..., ' if False else ':, ' * d}{k}]"))
    return value(g, text)


@op(8)
def slices(g):
    x = g.pick("a", rank=-1)
    d = g.axis(x)
    n = [s[d] for s in g.shapes(x)]
    kind = g.rng.randrange(4)
    before = ":, " * d
    if kind == 0:
        start = g.integer(lambda at: 0, lambda at: n[at])
        starts = [eval(start, {}, r.eager) for r in g.runs]
        length = g.integer(lambda at: 0, lambda at: n[at] - starts[at])
        return value(g, f"{x}.narrow({d}, {start}, {length})")
    a, b = g.any_integer(-6, 6), g.any_integer(-6, 8)
    text = g.rng.choice((f"{a}:", f":{b}", f"{a}:{b}", f"{a}:{b}", f"::{g.rng.randint(1, 3)}", f"{a}::2"))
    if kind == 1 and g.value(x).dim() > d + 1:
        return value(g, f"{x}[{before}{text}, {g.rng.choice(('None', '0:', '...', '-1:'))}]")
    return value(g, f"{x}[{before}{text}]")


@op(4)
def parts(g):
    x = g.pick("a", rank=-1)
    d = g.axis(x)
    n = [s[d] for s in g.shapes(x)]
    at = g.rng.choice((0, -1))
    kind = g.rng.randrange(4)
    if kind == 0:
        return value(g, f"{x}.split({g.integer(lambda at: 1, lambda at: 5)}, {d})[{at}]")
    if kind == 1:
        return value(g, f"{x}.chunk({g.rng.randint(1, 3)}, {d})[{at}]")
    if kind == 2:
        if len(set(n)) > 1 and g.rng.random() < 0.7 or min(n) == 0:
            raise Nothing
        return value(g, f"{x}.unbind({d})[{at}]")
    k = g.integer(lambda at: 0, lambda at: n[at])
    return Statement(f"{g.new()}, {g.new()} = {x}.split([{k}, {x}.shape[{d}] - {k if k.isidentifier() else f'({k})'}], {d})")


@op(7)
def axes(g):
    x = g.pick("a", rank=-1)
    rank = g.value(x).dim()
    d, e = g.dim(g.axis(x), x), g.dim(g.axis(x), x)
    order = list(range(rank))
    g.rng.shuffle(order)
    text = g.rng.choice(
        (f"{x}.transpose({d}, {e})", f"{x}.permute({', '.join(map(str, order))})", f"{x}.unsqueeze({g.rng.randint(-rank - 1, rank)})",
         f"{x}.squeeze({d})", f"{x}.squeeze()", f"{x}.movedim({d}, {e})", f"{x}.mT", f"{x}.t()", f"{x}.flip({d})",
         f"torch.rot90({x})", f"{x}.roll({g.any_integer()}, {d})", f"{x}.roll({g.any_integer()})", f"torch.fliplr({x})",
         f"{x}.swapaxes({d}, {e})", f"torch.atleast_3d({x})")
    )  # fmt: skip
    return value(g, text)


@op(7)
def reshape(g):
    x = g.pick("a")
    rank = g.value(x).dim()
    counts = [v.numel() for v in g.values(x)]

    def divides(text):
        found = [eval(text, {}, r.eager) for r in g.runs]
        return all(v > 0 and n % v == 0 for v, n in zip(found, counts))

    kind = g.rng.randrange(5)
    name = g.rng.choice(("reshape", "reshape", "view"))
    if kind == 0:
        return value(g, f"{x}.{name}(-1)")
    if kind == 1 and rank > 1:
        d = g.rng.randrange(rank - 1)
        return value(g, f"{x}.flatten({d}, {d + 1})")
    if kind == 2 and rank > 1:
        sizes = [f"{x}.shape[{d}]" for d in range(rank)]
        g.rng.shuffle(sizes)
        cut = g.rng.randint(1, rank - 1)
        return value(g, f"{x}.{name}({' * '.join(sizes[:cut])}, {', '.join(sizes[cut:])})")
    if kind == 3:
        k = g.rng.choice(("1", "2", "3"))
        d = g.axis(x)
        return value(g, f"{x}.unflatten({d}, ({k}, -1))" if g.rng.random() < 0.5 else f"{x}.unflatten({d}, (-1, {k}))")
    choices = [t for t in [*g.numbers(), *(f"{x}.shape[{d}]" for d in range(rank)), "2", "1", "-1"] if t != "-1" and divides(t)]
    if not choices:
        raise Nothing
    k = g.rng.choice(choices)
    return value(g, f"{x}.{name}({k}, -1)" if g.rng.random() < 0.6 else f"{x}.{name}(-1, {k})")


@op(4)
def expand(g):
    x = g.pick("a")
    k = g.integer(lambda at: 0, lambda at: 6)
    rank = g.value(x).dim()
    kind = g.rng.randrange(5)
    if kind == 0:
        return value(g, f"{x}.expand({', '.join([k, *['-1'] * rank])})")
    if kind == 1 and rank:
        return value(g, f"{x}.repeat({', '.join([k, *['1'] * (rank - 1)])})")
    if kind == 2 and rank:
        return value(g, f"{x}.repeat_interleave({k}, {g.axis(x)})")
    if kind == 3:
        y = g.partner(x)
        return value(g, f"{x}.expand_as({y})")
    ones = [d for d in range(rank) if all(s[d] == 1 for s in g.shapes(x))]
    if not ones:
        raise Nothing
    d = g.rng.choice(ones)
    return value(g, f"{x}.expand({', '.join(k if i == d else '-1' for i in range(rank))})")


@op(4)
def windows(g):
    x = g.pick("a", rank=-1)
    rank = g.value(x).dim()
    kind = g.rng.randrange(4)
    if kind == 0:
        d = g.axis(x)
        least = [s[d] for s in g.shapes(x)]
        size = g.integer(lambda at: 1, lambda at: least[at])
        return value(g, f"{x}.unfold({d}, {size}, {g.rng.randint(1, 2)})")
    if kind in (1, 2) and rank >= 2:
        return value(g, f"torch.diagonal({x}, {g.any_integer(-3, 3)}, {g.rng.choice(('0, 1', '-2, -1', '1, 0'))})")
    if kind == 3:
        if any(v.numel() < 5 for v in g.values(x)) or any(not v.is_contiguous() for v in g.values(x)):
            raise Nothing
        return value(g, f"{x}.as_strided((2, 2), ({g.rng.choice((1, 2))}, 1), {x}.storage_offset() + {g.any_integer(0, 1)})")
    return value(g, f"torch.diag_embed({x}, {g.any_integer(-2, 2)})")


@op(3)
def size_number(g):
    x = g.pick("a", rank=-1)
    names = g.numbers()
    if names and g.rng.random() < 0.5:
        n = g.rng.choice(names)
        return value(g, f"{n} {g.rng.choice(('* 2 - 1', '+ 3', '// 2', '% 4', '- 2', '* -1'))}")
    d = g.axis(x)
    return value(g, g.rng.choice((f"{x}.shape[{d}]", f"{x}.shape[{d}] * 2", f"{x}.numel()", f"{x}.size({d}) - 1", f"{x}.dim()")))


# Joining.


@op(5)
def join(g):
    x = g.pick("a")
    if g.rng.random() < 0.35:
        y = g.like(x) if g.rng.random() < 0.8 else x
        rank = g.value(x).dim()
        return value(g, f"torch.stack([{x}, {y}], {g.rng.randint(-rank - 1, rank)})")
    d = g.axis(x)
    dtype = None if g.rng.random() < 0.7 else getattr(torch, g.rng.choice(DTYPES))
    names = [x, g.like(x, dtype, d) if dtype else g.like(x, axis=d)]
    if g.rng.random() < 0.4:
        names.append(g.like(x, axis=d))
    g.rng.shuffle(names)
    return value(g, f"torch.cat([{', '.join(names)}], {g.dim(d, x)})")


@op(4)
def pad(g):
    x = g.pick("a", rank=-1)
    amounts = [g.any_integer(-1, 3), g.any_integer(0, 3)]
    if g.value(x).dim() > 1 and g.rng.random() < 0.4:
        amounts += [g.any_integer(0, 2), g.any_integer(-1, 2)]
    if g.value(x).dim() in (2, 3) and g.rng.random() < 0.3:
        mode = g.rng.choice(("reflect", "replicate", "circular"))
        return value(g, f"F.pad({x}, ({', '.join(amounts[:2])}), mode='{mode}')")
    fill = g.rng.choice(("", f", value={g.number()}"))
    return value(g, f"F.pad({x}, ({', '.join(amounts)}){fill})")


# Products.


@op(8)
def product(g):
    x = g.pick("n", rank=-1)
    dtype = g.value(x).dtype
    inner = [s[-1] for s in g.shapes(x)]

    def fits(n):
        if g.value(n).dtype != dtype:
            return False
        return all((s[-1] if len(s) == 1 else s[-2]) == k if s else False for s, k in zip(g.shapes(n), inner))

    def turned(n):
        return g.value(n).dtype == dtype and g.value(n).dim() >= 2 and all(s[-1] == k for s, k in zip(g.shapes(n), inner))

    if g.rng.random() < 0.3 and dtype.is_floating_point:
        known = g.dims.get(x)
        if known and -1 not in known:
            w = g.tensor_parameter(dtype, (g.rng.choice(("m", 3, 1)), known[-1]))
            return value(g, f"F.linear({x}, {w})", True)
    if g.rng.random() < 0.4:
        y = g.pick("a", ok=turned)
        text = f"{x} @ {y}.mT"
    else:
        y = g.pick("a", ok=fits)
        ranks = (g.value(x).dim(), g.value(y).dim())
        names = {(1, 1): ("torch.dot",), (2, 1): ("torch.mv",), (2, 2): ("torch.mm",), (3, 3): ("torch.bmm",)}
        text = f"{g.rng.choice((*names.get(ranks, ()), 'torch.matmul'))}({x}, {y})"
    # That a sum is exact shows in f64, for narrower types.
    return value(g, text, dtype.is_floating_point and dtype != torch.float32)


@op(4)
def product_and_more(g):
    x = g.pick("f", rank=-1)
    rank = g.value(x).dim()
    a, b = g.any_integer(), g.any_integer()
    if rank == 2:
        choices = (
            f"torch.addmm({x} @ {x}.t(), {x}, {x}.t(), beta={a}, alpha={b})", f"torch.einsum('ij,kj->ik', {x}, {x})",
            f"torch.addmm({x}[:, 0], {x}.t(), {x}, beta={a}, alpha={b})" if g.rng.random() < 0.2 else f"torch.outer({x}[0], {x}[-1])",
            f"torch.addmv({x}[:, 0], {x}, {x}[0], beta={a}, alpha={b})",
        )  # fmt: skip
    elif rank == 3:
        choices = (
            f"torch.baddbmm({x} @ {x}.mT, {x}, {x}.mT, beta={a}, alpha={b})", f"torch.einsum('bij,bkj->bik', {x}, {x})",
            f"F.scaled_dot_product_attention({x}, {x}, {x})",
            f"F.scaled_dot_product_attention({x}, {x}, {x}, is_causal=True)", f"torch.einsum('bij->bji', {x})",
        )  # fmt: skip
        if not all(v.isfinite().all() for v in g.values(x)):
            # NaN among the scores: PyTorch's flash kernel drops it, and its formula does not.
            choices = tuple(c for c in choices if "attention" not in c)
    else:
        choices = (f"torch.outer({x}, {x})", f"torch.inner({x}, {x})", f"torch.tensordot({x}, {x}, 1)") if rank == 1 else (f"torch.inner({x}, {x})",)
    return value(g, g.rng.choice(choices), True)


@op(2)
def convolution(g):
    x = g.pick("f", rank=3)
    channels = {s[1] for s in g.shapes(x)}
    if len(channels) != 1 or 0 in channels:
        raise Nothing
    kind = g.rng.randrange(4)
    if kind == 0:
        k = g.rng.randint(1, 3)
        return value(g, f"F.{g.rng.choice(('avg_pool1d', 'max_pool1d'))}({x}, {k}, stride={g.rng.randint(1, 2)})", True)
    if kind == 1:
        return value(g, f"F.interpolate({x}, scale_factor=2, mode='{g.rng.choice(('nearest', 'linear'))}')", True)
    w = g.tensor_parameter(g.value(x).dtype, (2, *channels, g.rng.randint(1, 3)))
    if kind == 2:
        w = g.tensor_parameter(g.value(x).dtype, (*channels, 2, g.rng.randint(1, 3)))
    if not all(v.isfinite().all() for v in g.values(w)):
        # PyTorch's kernels differ in the products of these and of the zeros of padding.
        w = f"torch.nan_to_num({w}, 0.5, 2.0, -2.0)"
    if kind == 2:
        return value(g, f"F.conv_transpose1d({x}, {w}, stride={g.rng.randint(1, 2)})", True)
    return value(g, f"F.conv1d({x}, {w}, stride={g.rng.randint(1, 2)}, padding={g.rng.randint(0, 1)})", True)


@op(2)
def loss(g):
    x = g.pick("f")
    y = g.like(x)
    name = g.rng.choice("mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss".split())
    reduction = g.rng.choice(("", ", reduction='sum'", ", reduction='none'"))
    if g.value(x).dim() == 2 and g.rng.random() < 0.4:
        known = g.dims.get(x)
        if known is None or -1 in known:
            raise Nothing
        classes = [s[1] for s in g.shapes(x)]
        i = g.index((known[0],), lambda at: classes[at], dtype=torch.int64)
        return value(g, f"F.cross_entropy({x}, {i}, ignore_index={g.any_integer()}{reduction})", True)
    return value(g, f"F.{name}({x}, {y}{reduction})", True)


# Places.


@op(6)
def lookup(g):
    x = g.pick("a", rank=-1)
    d = g.axis(x)
    n = [s[d] for s in g.shapes(x)]
    kind = g.rng.randrange(6)
    few = tuple(g.rng.choice(("m", "n", 1, 3, 0)) for _ in range(g.rng.choice((1, 1, 2))))
    if kind == 0:
        i = g.index(few, lambda at: n[at], negative=True)
        return value(g, f"{x}[{':, ' * d}{i}]")
    if kind == 1:
        i = g.index(few[:1], lambda at: n[at])
        return value(g, f"torch.index_select({x}, {g.dim(d, x)}, {i})")
    if kind == 2:
        known = g.dims.get(x)
        if known is None or -1 in known:
            raise Nothing
        dims = tuple(few[0] if i == d else k for i, k in enumerate(known))
        i = g.index(dims, lambda at: n[at], dtype=torch.int64)
        return value(g, f"torch.gather({x}, {g.dim(d, x)}, {i})")
    if kind == 3:
        counts = [v.numel() for v in g.values(x)]
        return value(g, f"torch.take({x}, {g.index(few, lambda at: counts[at], negative=True, dtype=torch.int64)})")
    if kind == 4 and g.value(x).dim() == 2 and g.value(x).is_floating_point():
        rows = [s[0] for s in g.shapes(x)]
        return value(g, f"F.embedding({g.index(few, lambda at: rows[at])}, {x})")
    if g.value(x).dim() < 2:
        raise Nothing
    a = g.index(few[:1], lambda at: g.shapes(x)[at][0], negative=True)
    b = g.index(few[:1], lambda at: g.shapes(x)[at][1], negative=True)
    return value(g, f"{x}[{a}, {b}]")


@op(7)
def scatter(g):
    x = g.pick("a", rank=-1)
    known = g.dims.get(x)
    if known is None or -1 in known:
        known = None
    d = g.axis(x)
    n = [s[d] for s in g.shapes(x)]
    dtype = g.value(x).dtype
    dim = g.dim(d, x)
    few = g.rng.choice(("m", 1, 3, 0, 2))
    kind = g.rng.randrange(7)
    rounds = dtype in (torch.float16, torch.bfloat16)
    dot = g.rng.choice(("", "", "_"))
    writes = x if dot else None

    def made(text, rounds=False):
        return Statement(text, rounds, x) if dot else value(g, text, rounds)

    if known is None:
        if kind == 5:
            i = g.index((few,), lambda at: n[at], negative=True)
            return made(f"{x}.index_fill{dot}({dim}, {i}.long(), {g.number()})")
        i = g.index((few,), lambda at: n[at], negative=True)
        first = [s[0] for s in g.shapes(x)]
        i = g.index((few,), lambda at: first[at], negative=True)
        return made(f"{x}.index_put{dot}(({i},), {x}.sum().to({x}.dtype), accumulate=True)", True)
    dims = tuple(few if i == d else k for i, k in enumerate(known))
    y = g.tensor_parameter(dtype, dims)
    if kind == 0:
        i = g.index((few,), lambda at: n[at])
        return made(f"{x}.index_add{dot}({dim}, {i}, {y}, alpha={g.any_integer(1, 3) if dtype == torch.bool else g.any_integer()})", rounds)
    if kind == 1:
        i = g.index(dims, lambda at: n[at], dtype=torch.int64)
        return made(f"{x}.scatter_add{dot}({dim}, {i}, {y})", rounds)
    if kind == 2:
        i = g.index(dims, lambda at: n[at], dtype=torch.int64)
        reduce = g.rng.choice(("sum", "prod", "amax", "amin", "mean"))
        include = g.rng.choice(("", ", include_self=False"))
        return made(f"{x}.scatter_reduce{dot}({dim}, {i}, {y}, '{reduce}'{include})", rounds or reduce in ("prod", "mean"))
    if kind == 3:
        i = g.index((few,), lambda at: n[at], unique=True, dtype=torch.int64)
        return made(f"{x}.index_copy{dot}({dim}, {i}, {y})")
    if kind == 4:
        # One place for each element, so that none is written twice.
        i = g.index((few,), lambda at: n[at], unique=True, dtype=torch.int64)
        shape = ", ".join("-1" if k == d else "1" for k in range(len(dims)))
        return made(f"{x}.scatter{dot}({dim}, {i}.view({shape}).expand({y}.shape), {g.rng.choice((y, g.number()))})")
    if kind == 5:
        i = g.index((few,), lambda at: n[at], negative=True, dtype=torch.int64)
        return made(f"{x}.index_fill{dot}({dim}, {i}, {g.number()})")
    accumulate = g.rng.random() < 0.6
    i = g.index((few,), lambda at: n[at], unique=not accumulate, negative=accumulate)
    colons = "None, " * d
    if d:
        return None if dot else value(g, f"torch.ops.aten.index_put({x}, [{colons}{i}], {y}, {accumulate})", rounds and accumulate)
    return made(f"{x}.index_put{dot}(({i},), {y}, accumulate={accumulate})", rounds and accumulate)


@op(3)
def scatter_view(g):
    x = g.pick("a", rank=-1)
    d = g.axis(x)
    n = [s[d] for s in g.shapes(x)]
    k = g.integer(lambda at: -n[at], lambda at: n[at] - 1)
    kind = g.rng.randrange(3)
    if kind == 0:
        return value(g, f"torch.select_scatter({x}, {x}.select({d}, {k}) * 2, {d}, {g.integer(lambda at: -n[at], lambda at: n[at] - 1)})")
    if kind == 1:
        a, b = g.any_integer(-6, 6), g.any_integer(-6, 8)
        return value(g, f"torch.slice_scatter({x}, {x}[{':, ' * d}{a}:{b}] + 1, {d}, {a}, {b})")
    if g.value(x).dim() < 2:
        raise Nothing
    k = g.any_integer(-2, 2)
    return value(g, f"torch.diagonal_scatter({x}, {x}.diagonal({k}) + 1, {k})")


# Creation.


@op(4)
def triangle(g):
    x = g.pick("a", rank=-2)
    return value(g, f"{x}.{g.rng.choice(('tril', 'triu'))}({g.any_integer()})")


@op(5)
def create(g):
    n = g.integer(lambda at: 0, lambda at: 8)
    m = g.integer(lambda at: 0, lambda at: 5)
    dtype = g.rng.choice(("", f", dtype=torch.{g.rng.choice(DTYPES)}"))
    k = g.number()
    kind = g.rng.randrange(8)
    if kind == 0:
        return value(g, f"torch.arange({n}{g.rng.choice(('', ', dtype=torch.float32', ', dtype=torch.int32'))})")
    if kind == 1:
        a, b = g.any_integer(-3, 3), g.any_integer(3, 8)
        return value(g, f"torch.arange({a}, {b}, {g.rng.choice(('1', '2', '3', g.any_integer(1, 3)))})")
    if kind == 2:
        return value(g, f"torch.{g.rng.choice(('zeros', 'ones'))}({n}, {m}{dtype})")
    if kind == 3:
        return value(g, f"torch.full(({n}, {m}), {k})" if "inf" not in k else f"torch.full(({n},), {k})")
    if kind == 4:
        return value(g, f"torch.eye({n}, {m})")
    if kind == 5:
        x = g.pick("a")
        return value(g, f"{x}.new_full(({n},), {k})" if g.rng.random() < 0.5 else f"{x}.new_zeros({n}, {m})")
    if kind == 6:
        return value(g, f"torch.linspace({g.number()}, {g.number()}, {n})", True)
    x = g.pick("i", ok=lambda i: all(not v.numel() or 0 <= v.min() and v.max() < 7 for v in g.values(i)))
    return value(g, f"F.one_hot({x}.long(), 7)")


# Writing.


@op(9)
def write(g):
    x = g.pick("a")
    kind = g.rng.randrange(9)
    # The integer part of a float jumps.
    exact = not g.value(x).is_floating_point()
    y = g.partner(x, exact=exact) if g.rng.random() < 0.6 else g.number()
    if kind < 3:
        name = g.rng.choice("add_ sub_ mul_".split())
        more = f", alpha={g.any_integer()}" if name != "mul_" and g.rng.random() < 0.4 else ""
        # As in `alpha`.
        return Statement(f"{x}.{name}({y}{more})", bool(more) and not exact, x)
    if kind == 3:
        return Statement(f"{x} {g.rng.choice(('+=', '-=', '*='))} {y}", False, x)
    if kind == 4:
        name = g.rng.choice("neg_ abs_ relu_ zero_ sign_".split())
        return Statement(f"{x}.{name}()", False, x)
    if kind == 5:
        return Statement(f"{x}.fill_({g.number()})", False, x)
    if kind == 6:
        return Statement(f"{x}.copy_({g.partner(x, exact=exact)})", False, x)
    if kind == 7:
        return Statement(f"{x}.clamp_({g.number()})", False, x)
    return Statement(f"{x}.{g.rng.choice(('exp_', 'sigmoid_', 'tanh_', 'sin_'))}()", True, x)


@op(6)
def write_part(g):
    x = g.pick("a", rank=-1)
    d = g.axis(x)
    n = [s[d] for s in g.shapes(x)]
    before = ":, " * d
    kind = g.rng.randrange(5)
    if kind == 0:
        k = g.integer(lambda at: -n[at], lambda at: n[at] - 1)
        return Statement(f"{x}[{before}{k}] {g.rng.choice(('=', '+=', '*='))} {g.number()}", False, x)
    if kind == 1:
        a, b = g.any_integer(-6, 6), g.any_integer(-6, 8)
        return Statement(f"{x}[{before}{a}:{b}] {g.rng.choice(('=', '+=', '*='))} {g.number()}", False, x)
    if kind == 2:
        c = g.pick("b", ok=lambda m: g.shapes(m) == g.shapes(x))
        return Statement(f"{x}.masked_fill_({c}, {g.number()})", False, x)
    if kind == 3:
        return Statement(f"{x}.transpose(0, {d})[:1].{g.rng.choice(('zero_()', 'fill_(1)', 'add_(2)'))}", False, x)
    i = g.index((g.rng.choice((1, 2, "m")),), lambda at: n[at], negative=True)
    return Statement(f"{x}[{before}{i}] = {g.number()}", False, x)
