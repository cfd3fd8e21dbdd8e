"""Setup that every test process needs."""

import atexit
import gc
import os
import shutil
import signal
from pathlib import Path

import made_once
import pytest
from hypothesis import settings

from ironbench.model import secrets


def pytest_xdist_auto_num_workers() -> int:
    """Returns the workers of `-n auto`: three per CPU, since a test with a server mostly waits."""
    return min(3 * len(os.sched_getaffinity(0)), 16)


_MADE = pytest.StashKey[Path | None]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_MADE] = made_once.begin()
    made_once.replace()
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        # Until collection ends. The controller of workers collects no tests, but it creates hardly any garbage.
        gc.disable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if made := config.stash.get(_MADE, None):
        shutil.rmtree(made, ignore_errors=True)
        del os.environ[made_once.FOLDER]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    strayed = [one.nodeid for one in items if one.get_closest_marker("alone") and "live" not in one.path.parts]
    if strayed:
        raise pytest.UsageError(f"alone, but not in tests/live, where `make test` looks for such: {strayed}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Checks that xdist keeps the tests of each group together. Otherwise, each worker would start the servers of a
    group."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # an extension module that finds its objects at exit reports them as leaks
    gc.enable()
    if not getattr(session.config.option, "loadgroup", False):
        return
    spread = [one.nodeid for one in session.items if one.get_closest_marker("xdist_group") and "@" not in one.nodeid]
    if spread:
        raise pytest.UsageError(f"xdist does not keep these with their group: {spread[:3]}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Removes the group that xdist appends to a test's name, because `--last-failed` would not find the longer name."""
    name, _, group = report.nodeid.rpartition("@")
    if name and "]" not in group and "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = name


# A shell starts background programs with SIGINT and SIGQUIT ignored, and every ironbench that the tests start would
# inherit this. A signal that has a handler or its default action here has its default action in child processes.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# Properties must hold however long an example takes, which depends on the machine's load.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _no_passwords_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process redacts every password it has used; another test's password would be redacted in this test's
    messages."""
    monkeypatch.setattr(secrets, "_KNOWN", set())
