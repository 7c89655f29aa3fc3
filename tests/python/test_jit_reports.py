"""Reports of launches that ran to their end, or that were asked to check: races, outputs left unwritten, indices
outside."""

import importlib.util
import re
import warnings

import girih
import girih.language as tl
import numpy as np
import pytest


def said(launch):
    """The warnings of a launch."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        launch()
    return [w.message for w in found if isinstance(w.message, girih.KernelWarning)]


# ---- races


@girih.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + i, mask=i < n))
    tl.store(out, tl.load(out) + s)


@girih.jit
def overlapping(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.program_id(0))


@girih.jit
def neighbour(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i + 1))


@girih.jit
def added(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n)))


@pytest.mark.parametrize(
    ("kernel", "arguments", "grid"),
    [(total, (1000,), 4), (overlapping, (), 4), (neighbour, (), 2)],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_the_evaluator_reports_races(kernel, arguments, grid):
    arrays = [np.ones(1024, np.float32) for name in kernel.params if name in ("x", "out")]
    found = said(lambda: kernel[grid](*arrays, *arguments, BLOCK=256, device="eval"))
    assert [w.code for w in found] == ["W0902"] * len(found) and found
    frame = found[0].frames[-1]
    assert frame.filename == __file__ and frame.function == kernel.__name__
    assert "[W0902]" in str(found[0]) and "help: order them" in str(found[0])


def test_no_race_is_reported_where_there_is_none():
    x, out = np.ones(1024, np.float32), np.zeros(1, np.float32)
    assert said(lambda: added[4](x, out, 1000, BLOCK=256, device="eval")) == []
    assert said(lambda: total[1](x, out, 200, BLOCK=256, device="eval")) == []
    assert out[0] == 1200


def test_a_warning_is_at_the_line_that_launches_and_may_be_an_error():
    x, out = np.ones(1024, np.float32), np.zeros(1, np.float32)
    with pytest.warns(girih.KernelWarning) as found:
        total[4](x, out, 1000, BLOCK=256, device="eval")
    assert found[0].filename == __file__
    tuned = girih.autotune([girih.Config({"BLOCK": 256})], key=["n"])(total)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(girih.KernelWarning):
            tuned[4](x, out, 1000, device="eval")


# ---- outputs


@girih.jit
def copied(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.int32, np.float64])
@pytest.mark.parametrize("blocks", [0, 1, 2, 3, 4])
def test_elements_that_no_block_wrote_are_told(dtype, blocks):
    n = 1000
    x, out = np.ones(n, dtype), np.ones(n, dtype)
    found = said(lambda: copied[blocks](x, out, n, BLOCK=256, check=True))
    left = n - 256 * blocks
    if blocks == 0 or left <= 0:
        # No block ran, or all was written.
        assert found == []
        return
    assert [w.code for w in found] == ["W0910"]
    assert f"{left} of the {n} elements of `out` were written by no block" in str(found[0])
    assert f"the first is at index {256 * blocks}" in str(found[0])


@pytest.mark.parametrize("mask", ["i % 3 != 0", "(i < 40) | (i >= 50)", "i == 7", "i >= 0"])
def test_masks_are_told_exactly(tmp_path, mask):
    path = tmp_path / "masked.py"
    path.write_text(
        "import girih, girih.language as tl\n@girih.jit\ndef k(out, n):\n"
        f"    i = tl.program_id(0) * 64 + tl.arange(0, 64)\n    tl.store(out + i, i, mask=(i < n) & ({mask}))\n"
    )
    spec = importlib.util.spec_from_file_location("masked", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    i = np.arange(150)
    holds = eval(mask, {"i": i})
    out = np.full(150, -1, np.int32)
    found = said(lambda: module.k[3](out, 150, check=True))
    assert (out == np.where(holds, i, -1)).all()
    left = int((~holds).sum())
    assert [re.search(r"(\d+) of the 150 elements", str(w)).group(1) for w in found] == ([str(left)] if left else [])


@pytest.mark.parametrize("device", ["eval", "sim"])
@pytest.mark.parametrize("blocks", [1, 3, 4])
def test_the_interpreters_tell_of_elements_that_no_block_wrote(device, blocks):
    n = 1000
    out = np.zeros(n, np.float32)
    found = said(lambda: copied[blocks](np.ones(n, np.float32), out, n, BLOCK=256, device=device, check=True))
    left = n - 256 * blocks
    assert [w.code for w in found] == (["W0910"] if left > 0 else [])
    assert left <= 0 or f"{left} of the {n} elements of `out` were written by no block" in str(found[0])
    assert said(lambda: copied[blocks](np.ones(n, np.float32), out, n, BLOCK=256, device=device)) == []


def test_a_finding_of_the_simulator_begins_with_the_users_line():
    @girih.jit
    def racing(x, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) + tl.program_id(0))

    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(girih.KernelError) as raised:
        racing[3](x, out, BLOCK=64, device="sim")
    line = racing.fn.__code__.co_firstlineno + 3
    error, place = raised.value, f"{__file__}:{line}"
    assert (error.filename, error.lineno) == (__file__, line)
    first, kind, one, other, *_ = str(error).splitlines()
    assert first.startswith(f"{place}:9: the kernel `racing` is wrong") and kind.startswith("write-after-write: ")
    assert one.startswith(f"  {place} by thread 0, line ") and "of Kernel IR: `store out" in one
    assert other.startswith(f"  then {place} by thread 0, line ")


def test_what_is_read_too_or_not_asked_about_is_not_told():
    x = np.ones(1000, np.float32)
    assert said(lambda: copied[1](x, np.ones(1000, np.float32), 1000, BLOCK=256)) == []

    @girih.jit
    def doubled(x, n):
        i = tl.arange(0, 64)
        tl.store(x + i, tl.load(x + i) * 2)

    assert said(lambda: doubled[1](x, 1000, check=True)) == []
    # Between the elements of a view lies memory of others.
    @girih.jit
    def strided(out, stride):
        i = tl.arange(0, 64)
        tl.store(out + i * stride, 1.0)

    assert said(lambda: strided[1](np.zeros(128, np.float32)[::2], 2, check=True)) == []


# ---- indices


@girih.jit
def gathered(x, out, n):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.gather(tl.load(x + i), i + n, 0))


@girih.jit
def gathered_masked(x, out, n):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.gather(tl.load(x + i), i + n, 0, mask=i < 8 - n, other=-5.0))


@girih.jit
def counted(x, out, n):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.histogram(i + n, 8))


CHECKED = [{"device": "eval"}, {"check": True}, {"device": "sim"}]


@pytest.mark.parametrize("how", CHECKED, ids=str)
@pytest.mark.parametrize("kernel", [gathered, counted], ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [3, -2])
def test_indices_outside_of_a_tile(kernel, how, n):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel[1](x, out, 0, **how)
    with pytest.raises(girih.OutOfBoundsError, match="lies outside") as caught:
        kernel[1](x, out, n, **how)
    assert caught.value.code == "E0605" and caught.value.function == kernel.__name__
    # Otherwise they are nothing.
    kernel[1](x, out, n)
    at = np.arange(8) + n
    want = np.where((at >= 0) & (at < 8), at.clip(0, 7), 0)
    assert (out == (want if kernel is gathered else np.bincount(at[(at >= 0) & (at < 8)], minlength=8))).all()


@pytest.mark.parametrize("how", [*CHECKED, {}], ids=str)
def test_a_masked_gather(how):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    gathered_masked[1](x, out, 3, **how)
    assert out.tolist() == [3, 4, 5, 6, 7, -5, -5, -5]


@girih.jit
def block_of(x, out, n, M: tl.constexpr, N: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * N,), (N,), (0,))
    tl.store(out + tl.program_id(0) * N + tl.arange(0, N), tl.load(p))


@girih.jit
def block_that_is_masked(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * N,), (N,), (0,))
    tl.store(out + i, tl.load(p), mask=i < n)


@girih.jit
def block_to_a_block(x, out, n, M: tl.constexpr, N: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * N,), (N,), (0,))
    q = tl.make_block_ptr(out, (n,), (1,), (tl.program_id(0) * N,), (N,), (0,))
    tl.store(q, tl.load(p) + 1, boundary_check=(0,))


@girih.jit
def rows_of_a_block(x, out, n, M: tl.constexpr, N: tl.constexpr):
    p = tl.make_block_ptr(x, (n // N, N), (N, 1), (0, 0), (M, N), (1, 0))
    q = tl.make_block_ptr(out, (n // N, N), (N, 1), (0, 0), (M, N), (1, 0))
    tl.store(q, tl.load(p) * 2, boundary_check=(0,))


BLOCKS = [block_of, block_that_is_masked, block_to_a_block, rows_of_a_block]


@pytest.mark.parametrize("kernel", BLOCKS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [128, 100, 96])
def test_a_block_without_a_boundary(kernel, n):
    """A checked launch refuses a kernel that an unchecked launch refuses."""
    x, out = np.ones(n, np.float32), np.ones(128, np.float32)
    grid = 1 if kernel is rows_of_a_block else 4
    for how in ({}, {"check": True}, {"device": "eval"}):
        if n == 128:
            kernel[grid](x, out, n, M=4, N=32, **how)
            continue
        with pytest.raises((girih.OutOfBoundsError, girih.LaunchError), match="`x`"):
            kernel[grid](x, out, n, M=4, N=32, **how)


@girih.jit
def into_either(a, b, unused, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(tl.where(n > 500, a, b) + i, tl.load(x + i, mask=i < n), mask=i < n)


@girih.jit
def walked(x, out, unused, n, BLOCK: tl.constexpr):
    q = out
    for k in range(n // BLOCK):
        tl.store(q + tl.arange(0, BLOCK), tl.load(x + k * BLOCK + tl.arange(0, BLOCK)))
        q += BLOCK


@girih.jit
def through_numbers(x, out, unused, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = out.to(tl.int64, bitcast=True) + n * 0
    tl.store(at.to(tl.pointer_type(tl.float32), bitcast=True) + i, tl.load(x + i))


@pytest.mark.parametrize("n", [1000, 100])
def test_an_array_that_is_one_of_several_may_be_left_alone(n):
    x = np.arange(1000, dtype=np.float32)
    a, b, unused = (np.zeros(1000, np.float32) for _ in range(3))
    assert said(lambda: into_either[4](a, b, unused, x, n, BLOCK=256, check=True)) == []
    assert ((a if n > 500 else b)[:n] == x[:n]).all()


def test_addresses_that_are_computed_are_of_their_array():
    x, out, unused = np.arange(512, dtype=np.float32), np.zeros(512, np.float32), np.zeros(512, np.float32)
    assert said(lambda: walked[1](x, out, unused, 512, BLOCK=64, check=True)) == []
    assert (out == x).all()
    found = said(lambda: walked[1](x, out, unused, 448, BLOCK=64, check=True))
    assert len(found) == 1 and "64 of the 512 elements of `out` were written by no block" in str(found[0])
    assert said(lambda: through_numbers[1](x, out, unused, 512, BLOCK=512, check=True)) == []


# ---- memory of the block


@girih.jit
def shared_by(x, out, n):
    i = tl.arange(0, 64)
    a = girih.shared(64)
    b = girih.shared(64)
    tl.store(a + i, tl.load(x + i))
    tl.store(b + i, tl.load(x + i) + 100)
    tl.store(a + i + n, -1.0)
    tl.store(out + i, tl.load(a + i))
    tl.store(out + 64 + i, tl.load(b + i))


@girih.jit
def shared_walked(x, out, n):
    p = girih.shared(64)
    i = tl.arange(0, 64)
    tl.store(p + i, tl.load(x + i))
    q = p
    for step in range(n):
        tl.store(q, -1.0)
        q += 1
    tl.store(out + i, tl.load(p + i))


@girih.jit
def shared_by_table(x, out, n):
    i = tl.arange(0, 64)
    a = girih.shared(64)
    tl.store(a + i, 0.0)
    at = tl.load(x + i).to(tl.int32) + n
    tl.store(a + at, 5.0)
    tl.store(out + i, tl.load(a + at))
    tl.store(out + 64 + i, tl.load(a + i))


@girih.jit
def shared_by_either(x, out, n):
    i = tl.arange(0, 64)
    a = girih.shared(64)
    b = girih.shared(64)
    tl.store(a + i, tl.load(x + i))
    tl.store(b + i, 100.0)
    # Now the one, now the other, and neither for a large n.
    p = tl.where(n < 50, a, out)
    tl.store(tl.where(n > -2, p, b) + i + n, -1.0, mask=(n < 50) | (i < 0))
    tl.store(out + i, tl.load(a + i))
    tl.store(out + 64 + i, tl.load(b + i))


def left_by(kernel, n):
    """The kernel's result if an access outside of its memory does nothing, and a read there gives 0."""
    x = np.arange(64, dtype=np.float32)
    at = np.arange(64) + n
    inside = (at >= 0) & (at < 64)
    a = x.copy()
    if kernel is shared_by_either:
        b = np.full(64, 100, np.float32)
        if n < 50:
            (a if n > -2 else b)[at[inside]] = -1
        return np.concatenate([a, b])
    if kernel is shared_by:
        a[at[inside]] = -1
        return np.concatenate([a, x + 100])
    if kernel is shared_walked:
        a[: max(n, 0)] = -1
        return np.concatenate([a, np.zeros(64, np.float32)])
    a[:] = 0
    a[at[inside]] = 5
    return np.concatenate([np.where(inside, 5, 0).astype(np.float32), a])


@pytest.mark.parametrize("kernel", [shared_by, shared_walked, shared_by_table, shared_by_either], ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [0, 5, 100, 100_000, -3])
def test_nothing_outside_of_a_blocks_memory_is_touched(kernel, n):
    x, out = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    kernel[1](x, out, n)
    assert (out == left_by(kernel, n)).all()
    outside = {shared_walked: n > 64, shared_by_either: 0 != n < 50}.get(kernel, n != 0)
    for how in ({"check": True}, {"device": "eval"}):
        if outside:
            with pytest.raises(girih.OutOfBoundsError) as caught:
                kernel[1](x, out, n, **how)
            assert caught.value.function == kernel.__name__
        else:
            kernel[1](x, out, n, **how)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120"])
@pytest.mark.parametrize("kernel", [shared_by, shared_by_table], ids=lambda k: k.__name__)
def test_the_simulator_reports_what_leaves_a_blocks_memory(kernel, target, monkeypatch):
    monkeypatch.setenv("GIRIH_TARGET", target)
    for n in (0, 1, 5, 100, 100_000, -3):
        x, out = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
        if n:
            with pytest.raises(girih.OutOfBoundsError, match="memory `\\w+`, which holds 64 elements"):
                kernel[1](x, out, n, device="sim")
        else:
            kernel[1](x, out, n, device="sim")
            assert (out == left_by(kernel, n)).all()


def test_a_checked_kernel_names_the_blocks_memory():
    x, out = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    with pytest.raises(girih.OutOfBoundsError, match="memory `shared`, which holds 64 elements"):
        shared_by[1](x, out, 5, check=True)


# ---- loads and conversions that are not the usual ones


@girih.jit
def waits(flag, x, out, MODE: tl.constexpr):
    if tl.program_id(0) == 0:
        if MODE == "volatile":
            while tl.load(flag, volatile=True) == 0:
                pass
        elif MODE == "modifier":
            while tl.load(flag, cache_modifier=".cv") == 0:
                pass
        else:
            ready = 0
            while ready < 4:
                ready = tl.sum(tl.load(flag + tl.arange(0, 4), volatile=True))
        tl.store(out, tl.load(x, volatile=True) + 1.0)
    else:
        tl.store(x, 41.0)
        for i in range(4):
            tl.atomic_xchg(flag + i, 1, sem="release")


@pytest.mark.parametrize("how", [{"threads": 1}, {"threads": 3}, {"device": "eval"}, {"device": "sim"}], ids=str)
@pytest.mark.parametrize("mode", ["volatile", "modifier", "tile"])
def test_a_block_waits_for_another(how, mode):
    flag, x, out = np.zeros(4, np.int32), np.zeros(1, np.float32), np.zeros(1, np.float32)
    assert said(lambda: waits[2](flag, x, out, MODE=mode, **how)) == []
    assert out[0] == 42


@girih.jit
def rounded(x, out, D: tl.constexpr):
    i = tl.arange(0, 1024)
    tl.store(out + i, tl.load(x + i).to(D, fp_downcast_rounding="rtz").to(tl.float64))


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float32"])
def test_conversions_towards_zero(device, source, name):
    """The number of the type that is next to the value on the side of zero, of all its numbers."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, name, None) or name)
    if kind == source:
        return
    draw = np.random.default_rng(3)
    x = (draw.standard_normal(1024) * 10.0 ** draw.integers(-9, 7, 1024)).astype(source)
    x[:8] = [0.0, -0.0, 1e30, -1e30, 448.0, 460.0, 65504.0, 65535.0]
    out = np.zeros(1024)
    girih_type = {"float8_e5m2": tl.float8e5, "float8_e4m3fn": tl.float8e4nv}.get(name) or getattr(tl, name)
    rounded[1](x, out, D=girih_type, device=device)
    if kind == np.float32:
        near = x.astype(np.float32)
        far = np.abs(near.astype(np.float64)) > np.abs(x)
        want = np.where(far, np.nextafter(near, np.float32(0)), near).astype(np.float64)
    else:
        words = np.arange(1 << (8 * kind.itemsize - 1), dtype=f"u{kind.itemsize}")
        with np.errstate(invalid="ignore"):
            numbers = np.sort(words.view(kind).astype(np.float64))
        numbers = numbers[np.isfinite(numbers)]
        at = np.searchsorted(numbers, np.abs(x.astype(np.float64)), side="right") - 1
        want = np.copysign(numbers[at], x)
    assert (out == want).all(), (x[out != want][:5], out[out != want][:5], want[out != want][:5])


@girih.jit
def moved(x, sx, out, so, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i * so, tl.load(x + i * sx, mask=i < n) + 1, mask=i < n)


@pytest.mark.parametrize("how", [{}, {"check": True}, {"device": "eval"}], ids=str)
@pytest.mark.parametrize(("first", "second"), [(-1, 1), (1, -1), (-2, -1), (-3, -2), (2, -4)])
def test_arrays_that_run_backwards(how, first, second):
    n = 100
    whole, place = np.arange(4 * n, dtype=np.int32), np.zeros(4 * n, np.int32)
    x, out = whole[::first][:n], place[::second][:n]
    moved[2](x, x.strides[0] // 4, out, out.strides[0] // 4, n, BLOCK=64, **how)
    assert (out == x + 1).all() and (place != 0).sum() == n


@pytest.mark.parametrize("how", [{"check": True}, {"device": "eval"}], ids=str)
def test_an_access_before_an_array_that_runs_backwards(how):
    whole, out = np.arange(400, dtype=np.int32), np.zeros(150, np.int32)
    with pytest.raises(girih.OutOfBoundsError, match="`x`.*-99 to 0" if "check" in how else "`x`"):
        moved[1](whole[300:400][::-1], -1, out, 1, 150, BLOCK=256, **how)


def test_a_matrix_upside_down():
    @girih.jit
    def copy(x, s0, s1, out, BLOCK: tl.constexpr):
        i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
        tl.store(out + i * BLOCK + j, tl.load(x + i * s0 + j * s1))

    base = np.arange(256, dtype=np.float32).reshape(16, 16)
    for view in (base[::-1], base[:, ::-1], base[::-1, ::-1], base.T[::-1]):
        out = np.zeros((16, 16), np.float32)
        copy[1](view, view.strides[0] // 4, view.strides[1] // 4, out, BLOCK=16)
        assert (out == view).all()


@girih.jit
def congruential(out, seed):
    s = seed
    for _ in tl.static_range(5):
        s = s * 1664525 + 1013904223
    tl.store(out, s)
    tl.store(out + 1, (seed - 3) * -2147483647)
    tl.store(out + 2, (seed << 31) + (-seed << 30))


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("seed", [1, 2, 16, 12345, -1])
def test_an_argument_of_one_wraps_as_others_do(device, seed):
    out = np.zeros(3, np.int32)
    congruential[1](out, seed, device=device)
    s = seed
    for _ in range(5):
        s = s * 1664525 + 1013904223
    want = [s, (seed - 3) * -2147483647, (seed << 31) + (-seed << 30)]
    assert out.tolist() == [int(np.int64(w % (1 << 32)).astype(np.int32)) for w in want]
