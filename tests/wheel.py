"""The wheel on a machine that has nothing else of Girih: no Rust, no checkout, at last no C compiler.

    tests/wheel.py dist/girih-0.1.0-cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl

1. Its programs and libraries need no more than its name says (auditwheel), and the licences of all crates in them come along.
2. It installs into an empty environment in an empty folder, where the command, the package and the stand-in for the
   driver run, and the first example of the README.
3. Where PATH has no C compiler, a kernel says which package brings one.
4. With the extra `cc` it runs there too, from Python and by the command, and `girih doctor` says what compiles; `girih build`
   makes a library.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Programs that a bare system has; no compiler, no Python, no Rust.
BASE = ["env", "sh", "ls", "cat", "uname", "ldd"]
COMPILERS = ["cc", "gcc", "clang", "zig", "cargo", "rustc"]


def main(wheel):
    wheel = Path(wheel).resolve()
    audit(wheel)
    licences(wheel)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        machine.pip("install", str(wheel))
        assert not machine.packages() & {"ziglang"}, machine.packages()

        machine.path.append("/usr/bin")
        example = readme()
        machine.python(example)
        print("ok  the first example of the README, with the system's C compiler")
        machine.path.pop()

        refused = machine.python(example, 1).stderr
        assert "no C compiler was found" in refused and "pip install ziglang" in refused, refused
        assert "MISSING C compiler" in machine.run(["girih", "doctor"], 1).stdout
        machine.run(["girih", "run", program(machine), "--device", "eval", "--verify"])
        machine.run([machine.bin / "python", "-c", "import girih; girih._library.find('libcuda.so.1')"])
        print("ok  without a compiler: what to install, and the evaluator runs")

        machine.pip("install", f"{wheel}[cc]")
        machine.run(["girih", "cache", "clear"])
        machine.python(example)
        told = machine.run(["girih", "doctor"]).stdout
        assert re.search(r"^ok +C compiler +\S+/site-packages/ziglang/zig cc .* from the Python package", told, re.M), told
        machine.run(["girih", "run", program(machine), "--verify"])
        machine.run(["girih", "build", "-c", "torch.softmax(torch.randn(4, 8), -1)", "-o", "softmax"])
        print("ok  with the extra cc: Python, the command, a library; doctor names the package")
        # A folder for Zig's own files need not be known.
        machine.environment.pop("HOME")
        machine.environment["GIRIH_CACHE_DIR"] = str(machine.folder / "other")
        machine.python(example)
        print("ok  the same without a home")


def audit(wheel):
    told = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r'following platform tag:\s*"manylinux_(\d+)_(\d+)_x86_64"', told)
    named = re.search(r"manylinux_(\d+)_(\d+)_x86_64", wheel.name)
    assert found and named, told
    have, say = (tuple(map(int, m.groups())) for m in (found, named))
    assert have <= say, f"its files need manylinux {have}, its name says {say}\n{told}"
    print(f"ok  needs {have[0]}.{have[1]} of glibc, says {say[0]}.{say[1]}")


def licences(wheel):
    with zipfile.ZipFile(wheel) as files:
        told = files.read("girih/bin/THIRD-PARTY-LICENSES").decode()
    for crate in ("blake3", "clap", "pyo3"):
        assert re.search(rf"^{crate} [0-9.]+: ", told, re.M), told[:2000]
    print(f"ok  {told.split('-' * 80)[0].count(chr(10)) - 2} crates of others, with their licences")


def readme():
    return re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1]


def program(machine):
    """One file, which is all of the checkout that the machine sees."""
    path = machine.folder / "vector_add.mlir"
    path.write_text((ROOT / "examples/vector_add.mlir").read_text())
    return path


class Machine:
    """A folder with an environment of Python, a home, and a PATH of its own."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.bin = folder / "venv/bin"
        base = folder / "bin"
        base.mkdir()
        for name in BASE:
            (base / name).symlink_to(Path("/usr/bin") / name)
        self.path = [str(self.bin), str(base)]
        assert not [c for c in COMPILERS for p in self.path if (Path(p) / c).exists()]
        self.environment = {"HOME": str(folder / "home"), "LC_ALL": "C.UTF-8"}
        (folder / "home").mkdir()

    def run(self, command, code=0):
        environment = {**self.environment, "PATH": ":".join(self.path)}
        name = Path(command[0])
        if not name.is_absolute():
            command = [self.bin / name, *command[1:]]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=environment)
        words = " ".join(map(str, command))
        assert done.returncode == code, f"{words}\nends with {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def python(self, text, code=0):
        """A file, since kernels are read from theirs."""
        path = self.folder / "script.py"
        path.write_text(text)
        return self.run([self.bin / "python", "-I", path], code)

    def pip(self, *arguments):
        # The user's configuration says where packages come from.
        subprocess.run(
            [self.bin / "python", "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"],
            check=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": ""},
        )

    def packages(self):
        listed = self.run([self.bin / "python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"])
        return {line.partition("==")[0] for line in listed.stdout.splitlines()}


if __name__ == "__main__":
    main(*sys.argv[1:])
