"""The pytest plugin: ``pytest -p girih.cutile``.

    pytest -p girih.cutile --girih-check tests/
    pytest -p girih.cutile --girih-children tests/      # for suites that start other Pythons

Girih is in place before the first conftest is read, so a suite written for a GPU imports what it always imports.
"""

import pytest

from girih.cutile.children import Watch

_watch = Watch("GIRIH_CUTILE")


def pytest_addoption(parser):
    group = parser.getgroup("girih", "cuTile programs on the processor")
    group.addoption("--girih-device", choices=["cpu", "eval", "sim"],
                    help="native code, the reference evaluator, or the simulator of a GPU")
    group.addoption("--girih-check", action="store_true", default=None, help="test every memory access of a kernel")
    group.addoption("--girih-children", action="store_true", help="redirect the Python processes that tests start, too")
    group.addoption("--girih-threads", type=int, metavar="N", help="worker threads; one per core by default")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    from girih.cutile.hosting import install

    options = early_config.known_args_namespace
    try:
        install(
            device=options.girih_device,
            check=options.girih_check,
            threads=options.girih_threads,
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
    from girih import __version__
    from girih.cutile.driver import options

    now = options()
    checked = ", every access checked" if now.get("check") else ""
    return f"girih {__version__}: kernels run on {now.get('device', 'cpu')}{checked}"
