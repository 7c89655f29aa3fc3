"""`backend="girih"` is known however PyTorch comes to know it: by the entry point, by `import girih.torch`, by both."""

import itertools
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

# Steps that a program may take before it compiles, in any order.
STEPS = {
    "import": "import girih.torch",
    "list": "assert 'girih' in torch._dynamo.list_backends()",
    "lookup": "torch._dynamo.backends.registry.lookup_backend('girih')",
    "compile": "assert torch.equal(torch.compile(lambda x: x * 2, backend='girih')(torch.ones(3)), torch.full((3,), 2.0))",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that makes the checkout look installed: what pip would write of its entry points."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "girih-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: girih\nVersion: 0\n")
    project = (ROOT / "pyproject.toml").read_text()
    (line,) = [text for text in project.splitlines() if text.startswith("girih = ") and "girih.torch:" in text]
    (info / "entry_points.txt").write_text("[torch_dynamo_backends]\n" + line.replace('"', "") + "\n")
    return folder


# Runs lists of steps, each list in a process of its own that has imported PyTorch and nothing else.
DRIVER = """
import os, sys, traceback
import torch, torch._dynamo

failed = []
for order in {orders}:
    child = os.fork()
    if child == 0:
        try:
            for step in order:
                exec({steps}[step])
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        failed.append(order)
assert not failed, failed
"""


def run(orders, *folders):
    path = os.pathsep.join([*map(str, folders), *filter(None, sys.path)])
    program = DRIVER.format(orders=orders, steps=STEPS)
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_name_is_known_where_the_package_is_installed(installed):
    before = [order for n in (0, 1, 2) for order in itertools.permutations(("import", "list", "lookup"), n)]
    run([(*order, "compile", "import") for order in before], installed)


def test_the_name_is_known_after_the_import():
    run([(*order, "compile") for order in [("import",), ("import", "list"), ("import", "lookup")]])
