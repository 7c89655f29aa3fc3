"""A model of a folder, or one of its layers, as a graph that names the files of its weights.

In: a `Folder` and a `Part`. Out: one line of JSON, as `crates/girih-graph/src/source/torch` describes it, whose constants lie in files
that are named from the root of the file system on:

    {"format": "girih.torch", "name": "LlamaForCausalLM", "inputs": [{"name": "input_ids", "fill": ["integers", 0, 32000], ...}],
     "constants": [{"name": "p_model_norm_weight", "file": "models/llama/model.safetensors", "offset": 1208, ...}], ...}

The command line asks for it: `girih compile llama --layer 0` runs `python -m girih.huggingface export llama --layer 0`.

Invariants: a weight that lies in the folder as the model needs it is never copied. Where another element type is wanted, the graph
converts it. Tensors that transformers makes of several weights, tables that a module computes, and quantised weights go to a file of a temporary
folder.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from girih._diagnostics import ProgramError

from . import load
from .folder import Folder, FolderError

__all__ = ["Part", "captured", "chosen", "document"]

#: Tokens of a sequence, where nobody says how many.
TOKENS = 32
#: Constants of at most this many elements stand in the document.
SMALL = 64
#: Where a tensor starts in a file of ours: at a cache line.
ALIGN = 64


@dataclass(frozen=True)
class Part:
    """The part of a model that is captured, and for which shapes.

    Attributes:
        layer: the decoder layer; None for the whole model.
        tokens: of a sequence; None for `TOKENS`, or fewer where the model has no more positions.
        batch: sequences.
        dtype: "f32", "bf16" or "f16"; None for the folder's own.
        quantize: "int8" or "int4"; None leaves the weights as they are.
    """

    layer: int | None = None
    tokens: int | None = None
    batch: int = 1
    dtype: str | None = None
    quantize: str | None = None


class Whole(torch.nn.Module):
    """A model as a function of its tokens alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.more = {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
        self.both = model.config.is_encoder_decoder

    def forward(self, input_ids):
        more = {**self.more, "decoder_input_ids": input_ids} if self.both else self.more
        found = self.model(input_ids=input_ids, **more)
        results = found.to_tuple() if hasattr(found, "to_tuple") else found
        return tuple(r for r in pytree.tree_leaves(results) if isinstance(r, torch.Tensor))


class Layer(torch.nn.Module):
    """A layer as a function of the hidden states alone. The rest that the model passes to it, such as tables of positions and a
    mask, is constant."""

    def __init__(self, layer, rest):
        super().__init__()
        self.layer = layer
        leaves, self.nesting = pytree.tree_flatten(rest)
        self.others = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        for at in self.places:
            self.register_buffer(f"given_{at}", leaves[at].detach())

    def forward(self, hidden_states):
        leaves = list(self.others)
        for at in self.places:
            leaves[at] = getattr(self, f"given_{at}")
        args, kwargs = pytree.tree_unflatten(leaves, self.nesting)
        found = self.layer(hidden_states, *args, **kwargs)
        return next(r for r in pytree.tree_leaves(found) if isinstance(r, torch.Tensor))


class Reached(BaseException):
    """The layer that was looked for is called."""


def layers_of(model) -> torch.nn.ModuleList:
    """The decoder layers: the list whose length is the configuration's number of layers."""
    count = getattr(model.config.get_text_config(decoder=True), "num_hidden_layers", None)
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else model
    for start in (decoder, model):
        for module in start.modules() if start is not None else ():
            if isinstance(module, torch.nn.ModuleList) and len(module) == count:
                return module
    raise FolderError(f"no list of {count} layers is found in {type(model).__name__}")


def layer_of(model, number: int, ids) -> tuple[Layer, Any]:
    """A layer, and the hidden states that it gets for these tokens: the model runs up to there."""
    layers = layers_of(model)
    if number >= len(layers):
        raise FolderError(f"layer {number} does not exist: {type(model).__name__} has layers 0 to {len(layers) - 1}")
    reached = {}

    def stop(_, args, kwargs):
        hidden = args[0] if args else kwargs.pop("hidden_states")
        reached.update(hidden=hidden, rest=(args[1:], kwargs))
        raise Reached

    handle = layers[number].register_forward_pre_hook(stop, with_kwargs=True)
    try:
        with torch.no_grad():
            Whole(model)(ids)
    except Reached:
        pass
    finally:
        handle.remove()
    return Layer(layers[number], reached["rest"]), reached["hidden"]


def chosen(model, part: Part):
    """The part as a module, an example of what it takes, and its name."""
    if model.main_input_name != "input_ids":
        raise FolderError(f"{type(model).__name__} takes {model.main_input_name}; models that take tokens (input_ids) are supported")
    limit = load.positions(model.config)
    tokens = part.tokens or min(TOKENS, limit or TOKENS)
    if limit is not None and tokens > limit:
        raise FolderError(f"a sequence of {tokens} tokens is longer than the model's {limit} positions")
    try:
        ids = torch.zeros(part.batch, tokens, dtype=torch.int64)
        if part.layer is None:
            return Whole(model).eval(), ids, type(model).__name__
        module, given = layer_of(model, part.layer, ids)
    except (MemoryError, RuntimeError) as e:
        reason = str(e).splitlines()[0] if str(e) else "there is not enough memory"
        raise FolderError(f"{type(model).__name__} does not run on {part.batch} x {tokens} tokens: {reason}") from None
    return module.eval(), given, f"{type(module.layer).__name__}_{part.layer}"


def captured(module, given, name: str, compiled: bool, **options):
    """A module as `girih.torch.export` captures it."""
    from girih.torch import _export

    try:
        return _export.captured(module, (given,), None, None, name, options, as_they_lie=False, compiled=compiled)
    except ProgramError as e:
        raise FolderError(f"{name} has operations that are not supported:\n{e}") from None
    except Exception as e:
        if type(e).__module__.startswith("girih"):
            raise
        first = next(iter(str(e).strip().splitlines()), type(e).__name__)
        raise FolderError(f"torch.export cannot capture {name}: {first}") from None


def converted(model, dtype) -> dict[int, torch.Tensor]:
    """Gives the weights another element type without computing them: memory that nobody writes to stands for each."""
    stood_for = {}
    persistent = set(model.state_dict())
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name in persistent and tensor.is_floating_point() and tensor.dtype != dtype:
            held = tensor.data
            tensor.data = torch.empty(held.shape, dtype=dtype)
            stood_for[tensor.data_ptr()] = held
    model.config.dtype = dtype
    return stood_for


def document(folder: Folder, part: Part, scratch: Path) -> dict[str, Any]:
    """The document; files that it needs beside the folder's are written to `scratch`."""
    from girih.torch import _graph

    model = load.model_of(folder, load.config_of(folder), quantize=part.quantize)
    stood_for = converted(model, getattr(torch, load.DTYPES[part.dtype])) if part.dtype else {}
    root, held = captured(*chosen(model, part), compiled=False).document()
    vocabulary = model.get_input_embeddings().weight.shape[0]
    conversions, arguments = [], []
    with open(scratch / "made", "wb") as made:
        for typed in root["inputs"]:
            tensor = held.get(typed["name"])
            if tensor is None:
                arguments.append({**typed, "fill": fill_of(typed, vocabulary)})
                continue
            source = stood_for.get(tensor.data_ptr())
            stored = {key: typed[key] for key in ("name", "dtype", "shape")}
            if source is not None:
                stored.update(name=f"{typed['name']}__stored", dtype=_graph.DTYPES[source.dtype])
                conversions.append(
                    {"op": "aten._to_copy", "args": [{"t": stored["name"]}], "attrs": {"dtype": {"dtype": typed["dtype"]}},
                     "results": [{key: typed[key] for key in ("name", "dtype", "shape")}]}
                )  # fmt: skip
                tensor = source
            root["constants"].append({**stored, **elements(folder, tensor, made)})
    root["inputs"], root["nodes"] = arguments, conversions + root["nodes"]
    return root


def fill_of(typed, vocabulary):
    """The random data of an argument that nobody gives."""
    return "normal" if typed["dtype"] in ("f64", "f32", "f16", "bf16") else ["integers", 0, vocabulary]


def elements(folder, tensor, made) -> dict[str, Any]:
    """Where a tensor's elements are: in a mapped file, in the document, or in the file `made`, where they are written then."""
    source = folder.source(tensor)
    if source is not None and tensor.is_contiguous() and tensor.dtype is not torch.bool:
        return {"file": inside(source[0]), "offset": source[1]}
    if tensor.dtype is torch.bool or tensor.numel() <= SMALL and not tensor.is_floating_point():
        return {"values": tensor.reshape(-1).tolist()}
    offset = -(-made.tell() // ALIGN) * ALIGN
    made.write(bytes(offset - made.tell()))
    # A weight may be large: it is written piece by piece.
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    for piece in flat.split(1 << 26):
        made.write(piece.numpy())
    return {"file": inside(made.name), "offset": offset}


def inside(path) -> str:
    """A path from the root on, of the file itself: folders of a cache hold links."""
    return os.path.realpath(path).lstrip("/")
