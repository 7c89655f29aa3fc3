"""The suites of `girih bench` compile their models for everyone who takes part."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from girih.bench import contestants, suites

GIRIH = Path(os.environ.get("GIRIH_LIBRARY_DIR", Path(__file__).parents[2] / "target/release")) / "girih"

ROW = """
from girih.bench import contestants, measure, suites
contestants.show_models_to_dynamo()
found = measure.row(next(suites.launch()), ["girih", "torch", "torch.compile"], 1, 1)
assert found["absent"] == {} and set(found["median_s"]) == {"girih", "torch", "torch.compile"}, found
"""


def test_dynamo_sees_the_models():
    """Dynamo leaves out the package, and the models are in it: neither inductor nor a training step would compile."""
    done = subprocess.run([sys.executable, "-c", ROW], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


STEP = """
from girih.bench import contestants, llm, measure
contestants.show_models_to_dynamo()
for name in ("decode, f32, caches in place", "generate 32 tokens, 4 bits"):
    (row,) = [row for row in llm.rows() if row.name == name]
    found = measure.row(row, ["girih", "torch", "onnxruntime"], 1, 1)
    assert {"girih", "torch"} <= set(found["median_s"]), found
    assert max(found["error"].values()) < 1e-4, found
"""


def test_steps_of_a_decoder():
    pytest.importorskip("onnx")
    done = subprocess.run([sys.executable, "-c", STEP], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_ratio_leaves_out_girih_itself():
    from girih.bench.__main__ import ratio

    assert ratio({"median_s": {"girih": 2.0, "girih.jit": 1.0, "torch": 4.0}}) == 0.5
    assert set(contestants.MAKERS) == set(contestants.ALL)


def test_work_is_counted_behind_all_measurements(monkeypatch, capsys):
    """Counting takes minutes on a processor, and a GPU that is lent would wait for it."""
    import torch

    from girih.bench import __main__ as bench
    from girih.bench import measure

    order = []

    def measured(row, who, threads, rounds):
        order.append(f"measured {row.name}")
        return {"row": row.name, "threads": threads}

    def launches(row):
        order.append(f"counted {row.name}")
        return [{"blocks": 1}]

    rows = [suites.Row(name, lambda: None, device="cuda") for name in ("one", "two")]
    monkeypatch.setattr(suites, "rows", lambda suite, device: rows)
    monkeypatch.setattr(measure, "row", measured)
    monkeypatch.setattr(measure, "launches", launches)
    monkeypatch.setattr(bench, "machine", lambda counts, devices: {"limits": {}})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(sys, "argv", ["girih bench", "gpu", "--against", "torch", "--json"])
    bench.main()
    assert order == ["measured one", "measured two", "counted one", "counted two"]
    report = json.loads(capsys.readouterr().out)
    assert [row["launches"] for row in report["rows"]] == [[{"blocks": 1}]] * 2


def test_the_command_knows_every_suite():
    names = [*suites.SUITES, *suites.MODULES, suites.FIRST]
    done = subprocess.run([GIRIH, "bench", *names, "--filter", "no row has this"], capture_output=True, text=True, timeout=600)
    assert "unknown benchmark" not in done.stderr, done.stderr
    assert "unknown benchmark `no-suite`" in subprocess.run([GIRIH, "bench", "no-suite"], capture_output=True, text=True).stderr


def test_launches_are_measured_without_a_gpu():
    done = subprocess.run(
        [sys.executable, "-m", "girih.bench", "launch", "--device", "cuda", "--rounds", "1", "--json"],
        capture_output=True, text=True, timeout=600, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["driver"] == "stand-in" and found["rows"]["a kept kernel, three arrays"] > 0
    refused = subprocess.run(
        [sys.executable, "-m", "girih.bench", "gpu", "--device", "cuda"],
        capture_output=True, text=True, timeout=600, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert refused.returncode != 0 and "need a GPU" in refused.stderr
