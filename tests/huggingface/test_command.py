"""The command line on folders: it starts the Python package, and takes what that captured."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")
import folders
from folders import PROMPT

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIRIH = os.environ.get("GIRIH") or str(ROOT / "target/release/girih")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return folders.write(tmp_path_factory.mktemp("llama"), dtype=torch.bfloat16, shards="60KB")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where temporary files are made: it is empty when a test ends."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("GIRIH_PYTHON", sys.executable)
    yield folder
    assert list(folder.glob("girih-*")) == []


def girih(*arguments, code=0):
    done = subprocess.run([GIRIH, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


def model(path):
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)


def test_a_model_computes_the_logits_of_transformers(llama, temporary):
    ids = torch.randint(0, 280, (2, 12), generator=torch.Generator().manual_seed(1))
    np.save(temporary / "ids.npy", ids.numpy())
    given, kept = f"input_ids={temporary / 'ids.npy'}", f"out0={temporary / 'logits.npy'}"
    girih("run", llama, "--seq-len", 12, "--batch", 2, "--dtype", "f32", "--arg", given, "--save", kept)
    with torch.no_grad():
        wanted = model(llama)(ids).logits
    torch.testing.assert_close(torch.from_numpy(np.load(temporary / "logits.npy")), wanted, rtol=1e-4, atol=1e-5)


def test_a_layer_computes_the_hidden_states_of_transformers(llama, temporary):
    with torch.no_grad():
        states = model(llama)(torch.arange(10, 42)[None], output_hidden_states=True).hidden_states
    np.save(temporary / "x.npy", states[0].numpy())
    given, kept = f"hidden_states={temporary / 'x.npy'}", f"out0={temporary / 'y.npy'}"
    girih("run", llama, "--layer", 0, "--dtype", "f32", "--arg", given, "--save", kept)
    torch.testing.assert_close(torch.from_numpy(np.load(temporary / "y.npy")), states[1], rtol=1e-4, atol=1e-5)


def test_a_layer_is_shown_at_every_stage(llama, temporary):
    shown = girih("compile", llama, "--layer", 0, "--seq-len", 32, "--ir", "tile", "-vv").stdout
    assert "+++ o:linear applied at aten.linear layer.self_attn.q_proj" in shown


def test_only_what_the_folder_does_not_have_is_copied(llama, temporary):
    command = [sys.executable, "-m", "girih.huggingface", "export", "--dtype=f32", "--", str(llama)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        graph = json.loads(child.stdout.readline())
        made = list(temporary.glob("girih-*/made"))
        # The frequencies of the positions.
        assert len(made) == 1 and made[0].stat().st_size < 1000
        child.stdin.close()
    of_folder = [c for c in graph["constants"] if pathlib.Path("/", c.get("file", "")).parent == llama.resolve()]
    weights = transformers.AutoModelForCausalLM.from_pretrained(llama, dtype=torch.bfloat16)
    assert sum(np.prod(c["shape"]) for c in of_folder) == sum(p.numel() for p in weights.parameters())
    first = next(c for c in of_folder if "layers_1_mlp_up_proj" in c["name"])
    raw = np.fromfile(pathlib.Path("/", first["file"]), np.uint16, np.prod(first["shape"]), offset=first["offset"])
    found = torch.from_numpy(raw).view(torch.bfloat16).view(first["shape"])
    assert torch.equal(found, weights.model.layers[1].mlp.up_proj.weight)


def test_links_of_a_cache_are_followed(llama, temporary, tmp_path):
    (tmp_path / "blobs").mkdir()
    linked = tmp_path / "snapshot"
    linked.mkdir()
    for number, file in enumerate(sorted(llama.iterdir())):
        shutil.copy(file, tmp_path / "blobs" / str(number))
        (linked / file.name).symlink_to(f"../blobs/{number}")
    assert json.loads(girih("run", linked, "--layer", 0, "--json").stdout)["model"] == "LlamaDecoderLayer_0"


def test_generate(llama, temporary):
    done = girih("generate", llama, "--prompt", PROMPT, "--max-tokens", 6, "--dtype", "f32", "--json")
    found = json.loads(done.stdout)
    assert found["tokens"] == folders.reference(llama, torch.float32, max_new_tokens=6, do_sample=False)
    assert done.stderr.startswith("6 tokens after ") and " tokens/s; first token after " in done.stderr


def test_quantised_weights_are_part_of_the_graph(llama, temporary):
    command = [sys.executable, "-m", "girih.huggingface", "export", "--layer=0", "--quantize=int4", "--", str(llama)]
    exported = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    constants = {c["name"]: (c["dtype"], c["shape"]) for c in json.loads(exported)["constants"]}
    assert constants["b_layer_mlp_gate_proj_codes"] == ("u8", [96, 2, 16])
    assert constants["b_layer_mlp_gate_proj_scales"] == ("bf16", [96, 2])
    girih("run", llama, "--layer", 0, "--quantize", "int4", "--verify")
    found = json.loads(girih("bench", llama, "--layer", 0, "--rounds", 1, "--quantize", "int8", "--dtype", "f32", "--json").stdout)
    assert found["quantized"] == "int8" and 1e-4 < found["difference"] < 0.05
    assert "possible values: int8, int4" in girih("generate", llama, "--prompt", "a", "--quantize", "int3", code=2).stderr


def test_bench(llama, temporary):
    found = json.loads(girih("bench", llama, "--layer", 0, "--rounds", 1, "--threads", 1, "--dtype", "f32", "--json").stdout)
    assert found["model"] == "LlamaDecoderLayer_0" and found["difference"] < 1e-5
    assert found["median_s"]["girih"] > 0 and found["median_s"]["torch"] > 0
    message = "error: --against: a Hugging Face folder does not take this\n"
    assert girih("bench", llama, "--against", "torch", code=2).stderr == message


def test_mistakes(llama, temporary, tmp_path):
    message = f"error[E0503]: {tmp_path}: it is a folder without config.json, so no Hugging Face model\n"
    assert girih("run", tmp_path, code=1).stderr.strip() == message.strip()
    assert girih("compile", llama, "--layer", 9, code=1).stderr.endswith("layer 9 does not exist: LlamaForCausalLM has layers 0 to 1\n")
    (temporary / "x.json").write_text("{}")
    for command in (["run", temporary / "x.json", "--layer", 1], ["bench", "gemm", "--layer", 1]):
        assert girih(*command, code=2).stderr == "error: --layer=1 is for a Hugging Face folder\n"
    for flag in ("--max-tokens=0", "--temperature=-1", "--temperature=nan", "--top-p=0", "--dtype=f64"):
        assert f"invalid value '{flag.partition('=')[2]}' for '{flag.partition('=')[0]}" in girih("generate", llama, "--prompt=a", flag, code=2).stderr
    assert girih("generate", llama, "--prompt", "", code=1).stderr == "error: the prompt is empty\n"


def test_a_graph_names_files_beside_it(temporary):
    weights = np.arange(6, dtype=np.float32)
    (temporary / "weights").write_bytes(bytes(8) + weights.tobytes())
    graph = {
        "format": "girih.torch", "version": 1, "name": "sum",
        "inputs": [{"name": "x", "dtype": "f32", "shape": [6], "role": "argument"}],
        "constants": [{"name": "w", "dtype": "f32", "shape": [6], "file": "weights", "offset": 8}],
        "nodes": [{"op": "aten.add", "args": [{"t": "x"}, {"t": "w"}], "attrs": {"alpha": 1},
                   "results": [{"name": "y", "dtype": "f32", "shape": [6]}]}],
        "outputs": [{"name": "y", "value": "y"}],
    }  # fmt: skip
    file = temporary / "sum.json"
    file.write_text(json.dumps(graph))
    girih("run", file, "--arg", "x=ones:f32[6]", "--save", f"y={temporary / 'y.npy'}")
    assert np.array_equal(np.load(temporary / "y.npy"), weights + 1)
    for name, offset, message in [
        ("weights", 12, "bytes 12 to 36 of "),
        ("../weights", 8, "its file `../weights` is not in the model's folder"),
        ("other", 8, "cannot be read"),
    ]:
        graph["constants"][0] |= {"file": name, "offset": offset}
        file.write_text(json.dumps(graph))
        error = girih("run", file, "--arg", "x=ones:f32[6]", code=1).stderr
        assert "error[E0804]" in error and "the weight `w`: " in error and message in error, error


@pytest.mark.parametrize("command", [["run"], ["generate", "--prompt", PROMPT]])
def test_interrupts_leave_nothing(command, llama, temporary):
    child = subprocess.Popen([GIRIH, *command, llama], stderr=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(2.5)
    os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "Traceback" not in err, err
