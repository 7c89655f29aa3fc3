#!/usr/bin/env python3
"""Writes the corpus: every module of `encoded` and every kernel of `kernels`, at each version that has it, and the smallest kernel
of each program in tests/cutile at one version, into corpus/VERSION/NAME.tileirbc. Modules that Girih deliberately does not read as
NVIDIA's tools do go into outside/ instead. The same inputs give the same bytes; `--check` says which files differ instead of
writing."""
import argparse
import pathlib
import shutil
import sys

import encoded
import export
import recording

HERE = pathlib.Path(__file__).resolve().parent
# The operation of previews, which nothing writes yet.
OUTSIDE = {"preview_call"}


def fresh():
    """Yields (version, name, bytes) in a fixed order."""
    kernels = export.load(HERE / "kernels.py").KERNELS
    for version in export.VERSIONS:
        spelled = version.as_string()
        for name, write in encoded.MODULES.items():
            data = write(version)
            if data is not None:
                yield spelled, name, data
        for name, kernel, signatures, since in kernels:
            if spelled >= since:
                data, refusal = export.bytecode(kernel, signatures, version)
                if data is None:
                    sys.exit(f"{name} at {spelled}: {refusal}")
                yield spelled, f"kernel_{name}", data


def from_programs():
    """Yields (version, name, bytes), the versions in turn. No program that needs PyTorch."""
    written = export.VERSIONS[:4]
    for number, path in enumerate(recording.programs()):
        launches, _ = recording.record(path)
        for version in written[number % 4:]:
            modules = [export.bytecode(kernel, [signature], version)[0] for kernel, signature in launches]
            if any(modules):
                yield version.as_string(), f"program_{path.stem}", min(filter(None, modules), key=lambda m: (len(m), m))
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    folders = [HERE / "corpus", HERE / "outside"]
    made = {folders[name in OUTSIDE] / version / f"{name}.tileirbc": data
            for version, name, data in [*fresh(), *from_programs()]}
    if options.check:
        stale = [p for p, data in made.items() if not p.exists() or p.read_bytes() != data]
        stale += sorted({p for f in folders for p in f.rglob("*.tileirbc")} - set(made))
        for path in stale:
            print("differs:", path.relative_to(HERE))
        sys.exit(1 if stale else 0)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    for path, data in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(made)} files, {sum(map(len, made.values()))} bytes")


if __name__ == "__main__":
    main()
