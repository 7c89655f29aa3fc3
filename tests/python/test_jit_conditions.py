"""Comparisons, `and`, `or`, `not` and the bits of truths: what Python computes for each element, or a refusal.

Random expressions are evaluated by Python itself, element by element, on NumPy's scalars. A kernel that gives a value gives
that one; likely mistakes of precedence are refused.
"""

import ast
import importlib.util
import itertools
import random
import warnings

import girih
import girih.language as tl
import numpy as np
import pytest

N = 32


class Writer:
    """Random expressions over integers `i`, `j`, `n`, truths `p`, `q` and constants."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, depth):
        kind = self.random.randrange(5 if depth else 2)
        if kind == 0:
            return self.random.choice(["0", "1", "3", "7", "K"])
        if kind == 1:
            return self.random.choice("ijn")
        a, b = self.number(depth - 1), self.number(depth - 1)
        if kind == 2:
            return self.maybe(f"{a} {self.random.choice('&|^')} {b}")
        return self.maybe(f"{a} + {b}") if kind == 3 else f"({a} {self.random.choice(['and', 'or'])} {b})"

    def truth(self, depth):
        kind = self.random.randrange(9 if depth else 2)
        if kind == 0:
            return self.random.choice(["p", "q", "T"])
        if kind <= 3:
            return self.maybe(f"{self.number(depth)} {self.comparison()} {self.number(depth)}")
        if kind == 4:
            links = [self.comparison() + " " + self.number(depth - 1) for _ in range(2)]
            return self.maybe(f"{self.number(depth - 1)} {' '.join(links)}")
        if kind == 5:
            return f"({self.random.choice(['not ', '~'])}({self.truth(depth - 1)}))"
        a, b = self.truth(depth - 1), self.truth(depth - 1)
        word = self.random.choice(["and", "or", "&", "|", "^", "==", "!="])
        return self.maybe(f"{a} {word} {b}")

    def comparison(self):
        return self.random.choice(["<", "<=", ">", ">=", "==", "!="])

    def maybe(self, text):
        """Mostly in parentheses."""
        return f"({text})" if self.random.random() < 0.8 else text


EXPRESSIONS = [Writer(seed).truth(3) for seed in range(240)]
KERNEL = """
import girih, girih.language as tl

@girih.jit
def kernel{at}(x, y, a, b, out, n, K: tl.constexpr, T: tl.constexpr):
    lane = tl.arange(0, 32)
    i, j = tl.load(x + lane), tl.load(y + lane)
    p, q = tl.load(a + lane) != 0, tl.load(b + lane) != 0
    value = {text}
    tl.store(out + lane, tl.where(value, 1, 0))
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("conditions") / "conditions.py"
    path.write_text("".join(KERNEL.format(at=at, text=text) for at, text in enumerate(EXPRESSIONS)))
    spec = importlib.util.spec_from_file_location("conditions", path)
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        # Python warns of `~True`.
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return module


class Inverted(ast.NodeTransformer):
    """`~` of truths as NumPy has it, also where `not` and comparisons of numbers gave Python's own."""

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("invert", ast.Load()), [node.operand], []) if isinstance(node.op, ast.Invert) else node


def invert(value):
    return not value if isinstance(value, (bool, np.bool_)) else ~value


def by_python(text, i, j, p, q, n, k, t):
    """Each element, by Python."""
    code = compile(ast.fix_missing_locations(Inverted().visit(ast.parse(text, mode="eval"))), "expression", "eval")
    names = {"n": np.int32(n), "K": k, "T": t, "invert": invert}
    return [bool(eval(code, {"i": a, "j": b, "p": c, "q": d, **names})) for a, b, c, d in zip(i, j, p, q)]


def test_expressions(kernels):
    draw = np.random.default_rng(7)
    i, j = (draw.integers(-4, 8, N, dtype=np.int32) for _ in range(2))
    p, q = (draw.integers(0, 2, N, dtype=np.int32) for _ in range(2))
    computed = 0
    for at, text in enumerate(EXPRESSIONS):
        out = np.full(N, -1, np.int32)
        try:
            getattr(kernels, f"kernel{at}")[1](i, j, p, q, out, 5, K=2, T=True, device="eval")
        except girih.CompilationError as error:
            # Each refusal is one of these.
            reasons = ("binds tighter than a comparison", "is a chain of comparisons", "`~` of the Python bool")
            assert any(r in str(error) for r in reasons), f"{text}\n{error}"
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = by_python(text, i, j, p != 0, q != 0, 5, 2, True)
        assert out.tolist() == want, text
        computed += 1
    assert computed > len(EXPRESSIONS) * 0.6


def refused(tmp_path, text, at=itertools.count()):
    path = tmp_path / f"refused{next(at)}.py"
    path.write_text(KERNEL.format(at="", text=text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    x = np.zeros(N, np.int32)
    with pytest.raises(girih.CompilationError) as caught:
        module.kernel.tile_ir(x, x, x, x, x, 5, K=2, T=True)
    return caught.value


@pytest.mark.parametrize("bits", "&|^")
@pytest.mark.parametrize("first", ["<", ">=", "==", "!="])
@pytest.mark.parametrize("second", [">", "<=", "=="])
def test_parentheses_left_out(tmp_path, bits, first, second):
    """The help is the expression with parentheses; Python reads it as that."""
    error = refused(tmp_path, f"i {first} n {bits} j {second} 2")
    meant = f"(i {first} n) {bits} (j {second} 2)"
    assert f"`{meant}`" in error.help
    assert ast.unparse(ast.parse(meant)) == meant


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("i < n & p", "(i < n) & p"),
        ("p & i < n", "p & (i < n)"),
        ("p | q & i < n", "p | q & (i < n)"),
        ("i == j | q", "(i == j) | q"),
        ("i < n & p & j > 3", "(i < n) & p & (j > 3)"),
        ("i < n | j > 3 & p", "(i < n) | (j > 3) & p"),
        ("0 < i & i < n & j < n", "(0 < i) & (i < n) & (j < n)"),
        ("(i < n & j  # each row\n > 2)", "(i < n) & (j > 2)"),
        ("i < j == p", "(i < j) == p"),
        ("K == 2 | T", "(K == 2) | T"),
        ("~T", "not T"),
        ("(i < n) & ~T", "not T"),
        ("~(K == 2)", "not K == 2"),
    ],
)
def test_mistakes_are_refused(tmp_path, text, help):
    assert f"`{help}`" in refused(tmp_path, text).help


@pytest.mark.parametrize("device", ["cpu", "eval"])
def test_what_follows_and_is_not_read_in_vain(device):
    """Insertion sort, as it is written everywhere: Python never reads the element before the first."""

    @girih.jit
    def sort(x, n):
        for i in range(1, n):
            v = tl.load(x + i)
            j = i - 1
            while j >= 0 and tl.load(x + j) > v:
                tl.store(x + j + 1, tl.load(x + j))
                j -= 1
            tl.store(x + j + 1, v)

    data = np.array([5, 3, 9, 1, 1, 8, 0], np.int32)
    sort[1](data, data.size, device=device, check=True)
    assert data.tolist() == [0, 1, 1, 3, 5, 8, 9]


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("n", [0, 3])
def test_what_follows_runs_only_where_python_runs_it(device, n):
    @girih.jit
    def kernel(x, n):
        a = n or 5
        b = n and 7
        y = 1
        c = n > 0 and (y := 2) > 1 and 0 <= tl.atomic_add(x + 4, 1) < 9
        d = n > 0 or tl.atomic_add(x + 5, 1) == 0
        tl.store(x, a)
        tl.store(x + 1, b)
        tl.store(x + 2, y)
        tl.store(x + 3, (10 if c else 20) + (1 if d else 2))

    data = np.zeros(6, np.int32)
    kernel[1](data, n, device=device)
    assert data.tolist() == ([3, 7, 2, 11, 1, 0] if n else [5, 0, 1, 21, 0, 1])
