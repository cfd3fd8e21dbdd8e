"""The directories of a server that runs as another system user may be inaccessible to ironbench. This does not end a
lab."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ironbench.errors import FailureError
from ironbench.host import copies
from ironbench.lab.slices.side import SliceSide
from ironbench.lab.slices.turns import not_written_back
from ironbench.records import make

Close = Callable[..., None]


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Close:
    """Makes paths inaccessible to a function of `os`, as for a user who is not root."""

    def close(function: str, *paths: Path) -> None:
        real = getattr(os, function)

        def refused(path: Any, *rest: Any, **more: Any) -> Any:
            if path in paths or path in [str(one) for one in paths]:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *rest, **more)

        monkeypatch.setattr(os, function, refused)

    return close


@pytest.fixture
def data(tmp_path: Path) -> Path:
    place = tmp_path / "server" / "data"
    place.mkdir(parents=True)
    return place


def test_a_directory_that_may_not_be_opened_is_synced_through_the_one_above_it(data: Path, closed: Close) -> None:
    closed("open", data)
    assert copies.sync_from_outside(data)


def test_nothing_is_synced_where_no_directory_above_may_be_opened_or_the_file_system_is_not_known(
    data: Path, closed: Close
) -> None:
    closed("open", data, *data.parents)
    assert not copies.sync_from_outside(data)
    closed("stat", data / "log")
    assert not copies.sync_from_outside(data / "log")


def test_no_other_file_system_is_synced_in_its_place(
    data: Path, closed: Close, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed("open", data)
    real = os.stat
    at: Any = SimpleNamespace(st_dev=-1)
    monkeypatch.setattr(os, "stat", lambda path, **more: at if path == data else real(path, **more))
    assert not copies.sync_from_outside(data)


def test_a_file_system_that_cannot_be_written_is_a_failure_as_before(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: Any = SimpleNamespace(syncfs=lambda fd: -1)
    monkeypatch.setattr(copies, "_libc", lambda: broken)
    with pytest.raises(FailureError):
        copies.sync_from_outside(data)


def test_a_turn_on_a_server_of_another_user_ends_well_and_its_record_says_what_was_not_written(
    data: Path, closed: Close
) -> None:
    closed("open", data, *data.parents)
    plan: Any = SimpleNamespace(choice=SimpleNamespace(workload="tpcb-like", options={}))
    session: Any = SimpleNamespace(directories=lambda: {"data": str(data)})
    unused: Any = None
    side = SliceSide(plan, unused, session, unused, unused, "")
    assert side._write_back() >= 0.0
    (warning,) = not_written_back(side)
    assert warning.code == "not-written-back" and warning.values == {"directories": (str(data),)}
    side.unreached.clear()
    assert not_written_back(side) == ()


def test_how_full_a_file_system_is_that_may_not_be_asked_is_not_in_the_record(data: Path, closed: Close) -> None:
    closed("statvfs", data / "log")
    session: Any = SimpleNamespace(directories=lambda: {"data": str(data), "log": str(data / "log")})
    found = make.capacity(session)
    assert set(found) == {"capacity_used_share{role=data}"}
