"""``@girih.autotune`` and ``@girih.heuristics``: what is chosen, when it is measured, and what a measurement leaves.

Which configuration is the fastest is never left to the clock: a pre-hook makes all but one slow.
"""

import json
import os
import socket
import sys
import threading

import numpy as np
import pytest

import girih
import girih.language as tl

N = 1000
X = np.arange(N, dtype=np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A store of the test's own."""
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Clock:
    """Advances when it is looked at, and by the time of a slow configuration."""

    now = 0.0

    def perf_counter(self):
        self.now += 0.001
        return self.now

    def pass_(self, _):
        self.now += 0.003


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that does not depend on how busy the machine is."""
    monkeypatch.setattr(sys.modules["girih.autotune"], "time", CLOCK)


CLOCK = Clock()


def config(block, slow=True, **options):
    return girih.Config({"BLOCK": block}, pre_hook=CLOCK.pass_ if slow else None, **options)


def blocks(meta):
    return (girih.cdiv(meta["n"], meta["BLOCK"]),)


def tuned(configs=None, **options):
    """A kernel that adds `x` to `out`, and the number of launches with each block."""
    launches = []
    options.setdefault("key", ["n"])

    @girih.autotune(configs=configs or [config(64), config(128, slow=False), config(256)], **options)
    @girih.jit
    def accumulate(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(out + i, mask=i < n) + tl.load(x + i, mask=i < n), mask=i < n)

    def grid(meta):
        launches.append(meta["BLOCK"])
        return blocks(meta)

    return accumulate, grid, launches


def test_the_fastest_is_chosen_and_measured_once_per_key():
    kernel, grid, launches = tuned()
    out = np.zeros(N, np.float32)
    kernel[grid](X, out, N)
    assert kernel.best_config is kernel.configs[1] and kernel.best_config.kwargs == {"BLOCK": 128}
    assert set(launches) == {64, 128, 256} and launches[-1] == 128
    measured = len(launches)
    kernel[grid](X, out, N)
    assert launches[measured:] == [128]
    kernel[grid](X, out, N - 1)
    assert len(launches) > measured + 2, "another value of the key is measured anew"


def test_element_types_are_part_of_the_key():
    kernel, grid, launches = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    measured = len(launches)
    kernel[grid](X, np.zeros(N, np.float64), N)
    assert len(launches) > measured + 1


@pytest.mark.parametrize("options", [{}, {"restore_value": ["out"]}, {"reset_to_zero": ["out"]}])
def test_a_measurement_leaves_the_arrays_as_they_were(options):
    kernel, grid, launches = tuned(**options)
    out = np.full(N, 5, np.float32)
    kernel[grid](X, out, N)
    assert len(launches) > 6
    assert np.array_equal(out, X + 5)


def test_read_only_inputs_can_be_tuned_with():
    kernel, grid, _ = tuned()
    x, out = X.copy(), np.zeros(N, np.float32)
    x.flags.writeable = False
    kernel[grid](x, out, N)
    assert np.array_equal(out, X)


def test_the_choice_is_kept_on_disk_with_the_machine(cache):
    kernel, grid, launches = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    stored = list((cache / "autotune").glob("*.json"))
    assert len(stored) == 1
    content = json.loads(stored[0].read_text())
    seconds = content["seconds"]
    assert len(seconds) == 3 and min(seconds, key=seconds.get) == "BLOCK=128" and girih.__version__ in content["machine"]

    again, grid, launches = tuned()
    again[grid](X, np.zeros(N, np.float32), N)
    assert launches == [128] and again.best_config.kwargs == {"BLOCK": 128}


def fastest(path):
    seconds = json.loads(path.read_text())["seconds"]
    return min(seconds, key=seconds.get)


def test_one_more_configuration_measures_only_itself(cache):
    kernel, grid, _ = tuned([config(64), config(128)])
    kernel[grid](X, np.zeros(N, np.float32), N)
    more, grid, launches = tuned([config(64), config(128), config(512, slow=False)])
    out = np.zeros(N, np.float32)
    more[grid](X, out, N)
    assert set(launches) == {512} and more.best_config.kwargs == {"BLOCK": 512} and np.array_equal(out, X)
    assert len(more.timings) == 3 and len(list((cache / "autotune").glob("*.json"))) == 1
    fewer, grid, launches = tuned([config(128), config(64)])
    fewer[grid](X, np.zeros(N, np.float32), N)
    assert len(launches) == 1, "both times are known"


def test_a_configuration_that_cannot_run_is_tried_once(cache):
    bad = girih.Config({"BLOCK": 100})
    kernel, grid, launches = tuned([config(64), bad])
    kernel[grid](X, np.zeros(N, np.float32), N)
    again, grid, launches = tuned([config(64), bad])
    again[grid](X, np.zeros(N, np.float32), N)
    assert launches == [64]
    alone, grid, launches = tuned([bad, girih.Config({"BLOCK": 33})])
    with pytest.raises(girih.CompilationError, match="powers of two"):
        alone[grid](X, np.zeros(N, np.float32), N)


@pytest.mark.parametrize("content", ["", "nonsense", "[]", "{}", '{"seconds": 17}', '{"seconds": {"BLOCK=64": "1"}}', '{"seconds": {"BLOCK=64": -1.0}}'])
def test_a_damaged_store_is_measured_anew(cache, content):
    kernel, grid, _ = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    (path,) = (cache / "autotune").glob("*.json")
    path.write_text(content)
    again, grid, launches = tuned()
    out = np.zeros(N, np.float32)
    again[grid](X, out, N)
    assert set(launches) == {64, 128, 256} and np.array_equal(out, X)
    assert fastest(path) == "BLOCK=128"


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "device", "socket"])
def test_only_an_ordinary_file_is_a_store(cache, monkeypatch, kind):
    kernel, grid, _ = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    (path,) = (cache / "autotune").glob("*.json")
    path.unlink()
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as s:
            monkeypatch.chdir(path.parent)
            s.bind(path.name)
    else:
        {
            "pipe": lambda: os.mkfifo(path),
            "folder": lambda: (path / "inner").mkdir(parents=True),
            "loop": lambda: path.symlink_to(path),
            "device": lambda: path.symlink_to("/dev/zero"),
        }[kind]()
    again, grid, launches = tuned()
    again[grid](X, np.zeros(N, np.float32), N)
    assert set(launches) == {64, 128, 256}
    assert fastest(path) == "BLOCK=128"


def test_other_configurations_are_another_choice():
    kernel, grid, _ = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    other, grid, launches = tuned([config(64, slow=False), config(512)])
    other[grid](X, np.zeros(N, np.float32), N)
    assert set(launches) == {64, 512} and other.best_config.kwargs == {"BLOCK": 64}


def test_nothing_is_stored_when_it_is_not_wanted(cache, monkeypatch):
    kernel, grid, _ = tuned(cache_results=False)
    kernel[grid](X, np.zeros(N, np.float32), N)
    monkeypatch.setenv("GIRIH_AUTOTUNE", "memory")
    kernel, grid, _ = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    assert not (cache / "autotune").exists()


def test_nothing_is_measured_when_it_is_not_wanted(monkeypatch):
    monkeypatch.setenv("GIRIH_AUTOTUNE", "0")
    kernel, grid, launches = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    assert launches == [64] and kernel.best_config is kernel.configs[0]


def test_nothing_is_measured_on_the_evaluator():
    kernel, grid, launches = tuned()
    out = np.zeros(N, np.float32)
    kernel[grid](X, out, N, device="eval")
    assert launches == [64] and np.array_equal(out, X)
    kernel[grid](X, out, N)
    assert kernel.best_config.kwargs == {"BLOCK": 128}, "the choice for the evaluator is not the processor's"


def test_a_store_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path / "file" / "below"))
    kernel, grid, launches = tuned([config(64), config(128, slow=False)])
    out = np.zeros(N, np.float32)
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        kernel[grid](X, out, N)
    assert np.array_equal(out, X) and kernel.best_config.kwargs == {"BLOCK": 128}


def test_pruning():
    seen = []

    def prune(configs, arguments, **_):
        seen.append(arguments["n"])
        return [c for c in configs if c.kwargs["BLOCK"] != 128]

    kernel, grid, launches = tuned(prune_configs_by={"early_config_prune": prune})
    kernel[grid](X, np.zeros(N, np.float32), N)
    assert set(launches) == {64, 256} and seen == [N]

    kernel, grid, launches = tuned(prune_configs_by={"perf_model": lambda BLOCK, **_: -BLOCK, "top_k": 2})
    kernel[grid](X, np.zeros(N, np.float32), N - 1)
    assert set(launches) == {128, 256}

    kernel, grid, launches = tuned(prune_configs_by={"early_config_prune": lambda configs, arguments: []})
    kernel[grid](X, np.zeros(N, np.float32), N)
    assert launches == [64]


def test_configurations_that_do_not_compile_are_passed_over():
    kernel, grid, launches = tuned([config(100, slow=False), config(64, slow=False)])
    out = np.zeros(N, np.float32)
    kernel[grid](X, out, N)
    assert kernel.best_config.kwargs == {"BLOCK": 64} and np.array_equal(out, X)


def test_when_none_compiles_the_reason_is_told():
    kernel, grid, _ = tuned([config(100), config(200)])
    with pytest.raises(girih.CompilationError, match="100|200"):
        kernel[grid](X, np.zeros(N, np.float32), N)


def test_pre_hooks_see_the_arguments():
    seen = []
    configs = [girih.Config({"BLOCK": 64}, num_warps=8, num_stages=2, pre_hook=lambda a: seen.append((a["n"], a["BLOCK"])))]
    kernel, grid, _ = tuned(configs)
    kernel[grid](X, np.zeros(N, np.float32), N)
    assert seen == [(N, 64)]


def test_no_progress_where_there_is_no_terminal(capsys):
    kernel, grid, _ = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_progress_on_a_terminal_leaves_nothing_behind(monkeypatch):
    class Terminal:
        def __init__(self):
            self.text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    kernel, grid, _ = tuned()
    kernel[grid](X, np.zeros(N, np.float32), N)
    assert "autotune accumulate: 2 of 3 (BLOCK=128)" in terminal.text
    assert terminal.text.endswith("\r\x1b[2K") and "\n" not in terminal.text


def test_threads_measure_once():
    kernel, grid, launches = tuned()
    outs = [np.zeros(N, np.float32) for _ in range(4)]
    threads = [threading.Thread(target=lambda out=out: kernel[grid](X, out, N)) for out in outs]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert all(np.array_equal(out, X) for out in outs)
    assert kernel.best_config.kwargs == {"BLOCK": 128}


def test_mistakes():
    with pytest.raises(ValueError, match="`accumulate` has no parameter `m`; it has x, out, n, BLOCK"):
        tuned(key=["m"])
    with pytest.raises(ValueError, match="has no parameter `BLOK`"):
        tuned([girih.Config({"BLOK": 1})])
    with pytest.raises(ValueError, match="has no parameter `y`"):
        tuned(restore_value=["y"])
    kernel, grid, _ = tuned(key=["x"])
    with pytest.raises(TypeError, match="the key `x` is an array"):
        kernel[grid](X, np.zeros(N, np.float32), N)
    kernel, grid, _ = tuned()
    with pytest.raises(TypeError, match="autotune chooses `BLOCK`, but the launch passes it as well"):
        kernel[grid](X, np.zeros(N, np.float32), N, BLOCK=64)


def test_an_exception_in_a_trial_comes_through_and_the_arrays_are_restored():
    def fail(arguments):
        arguments["out"][:] = 99
        raise KeyboardInterrupt

    kernel, grid, _ = tuned([config(64), girih.Config({"BLOCK": 128}, pre_hook=fail)])
    out = np.zeros(N, np.float32)
    with pytest.raises(KeyboardInterrupt):
        kernel[grid](X, out, N)
    assert not out.any()


def test_heuristics():
    @girih.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "TWICE": lambda args: 2 * args["BLOCK"]})
    @girih.jit
    def kernel(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, TWICE: tl.constexpr):
        tl.store(out, 1 if EVEN else 0)
        tl.store(out + 1, TWICE)

    out = np.zeros(2, np.int32)
    kernel[(1,)](out, 64, BLOCK=32)
    assert out.tolist() == [1, 64]
    kernel[(1,)](out, 65, 32)
    assert out.tolist() == [0, 64]


def test_autotune_over_heuristics():
    @girih.autotune([config(64), config(128, slow=False)], key=["n"])
    @girih.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @girih.jit
    def kernel(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        tl.store(out, BLOCK + (1 if EVEN else 0))

    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 256)
    assert out[0] == 129


def test_a_tuned_kernel_is_looked_at_with_its_constants():
    kernel, _, _ = tuned()
    assert "entry @accumulate" in kernel.tile_ir(X, X, N, BLOCK=64)
    assert kernel.__name__ == "accumulate"
