"""`generate()` of transformers, compiled: the tokens that PyTorch gives, with no attention left to PyTorch."""

import pytest
import torch

transformers = pytest.importorskip("transformers")
import girih.torch

SMALL = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=None, pad_token_id=0)  # fmt: skip
GROUPED = dict(SMALL, num_key_value_heads=2, head_dim=8)
MODELS = {
    "GPT2": dict(vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=None),
    "GPTNeoX": SMALL,
    "OPT": dict(vocab_size=96, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, word_embed_proj_dim=32,
                max_position_embeddings=64, eos_token_id=None),
    "Phi": SMALL,
    "Llama": GROUPED,
    "Mistral": GROUPED,
    "Qwen2": GROUPED,
    "Qwen3": GROUPED,
    "Gemma": GROUPED,
}  # fmt: skip


def causal(name):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**MODELS[name])
    return transformers.AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("name", MODELS)
def test_tokens(name):
    model = causal(name)
    prompt = torch.randint(2, 96, (2, 7))
    options = dict(max_new_tokens=5, do_sample=False, attention_mask=torch.ones_like(prompt))
    wanted = model.generate(prompt, **options)
    torch._dynamo.reset()
    girih.torch.report(clear=True)
    model.forward = torch.compile(model.forward, backend="girih", dynamic=True)
    assert torch.equal(model.generate(prompt, **options), wanted)
    report = girih.torch.report()
    assert report.graphs
    left = [str(row) for row in report.left if "attention" in str(row) or "softmax" in str(row) or "bmm" in str(row)]
    assert not left, left
