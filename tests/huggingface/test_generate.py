"""Text of small models: the tokens are transformers' own, computed in eager mode."""

import json

import pytest
import torch

pytest.importorskip("transformers")
import folders
import transformers
from folders import PROMPT

import girih.torch
from girih.huggingface import Folder, generate
from girih.huggingface.generate import Generated, Stream

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()
    girih.torch.report(clear=True)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return folders.write(tmp_path_factory.mktemp("llama"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Llama", "Qwen3", "Gemma3Text"])
def test_greedy_tokens_are_those_of_transformers(name, dtype, tmp_path):
    folders.write(tmp_path, name, DTYPES[dtype])
    wanted = folders.reference(tmp_path, DTYPES[dtype], max_new_tokens=24, do_sample=False)
    shown = []
    found = generate(Folder(tmp_path), PROMPT, max_tokens=24, show=shown.append)
    assert found.tokens == wanted
    assert len(set(wanted)) > 4, "tokens that repeat show little"
    assert "".join(shown) == found.text == folders.tokenizer().decode(wanted, skip_special_tokens=True)
    assert len([piece for piece in shown if piece]) > 4
    # One graph for the prompt, one for all tokens, and nothing in PyTorch.
    report = girih.torch.report()
    assert len(report.graphs) == 2 and report.native, report


def test_an_architecture_without_a_cache_of_fixed_size(tmp_path):
    folders.write(tmp_path, "OPT", num_key_value_heads=None, ffn_dim=96, word_embed_proj_dim=64)
    wanted = folders.reference(tmp_path, torch.float32, max_new_tokens=8, do_sample=False)
    assert generate(Folder(tmp_path), PROMPT, max_tokens=8).tokens == wanted


def test_a_prompt_of_one_token_and_one_token_to_add(llama):
    wanted = folders.reference(llama, torch.float32, "a", max_new_tokens=1, do_sample=False)
    found = generate(Folder(llama), "a", max_tokens=1)
    assert (found.prompt_tokens, found.tokens, found.tokens_per_second) == (1, wanted, None)


def test_the_text_ends_where_the_model_ends_it(llama, tmp_path):
    wanted = folders.reference(llama, torch.float32, max_new_tokens=8, do_sample=False)
    folders.write(tmp_path, eos_token_id=wanted[3])
    # Greedy search ignores a folder's own wishes for sampling and beams.
    file = tmp_path / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "num_beams": 3, "do_sample": True, "temperature": 0.5, "top_k": 3}))
    end = wanted.index(wanted[3]) + 1
    assert generate(Folder(tmp_path), PROMPT, max_tokens=8).tokens == wanted[:end]


def test_draws_are_those_of_transformers_for_a_seed(llama):
    wanted = []
    for seed in (7, 8):
        torch.manual_seed(seed)
        options = dict(do_sample=True, temperature=1.5, top_p=0.8, top_k=0, max_new_tokens=12)
        wanted.append(folders.reference(llama, torch.float32, **options))
    found = generate(Folder(llama), PROMPT, max_tokens=12, temperature=1.5, top_p=0.8, seed=7)
    assert found.tokens == wanted[0] != wanted[1]


def test_a_character_of_several_tokens_is_shown_whole():
    words = folders.tokenizer()
    shown = []
    stream = Stream(words, Generated(), shown.append)
    stream.put(torch.tensor([[5, 6]]))
    ids = words("a€z")["input_ids"]
    assert len(ids) == 5, "the euro sign has three bytes"
    for one in ids:
        stream.put(torch.tensor([one]))
    stream.end()
    assert [piece for piece in shown if piece] == ["a", "€", "z"]


def test_weights_lie_in_the_mapped_files(tmp_path):
    from girih.huggingface import load

    folder = Folder(folders.write(tmp_path, dtype=torch.bfloat16, shards="60KB"))
    assert len(folder.files) > 2
    model = load.model_of(folder, load.config_of(folder))
    assert all(folder.source(parameter) is not None for parameter in model.parameters())
    expected = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())
    # Writing to a weight does not reach its file.
    with torch.no_grad():
        model.model.norm.weight.zero_()
    assert Folder(tmp_path).mapped()["model.norm.weight"].abs().sum() > 0
