"""Folders and wishes that cannot be fulfilled: one sentence, and an exit code."""

import json
import struct

import pytest

pytest.importorskip("transformers")
import folders
import torch
from folders import POSITIONS, PROMPT

from girih.huggingface import __main__ as command


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return folders.write(tmp_path_factory.mktemp("made"), shards="100KB")


@pytest.fixture
def folder(made, tmp_path):
    """A copy whose files may be changed."""
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def generate(folder, *more, prompt=PROMPT):
    return ["generate", f"--prompt={prompt}", *more, "--", str(folder)]


def export(folder, *more):
    return ["export", *more, "--", str(folder)]


def changed(folder, **config):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **config}))


def refused(capfd, arguments):
    """The message, and the exit code."""
    try:
        code = command.main(arguments)
    except SystemExit as e:
        code = e.code
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err, err
    return code, err[len("error: ") : -1]


def test_folders(capfd, folder, tmp_path):
    assert refused(capfd, generate(tmp_path / "no")) == (1, f"{tmp_path / 'no'} does not exist")
    file = tmp_path / "file"
    file.write_text("")
    assert refused(capfd, export(file))[1] == f"{file} is not a folder; name the folder that holds config.json and the weights"
    empty = tmp_path / "empty"
    empty.mkdir()
    message = f"{empty} has no config.json, so it is not a folder of a Hugging Face model"
    assert refused(capfd, generate(empty)) == refused(capfd, export(empty)) == (1, message)
    (empty / "config.json").write_text("{")
    assert refused(capfd, generate(empty))[1].startswith(f"{empty / 'config.json'} cannot be read as JSON: ")
    (empty / "config.json").write_text("[1]")
    assert refused(capfd, generate(empty)) == (1, f"{empty / 'config.json'} holds no JSON object")
    (empty / "config.json").write_text("{}")
    assert refused(capfd, export(empty)) == (1, f"{empty} has neither model.safetensors nor model.safetensors.index.json")
    (empty / "pytorch_model.bin").write_text("")
    assert refused(capfd, export(empty))[1].endswith("index.json; it has pytorch_model.bin, a format that is not read")
    changed(folder, quantization_config={"quant_method": "gptq"})
    assert refused(capfd, generate(folder)) == (1, f"the weights in {folder} are quantised (gptq), which is not supported")


def test_architectures(capfd, folder):
    changed(folder, architectures=["NoSuchForCausalLM"])
    code, message = refused(capfd, generate(folder))
    assert code == 1 and message.startswith(f"the architecture 'NoSuchForCausalLM' of {folder} is unknown to transformers ")
    changed(folder, model_type="nosuch", auto_map={"AutoModel": "code.Model"})
    for arguments in (generate(folder), export(folder)):
        code, message = refused(capfd, arguments)
        assert code == 1 and message.startswith(f"the architecture 'nosuch' of {folder} is unknown to transformers ")
        assert message.endswith("; its own code, which config.json names, is not run")
    changed(folder, model_type="llama", architectures=["LlamaModel"])
    assert refused(capfd, generate(folder)) == (1, f"LlamaModel of {folder} does not generate text")


def test_weights(capfd, folder):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    shards = sorted(set(index["weight_map"].values()))
    assert len(shards) > 2
    first = folder / shards[0]
    whole = first.read_bytes()

    def both():
        found = refused(capfd, generate(folder))
        assert refused(capfd, export(folder, "--layer=0")) == found and found[0] == 1
        return found[1]

    first.write_bytes(whole[:-10])
    assert both().startswith(f"{first} is cut short: the tensor '")
    first.write_bytes(whole[:20])
    assert both() == f"{first} is cut short: it has 20 bytes, fewer than its header needs"
    first.write_bytes(b"")
    assert both() == f"{first} is cut short: it has 0 bytes, fewer than its header needs"
    first.write_bytes(struct.pack("<Q", 4) + b"{{{{")
    assert both() == f"{first} is not in the form of safetensors: its header is not JSON"

    def told(**tensor):
        header = json.dumps({"w": tensor}).encode()
        first.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        return both()

    assert told(dtype="F32", shape=[2]) == f"{first} does not say where the tensor 'w' lies"
    assert told(dtype="F32", shape=[2], data_offsets=[8, 0]) == f"{first} does not say where the tensor 'w' lies"
    assert told(dtype="F32", shape=[-2], data_offsets=[0, 8]) == f"{first} does not say where the tensor 'w' lies"
    assert told(dtype="F32", shape=[3], data_offsets=[0, 8]) == f"the tensor 'w' of {first} has 8 bytes where its shape needs 12"
    assert told(dtype="F3", shape=[2], data_offsets=[0, 8]) == f"the tensor 'w' of {first} has elements of the type F3, which is not supported"
    assert told(dtype="F32", shape=[2], data_offsets=[0, 8]).startswith(f"the weights in {folder} lack ")
    first.unlink()
    assert both() == f"{folder} does not have {shards[0]}, which model.safetensors.index.json names"
    (folder / shards[1]).unlink()
    assert both().endswith(f"index.json names, nor 1 more of its {len(shards)} files")
    index["weight_map"]["lm_head.weight"] = "../other.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert both() == f"{folder / 'model.safetensors.index.json'} names '../other.safetensors', which is not a file of the folder"


def test_shapes_that_differ_from_the_configuration(capfd, folder):
    changed(folder, intermediate_size=80)
    code, message = refused(capfd, generate(folder))
    assert code == 1 and "has shape [" in message and "LlamaForCausalLM needs [" in message


def test_more_than_memory_holds(capfd, made):
    for layer in ([], ["--layer=0"]):
        code, message = refused(capfd, export(made, f"--batch={10**11}", "--seq-len=90", *layer))
        assert code == 1 and message.startswith(f"LlamaForCausalLM does not run on {10**11} x 90 tokens: ")


def test_tokenizers_and_prompts(capfd, folder):
    assert refused(capfd, generate(folder, prompt="")) == (1, "the prompt is empty")
    code, message = refused(capfd, generate(folder, prompt="x" * POSITIONS))
    assert (code, message) == (1, f"the prompt has {POSITIONS} tokens, and the model {POSITIONS} positions, the new tokens' included")
    (folder / "tokenizer.json").write_text("{}")
    code, message = refused(capfd, generate(folder))
    assert code == 1 and message.startswith(f"transformers cannot make a tokenizer of {folder}: ")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    assert refused(capfd, generate(folder)) == (1, f"{folder} has no tokenizer (tokenizer.json), which a prompt needs")


def test_numbers(capfd, made):
    for flag, expected in [
        ("--max-tokens=0", "of at least 1"), ("--max-tokens=1.5", "of at least 1"), ("--temperature=-1", "of at least 0"),
        ("--temperature=nan", "of at least 0"), ("--top-p=0", "above 0 and at most 1"), ("--top-p=1.5", "above 0 and at most 1"),
        ("--seed=-1", "of at least 0"),
    ]:  # fmt: skip
        code, message = refused(capfd, generate(made, flag))
        assert code == 2 and expected in message and message.endswith(f"found `{flag.partition('=')[2]}`")
    assert refused(capfd, generate(made, "--dtype=f64"))[0] == 2
    assert refused(capfd, ["generate", str(made)]) == (2, "the following arguments are required: --prompt")
    assert refused(capfd, export(made, "--layer=2")) == (1, "layer 2 does not exist: LlamaForCausalLM has layers 0 to 1")
    message = f"a sequence of {POSITIONS + 1} tokens is longer than the model's {POSITIONS} positions"
    assert refused(capfd, export(made, f"--seq-len={POSITIONS + 1}")) == (1, message)
    assert refused(capfd, export(made, "--batch=0"))[0] == 2


def test_a_model_that_takes_no_tokens(capfd, tmp_path):
    import transformers

    small = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4)
    transformers.ViTForImageClassification(transformers.ViTConfig(**small)).save_pretrained(tmp_path)
    message = "ViTForImageClassification takes pixel_values; models that take tokens (input_ids) are supported"
    assert refused(capfd, export(tmp_path)) == (1, message)


def test_missing_packages(capfd, made, monkeypatch):
    import importlib.util

    known = importlib.util.find_spec
    for missing, message in [
        (["transformers"], "folders of Hugging Face need transformers: `pip install transformers`"),
        (["torch", "transformers"], "folders of Hugging Face need torch and transformers: `pip install torch transformers`"),
    ]:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, missing=missing: None if name in missing else known(name))
        assert refused(capfd, generate(made)) == (1, message)


def test_the_tokens_that_fit_are_generated(made):
    from girih.huggingface import Folder, generate as generated

    found = generated(Folder(made), "x" * (POSITIONS - 3), max_tokens=50)
    wanted = folders.reference(made, torch.float32, "x" * (POSITIONS - 3), max_new_tokens=3, do_sample=False)
    assert found.tokens == wanted and len(wanted) == 3
