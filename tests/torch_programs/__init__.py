"""Random functions of tensors and numbers, compared between PyTorch and `torch.compile(f, backend="girih")`.

`program` represents a function and runs it in PyTorch, with a bound on rounding errors. `generate` makes one
of a seed, out of the templates of `operations`. `compare` finds the first difference, `group` compiles several at once
and `shrink` makes one that fails small. `tests/torch_random.py` is the command.
"""
