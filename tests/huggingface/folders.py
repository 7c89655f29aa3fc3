"""Small models with random weights, as folders of Hugging Face, made on the spot by transformers."""

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = "the quick brown fox jumps over the lazy dog while the cat sleeps on the warm mat and dreams of fish"
PROMPT = "the quick brown fox"
POSITIONS = 96
SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             max_position_embeddings=POSITIONS, bos_token_id=1, eos_token_id=2, pad_token_id=0)  # fmt: skip
#: Gemma 3's first layer sees 8 positions, its second one all.
MORE = {"Gemma3Text": dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])}
#: For these the likeliest token is ahead by 0.01 or more in every step, which is ten times the rounding of logits in bf16.
SEEDS = {"Llama": 9, "Qwen3": 22, "Gemma3Text": 3}


def tokenizer():
    """Pairs of bytes merged as often as this text has them; any text can be written."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=280, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator([TEXT] * 4, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def write(path, name="Llama", dtype=torch.float32, shards=None, **changed):
    """Writes a folder."""
    torch.manual_seed(SEEDS.get(name, 0))
    words = tokenizer()
    sizes = {**SIZES, **MORE.get(name, {}), **changed}
    config = getattr(transformers, f"{name}Config")(vocab_size=len(words), **{k: v for k, v in sizes.items() if v is not None})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.to(dtype).save_pretrained(path, **({"max_shard_size": shards} if shards else {}))
    words.save_pretrained(path)
    return path


def reference(path, dtype, prompt=PROMPT, **options):
    """The tokens that transformers adds to a prompt, in eager mode."""
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
    ids = transformers.AutoTokenizer.from_pretrained(path)(prompt, return_tensors="pt")["input_ids"]
    found = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    return found[0, ids.shape[1] :].tolist()
