"""Random functions through `torch.compile(f, backend="girih")` against PyTorch.

    python tests/torch_random.py [--count N] [--seed S] [--device mixed|eval|cpu] [--jobs J] [--keep-going] [--show PROGRAM]

A program is a few lines of Python over tensors and numbers, with two or three sets of arguments: other extents (0 and 1
among them), other integers (negative ones too), other layouts. It is called with each set in turn, so that PyTorch
compiles it anew with symbols for the extents that change. Results must be PyTorch's: values (integers and truth values
exactly, floats exactly where no order of operations matters, else within a bound on rounding), dtypes, shapes, strides of
dense results, the results' views of arguments and of each other, writes to arguments, and exceptions.

One in eight groups has functions under stacks of function transforms (`grad`, `vmap`, `jvp`, ...; torch_programs/transforms.py),
and one has models whose weights are written to between calls, past PyTorch's count of writes too (torch_programs/weights.py).

Programs are compiled `--group` at a time as one function, because Dynamo takes most of the time; a group that differs is
taken apart. One group in `--native` (8) runs as native code, the others in the evaluator; `--device cpu` or `eval` runs
all in one. A program that differs in PyTorch's own `aot_eager` too is counted, but is not an error of Girih's. A
difference is shrunk and printed as Python; exit code 1. Operations left to PyTorch are counted by their reasons.
"""

import argparse
import collections
import functools
import gc
import itertools
import json
import logging
import random
import subprocess
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))


def seed(text):
    return random.randrange(1, 1 << 40) if text == "random" else int(text)


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many programs")
    parser.add_argument("--seed", type=seed, default=1, help="of the first group; `random`: one that is printed")
    parser.add_argument("--device", choices=("mixed", "eval", "cpu"), default="mixed")
    parser.add_argument("--native", type=int, default=8, help="with `mixed`, one group in N is native")
    parser.add_argument("--group", type=int, default=10, help="programs in one compiled function")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first difference")
    parser.add_argument("--show", metavar="SEED", type=int, help="print the programs of a group")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def device(given, seed, native):
    return given if given != "mixed" else "cpu" if seed % native == 0 else "eval"


# A worker: reads seeds of groups, one a line, and answers each with one line of JSON.


def work(args):
    import torch

    import girih.torch  # noqa: F401
    from torch_programs import group, isolated, transforms

    torch.set_num_threads(1)
    # Programs that raise are wanted: PyTorch's log of them is noise.
    torch._logging.set_logs(all=logging.CRITICAL)
    # Imports that the first function costs are then done before the process forks. Gradients would start threads.
    differences_of_stacks([transforms.Stack(("F.linear({x}, W)",), ("vmap",))], "girih", "eval", False)
    others = {**OTHERS, 3: functools.partial(examine_transforms, isolated=isolated.Isolated(differences_of_stacks))}
    for line in sys.stdin:
        seed, size = map(int, line.split())
        start = time.perf_counter()
        try:
            where = device(args.device, seed, args.native)
            answer = others[seed % 8](seed, size, where) if seed % 8 in others else examine(group.make(seed, size, where))
        except Exception:
            answer = {"error": traceback.format_exc()}
        answer.update(seed=seed, size=size, seconds=time.perf_counter() - start)
        print(json.dumps(answer), flush=True)


def differences_of_stacks(stacks, backend, where, grad):
    """The differences, as (place, sentence); an exception is one too."""
    import torch
    from torch_programs import transforms

    # A fork invalidates PyTorch's pool: the first thread that asks makes it anew, before the threads of autograd all do.
    torch.set_num_threads(1)
    options = {"options": {"device": where}} if backend == "girih" else {}
    if backend != "girih":
        # The damage lasts until Python collects garbage, at another time for each backend.
        gc.disable()
    try:
        found = transforms.differences(stacks, backend, grad=grad, **options)
        return [(stacks.index(stack), what) for stack, what in found]
    except Exception as e:
        return [(0, f"raises {type(e).__name__}: {e}")]


def examine_transforms(seed, size, where, isolated):
    """A group of functions under stacks of function transforms.

    Each look is `isolated`: traces of forward-mode AD can damage PyTorch for those after them, whatever the backend.
    """
    from torch_programs import transforms

    rng = random.Random(seed)
    stacks = [transforms.make(rng) for _ in range(size)]

    def differs(stacks, backend="girih"):
        """The first difference, as a sentence."""
        found, end = isolated(stacks, backend, where, seed % 3 == 0)
        return end or (found[0][1] if found else None)

    def ours(stacks):
        """The first difference, where PyTorch's own compiler does not differ in that way."""
        if (found := differs(stacks)) is None:
            return None
        theirs = differs(stacks, "aot_eager")
        # A function that ends the process might have given anything.
        return None if theirs is not None and theirs.split()[0] in ("ends", found.split()[0]) else found

    def smaller(group):
        """A smaller group that differs too, and how."""
        fewer = ([s for s in group if s is not left] for left in group) if len(group) > 1 else ()
        simpler = ([*group[:at], s, *group[at + 1 :]] for at, stack in enumerate(group) for s in stack.smaller() if s.transforms)
        return next(((g, found) for g in itertools.chain(fewer, simpler) if (found := ours(g))), None)

    reports, theirs = [], 0
    culprits = [[stack] for stack in stacks if differs([stack])] if differs(stacks) else []
    if not culprits and differs(stacks):
        culprits = [stacks]
    for group in culprits:
        if (found := ours(group)) is None:
            # In a group of several each function was as PyTorch's when alone.
            theirs += len(group) == 1
            continue
        while less := smaller(group):
            group, found = less
        together = "" if len(group) == 1 else ", only together"
        reports.append(f"# {where}{together}: {found}\n" + "\n".join(stack.text() for stack in group))
    return {"reports": reports, "theirs": theirs, "left": {}, "raised": 0, "mode": "transforms"}


def examine_weights(seed, size, where):
    """Models whose weights are written to between calls."""
    from torch_programs import weights

    rng = random.Random(seed)
    reports, theirs = [], 0
    for case in [weights.make(rng) for _ in range(size)]:
        options = {"options": {"device": where}}
        if not weights.differences(case, **options):
            continue
        if weights.differences(case, "aot_eager"):
            theirs += 1
            continue
        while smaller := next((c for c in case.smaller() if weights.differences(c, **options)), None):
            case = smaller
        reports.append(f"# {where}: {weights.differences(case, **options)[0]}\n{case.text()}")
    return {"reports": reports, "theirs": theirs, "left": {}, "raised": 0, "mode": "weights"}


#: Kinds of groups, by the rest of their seeds divided by 8, beside that of transforms.
OTHERS = {6: examine_weights}


def examine(whole):
    from torch_programs import generate, group
    from girih.torch import _partition

    _partition._warned.clear()
    outcome = group.check(whole)
    left = outcome.left
    reports, theirs, culprits = [], 0, set()
    if outcome.found:
        # Which of them it is, each by itself; where none is, all of them together.
        for program in whole.programs:
            if group.check(whole.only(program)).found:
                culprits.add(id(program))
                report = examine_one(whole.only(program))
                theirs += report is None
                reports += [report] if report else []
        if not culprits:
            report = examine_together(whole)
            theirs += report is None
            reports += [report] if report else []
    raised = 0
    rng = random.Random(whole.seed)
    if rng.random() < 0.25 and (bad := generate.spoiled(rng.choice(whole.programs), rng)):
        raised = 1
        alone = whole.only(bad)
        if group.check(alone).found and (report := examine_one(alone)):
            reports.append(report)
    return {"reports": reports, "theirs": theirs, "left": dict(left), "raised": raised, "mode": whole.mode}


def examine_one(alone):
    """A report of one program that differs, shrunk; None where PyTorch's own compiler differs too."""
    from torch_programs import group, shrink

    def first(program):
        found = group.check(alone.only(program)).found
        return found[0][2] if found else None

    program = alone.programs[0]
    if (found := first(program)) is None:
        return f"# a difference that does not come again\n{program.text()}"
    kind = found.kind

    def fails(candidate):
        try:
            found = first(candidate)
        except Exception:
            return False
        return found is not None and found.kind == kind

    if own(alone, kind):
        return None
    small = shrink.shrink(program, fails)
    if own(alone.only(small), kind):
        small = program
    found = first(small)
    return f"# {alone.device}, {alone.mode}: {found}\n{small.text()}"


def own(alone, kind):
    """Returns True if PyTorch's compiler without a backend differs from PyTorch in the same way."""
    from torch_programs import group

    return any(d.kind == kind for _, _, d in group.check(alone, backend="aot_eager").found)


def examine_together(whole):
    from torch_programs import group

    programs = list(whole.programs)
    found = group.check(whole).found
    if not found:
        return "# a difference that does not come again"
    kind = found[0][2].kind
    if own(whole, kind):
        return None
    for p in list(programs):
        rest = [q for q in programs if q is not p]
        found = group.check(whole.only(*rest)).found if rest else []
        if found and found[0][2].kind == kind and not own(whole.only(*rest), kind):
            programs = rest
    found = group.check(whole.only(*programs)).found
    text = "\n".join(p.text() for p in programs)
    return f"# {whole.device}, {whole.mode}, only together: {[(i, at, str(d)) for i, at, d in found]}\n{text}"


# The command: hands out seeds.


class Worker:
    # PyTorch's cache of compiled functions halves its speed after some two hundred groups.
    GROUPS = 60

    def __init__(self):
        self.process = None
        self.seed = None
        self.given = 0

    def start(self):
        command = [sys.executable, "-W", "ignore", __file__, "--worker", *sys.argv[1:]]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.given = 0

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def give(self, seed, size):
        if self.given == self.GROUPS:
            self.end()
        if self.process is None:
            self.start()
        self.given += 1
        self.seed, self.size = seed, size
        self.process.stdin.write(f"{seed} {size}\n")
        self.process.stdin.flush()

    def answer(self):
        """The answer to what was given; what killed the process, where something did."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.process = None
        return {"seed": self.seed, "size": self.size, "error": f"the process ended with {code}", "died": True}


class Campaign:
    """Seeds that are handed out, and their outcomes."""

    def __init__(self, args):
        import threading

        self.args = args
        self.lock = threading.Lock()
        self.left = args.count
        self.seed = args.seed
        self.done = self.theirs = self.raised = self.failed = 0
        self.operations = collections.Counter()
        self.seconds = 0.0
        self.start = self.shown = time.monotonic()

    def next(self):
        with self.lock:
            if self.left <= 0 or self.failed and not self.args.keep_going:
                return None
            size = min(self.args.group, self.left)
            self.left -= size
            self.seed += 1
            return self.seed - 1, size

    def take(self, answer):
        with self.lock:
            self.done += answer["size"]
            self.seconds += answer.get("seconds", 0)
            self.theirs += answer.get("theirs", 0)
            self.raised += answer.get("raised", 0)
            self.operations.update(answer.get("left", {}))
            reports = answer.get("reports", [])
            if "error" in answer:
                reports = [*reports, f"# {answer['error']}"]
            for report in reports:
                self.failed += 1
                print(f"# group {answer['seed']}\n{report}", flush=True)
            if time.monotonic() - self.shown > 60:
                self.shown = time.monotonic()
                print(f"# {self.done} programs, {self.failed} differ, {self.shown - self.start:.0f} s", file=sys.stderr, flush=True)

    def run(self):
        import threading

        def serve():
            worker = Worker()
            while (given := self.next()) is not None:
                worker.give(*given)
                self.take(worker.answer())
            worker.end()

        threads = [threading.Thread(target=serve) for _ in range(self.args.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for reason, n in self.operations.most_common():
            print(f"left to PyTorch {n}: {reason}")
        passed = self.done - self.theirs
        print(
            f"{passed} programs, {self.raised} more that raise, {self.failed} differ, "
            f"{self.theirs} differ in PyTorch's own compiler too; {time.monotonic() - self.start:.0f} s"
        )
        return self.failed == 0 and passed > 0


def main():
    args = flags()
    if args.worker:
        return work(args)
    if args.show is not None:
        from torch_programs import group

        whole = group.make(args.show, args.group, device(args.device, args.show, args.native))
        print(f"# {whole.device}, {whole.mode}\n" + "\n".join(p.text() for p in whole.programs))
        return None
    print(f"# from seed {args.seed}", flush=True)
    return 0 if Campaign(args).run() else 1


if __name__ == "__main__":
    sys.exit(main())
