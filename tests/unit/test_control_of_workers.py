"""Reports on a trial by the process that talks to Ray, without Ray."""

from __future__ import annotations

import queue
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ironbench.errors import FailureError, InputError
from ironbench.host.child import Channel
from ironbench.trial.cluster import ray_workers
from ironbench.trial.cluster.control import _SILENT_S, Control
from ironbench.trial.cluster.ray_child import _RayChild
from ironbench.trial.cluster.worker import BOOT

Result = tuple[int, tuple[dict[str, Any], bytes]]


class _Parent:
    """Receives the answers."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any], data: bytes = b"") -> None:
        self.heard.append(message)


@pytest.mark.parametrize("handed_over", [2, 1])
def test_a_worker_whose_result_does_not_come_is_lost(monkeypatch: pytest.MonkeyPatch, handed_over: int) -> None:
    """The worker had finished its trial and then died; the throughput of the others is not a complete result."""

    def results(control: _RayChild, lost: str) -> Iterator[Result]:
        yield from ((number, ({}, b"result")) for number in range(handed_over))

    monkeypatch.setattr(_RayChild, "_results", results)
    parent = _Parent()
    control = _RayChild(cast(Channel, parent))
    control._pool.workers = [object(), object()]
    boot = Path(BOOT).read_text().strip()
    control._pool.hosts = [{"host": f"client{number}", "pid": 70 + number, "boot": boot} for number in range(2)]
    control._hand_over([], "")
    lost = [frame["lost"] for frame in parent.heard if "lost" in frame and "over" not in frame]
    assert lost == ([] if handed_over == 2 else ["worker 2 on client1 (process 71) returned no results"])
    assert parent.heard[-1]["over"]


class _SilentError(Exception):
    """No answer in time."""


class _Ray:
    """Workers answer with their results, or never (None). Waiting takes no time but is counted."""

    exceptions = SimpleNamespace(RayError=_SilentError, GetTimeoutError=_SilentError)

    def __init__(self) -> None:
        self.waited_s = 0.0

    def wait(self, asked: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        done = [one for one in asked if one.result is not None]
        self.waited_s += 0.0 if len(done) >= num_returns else timeout
        return done, [one for one in asked if one not in done]

    def get(self, one: Any, timeout: float) -> Any:
        if one.result is None:
            self.waited_s += timeout
            raise _SilentError
        return one.result


class _Worker:
    def __init__(self, result: tuple[dict[str, Any], bytes] | None) -> None:
        self.result = self
        self._answer = SimpleNamespace(result=result)

    def remote(self) -> Any:
        return self._answer


@pytest.mark.parametrize("lost", ["", "worker 2 on client1 (process 71) was lost"])
def test_many_workers_that_are_lost_at_once_do_not_keep_the_others_results_from_us(
    monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """If a parent hears nothing for `_SILENT_S`, it assumes that the control process hangs and fails the trial."""
    ray = _Ray()
    monkeypatch.setitem(sys.modules, "ray", cast(Any, ray))
    control = _RayChild(cast(Channel, _Parent()))
    results: list[tuple[dict[str, Any], bytes] | None] = [None] * 9
    results[4] = ({}, b"result")
    control._pool.workers = [_Worker(one) for one in results]
    assert list(control._results(lost)) == [(4, ({}, b"result"))]
    assert ray.waited_s < _SILENT_S


@pytest.mark.parametrize("address", ["10.77.0.1", "10.77.0.1:", ":6379", "10.77.0.1:99999", "ray://10.77.0.1", "db:٣"])
def test_an_address_of_a_cluster_that_cannot_be_meant_is_refused_as_such(address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a Ray cluster") as caught:
        ray_workers._require_answer(address, f"--cluster {address}")
    assert "HOST:PORT" in caught.value.hint


def test_an_error_that_ends_the_drive_of_one_worker_ends_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    control = _RayChild(cast(Channel, _Parent()))
    stopped: list[str] = []

    def asked(ask: Any) -> list[Any]:
        worker = SimpleNamespace(
            state=SimpleNamespace(remote=lambda: "state"), stop=SimpleNamespace(remote=lambda: "stop")
        )
        if ask(0, worker) == "stop":
            stopped.append("all")
            return [None, None]
        return [("aborted", 1.0, 5, 1, []), ("done" if stopped else "run", 1.0, 5, 0, [])]

    monkeypatch.setattr(control, "_all", asked)
    control._until({"done", "aborted", "refused"})
    assert stopped == ["all"]


def test_a_worker_that_cannot_tell_whether_it_reaches_the_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = _Ray()
    monkeypatch.setitem(sys.modules, "ray", cast(Any, ray))
    control = _RayChild(cast(Channel, _Parent()))
    control._pool.workers = [
        SimpleNamespace(reach=SimpleNamespace(remote=lambda server, result=result: SimpleNamespace(result=result)))
        for result in ("", None, "")
    ]
    first, second, third = control._reach({"host": "db"})
    assert (first, third) == ("", "") and "no answer within" in second


def test_a_control_process_that_has_died_is_said_to_have_died() -> None:
    control = object.__new__(Control)
    died = FailureError("control process of the workers", "the process ended")
    ours, theirs = socket.socketpair()
    theirs.close()
    child: Any = Channel(ours)
    child.died = lambda *_, kind: died
    control._child = child
    control._frames = queue.SimpleQueue()
    control._frames.put(None)
    with pytest.raises(FailureError, match="the process ended"):
        control.request({"ask": "workers"})
