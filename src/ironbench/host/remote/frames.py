"""Reads files of a remote machine at regular ticks, and converts the times of the answers to the local clock.

For each tick, ironbench sends a line to the remote machine, which answers with a frame. A frame contains the time on
the remote clock, the files of the groups that were due, and an end marker.

The local clock is read before the tick is sent and after the frame is complete. The remote clock was read between these
two times, so each frame gives a lower and an upper bound for the difference of the clocks. The bounds of several frames
are combined: the difference satisfies all of them (Cristian, Distributed Computing 3, 1989). For each frame, the bounds
of the 60 frames before and of the 60 frames after it are used. The bounds are widened by the maximum drift of the
clocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ironbench.host.remote.tree import matcher, split
from ironbench.model.observation import Source

RESOLUTION_S = 0.01
"""Resolution in seconds of /proc/uptime, a clock that exists on every Linux and is never set."""
_DRIFT = 1e-4
"""Maximum relative drift of two clocks (RFC 5905, section 4: 15e-6 for a disciplined clock; 500e-6 is the largest drift
that can be corrected)."""
_NEAR = 60
"""Number of frames before and after a frame that are used to determine its time."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An answer to a tick. On the local clock, the tick was sent at `sent_s`, and the answer was complete at `came_s`.
    `there_s` is the time on the remote clock before the files were read."""

    sent_s: float
    came_s: float
    there_s: float
    until_s: float
    """Time on the remote clock after all files were read."""
    group: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Placed:
    """Time of a frame on the local clock, and its maximum error."""

    at_s: float
    error_s: float


def placed(frames: Sequence[Frame]) -> list[Placed]:
    """Determines the time of each frame; the result is in the same order."""
    brackets = [(one.sent_s - one.there_s - RESOLUTION_S, one.came_s - one.until_s) for one in frames]
    placed = []
    for number, frame in enumerate(frames):
        low, high = brackets[number]
        for other in range(max(0, number - _NEAR), min(len(frames), number + _NEAR + 1)):
            drift_s = _DRIFT * abs(frames[other].there_s - frame.there_s)
            low = max(low, brackets[other][0] - drift_s)
            high = min(high, brackets[other][1] + drift_s)
        # The remote times are truncated to hundredths of a second, so the true times may be up to a hundredth later.
        first = max(frame.sent_s, frame.there_s + min(low, high))
        last = min(frame.came_s, frame.until_s + max(low, high) + RESOLUTION_S)
        at_s = (first + last) / 2 if first <= last else (frame.sent_s + frame.came_s) / 2
        placed.append(Placed(at_s, max(0.0, last - first) / 2))
    return placed


def thinned(frames: Sequence[Frame], ends: Sequence[float], near_s: float) -> list[Frame]:
    """Removes every second frame of each group to save memory. Keeps the last frame, and all frames within `near_s` of
    one of the `ends` (local clock). These are the ends of the measured window, between which the growth of counters is
    calculated."""
    kept: list[Frame] = []
    passed: Counter[int] = Counter()
    for one in frames[:-1]:
        if not any(abs(one.sent_s - at_s) <= near_s for at_s in ends):
            passed[one.group] += 1
            if passed[one.group] % 2 == 0:
                continue
        kept.append(one)
    return [*kept, *frames[-1:]]


def groups(sources: Iterable[Source], shortest_s: float, longest_s: float) -> list[tuple[float, tuple[Source, ...]]]:
    """Groups the sources by period. Whenever a group is read, the groups with shorter periods are also read."""
    by_period: dict[float, list[Source]] = {}
    for source in sources:
        by_period.setdefault(min(longest_s, max(shortest_s, source.period_s)), []).append(source)
    return [(period_s, tuple(of_it)) for period_s, of_it in sorted(by_period.items())]


def script(groups: Sequence[tuple[float, Sequence[Source]]]) -> str:
    """Returns a script for any POSIX shell. The script reads the number of a group, and answers with a frame that
    contains this group and all groups with a shorter period.

    The first line of the output contains two process ids: the id of the ssh session and the id of the shell. All
    processes that ironbench starts on that machine are descendants of the ssh session.
    """
    known: set[str] = set()
    lists = []
    for number, (_, sources) in enumerate(groups):
        new = [one for one in dict.fromkeys(source.target for source in sources) if one not in known]
        known.update(new)
        lists.append(f'[ "$due" -lt {number} ] || files="$files {" ".join(new)}";')
    return (
        'export LC_ALL=C; echo "watching $PPID $$"; while IFS= read -r due; do read -r now rest </proc/uptime; '
        f'files=""; {" ".join(lists)} echo "frame $now"; grep -as "" $files /dev/null; '
        'read -r now rest </proc/uptime; echo; echo "until $now"; echo end; done'
    )


END = b"\nend\n"
_HEAD = re.compile(rb"\s*frame ([0-9.]+)\n")
_TAIL = re.compile(rb"\nuntil ([0-9.]+)\nend\n\Z")


def frame(sent_s: float, came_s: float, group: int, text: bytes) -> Frame | None:
    """Parses an answer up to its end marker. Returns None if the answer is malformed."""
    head, tail = _HEAD.match(text), _TAIL.search(text)
    if head is None or tail is None:
        return None
    return Frame(sent_s, came_s, float(head[1]), float(tail[1]), group, text[head.end() : tail.start()])


def contents(text: bytes, sources: Sequence[Source]) -> dict[str, bytes]:
    """Returns the sample of each source in the format of the core's sampler. Missing files are omitted."""
    literal = {source.target for source in sources if "*" not in source.target}
    patterns = [(matcher(source.target), source.name) for source in sources if "*" in source.target]
    pieces: dict[str, list[str]] = {}
    path = ""
    names: list[str] = []
    for line in text.decode("utf-8", "surrogateescape").split("\n"):
        if not (path and line.startswith(path + ":")):
            path, _ = split(line, literal, [one for one, _ in patterns])
            matched = [name for one, name in patterns if one.fullmatch(path)]
            names = [*matched, *(source.name for source in sources if source.target == path)]
            for name in matched:
                pieces.setdefault(name, []).append(f"==> {path}")
        for name in names:
            pieces.setdefault(name, []).append(line[len(path) + 1 :])
    return {name: ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape") for name, lines in pieces.items()}
