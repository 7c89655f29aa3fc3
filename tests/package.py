"""Every crate that a user depends on, as it would be published: `cargo package`, then a project that depends on the packages, and
the command as `cargo install` installs it. `make package` runs it."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CRATES = [
    "girih-base", "girih-tile-ir", "girih-graph", "girih-schedule", "girih-kernel", "girih-compiler", "girih-page", "girih-macros", "girih",
    "girih-cli",
]  # fmt: skip


def run(*command, cwd=ROOT, **options):
    print("$", *command, flush=True)
    return subprocess.run(list(map(str, command)), cwd=cwd, check=True, **options)


def version():
    return re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def main():
    run("cargo", "package", "--quiet", "--allow-dirty", *(word for crate in CRATES for word in ("-p", crate)))
    packages = {crate: ROOT / "target/package" / f"{crate}-{version()}" for crate in CRATES}

    # The README's kernel, on a machine that has only the packages, not this checkout.
    readme = (ROOT / "README.md").read_text().split("## From Rust")[1]
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        run("cargo", "new", "--quiet", "--vcs", "none", project)
        patches = [f'{crate} = {{ path = "{packages[crate]}" }}' for crate in CRATES[:-1]]
        with (project / "Cargo.toml").open("a") as f:
            f.write("\n[patch.crates-io]\n" + "\n".join(patches) + "\n")
        run("cargo", "add", "--quiet", "girih", "--path", packages["girih"], cwd=project)
        (project / "src/main.rs").write_text(re.search(r"```rust\n(.*?)```", readme, re.S)[1])
        run("cargo", "run", "--quiet", cwd=project, env={**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")})

        run("cargo", "install", "--quiet", "--path", "crates/girih-cli", "--root", folder)
        installed = Path(folder) / "bin/girih"
        said = run(installed, "--version", capture_output=True, text=True).stdout
        assert said == f"girih {version()}\n", said
        run(installed, "run", "examples/vector_add.mlir", "--verify", stdout=subprocess.DEVNULL)
    print("the packages build alone, a project depends on them, and the command installs")


if __name__ == "__main__":
    main()
