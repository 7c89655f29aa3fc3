"""Whole training steps as compiled functions: `backward`, optimizers and all. `test_whole_steps.py` runs this with a time-out.

    python tests/torch/whole_steps.py [--backend girih] [NAME ...]

Each step is taken a few times compiled and as it is, from the same weights, and the losses and weights are compared. A line for
each step says "same NAME", or what differs.
"""

import argparse
import copy
import sys
import warnings

import torch
import torch.nn.functional as F

import girih.torch  # noqa: F401

STEPS = {}
#: Where a compiled step rounds at other places than eager: products of bfloat16.
ROUGH = {"mixed_precision": 3e-2}


def step(make):
    STEPS[make.__name__] = make
    return make


def mlp(width=16):
    return torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = torch.nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.layer(self.embedding(x)))


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = torch.nn.GRU(8, 6, batch_first=True), torch.nn.Linear(6, 1)

    def forward(self, x):
        return self.head(self.cell(x[None])[0])


def batches(n=3, *size):
    return [torch.randn(*(size or (4, 8))) for _ in range(n)]


def simple(model, optimizer, loss=lambda y: y.pow(2).mean()):
    """The commonest step."""

    def run(x):
        optimizer.zero_grad()
        value = loss(model(x))
        value.backward()
        optimizer.step()
        return value.detach()

    return run


@step
def sgd():
    model = mlp()
    return model, simple(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)), batches()


@step
def adam():
    model = mlp()
    return model, simple(model, torch.optim.Adam(model.parameters(), 0.01)), batches()


@step
def adamw_clipped_and_scheduled():
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)

    def run(x):
        optimizer.zero_grad(set_to_none=False)
        value = model(x).abs().mean()
        value.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        return value.detach(), norm

    return model, run, batches()


@step
def accumulated():
    model = mlp()
    optimizer = torch.optim.RMSprop(model.parameters(), 0.01)

    def run(x):
        optimizer.zero_grad()
        total = 0.0
        for part in x.split(2):
            value = model(part).pow(2).mean() / 2
            value.backward()
            total = total + value.detach()
        optimizer.step()
        return total

    return model, run, batches()


@step
def mixed_precision():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=True)

    def run(x):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            value = model(x).float().pow(2).mean()
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        return value.detach()

    return model, run, batches()


@step
def convolutions():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(4, 2),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    return model, simple(model, optimizer, lambda y: F.cross_entropy(y, torch.tensor([0, 1]))), batches(2, 2, 3, 8, 8)


@step
def tied_decoder():
    model = Decoder()
    # Adam would make large steps of the rounding that the gradient of a key's bias is.
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    tokens = [torch.randint(11, (2, 5)) for _ in range(2)]
    loss = lambda y: F.cross_entropy(y.flatten(0, 1), torch.arange(10) % 11)  # noqa: E731
    return model, simple(model, optimizer, loss), tokens


@step
def recurrent():
    model = Recurrent()
    return model, simple(model, torch.optim.SGD(model.parameters(), 0.1)), batches(2)


@step
def gradient_of_an_input():
    model = mlp()

    def run(x):
        x = x.detach().requires_grad_()
        energy = model(x).sum()
        return energy.detach(), -torch.autograd.grad(energy, x)[0]

    return model, run, batches(2)


@step
def gradient_of_a_given_input():
    model = mlp()

    def run(x):
        return torch.autograd.grad(F.linear(x, model[0].weight).softmax(-1).pow(3).sum(), x)[0]

    return model, run, [x.requires_grad_() for x in batches(2)]


@step
def penalty():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def run(x):
        optimizer.zero_grad()
        x = x.detach().requires_grad_()
        energy = model(x).sum()
        (slope,) = torch.autograd.grad(energy, x, create_graph=True)
        value = energy + slope.pow(2).sum()
        value.backward()
        optimizer.step()
        return value.detach()

    return model, run, batches(2)


@step
def checkpointed():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    run = lambda x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)  # noqa: E731
    return model, simple(run, optimizer), batches(2)


@step
def evaluated_in_between():
    """An evaluation without gradients in the same function, of recurrent layers, which Dynamo captures then."""
    model, cell = mlp(), torch.nn.LSTM(8, 8).eval()
    train = simple(model, torch.optim.SGD(model.parameters(), 0.1))

    def run(x):
        with torch.no_grad():
            x = cell(x)[0]
        return train(x)

    return model, run, batches(2)


def results(name, backend):
    torch.manual_seed(3)
    model, run, inputs = STEPS[name]()
    if backend:
        # One of them as native code: the others are about what Dynamo does, and the evaluator needs no C compiler.
        options = {"device": "eval"} if backend == "girih" and name != "sgd" else None
        run = torch.compile(run, backend=backend, options=options)
    # Where a step takes it, the loss is a tensor; after it the weights count.
    given = [copy.deepcopy(torch.utils._pytree.tree_leaves(run(x))) for x in inputs]
    return given, [p.detach().clone() for p in (*model.parameters(), *model.buffers())]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="girih")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = False
    for name in args.names or STEPS:
        torch._dynamo.reset()
        try:
            allowed = ROUGH.get(name, 1e-4)
            torch.testing.assert_close(results(name, args.backend), results(name, None), rtol=2 * allowed, atol=allowed / 5)
        except Exception as e:
            failed = True
            print(f"{name}: {str(e).splitlines()[0]}", flush=True)
            continue
        print(f"same {name}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
