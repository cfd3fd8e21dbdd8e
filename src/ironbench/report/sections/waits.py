"""What backends waited for, by number of clients."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.shares import OTHER
from ironbench.analyse.study import Study
from ironbench.report.charts.base import Chart
from ironbench.report.charts.shares import by_clients
from ironbench.report.section import Section

PLACE = 1800
_EVENTS = ("@p1", "@p3", "@p2", "@p8", "@p5", "@p7", "@s6")
_WORKING = "CPU"


def sections(study: Study) -> Iterator[Section]:
    yield Section("waits", "What backends waited for", charts=tuple(waits(study)))


def waits(study: Study) -> list[Chart]:
    events = list(dict.fromkeys(event for part in study.parts for bar in part.waits for event in bar.parts))
    others = [event for event in events if event not in (_WORKING, OTHER)]
    colours = {_WORKING: "@p0"} if _WORKING in events else {}
    colours |= {event: _EVENTS[place % len(_EVENTS)] for place, event in enumerate(others)}
    colours |= {OTHER: "@p4"} if OTHER in events else {}
    return [
        by_clients(f"waits-{place}", part.name, "Backends", part.waits, colours, "of the backends")
        for place, part in enumerate(study.parts)
        if part.waits
    ]
