"""A kernel that goes wrong raises from ``ct.launch``, with the kernel's file and line."""

import dataclasses
import pathlib
import pickle
import warnings
import zipfile

import cuda.tile as ct
import numpy as np
import pytest

import girih
import girih.cutile as gc


def line_of(marker):
    """The line of this file that ends in a comment."""
    with open(__file__) as file:
        [found] = [n for n, line in enumerate(file, 1) if line.rstrip().endswith(f"# <- {marker}")]
    return found


@pytest.fixture
def device(request):
    gc.install(device=getattr(request, "param", "cpu"))
    yield
    gc.install(device="cpu", check=False)


@pytest.fixture
def checked():
    gc.install(check=True)
    yield
    gc.install(check=False)


@ct.kernel
def asserts(x):
    tile = ct.load(x, (ct.bid(0),), (4,))
    ct.assert_(tile < 100.0, "too large")  # <- assert


@pytest.mark.parametrize("device", ["cpu", "eval"], indirect=True)
def test_an_assertion(device):
    x = np.arange(8, dtype=np.float32)
    ct.launch(0, (2,), asserts, (x,))
    x[5] = 1000
    with pytest.raises(gc.KernelAssertionError, match="too large") as raised:
        ct.launch(0, (2,), asserts, (x,))
    error = raised.value
    assert isinstance(error, AssertionError) and isinstance(error, gc.KernelError)
    assert (error.filename, error.lineno) == (__file__, line_of("assert"))
    assert error.code == "E0601"
    assert error.function == "asserts"
    assert error.block == [1, 0, 0]
    lines = str(error).splitlines()
    at = next(i for i, line in enumerate(lines) if "ct.assert_(tile" in line)
    assert lines[at - 1].lstrip() == f'File "{__file__}", line {error.lineno}, in asserts'
    assert lines[at + 1].strip() == "^"
    assert lines[at + 1].index("^") == lines[at].index("ct.assert_")


@ct.kernel
def total(x, out):
    sum = ct.load(out, (0,), (1,)) + ct.sum(ct.load(x, (ct.bid(0),), (4,)))  # <- read
    ct.store(out, (0,), sum)  # <- write


@pytest.mark.parametrize("device", ["eval"], indirect=True)
def test_a_race_is_a_warning_at_the_launch(device):
    with pytest.warns(gc.KernelWarning) as warned:
        ct.launch(0, (2,), total, (np.ones(8, np.float32), np.zeros(1, np.float32)))  # <- launch
    assert {(w.filename, w.lineno) for w in warned} == {(__file__, line_of("launch"))}
    assert {f.lineno for w in warned for f in w.message.frames} == {line_of("read"), line_of("write")}
    assert {w.message.code for w in warned} == {"W0902"}
    assert all("of different blocks" in str(w.message) for w in warned)
    assert any(f"the other access, at {__file__}:{line_of('write')}:" in str(w.message) for w in warned)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(gc.KernelWarning):
            ct.launch(0, (2,), total, (np.ones(8, np.float32), np.zeros(1, np.float32)))
        ct.launch(0, (1,), total, (np.ones(8, np.float32), np.zeros(1, np.float32)))


def test_the_errors_are_those_of_all_kernels():
    names = ["KernelAssertionError", "OutOfBoundsError", "UndefinedValueError", "AssumptionError", "KernelValueError"]
    for name in [*names, "KernelError", "KernelWarning"]:
        assert getattr(gc, name) is getattr(girih, name)

    @girih.jit
    def stops(x):
        girih.device_assert(girih.load(x + girih.arange(0, 4)) < 100.0, "too large")

    x = np.full(4, 1000, dtype=np.float32)
    for launch in [lambda: ct.launch(0, (1,), asserts, (x,)), lambda: stops[(1,)](x)]:
        with pytest.raises(girih.KernelError, match="too large") as raised:
            launch()
        error = pickle.loads(pickle.dumps(raised.value))
        assert type(error) is girih.KernelAssertionError and isinstance(error, AssertionError)
        assert (error.code, error.filename, str(error)) == ("E0601", __file__, str(raised.value))
        assert (error.place.file, error.place.line) == (__file__, error.lineno)
        assert list(error.block) == [0, 0, 0] and error.frames[-1].lineno == error.lineno


def inner(x, i):
    return ct.gather(x, i, check_bounds=False)  # <- gather


@ct.kernel
def gathers(x, out, shift: int):
    i = ct.arange(4, dtype=ct.int32) + shift
    ct.store(out, (0,), inner(x, i))  # <- call


def test_a_gather_out_of_bounds_under_check(checked):
    x, out = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    ct.launch(0, (1,), gathers, (x, out, 4))
    assert out.tolist() == [4, 5, 6, 7]
    with pytest.raises(gc.OutOfBoundsError) as raised:
        ct.launch(0, (1,), gathers, (x, out, 5))
    error = raised.value
    assert isinstance(error, IndexError)
    assert (error.filename, error.lineno) == (__file__, line_of("gather"))
    assert [frame.lineno for frame in error.frames] == [line_of("call"), line_of("gather")]
    assert [frame.function for frame in error.frames] == ["gathers", "inner"]
    assert "inner(x, i)" in str(error)
    assert "index 8 of `x`, which holds 8 elements" in str(error)


@ct.kernel
def divides(x, y, out):
    quotient = ct.load(x, (0,), (4,)) // ct.load(y, (0,), (4,))
    ct.store(out, (0,), quotient)


@pytest.mark.parametrize("device", ["eval"], indirect=True)
def test_a_division_by_zero_that_is_stored(device):
    x, y, out = np.full(4, 7, np.int32), np.array([1, 2, 0, 4], np.int32), np.zeros(4, np.int32)
    with pytest.raises(gc.UndefinedValueError) as raised:
        ct.launch(0, (1,), divides, (x, y, out))
    error = raised.value
    assert error.filename == __file__
    first = divides._pyfunc.__code__.co_firstlineno
    assert first < error.lineno <= first + 3


@ct.kernel
def converts(x, out):
    ct.store(out, (0,), ct.load(x, (0,), (4,)).astype(ct.int8))  # <- astype


@pytest.mark.parametrize("device", ["eval"], indirect=True)
def test_a_method_of_cutile_is_no_place_of_the_users(device):
    x, out = np.array([1, 2, 1000, 4], np.float32), np.zeros(4, np.int8)
    with pytest.raises(gc.UndefinedValueError) as raised:
        ct.launch(0, (1,), converts, (x, out))
    assert (raised.value.filename, raised.value.lineno) == (__file__, line_of("astype"))


def test_the_process_goes_on_after_an_error():
    x = np.full(4, 1000, np.float32)
    for _ in range(3):
        with pytest.raises(gc.KernelAssertionError):
            ct.launch(0, (1,), asserts, (x,))
    ct.launch(0, (1,), asserts, (np.zeros(4, np.float32),))


def test_the_traceback_shows_the_launch_and_no_driver():
    import traceback

    with pytest.raises(gc.KernelAssertionError) as raised:
        ct.launch(0, (1,), asserts, (np.full(4, 1000, np.float32),))
    text = "".join(traceback.format_exception(raised.value))
    assert "During handling" not in text and "direct cause" not in text
    assert "Failed to launch" not in text
    assert text.count('File "') == 2, text


@ct.kernel
def wrong(x):
    ct.store(x, (0,), ct.exp(ct.bid("x")))


def test_cutiles_own_errors_stay_its_own():
    with pytest.raises(ct.TileTypeError):
        ct.launch(0, (1,), wrong, (np.zeros(4, np.float32),))


def failing(error):
    def fail(*_args, **_options):
        raise error

    return fail


@pytest.mark.parametrize("place", ["girih", "the program"])
@pytest.mark.parametrize("asked", [True, False])
def test_a_dump_of_a_kernel_that_does_not_compile(place, asked, monkeypatch, tmp_path):
    """With CUDA_TILE_ENABLE_CRASH_DUMP, whether Girih refuses it or a compiler that the program put in the place of cuTile's."""
    from cuda.tile import _compile
    from cuda.tile._cext import TileContext
    from cuda.tile._exception import Loc
    from cuda.tile.compilation import CallingConvention, KernelSignature

    error = ct.TileCompilerExecutionError(1, "made to fail", Loc.unknown(), "--flag", "13.3")
    of, name = (gc.driver, "container") if place == "girih" else (_compile, "compile_cubin")
    monkeypatch.setattr(of, name, failing(error))
    monkeypatch.chdir(tmp_path)
    config = dataclasses.replace(_compile.default_tile_context.config, enable_crash_dump=asked, cache_dir=None)
    signature = KernelSignature(parameters=[], calling_convention=CallingConvention.cutile_python_v1())

    @ct.kernel
    def nothing():
        pass

    with pytest.raises(ct.TileCompilerExecutionError, match="made to fail"):
        _compile.compile_tile(nothing._annotated_function, [signature], "sm_100", context=TileContext(config=config))
    dumps = list(tmp_path.glob("crash_dump_*.zip"))
    assert len(dumps) == asked
    for dump in dumps:
        names = zipfile.ZipFile(dump).namelist()
        assert {pathlib.Path(n).suffix for n in names} == {".bytecode", ".txt", ".cutileir"}


def test_what_an_older_compiler_lacks_is_the_error_of_cutile(monkeypatch):
    """Also where a program says how new the compiler is by cuTile's own question."""
    from cuda.tile import _compile
    from cuda.tile.compilation import CallingConvention, KernelSignature

    @ct.kernel
    def views(x):
        x.tiled_view(4, traversal_steps=2)

    x = np.zeros(16, np.float32)
    signature = KernelSignature.from_kernel_args(views, (x,), CallingConvention.cutile_python_v1())
    monkeypatch.setattr(_compile, "_get_max_supported_bytecode_version", lambda *_, **__: _compile.BytecodeVersion.V_13_2)
    with pytest.raises(ct.TileUnsupportedFeatureError, match="traversal_steps requires tileiras 13.3"):
        _compile.compile_tile(views._annotated_function, [signature])


def test_a_timed_run_needs_no_other_process(monkeypatch):
    import subprocess

    from cuda.tile.tune import _tune_utils

    @ct.kernel
    def adds(arrays, out):
        total = ct.full((4,), 0.0, dtype=ct.float32)
        for i in range(len(arrays)):
            total += ct.load(arrays[i], (0,), (4,))
        ct.store(out, (0,), total)

    monkeypatch.setattr(subprocess, "Popen", failing(AssertionError("a process was started")))
    arrays, out = [np.ones(4, np.float32) for _ in range(3)], np.zeros(4, np.float32)
    microseconds, seconds = _tune_utils.benchmark_with_timeout(0, (1,), adds, (arrays, out), 30.0, False)
    assert microseconds >= 0 and seconds > 0 and out.tolist() == [3] * 4
