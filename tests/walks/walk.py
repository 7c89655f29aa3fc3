"""Follows pages of the documentation as a reader does, in a folder and an environment of their own, block by block.

A walk is a script that names pages, and what its reader brings. The blocks of a page are followed by language:

* `console`: each line that begins with `$` is run by a shell, and prints the lines behind it. Only where one of these begins with
  `error` or `Traceback` may it fail.
* `bash`: each line is run by a shell.
* `python`: run in one session for the page; a block of `text` behind it is what it prints, or its exception. A block whose first line is
  a comment such as `# kernels.py` is a file of that name instead.
* `c`: a file, named likewise.

Commands that a walk cannot run (on a GPU, without an end) are left out by how they begin, with a reason, which is printed.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import pages

ROOT = Path(__file__).resolve().parents[2]

SESSION = Path(__file__).resolve().parent / "session.py"
#: No command of a page takes longer, on any machine, unless it hangs.
SECONDS = 1800
#: How a line of the output begins if the command fails.
FAILURES = ("error", "Traceback")
HAS_THE_WHEEL = {"pip install .": "this reader has the wheel"}
HAS_NO_GPU = {} if shutil.which("nvidia-smi") else {"girih run model.onnx --arg input=x.npy --device cuda": "this machine lacks a GPU"}


class Wrong(Exception):
    """A page does not say what happens."""


class Walk:
    """A reader: `with Walk("deployer") as walk: walk.follow("docs/build.md")`.

    `leave` has the beginnings of the commands that are left out, with reasons, and `checkout` those that are run in the checkout. Python
    is that of the walk's environment; packages that the Python which runs the walk has need not be fetched again.
    """

    def __init__(self, name, leave=None, checkout=()):
        parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
        parser.add_argument("--keep", metavar="DIR", help="walk in this folder, and leave it")
        asked = parser.parse_args()
        self.name, self.leave, self.checkout, self.followed = name, leave or {}, tuple(checkout), 0
        self.holder = contextlib.ExitStack()
        base = Path(asked.keep or self.holder.enter_context(tempfile.TemporaryDirectory(prefix=f"girih-{name}-"))).resolve()
        self.base, self.folder = base, base / "work"
        # Commands name files of the checkout, and write beside them.
        shutil.copytree(ROOT / "examples", self.folder / "examples", dirs_exist_ok=True)
        venv.create(base / "venv", with_pip=True)
        (site,) = (base / "venv" / "lib").glob("python*/site-packages")
        (site / "theirs.pth").write_text("".join(f"{p}\n" for p in sys.path if p.endswith("site-packages")))
        outside = {k: v for k, v in os.environ.items() if not k.startswith(("GIRIH_", "PYTHON", "TRITON_"))}
        self.environment = {
            **outside,
            "PATH": os.pathsep.join([str(base / "venv/bin"), outside["PATH"]]),
            "CARGO_TARGET_DIR": str(ROOT / "target"),
            "GIRIH_CACHE_DIR": str(base / "cache"),
            "TRITON_CACHE_DIR": str(base / "triton"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_QUIET": "1",
        }

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _trace):
        self.holder.close()
        if isinstance(error, Wrong):
            print(f"{self.name}: {error}", file=sys.stderr)
            sys.exit(1)
        if error is None:
            print(f"{self.name}: {self.followed} blocks followed")

    def install_wheel(self):
        """Installs the newest wheel in dist/, as `make wheel` writes it."""
        wheels = sorted((ROOT / "dist").glob("girih-*.whl"), key=lambda path: path.stat().st_mtime)
        if not wheels:
            raise Wrong("dist/ holds no wheel; `make wheel` writes one")
        # Also where the packages that all walks share have a build of the checkout.
        self.run(f"pip install --ignore-installed --no-deps {wheels[-1]}")

    def module(self, name):
        """Makes a module of Python a command, as its package would if it were installed here."""
        script = self.base / "venv/bin" / name
        script.write_text(f'#!/bin/sh\nexec python -m {name} "$@"\n')
        script.chmod(0o755)

    def text(self, path):
        """A file of the checkout."""
        return (ROOT / path).read_text()

    def have_file_of(self, page, name):
        """A file that another page shows."""
        (code,) = [code for _, code, _ in pages.blocks(self.text(page)) if code.partition("\n")[0].endswith(f" {name}")]
        self.have(name, code)

    def have(self, path, content):
        """A file that the reader brings."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())

    def run(self, command, code=0):
        """The text that a command of a shell prints."""
        within = ROOT if command.startswith(self.checkout) else self.folder
        try:
            done = subprocess.run(
                ["bash", "-c", command], cwd=within, env=self.environment, timeout=SECONDS, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            raise Wrong(f"`{command}` did not end in {SECONDS} s") from late
        if done.returncode != code:
            raise Wrong(f"`{command}` ended with {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def follow(self, page, section=None, until=None):
        """All blocks of a page, or those from a heading on, up to another heading."""
        text = (ROOT / page).read_text()
        text = text[text.index(f"\n{section}\n") if section else 0 :]
        text = text[: text.index(f"\n{until}\n") if until else None]
        began = time.monotonic()
        with self.session() as say:
            for language, code, shown in pages.blocks(text):
                named = re.match(r"(?:#|//) ([\w./]+\.(?:py|c))\n", code)
                if named and language in ("python", "c"):
                    self.have(named[1], code)
                elif language == "python":
                    self.compare(page, code, shown, say(code, shown))
                elif language == "console":
                    for command, shown in pages.commands(code):
                        self.command(page, command, shown)
                elif language == "bash":
                    for command in code.splitlines():
                        self.command(page, command, None)
                else:
                    continue
                self.followed += 1
        print(f"{self.name}: {page}, {time.monotonic() - began:.0f} s", flush=True)

    def command(self, page, command, shown):
        # A remark behind a command is the page's.
        command = re.sub(r"\s+# .*", "", command)
        for beginning, reason in self.leave.items():
            if command.startswith(beginning):
                print(f"{self.name}: `{command}` is left out: {reason}", flush=True)
                return
        fails = shown and any(line.startswith(FAILURES) for line in shown.splitlines())
        said = self.run(command, 1 if fails else 0)
        if shown:
            self.compare(page, command, shown, said)

    def compare(self, page, source, shown, said):
        said = said.replace(str(self.folder) + os.sep, "")
        if not pages.agrees(shown, said):
            raise Wrong(f"{page}: this prints something else:\n{source}\n--- the page shows\n{shown}\n--- it printed\n{said}")

    @contextlib.contextmanager
    def session(self):
        """A function that runs a block in the page's Python, and returns what it says."""
        child, count = None, 0
        errors = self.base / "stderr"

        def say(code, shown):
            nonlocal child, count
            if child is None:
                child = subprocess.Popen(
                    ["python", SESSION], cwd=self.folder, env=self.environment, text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors.open("w"),
                )  # fmt: skip
            count += 1
            # Kernels are read from their files.
            path = self.base / "blocks" / str(count) / "kernels.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
            child.stdin.write(json.dumps([str(path), shown]) + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
            worked, said = json.loads(answer) if answer else (False, f"Python ended:\n{errors.read_text()}")
            if not worked:
                raise Wrong(f"this fails: {said}\n{code}")
            return said

        try:
            yield say
        finally:
            if child is not None:
                child.stdin.close()
                child.wait()
