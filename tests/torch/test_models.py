"""Whole models from configurations with random weights: compiled, as PyTorch runs them, and in float64.

`pytest -s` prints the errors.
"""

import copy
import os

import closeness
import pytest
import torch

import girih.torch  # noqa: F401

transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(model, **options):
    return torch.compile(model, backend="girih", fullgraph=True, **options)


def llama(**changes):
    settings = dict(
        vocab_size=96, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, attn_implementation="sdpa",
    )  # fmt: skip
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**settings, **changes})).eval()


def test_llama():
    model, tokens = llama(), torch.randint(0, 96, (2, 9))
    fast = compiled(lambda t: model(t, use_cache=False).logits)
    with torch.no_grad():
        given, eager = fast(tokens), model(tokens, use_cache=False).logits
        exact = copy.deepcopy(model).double()(tokens, use_cache=False).logits
    closeness.close(given, eager, exact, "llama")


def greedy(step, model, tokens, count):
    """Tokens by the greatest logit, with a cache of keys and values whose length is fixed."""
    cache = transformers.StaticCache(config=model.config, max_cache_len=32)
    given, position, logits = tokens, torch.arange(tokens.shape[1]), []
    for _ in range(count):
        out = step(input_ids=given, past_key_values=cache, cache_position=position)
        logits.append(out.logits[:, -1])
        given = out.logits[:, -1:].argmax(-1)
        tokens = torch.cat([tokens, given], 1)
        position = position[-1:] + 1
    return tokens, logits


def test_llama_generates_with_a_cache():
    model, tokens = llama(), torch.randint(0, 96, (1, 6))
    with torch.no_grad():
        given, fast = greedy(torch.compile(copy.deepcopy(model), backend="girih"), model, tokens, 10)
        eager, plain = greedy(model, model, tokens, 10)
        wide = copy.deepcopy(model).double()
        _, exact = greedy(wide, wide, tokens, 10)
    assert given.tolist() == eager.tolist()
    closeness.close(fast, plain, exact, "token")


# The simulator of a GPU takes hours for the whole width: there it is an eighth, with as many heads for each head of keys, and a
# quarter of the channels.
WIDTH, HEADS, CHANNELS = (8, 4, 4) if os.environ.get("GIRIH_DEVICE") == "sim" else (1, 1, 1)

BLOCKS = {
    "TinyLlama-1.1B": lambda: transformers.LlamaConfig(
        hidden_size=2048 // WIDTH, intermediate_size=5632 // WIDTH, num_attention_heads=32 // HEADS,
        num_key_value_heads=4 // HEADS, num_hidden_layers=1, rms_norm_eps=1e-5, vocab_size=32, attn_implementation="sdpa",
    ),
    "Qwen2.5-7B": lambda: transformers.Qwen2Config(
        hidden_size=3584 // WIDTH, intermediate_size=18944 // WIDTH, num_attention_heads=28 // HEADS,
        num_key_value_heads=4 // HEADS, num_hidden_layers=1, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6}, vocab_size=32, attn_implementation="sdpa",
    ),
}  # fmt: skip


class Block(torch.nn.Module):
    """A decoder block: hidden states, and the cosines and sines of the positions, to hidden states."""

    def __init__(self, config):
        super().__init__()
        kind = "Qwen2" if config.model_type == "qwen2" else "Llama"
        module = getattr(transformers.models, config.model_type)
        modeling = getattr(module, f"modeling_{config.model_type}")
        self.layer = getattr(modeling, f"{kind}DecoderLayer")(config, 0)
        self.rotary = getattr(modeling, f"{kind}RotaryEmbedding")(config)

    def forward(self, hidden):
        positions = torch.arange(hidden.shape[1]).unsqueeze(0)
        angles = self.rotary(hidden, positions)
        out = self.layer(hidden, position_embeddings=angles, attention_mask=None, position_ids=positions)
        return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("length", [16])
def test_decoder_blocks(name, length):
    config = BLOCKS[name]()
    block = Block(config).eval()
    hidden = torch.randn(1, length, config.hidden_size)
    with torch.no_grad():
        given, eager = compiled(block)(hidden), block(hidden)
        exact = block.double()(hidden.double())
    closeness.close(given, eager, exact, name)


def test_bert():
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=64, attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    tokens, mask = torch.randint(0, 64, (2, 11)), torch.ones(2, 11, dtype=torch.int64)
    mask[1, 7:] = 0
    with torch.no_grad():
        given = compiled(lambda t, m: model(t, attention_mask=m).last_hidden_state)(tokens, mask)
        eager = model(tokens, attention_mask=mask).last_hidden_state
        exact = copy.deepcopy(model).double()(tokens, attention_mask=mask).last_hidden_state
    closeness.close(given, eager, exact, "bert")


def test_vit():
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.ViTModel(config, add_pooling_layer=False).eval()
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        given = compiled(lambda x: model(x).last_hidden_state)(images)
        eager = model(images).last_hidden_state
        exact = copy.deepcopy(model).double()(images.double()).last_hidden_state
    closeness.close(given, eager, exact, "vit")


class Residual(torch.nn.Module):
    """A basic block of ResNet (He and others, Deep Residual Learning for Image Recognition, 2015)."""

    def __init__(self, before, after, stride):
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.short = nn.Identity()
        if stride != 1 or before != after:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.short(x))


def resnet18(classes=10):
    nn = torch.nn
    first, *_, last = widths = [n // CHANNELS for n in (64, 128, 256, 512)]
    layers = [nn.Conv2d(3, first, 7, 2, 3, bias=False), nn.BatchNorm2d(first), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = first
    for width, stride in zip(widths, (1, 2, 2, 2)):
        layers += [Residual(channels, width, stride), Residual(width, width, 1)]
        channels = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, classes))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return model.eval()


def test_resnet18():
    model, images = resnet18(), torch.randn(1, 3, 64, 64)
    closeness.matches(model, images, compiled=compiled(copy.deepcopy(model)), name="resnet18")
