"""The licences of the crates that the wheel's compiled files are made of.

Each crate allows its use under terms that ask for their text to come along. The text is taken from the files that the crates
are published with, as `cargo metadata` finds them; equal texts are written once.
"""

import json
import subprocess
from pathlib import Path

# The packages whose compiled files a wheel holds.
SHIPPED = ("girih-py", "girih-shim", "girih-cli")
# Beginnings of the names of files that hold terms.
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")


def crates(root, target=None):
    """The crates of others that the shipped packages link, as `cargo metadata` describes them, by name and version."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    if target:
        command += ["--filter-platform", target]
    told = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)
    packages = {p["id"]: p for p in told["packages"]}
    nodes = {n["id"]: n for n in told["resolve"]["nodes"]}
    left, seen = [i for i, p in packages.items() if p["name"] in SHIPPED], set()
    while left:
        at = left.pop()
        if at in seen:
            continue
        seen.add(at)
        # Crates that only build or test another are not in the files.
        linked = [d["pkg"] for d in nodes[at]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
        left += [d for d in linked if not is_macro(packages[d])]
    others = [packages[i] for i in seen if packages[i]["source"]]
    return sorted(others, key=lambda p: (p["name"], p["version"]))


def is_macro(package):
    return any("proc-macro" in t["kind"] for t in package["targets"])


def text(root, target=None):
    """The file: every crate with its licence, then the texts with the crates that they are of."""
    found, texts = [], {}
    for package in crates(root, target):
        name = f"{package['name']} {package['version']}"
        found.append(f"{name}: {package['license'] or 'see its text'} ({package['repository'] or 'no page'})")
        folder = Path(package["manifest_path"]).parent
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.name.upper().startswith(NAMES):
                texts.setdefault(path.read_text(errors="replace").strip(), []).append(f"{name}, {path.name}")
    parts = ["Girih's compiled files contain Rust's standard library (MIT OR Apache-2.0) and these crates:\n\n" + "\n".join(found)]
    parts += ["\n".join(names) + "\n\n" + words for words, names in texts.items()]
    return f"\n\n{'-' * 80}\n\n".join(parts) + "\n"
