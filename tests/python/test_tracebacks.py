"""Tracebacks of the user's mistakes hold the user's lines only."""

import os
import traceback

import numpy as np
import pytest

import girih
import girih.language as tl

PACKAGE = os.path.dirname(girih.__file__)


@girih.jit
def wrong(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), missing)  # noqa: F821


@girih.jit
def right(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0)


def files(launch):
    """The files of the traceback, from the launch on."""
    with pytest.raises(Exception) as raised:
        launch()
    frames = traceback.extract_tb(raised.value.__traceback__)
    return [f.filename for f in frames[1:]], raised.value


X = np.zeros(8, np.float32)
tuned = girih.autotune([girih.Config({"BLOCK": 8}), girih.Config({"BLOCK": 4})], key=[])
LAUNCHES = {
    "compilation": (girih.CompilationError, lambda: wrong[1](X, 8)),
    "with a setting": (girih.CompilationError, lambda: wrong[1](X, 8, device="eval")),
    "out of bounds": (girih.OutOfBoundsError, lambda: right[3](X, BLOCK=8, check=True)),
    "the evaluator": (girih.OutOfBoundsError, lambda: right[3](X, BLOCK=8, device="eval")),
    "a missing argument": (TypeError, lambda: right[1](X)),
    "with a setting too": (TypeError, lambda: right[1](X, device="eval")),
    "an unknown type": (TypeError, lambda: right[1]([1.0], BLOCK=8)),
    "a wrong grid": (ValueError, lambda: right[1.5](X, BLOCK=8, device="eval")),
    "tuned": (girih.CompilationError, lambda: tuned(wrong)[1](X)),
}


@pytest.mark.parametrize("what", LAUNCHES)
def test_no_frame_is_ours(what):
    kind, launch = LAUNCHES[what]
    found, error = files(launch)
    assert isinstance(error, kind) and found == [__file__]
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__ or kind is not girih.CompilationError)


def test_a_named_function_is_the_only_frame():
    for look in (lambda: wrong.run(1, X, 8), lambda: wrong.ir("c", X, 8), lambda: wrong.warmup(X, 8)):
        found, _ = files(look)
        assert found[0] == __file__ and len(found) <= 3 and all(f.startswith(PACKAGE) for f in found[1:])


def test_the_users_functions_stay():
    def grid(meta):
        return 1 // 0

    found, error = files(lambda: right[grid](X, BLOCK=8, device="eval"))
    assert isinstance(error, ZeroDivisionError) and found[-1] == __file__ and len(found) >= 2


def test_all_frames_can_be_kept(monkeypatch):
    monkeypatch.setenv("GIRIH_TRACEBACK", "full")
    found, _ = files(lambda: wrong[1](X, 8, device="eval"))
    assert any(f.endswith("trace.py") for f in found)


def test_a_bug_keeps_its_frames(monkeypatch):
    from girih.frontend import trace

    def broken(*_):
        raise AttributeError("a bug of Girih")

    monkeypatch.setitem(trace.EXPRESSIONS, trace.ast.BinOp, broken)
    found, error = files(lambda: right[1](X, 2))
    assert isinstance(error, AttributeError) and any(f.endswith("trace.py") for f in found)
