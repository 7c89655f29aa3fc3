"""Random functions under random stacks of function transforms, as source.

A function takes `x [2, 4]` and gives a tensor. It is a chain of `layers`, inside a stack of `grad`, `vjp`, `jvp`, `jacfwd`, `jacrev`,
`hessian`, `vmap`, `functional_call`, `checkpoint` and `torch.autograd.grad`. Everything is float64 and smooth, so that PyTorch's own result is the
expectation, up to rounding.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import func
from torch.utils.checkpoint import checkpoint

from .layers import COLUMNS, LAYERS, ROWS, constants

__all__ = ["Stack", "damages", "differences", "make", "namespace"]


def namespace():
    return {"__name__": "functions", "torch": torch, "F": F, "func": func, "checkpoint": checkpoint, "tree": tree, **constants()}


def tree(value):
    """The sum of what a dict of gradients holds, as `[2, 4]`."""
    total = sum(v.sum() for v in value.values())
    return total.expand(ROWS, COLUMNS) * 1.0


#: From a function of `x [2, 4]` to `[2, 4]` to another. Sizes stay, so that they can be stacked.
TRANSFORMS = {
    "grad": "lambda x: func.grad(lambda a: {f}(a).pow(2).sum())(x)",
    "grad_and_value": "lambda x: sum(func.grad_and_value(lambda a: {f}(a).sin().sum())(x))",
    "vjp": "lambda x: func.vjp({f}, x)[1](S)[0]",
    "jvp": "lambda x: func.jvp({f}, (x,), (S,))[1]",
    "jacrev": "lambda x: func.jacrev({f})(x).tanh().sum((0, 1))",
    "jacfwd": "lambda x: func.jacfwd({f})(x).tanh().sum((2, 3))",
    "hessian": "lambda x: func.hessian(lambda a: {f}(a).sin().sum())(x).sum((0, 1))",
    "vmap": "lambda x: func.vmap({f})(torch.stack([x, x * 0.5])).sum(0)",
    "vmap_columns": "lambda x: func.vmap(lambda a: {f}(a[:, None] * S), in_dims=1, out_dims=0)(x).sum(0)",
    "autograd": "lambda x: torch.autograd.grad({f}(a := x.detach().clone().requires_grad_()).pow(2).sum(), a)[0]",
    "of_weights": "lambda x: tree(func.grad(lambda p: {f}(func.functional_call(M, p, (x,))).pow(2).sum())(dict(M.named_parameters())))",
    "checkpoint": "lambda x: checkpoint({f}, x, use_reentrant=False)",
    "with_aux": "lambda x: sum(func.grad(lambda a, s: (({f}(a) * s).sum(), {f}(s)), argnums=0, has_aux=True)(x, S))",
    "of_both": "lambda x: sum(func.grad(lambda a, s: ({f}(a) * {f}(s)).sum(), argnums=(0, 1))(x, S))",
    "product": "lambda x: func.jvp(func.grad(lambda a: {f}(a).pow(2).sum()), (x,), (S,))[1]",
    "jacrev_chunked": "lambda x: func.jacrev({f}, chunk_size=3)(x).sin().sum((0, 1))",
    "vmap_chunked": "lambda x: func.vmap({f}, in_dims=2, chunk_size=2)(torch.stack([x, x * 0.5, S], 2)).sum(0)",
    "ensemble": "lambda x: func.vmap(lambda p: {f}(func.functional_call(M, p, (x,))))({{k: torch.stack([p, p * 0.5]) for k, p in M.named_parameters()}}).sum(0)",
    "per_sample": "lambda x: func.vmap(func.grad(lambda w, a: {f}(a * w).sin().sum()), in_dims=(None, 0))(x[0], torch.stack([x, S])).sum(0).expand(2, 4) * 1.0",
    "second": "lambda x: torch.autograd.grad(torch.autograd.grad({f}(a := x.detach().clone().requires_grad_()).sin().sum(), a, create_graph=True)[0].pow(2).sum(), a)[0]",
}  # fmt: skip


@dataclass(frozen=True)
class Stack:
    """A function: its layers, innermost first, and the transforms around it, innermost first."""

    layers: tuple[str, ...]
    transforms: tuple[str, ...]

    def lines(self, name="f") -> str:
        lines = [f"def {name}_0(x):"]
        lines += [f"    x = {layer.format(x='x')}" for layer in self.layers] + ["    return x"]
        for at, transform in enumerate(self.transforms):
            lines.append(f"{name}_{at + 1} = {TRANSFORMS[transform].format(f=f'{name}_{at}')}")
        lines.append(f"{name} = {name}_{len(self.transforms)}")
        return "\n".join(lines)

    def text(self) -> str:
        return f"# tests/torch_programs/transforms.py: {' of '.join(reversed(self.transforms))}\n{self.lines()}\n"

    def smaller(self):
        """Functions with a layer or a transform less."""
        for at in range(len(self.transforms)):
            yield replace(self, transforms=self.transforms[:at] + self.transforms[at + 1 :])
        for at in range(len(self.layers)) if len(self.layers) > 1 else ():
            yield replace(self, layers=self.layers[:at] + self.layers[at + 1 :])


def make(rng: random.Random) -> Stack:
    """A function that PyTorch runs."""
    while True:
        layers = tuple(rng.choice(LAYERS) for _ in range(rng.choice((1, 1, 2, 3))))
        depth = rng.choice((1, 1, 2, 2, 3))
        names = list(TRANSFORMS)
        stack = Stack(layers, tuple(rng.choice(names) for _ in range(depth)))
        if not damages(stack) and result(stack) is not None:
            return stack


def damages(stack) -> bool:
    """True if Dynamo's trace of a function damages PyTorch, whatever the backend.

    Forward-mode AD gives weights of a layer norm a tangent of zeros without memory. Fake tensors refuse it, and the message of that
    refusal prints dual numbers, which leaves the dispatcher without its keys for derivatives until Python happens to collect what the
    traceback holds. Until then functions end in an assertion of C++, and later ones may end the process. (The same happens with
    `backend="eager"`; of `FakeTensorMode` alone too: `with FakeTensorMode() as m: func.jvp(lambda x: F.layer_norm(x, (4,), b), (x,), (x,))`.)
    Others do it as well (a second `vmap` of `hessian`), so that `tests/torch_random.py` looks at each group in a process of its own;
    these are left out since they cost a group of ten each time.
    """
    forward = {"jvp", "jacfwd", "hessian"} & set(stack.transforms)
    return bool(forward) and any(layer in ("N({x})", "F.layer_norm({x}, (4,), B, B)") for layer in stack.layers)


def argument():
    return torch.linspace(-1.1, 1.3, ROWS * COLUMNS, dtype=torch.float64).reshape(ROWS, COLUMNS)


def result(stack, x=None):
    """PyTorch's result; None where it raises, or gives a number that is not finite."""
    space = namespace()
    try:
        exec(stack.lines(), space)
        value = space["f"](argument() if x is None else x)
    except Exception:
        return None
    return value.detach() if value.shape == (ROWS, COLUMNS) and bool(value.isfinite().all()) else None


def compiled(stacks, backend="girih", **options):
    """The functions as one that is compiled, and gives all of their results."""
    space = namespace()
    for at, stack in enumerate(stacks):
        exec(stack.lines(f"f{at}"), space)
    calls = ", ".join(f"f{at}(x)" for at in range(len(stacks)))
    exec(f"def group(x):\n    return ({calls},)", space)
    return torch.compile(space["group"], backend=backend, **options)


def of_f32(stack) -> bool:
    """True if PyTorch computes with a constant of f32: the slope of `hardsigmoid` is 1/6 in f32, for f64 too."""
    return any("hardsigmoid" in layer for layer in stack.layers)


def is_near(stack, value, wanted) -> bool:
    """True if a result differs by no more than 32 times what the argument's last bits are worth: `sin` of a million amplifies them."""
    drawn = torch.Generator().manual_seed(0)
    signs = [torch.randint(0, 2, wanted.shape, generator=drawn).double() * 2 - 1 for _ in range(3)]
    disturbed = [result(stack, argument() * (1 + sign * torch.finfo(torch.float64).eps)) for sign in signs]
    apart = max(((d - wanted).abs().max().item() for d in disturbed if d is not None), default=0.0)
    return bool((value - wanted).abs().max() <= 32 * apart)


def differences(stacks, backend="girih", grad=False, **options):
    """Which functions give something else compiled than by themselves, and what: (stack, sentence)."""
    torch._dynamo.reset()
    run = compiled(stacks, backend, **options)
    found = []
    with torch.no_grad():
        # `torch.autograd.grad` needs gradients to be recorded.
        grad = grad or any(result(stack) is None for stack in stacks)
    with torch.set_grad_enabled(grad):
        given = run(argument())
    for stack, value in zip(stacks, given):
        wanted, value = result(stack), value.detach()
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            found.append((stack, f"is {value.dtype}{list(value.shape)}, not {wanted.dtype}{list(wanted.shape)}"))
        elif not torch.allclose(value, wanted, rtol=1e-7, atol=1e-7 if of_f32(stack) else 1e-9) and not is_near(stack, value, wanted):
            found.append((stack, f"is {value.tolist()}, not {wanted.tolist()}"))
        elif value.stride() != wanted.stride():
            found.append((stack, f"has strides {value.stride()}, not {wanted.stride()}"))
    return found
