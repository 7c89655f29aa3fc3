"""``python -m girih.cutile`` runs a program as ``python`` does."""

import os
import signal
import subprocess
import sys

import pytest

SEES = """
    import sys
    print(__name__, sys.argv, __file__, sys.path[0])
"""


def test_a_script_sees_what_python_shows_it(write, run, cutile):
    script = write("folder/script.py", SEES)
    as_python = run(script, "a", "-b", "--check", "c d")
    here = cutile(script, "a", "-b", "--check", "c d")
    assert here.returncode == as_python.returncode == 0, here.stderr
    assert here.stdout == as_python.stdout
    assert "['" + str(script) + "', 'a', '-b', '--check', 'c d']" in here.stdout


def test_a_script_named_by_a_relative_path(write, run, cutile):
    script = write("folder/script.py", SEES)
    as_python = run("script.py", "a", cwd=script.parent)
    here = cutile("script.py", "a", cwd=script.parent)
    assert here.stdout == as_python.stdout


def test_a_module(write, run, cutile, tmp_path):
    write("package/__init__.py", "")
    write("package/part.py", "import sys\nprint(__name__, sys.argv[1:], __package__, sys.path[0])\n")
    as_python = run("-m", "package.part", "x")
    here = cutile("-m", "package.part", "x")
    assert here.stdout == as_python.stdout and "['x'] package" in here.stdout, here.stderr


def test_code(run, cutile):
    code = "import sys; print(__name__, sys.argv, repr(sys.path[0]))"
    assert cutile("-c", code, "x").stdout == run("-c", code, "x").stdout


def test_a_folder_with_a_main(write, cutile):
    write("app/__main__.py", "import sys; print(__name__, sys.argv)")
    assert cutile("app", "x").stdout == "__main__ ['app', 'x']\n"


def test_neighbours_are_imported(write, cutile):
    write("folder/neighbour.py", "value = 7")
    script = write("folder/script.py", "import neighbour\nprint(neighbour.value)")
    assert cutile(script).stdout == "7\n"


def test_classes_of_the_script_can_be_pickled(write, cutile):
    script = write("script.py", "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))) is C)")
    assert cutile(script).stdout == "True\n"


@pytest.mark.parametrize("end, code", [("sys.exit(5)", 5), ("sys.exit()", 0), ("sys.exit('no')", 1), ("1 / 0", 1)])
def test_exit_codes(write, cutile, end, code):
    assert cutile(write("script.py", f"import sys\n{end}\n")).returncode == code


def test_a_traceback_begins_in_the_script(write, run, cutile):
    script = write("script.py", "def f():\n    return 1 / 0\n\nf()\n")
    assert cutile(script).stderr == run(script).stderr


def test_a_syntax_error_reads_as_pythons(write, run, cutile):
    script = write("script.py", "x = 1\ny = (\n")
    here = cutile(script)
    assert here.returncode == 1
    assert here.stderr == run(script).stderr


def test_a_missing_script(cutile):
    here = cutile("nowhere.py")
    assert here.returncode == 2
    assert "nowhere.py" in here.stderr and "No such file" in here.stderr and "Traceback" not in here.stderr


@pytest.mark.parametrize(
    "args, says",
    [
        ((), "expected a program to run"),
        (("--frob", "x.py"), "unknown option --frob"),
        (("--device", "gpu", "x.py"), "unknown device `gpu`; the devices are cpu, eval and sim"),
        (("--target", "sm_75", "x.py"), "unknown target `sm_75`; the simulated ones are sm_80, sm_90a, sm_100a, sm_120"),
        (("--threads", "0", "x.py"), "expected a number of threads from 1 to 1024, found `0`"),
        (("--threads",), "--threads needs a value"),
        (("-m",), "-m needs a module"),
    ],
)
def test_wrong_usage(cutile, args, says):
    here = cutile(*args)
    assert here.returncode == 2
    assert says in here.stderr and "Traceback" not in here.stderr


def test_help_and_version(cutile):
    shown = cutile("--help")
    assert shown.returncode == 0
    for option in ("--device", "--target", "--check", "--threads", "--dump-tile"):
        assert option in shown.stdout
    import girih

    assert cutile("--version").stdout.startswith(f"girih {girih.__version__}, cuda-tile ")


def test_without_cuda_tile(write, run, tmp_path):
    # A Python that sees this package and nothing else: no site packages, so no cuda-tile.
    import girih

    package = os.path.dirname(os.path.dirname(girih.__file__))
    visible = tmp_path / "visible"
    visible.mkdir()
    (visible / "girih").symlink_to(os.path.join(package, "girih"))
    script = write("script.py", "import cuda.tile")
    here = run("-S", "-m", "girih.cutile", script, env={"PYTHONPATH": str(visible)})
    assert here.returncode == 2
    assert "has no cuda-tile" in here.stderr and "-m pip install cuda-tile" in here.stderr


def test_options_reach_the_library(cutile):
    code = "import girih.cutile, json; print(json.dumps(girih.cutile.options()))"
    import json

    here = cutile("--device", "eval", "--check", "--threads=1", "-c", code)
    options = json.loads(here.stdout)
    assert (options["device"], options["check"], options["threads"]) == ("eval", True, 1)
    env = {"GIRIH_DEVICE": "eval", "GIRIH_THREADS": "2"}
    options = json.loads(cutile("-c", code, env=env).stdout)
    assert (options["device"], options["threads"]) == ("eval", 2)


@pytest.mark.parametrize(
    "name, value", [("GIRIH_DEVICE", "gpu"), ("GIRIH_TARGET", "sm_75"), ("GIRIH_CHECK", "maybe"), ("GIRIH_THREADS", "abc"), ("GIRIH_CACHE_SIZE", "x")]
)
def test_a_wrong_environment_is_named(cutile, name, value):
    here = cutile("-c", "print(1)", env={name: value})
    assert here.returncode != 0
    assert f"{name}: " in here.stderr and f"`{value}`" in here.stderr and "Traceback" not in here.stderr


def test_a_long_word_is_shortened(cutile):
    here = cutile("--" + "x" * 100_000)
    assert here.returncode == 2 and "characters left out" in here.stderr and len(here.stderr) < 2000


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_cannot_be_written_is_a_failure(option):
    command = [sys.executable, "-m", "girih.cutile", option]
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert done.stderr == "girih.cutile: standard output cannot be written: No space left on device\n"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


# Block 0 says in a file that the kernel runs; block 1 goes on.
LONG = """
    import sys
    import cuda.tile as ct
    import numpy as np

    @ct.kernel
    def forever(out, flag, n: int):
        if ct.bid(0) == 0:
            ct.store(flag, (0,), ct.full((1,), 1.0, dtype=ct.float32))
        else:
            total = ct.full((1,), 0.0, dtype=ct.float32)
            for i in range(n):
                for j in range(n):
                    total = total + ct.sin(total) + 1.0
            ct.store(out, (0,), total)

    out = np.zeros(1, np.float32)
    flag = np.memmap(sys.argv[1], np.float32, "w+", shape=1).view(np.ndarray)
    try:
        ct.launch(0, (2,), forever, (out, flag, 2_000_000_000))
    except KeyboardInterrupt:
        print("interrupted")
        raise
"""


def test_ctrl_c_stops_a_long_kernel(write, start, until, tmp_path):
    flag = tmp_path / "flag"
    process = start("-m", "girih.cutile", write("long.py", LONG), flag)
    until(lambda: process.poll() is not None or (flag.exists() and any(flag.read_bytes())))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=start.deadline)
    assert out == "interrupted\n", err
    assert process.returncode == 130
    assert err.rstrip().endswith("KeyboardInterrupt")
