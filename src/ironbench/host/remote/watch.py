"""Samples files of a remote machine during a trial, at the same rate as local files, over one ssh session.

ironbench sends a tick for each sample; a remote shell answers with the files, and nothing runs there between
ticks. A lost connection is re-established, and the samples from before and after are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ironbench import units
from ironbench.errors import IronbenchError
from ironbench.host.remote import frames, link
from ironbench.host.remote.frames import Frame
from ironbench.host.remote.link import Link, quoted
from ironbench.model.note import Note, note
from ironbench.model.observation import Source

if TYPE_CHECKING:
    from asyncssh import SSHClientProcess

SHORTEST_S = 1.0
"""Shortest period of sampling in seconds. A frame costs about 3 ms of remote CPU time, so a shorter period would exceed
the promised 1%."""
LONGEST_S = 2.0
"""Longest period of sampling in seconds. A busy machine may answer late at the end of the window. With a longer period,
too little would then be known about its load near the end of the window."""
CODE = "link-lost"
"""Code of the note on a trial during which the connection to the server's machine was lost."""
LOST_S = 2.5
"""Time in seconds after which an unanswered tick means that the connection was lost."""
_KEEP_BYTES = 128 << 20
"""Size in bytes above which frames are thinned and periods are doubled, as in the core's sampler, because trials may
last for days."""
_AGAIN_S = 0.5
_PIECE_BYTES = 1 << 20
_LAST_S = 3.0
"""Timeout for the last frame after the trial."""


@dataclass(frozen=True, slots=True)
class WatchedTrial:
    """Samples and statistics of one remotely observed trial."""

    samples: dict[str, list[tuple[float, bytes]]]
    """Samples by source, see `Driven.samples`."""
    own: frozenset[int] = frozenset()
    """Process ids of the ssh sessions on the remote machine. Any process that ironbench starts there is a descendant of
    such a session."""
    error_s: float = 0.0
    """Maximum error of the time of a sample, in seconds."""
    round_trip_s: float = 0.0
    """Median round-trip time of a frame, including the time to read the files."""
    lost: tuple[tuple[float, float], ...] = ()
    """Periods without samples, in seconds relative to the start of the window."""
    cpu_s: float = 0.0
    """CPU time that the connection used on the local machine while sampling, in seconds."""
    dropped: int = 0
    """Number of samples that were removed to limit memory."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Watch:
    """Samples a remote machine from `begin` to `end`. Sampling runs in the thread of connections. During the trial,
    `follow` must be called with the trial's progress."""

    link: Link
    sources: Sequence[Source]
    duration_s: float | None = None
    """Length of the measured window in seconds. None if unknown."""
    _groups: list[tuple[float, tuple[Source, ...]]] = field(default_factory=list)
    _frames: list[Frame] = field(default_factory=list)
    _own: set[int] = field(default_factory=set)
    _notes: list[str] = field(default_factory=list)
    _lost: list[tuple[float, float]] = field(default_factory=list)
    _began_s: float = 0.0
    _origin_s: float | None = None
    _marks: list[float] = field(default_factory=list)
    _passed_marks: list[float] = field(default_factory=list)
    _bytes: int = 0
    _dropped: int = 0
    _due: list[float] = field(default_factory=list)
    _ended: bool = False
    _over: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _running: Future[None] | None = None
    _cpu_s: float = 0.0

    def begin(self) -> None:
        """Starts sampling. If sampling fails later, the trial continues."""
        self._groups = frames.groups(self.sources, SHORTEST_S, LONGEST_S)
        self._cpu_s, self._began_s = link.cpu_s(), time.monotonic()
        self._due = [self._began_s] * len(self._groups)
        self._running = asyncio.run_coroutine_threadsafe(self._watch(), link.loop())

    def follow(self, phase: str, elapsed_s: float) -> None:
        """Aligns the ticks with the measured window as soon as its start is known, so that both ends of the window are
        sampled."""
        now = time.monotonic()
        # In the warm-up, `elapsed_s` is 0 until the start of the window is known. Afterwards it is negative.
        if self._origin_s is None and (phase == "run" or (phase == "warmup" and elapsed_s < 0)):
            self._origin_s = now - elapsed_s
            link.loop().call_soon_threadsafe(self._follow, self._origin_s)
        elif not self._ended and phase in ("drain", "done"):
            self._ended = True
            if self.duration_s is None or elapsed_s < self.duration_s - 0.1:
                link.loop().call_soon_threadsafe(self._mark, now)

    def end(self, window_start_s: float) -> WatchedTrial:
        """Ends sampling. `window_start_s`: start of the measured window, as `time.monotonic`."""
        assert self._running is not None
        self._over = True
        link.loop().call_soon_threadsafe(self._wake.set)
        try:
            self._running.result(_LAST_S + 1.0)
        except TimeoutError:
            self._running.cancel()
            # The connection still waits for an answer or is being re-established. Samples are missing since the last
            # frame.
            self._lost.append((self._frames[-1].came_s if self._frames else self._began_s, time.monotonic()))
        except (IronbenchError, OSError) as error:
            self._notes.append(str(error))
        return self._watched(window_start_s, link.cpu_s() - self._cpu_s)

    def stop(self) -> None:
        """Ends sampling without a result. May also be called after `end`."""
        self._over = True
        if self._running is not None:
            self._running.cancel()

    def _watched(self, start_s: float, cpu_s: float) -> WatchedTrial:
        samples: dict[str, list[tuple[float, bytes]]] = {source.name: [] for source in self.sources}
        places = frames.placed(self._frames)
        for one, place in zip(self._frames, places, strict=True):
            for name, raw in frames.contents(one.text, self._sources(one.group)).items():
                samples[name].append((place.at_s - start_s, raw))
        took = sorted(one.came_s - one.sent_s for one in self._frames)
        return WatchedTrial(
            {name: taken for name, taken in samples.items() if taken},
            frozenset(self._own),
            max((place.error_s for place in places), default=0.0),
            took[len(took) // 2] if took else 0.0,
            tuple((low - start_s, high - start_s) for low, high in self._lost),
            cpu_s,
            self._dropped,
            tuple(self._notes),
        )

    def _sources(self, group: int) -> list[Source]:
        """Returns the sources that a frame of the group contains."""
        return [source for _, sources in self._groups[: group + 1] for source in sources]

    # The methods below run in the thread of connections.

    def _follow(self, origin_s: float) -> None:
        now = time.monotonic()
        # A tick that is overdue remains due. If connecting took long, the first sample is therefore taken as soon as
        # the connection exists.
        self._due = [
            due_s if due_s <= now else _next(origin_s, period_s, now)
            for due_s, (period_s, _) in zip(self._due, self._groups, strict=True)
        ]
        self._marks = [origin_s + self.duration_s] if self.duration_s is not None else []
        self._wake.set()

    def _mark(self, at_s: float) -> None:
        self._marks = [at_s]
        self._wake.set()

    async def _watch(self) -> None:
        """Samples until `end`; reconnects whenever the connection is lost."""
        import asyncssh

        down_s: float | None = None
        while not self._over:
            try:
                process = await self.link.process(f"exec sh -c {quoted(frames.script(self._groups))}")
            except (IronbenchError, asyncssh.Error, OSError) as error:
                down_s = down_s or time.monotonic()
                note = f"cannot reconnect: {error}"
                self._notes = [*(one for one in self._notes if one != note), note]
                await self._rest(_AGAIN_S)
                continue
            try:
                await self._ticking(process, down_s)
                down_s = None
            except (TimeoutError, asyncssh.Error, OSError, asyncio.IncompleteReadError):
                down_s = self._frames[-1].came_s if self._frames else self._began_s
                await self._rest(_AGAIN_S)
            finally:
                process.close()
        if down_s is not None:
            self._lost.append((down_s, time.monotonic()))

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._until_over(), seconds)

    async def _until_over(self) -> None:
        while not self._over:
            self._wake.clear()
            await self._wake.wait()

    async def _ticking(self, process: SSHClientProcess[bytes], down_s: float | None) -> None:
        words = (await link.line_of(process, b"watching")).split()
        if not words:
            raise asyncio.IncompleteReadError(b"", None)
        self._own.add(int(words[1]))
        while True:
            group = await self._next_due()
            sent_s = time.monotonic()
            process.stdin.write(b"%d\n" % group)
            limit_s = _LAST_S if self._over else None
            text = await asyncio.wait_for(_frame(process), limit_s)
            came_s = time.monotonic()
            if (answer := frames.frame(sent_s, came_s, group, text)) is not None:
                self._keep(answer)
            if down_s is not None:
                self._lost.append((down_s, came_s))
                down_s = None
            elif came_s - sent_s > LOST_S:
                self._lost.append((sent_s, came_s))
            if self._over:
                process.stdin.write_eof()
                return

    def _keep(self, frame: Frame) -> None:
        """Stores a frame. Thins the frames if they exceed the memory limit."""
        self._frames.append(frame)
        self._bytes += len(frame.text)
        if self._bytes <= _KEEP_BYTES:
            return
        ends = [*self._passed_marks, *([] if self._origin_s is None else [self._origin_s])]
        kept = frames.thinned(self._frames, ends, LONGEST_S)
        if len(kept) < len(self._frames):
            every, left = (sum(len(self._sources(one.group)) for one in all_of) for all_of in (self._frames, kept))
            self._dropped += every - left
            self._frames, self._bytes = kept, sum(len(one.text) for one in kept)
            self._groups = [(2 * period_s, sources) for period_s, sources in self._groups]

    async def _next_due(self) -> int:
        """Waits for the next tick and returns the largest group to read. At the ends of the window and at the end of
        sampling, all groups are read."""
        while not self._over:
            now = time.monotonic()
            if any(at_s <= now for at_s in self._marks):
                self._passed_marks.append(now)
                self._marks = [at_s for at_s in self._marks if at_s > now]
                self._passed(now, len(self._groups) - 1)
                return len(self._groups) - 1
            due = [number for number, at_s in enumerate(self._due) if at_s <= now]
            if due:
                self._passed(now, due[-1])
                return due[-1]
            self._wake.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(0.0, min(*self._due, *self._marks, now + 60.0) - now))
        return len(self._groups) - 1

    def _passed(self, now: float, last: int) -> None:
        """Skips the ticks that became due during the round trip of a frame. Otherwise, all of them would be sent at
        once and sample the same moment."""
        origin_s = self._origin_s or self._began_s
        for number, (period_s, _) in enumerate(self._groups[: last + 1]):
            if self._due[number] <= now:
                self._due[number] = _next(origin_s, period_s, now)


async def _frame(process: SSHClientProcess[bytes]) -> bytes:
    """Reads the answer to a tick. The machine sends nothing else until the next tick.

    The answer is read in pieces, because asyncssh's `readuntil` fails for more than an ssh window of 2 MiB, and
    thousands of processes need more.
    """
    text = bytearray()
    while not text.endswith(frames.END):
        piece = await process.stdout.read(_PIECE_BYTES)
        if not piece:
            raise asyncio.IncompleteReadError(bytes(text), None)
        text += piece
    return bytes(text)


def _next(origin_s: float, period_s: float, now: float) -> float:
    """Returns the first tick after `now`. Ticks are at whole numbers of periods after `origin_s`."""
    return origin_s + ((now - origin_s) // period_s + 1) * period_s


def words(watched: WatchedTrial, address: str) -> dict[str, str]:
    """Returns the conditions of the observation, for the record."""
    if not watched.samples:
        return {}
    clock = f"clock offset known to {units.span(watched.error_s)}"
    return {"server watched": f"{address}: {clock}, median round trip {units.span(watched.round_trip_s)}"}


def metrics(watched: WatchedTrial) -> dict[str, float]:
    if not watched.samples:
        return {}
    return {"watch_clock_error_s": watched.error_s, "watch_round_trip_s": watched.round_trip_s}


def gap_notes(watched: WatchedTrial, window_s: float) -> list[Note]:
    """Returns a note if samples are missing within the measured window. The note contains the gaps and the last
    error."""
    within = [(max(0.0, low), min(window_s, high)) for low, high in watched.lost]
    gaps = [(low, high) for low, high in within if high > low]
    if not gaps and watched.samples:
        return []
    error = watched.notes[-1] if watched.notes else ""
    if not watched.samples:
        return [note(CODE, error=error)]
    lost_s = sum(high - low for low, high in gaps)
    return [note(CODE, times=len(gaps), lost_s=lost_s, gaps=tuple(gaps[:3]), error=error)]
