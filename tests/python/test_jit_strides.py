"""Arrays that are not contiguous: a kernel that is told their strides works on them; one that is not is warned of."""

import warnings

import numpy as np
import pytest

import girih
import girih.language as tl

MATRIX = np.arange(24 * 32, dtype=np.float32).reshape(24, 32)


@girih.jit
def strided(x, out, rows, cols, sx0, sx1, so0, so1, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inside = (i < rows) & (j < cols)
    tl.store(out + i * so0 + j * so1, tl.load(x + i * sx0 + j * sx1, mask=inside), mask=inside)


# Kept by what they read, so that each case starts without a warning given.
def flat():
    @girih.jit
    def flat(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

    return flat


VIEWS = {
    "whole": lambda a: a,
    "rows": lambda a: a[::2],
    "columns": lambda a: a[:, ::2],
    "both": lambda a: a[1::3, 2::5],
    "block": lambda a: a[2:10, 4:20],
    "transposed": lambda a: a.T,
    "row": lambda a: a[3:4],
    "column": lambda a: a[:, 3:4],
    "part_of_a_transposed": lambda a: a.T[:7, :9],
}
CONTIGUOUS = ("whole", "row")


def arrays():
    yield "numpy", lambda a: a, lambda a: [s // a.itemsize for s in a.strides]
    try:
        import torch
    except ImportError:
        return
    yield "torch", torch.from_numpy, lambda a: list(a.stride())


ARRAYS = {name: (make, strides) for name, make, strides in arrays()}


@pytest.mark.parametrize("library", ARRAYS)
@pytest.mark.parametrize("view", VIEWS)
def test_strides_that_are_passed_are_used_without_a_word(view, library):
    make, strides = ARRAYS[library]
    source = VIEWS[view](MATRIX)
    x = make(source)
    for result in (np.zeros(source.shape, np.float32), np.zeros(source.shape[::-1], np.float32).T):
        out = make(result)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            strided[1](x, out, *source.shape, *strides(x), *strides(out), BLOCK=32)
        assert (result == source).all()


@pytest.mark.parametrize("library", ARRAYS)
@pytest.mark.parametrize("view", VIEWS)
def test_a_kernel_that_is_told_no_stride_is_warned_of_once(view, library):
    make, _ = ARRAYS[library]
    x = VIEWS[view](MATRIX)
    kernel = flat()
    out = np.zeros(1024, np.float32)

    def launch():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kernel[1](make(x), make(out), 6, BLOCK=8)
        return caught

    caught = launch()
    if view in CONTIGUOUS:
        assert not caught
        return
    (warning,) = caught
    text = str(warning.message)
    assert warning.category is RuntimeWarning and warning.filename == __file__
    assert "the argument `x` is not contiguous" in text and "numpy.ascontiguousarray(x)" in text
    assert not launch()
    # The remedy in the message helps.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flat()[1](np.ascontiguousarray(x), out, x.size, BLOCK=1024)
    assert (out[: x.size].reshape(x.shape) == x).all()


def test_arrays_that_lie_alike_are_used_in_the_order_of_memory():
    x, out = MATRIX.T, np.zeros_like(MATRIX).T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flat()[1](x, out, x.size, BLOCK=1024)
    assert (out == x).all()


def test_strides_may_be_constants_or_tuples():
    @girih.jit
    def constant(x, out, S: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i * S))

    @girih.jit
    def pair(x, out, S: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i * S[0]))

    x = MATRIX[:, 5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel, stride in [(constant, 32), (pair, (32,))]:
            out = np.zeros(16, np.float32)
            kernel[1](x, out, stride, BLOCK=16)
            assert (out == x[:16]).all()


def test_a_warning_that_is_an_error_stops_the_launch():
    out = np.zeros(8, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="not contiguous"):
            flat()[1](MATRIX[0, ::2], out, 8, BLOCK=8)
    assert not out.any()


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"BLOK": 8}, "no parameter `BLOK`; did you mean `BLOCK`?"),
        ({"BLOCK": 8, "devise": "eval"}, "no parameter `devise`; did you mean `device`?"),
        ({"BLOCK": 8, "chek": True}, "no parameter `chek`; did you mean `check`?"),
        ({"BLOCK": 8, "colour": 1}, "no parameter `colour`; it has x, out, n, BLOCK"),
        ({"block": 8}, "no parameter `block`; did you mean `BLOCK`?"),
        ({}, "the argument `BLOCK` is missing"),
    ],
)
def test_a_misspelt_keyword_is_named_before_a_missing_one(given, expected):
    with pytest.raises(TypeError) as caught:
        flat()[1](MATRIX, np.zeros(8, np.float32), 8, **given)
    assert expected in str(caught.value)


def test_long_words_of_the_user_lose_their_middle():
    word = "x" * 1_000_000
    with pytest.raises(TypeError) as caught:
        flat()[1](MATRIX, MATRIX, 8, **{word: 1})
    assert len(str(caught.value)) < 1000 and "characters left out" in str(caught.value)
    with pytest.raises((TypeError, ValueError)) as caught:
        flat()[(word,)](MATRIX, MATRIX, 8, BLOCK=8)
    assert len(str(caught.value)) < 1000
    for program in (word, f"cuda_tile.module @m {{ entry @k() {{ {word} }} }}", f'cuda_tile.module @m {{ "{word}'):
        with pytest.raises(girih.ProgramError) as caught:
            girih.check(program)
        assert len(str(caught.value)) < 2000 and all(len(d.message) < 1000 for d in caught.value.diagnostics)


@pytest.mark.parametrize("name", ["GIRIH_CHECK", "GIRIH_DEVICE", "GIRIH_THREADS", "GIRIH_CACHE_SIZE"])
def test_a_variable_that_makes_no_sense_is_refused(name, monkeypatch):
    monkeypatch.setenv(name, "maybe")
    with pytest.raises(ValueError, match=f"{name}: .*`maybe`"):
        flat()[1](MATRIX, np.zeros(8, np.float32), 8, BLOCK=8)


def test_autotuning_is_on_off_or_in_memory(monkeypatch):
    from girih.autotune import tuning

    for text, mode in [("", "on"), ("1", "on"), ("yes", "on"), ("0", "off"), ("False", "off"), ("memory", "memory")]:
        monkeypatch.setenv("GIRIH_AUTOTUNE", text)
        assert tuning() == mode
    monkeypatch.setenv("GIRIH_AUTOTUNE", "maybe")
    with pytest.raises(ValueError, match="GIRIH_AUTOTUNE: expected on .*`maybe`; it can also be `memory`"):
        tuning()
