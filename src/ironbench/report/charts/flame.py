"""Flame graphs. A function is a bar whose width is the function's time per transaction. Callers are above the functions
that they call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.model.profile import KERNEL_MARK
from ironbench.report.cell import CONFIDENCE, TableCell, cell_text
from ironbench.report.wording import profile as wording
from ironbench.report.wording.terms import label
from ironbench.study.profiled import CallNode, Profile, ProfileComparison

_LEAST_DRAWN = 0.0005
"""Bars narrower than this fraction of the graph's width are not drawn."""
_WHOLE = "all"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a flame graph. In lists, callers come before the functions that they call."""

    parent: int
    """Index of the caller's bar. The bar of the total time has -1."""
    name: str
    in_kernel: bool
    time_s: float
    """Width of the bar, in seconds per transaction."""
    kind: str
    """CSS class of the bar. In a profile, it names what the thread did. In a comparison, it is `more`, `less` or
    `same`."""
    strength: float
    """Intensity of the colour, from 0 to 1."""
    detail: str
    """Text with the name of the function, its time, and in a comparison, the difference."""

    @property
    def marked(self) -> str:
        """The function's name. A function of the kernel is marked as in folded stacks."""
        return f"{self.name}{KERNEL_MARK}" if self.in_kernel else self.name


@dataclass(frozen=True, slots=True)
class FlameGraph:
    """A flame graph. `alt` describes its content for readers who cannot see the graph."""

    id: str
    title: str
    alt: str
    note: str
    bars: tuple[Bar, ...]
    keys: tuple[tuple[str, str], ...]
    """The legend, as pairs of a CSS class and its meaning."""
    subject: str = ""
    """Name of the configuration. Empty for a comparison."""

    @property
    def data(self) -> list[list[Any]]:
        """The bars for the page's script, as lists of parent, name, width, class, intensity and detail. Bars that are
        too narrow to be drawn are left out."""
        least = _LEAST_DRAWN * max((bar.time_s for bar in self.bars), default=0.0)
        places: dict[int, int] = {-1: -1}
        rows: list[list[Any]] = []
        for place, bar in enumerate(self.bars):
            if bar.time_s >= least and bar.parent in places:
                places[place] = len(rows)
                width = float(f"{bar.time_s:.4g}")
                rows.append(
                    [places[bar.parent], bar.name, width, bar.kind, round(bar.strength, 2), bar.detail],
                )
        return rows

    def paths(self) -> list[tuple[tuple[Bar, ...], float]]:
        """Returns the call path of each bar except the total, from the outermost caller to the bar, with the time spent
        in the function itself, in seconds per transaction."""
        callees = [0.0] * len(self.bars)
        for bar in self.bars:
            if bar.parent >= 0:
                callees[bar.parent] += bar.time_s
        known: list[tuple[Bar, ...]] = []
        for bar in self.bars:
            known.append((*known[bar.parent], bar) if bar.parent >= 0 else ())
        own = (bar.time_s - below for bar, below in zip(self.bars, callees, strict=True))
        return [(path, time_s) for path, time_s in zip(known, own, strict=True) if path]


def of_profile(one: Profile, id: str) -> FlameGraph:
    """Draws the profile of one configuration."""
    whole = sum(node.time_s for node in one.nodes if node.parent < 0)
    areas = _areas([(node.parent, node.name) for node in one.nodes])
    bars = [Bar(-1, _WHOLE, False, whole, "whole", 0.0, f"{_WHOLE}: {_time(whole)}")]
    for node, area in zip(one.nodes, areas, strict=True):
        name = wording.node_name(node.name, node.in_kernel, is_area=node.parent < 0)
        share = cell_text(TableCell(node.time_s / whole if whole else 0.0, "share"))
        detail = f"{name}: {_time(node.time_s)} ({share})"
        kind = "kernel" if node.in_kernel and area == "engine:cpu" else area.replace(":", "-")
        plain = wording.area_name(node.name) if node.parent < 0 else node.name
        bars.append(Bar(node.parent + 1, plain, node.in_kernel, node.time_s, kind, 0.6, detail))
    name = label(one.configuration)
    keys = [(area.replace(":", "-"), wording.area_name(area)) for area in dict.fromkeys(areas)]
    if any(bar.kind == "kernel" for bar in bars):
        keys.insert(1, ("kernel", "engine, on CPU in the kernel"))
    alt = wording.flame_alt(name, [(node.name, node.time_s) for node in one.nodes if node.parent < 0])
    return FlameGraph(id, wording.flame_title(name), alt, wording.FLAME_NOTE, tuple(bars), tuple(keys), name)


def of_comparison(one: ProfileComparison, id: str) -> FlameGraph:
    """Draws the difference between two profiles. The width of a bar shows the time in the slower configuration, and the
    colour of the bar shows the difference. Bars whose difference is not certain are pale."""
    roots = [node for node in one.nodes if node.parent < 0]
    before, after = sum(node.before_s for node in roots), sum(node.after_s for node in roots)
    later = after >= before
    most = max((abs(node.delta_s) for node in one.nodes), default=0.0)
    bars = [Bar(-1, _WHOLE, False, max(before, after), "whole", 0.0, f"{_WHOLE}: {_time(max(before, after))}")]
    for node in one.nodes:
        name = wording.node_name(node.name, node.in_kernel, is_area=node.parent < 0)
        detail = f"{name}: {_time(node.before_s)} → {_time(node.after_s)}, {_difference(node)}"
        certain = node.certain or not one.has_intervals
        kind = "same" if not node.delta_s else "more" if node.delta_s > 0 else "less"
        strength = 0.35 + 0.65 * math.sqrt(abs(node.delta_s) / most) if certain and most else 0.12
        plain = wording.area_name(node.name) if node.parent < 0 else node.name
        width = node.after_s if later else node.before_s
        bars.append(Bar(node.parent + 1, plain, node.in_kernel, width, kind, strength, detail))
    names = label(one.before), label(one.after)
    words = (wording.flame_more(names[1]), wording.flame_less(names[1]), wording.FLAME_PALE)
    keys = tuple(zip(("more", "less", "pale"), words, strict=True))
    note = wording.flame_difference_note(names[1] if later else names[0])
    alt = wording.result(one)
    return FlameGraph(id, wording.flame_difference_title(one), alt, note, tuple(bars), keys)


def _areas(nodes: Sequence[tuple[int, str]]) -> list[str]:
    """Returns the area of each node. The area is the name of the tree's root, such as `engine:cpu`. `nodes`: pairs of
    the parent's index and a name."""
    found: list[str] = []
    for parent, name in nodes:
        found.append(name if parent < 0 else found[parent])
    return found


def _time(time_s: float) -> str:
    return cell_text(TableCell(time_s, "s"))


def _difference(node: CallNode) -> str:
    known = math.isfinite(node.low_s)
    low, high, level = (node.low_s, node.high_s, CONFIDENCE) if known else (None, None, None)
    return cell_text(TableCell(node.delta_s, "s", low, high, level, signed=True))
