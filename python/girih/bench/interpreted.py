"""A kernel of the suite `triton` under Triton's interpreter: a process of its own, since Triton asks for `TRITON_INTERPRET` when it is
imported.

    python -m girih.bench.interpreted ROW FOLDER

reads the inputs from FOLDER/inputs.pt. For each line `run` it launches once and answers `done`; `save` writes FOLDER/results.pt.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import weakref

import torch


class Interpreter:
    """A row's kernel in such a process."""

    def __init__(self, name, inputs, threads):
        self.folder = tempfile.TemporaryDirectory(prefix="girih-bench-")
        torch.save(list(inputs), os.path.join(self.folder.name, "inputs.pt"))
        self.errors = open(os.path.join(self.folder.name, "errors.txt"), "w+")  # noqa: SIM115 (as long as the process)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "girih.bench.interpreted", name, self.folder.name],
            env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip
        weakref.finalize(self, self.process.kill)

    def ask(self, word):
        try:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer != "done\n":
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines()
            raise RuntimeError(lines[-1] if lines else "Triton's interpreter ended")

    def run(self):
        self.ask("run")

    def results(self, _):
        self.ask("save")
        return torch.load(os.path.join(self.folder.name, "results.pt"))


def serve(name, folder):
    from girih.bench import triton_cpu, tutorials

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # kernels may print
    row = next(row for row in triton_cpu.rows() if row.name == name)
    run = row.kernel.__self__.prepare(tutorials, *torch.load(os.path.join(folder, "inputs.pt")))
    results = None
    for line in sys.stdin:
        if line.strip() == "run":
            results = run()
        else:
            torch.save(results, os.path.join(folder, "results.pt"))
        answers.write("done\n")
        answers.flush()


if __name__ == "__main__":
    serve(*sys.argv[1:])
