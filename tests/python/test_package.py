"""The package itself: what it exposes, where its parts are, and what it says when they are not there."""

import os
import pathlib
import subprocess
import sys

import pytest

import girih
import girih._library


def test_the_version_is_the_librarys():
    from girih.cutile import driver

    assert driver.version() == girih.__version__


def test_its_programs_run():
    tileiras = girih._library.find("tileiras")
    shown = subprocess.run([tileiras, "--version"], capture_output=True, text=True)
    assert shown.returncode == 0 and "irih" in shown.stdout


def test_licences_of_all_linked_crates_come_along(monkeypatch):
    root = pathlib.Path(__file__).resolve().parents[2]
    monkeypatch.syspath_prepend(root / "python/build_backend")
    import licences

    told = licences.text(root, "x86_64-unknown-linux-gnu")
    listed = told.split("-" * 80)[0].splitlines()[2:]
    named = {line.split()[0] for line in listed if line}
    # Linked by the module, by the driver library, by the command; not by anything.
    assert {"pyo3", "blake3", "clap"} <= named and not named & {"pyo3-build-config", "syn", "windows-sys", "girih"}
    assert all(": see its text" not in line for line in listed), told[:4000]
    assert "Permission is hereby granted, free of charge" in told and "Apache License" in told


def test_a_folder_named_by_the_environment_goes_first(tmp_path, monkeypatch):
    (tmp_path / "libcuda.so.1").write_text("")
    monkeypatch.setenv("GIRIH_LIBRARY_DIR", str(tmp_path))
    assert girih._library.find("libcuda.so.1") == tmp_path / "libcuda.so.1"


def test_a_missing_file_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(girih._library, "_HERE", tmp_path)
    monkeypatch.delenv("GIRIH_LIBRARY_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match="libcuda.so.1 is missing .* `pip install .` in a checkout"):
        girih._library.find("libcuda.so.1")


def test_a_real_driver_is_left_alone(write, run):
    # Any library under that name that is not Girih's stands for a GPU's driver.
    source = write("driver.c", "int cuInit(unsigned flags) { return 0; }")
    library = source.with_name("libcuda.so.1")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source], check=True)
    here = run(
        "-c",
        f"import ctypes; ctypes.CDLL({str(library)!r}, mode=ctypes.RTLD_GLOBAL)\n"
        "import girih.cutile\n"
        "try: girih.cutile.install()\n"
        "except girih.cutile.RealDriver as error: print(error)",
    )
    assert "already loaded a CUDA driver" in here.stdout, here.stderr


def test_a_cuda_tile_that_has_moved_is_named():
    import types

    from girih.cutile import UnsupportedVersion, hosting

    future = types.ModuleType("cuda.tile._compile")
    with pytest.raises(UnsupportedVersion, match=r"does not support cuda-tile \S+: cuda.tile._compile.BytecodeVersion"):
        hosting._host_compiler(future)
    from cuda.tile import _compile

    future.BytecodeVersion = _compile.BytecodeVersion
    future.compile_tile = lambda function, signatures: None
    with pytest.raises(UnsupportedVersion, match="sm_arch="):
        hosting._host_compiler(future)


def test_the_command_finds_this_python(write, tmp_path):
    beside = pathlib.Path(sys.executable).with_name("girih")
    command = beside if beside.exists() else girih._library.find("girih")
    script = write("script.py", "import sys, cuda.tile\nprint(sys.argv[1:])\nsys.exit(4)")
    env = {**os.environ, "GIRIH_PYTHON": sys.executable}
    here = subprocess.run([command, "cutile", script, "--check", "x"], capture_output=True, text=True, env=env)
    assert (here.returncode, here.stdout) == (4, "['--check', 'x']\n"), here.stderr
    shown = subprocess.run([command, "cutile", "--help"], capture_output=True, text=True, env=env)
    assert "python -m girih.cutile" in shown.stdout


def test_the_command_without_the_package(tmp_path):
    empty = tmp_path / "python3"
    empty.write_text("#!/bin/sh\nexit 9\n")
    empty.chmod(0o755)
    beside = pathlib.Path(sys.executable).with_name("girih")
    command = beside if beside.exists() else girih._library.find("girih")
    env = {**os.environ, "GIRIH_PYTHON": str(empty)}
    here = subprocess.run([command, "cutile", "x.py"], capture_output=True, text=True, env=env)
    assert here.returncode == 2
    assert "the Python package girih is not installed" in here.stderr and "pip install" in here.stderr
