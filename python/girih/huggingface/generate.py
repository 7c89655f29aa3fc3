"""Text from a model: `python -m girih.huggingface generate DIR --prompt "..."`, which `girih generate` starts.

In: a folder and a prompt. Out: the model's continuation, token by token, and how long it took.

    generated = generate(Folder("llama"), "Once upon a time", max_tokens=32)
    generated.text, generated.tokens, generated.seconds_to_first

transformers' `generate` chooses the tokens: its greedy search, its sampling, its conditions to stop. The model's forward pass is
compiled: one graph for prompts of any length and one for a single token, over a cache of fixed size.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from . import load
from .folder import Folder, FolderError

__all__ = ["Generated", "generate"]

#: The cache's length is a multiple of this, so that prompts of similar lengths have the same kernels.
STEP = 64


@dataclass
class Generated:
    """A continuation.

    Attributes:
        prompt_tokens: how many tokens the prompt has.
        tokens: the new tokens, an end-of-text token included.
        text: the same as text.
        seconds_to_load: from the start to a model that is loaded.
        seconds_to_first: from there to the first token, compilation included.
        seconds_compiling: of all compilations.
        tokens_per_second: of the tokens after the second, whose graph is compiled then; None where there are none.
    """

    prompt_tokens: int = 0
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    seconds_to_load: float = 0.0
    seconds_to_first: float = 0.0
    seconds_compiling: float = 0.0
    tokens_per_second: float | None = None


def generate(folder: Folder, prompt: str, *, max_tokens=128, temperature=0.0, top_p=1.0, seed=0, dtype=None, show=None) -> Generated:
    """Continues a prompt.

    Args:
        max_tokens: the most new tokens; fewer where the model's positions end or it ends the text.
        temperature: 0 takes the likeliest token each time; above, tokens are drawn by `seed` from the likeliest that have `top_p` of
            the probability.
        dtype: "f32", "bf16" or "f16"; None for the folder's own.
        show: is called with each piece of text once it is complete.
    """
    import torch

    done, start = Generated(), time.perf_counter()
    config = load.config_of(folder)
    tokenizer = load.tokenizer_of(folder)
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    done.prompt_tokens = count = ids.shape[1]
    if not prompt or not count:
        raise FolderError("the prompt is empty")
    limit = load.positions(config)
    if limit is not None and count >= limit:
        raise FolderError(f"the prompt has {count} tokens, and the model {limit} positions, the new tokens' included")
    max_tokens = max_tokens if limit is None else min(max_tokens, limit - count)
    if not load.architecture(folder, config).can_generate():
        raise FolderError(f"{load.architecture(folder, config).__name__} of {folder.path} does not generate text")
    model = load.model_of(folder, config, dtype)
    highest = int(ids.max())
    if highest >= (rows := model.get_input_embeddings().weight.shape[0]):
        raise FolderError(f"the tokenizer of {folder.path} gives token {highest}, and the model has {rows}")
    done.seconds_to_load = time.perf_counter() - start

    sampling = {"do_sample": False}
    if temperature > 0:
        sampling = {"do_sample": True, "temperature": float(temperature), "top_p": float(top_p), "top_k": 0}
    else:
        # Numbers for sampling that a folder brings would only be warned of.
        sampling |= {"temperature": None, "top_p": None, "top_k": None}
    torch.manual_seed(seed)
    stream = Stream(tokenizer, done, show)
    memory = cache(model, count + max_tokens)
    with torch.no_grad(), compiled(model, done):
        stream.start = time.perf_counter()
        found = model.generate(
            ids, attention_mask=torch.ones_like(ids), past_key_values=memory, max_new_tokens=max_tokens, streamer=stream,
            use_cache=True, **sampling,
        )  # fmt: skip
    done.tokens = found[0, count:].tolist()
    done.text = tokenizer.decode(done.tokens, skip_special_tokens=True)
    times = stream.times
    if len(times) > 2:
        done.tokens_per_second = (len(times) - 2) / (times[-1] - times[1])
    return done


class Stream:
    """A streamer: transformers calls it with the prompt, then with each token. It times them, and shows the text as it becomes
    complete: the bytes of a character may come in several tokens."""

    def __init__(self, tokenizer, done: Generated, show):
        self.tokenizer, self.done, self.show = tokenizer, done, show
        self.start, self.times, self.tokens, self.shown = 0.0, [], [], ""
        self.prompted = False

    def put(self, value):
        if not self.prompted:
            self.prompted = True
            return
        self.times.append(time.perf_counter())
        if len(self.times) == 1:
            self.done.seconds_to_first = self.times[0] - self.start
        self.tokens.extend(value.flatten().tolist())
        self._give(final=False)

    def end(self):
        self._give(final=True)

    def _give(self, final):
        if self.show is None:
            return
        text = self.tokenizer.decode(self.tokens, skip_special_tokens=True)
        if final or not text.endswith("\ufffd"):
            self.show(text[len(self.shown) :])
            self.shown = text


class compiled:
    """The model's forward pass compiled while the block runs; `done` is told how long compilations take."""

    def __init__(self, model, done: Generated):
        self.model, self.done = model, done

    def __enter__(self):
        import torch
        from torch._dynamo.callback import callback_handler

        import girih.torch  # noqa: F401

        forward = self.model.forward
        prompt = torch.compile(forward, backend="girih", dynamic=True)
        token = torch.compile(forward, backend="girih", dynamic=False)

        def run(input_ids=None, **rest):
            return (token if input_ids.shape[1] == 1 else prompt)(input_ids=input_ids, **rest)

        self.model.forward = run
        self.handler = callback_handler
        self.began = 0.0
        self.handler.register_start_callback(self._start)
        self.handler.register_end_callback(self._end)

    def _start(self, _args):
        self.began = time.perf_counter()

    def _end(self, _args):
        self.done.seconds_compiling += time.perf_counter() - self.began

    def __exit__(self, *_):
        self.handler.remove_start_callback(self._start)
        self.handler.remove_end_callback(self._end)
        del self.model.forward


def cache(model, length: int):
    """A cache of fixed size for `length` positions, with its memory.

    Layers that see a window of positions get the memory of all positions, too: the window is a matter of the mask then, and no number
    of Python's changes from token to token, for which the graph would be compiled anew.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from transformers import StaticCache
    from transformers.cache_utils import StaticLayer, StaticSlidingWindowLayer

    length = -(-length // STEP) * STEP
    made = StaticCache(config=model.config, max_cache_len=length)
    made.layers = [StaticLayer(length) if isinstance(one, StaticSlidingWindowLayer) else one for one in made.layers]
    # A pass without elements finds the shapes.
    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True):
        model(input_ids=torch.zeros(1, 1, dtype=torch.int64), past_key_values=made, use_cache=True)
    for layer in made.layers:
        for name, value in vars(layer).items():
            if isinstance(value, FakeTensor):
                setattr(layer, name, torch.zeros(value.shape, dtype=value.dtype))
                torch._dynamo.mark_static_address(getattr(layer, name))
    made.reset()
    return made


def say(done: Generated) -> None:
    """The times, on standard error."""
    count = len(done.tokens)
    rate = f"{done.tokens_per_second:.1f} tokens/s" if done.tokens_per_second else "too few tokens for a rate"
    first = f"first token after {done.seconds_to_first:.2f} s"
    rest = f"loaded in {done.seconds_to_load:.2f} s, {done.seconds_compiling:.2f} s compiling"
    print(f"{count} token{'' if count == 1 else 's'} after {done.prompt_tokens}: {rate}; {first}; {rest}", file=sys.stderr)
