"""``pytest -p girih.cutile`` runs a suite written for a GPU."""

import os

SUITE = """
    import cupy as cp
    import cuda.tile as ct
    import pytest

    @ct.kernel
    def doubles(x, y):
        i = ct.bid(0)
        ct.store(y, (i,), ct.load(x, (i,), (8,)) * 2)

    @ct.kernel
    def says(x):
        ct.printf("hello\\n")

    @ct.kernel
    def gathers(x, y):
        ct.store(y, (0,), ct.gather(x, ct.arange(8, dtype=ct.int32) + 1000, check_bounds=False))

    def test_doubles():
        x = cp.arange(16, dtype=cp.float32)
        y = cp.zeros_like(x)
        ct.launch(cp.cuda.get_current_stream(), (2,), doubles, (x, y))
        cp.testing.assert_array_equal(y, x * 2)

    def test_fails():
        assert False

    def test_says(capsys):
        ct.launch(cp.cuda.get_current_stream(), (1,), says, (cp.zeros(1),))
        assert capsys.readouterr().out == "hello\\n"

    def test_gathers():
        ct.launch(cp.cuda.get_current_stream(), (1,), gathers, (cp.zeros(8), cp.zeros(8)))
"""


def test_a_suite(write, run):
    suite = write("suite/test_suite.py", SUITE)
    # The conftest imports CuPy before any test does.
    write("suite/conftest.py", "import cupy\nimport cuda.tile\n")
    here = run("-m", "pytest", "-p", "girih.cutile", "--girih-check", "-p", "no:cacheprovider", "-q", suite)
    assert here.returncode == 1
    assert "2 failed, 2 passed" in here.stdout, here.stdout
    assert "OutOfBoundsError" in here.stdout
    assert "kernels run on cpu, every access checked" in run(
        "-m", "pytest", "-p", "girih.cutile", "--girih-check", "-k", "doubles", suite
    ).stdout


def test_options(write, run):
    suite = write("suite/test_suite.py", "def test_nothing(): pass")
    here = run("-m", "pytest", "-p", "girih.cutile", "--girih-device", "eval", suite)
    assert here.returncode == 0 and "kernels run on eval" in here.stdout
    here = run("-m", "pytest", "-p", "girih.cutile", "--girih-device", "gpu", suite)
    assert here.returncode == 4 and "gpu" in here.stderr


CHILDREN = """
    import multiprocessing
    import subprocess
    import sys

    from cuda.tile._compile import _find_compiler_bin, _get_max_supported_bytecode_version

    def child(queue):
        import cupy

        queue.put(int(cupy.asnumpy(cupy.ones(3)).sum()))

    def test_a_subprocess(tmp_path):
        done = subprocess.run([sys.executable, "PROGRAM"], capture_output=True, text=True)
        assert done.stdout.strip() == "8", done.stderr

    def test_a_spawned_process():
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        process.join(60)
        assert process.exitcode == 0 and queue.get(timeout=10) == 3

    def test_the_compiler_is_asked_for(tmp_path):
        assert _get_max_supported_bytecode_version(str(tmp_path), allow_dev=True).as_string() == "13.4"
        version = subprocess.run([_find_compiler_bin().path, "--version"], capture_output=True, text=True)
        assert "girih" in version.stdout.lower()
"""

PROGRAM = """
    import cupy as cp
    import cuda.tile as ct

    @ct.kernel
    def adds_one(x):
        ct.store(x, (0,), ct.load(x, (0,), (8,)) + 1)

    x = cp.zeros(8)
    ct.launch(0, (1,), adds_one, (x,))
    print(int(cp.asnumpy(x).sum()))
"""


def test_children(write, run):
    program = write("program.py", PROGRAM)
    suite = write("suite/test_children.py", CHILDREN.replace("PROGRAM", str(program)))
    plugin = ("-m", "pytest", "-p", "girih.cutile", "-p", "no:cacheprovider", "-q", suite)
    here = run(*plugin, "--girih-children")
    assert here.returncode == 0 and "3 passed" in here.stdout, here.stdout
    # Off unless asked for.
    here = run(*plugin, "-k", "subprocess")
    assert here.returncode == 1, here.stdout
    assert "the test started another Python, which ran without Girih: --girih-children" in here.stdout, here.stdout
    # A test that fails by itself gets no such hint.
    alone = write("suite/test_alone.py", "def test_alone(): assert False")
    here = run(*plugin[:-1], alone)
    assert here.returncode == 1 and "without Girih" not in here.stdout, here.stdout


def test_an_environment_that_redirects(write, run):
    from girih.cutile.hosting import SITE

    program = write("program.py", "import sys; print('girih.cutile' in sys.modules)")
    hidden = write("hidden/sitecustomize.py", "print('hidden')")
    path = os.pathsep.join([SITE, str(hidden.parent), os.environ.get("PYTHONPATH", "")])
    assert run(program, env={"PYTHONPATH": path}).stdout == "hidden\nFalse\n"
    assert run(program, env={"PYTHONPATH": path, "GIRIH_CUTILE": "1"}).stdout == "hidden\nTrue\n"
    here = run(program, env={"PYTHONPATH": path, "GIRIH_CUTILE": "perhaps"})
    assert "must be 1 or 0" in here.stderr and here.stdout.startswith("hidden\n"), here
