#!/usr/bin/env python3
"""Checks the dialect's own tests of its text: each part of each `.mlir` file, apart by `// -----`, with `girih check`.

  verdict  an error is found where the test expects one, and none where it expects none
  place    an error is found at a line where the test expects one

The tests come with the crate `cuda-tile-rs`, which carries the sources of the dialect; `cargo` fetches it. Parts that differ must
have a reason in REASONS, and each reason there must be needed.

    dialect.py GIRIH [--verbose] [--tests FOLDER]"""
import argparse
import collections
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATE = ("cuda-tile-rs", "0.0.1-alpha")

UNREGISTERED = "operations of other dialects are unknown"
TYPED = "a type that no value has is complained of where it is written"
HINTS = "hints that mean nothing get a warning, as the compiler gives it"
TOOLS = "the shipping tools accept it"
# The file, the part of it (from 0), and why Girih says something else.
REASONS = {
    ("Bytecode/invalid_not_self_contained.mlir", 0): UNREGISTERED,
    ("Bytecode/invalid_not_self_contained.mlir", 1): "a statement outside any entry is complained of where it stands",
    ("Dialect/CudaTile/arith_invalid.mlir", 0): UNREGISTERED,
    ("Dialect/CudaTile/arith_invalid.mlir", 161): "no program, only a comment",
    ("Dialect/CudaTile/dense_attr_invalid.mlir", 0): "no program, only a comment",
    ("Dialect/CudaTile/entry_opt_hints_invalid.mlir", 0): HINTS,
    ("Dialect/CudaTile/entry_opt_hints_invalid.mlir", 2): HINTS,
    ("Dialect/CudaTile/entry_opt_hints_invalid.mlir", 3): HINTS,
    ("Dialect/CudaTile/entry_opt_hints_invalid.mlir", 4): HINTS,
    ("Dialect/CudaTile/entry_opt_hints_invalid.mlir", 5): HINTS,
    ("Dialect/CudaTile/invalid.mlir", 8): UNREGISTERED,
    ("Dialect/CudaTile/invalid.mlir", 13): UNREGISTERED,
    ("Dialect/CudaTile/invalid.mlir", 95): TYPED,
    ("Dialect/CudaTile/invalid.mlir", 113): TYPED,
    ("Dialect/CudaTile/invalid.mlir", 155): TOOLS,
    ("Dialect/CudaTile/invalid.mlir", 238): TOOLS,
    ("Dialect/CudaTile/invalid.mlir", 239): "complained of one token later, on the next line",
    ("Dialect/CudaTile/memory_consistency_ops_invalid.mlir", 19): TYPED,
    ("Dialect/CudaTile/memory_consistency_ops_invalid.mlir", 20): TYPED,
    ("Dialect/CudaTile/memory_consistency_ops_invalid.mlir", 21): TYPED,
    ("Dialect/CudaTile/memory_consistency_ops_invalid.mlir", 22): TYPED,
    ("Dialect/CudaTile/types.mlir", 0): "a pointer is the element of a tile; no operation takes one alone",
}


@dataclasses.dataclass
class Part:
    file: str
    index: int
    text: str
    # The tool is expected to fail, by the command that runs the test.
    fails: bool

    def expected(self):
        """The lines at which errors are expected."""
        lines = self.text.split("\n")
        found = []
        for number, line in enumerate(lines, 1):
            for m in re.finditer(r"expected-error(?:-re)?\s*(?:@(below|above|[+-]\d+))?\s*\d*\s*\{\{", line):
                at = {"below": number + 1, "above": number - 1, None: number}.get(m[1])
                at = number + int(m[1]) if at is None else at
                while m[1] == "below" and re.match(r"\s*//\s*expected-", lines[at - 1]):
                    at += 1
                found.append(at)
        return found


def fetched():
    """The folder of the dialect's tests, out of the crate."""
    home = ROOT / "target" / "dialect"
    (home / "src").mkdir(parents=True, exist_ok=True)
    (home / "src" / "lib.rs").touch()
    name, version = CRATE
    (home / "Cargo.toml").write_text(
        f'[package]\nname = "dialect"\nedition = "2024"\n[workspace]\n[dependencies]\n{name} = "={version}"\n')
    told = subprocess.run(["cargo", "metadata", "--format-version", "1", "--quiet"], cwd=home, capture_output=True, text=True)
    if told.returncode != 0:
        sys.exit(f"dialect.py: cargo could not fetch {name} {version}:\n{told.stderr.strip()}")
    manifests = [p["manifest_path"] for p in json.loads(told.stdout)["packages"] if p["name"] == name]
    return pathlib.Path(manifests[0]).parent / "cuda-tile" / "test"


def parts(folder):
    for path in sorted(folder.rglob("*.mlir")):
        text = path.read_text()
        commands = [line for line in text.splitlines() if "RUN:" in line]
        apart = any("split-input-file" in c for c in commands)
        fails = any("RUN: not " in c for c in commands)
        for index, part in enumerate(re.split(r"^// -----.*$", text, flags=re.M) if apart else [text]):
            yield Part(path.relative_to(folder).as_posix(), index, part, fails)


def judge(girih, part):
    """The difference, or None; and the findings."""
    ran = subprocess.run([girih, "check", "--json", "-"], input=part.text, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        return f"exit {ran.returncode}", ran.stderr
    errors = [d for d in map(json.loads, ran.stdout.splitlines()) if d["severity"] == "error"]
    said = "".join(f"    {d['line']}: {d['code']} {d['message']}\n" for d in errors)
    lines = part.expected()
    if part.fails and not lines:
        return (None if errors else "verdict"), said
    if bool(errors) != bool(lines):
        return "verdict", said
    if lines and not {d["line"] for d in errors} & set(lines):
        return "place", said
    return None, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("girih")
    parser.add_argument("--verbose", action="store_true", help="print what differs, with its reason or without")
    parser.add_argument("--tests", type=pathlib.Path, help="the folder `test` of a checkout of the dialect")
    args = parser.parse_args()
    girih = pathlib.Path(args.girih).resolve()
    folder = args.tests or fetched()
    counts, unexplained, needed = collections.Counter(), [], set()
    for part in parts(folder):
        differs, said = judge(girih, part)
        counts["parts"] += 1
        if differs is None:
            counts["as expected"] += 1
            continue
        reason = REASONS.get((part.file, part.index))
        counts[f"{differs}, with a reason" if reason else differs] += 1
        needed.add((part.file, part.index))
        if reason is None:
            unexplained.append(part)
        if args.verbose or reason is None:
            print(f"{part.file}, part {part.index}: {differs}: {reason or 'no reason is known'}")
            print(f"    expected at lines {part.expected()}, found:\n{said or '    nothing'}")
    if not counts:
        sys.exit(f"dialect.py: there are no .mlir files in {folder}")
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    # Another version of the dialect has other parts.
    idle = [] if args.tests else sorted(REASONS.keys() - needed)
    for file, index in idle:
        print(f"{file}, part {index}: nothing differs, the reason can go")
    return 1 if idle or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
