"""The pytest plugin: ``pytest -p girih.triton``.

    pytest -p girih.triton --girih-device sim tests/
"""

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("girih-triton", "Triton programs on the processor")
    group.addoption("--girih-device", choices=["cpu", "eval", "sim"],
                    help="native code, the reference evaluator, or the simulator of a GPU")
    group.addoption("--girih-check", action="store_true", default=None, help="test every memory access of a kernel")
    group.addoption("--girih-threads", type=int, metavar="N", help="worker threads; one per core by default")
    group.addoption("--girih-no-cuda", action="store_true", help='leave `device="cuda"` as PyTorch has it')


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    from girih.triton.hosting import install

    options = early_config.known_args_namespace
    try:
        install(
            device=options.girih_device,
            check=options.girih_check,
            threads=options.girih_threads,
            pretend=not options.girih_no_cuda,
        )
    except (ImportError, FileNotFoundError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header():
    import os

    from girih import __version__

    checked = ", every access checked" if os.environ.get("GIRIH_CHECK") == "1" else ""
    return f"girih {__version__}: Triton's kernels run on {os.environ.get('GIRIH_DEVICE') or 'cpu'}{checked}"
