"""``pytest -p girih.cutile`` runs a suite written for a GPU."""

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
