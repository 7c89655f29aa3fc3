"""Control flow: decisions at compile time, and Tile IR's `if`, `for` and `loop` for the rest.

The types of carried variables follow from the body, so a loop is traced until they are stable: first with numbers as
they are (a probe, thrown away), then with arguments of the types they met in. A loop that is left early becomes a
`loop` with its counter among the carried values, since Tile IR's `for` has no `break`.

Invariants: operations that an attempt appended are removed when it is abandoned; a region whose flow is not `NORMAL` already
ends in its terminator.
"""

from __future__ import annotations

import ast
import enum
from typing import TYPE_CHECKING, Any

from .errors import Code
from . import types as ty
from .builder import REGION, Arg, Region, Value, commas
from .slots import Slot, Undefined, fit, join, leaves, rebuild, same, slot_of
from .source import RESULT, assigned_names
from .tensor import WHOLE, arithmetic, cast, compare, constant, describe, fail, is_number, static, tensor, truth, unwrap

if TYPE_CHECKING:
    from .trace import Tracer

# A loop over constants is unrolled up to this many iterations, and this many in nested loops together.
UNROLL = 8
UNROLL_NESTED = 32
# No loop is unrolled more often than this, even on request.
UNROLL_MOST = 16384
ATTEMPTS = 8


UNASSIGNED = Undefined("it is not assigned")

# The types that a loop runs over at compile time.
SEQUENCES = (tuple, list, range, dict, type({}.items()), type({}.keys()), type({}.values()))


class Flow(enum.Enum):
    """How a statement ended: by going on, or by leaving its loop or function."""

    NORMAL = 0
    BREAK = 1
    CONTINUE = 2
    RETURN = 3


class KernelRange:
    """`range(...)` in a kernel; `static` asks for unrolling."""

    def __init__(self, *bounds: Any, static: bool = False):
        bounds = [unwrap(b) for b in bounds]
        if not 1 <= len(bounds) <= 3:
            raise fail(f"range takes one to three arguments, not {len(bounds)}", code=Code.CALL)
        for b in bounds:
            whole = b.dtype.is_int() and not b.shape if isinstance(b, tensor) else isinstance(b, int)
            if not whole:
                raise fail(f"a bound of range must be an integer, not {describe(b)}", WHOLE, code=Code.INTEGER)
        self.start, self.stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        self.step = bounds[2] if len(bounds) == 3 else 1
        self.static = static
        if not isinstance(self.step, tensor) and self.step == 0:
            raise fail("the step of range is zero", code=Code.INTEGER)

    def constant(self) -> range | None:
        """The Python range, when all bounds are known."""
        if any(isinstance(b, tensor) for b in (self.start, self.stop, self.step)):
            return None
        return range(int(self.start), int(self.stop), int(self.step))

    def items(self) -> range:
        """The numbers of a loop at compile time; they must be known and not too many."""
        known = self.constant()
        if known is None:
            raise fail(
                "the bounds of this range must be known at compile time",
                "loop over it with `for`, or make them constexpr",
                code=Code.NOT_CONSTANT,
            )
        if len(known) > UNROLL_MOST:
            raise fail(
                f"{len(known)} iterations are too many to unroll; {UNROLL_MOST} are possible",
                "loop over `range`, which unrolls short loops only",
                code=Code.TOO_LARGE,
            )
        return known


class Context:
    """A loop or a branch being traced."""

    def __init__(self, kind: str):
        self.kind = kind  # "unrolled", "for", "loop", "if"


class Carrying(Context):
    """A loop of the kernel: the variables it carries and the types they have been found to need."""

    def __init__(self, kind: str, names: list[str], slots: dict[str, list[Slot]], token: bool):
        super().__init__(kind)
        self.names = names
        self.slots = slots
        self.wanted = {n: list(s) for n, s in slots.items()}
        self.found: dict[str, Any] = {}  # the values of variables that have none before the loop
        self.probe = False
        self.token = token
        self.counter: tuple[tensor, tensor] | None = None  # the counter and its step, in a `loop` made from a `for`

    def stable(self) -> bool:
        return self.wanted == self.slots


class Again(Exception):
    """The construct that is being traced has to be traced in another form."""

    def __init__(self, context: object):
        self.context = context


# ---- leaving


def leave(tracer: Tracer, flow: Flow) -> Flow:
    """`break` or `continue`."""
    inside_branch = False
    for context in reversed(tracer.contexts):
        if context.kind == "if":
            inside_branch = True
        elif context.kind == "unrolled":
            if inside_branch:
                raise Again(context)
            return flow
        else:
            if context.kind == "for" and flow is Flow.BREAK:
                raise Again(context)
            end_iteration(tracer, context, "break" if flow is Flow.BREAK else "continue")
            return flow
    raise fail(f"`{flow.name.lower()}` is outside a loop", code=Code.UNSUPPORTED)


def end_iteration(tracer: Tracer, context: Carrying, word: str) -> None:
    """The terminator that hands the carried variables on."""
    values: list[Value] = []
    if context.counter is not None:
        counter, step = context.counter
        values.append((arithmetic("add", counter, step) if word == "continue" else counter).value)
    for name in context.names:
        if name not in tracer.env:
            # The result of a function that returns inside the loop, on a path that does not return.
            continue
        current = tracer.env[name]
        if isinstance(current, Undefined):
            raise fail(f"`{name}` has no value here: {current.why}", code=Code.FLOW)
        parts = leaves(current)
        if name not in context.slots and name not in context.wanted:
            # That result, once it is known.
            if parts:
                context.found[name], context.wanted[name] = current, [slot_of(p) for p in parts]
            continue
        slots = context.wanted[name]
        place = tracer.builder.place
        tracer.at(tracer.frame.assigned.get(name))
        if current is None and name == RESULT:
            raise fail(f"`{tracer.frame.node.name}` returns a value on one path and none on another", code=Code.FLOW)
        if parts is None or len(parts) != len(slots):
            raise fail(
                f"`{name}` is {describe(current)} after the loop's body and was something else before it",
                "a variable that a loop changes keeps its kind",
                code=Code.FLOW,
            )
        for i, part in enumerate(parts):
            slots[i] = join(slots[i], part, name, ("before the loop", "after its body"))
        tracer.builder.place = place
        if not context.probe and context.stable():
            values += [fit(p, s) for p, s in zip(parts, context.slots[name])]
    if context.probe or not context.stable():
        tracer.builder.op([f"{word}"], pure=False)  # thrown away with the attempt
        return
    if context.token:
        values.append(tracer.builder.one_token())
    types = ", ".join(v.ir_type() for v in values)
    tracer.builder.op([f"{word} ", *commas(values), f" : {types}"] if values else [word], pure=False)


# ---- attempts


class Attempt:
    """Records the state of the kernel, to remove operations appended since."""

    def __init__(self, tracer: Tracer):
        builder = tracer.builder
        self.tracer = tracer
        self.regions = list(builder.regions)
        self.length = len(builder.regions[-1].ops)
        self.memory = (builder.written, list(builder.read))
        self.touched = [r.touches_memory for r in self.regions]
        # A copy: the statements traced next assign to the same dictionary.
        self.env = dict(tracer.env)
        self.contexts = list(tracer.contexts)
        self.place = builder.place

    def undo(self) -> None:
        builder = self.tracer.builder
        builder.regions = list(self.regions)
        del builder.regions[-1].ops[self.length :]
        builder.written, builder.read = self.memory[0], list(self.memory[1])
        for region, touched in zip(self.regions, self.touched):
            region.touches_memory = touched
        self.tracer.env = dict(self.env)
        self.tracer.contexts = list(self.contexts)
        builder.place = self.place

    def had_effects(self) -> bool:
        """Returns True if the code traced since then reads or writes memory, has another effect, or assigns a name."""
        builder, env = self.tracer.builder, self.tracer.env
        return (
            any(not op.pure for op in builder.regions[-1].ops[self.length :])
            or (builder.written, builder.read) != self.memory
            or env.keys() != self.env.keys()
            or any(env[name] is not value for name, value in self.env.items())
        )


def carried(tracer: Tracer, body: list[ast.stmt], besides: tuple[str, ...] = ()) -> tuple[list[str], dict]:
    """The variables that a body assigns, and those `besides`, that hold something now, with their slots."""
    names, slots = [], {}
    for name in dict.fromkeys([*besides, *assigned_names(body)]):
        if name not in tracer.env or isinstance(tracer.env[name], Undefined):
            continue
        parts = leaves(tracer.env[name])
        if parts is None:
            continue
        names.append(name)
        slots[name] = [slot_of(p) for p in parts]
    return names, slots


def trace_loop(tracer: Tracer, kind: str, body: list[ast.stmt], besides: tuple[str, ...], run) -> None:
    """Traces a loop until the types it carries are stable.

    `run(context, region, arguments)` traces one iteration into `region`, which has been entered, and returns the text
    of the operation before its carried values.
    """
    names, slots = carried(tracer, body, besides)
    outer = tracer.env
    memory = (tracer.builder.written, list(tracer.builder.read))
    token = False
    probe = any(s.weak for parts in slots.values() for s in parts)
    if RESULT in assigned_names(body) and RESULT not in names:
        names, probe = [*names, RESULT], True
    for _ in range(ATTEMPTS):
        start = Attempt(tracer)
        builder = tracer.builder
        context = Carrying(kind, names, slots, token)
        context.probe = probe
        before = builder.one_token() if token and not probe else None
        initial, arguments, env = [], [], dict(outer)
        if not probe:
            names = [n for n in names if n in slots]
            context.names = names
            for name in names:
                parts = leaves(outer[name])
                initial += [fit(p, s) for p, s in zip(parts, slots[name])]
                args = [Value(s.dtype, s.shape, hint=name.strip("$")) for s in slots[name]]
                arguments += args
                env[name] = rebuild(outer[name], (tensor(a, s.dtype) for a, s in zip(args, slots[name])))
        region = Region()
        if before is not None:
            initial.append(before)
            arguments.append(Value(None, hint="token"))
            builder.written, builder.read = arguments[-1], []
        builder.regions.append(region)
        tracer.env = env
        tracer.contexts.append(context)
        head = run(context, region, initial, arguments)
        tracer.contexts.pop()
        if probe or not context.stable() or region.touches_memory and not token:
            # Names the body defined matter for nothing: the next attempt finds them again.
            slots, token, probe = context.wanted, token or region.touches_memory, False
            start.undo()
            for name, value in context.found.items():
                # Never read before it is assigned; a starting value is needed all the same.
                outer = {**outer, name: rebuild(value, iter([0] * len(leaves(value))))}
            continue
        builder.regions.pop()
        if not token:
            builder.written, builder.read = memory
        finish_loop(tracer, context, region, head, initial, arguments, outer, body, besides)
        return
    raise fail("the types of this loop's variables keep changing", "cast them where they are first assigned", code=Code.FLOW)


def finish_loop(tracer, context, region, head, initial, arguments, outer, body, besides) -> None:
    """Appends the loop itself and gives the variables their values after it."""
    builder = tracer.builder
    if context.counter is not None:
        counter = context.counter[0].value
        initial, arguments = [head.pop("start"), *initial], [counter, *arguments]
    results = [Value(a.type, a.shape, hint=a.hint) for a in arguments]
    pieces: list = [head["text"]] if "text" in head else list(head["pieces"])
    if arguments:
        pieces.append(" iter_values(")
        for i, (argument, value) in enumerate(zip(arguments, initial)):
            pieces += [", " if i else "", Arg(argument), " = ", value]
        types = ", ".join(a.ir_type() for a in arguments)
        pieces.append(f") -> ({types}) " if context.kind == "for" else f") : {types} -> {types} ")
    else:
        pieces.append(" ")
    pieces.append(REGION)
    builder.op(pieces, results, (region,), pure=False)
    rest = iter(results[1:] if context.counter is not None else results)
    env = dict(outer)
    for name in context.names:
        env[name] = rebuild(outer[name], (tensor(next(rest), s.dtype) for s in context.slots[name]))
    line = builder.place.line if builder.place else "?"
    for name in (*assigned_names(body), *besides):
        if name == RESULT and name not in context.names:
            env[name] = None  # the loop returns, but no value
        elif name not in context.names:
            env[name] = Undefined(f"it is assigned only inside the loop at line {line}, which may run zero times")
    if context.token:
        builder.written, builder.read = results[-1], []
    tracer.env = env


# ---- loops


def trace_for(tracer: Tracer, node: ast.For) -> Flow:
    if node.orelse:
        raise tracer.unsupported(node.orelse[0], "`else` after a loop", "set a flag in the loop and test it afterwards")
    iterable = unwrap(tracer.evaluate(node.iter))
    tracer.at(node.iter)
    if isinstance(iterable, SEQUENCES):
        return unroll(tracer, node, list(iterable), Attempt(tracer), forced=True)[0]
    if not isinstance(iterable, KernelRange):
        raise fail(
            f"a loop must run over `range(...)`, `girih.static_range(...)` or a tuple, not over {describe(iterable)}",
            code=Code.OPERAND,
        )
    known = iterable.constant()
    if iterable.static and known is None:
        raise fail("the bounds of `static_range` must be known at compile time", "use `range`, or make them constexpr", code=Code.NOT_CONSTANT)
    if known is not None:
        nested = tracer.unrolled * max(1, len(known))
        if iterable.static:
            iterable.items()
        if iterable.static or (len(known) <= UNROLL and nested <= UNROLL_NESTED):
            flow, done = unroll(tracer, node, list(known), Attempt(tracer), forced=iterable.static)
            if done:
                return flow
    for kind in ("for", "loop"):
        start = Attempt(tracer)
        try:
            return runtime_for(tracer, node, iterable, kind)
        except Again as again:
            if (
                not isinstance(again.context, Carrying)
                or again.context.kind != kind
                or len(start.contexts) != tracer.contexts.index(again.context)
            ):
                raise
            start.undo()
    raise AssertionError("a loop of the second kind can be left")


def unroll(tracer: Tracer, node: ast.For, items: list, start: Attempt, forced: bool) -> tuple[Flow, bool]:
    """One copy of the body for each item; the second result is false when a `break` forbids it."""
    context = Context("unrolled")
    tracer.unrolled *= max(1, len(items))
    outer = dict(tracer.env)
    try:
        tracer.env = dict(outer)
        tracer.contexts.append(context)
        for item in items:
            tracer.at(node.target)
            tracer.assign(node.target, item)
            flow = tracer.block(node.body)
            if flow is Flow.BREAK:
                break
            if flow is Flow.RETURN:
                tracer.contexts.pop()
                return flow, True
        tracer.contexts.pop()
        return Flow.NORMAL, True
    except Again as again:
        if again.context is not context:
            raise
        start.undo()
        tracer.env = outer
        if forced:
            tracer.at(node)
            raise fail(
                "an unrolled loop cannot be left by a condition known only at run time",
                "loop over `range` instead of `static_range`",
                code=Code.UNSUPPORTED,
            ) from None
        return Flow.NORMAL, False
    finally:
        tracer.unrolled //= max(1, len(items))


def bounds_of(iterable: KernelRange) -> tuple[tensor, tensor, tensor, ty.DType]:
    """Start, stop and step in one type: 64 bits if one of them has 64."""
    parts = (iterable.start, iterable.stop, iterable.step)
    types = [p.dtype for p in parts if isinstance(p, tensor)]
    dtype = ty.int32
    for t in types:
        dtype = ty.promote(dtype, t) if not t.is_bool() else dtype
    for p in parts:
        if is_number(p):
            low, high = ty.integer_range(dtype)
            dtype = dtype if low <= p <= high else ty.int64
    start, stop, step = (cast(p, dtype) if isinstance(p, tensor) else constant(p, dtype) for p in parts)
    return start, stop, step, dtype


def runtime_for(tracer: Tracer, node: ast.For, iterable: KernelRange, kind: str) -> Flow:
    if not isinstance(node.target, ast.Name):
        raise tracer.unsupported(node.target, "several targets of a loop over `range`", "use one name")
    target = node.target.id
    backwards = is_number(iterable.step) and iterable.step < 0
    if backwards:
        # Count the iterations up and compute the value from the count.
        first, step = iterable.start, iterable.step
        length = (
            (first - iterable.stop + (-step - 1)) // -step
            if isinstance(first, int) and isinstance(iterable.stop, int)
            else integer_ceil(first, iterable.stop, -step)
        )
        iterable = KernelRange(0, length)
    start, stop, step_value, dtype = bounds_of(iterable)
    signed = "" if dtype.kind == "int" else "unsigned "

    def value_of(counter: tensor) -> Any:
        return first + counter * step if backwards else counter

    def run(context: Carrying, region: Region, initial: list, arguments: list) -> dict:
        counter = Value(dtype, (), hint=target if not backwards else "count")
        it = tensor(counter, dtype)
        head: dict = {}
        if kind == "for":
            head["pieces"] = [
                f"for {signed}", Arg(counter), " in (", start.value, " to ", stop.value, ", step ", step_value.value,
                f") : {counter.ir_type()}",
            ]  # fmt: skip
        else:
            context.counter = (it, step_value)
            head = {"text": "loop", "start": start.value}
            stay = compare("less_than", it, stop)
            leave_unless(tracer, context, stay)
        tracer.env[target] = value_of(it)
        if tracer.watch is not None:
            tracer.watch.name(tracer.frame.source, node.target, target, tracer.env[target], "assigned")
        flow = tracer.block(node.body)
        if flow is Flow.NORMAL:
            end_iteration(tracer, context, "continue")
        elif flow is Flow.RETURN:
            raise Again(tracer.frame)
        return head

    trace_loop(tracer, kind, node.body, (target,), run)
    return Flow.NORMAL


def integer_ceil(first: Any, stop: Any, step: int) -> tensor:
    """How many steps go from `first` down to `stop`."""
    distance = first - stop
    return (distance + (step - 1)) // step


def leave_unless(tracer: Tracer, context: Carrying, condition: tensor) -> None:
    """`if condition {} else { break }`."""
    builder = tracer.builder
    stay, go = Region(), Region()
    memory = (builder.written, list(builder.read))
    builder.regions.append(go)
    end_iteration(tracer, context, "break")
    builder.regions.pop()
    builder.written, builder.read = memory
    builder.op(["if ", condition.value, " ", REGION, " else ", REGION], (), (stay, go), pure=False)


def trace_while(tracer: Tracer, node: ast.While) -> Flow:
    if node.orelse:
        raise tracer.unsupported(node.orelse[0], "`else` after a loop", "set a flag in the loop and test it afterwards")

    def run(context: Carrying, region: Region, initial: list, arguments: list) -> dict:
        condition = unwrap(tracer.evaluate(node.test))
        tracer.at(node.test)
        if isinstance(condition, tensor):
            leave_unless(tracer, context, scalar_truth(condition))
        elif not condition and not context.probe:
            end_iteration(tracer, context, "break")
            return {"text": "loop"}
        flow = tracer.block(node.body)
        if flow is Flow.NORMAL:
            end_iteration(tracer, context, "continue")
        elif flow is Flow.RETURN:
            raise Again(tracer.frame)
        return {"text": "loop"}

    # The condition is part of every iteration, and may name values.
    trace_loop(tracer, "loop", [ast.copy_location(ast.Expr(node.test), node.test), *node.body], (), run)
    return Flow.NORMAL


# ---- branches


def scalar_truth(condition: Any) -> tensor:
    condition = truth(condition)
    if condition.shape:
        raise fail(
            f"a condition must be one truth value, but {condition.describe()} has {condition.numel}",
            "for a choice by element use `girih.where(condition, x, y)`; for all or any of them, reduce",
            code=Code.CONDITION,
        )
    return condition


def trace_if(tracer: Tracer, node: ast.If) -> Flow:
    condition = unwrap(tracer.evaluate(node.test))
    tracer.at(node.test)
    if not isinstance(condition, tensor):
        return tracer.block(node.body if static(condition, "the condition") else node.orelse)
    return branch(tracer, scalar_truth(condition), lambda: tracer.block(node.body), lambda: tracer.block(node.orelse))


def branch(tracer: Tracer, condition: tensor, then, other) -> Flow:
    """Tile IR's `if`; `then` and `other` trace its sides."""
    builder = tracer.builder
    outer = tracer.env
    place = builder.place
    memory = (builder.written, list(builder.read))
    start = builder.one_token() if memory[0] is not None or memory[1] else None
    if start is None:
        # Made only if a side turns out to need it; unused, it is not printed.
        start = Value(None, hint="start")
        builder.op(["make_token : token"], (start,))
    sides = []
    for trace in (then, other):
        region = Region()
        builder.regions.append(region)
        builder.written, builder.read = start, []
        tracer.env = dict(outer)
        tracer.contexts.append(Context("if"))
        flow = trace()
        tracer.contexts.pop()
        builder.regions.pop()
        sides.append((region, flow, tracer.env, (builder.written, list(builder.read))))
    builder.place = place
    live = [s for s in sides if s[1] is Flow.NORMAL]
    give_result([s[2] for s in live])
    merged, slots = merge(outer, [s[2] for s in live], place)
    touched = any(s[0].touches_memory for s in sides)
    for region, _, env, (written, read) in live:
        builder.regions.append(region)
        builder.written, builder.read = written, read
        values = [fit(p, s) for n, ss in slots.items() for p, s in zip(leaves(env[n]), ss)]
        if touched:
            values.append(builder.one_token())
        types = ", ".join(v.ir_type() for v in values)
        if values:
            builder.op(["yield ", *commas(values), f" : {types}"], pure=False)
        builder.regions.pop()
    if not live:
        # The second side follows the `if` instead of standing in it, so that its terminator ends this region.
        builder.op(["if ", condition.value, " ", REGION], (), (sides[0][0],), pure=False)
        builder.regions[-1].ops += sides[1][0].ops
        builder.written, builder.read = memory
        tracer.env = dict(outer)
        return sides[1][1]
    results = [Value(s.dtype, s.shape, hint=n.strip("$")) for n, ss in slots.items() for s in ss]
    if touched:
        results.append(Value(None, hint="token"))
    pieces: list = ["if ", condition.value]
    if results:
        pieces.append(f" -> ({', '.join(r.ir_type() for r in results)})")
    pieces += [" ", REGION]
    regions = [sides[0][0]]
    if results or sides[1][0].ops:
        pieces += [" else ", REGION]
        regions.append(sides[1][0])
    builder.op(pieces, results, regions, pure=False)
    rest = iter(results)
    for name, ss in slots.items():
        merged[name] = rebuild(live[0][2][name], (tensor(next(rest), s.dtype) for s in ss))
    builder.written, builder.read = (results[-1], []) if touched else memory
    tracer.env = merged
    return Flow.NORMAL


def give_result(envs: list[dict]) -> None:
    """Gives the function's result, which is never read where it did not return, the same form on both sides."""
    results = [env.get(RESULT) for env in envs]
    returned = next((r for r in results if leaves(r)), None)
    if returned is not None:
        for env in envs:
            if isinstance(env.get(RESULT, UNASSIGNED), Undefined):
                env[RESULT] = rebuild(returned, iter([0] * len(leaves(returned))))


def merge(outer: dict, envs: list[dict], place) -> tuple[dict, dict[str, list[Slot]]]:
    """The variables after both sides, and the types of those that differ."""
    merged = dict(outer)
    slots: dict[str, list[Slot]] = {}
    names = dict.fromkeys(n for env in envs for n in env)
    line = place.line if place else "?"
    for name in names:
        found = [
            env.get(name, Undefined(f"it is assigned only on one side of the `if` at line {line}")) for env in envs
        ]
        undefined = next((f for f in found if isinstance(f, Undefined)), None)
        if undefined is not None:
            merged[name] = undefined
            continue
        parts = [leaves(f) for f in found]
        # If one side leaves, its values are visible only inside it.
        before = found[1:] or [outer.get(name)]
        if (
            all(same(found[0], f) for f in before)
            or len(envs) == 1
            and not any(isinstance(p, tensor) for p in parts[0] or ())
        ):
            merged[name] = found[0]
            continue
        if any(p is None or len(p) != len(parts[0]) for p in parts):
            kinds = [describe(f) for f in found]
            merged[name] = Undefined(
                f"it is {kinds[0]} on one side of the `if` at line {line} and "
                f"{'another' if kinds[0] == kinds[-1] else kinds[-1]} on the other",
                "use it inside of the `if`, or give it the same kind of value on both sides",
            )
            continue
        slots[name] = []
        for group in zip(*parts):
            slot = slot_of(group[0])
            for leaf in group[1:]:
                slot = join(slot, leaf, name, ("on one side of the `if`", "on the other"))
            slots[name].append(slot)
    return merged, slots
