"""Text of small models: the tokens are transformers' own, computed in eager mode."""

import json

import pytest
import torch

pytest.importorskip("transformers")
import folders
import transformers
from folders import PROMPT

import girih.torch
from girih.huggingface import Folder, FolderError, generate, load
from girih.huggingface.generate import Generated, Stream, layer_of, table
from girih.huggingface.quantise import FewBits, quantise

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


#: The most that logits differ, relative to their norm, for the small models here.
FEW_BITS = {"int8": 0.02, "int4": 0.3}


# In bf16 the likeliest tokens of the others are less ahead than logits are rounded.
@pytest.mark.parametrize("name, dtype", [("Llama", "f32"), ("Llama", "bf16"), ("Qwen3", "f32"), ("Gemma3Text", "f32")])
@pytest.mark.parametrize("kind", FEW_BITS)
def test_quantised_weights_give_the_tokens_of_the_weights_that_they_stand_for(name, kind, dtype, tmp_path):
    folder = Folder(folders.write(tmp_path / "given", name, DTYPES[dtype]))
    config = load.config_of(folder)
    plain, model = load.model_of(folder, config), load.model_of(folder, config, quantize=kind)
    layers = {at: layer for at, layer in model.named_modules() if isinstance(layer, FewBits)}
    assert len(layers) == 2 * 7 + 1, "seven linear layers in each of two decoder layers, and the head"
    ids = torch.arange(32)[None]
    with torch.no_grad():
        a, b = (of(ids).logits.double() for of in (plain, model))
        error = ((a - b).norm() / a.norm()).item()
        assert 0 < error < FEW_BITS[kind]
        for at, layer in layers.items():
            plain.get_submodule(at).weight = torch.nn.Parameter(layer.weight())
    plain.config.tie_word_embeddings = False
    plain.save_pretrained(tmp_path / "stood for")
    folders.tokenizer().save_pretrained(tmp_path / "stood for")
    wanted = folders.reference(tmp_path / "stood for", DTYPES[dtype], max_new_tokens=12, do_sample=False)
    found = generate(folder, PROMPT, max_tokens=12, quantize=kind)
    assert found.tokens == wanted
    report = girih.torch.report()
    assert len(report.graphs) == 2 and report.native, report


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_quantised_weight_is_off_by_at_most_its_scale(bits, dtype):
    torch.manual_seed(0)
    weight = torch.randn(12, 96) * torch.logspace(-3, 3, 12)[:, None]
    weight[3], weight[4, :32], weight[5, 40:64] = 0, 1, -2
    weight = weight.to(dtype)
    layer = FewBits(weight, None, bits)
    blocks = weight.float().unflatten(1, (-1, 32))
    scale = blocks.abs().amax(-1, keepdim=True) / 2 ** (bits - 1)
    off = (layer.weight().float().unflatten(1, (-1, 32)) - blocks).abs()
    rounding = 2 * torch.finfo(dtype).eps * blocks.abs().amax(-1, keepdim=True)
    assert (off <= scale + rounding).all()
    assert torch.equal(layer.weight()[3], weight[3])
    assert layer.codes.nbytes == weight.numel() * bits // 8


def test_weights_that_codes_cannot_stand_for_are_refused(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(32, 4), torch.nn.Linear(4, 4))
    odd = model[1].weight
    assert type(quantise(model, "int8")[0]) is FewBits and model[1].weight is odd, "rows of 4 weights do not fill a block"
    with pytest.raises(FolderError, match="^Sequential has no linear layer whose rows are blocks of 32 weights"):
        quantise(torch.nn.Sequential(torch.nn.Linear(4, 4)), "int8")
    with pytest.raises(FolderError, match="^the weight of 0 has elements that are not finite"):
        layer = torch.nn.Linear(32, 4)
        layer.weight.data[1, 2] = float("inf")
        quantise(torch.nn.Sequential(layer), "int4")


def test_an_architecture_without_a_cache_of_fixed_size(tmp_path):
    folders.write(tmp_path, "OPT", num_key_value_heads=None, ffn_dim=96, word_embed_proj_dim=64)
    wanted = folders.reference(tmp_path, torch.float32, max_new_tokens=8, do_sample=False)
    assert generate(Folder(tmp_path), PROMPT, max_tokens=8).tokens == wanted


def test_a_prompt_of_one_token_and_one_token_to_add(llama):
    wanted = folders.reference(llama, torch.float32, "a", max_new_tokens=1, do_sample=False)
    found = generate(Folder(llama), "a", max_tokens=1)
    assert (found.prompt_tokens, found.tokens, found.tokens_per_second) == (1, wanted, None)


def test_a_profile_sums_the_kernels_of_each_layer(llama):
    plain = generate(Folder(llama), PROMPT, max_tokens=4)
    found = generate(Folder(llama), PROMPT, max_tokens=4, profile=True)
    assert plain.layers is None and found.tokens == plain.tokens
    names = [layer.name for layer in found.layers]
    assert [n for n in names if n.startswith("model.layers.")] == ["model.layers.0", "model.layers.1"] and names[-1] == "lm_head"
    assert all(layer.seconds > 0 and layer.kernels > 0 for layer in found.layers)
    # Its weights are read once each.
    assert sum(layer.bytes for layer in found.layers) > 64 * 64 * 4
    lines = table(found.layers).splitlines()
    assert len(lines) == len(names) + 2 and lines[1].split()[0] == names[0] and lines[-1].startswith("one token: ")


def test_layers_are_the_numbered_parts():
    for path, layer in {"model.layers.12.mlp.up_proj": "model.layers.12", "h.3": "h.3", "norm": "norm", "a.b": "a.b", "x1.y": "x1.y"}.items():
        assert layer_of(path) == layer


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
