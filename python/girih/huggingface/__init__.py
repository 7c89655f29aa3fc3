"""Models of Hugging Face: folders with `config.json` and weights in the form of safetensors.

    python -m girih.huggingface generate llama --prompt "Once upon a time"
    python -m girih.huggingface export llama --layer 0 --output /tmp/layer

The command line starts these: `girih generate llama --prompt "..."`, `girih compile llama --layer 0`. `transformers` builds the model
and chooses tokens; Girih compiles what it computes.
"""

from .folder import Folder, FolderError
from .generate import Generated, generate

__all__ = ["Folder", "FolderError", "Generated", "generate"]
