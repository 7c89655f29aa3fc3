"""Strings at the border of a model, which computes with their numbers.

In: arrays of strings, and the list of strings that the model has. Out: arrays of int64, each element a place in that list, or behind it
for a string that the model does not have; and back. Two elements of a run have one number where they are one string.
"""

from __future__ import annotations

import numpy as np


class Words:
    """The strings of a model."""

    def __init__(self, known: list[str]):
        self.known = known
        self.numbers = {word: at for at, word in enumerate(known)}

    def call(self) -> Call:
        return Call(self)


class Call:
    """The strings of one run: those of the model, and what its inputs have besides."""

    def __init__(self, words: Words):
        self.words = words
        self.more: dict[str, int] = {}

    def numbers(self, wanted, given):
        """The value given for an input, as numbers, and None; or None and a message."""
        array = np.asarray(given)
        if array.size == 0 and array.dtype.kind not in "USOT":
            # An empty list.
            array = array.astype(object) if isinstance(given, (list, tuple)) else array
        if array.dtype.kind not in "USOT":
            return None, f"input `{wanted.name}` is {array.dtype.name}: the model expects {wanted}"
        out, count = np.empty(array.size, np.int64), len(self.words.known)
        for at, word in enumerate(array.reshape(-1).tolist()):
            if isinstance(word, bytes):
                try:
                    word = word.decode()
                except UnicodeDecodeError:
                    return None, f"input `{wanted.name}` holds bytes that are not UTF-8, {word!r}: the model expects {wanted}"
            if not isinstance(word, str):
                return None, f"input `{wanted.name}` holds {type(word).__name__}, {word!r}: the model expects {wanted}"
            number = self.words.numbers.get(word)
            out[at] = self.more.setdefault(word, count + len(self.more)) if number is None else number
        return out.reshape(array.shape), None

    def strings(self, numbers) -> np.ndarray:
        """An array of strings, as ONNX Runtime gives it: of Python objects."""
        words, count = self.words.known, len(self.words.known)
        more = list(self.more)
        out = np.empty(numbers.size, object)
        for at, number in enumerate(numbers.reshape(-1).tolist()):
            out[at] = words[number] if 0 <= number < count else more[number - count]
        return out.reshape(numbers.shape)
