"""What is said of an argument that does not fit names the class that the caller passed."""
import cuda.tile as ct
import torch


@ct.kernel
def filled(x, n: ct.Constant[int]):
    ct.store(x, (0,), ct.full((16,), n, ct.float32))


x = torch.zeros(16, device="cuda")
stream = torch.cuda.current_stream().cuda_stream
for wrong, name in [(x, "Tensor"), (torch.nn.Parameter(x), "Parameter"), ([x], "list"), ("s", "str")]:
    try:
        ct.launch(stream, (1,), filled, (x, wrong))
    except TypeError as error:
        assert f"'{name}'" in str(error), error
    else:
        raise AssertionError(f"a {name} was taken as a constant")
ct.launch(stream, (1,), filled, (x, 3))
assert (x == 3).all()
