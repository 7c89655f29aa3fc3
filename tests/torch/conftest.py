"""`--tensors cuda` makes the tests' tensors on the GPU, where Girih then runs what it compiles.

    python -m pytest tests/torch --tensors cuda
"""

import pytest
import torch

# Files and tests that are of the processor, and why.
ENDS = "an error that a kernel meets ends the GPU's context, for PyTorch as for Girih"
ELSEWHERE = {
    "test_cuda.py": "a stand-in for the driver is what these are about",
    "test_onnx.py": "files are compared on the processor",
    "test_an_index_out_of_range_is_the_error_of_pytorch": ENDS,
    "test_indices_of_index_fill_count_from_the_end_too": ENDS,
    "test_a_number_that_multiplies_or_divides_is_not_rounded": "PyTorch does not round on GPUs what it rounds on processors",
}


def pytest_addoption(parser):
    parser.addoption("--tensors", default="cpu", choices=("cpu", "cuda"), help="where the tests' tensors are")


@pytest.fixture(autouse=True)
def device(request):
    where = request.config.getoption("--tensors")
    if where == "cpu":
        yield
        return
    for name in (request.path.name, request.node.originalname):
        if name in ELSEWHERE:
            pytest.skip(ELSEWHERE[name])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_default_device(where)
    yield
    torch.set_default_device(None)
