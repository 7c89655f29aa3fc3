"""The pytest plugin: ``pytest -p girih.triton``.

    pytest -p girih.triton --girih-device sim tests/
    pytest -p girih.triton --girih-children tests/      # for suites that start other Pythons
"""

import pytest

from girih.cutile.children import Watch

_watch = Watch("GIRIH_TRITON_CHILDREN")


def pytest_addoption(parser):
    group = parser.getgroup("girih-triton", "Triton programs on the processor")
    group.addoption("--girih-device", choices=["cpu", "eval", "sim"],
                    help="native code, the reference evaluator, or the simulator of a GPU")
    group.addoption("--girih-check", action="store_true", default=None, help="test every memory access of a kernel")
    group.addoption("--girih-children", action="store_true", help="redirect the Python processes that tests start, too")
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
            children=options.girih_children,
        )
    except (ImportError, FileNotFoundError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_configure():
    _watch.begin()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    _watch.started.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure that may be one of processes which ran without Girih says so."""
    _watch.explain((yield).get_result())


def pytest_report_header():
    import os

    from girih import __version__

    checked = ", every access checked" if os.environ.get("GIRIH_CHECK") == "1" else ""
    return f"girih {__version__}: Triton's kernels run on {os.environ.get('GIRIH_DEVICE') or 'cpu'}{checked}"
