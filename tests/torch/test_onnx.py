"""The models of test_models.py as ONNX files that PyTorch exports, run by the command line.

`pytest -s` prints the errors.
"""

import copy
import os
import subprocess
from pathlib import Path

import closeness
import numpy as np
import pytest
import test_models
import torch

pytest.importorskip("onnxscript")
transformers = test_models.transformers
GIRIH = Path(os.environ.get("GIRIH_LIBRARY_DIR", Path(__file__).parents[2] / "target/release")) / "girih"


def exported(folder, model, inputs, lengths=None):
    """The results of the exported file for each list of inputs. `lengths`: the dimensions of each input that may change."""
    path = folder / "model.onnx"
    dynamic = None if lengths is None else tuple(lengths)
    with torch.no_grad():
        torch.onnx.export(model, inputs[0], path, dynamo=True, dynamic_shapes=dynamic, external_data=True, verbose=False)
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    results = []
    for arrays in inputs:
        arguments = []
        for port, array in zip(graph.input, arrays):
            np.save(folder / f"{port.name}.npy", array.numpy())
            arguments += ["--arg", f"{port.name}={folder / port.name}.npy"]
        name = graph.output[0].name
        command = [GIRIH, "run", path, *arguments, "--save", f"{name}={folder / 'result.npy'}"]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        results.append(torch.from_numpy(np.load(folder / "result.npy")))
    return results


def compare(folder, model, inputs, lengths=None, name=""):
    results = exported(folder, copy.deepcopy(model), inputs, lengths)
    wide = copy.deepcopy(model).double()
    for given, arrays in zip(results, inputs):
        with torch.no_grad():
            eager = model(*arrays)
            exact = wide(*(a.double() if a.is_floating_point() else a for a in arrays))
        closeness.close(given, eager, exact, name)


class Only(torch.nn.Module):
    """One of a model's results."""

    def __init__(self, model, result, **options):
        super().__init__()
        self.model, self.result, self.options = model, result, options
        self.eval()

    def forward(self, x):
        return getattr(self.model(x, **self.options), self.result)


def test_llama(tmp_path):
    model = Only(test_models.llama(), "logits", use_cache=False)
    length = torch.export.Dim("length", min=2, max=64)
    inputs = [(torch.randint(0, 96, (1, n)),) for n in (9, 33)]
    compare(tmp_path, model, inputs, [{1: length}], "llama")


@pytest.mark.parametrize("name", test_models.BLOCKS)
def test_decoder_blocks(tmp_path, name):
    config = test_models.BLOCKS[name]()
    block = test_models.Block(config).eval()
    compare(tmp_path, block, [(torch.randn(1, 16, config.hidden_size),)], name=name)


def test_vit(tmp_path):
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        attn_implementation="sdpa",
    )  # fmt: skip
    model = Only(transformers.ViTModel(config, add_pooling_layer=False).eval(), "last_hidden_state")
    compare(tmp_path, model, [(torch.randn(2, 3, 32, 32),)], name="vit")


def test_bert(tmp_path):
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=64, attn_implementation="sdpa",
    )  # fmt: skip
    model = Only(transformers.BertModel(config).eval(), "last_hidden_state")
    compare(tmp_path, model, [(torch.randint(0, 64, (2, 11)),)], name="bert")


def test_resnet18(tmp_path):
    compare(tmp_path, test_models.resnet18(), [(torch.randn(1, 3, 64, 64),)], name="resnet18")
