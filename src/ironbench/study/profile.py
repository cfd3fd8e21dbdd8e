"""Which functions and waits take how much time per transaction, and in which two configurations differ.

The times of two configurations of a lab are paired by block: mean difference and Student's interval over the blocks, as
for all other differences (`study.shares`). The standard error is never less than what follows from the number of
samples alone, because a few equal counts would otherwise look certain. All functions, activities and kernel subsystems
of a comparison are one family, in which Benjamini and Hochberg's method limits the false discovery rate to 5%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.lab import Configuration
from ironbench.model.profile import SampledStack
from ironbench.model.record import Record
from ironbench.records.described import profile_groups
from ironbench.records.evidence import PROFILE
from ironbench.stats.intervals import t_quantile, t_two_sided
from ironbench.stats.multiplicity import discoveries
from ironbench.study.archive import Archive
from ironbench.study.call_tree import CallTree, Measured, area_of, call_tree, summed
from ironbench.study.comparability import complete_blocks
from ironbench.study.profile_groups import OTHER, activity_of, in_transaction, kernel_path
from ironbench.study.shares import LEVEL, Side, TimeDifference

MOST_FRAMES = 10
"""Maximum number of functions that a table names."""
_MOST_EXPLAINED = 0.8
"""If the functions that a function calls account for this fraction of its difference, they are named instead of it."""


@dataclass(frozen=True, slots=True)
class TimeChange(TimeDifference):
    """Seconds per transaction of two configurations, and their difference."""

    before_s: float
    after_s: float
    called: bool
    """Whether the difference is significant after the correction for the number of comparisons."""

    @property
    def at_least_s(self) -> float:
        """Size of the difference at the bound of the interval that is closer to 0; 0 if the interval contains 0."""
        return max(self.low_s, -self.high_s, 0.0)


@dataclass(frozen=True, slots=True)
class FrameChange(TimeChange):
    """Change of a function's time, including the functions that it calls."""

    area: str
    """Who spent the time, and how: an area of `study.call_tree`."""
    name: str
    own_s: float
    """Difference of the time in the function itself."""


@dataclass(frozen=True, slots=True)
class GroupChange(TimeChange):
    """Change of an activity of the engine, or of a subsystem of the kernel."""

    area: str
    name: str


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function in a call tree. Callers come before the functions that they call."""

    parent: int
    """Index of the caller; -1 for an area."""
    name: str
    before_s: float
    after_s: float
    delta_s: float
    low_s: float
    high_s: float
    """Bounds of the 95% confidence interval of the difference; infinite if there are too few blocks."""
    certain: bool
    """Whether the interval excludes 0, and the function's difference is significant."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low_s > 0 or self.high_s < 0


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """Profiles of two configurations."""

    before: Configuration
    after: Configuration
    blocks: int
    """Number of blocks in which both were profiled; 0 if the trials are not paired by block."""
    compared: int
    """Number of times that were compared: functions with and without callees, activities, and subsystems."""
    frames: tuple[FrameChange, ...]
    """The functions that explain most, at most `MOST_FRAMES`. Significant ones come first, ordered by the bound of
    their interval that is closer to 0. A function whose callees account for its difference is left out."""
    activities: tuple[GroupChange, ...]
    kernel: tuple[GroupChange, ...]
    nodes: tuple[CallNode, ...]

    @property
    def has_intervals(self) -> bool:
        return self.blocks >= LEAST_BLOCKS_SHOWN

    @property
    def main(self) -> FrameChange | None:
        """The function with the largest significant difference; None without one."""
        return next((one for one in self.frames if one.called), None)


@dataclass(frozen=True, slots=True)
class ProfiledTime:
    """Seconds per transaction of a function, an activity or a subsystem; mean of the trials."""

    area: str
    name: str
    time_s: float
    own_s: float = 0.0
    """For functions: time in the function itself."""


@dataclass(frozen=True, slots=True)
class ProfileNode:
    """A function in the call tree of one configuration. Callers come before the functions that they call."""

    parent: int
    name: str
    time_s: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Profile of one configuration."""

    configuration: Configuration
    trials: int
    """Number of profiled trials."""
    frames: tuple[ProfiledTime, ...]
    """The functions in which most time is spent, not counting what they call, at most `MOST_FRAMES`."""
    activities: tuple[ProfiledTime, ...]
    kernel: tuple[ProfiledTime, ...]
    nodes: tuple[ProfileNode, ...]


def profile(configuration: Configuration, records: Sequence[Record], archive: Archive) -> Profile | None:
    """Returns the profile of a configuration's trials; None if none was profiled."""
    stacks = _Stacks.read([one for one in records if _is_profiled(one)], archive)
    if stacks is None:
        return None
    tree = call_tree(stacks.trials, stacks.transactions)
    own, total, outermost = tree.own.seconds.mean(axis=1), tree.total.seconds.mean(axis=1), tree.outermost()
    frames = [
        ProfiledTime(*key, float(total[outermost[key]].sum()), float(own[nodes].sum()))
        for key, nodes in tree.functions().items()
    ]
    frames.sort(key=lambda one: (-one.own_s, one.name))
    return Profile(
        configuration,
        len(stacks.trials),
        tuple(frames[:MOST_FRAMES]),
        _times(stacks.activities()),
        _times(stacks.kernel()),
        tuple(map(ProfileNode, tree.parents, tree.names, map(float, total))),
    )


def compare_profiles(before: Side, after: Side, archive: Archive, *, in_blocks: bool) -> ProfileComparison | None:
    """Compares the profiles of two configurations; None if one of them was not profiled.

    `in_blocks`: whether both are configurations of one lab, so that the trials of one block are paired. Otherwise there
    are no intervals and no significant differences.
    """
    sides = [[one for one in side[1] if _is_profiled(one)] for side in (before, after)]
    if in_blocks:
        a, b = complete_blocks(*sides)
        sides = [a, b]
    stacks = _Stacks.read([*sides[0], *sides[1]], archive) if all(sides) else None
    if stacks is None:
        return None
    tree = call_tree(stacks.trials, stacks.transactions)
    family = _Family(len(sides[0]), in_blocks)
    functions, outermost = tree.functions(), tree.outermost()
    whole = {key: family.add(tree.total.sum(outermost[key])) for key in functions}
    # A function that calls nothing has the same time with and without callees, which is one hypothesis.
    callers = frozenset(tree.parents)
    own = {key: family.add(tree.own.sum(nodes)) for key, nodes in functions.items() if not callers.isdisjoint(nodes)}
    groups = [{key: family.add(one) for key, one in found.items()} for found in (stacks.activities(), stacks.kernel())]
    significant = family.significant()
    certain = {key for key in functions if whole[key] in significant or own.get(key) in significant}
    nodes = tuple(
        _node(tree, place, family.change(tree.total.sum([place])), certain) for place in range(len(tree.names))
    )
    causes = _causes(tree, nodes, family)
    frames = [
        FrameChange(*whole[key].fields, whole[key] in significant, *key, own.get(key, whole[key]).delta_s)
        for key, places in functions.items()
        if sum(abs(nodes[place].delta_s) for place in places if place in causes) >= abs(whole[key].delta_s) / 2
    ]
    frames.sort(key=lambda one: (not one.called, -one.at_least_s, -abs(one.delta_s), one.name))
    activities, kernel = (
        tuple(
            sorted(
                (GroupChange(*one.fields, one in significant, *_parts(key)) for key, one in changes.items()),
                key=lambda one: (-abs(one.delta_s), one.name),
            )
        )
        for changes in groups
    )
    blocks = len(sides[0]) if in_blocks else 0
    return ProfileComparison(
        before[0], after[0], blocks, len(family), tuple(frames[:MOST_FRAMES]), activities, kernel, nodes
    )


def _is_profiled(record: Record) -> bool:
    return PROFILE in record.files and record.metrics.get("transactions", 0.0) > 0


@dataclass(frozen=True, slots=True)
class _Stacks:
    """The stacks of several trials, without waits that are no part of a transaction."""

    trials: tuple[tuple[SampledStack, ...], ...]
    transactions: tuple[float, ...]
    activity: Callable[[str], str]

    @staticmethod
    def read(records: Sequence[Record], archive: Archive) -> _Stacks | None:
        """Reads the stacks; returns None if there are none."""
        if not records:
            return None
        activity = activity_of(profile_groups(records[0].system.engine))
        trials = tuple(
            tuple(one for one in archive.profile(record.id) if in_transaction(one, activity)) for record in records
        )
        if not any(trials):
            return None
        return _Stacks(trials, tuple(record.metrics["transactions"] for record in records), activity)

    def activities(self) -> dict[str, Measured]:
        """Returns the times by area and activity; empty if the engine names no activity in these stacks."""
        found = summed(self.trials, self.transactions, lambda one: f"{area_of(one)}{_JOINT}{self.activity(one.stack)}")
        return found if any(_parts(key)[1] != OTHER for key in found) else {}

    def kernel(self) -> dict[str, Measured]:
        """Returns the times by area and subsystem of the kernel."""

        def label(one: SampledStack) -> str:
            return f"{area_of(one)}{_JOINT}{path}" if (path := kernel_path(one)) else ""

        return summed(self.trials, self.transactions, label)


_JOINT = "\t"


def _parts(key: str) -> tuple[str, str]:
    """Splits the key of a group into area and name."""
    area, _, name = key.partition(_JOINT)
    return area, name


def _times(groups: Mapping[str, Measured]) -> tuple[ProfiledTime, ...]:
    times = (ProfiledTime(*_parts(key), float(one.seconds.mean())) for key, one in groups.items())
    return tuple(sorted(times, key=lambda one: (-one.time_s, one.name)))


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """A difference with its p value."""

    before_s: float
    after_s: float
    delta_s: float
    half_s: float
    """Half width of the 95% confidence interval."""
    p: float

    @property
    def fields(self) -> tuple[float, float, float, float, float]:
        """The first fields of `TimeChange`."""
        return self.delta_s, self.delta_s - self.half_s, self.delta_s + self.half_s, self.before_s, self.after_s


class _Family:
    """The differences that are tested together."""

    def __init__(self, first: int, in_blocks: bool) -> None:
        """`first`: number of trials of the first configuration, whose columns come first."""
        self._first = first
        self._in_blocks = in_blocks
        self._changes: list[_Change] = []

    def __len__(self) -> int:
        return len(self._changes)

    def change(self, measured: Measured) -> _Change:
        """Compares the two configurations, without adding the difference to the family."""
        seconds, error = measured.seconds[0], measured.error[0]
        before, after = seconds[: self._first], seconds[self._first :]
        sides = float(before.mean()), float(after.mean())
        delta = sides[1] - sides[0]
        if not self._in_blocks or self._first < LEAST_BLOCKS_SHOWN:
            return _Change(*sides, delta, math.inf, 1.0)
        n = self._first
        spread = float((after - before).std(ddof=1)) / math.sqrt(n)
        counting = math.sqrt(float(error.sum())) / n
        standard_error = max(spread, counting)
        if not standard_error:
            return _Change(*sides, delta, 0.0, 1.0)
        p = t_two_sided(delta / standard_error, n - 1)
        return _Change(*sides, delta, t_quantile(1 - LEVEL / 2, n - 1) * standard_error, p)

    def add(self, measured: Measured) -> _Change:
        found = self.change(measured)
        self._changes.append(found)
        return found

    def significant(self) -> frozenset[_Change]:
        called = discoveries([one.p for one in self._changes], LEVEL)
        return frozenset(one for one, is_called in zip(self._changes, called, strict=True) if is_called)


def _node(tree: CallTree, place: int, change: _Change, certain: Set[tuple[str, str]]) -> CallNode:
    key = tree.names[tree.areas[place]], tree.names[place]
    delta, low, high, before, after = change.fields
    return CallNode(
        tree.parents[place],
        tree.names[place],
        before,
        after,
        delta,
        low,
        high,
        (low > 0 or high < 0) and key in certain,
    )


def _causes(tree: CallTree, nodes: Sequence[CallNode], family: _Family) -> frozenset[int]:
    """Returns the nodes whose difference is not that of the functions that they call.

    The callees account for a difference if those whose interval excludes 0 add up to most of it, or to all of it within
    the interval of the rest. Without intervals, all callees that change in the same direction count.
    """
    callees: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        above = nodes[node.parent] if node.parent >= 0 else None
        if above is not None and node.delta_s * above.delta_s > 0 and (node.is_clear or not math.isfinite(node.low_s)):
            callees.setdefault(node.parent, []).append(place)
    causes = set()
    for place, node in enumerate(nodes):
        below = callees.get(place, [])
        explained = abs(sum(nodes[one].delta_s for one in below)) >= _MOST_EXPLAINED * abs(node.delta_s)
        if below and not explained:
            rest = family.change(tree.total.sum([place]).minus(tree.total.sum(below)))
            explained = abs(rest.delta_s) <= rest.half_s < math.inf
        if not explained:
            causes.add(place)
    return frozenset(causes)
