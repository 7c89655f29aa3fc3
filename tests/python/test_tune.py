"""`girih tune` from Python: the same search whoever evaluates its candidates, and workers that die."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import girih
from girih import tune

PRODUCT = "torch.randn(64, 64, dtype=torch.float16) @ torch.randn(64, 64, dtype=torch.float16)"
VARY = ("--vary", "mc", "--vary", "kc")
PACKAGES = {"dask": "distributed", "ray": "ray"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("GIRIH_TARGET", "GIRIH_TUNED", "GIRIH_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


def found(**options):
    result = tune.search(None, *VARY, expression=PRODUCT, target="sm_90a", trials=3, budget=500.0, **options)
    return {name: value for name, value in result.items() if name != "seconds"}


def records(cache):
    return [json.loads(path.read_text())["knobs"] for path in (cache / "tuned").glob("*.json")]


def test_a_search_gives_what_the_command_says_and_keeps_it(cache):
    result = found()
    assert result["tried"] == 3 and result["ended"] == "trials" and result["machine"] == "sm_90a"
    assert result["speedup"] is None or result["speedup"] > 1
    assert records(cache) == ([result["knobs"]] if result["knobs"] else [])


@pytest.mark.parametrize("jobs", ["dask", "ray"])
def test_engines_find_the_same(jobs, cache):
    if importlib.util.find_spec(PACKAGES[jobs]) is None:
        pytest.skip(f"{PACKAGES[jobs]} is not installed; `make test-tune` installs it")
    expected = found()
    for path in (cache / "tuned").glob("*.json"):
        path.unlink()
    assert found(jobs=jobs) == expected
    assert records(cache) == ([expected["knobs"]] if expected["knobs"] else [])


def test_a_candidate_whose_worker_dies_is_tried_once_more():
    calls = []

    def dies(times):
        def once(candidate, deadline):
            calls.append(candidate)
            if len(calls) <= times:
                raise RuntimeError("gone")
            return {"ratio": 1.0}

        calls.clear()
        return tune.twice(once, "kc=64", tune.Deadline(60.0)), len(calls)

    assert dies(0) == ({"ratio": 1.0}, 1)
    assert dies(1) == ({"ratio": 1.0}, 2)
    assert dies(2) == ({"failed": "its worker died twice: gone"}, 2)


def test_a_candidate_that_is_not_done_when_the_budget_ends_is_stopped(tmp_path, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(300)\n")
    slow.chmod(0o755)
    monkeypatch.setattr(tune, "command", lambda: str(slow))
    start = time.monotonic()
    with tune.ENGINES["alone"]([], None) as batch:
        assert batch(["kc=64", "kc=32"], 0.5) == [tune.INTERRUPTED, tune.INTERRUPTED]
    assert time.monotonic() - start < 100


def test_a_search_goes_on_without_a_candidate_that_fails():
    def batch(candidates, left):
        assert 0 < left < 60
        return [{"failed": "the worker is gone"} for _ in candidates]

    result = tune.drive(["-c", PRODUCT, "--device", "sim", "--target", "sm_90a", *VARY, "--trials", "3"], batch)
    assert result["failed"] == result["tried"] == 3 and result["knobs"] is None


def test_outcomes_of_another_kernel_do_not_count():
    def batch(candidates, left):
        assert 0 < left < 60
        return [{"ratio": 0.1, "default_s": 1.0, "candidate_s": 0.1, "machine": "sm_80", "key": "other"} for _ in candidates]

    result = tune.drive(["-c", PRODUCT, "--device", "sim", "--target", "sm_90a", *VARY, "--trials", "2"], batch)
    assert result["failed"] == 2 and result["knobs"] is None


def test_what_makes_no_sense_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown jobs 'slurm'; they are dask, ray, alone"):
        tune.search("a.mlir", jobs="slurm")
    with pytest.raises(ValueError, match="disturb"):
        tune.search("a.mlir", jobs="dask", device="cpu")
    with pytest.raises(subprocess.CalledProcessError):
        tune.search(str(tmp_path / "none.mlir"))
    done = subprocess.run([sys.executable, "-m", "girih.tune", "none.mlir"], capture_output=True, text=True)
    assert done.returncode == 1 and "cannot be read" in done.stderr


@pytest.mark.parametrize("jobs", ["dask", "ray"])
def test_a_worker_that_is_killed_costs_no_candidate(jobs, tmp_path, monkeypatch):
    if importlib.util.find_spec(PACKAGES[jobs]) is None:
        pytest.skip(f"{PACKAGES[jobs]} is not installed; `make test-tune` installs it")
    marker = str(tmp_path / "died")

    def mortal(arguments, candidate, left):
        import os

        if candidate == "kc=64" and not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(1)
        return {"candidate": candidate}

    monkeypatch.setattr(tune, "evaluate", mortal)
    with tune.ENGINES[jobs]([], None) as batch:
        assert batch(["kc=64", "kc=32"], 500.0) == [{"candidate": "kc=64"}, {"candidate": "kc=32"}]
    assert (tmp_path / "died").exists()


@girih.jit
def add(x, y, out, n, BLOCK: girih.constexpr):
    i = girih.program_id(0) * BLOCK + girih.arange(0, BLOCK)
    total = girih.load(x + i, mask=i < n) + girih.load(y + i, mask=i < n)
    girih.store(out + i, total, mask=i < n)


GEMM = Path(__file__).parents[2] / "examples" / "gemm.mlir"


def test_a_part_of_a_large_grid_is_simulated(tmp_path):
    # 1,024 blocks of 1.2 million statements take a minute, and 3 of them a second.
    given = ("grid=32,32", "A=randn:f16[4096x512]", "B=randn:f16[512x4096]", "C=zeros:f32[4096x4096]")
    sizes = ("M=i32:4096", "N=i32:4096", "K=i32:512")
    text = GEMM.read_text()
    at = text.index("// launch:")
    file = tmp_path / "gemm.mlir"
    file.write_text(f"{text[:at]}// launch: {' '.join(given + sizes)}\n{text[text.index(chr(10), at) + 1 :]}")
    found = tune.search(str(file), target="sm_90a", trials=1, budget=500.0)
    assert found["tried"] >= 1 and found["failed"] == 0
    assert 3 <= found["sampled"]["blocks"] <= 8 and found["sampled"]["of"] == 1024
    assert found["seconds"] < 60
    # A small grid runs whole.
    small = tune.search(str(GEMM.with_name("vector_add.mlir")), "--vary=threads", target="sm_90a", trials=1, budget=500.0)
    assert small["sampled"] is None


def test_a_kernel_in_python_uses_what_was_found_for_its_text(tmp_path, monkeypatch):
    arrays = np.arange(1000.0), np.ones(1000), np.empty(1000)
    file = tmp_path / "add.mlir"
    file.write_text(add.tile_ir(*arrays, 1000, BLOCK=1024))
    given = [f"--arg={i}={fill}:f64[1000]" for i, fill in enumerate(("arange", "ones", "zeros"))]
    found = tune.search(str(file), *given, "--arg=3=i32:1000", "--vary=threads", budget=500.0)
    assert found["knobs"] and found["speedup"] > 1, found

    # This process has compiled the kernel already.
    look = tmp_path / "look.py"
    look.write_text(
        "import numpy as np, sys\nsys.path.insert(0, sys.argv[1])\nfrom test_tune import add\n"
        "arrays = np.arange(1000.0), np.ones(1000), np.empty(1000)\n"
        "print(add.ir('kernel', *arrays, 1000, BLOCK=1024).splitlines()[0])\n"
    )

    def threads(tuned):
        monkeypatch.setenv("GIRIH_DEVICE", "sim")
        monkeypatch.setenv("GIRIH_TUNED", tuned)
        command = [sys.executable, str(look), str(Path(__file__).parent)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(" threads ")[1].split()[0]

    assert threads("1") == str(found["knobs"]["threads"]) != threads("0")
