"""The prints of a kernel are Python's output."""

import contextlib
import io

import cuda.tile as ct
import numpy as np


@ct.kernel
def says(x):
    ct.printf("block %d\n", ct.bid(0))


@ct.kernel
def shows(x):
    ct.print("sum:", ct.sum(ct.load(x, (0,), (4,))))


def test_prints_are_captured(capsys):
    ct.launch(0, (3,), says, (np.zeros(4, np.float32),))
    assert capsys.readouterr().out == "block 0\nblock 1\nblock 2\n"


def test_prints_follow_a_redirected_stdout():
    into = io.StringIO()
    with contextlib.redirect_stdout(into):
        print("before")
        ct.launch(0, (1,), says, (np.zeros(4, np.float32),))
        print("after")
    assert into.getvalue() == "before\nblock 0\nafter\n"


def test_print_takes_values(capsys):
    ct.launch(0, (1,), shows, (np.ones(4, np.float32),))
    out = capsys.readouterr().out
    assert out.startswith("sum:") and "4.0" in out and out.endswith("\n")


def test_prints_come_in_order_with_pythons(write, cutile):
    script = write(
        "script.py",
        """
        import cuda.tile as ct
        import numpy as np

        @ct.kernel
        def says(x):
            ct.printf("kernel\\n")

        print("before")
        ct.launch(0, (1,), says, (np.zeros(1, np.float32),))
        print("after")
        """,
    )
    assert cutile(script).stdout == "before\nkernel\nafter\n"
