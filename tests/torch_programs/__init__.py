"""Random functions of tensors and numbers, compared between PyTorch and `torch.compile(f, backend="girih")`.

`program` says what a function is and runs it in PyTorch, with a bound on what rounding may change. `generate` makes one
of a seed, out of the templates of `operations`. `compare` finds the first difference, `group` compiles several at once
and `shrink` makes one that fails small. `tests/torch_random.py` is the command.
"""
