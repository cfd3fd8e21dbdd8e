"""The page of a lab: live values while the lab runs, and the report afterwards."""

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
from ironbench.serve.machine_now import MachineMeter
from ironbench.serve.page import page, part
from ironbench.serve.progress_page import LabProgress, ProgressCache
from ironbench.serve.results import Results, error_text
from ironbench.serve.running import Experiment

_PERIOD_S = 1.0
_GLANCE_S = 0.2
"""Seconds between two checks of whether the state file of a trial has changed."""
_QUIET_S = 0.6
"""Seconds without checks after a change. The file is written only about once a second (`ironbench.trial.drive.live`),
so it does not change again earlier."""
_HEARTBEAT_S = 15
"""Maximum number of seconds without an event. Proxies may close a stream that is silent for longer."""

_Made = tuple[tuple[int, int], LabProgress]


def lab(results: Results, name: str, known: ProgressCache, whole: bool, failure: str) -> HTMLResponse:
    """Shows the report or the live page. `whole`: whether to show the report even while the lab runs. `failure`: why
    the lab's last start from the queue failed."""
    progress = known.of(results.lab(name))[1]
    one = running.experiment(results, name)
    if one is None or whole:
        return measured.lab(results, name, progress, failure)
    return live(results, name, one, progress)


def live(results: Results, name: str, one: Experiment, progress: LabProgress) -> HTMLResponse:
    directory = results.lab(name)
    question = directory.lab().question
    return page(
        "live.html",
        question,
        at="/archive",
        charts=progress.charts,
        question=question,
        name=name,
        pid=one.process.pid,
        progress=progress.parts,
        note=notes.note(directory.path, notes.OF_LAB, f"/lab/{name}/note/{notes.OF_LAB}"),
    )


class Events:
    """The event streams of open live pages. Files are read about once a second and only if they have changed, no matter
    how many pages are open."""

    def __init__(self, results: Results, known: ProgressCache, meter: MachineMeter) -> None:
        self._results, self._known, self._meter = results, known, meter
        self._states: dict[str, _LabRead] = {}

    async def of(self, name: str) -> AsyncIterator[bytes]:
        """Yields server-sent events (HTML standard, section 9.2) until the lab has ended: `state` with the trial's
        state, `parts` with changed parts of the page, and `over` at the end."""
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
                directory = self._results.lab(name)
                known = self._known.cached(directory) if making is None else None
                # The progress is computed in the background. Meanwhile, `state` events must continue, because
                # `serve.js` would otherwise report a lost server.
                if known is None:
                    if making is None:
                        wanted = CancelScope()
                        making = asyncio.create_task(self._made(directory, wanted))
                    if (await asyncio.wait({making}, timeout=_GLANCE_S))[0]:
                        known, making = making.result(), None
                if known is not None and known[0] != seen:
                    seen, progress = known
                    yield _event("parts", {"parts": progress.parts, "charts": progress.charts})
                now_s = time.monotonic()
                if state != last_state or now_s - last_sent > _HEARTBEAT_S:
                    last_state, last_sent = state, now_s
                    yield state
                await self._wait_for_change(name)
        finally:
            wanted.cancel()

    async def _made(self, directory: LabDirectory, wanted: CancelScope) -> _Made | None:
        """Computes the progress in a thread. Returns None if the page was closed before the thread started. A thread
        that has started is not cancelled."""
        with wanted:
            try:
                return await run_in_threadpool(self._known.of, directory, False)
            except IronbenchError as error:
                return (0, 0), LabProgress(
                    {"answer": part("progress.html", "problem", error_text(error, self._results.directory))}
                )
        return None

    async def _wait_for_change(self, name: str) -> None:
        """Waits until the state file has changed, but no longer than about a second. All pages check their files at the
        same moments, so that a CPU wakes up less often. A wake-up costs more than a check."""
        until_s, seen = time.monotonic() + _PERIOD_S, self._states[name]
        await _sleep(_QUIET_S)
        while time.monotonic() < until_s and seen.written_ns == running.written(seen.file):
            await _sleep(_GLANCE_S)

    def _state(self, name: str) -> bytes | None:
        """Returns the `state` event of a lab. Returns None if the lab is no longer running."""
        now_s = time.monotonic()
        seen = self._states.get(name)
        # The modification time of the file is read before its contents. If the file is written in between, the next
        # check notices the change.
        written_ns = running.written(seen.file) if seen else 0
        if seen is None or now_s - seen.at_s >= 0.9 * _PERIOD_S or seen.written_ns != written_ns:
            known = None if seen is None or now_s > seen.asked_s + running.ASKED_S else seen.process
            if known is not None and not known.alive():
                known = None
            one = running.experiment(self._results, name, process=known)
            state = None if one is None else _event("state", {"trial": trial_state(one), "machine": self._meter.now()})
            file, process = (one.file, one.process) if one else (None, None)
            same = seen is not None and file == seen.file
            asked_s = seen.asked_s if seen is not None and known is not None else now_s
            seen = self._states[name] = _LabRead(now_s, file, written_ns if same else 0, state, process, asked_s)
        return seen.state


@dataclass(frozen=True, slots=True)
class _LabRead:
    """The last known state of a running lab."""

    at_s: float
    file: Path | None
    """The state file of the lab's trial, or None if no trial has started yet."""
    written_ns: int
    state: bytes | None
    """The `state` event, or None if the lab has ended."""
    process: ProcessId | None
    asked_s: float
    """Time at which the lab's lock was last checked."""


async def _sleep(least_s: float) -> None:
    """Sleeps for at least `least_s`, and then until the next moment at which all pages wake up."""
    now_s = time.monotonic()
    await asyncio.sleep(math.ceil((now_s + least_s) / _GLANCE_S) * _GLANCE_S - now_s)


def trial_state(one: Experiment) -> dict[str, Any] | None:
    """Returns the state of the trial as values that JSON can represent. Returns None if no trial has started."""
    return None if one.state is None else msgspec.to_builtins(one.state)


def _event(name: str, content: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(content, enc_hook=str))
