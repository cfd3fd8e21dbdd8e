"""What every test needs of its own process."""

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
    """Workers of `-n auto`: three for each CPU, since a test with a server waits most of its time."""
    return min(3 * len(os.sched_getaffinity(0)), 16)


_MADE = pytest.StashKey[Path | None]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_MADE] = made_once.begin()
    made_once.replace()
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        gc.disable()  # until all is collected, which a controller of workers does not: next to nothing of it is garbage


def pytest_unconfigure(config: pytest.Config) -> None:
    if made := config.stash.get(_MADE, None):
        shutil.rmtree(made, ignore_errors=True)
        del os.environ[made_once.FOLDER]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    strayed = [one.nodeid for one in items if one.get_closest_marker("alone") and "live" not in one.path.parts]
    if strayed:
        raise pytest.UsageError(f"alone, but not in tests/live, where `make test` looks for such: {strayed}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """A group that xdist does not see is spread over all workers, each with servers of its own, and nothing says so."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # an extension module that finds its objects at the end takes them for leaks
    gc.enable()
    if not getattr(session.config.option, "loadgroup", False):
        return
    spread = [one.nodeid for one in session.items if one.get_closest_marker("xdist_group") and "@" not in one.nodeid]
    if spread:
        raise pytest.UsageError(f"xdist does not keep these with their group: {spread[:3]}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Without the group that xdist puts behind a test's name, by which `--last-failed` would not find it again."""
    name, _, group = report.nodeid.rpartition("@")
    if name and "]" not in group and "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = name


# A shell that starts a program in the background makes it ignore Ctrl-C and SIGQUIT, and so would every ironbench that
# the tests start. What has a handler or the default here is at its default in a program that is started from here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# A law holds however long an example takes: how long that is depends on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _no_passwords_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process hides every password that it has used: one of another test would be hidden in this one's messages."""
    monkeypatch.setattr(secrets, "_KNOWN", set())
