"""The page of a lab: live while it is measured, the report when it is over."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from anyio import CancelScope
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from ironbench.errors import IronbenchError
from ironbench.host.processes import ProcessId
from ironbench.records.labs import LabDirectory
from ironbench.serve import measured, notes, running
from ironbench.serve.machine_now import Gauge
from ironbench.serve.page import page, part
from ironbench.serve.running import Experiment
from ironbench.serve.shelf import Shelf, error_text
from ironbench.serve.so_far import Known, SoFar

_PERIOD_S = 1.0
_GLANCE_S = 0.2
"""How often the file of a trial's state is asked whether it has changed,"""
_QUIET_S = 0.6
"""and how long it is not, once it has: it is written about once a second (`ironbench.trial.drive.live`)."""
_HEARTBEAT_S = 15
"""An answer that says nothing for longer may be ended by what lies between."""

_Made = tuple[tuple[int, int], SoFar]


def lab(shelf: Shelf, name: str, known: Known, whole: bool, failure: str) -> HTMLResponse:
    """`whole`: the report, although the lab is measured. `failure`: why its last start from the queue failed."""
    so_far = known.of(shelf.lab(name))[1]
    one = running.experiment(shelf, name)
    if one is None or whole:
        return measured.lab(shelf, name, so_far, failure)
    return live(shelf, name, one, so_far)


def live(shelf: Shelf, name: str, one: Experiment, so_far: SoFar) -> HTMLResponse:
    directory = shelf.lab(name)
    question = directory.lab().question
    return page(
        "live.html",
        question,
        at="/archive",
        charts=so_far.charts,
        question=question,
        name=name,
        pid=one.process.pid,
        so_far=so_far.parts,
        note=notes.note(directory.path, notes.OF_LAB, f"/lab/{name}/note/{notes.OF_LAB}"),
    )


class Events:
    """What open pages hear. However many there are, files are read when a state has changed, or once a second; and
    only while there are any."""

    def __init__(self, shelf: Shelf, known: Known, gauge: Gauge) -> None:
        self._shelf, self._known, self._gauge = shelf, known, gauge
        self._states: dict[str, _LabRead] = {}

    async def of(self, name: str) -> AsyncIterator[bytes]:
        """Server-sent events (HTML standard, section 9.2) until the lab is over: `state`, `parts`, `over`."""
        seen: tuple[int, int] | None = None
        last_sent, last_state = 0.0, b""
        making: asyncio.Task[_Made | None] | None = None
        wanted = CancelScope()
        try:
            while True:
                state = self._state(name)
                if state is None:
                    yield _event("over", {})
                    return
                directory = self._shelf.lab(name)
                known = self._known.at_hand(directory) if making is None else None
                if known is None:  # a page that hears no state meanwhile would take the server for gone (`serve.js`)
                    if making is None:
                        wanted = CancelScope()
                        making = asyncio.create_task(self._made(directory, wanted))
                    if (await asyncio.wait({making}, timeout=_GLANCE_S))[0]:
                        known, making = making.result(), None
                if known is not None and known[0] != seen:
                    seen, so_far = known
                    yield _event("parts", {"parts": so_far.parts, "charts": so_far.charts})
                now_s = time.monotonic()
                if state != last_state or now_s - last_sent > _HEARTBEAT_S:
                    last_state, last_sent = state, now_s
                    yield state
                await self._news(name)
        finally:
            wanted.cancel()

    async def _made(self, directory: LabDirectory, wanted: CancelScope) -> _Made | None:
        """None: the page was left before it began. What has begun ends: threads cannot be called back."""
        with wanted:
            try:
                return await run_in_threadpool(self._known.of, directory, False)
            except IronbenchError as error:
                return (0, 0), SoFar({"answer": part("so_far.html", "problem", error_text(error, self._shelf.results))})
        return None

    async def _news(self, name: str) -> None:
        """Until there may be some. All pages look at the same moments: waking a processor costs more than to look."""
        until_s, seen = time.monotonic() + _PERIOD_S, self._states[name]
        await _sleep(_QUIET_S)
        while time.monotonic() < until_s and seen.written_ns == running.written(seen.file):
            await _sleep(_GLANCE_S)

    def _state(self, name: str) -> bytes | None:
        """The event of its state; None: the lab is not measured any more."""
        now_s = time.monotonic()
        seen = self._states.get(name)
        written_ns = running.written(seen.file) if seen else 0  # before it is read: what is written meanwhile is news
        if seen is None or now_s - seen.at_s >= 0.9 * _PERIOD_S or seen.written_ns != written_ns:
            known = None if seen is None or now_s > seen.asked_s + running.ASKED_S else seen.process
            if known is not None and not known.alive():
                known = None
            one = running.experiment(self._shelf, name, process=known)
            state = None if one is None else _event("state", {"trial": shown(one), "machine": self._gauge.now()})
            file, process = (one.file, one.process) if one else (None, None)
            same = seen is not None and file == seen.file
            asked_s = seen.asked_s if seen is not None and known is not None else now_s
            seen = self._states[name] = _LabRead(now_s, file, written_ns if same else 0, state, process, asked_s)
        return seen.state


@dataclass(frozen=True, slots=True)
class _LabRead:
    """What was read of a lab."""

    at_s: float
    file: Path | None
    """Of its trial's state; None: there is none yet."""
    written_ns: int
    state: bytes | None
    """The event; None: the lab is over."""
    process: ProcessId | None
    asked_s: float
    """When the kernel was asked whether it holds the lab."""


async def _sleep(least_s: float) -> None:
    """Until the first moment after that time at which all pages look."""
    now_s = time.monotonic()
    await asyncio.sleep(math.ceil((now_s + least_s) / _GLANCE_S) * _GLANCE_S - now_s)


def shown(one: Experiment) -> dict[str, Any] | None:
    """The state of its trial as pages take it."""
    return None if one.state is None else msgspec.to_builtins(one.state)


def _event(name: str, content: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(content, enc_hook=str))
