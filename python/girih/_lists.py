"""Sequences and optional values at the border of a model, which computes with tensors.

In: for an input ``s`` a list of arrays, which become ``s[0]``, ``s[1]``, ..., or None for an optional value that is not there. Out:
what the model gives under such names, as a list; or the rows of one array, where a loop has made the sequence.
"""

from __future__ import annotations

import numpy as np


def kind(port) -> str:
    """`seq`, `optional`, `optional(seq`, or nothing for a tensor."""
    return port.dtype.rpartition("(")[0]


def elements(port):
    """The port of a tensor of a sequence or an optional value."""
    return port._replace(dtype=port.dtype.rpartition("(")[2].rstrip(")"))


def tensors(port, given):
    """The ports of the tensors of what is given for an input, each with its array, and what is wrong."""
    of, inner = kind(port), elements(port)
    if not of:
        return [(port, given)], None
    if given is None and of.startswith("optional"):
        return [], None
    if of == "optional":
        return [(inner, given)], None
    if not isinstance(given, (list, tuple)):
        return [], f"input `{port.name}` is {type(given).__name__}: the model expects a list of arrays, {port}"
    if not given and of.startswith("optional"):
        # A sequence of no tensors is not the same as none.
        marker = inner._replace(name=f"{port.name}[]", dtype="uint8", shape=(0,))
        return [(marker, np.zeros(0, np.uint8))], None
    # Each tensor has extents of its own.
    shape = tuple(d if isinstance(d, int) else f"{port.name}[{at}].{d}" for at, d in enumerate(port.shape))
    shape = port.shape if port.shape == ("...",) else shape
    return [(inner._replace(name=f"{port.name}[{at}]", shape=shape), array) for at, array in enumerate(given)], None


def gathered(port, results):
    """The value of an output, from the tensors of a run by name."""
    if not (of := kind(port)):
        return results[port.name]
    if port.name in results:
        return results[port.name] if of == "optional" else list(results[port.name])
    found, at = [], 0
    while (name := f"{port.name}[{at}]") in results:
        found.append(results[name])
        at += 1
    return None if of.startswith("optional") and not found else found
