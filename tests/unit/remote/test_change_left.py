"""A change on another machine after the connection was lost during the previous one."""

from __future__ import annotations

import pytest

from ironbench.errors import FailureError
from ironbench.host.remote import change, script
from ironbench.host.remote.address import SshAddress
from ironbench.host.remote.change import Pin, Rights
from ironbench.host.remote.link import Link


class _Held:
    """A shell on that machine that has made the change."""

    def __init__(self, last: list[str]) -> None:
        self._last = last
        self.first = ["done", "0-7"]

    async def end(self) -> bytes:
        return " ".join(self._last).encode()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(change, "sleep", waits.append)
    return waits


def answering(monkeypatch: pytest.MonkeyPatch, *last: str) -> None:
    async def begun(there: Link, text: str) -> _Held:
        return _Held(list(last))

    monkeypatch.setattr(script, "begun", begun)


def test_a_server_is_held_again_only_when_its_machine_has_undone_what_a_lost_link_left(
    monkeypatch: pytest.MonkeyPatch, slept: list[float]
) -> None:
    there = Link(SshAddress("db.example"))
    answering(monkeypatch)
    lost = Pin(there, Rights(), 77, "0")
    lost.begin()
    assert slept == [0.0]
    assert "the connection was lost" in lost.end()
    answering(monkeypatch, "undone", "0")
    following = Pin(there, Rights(), 77, "0")
    following.begin()
    assert slept[-1] > change.SILENT_S
    assert following.end() == ""
    elsewhere = Pin(Link(SshAddress("other.example")), Rights(), 77, "0")
    elsewhere.begin()
    assert slept[-1] == 0.0


def test_a_change_whose_answer_was_lost_may_have_been_made(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    async def silent(there: Link, text: str) -> _Held:
        raise FailureError("db.example", "a shell script on that machine did not begin: no answer")

    there = Link(SshAddress("db.example"))
    monkeypatch.setattr(script, "begun", silent)
    with pytest.raises(FailureError):
        Pin(there, Rights(), 77, "0").begin()
    answering(monkeypatch, "undone", "0")
    Pin(there, Rights(), 77, "0").begin()
    assert slept[-1] > change.SILENT_S
