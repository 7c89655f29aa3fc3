"""Steps of a decoder with a cache of keys and values, and the loop that generates tokens with them.

The decoder is a small Llama with random weights, in f32, in bf16 and with weights of 4 and 8 bits. A cache has a place for each position; a
step writes its own position. Steps are given the caches and return new ones, or write caches that are buffers of the model.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

import girih
import girih.torch
from girih.bench import contestants
from girih.bench.suites import Row

HIDDEN, INNER, HEADS, GROUPS, LAYERS, WORDS, PLACES = 512, 1408, 8, 4, 4, 8192, 256
WIDTH = HIDDEN // HEADS
#: Weights of few bits that share a scale.
BLOCK = 32
#: The position of a step, the length of a prompt, and how many tokens follow it.
AT, PROMPT, FOLLOW = 128, 16, 32
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
NAMES = {torch.float32: "f32", torch.bfloat16: "bf16"}


class Layer(nn.Module):
    """A block of the decoder, which reads and writes its cache."""

    def __init__(self):
        super().__init__()
        linear = lambda k, n: nn.Linear(k, n, bias=False)  # noqa: E731
        self.before, self.after = nn.RMSNorm(HIDDEN, eps=1e-5), nn.RMSNorm(HIDDEN, eps=1e-5)
        self.q, self.k, self.v = linear(HIDDEN, HIDDEN), linear(HIDDEN, GROUPS * WIDTH), linear(HIDDEN, GROUPS * WIDTH)
        self.o, self.gate, self.up, self.down = linear(HIDDEN, HIDDEN), linear(HIDDEN, INNER), linear(HIDDEN, INNER), linear(INNER, HIDDEN)

    def forward(self, x, position, angles, keys, values, write):
        """`write` makes caches with rows at some positions of caches and rows."""
        normed = self.before(x)
        split = lambda y, heads: y.view(1, -1, heads, WIDTH).transpose(1, 2)  # noqa: E731
        q, k = turned(split(self.q(normed), HEADS), angles), turned(split(self.k(normed), GROUPS), angles)
        keys, values = write(keys, 2, position, k), write(values, 2, position, split(self.v(normed), GROUPS))
        seen = torch.arange(PLACES, device=x.device) <= position[:, None]
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen, enable_gqa=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(1, -1, HIDDEN))
        normed = self.after(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed)), keys, values


def turned(x, angles):
    """Rotary embedding."""
    one, other = x.chunk(2, -1)
    return x * angles.cos().to(x.dtype) + torch.cat([-other, one], -1) * angles.sin().to(x.dtype)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(HIDDEN, eps=1e-5), nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, tokens, position, *caches, write=torch.index_copy):
        """The logits after the last token, and the caches: the keys and the values of each layer."""
        rates = 10000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float32, device=tokens.device) / WIDTH)
        angles = torch.cat([position[:, None] * rates] * 2, -1)
        x, after = self.words(tokens), []
        for layer, keys, values in zip(self.layers, caches[::2], caches[1::2], strict=True):
            x, keys, values = layer(x, position, angles, keys, values, write)
            after += [keys, values]
        return self.head(self.norm(x[:, -1])), *after


class InPlace(nn.Module):
    """A decoder that holds its caches and writes them."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder
        for at, cache in enumerate(caches(torch.randn)):
            self.register_buffer(f"cache{at}", cache)

    def forward(self, tokens, position):
        held = [getattr(self, f"cache{at}") for at in range(2 * LAYERS)]
        return self.decoder(tokens, position, *held, write=torch.Tensor.index_copy_)[0]


class Generate(nn.Module):
    """The tokens that a decoder finds most likely after a prompt, and the logits of the last."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, prompt):
        return self.with_steps(self.decoder, self.decoder, prompt)

    def with_steps(self, first, step, prompt):
        """`first` takes the prompt, `step` a token."""
        state = caches(torch.zeros, self.decoder.head.weight.dtype)
        (logits, *state), found = first(prompt, torch.arange(PROMPT), *state), []
        for at in range(PROMPT, PROMPT + FOLLOW):
            found.append(logits.argmax(-1, keepdim=True))
            logits, *state = step(found[-1], torch.tensor([at]), *state)
        return torch.cat(found, 1), logits


def caches(fill, dtype=torch.float32):
    return [fill(1, GROUPS, PLACES, WIDTH, dtype=dtype) for _ in range(2 * LAYERS)]


def drawn(length):
    return torch.randint(0, WORDS, (1, length))


def of_few_bits(weight, bits):
    """A weight's codes, blocks along its rows, and a scale for each block."""
    blocks = weight.unflatten(1, (-1, BLOCK))
    most = 2 ** (bits - 1) - 1
    scales = blocks.abs().amax(-1, keepdim=True) / most
    return (blocks / scales).round() + most + 1, scales


def made(dtype=torch.float32, bits=None):
    """A decoder; with `bits`, its products have weights of that many."""
    torch.manual_seed(0)
    decoder = Decoder().eval()
    for module in decoder.modules():
        if bits is not None and isinstance(module, nn.Linear):
            codes, scales = of_few_bits(module.weight.data, bits)
            module.weight.data = ((codes - 2 ** (bits - 1)) * scales).flatten(1)
    return decoder.to(dtype).requires_grad_(False)


def a_step(length, dtype):
    """The inputs of a step that takes `length` tokens."""
    torch.manual_seed(1)
    return drawn(length), torch.arange(AT, AT + length), *caches(torch.randn, dtype)


def file(decoder, length, bits) -> bytes:
    """A step as an ONNX file with weights of few bits."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load_from_string(contestants.exported_file(decoder, a_step(length, torch.float32)))
    if bits is None:
        return model.SerializeToString()
    weights = {w.name: w for w in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in weights:
            continue
        weight = torch.from_numpy(numpy_helper.to_array(weights.pop(node.input[1])).copy()).t()
        codes, scales = of_few_bits(weight, bits)
        codes = codes.to(torch.uint8)
        packed = codes if bits == 8 else codes[..., ::2] | codes[..., 1::2] << 4
        names = [f"{node.input[1]}.{part}" for part in ("codes", "scales")]
        parts = (packed, scales.squeeze(-1))
        model.graph.initializer.extend(numpy_helper.from_array(x.numpy(), name) for x, name in zip(parts, names))
        n, k = weight.shape
        few = helper.make_node(
            "MatMulNBits", [node.input[0], *names], node.output, domain="com.microsoft", K=k, N=n, bits=bits, block_size=BLOCK,
        )  # fmt: skip
        node.CopyFrom(few)
    read = {name for node in model.graph.node for name in node.input}
    kept = [w for w in model.graph.initializer if w.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model.SerializeToString()


def in_place(model, inputs, threads):
    """Girih behind `torch.compile`."""
    torch._dynamo.reset()
    function = torch.compile(model, backend="girih", options={"threads": threads}, fullgraph=True)
    return lambda: function(*inputs)


def by_steps(bits):
    """Who takes part in the loop that generates, whose steps are compiled, and what runs it."""

    def looped(model, inputs, step):
        first = step(model.decoder, PROMPT)
        token = step(model.decoder, 1)
        return lambda: model.with_steps(first, token, *inputs)

    def of_girih(model, inputs, threads):
        if bits is None:
            return looped(model, inputs, lambda d, n: girih.torch.export(d, a_step(n, torch.float32), threads=threads))

        def step(decoder, length):
            loaded = girih.Model.from_onnx(file(decoder, length, bits), threads=threads)
            names = [port.name for port in loaded.get_inputs()]
            return lambda *given: [torch.from_numpy(r) for r in loaded.run(None, {n: x.numpy() for n, x in zip(names, given)})]

        return looped(model, inputs, step)

    def of_onnxruntime(model, inputs, threads):
        def step(decoder, length):
            session = contestants.session_of(file(decoder, length, bits), threads)
            names = [port.name for port in session.get_inputs()]
            return lambda *given: [torch.from_numpy(r) for r in session.run(None, {n: x.numpy() for n, x in zip(names, given)})]

        return looped(model, inputs, step)

    def compiled(model, inputs, _threads):
        torch._dynamo.reset()
        return looped(model, inputs, lambda decoder, _length: torch.compile(decoder, fullgraph=True, dynamic=False))

    return {"girih": of_girih, "onnxruntime": of_onnxruntime, "torch.compile": compiled}


def rows():
    products = LAYERS * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * GROUPS * WIDTH + 3 * HIDDEN * INNER) + HIDDEN * WORDS
    held = 2 * LAYERS * GROUPS * PLACES * WIDTH
    for dtype in (torch.float32, torch.bfloat16):
        size, name, how = dtype.itemsize, NAMES[dtype], {"tolerance": TOLERANCE[dtype], "unit": "flops" if dtype.itemsize == 4 else "bf16"}
        yield Row(f"decode, {name}", lambda dtype=dtype: (made(dtype), a_step(1, dtype)), flops=2.0 * products,
                  bytes=size * (products + 3.0 * held), **how)  # fmt: skip
        one = lambda dtype=dtype: (InPlace(made(dtype)).to(dtype), a_step(1, dtype)[:2])  # noqa: E731
        once = {"flops": 2.0 * products, "bytes": size * (products + held), "without": {"onnxruntime": "its caches are inputs and outputs"}}
        yield Row(f"decode, {name}, caches in place", one, by={"girih": in_place}, **once, **how)
        yield Row(f"decode, {name}, caches in place, exported", one, **once, **how)
        yield Row(f"prompt of 64, {name}", lambda dtype=dtype: (made(dtype), a_step(64, dtype)), flops=2.0 * 64 * products,
                  bytes=size * (products + 3.0 * held), **how)  # fmt: skip
    for bits in (4, 8):
        yield Row(f"decode, {bits} bits", lambda bits=bits: (made(bits=bits), a_step(1, torch.float32)), flops=2.0 * products,
                  bytes=products * (bits / 8 + 4 / BLOCK) + 12.0 * held, tolerance=1e-3,
                  onnx=lambda model, bits=bits: file(model, 1, bits))  # fmt: skip
    for bits in (None, 4, 8):
        width = 4 if bits is None else bits / 8 + 4 / BLOCK
        yield Row(f"generate {FOLLOW} tokens, {'f32' if bits is None else f'{bits} bits'}",
                  lambda bits=bits: (Generate(made(bits=bits)), (drawn(PROMPT),)), flops=2.0 * (PROMPT + FOLLOW) * products,
                  bytes=(FOLLOW + 1) * (width * products + 12.0 * held), tolerance=1e-3, by=by_steps(bits))  # fmt: skip
