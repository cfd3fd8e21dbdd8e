"""The call paths of profiles as folded stacks, for flame graph programs and speedscope."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.flame_paths import graphs
from ironbench.report.page import Page, Section
from ironbench.words import clean

_NS_PER_S = 1e9


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    """Returns a line for each call path. The line starts with the configuration and the functions of the path,
    separated by semicolons. A space and a number follow: the nanoseconds per transaction in the last function. Raises
    InputError if no trial was profiled."""
    lines = []
    for graph in graphs(pages):
        for path, time_s in graph.paths():
            if time_ns := round(time_s * _NS_PER_S):
                frames = (graph.subject, *(bar.marked for bar in path))
                lines.append(f"{';'.join(clean(frame).replace(';', ',') for frame in frames)} {time_ns}\n")
    return "".join(lines).encode()
