"""The program of each process of `make test-torchrun`: a model compiled by Girih inside PyTorch's own engines for many
processes.

    torchrun --nproc-per-node 2 tests/torchrun/program.py KIND OUT.pt

KIND is `ddp` (data parallel), `tensor` (`parallelize_module`) or `fsdp` (`fully_shard`). The first process writes the
outcome of the training: the loss of each step, and the parameters. Started alone, it gives the results that the others are
compared with.
"""

import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

import girih.torch

STEPS, BATCH, WIDTH, HIDDEN = 6, 16, 32, 64


class Block(torch.nn.Module):
    """The feed-forward half of a Llama layer."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.RMSNorm(WIDTH, eps=1e-5)
        self.gate = torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(), Block())


def batches():
    torch.manual_seed(1)
    return [(torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)) for _ in range(STEPS)]


def main(kind, path):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model, part = net(), slice(None)
    if kind == "ddp":
        part = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        engine = torch.nn.parallel.DistributedDataParallel(model)
    elif kind == "tensor":
        engine = tensor_parallel(model, size)
    elif kind == "fsdp":
        part = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        engine = fully_sharded(model, size)
    compiled = torch.compile(engine, backend="girih")
    optimizer = torch.optim.SGD(engine.parameters(), lr=0.1)
    losses = []
    for x, wanted in batches():
        loss = F.mse_loss(compiled(x[part]), wanted[part])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        losses.append(whole.item() / size)
    result = {name: full(p).detach().clone() for name, p in model.named_parameters()}
    report = girih.torch.report()
    if rank == 0:
        torch.save({"losses": losses, "parameters": result, "report": str(report)}, path)
    dist.destroy_process_group()


def full(parameter):
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter


def tensor_parallel(model, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {"gate": ColwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
    mesh = init_device_mesh("cpu", (size,))
    for block in model:
        parallelize_module(block, mesh, plan)
    return model


def fully_sharded(model, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (size,))
    for block in model:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


main(*sys.argv[1:])
