"""The model of a folder, as `transformers` builds it, over weights in mapped files.

In: a `Folder` and an element type, or None for the folder's own; perhaps a type of quantised weights. Out: a module in inference mode;
`FolderError` where the class is not one of transformers', or where weights are missing.

Invariants: no code of the folder runs; nothing is downloaded; a weight is copied only where another element type is wanted, where it is
quantised, or where transformers makes one tensor of several.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os

from .folder import Folder, FolderError

__all__ = ["DTYPES", "QUANTISED", "architecture", "config_of", "model_of", "needs", "positions", "tokenizer_of"]

#: Element types by the names that the command line takes.
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
#: Types of quantised weights by the names that the command line takes.
QUANTISED = ("int8", "int4")


class Unwritable(OSError):
    """Standard output takes no more."""


def needs() -> None:
    """Raises where a package is missing that folders need."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise FolderError(f"folders of Hugging Face need {' and '.join(missing)}: `pip install {' '.join(missing)}`")


def quiet() -> None:
    """Switches off what transformers writes to the terminal; errors are raised."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


@contextlib.contextmanager
def refusals(path, what: str):
    """Turns what transformers raises into one sentence."""
    try:
        yield
    except (FolderError, Unwritable):
        raise
    except Exception as e:
        reason = str(e).strip().splitlines()
        raise FolderError(f"transformers cannot make {what} of {path}: {reason[0] if reason else type(e).__name__}") from None


def config_of(folder: Folder):
    """The configuration, as an object of transformers'."""
    quiet()
    import transformers

    kind = folder.config.get("model_type")
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if kind is None:
        raise FolderError(f"{folder.path / 'config.json'} has no model_type")
    if kind not in known:
        more = "; its own code, which config.json names, is not run" if "auto_map" in folder.config else ""
        version = transformers.__version__
        raise FolderError(f"the architecture {kind!r} of {folder.path} is unknown to transformers {version}{more}")
    with refusals(folder.path, "a configuration"):
        return transformers.AutoConfig.from_pretrained(folder.path, local_files_only=True)


def architecture(folder: Folder, config):
    """The class of the model."""
    import transformers

    named = (folder.config.get("architectures") or [None])[0]
    if named is None:
        with refusals(folder.path, "a model"):
            return transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    found = getattr(transformers, str(named), None)
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        raise FolderError(f"the architecture {named!r} of {folder.path} is unknown to transformers {transformers.__version__}")
    return found


def model_of(folder: Folder, config, dtype: str | None = None, quantize: str | None = None):
    """The model with its weights, in inference mode."""
    import torch

    made = architecture(folder, config)
    with refusals(folder.path, "a model"):
        model, told = made.from_pretrained(
            None, config=config, state_dict=folder.mapped(), output_loading_info=True, ignore_mismatched_sizes=True,
            dtype=getattr(torch, DTYPES[dtype]) if dtype else "auto",
        )  # fmt: skip
    if missing := sorted(told["missing_keys"]):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise FolderError(f"the weights in {folder.path} lack {missing[0]}{more}, which {made.__name__} needs")
    if unlike := sorted(told["mismatched_keys"]):
        name, found, wanted = unlike[0]
        raise FolderError(f"the weight {name} in {folder.path} has shape {list(found)}, and {made.__name__} needs {list(wanted)}")
    if made.can_generate():
        with contextlib.suppress(OSError):
            import transformers

            model.generation_config = transformers.GenerationConfig.from_pretrained(folder.path, local_files_only=True)
    model = model.eval().requires_grad_(False)
    if quantize:
        from .quantise import quantise

        quantise(model, quantize)
    return model


def tokenizer_of(folder: Folder):
    """The folder's tokenizer."""
    names = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
    if not any((folder.path / name).is_file() for name in names):
        raise FolderError(f"{folder.path} has no tokenizer (tokenizer.json), which a prompt needs")
    import transformers

    with refusals(folder.path, "a tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(folder.path, local_files_only=True)


def positions(config) -> int | None:
    """The most positions of a sequence; None where the configuration does not limit them."""
    found = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
    return found if isinstance(found, int) and found > 0 else None
