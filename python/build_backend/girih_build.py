"""The build backend of the package: maturin, after the compiled files that stand beside the Python module.

`pip install .` comes here (pyproject.toml, `backend-path`). Cargo builds the driver library, `tileiras` and the command;
they are put where the wheel takes them from, and maturin builds the module and the wheel. All of it shares one target
folder with `cargo build --release`.

With GIRIH_WHEEL_GLIBC=2.17 Zig links them all, against that version of the C library: a wheel for every Linux that has it
or a newer one (`make wheel`). Without it they need the C library of this machine, and the wheel says `linux`.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import licences
import maturin
from maturin import (  # noqa: F401
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

_ROOT = Path(__file__).resolve().parent.parent.parent
# Cargo's outputs, and their places in the package: the library and the stand-in for a compiler inside the package, where
# they replace nothing of the system's; the command among the scripts.
_PLACES = {
    "libcuda.so": _ROOT / "python/girih/bin/libcuda.so.1",
    "tileiras": _ROOT / "python/girih/bin/tileiras",
    "girih": _ROOT / "target/wheel-data/scripts/girih",
}


# The terms of the crates that these are made of.
_LICENCES = _ROOT / "python/girih/bin/THIRD-PARTY-LICENSES"


def _target():
    """The glibc that the wheel is for and Rust's name of this machine, or None where it is for this machine's own."""
    glibc = os.environ.get("GIRIH_WHEEL_GLIBC")
    return (glibc, f"{platform.machine()}-unknown-linux-gnu") if glibc else None


def _place_binaries(target=None):
    if shutil.which("cargo") is None:
        raise SystemExit("girih: Rust's cargo was not found; install Rust (https://rustup.rs) and try again")
    command, folder = ["cargo", "build"], ""
    if target:
        glibc, folder = target
        if shutil.which("cargo-zigbuild") is None:
            raise SystemExit("girih: GIRIH_WHEEL_GLIBC needs the packages ziglang and cargo-zigbuild")
        command = ["cargo", "zigbuild", "--target", f"{folder}.{glibc}"]
    subprocess.run([*command, "--release", "--locked"], cwd=_ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR") or _ROOT / "target") / folder / "release"
    for name, place in _PLACES.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        # Never written in place: a process may be running the old one.
        fresh = place.with_name(f"{place.name}.new")
        shutil.copy2(built / name, fresh)
        os.replace(fresh, place)
    _LICENCES.write_text(licences.text(_ROOT, folder or f"{platform.machine()}-unknown-linux-gnu"))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    target = _target()
    _place_binaries(target)
    if target:
        glibc, name = target
        tag = f"manylinux_{glibc.replace('.', '_')}"
        arguments = ["--zig", "--target", name, "--compatibility", tag]
        config_settings = {**(config_settings or {}), "maturin.build-args": arguments}
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _place_binaries()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    return maturin.build_sdist(sdist_directory, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    # maturin asks for the folders it is told of, also before there is anything in them.
    for place in _PLACES.values():
        place.parent.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
