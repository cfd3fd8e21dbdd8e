"""What a machine answers to each tick, and when that was by our clock.

A tick is answered by a frame: the other clock, the files of the groups that were due, an end. Our clock brackets it:
it was read after the tick was sent and before the frame was whole. The difference of the clocks lies within every such
bracket, and so within what all of them have in common (Cristian, Distributed Computing 3, 1989); frames of the next
minute count, too, widened by how fast clocks drift apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ironbench.host.remote.tree import matcher, split
from ironbench.model.observation import Source

RESOLUTION_S = 0.01
"""Of /proc/uptime, the clock that every Linux shows and nobody sets."""
_DRIFT = 1e-4
"""Two clocks differ by less per second (RFC 5905, 4: 15e-6 for a disciplined one, 500e-6 is what it can correct)."""
_NEAR = 60
"""Frames before and after that help to place one."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One answer; `sent_s` and `came_s` by our clock, `there_s` by the other one."""

    sent_s: float
    came_s: float
    there_s: float
    until_s: float
    """The other clock again, when all was read."""
    group: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Placed:
    """When a frame was read by our clock, and by how much that may be off."""

    at_s: float
    error_s: float


def placed(frames: Sequence[Frame]) -> list[Placed]:
    """Of each frame, in order."""
    brackets = [(one.sent_s - one.there_s - RESOLUTION_S, one.came_s - one.until_s) for one in frames]
    placed = []
    for number, frame in enumerate(frames):
        low, high = brackets[number]
        for other in range(max(0, number - _NEAR), min(len(frames), number + _NEAR + 1)):
            drift_s = _DRIFT * abs(frames[other].there_s - frame.there_s)
            low = max(low, brackets[other][0] - drift_s)
            high = min(high, brackets[other][1] + drift_s)
        # The clock shows hundredths: it was up to one later.
        first = max(frame.sent_s, frame.there_s + min(low, high))
        last = min(frame.came_s, frame.until_s + max(low, high) + RESOLUTION_S)
        at_s = (first + last) / 2 if first <= last else (frame.sent_s + frame.came_s) / 2
        placed.append(Placed(at_s, max(0.0, last - first) / 2))
    return placed


def thinned(frames: Sequence[Frame], ends: Sequence[float], near_s: float) -> list[Frame]:
    """Without every second one of each group. The last one stays, and those within `near_s` of the `ends` by our clock:
    growth over a window is read off there."""
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
    """The sources by period. What is due is read together with all that is read more often."""
    by_period: dict[float, list[Source]] = {}
    for source in sources:
        by_period.setdefault(min(longest_s, max(shortest_s, source.period_s)), []).append(source)
    return [(period_s, tuple(of_it)) for period_s, of_it in sorted(by_period.items())]


def script(groups: Sequence[tuple[float, Sequence[Source]]]) -> str:
    """Runs in any POSIX shell: reads the number of a group from its input, answers with a frame of it and of all
    before it.

    It begins with two process ids: of the ssh session, whose descendants all of ours are, and its own.
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
    """One answer with its end; None for one that makes no sense."""
    head, tail = _HEAD.match(text), _TAIL.search(text)
    if head is None or tail is None:
        return None
    return Frame(sent_s, came_s, float(head[1]), float(tail[1]), group, text[head.end() : tail.start()])


def contents(text: bytes, sources: Sequence[Source]) -> dict[str, bytes]:
    """Source → its sample as the core's sampler takes it; one that was not there is left out."""
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
