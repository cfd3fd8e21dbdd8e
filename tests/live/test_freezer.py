"""A frozen server does nothing, continues where it was, and is never left frozen when a process ends."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import own_server as pg
import pytest
from patience import eventually

from ironbench.engines.cleanup import cleanup
from ironbench.engines.server_session import ServerSession
from ironbench.errors import FailureError
from ironbench.host import control_groups, processes, register
from ironbench.host import freezer as freezing
from ironbench.host.mounts import all_mounts
from ironbench.host.tree import Tree
from ironbench.model.session import ServerPause, WorkConnection

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]


@pytest.fixture(params=["as here", "v2", "SIGSTOP"])
def frozen(request: pytest.FixtureRequest, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerSession]:
    if request.param == "SIGSTOP":
        monkeypatch.setattr(control_groups, "freezing", lambda *_: None)
    if request.param == "v2":
        group = _new_unified_group()
        monkeypatch.setattr(control_groups, "freezing", lambda *_: group)
    session = pg.start(pg.system(place / "d"))
    yield session
    session.stop()


def _new_unified_group() -> Path:
    """Returns a group to be created, in the version 2 hierarchy. Skips if there is none."""
    mount = next((Path(one.path) for one in all_mounts(Tree()) if one.kind == "cgroup2"), None)
    if mount is None or not os.access(mount, os.W_OK):
        pytest.skip("no control groups of version 2 can be made here")
    return mount / f"ironbench-{secrets.token_hex(8)}"


def freezer(session: ServerSession) -> ServerPause:
    found = session.freezer()
    assert found is not None
    return found


def test_a_frozen_server_uses_nothing_and_goes_on_where_it_was(frozen: ServerSession) -> None:
    line, still = frozen.line(), freezer(frozen)
    assert line.query("SELECT 1") == [("1",)]
    still.freeze()
    pids = frozen.processes()
    assert len(pids) > 3  # the server's own helper processes are frozen as well
    before = processes.used(pids)
    time.sleep(0.3)
    assert processes.used(pids) - before == processes.ResourceUsage()
    still.thaw()
    assert line.query("SELECT 2") == [("2",)]
    line.close()


def test_a_group_that_takes_no_process_leaves_signals_and_one_that_goes_says_what_to_do(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").mkdir()
    session = pg.start(pg.system(place / "d"))
    for impossible in (tmp_path / "taken", tmp_path / "not there" / "group"):
        with monkeypatch.context() as patch:
            patch.setattr(control_groups, "freezing", lambda *_, group=impossible: group)
            assert freezer(session).how == "SIGSTOP"
    still = freezer(session)
    if still.how != "SIGSTOP":
        with monkeypatch.context() as patch, pytest.raises(FailureError, match="control group") as failure:
            patch.setattr(freezing, "_write", _refused)
            still.freeze()
        assert "ironbench cleanup" in failure.value.hint
    session.stop()


def _refused(*_: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_what_a_server_starts_later_freezes_with_it(frozen: ServerSession) -> None:
    still, line = freezer(frozen), frozen.line()
    ((pid,),) = line.query("SELECT pg_backend_pid()")
    still.freeze()
    before = processes.used([int(str(pid))])
    with pytest.raises(TimeoutError):
        _answered(line, 0.3)
    assert processes.used([int(str(pid))]) == before
    still.thaw()


def _answered(line: WorkConnection, within_s: float) -> None:
    """Raises TimeoutError if there is no answer in time. The query then stays in progress."""
    asking = threading.Thread(target=line.query, args=("SELECT 1",), daemon=True)
    asking.start()
    asking.join(within_s)
    if asking.is_alive():
        raise TimeoutError


def test_a_frozen_server_is_stopped_in_good_order(frozen: ServerSession) -> None:
    freezer(frozen).freeze()
    server = pg.pid_of(frozen)
    frozen.stop()
    assert processes.identify(server) is None
    assert register.entries() == []


def test_a_frozen_server_that_is_killed_ends_when_it_is_thawed(frozen: ServerSession) -> None:
    still = freezer(frozen)
    still.freeze()
    server = processes.identify(pg.pid_of(frozen))
    assert server is not None
    below = processes.below(server.pid)
    server.signal(signal.SIGKILL)
    still.thaw()
    assert server.wait(10.0)
    assert not frozen.alive()
    assert all(one.wait(10.0) for one in below), "nothing of it stands still for ever"


def test_the_guard_thaws_and_ends_a_server_whose_ironbench_was_killed(place: Path) -> None:
    with pg.Parent(place / "d", frozen=True) as parent:
        parent.kill(signal.SIGKILL)
        assert eventually(lambda: not parent.server.alive())
        assert eventually(lambda: register.entries() == [])


@pytest.mark.long
def test_cleanup_thaws_and_ends_what_outlived_ironbench_and_its_guard(place: Path) -> None:
    with pg.Parent(place / "d", frozen=True) as parent:
        os.kill(parent.guard.pid, signal.SIGKILL)
        parent.kill(signal.SIGKILL)
        (entry,) = register.entries()
        assert parent.server.alive()
        assert [one.server for one in cleanup(remove_data=False).ended] == [parent.server]
        assert not parent.server.alive()
        assert not any(Path(group).exists() for group in entry.groups)
