"""A failing program made small: fewer statements, results, sets and parameters, simpler arguments."""

from __future__ import annotations

from dataclasses import replace

import torch

from .generate import placed
from .program import Arguments, Program, Run, Statement, View, names


def shrink(program: Program, fails, tries=80) -> Program:
    """The smallest program found for which `fails` still holds."""
    best, changed = program, True
    while changed and tries > 0:
        changed = False
        for candidate in smaller(best):
            tries -= 1
            if tries <= 0:
                break
            if fails(candidate):
                best, changed = candidate, True
                break
    return best


def smaller(p: Program):
    """Programs with a little less, most promising first."""
    for i in range(len(p.sets)):
        if len(p.sets) > 1:
            yield replace(p, sets=p.sets[:i] + p.sets[i + 1 :])
    if len(p.results) > 1:
        for r in p.results:
            yield without_dead(replace(p, results=[r]))
        for i in range(len(p.results)):
            yield without_dead(replace(p, results=p.results[:i] + p.results[i + 1 :]))
    for i, statement in enumerate(p.statements):
        rest = p.statements[:i] + p.statements[i + 1 :]
        used = {n for s in rest for n in names(s.text)} | set(p.results)
        if not used & set(statement.targets):
            yield without_dead(replace(p, statements=rest))
    for i, statement in enumerate(p.statements):
        # The results of a statement as parameters.
        if len(statement.targets) == 1 and (given := as_parameter(p, i)) is not None:
            yield without_dead(given)
    for name in p.parameters:
        plain = [simple(a, name) for a in p.sets]
        if any(a is not None for a in plain):
            yield replace(p, sets=[a or b for a, b in zip(plain, p.sets)])


def without_dead(p: Program) -> Program:
    """Without parameters that nothing uses; statements that nothing uses go one by one."""
    used = {n for s in p.statements for n in names(s.text)} | set(p.results)
    kept = [n for n in p.parameters if n in used]
    if not kept:
        return p
    sets = [compact(Arguments(a.storages, {n: v for n, v in a.values.items() if n in kept})) for a in p.sets]
    return replace(p, parameters=kept, sets=sets)


def compact(a: Arguments) -> Arguments:
    order = sorted({v.storage for v in a.values.values() if isinstance(v, View)})
    values = {n: replace(v, storage=order.index(v.storage)) if isinstance(v, View) else v for n, v in a.values.items()}
    return Arguments([a.storages[i] for i in order], values)


def as_parameter(p: Program, at: int) -> Program | None:
    name = p.statements[at].targets[0]
    sets = []
    for arguments in p.sets:
        run = Run(replace(p, statements=p.statements[: at + 1]), arguments)
        try:
            with torch.no_grad():
                run.whole()
        except Exception:
            return None
        value = run.eager[name]
        changed = Arguments(list(arguments.storages), dict(arguments.values))
        if isinstance(value, torch.Tensor):
            value = value.contiguous()
            changed.storages.append(value.reshape(-1).clone())
            changed.values[name] = View(len(changed.storages) - 1, tuple(value.shape), value.stride())
        else:
            changed.values[name] = value
        sets.append(changed)
    rest: list[Statement] = p.statements[:at] + p.statements[at + 1 :]
    return replace(p, parameters=[*p.parameters, name], sets=sets, statements=rest)


def simple(a: Arguments, name: str) -> Arguments | None:
    """The arguments with a tensor in row-major order and a storage of its own; None where it is."""
    view = a.values[name]
    if not isinstance(view, View):
        return None
    stride, offset, count = placed(view.size, "rows")
    if view == View(view.storage, view.size, stride, offset) and len(a.storages[view.storage]) == max(count, 0):
        return None
    elements = a.storages[view.storage].as_strided(view.size, view.stride, view.offset).reshape(-1).clone()
    values = {**a.values, name: View(len(a.storages), view.size, stride, 0)}
    return compact(Arguments([*a.storages, elements], values))
