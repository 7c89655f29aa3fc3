#!/usr/bin/env python3
"""Compares the bytecode reader and writer with NVIDIA's tools: for each file of tests/bytecode/corpus, and for the bytecode that
the installed cuda-tile compiles from tests/bytecode/kernels.py and the programs in tests/cutile, at every version.

  text       `girih disassemble` prints what `tileirdisasm` prints
  locations  the same with -g
  written    what `girih assemble` makes of the text with locations, at the version of the file, is accepted by `tileirdisasm`
             and gives the same text again
  compiled   `tileiras` compiles what was written, where it compiles the original: the whole corpus, and some of the rest
  versions   each text of the corpus, assembled at each other version, is accepted and gives the same text, or is refused
             with what that version lacks

Also assembles the examples and the texts with every operation, and sees to it that the files of tests/bytecode/outside,
which the documentation lists as differences, are refused at a byte. Prints a table of counts; the differences follow it."""
import argparse
import collections
import concurrent.futures
import dataclasses
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "bytecode"))
CORPUS = HERE / "bytecode" / "corpus"
VERSIONS = ["13.1", "13.2", "13.3", "13.4", "13.5"]
WRITTEN = VERSIONS[:4]
CHECKS = ["text", "locations", "written", "compiled", "versions"]


def tool(name):
    """One of NVIDIA's programs: from PATH, or from the wheel beside the interpreter."""
    found = shutil.which(name)
    if found is None:
        for folder in map(pathlib.Path, sys.path):
            candidate = folder / "nvidia" / "cu13" / "bin" / name
            if candidate.exists():
                return str(candidate)
        sys.exit(f"{name} is missing: install the packages of requirements-test.txt")
    return found


@dataclasses.dataclass
class Module:
    name: str
    path: pathlib.Path
    compile: bool
    from_corpus: bool

    @property
    def version(self):
        major, minor = self.path.read_bytes()[8:10]
        return f"{major}.{minor}"


class Failed(Exception):
    pass


def run(*command):
    """Standard output of a command, as bytes; its complaint where it fails."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if done.returncode != 0:
        complaint = done.stderr.decode(errors="replace").strip()
        raise Failed(f"{pathlib.Path(command[0]).name} {command[1]} exits {done.returncode}: {complaint[:1500]}")
    return done.stdout


def same(expected, got, names):
    if expected != got:
        lines = [t.decode(errors="replace").splitlines() for t in (expected, got)]
        diff = list(difflib.unified_diff(*lines, *names, lineterm="", n=0))
        raise Failed("\n".join(diff[:30]) or "they differ in white space at the end")


def without_signs(text):
    """A text with no sign before the doubles that reductions and scans start from. cuda-tile writes those of negative ones
    behind the 64 bits that NVIDIA's reader takes, and Girih reads them: a difference that the documentation lists."""
    def positive(item):
        value, _, kind = item.partition(b" : ")
        if kind == b"f64":
            return item.replace(b"0xF", b"0x7")
        return item.lstrip(b"-") if b"e" in value and not kind else item
    return re.sub(rb"(?<=identities=\[)[^\]]*", lambda found: b", ".join(map(positive, found[0].split(b", "))), text)


class Checker:
    def __init__(self, girih, scratch):
        self.girih, self.scratch = girih, scratch
        self.oracle, self.compiler = tool("tileirdisasm"), tool("tileiras")
        self.texts = {}
        self.signs = 0

    def all_of(self, module):
        try:
            return list(self.check(module))
        except Failed as failure:
            return [("text", f"{module.name}: {failure}")]

    def assemble(self, text, version, out):
        run(self.girih, "assemble", text, "--bytecode-version", version, "-o", out)
        return out

    def compiles(self, path, out):
        run(self.compiler, "--gpu-name", "sm_100", "-O0", path, "-o", out)

    def check(self, module):
        """Yields (check, complaint or None) for the checks that apply to a module."""
        stem = module.name.replace("/", " ")
        text_file, written, cubin = (self.scratch / f"{stem}.{kind}" for kind in ("mlir", "again", "cubin"))

        def attempt(check, action):
            try:
                action()
                return check, None
            except (Failed, subprocess.TimeoutExpired) as failure:
                return check, f"{module.name}: {failure}"

        located = run(self.oracle, "-g", module.path)

        def prints(expected, *flags):
            got = run(self.girih, "disassemble", *flags, module.path)
            if expected != got and without_signs(expected) == without_signs(got):
                self.signs += 1
            else:
                same(expected, got, ("tileirdisasm", "girih"))
        yield attempt("text", lambda: prints(run(self.oracle, module.path)))
        yield attempt("locations", lambda: prints(located, "-g"))
        text_file.write_bytes(located)
        self.texts[module.name] = located.decode()
        if module.version not in WRITTEN:
            return

        def again():
            self.assemble(text_file, module.version, written)
            same(located, run(self.oracle, "-g", written), ("first", "again"))
        check, complaint = attempt("written", again)
        yield check, complaint
        if module.compile and complaint is None and attempt("", lambda: self.compiles(module.path, cubin))[1] is None:
            yield attempt("compiled", lambda: self.compiles(written, cubin))
        if module.from_corpus:
            for version in WRITTEN:
                if version != module.version:
                    yield attempt("versions", lambda: self.at_version(text_file, version, written, located))

    def at_version(self, text, version, out, expected):
        try:
            self.assemble(text, version, out)
        except Failed as refusal:
            if "E0710" not in str(refusal):
                raise
        else:
            same(expected, run(self.oracle, "-g", out), ("first", f"at {version}"))


def missing_operations(girih, version, texts):
    """The operations of the compiler's table that a version has and no text of it uses."""
    words = set(re.findall(r"\w+", "\n".join(texts))) | {"module"}
    table = json.loads(run(girih, "ops", "--json"))
    return [op["name"] for op in table
            if op["since"] is not None and op["since"] <= version and words.isdisjoint([op["name"], *op["aliases"]])]


def export_generated(folder):
    import generate
    for version, name, data in generate.fresh():
        if name.startswith("kernel_"):
            (folder / f"{name}@{version}.tileirbc").write_bytes(data)


def export_program(path, folder, limit):
    """Writes the first launches of a program at every version; returns a note where it gave none."""
    import export
    import recording
    launches, ended = recording.record(path)
    for number, (kernel, signature) in enumerate(launches[:limit]):
        for version in export.VERSIONS:
            data, _ = export.bytecode(kernel, [signature], version)
            if data is not None:
                (folder / f"{path.stem}-{number}@{version.as_string()}.tileirbc").write_bytes(data)
    return None if launches else f"{path.relative_to(ROOT)} launches nothing: {ended}"


def export_all(folder, limit, workers):
    import recording
    programs = recording.programs()
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        generated = pool.submit(export_generated, folder)
        notes = list(pool.map(export_program, programs, [folder] * len(programs), [limit] * len(programs)))
        generated.result()
    return len(programs), [n for n in notes if n is not None]


def outside(checker):
    """Yields (what, complaint or None) for each file that Girih does not read as NVIDIA's tools do."""
    for path in sorted((HERE / "bytecode" / "outside").rglob("*.tileirbc")):
        name = f"outside {path.parent.name}/{path.stem}"
        try:
            theirs = run(checker.oracle, "--preview=simt", path)
            same(theirs, run(checker.girih, "disassemble", path), ("tileirdisasm", "girih"))
        except Failed as failure:
            refused = "E07" in str(failure) and "byte" in str(failure)
            yield name, None if refused else str(failure)
        else:
            yield name, None


def own_texts(checker):
    """Yields (what, complaint or None): our own texts assembled at the first version that expresses them and at the newest."""
    texts = sorted((ROOT / "examples").rglob("*.mlir")) + [ROOT / "crates/girih-tile-ir/src/cuda_tile/testdata/nvidia.mlir"]
    for text in texts:
        taken = 0
        for version in WRITTEN:
            out = checker.scratch / "own.tileirbc"
            try:
                checker.assemble(text, version, out)
            except Failed as refusal:
                if "E0710" not in str(refusal):
                    yield f"{text.name} at {version}", str(refusal)
                continue
            taken += 1
            try:
                same(run(checker.oracle, out), run(checker.girih, "disassemble", out), ("tileirdisasm", "girih"))
                yield f"{text.name} at {version}", None
            except Failed as failure:
                yield f"{text.name} at {version}", str(failure)
        if taken == 0:
            yield text.name, "no version expresses it"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("girih", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="only modules whose name has this in it")
    parser.add_argument("--launches", type=int, default=4, help="how many launches of each program (4)")
    parser.add_argument("--compiled", type=int, default=60, help="how many of the fresh modules tileiras compiles (60)")
    parser.add_argument("--corpus", action="store_true", help="only the corpus")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        checker = Checker(options.girih.resolve(), scratch)
        modules = [Module(f"corpus {p.parent.name}/{p.stem}", p, True, True) for p in sorted(CORPUS.rglob("*.tileirbc"))]
        failures = []
        if not options.corpus:
            exported = scratch / "exported"
            exported.mkdir()
            programs, notes = export_all(exported, options.launches, options.j)
            failures += notes
            made = sorted(exported.iterdir())
            step = max(1, len(made) // options.compiled)
            modules += [Module(p.stem, p, i % step == 0, False) for i, p in enumerate(made)]
            print(f"{len(made)} modules compiled by cuda-tile from {programs} programs and the corpus's kernels", flush=True)
        modules = [m for m in modules if options.filter in m.name]
        counts = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
            for module, results in zip(modules, pool.map(checker.all_of, modules)):
                for check, complaint in results:
                    counts[module.version, check, complaint is None] += 1
                    if complaint is not None:
                        failures.append(f"{check}: {complaint}")
        if not options.filter:
            for version in VERSIONS:
                texts = [checker.texts[m.name] for m in modules if m.from_corpus and m.version == version]
                failures += [f"the corpus of {version} has no {name}" for name in missing_operations(checker.girih, version, texts)]
            for what, complaint in own_texts(checker):
                counts["own", "written", complaint is None] += 1
                if complaint is not None:
                    failures.append(f"{what}: {complaint}")
            for what, complaint in outside(checker):
                counts["outside", "text", complaint is None] += 1
                if complaint is not None:
                    failures.append(f"{what}: {complaint}")
    print(f"{'version':8}" + "".join(f"{c:>14}" for c in CHECKS))
    for version in [*VERSIONS, "own", "outside"]:
        cells = []
        for check in CHECKS:
            good, bad = counts[version, check, True], counts[version, check, False]
            cells.append(f"{good}/{good + bad}" if good + bad else "-")
        print(f"{version:8}" + "".join(f"{c:>14}" for c in cells))
    if checker.signs:
        print(f"{checker.signs} texts differ in the sign of a double that a fold starts from, as documented")
    for failure in failures:
        print("FAIL", failure)
    passed = sum(n for (_, _, good), n in counts.items() if good)
    print(f"{len(modules)} modules, {passed} checks passed, {len(failures)} failures, {time.monotonic() - start:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
