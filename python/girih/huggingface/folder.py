"""Folders of Hugging Face: `config.json` beside weights in the form of safetensors.

In: a path. Out: a `Folder`, which knows where each tensor lies, or `FolderError` with one sentence that says what is wrong.

    folder = Folder("llama")
    folder.tensors["model.norm.weight"]    # Place(file=.../model.safetensors, dtype="F32", shape=(64,), start=1208, end=1464)
    folder.mapped()                        # every tensor, in the memory of the mapped files

Invariants: a file's header is compared with the file's length before anything is mapped; a tensor is copied only where the file has
it at an address that its type cannot be read from.
"""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from girih.frontend.errors import GirihError

__all__ = ["Folder", "FolderError", "Place"]

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
#: The longest header that the format allows.
LONGEST_HEADER = 100_000_000

#: Bytes of an element.
SIZES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}  # fmt: skip
#: PyTorch's names of the types.
TORCH = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
    "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip


class FolderError(GirihError):
    """A folder, or a wish about it, that cannot be fulfilled; one plain sentence."""


@dataclass(frozen=True)
class Place:
    """The bytes of a tensor: from `start` to `end` of a file."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class Folder:
    """A folder with `config.json` and weights.

    Attributes:
        path: the folder.
        config: what `config.json` holds.
        files: the files of the weights.
        tensors: where each tensor lies, by its name.
    """

    def __init__(self, path):
        self.path = Path(path)
        if not self.path.exists():
            raise FolderError(f"{self.path} does not exist")
        if not self.path.is_dir():
            raise FolderError(f"{self.path} is not a folder; name the folder that holds config.json and the weights")
        self.config = self._json("config.json")
        if self.config is None:
            raise FolderError(f"{self.path} has no config.json, so it is not a folder of a Hugging Face model")
        if method := (self.config.get("quantization_config") or {}).get("quant_method"):
            raise FolderError(f"the weights in {self.path} are quantised ({method}), which is not supported")
        self.files = self._weight_files()
        self.tensors: dict[str, Place] = {}
        self._maps: dict[int, Path] = {}
        for file in self.files:
            self.tensors.update(places(file))

    def _json(self, name):
        """An object from a file of the folder; None if the file does not exist."""
        file = self.path / name
        if not file.is_file():
            return None
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as e:
            raise FolderError(f"{file} cannot be read as JSON: {e}") from None
        if not isinstance(found, dict):
            raise FolderError(f"{file} holds no JSON object")
        return found

    def _weight_files(self) -> list[Path]:
        index = self._json(INDEX)
        if index is None:
            if (self.path / SINGLE).is_file():
                return [self.path / SINGLE]
            others = sorted(f.name for f in self.path.iterdir() if f.suffix in (".bin", ".pt", ".pth", ".gguf", ".h5"))
            found = f"; it has {others[0]}, a format that is not read" if others else ""
            raise FolderError(f"{self.path} has neither {SINGLE} nor {INDEX}{found}")
        named = index.get("weight_map")
        if not isinstance(named, dict) or not all(isinstance(name, str) for name in named.values()):
            raise FolderError(f"{self.path / INDEX} has no weight_map that names a file for each tensor")
        names = sorted(set(named.values()))
        if outside := [name for name in names if Path(name).name != name]:
            raise FolderError(f"{self.path / INDEX} names {outside[0]!r}, which is not a file of the folder")
        if missing := [name for name in names if not (self.path / name).is_file()]:
            more = f", nor {len(missing) - 1} more of its {len(names)} files" if len(missing) > 1 else ""
            raise FolderError(f"{self.path} does not have {missing[0]}, which {INDEX} names{more}")
        return [self.path / name for name in names]

    def mapped(self) -> dict:
        """Every tensor in the memory of its mapped file. Writing to one does not reach the file."""
        import torch

        maps = {}
        for file in self.files:
            storage = torch.UntypedStorage.from_file(str(file), False, os.path.getsize(file))
            maps[file] = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._maps[storage.data_ptr()] = file
        found = {}
        for name, place in self.tensors.items():
            raw = maps[place.file][place.start : place.end]
            dtype = getattr(torch, TORCH[place.dtype])
            raw = raw if raw.data_ptr() % dtype.itemsize == 0 else raw.clone()
            found[name] = raw.view(dtype).view(place.shape) if raw.numel() else torch.empty(place.shape, dtype=dtype)
        return found

    def source(self, tensor) -> tuple[Path, int] | None:
        """The file that a tensor of `mapped` lies in, or a view of one, and from which byte on."""
        start = tensor.untyped_storage().data_ptr()
        return (self._maps[start], tensor.data_ptr() - start) if start in self._maps else None


def places(file: Path) -> dict[str, Place]:
    """Where the tensors of a file of safetensors lie."""
    try:
        length = file.stat().st_size
        with open(file, "rb") as opened:
            first = opened.read(8)
            count = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
            if len(first) < 8 or count > length - 8:
                raise FolderError(f"{file} is cut short: it has {length} bytes, fewer than its header needs")
            if count > LONGEST_HEADER:
                raise FolderError(f"{file} is not in the form of safetensors: its header has {count} bytes")
            header = json.loads(opened.read(count).decode("utf-8"))
    except OSError as e:
        raise FolderError(f"{file} cannot be read: {e.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise FolderError(f"{file} is not in the form of safetensors: its header is not JSON") from None
    if not isinstance(header, dict):
        raise FolderError(f"{file} is not in the form of safetensors: its header is not a JSON object")
    found = {}
    for name, told in header.items():
        if name != "__metadata__":
            found[name] = place(file, length, 8 + count, name, told)
    return found


def place(file: Path, length: int, begin: int, name: str, told) -> Place:
    """Where one tensor lies, as the header tells of it."""
    try:
        dtype, shape, (start, end) = told["dtype"], tuple(told["shape"]), told["data_offsets"]
        fits = all(type(n) is int and n >= 0 for n in (*shape, start, end)) and start <= end
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise FolderError(f"{file} does not say where the tensor {name!r} lies")
    if dtype not in SIZES:
        raise FolderError(f"the tensor {name!r} of {file} has elements of the type {dtype}, which is not supported")
    if end - start != math.prod(shape) * SIZES[dtype]:
        raise FolderError(f"the tensor {name!r} of {file} has {end - start} bytes where its shape needs {math.prod(shape) * SIZES[dtype]}")
    if begin + end > length:
        raise FolderError(f"{file} is cut short: the tensor {name!r} ends at byte {begin + end}, and the file has {length}")
    return Place(file, dtype, shape, begin + start, begin + end)
