"""Compares a compiled function's outcome with PyTorch's: the first difference, or None.

A difference is a kind and a sentence. Kinds: raises, returns (where PyTorch raises), type, shape, strides, value, alias,
written.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .program import Run, same, storage


@dataclass(frozen=True)
class Difference:
    kind: str
    what: str

    def __str__(self):
        return f"{self.kind}: {self.what}"


def is_dense(t) -> bool:
    """Returns True if the elements fill a stretch of memory, each once."""
    expected = 1
    for stride, size in sorted((st, n) for st, n in zip(t.stride(), t.shape) if n > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def relevant(t):
    """The strides that say where elements are."""
    return tuple(st for st, n in zip(t.stride(), t.shape) if n > 1) if t.numel() else ()


def difference(run: Run, given, values, storages) -> Difference | None:
    """`given` are the results, `values` the arguments by name and `storages` what they show, after the call."""
    program = run.program
    wanted = [run.eager[n] for n in program.results]
    if len(given) != len(wanted):
        return Difference("type", f"{len(given)} results, not {len(wanted)}")
    for i, (name, g, w) in enumerate(zip(program.results, given, wanted)):
        if found := one(run, name, g, w):
            return Difference(found.kind, f"result {i} ({name}) {found.what}")
    tensors = [n for n in program.parameters if isinstance(values[n], torch.Tensor)]
    places = [f"result {i} ({n})" for i, n in enumerate(program.results)] + [f"argument {n}" for n in tensors]
    mine = [*given, *(values[n] for n in tensors)]
    theirs = [*wanted, *(run.eager[n] for n in tensors)]
    if found := aliases(places, mine, theirs, len(given)):
        return found
    return written(run, storages)


def one(run, name, g, w) -> Difference | None:
    if type(g) is not type(w):
        return Difference("type", f"is {g!r:.200}, not {w!r:.200}")
    if not isinstance(w, torch.Tensor):
        return None if g == w or (g != g and w != w) else Difference("value", f"is {g!r}, not {w!r}")
    if g.dtype != w.dtype:
        return Difference("type", f"has {g.dtype}, not {w.dtype}")
    if g.shape != w.shape:
        return Difference("shape", f"has shape {list(g.shape)}, not {list(w.shape)}")
    if is_dense(w) and relevant(g) != relevant(w):
        return Difference("strides", f"has strides {g.stride()}, not {w.stride()}, of shape {list(w.shape)}")
    return elements(run, g, w, run.exact(name), [world[name] for world in run.worlds[1:]])


def elements(run, g, w, exact, others) -> Difference | None:
    if not w.is_floating_point() or exact:
        if w.is_floating_point() and same(g, w) or not w.is_floating_point() and torch.equal(g, w):
            return None
        return Difference("value", f"is {shown(g)}, not {shown(w)}")
    defined, allowed = run.allowed(w, others)
    odd = defined & ((g.isnan() != w.isnan()) | (g.isinf() != w.isinf()))
    if odd.any():
        return Difference("value", f"is {shown(g)}, not nearly {shown(w)}")
    finite = defined & w.isfinite()
    if not finite.any():
        return None
    apart = (g.double() - others[0].double())[finite].abs().max().item()
    if apart <= allowed:
        return None
    return Difference("value", f"is {shown(g)}, not nearly {shown(w)}: {apart:.3g} apart, {allowed:.3g} allowed")


def shown(t) -> str:
    text = str(t.tolist())
    return text if len(text) < 400 else text[:400] + "..."


def aliases(places, mine, theirs, results) -> Difference | None:
    """Results show the arguments, and each other, as PyTorch's do."""
    for i in range(results):
        for j in range(i + 1, len(places)):
            pair = [(m[i], m[j]) for m in (mine, theirs)]
            if not all(isinstance(t, torch.Tensor) and t.numel() for p in pair for t in p):
                continue
            got, want = (storage(a) == storage(b) for a, b in pair)
            if got != want:
                return Difference("alias", f"{places[i]} {'is no' if want else 'is a'} view of what {places[j]} shows")
            if not want:
                continue
            got, want = ((a.storage_offset() - b.storage_offset(), relevant(a)) for a, b in pair)
            if got != want:
                return Difference("alias", f"{places[i]} beside {places[j]} is at {got}, not at {want}")
            if j >= results and (mine[i] is mine[j]) != (theirs[i] is theirs[j]):
                return Difference("alias", f"{places[i]} and {places[j]} are not the same object in both")
    return None


def written(run, storages) -> Difference | None:
    """Compares the contents of the arguments afterwards."""
    for i, (g, w) in enumerate(zip(storages, run.storages[0])):
        exact = storage(w) not in run.inexact
        found = elements(run, g, w, exact, [s[i] for s in run.storages[1:]])
        if found:
            return Difference("written", f"the elements of argument s{i}: it {found.what}")
    return None
