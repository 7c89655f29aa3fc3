"""`--tensors cuda` makes the tests' tensors on the GPU, where Girih then runs what it compiles."""

import pytest
import torch

# Files whose tests are of the processor's memory, and why.
ELSEWHERE = {
    "test_cuda.py": "a stand-in for the driver is what these are about",
    "test_onnx.py": "files are compared on the processor",
}


def pytest_addoption(parser):
    parser.addoption("--tensors", default="cpu", choices=("cpu", "cuda"), help="where the tests' tensors are")


@pytest.fixture(autouse=True)
def device(request):
    where = request.config.getoption("--tensors")
    if where == "cpu":
        yield
        return
    if request.path.name in ELSEWHERE:
        pytest.skip(ELSEWHERE[request.path.name])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with torch.device(where):
        yield
