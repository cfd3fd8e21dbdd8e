"""Computes how much time per transaction each function and wait takes, and how two configurations differ. The times of
two configurations of a lab are paired by block. As for all other differences (`study.shares`), the result is the mean
difference and Student's interval over the blocks. The standard error has a lower bound, which follows from the number
of samples. Otherwise, a difference would look certain if a few blocks had equal counts by chance. The functions,
activities and kernel subsystems of a comparison are tested as one family, in which Benjamini and Hochberg's method
limits the false discovery rate to 5%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.lab import Configuration
from ironbench.model.profile import ENGINE, KERNEL_MARK, SampledStack
from ironbench.model.record import Record
from ironbench.records.described import profile_groups
from ironbench.stats.intervals import t_quantile, t_two_sided
from ironbench.stats.multiplicity import discoveries
from ironbench.study.archive import Archive
from ironbench.study.call_tree import CallTree, Measured, call_tree, summed
from ironbench.study.comparability import complete_blocks
from ironbench.study.profile_groups import OTHER, activity_of, deciding_function, in_transaction, kernel_path
from ironbench.study.profiled import (
    MOST_ACTIVITIES,
    MOST_FRAMES,
    MOST_FUNCTIONS,
    REST,
    CallNode,
    FrameChange,
    GroupChange,
    PartChange,
    Profile,
    ProfileComparison,
    ProfiledTime,
    ProfileNode,
    is_profiled,
)
from ironbench.study.shares import LEVEL, Side

_MOST_CALLERS = 4
_MOST_EXPLAINED = 0.8
"""If the callees of a function account for at least this fraction of its difference, the callees are named instead of
the function."""

_LEAST_OWN = 1 / 3
"""If a smaller fraction of a function's difference remains without its callees, the function is ordered by the rest."""


def profile(configuration: Configuration, records: Sequence[Record], archive: Archive) -> Profile | None:
    """Returns the profile of a configuration's trials. Returns None if none of them was profiled."""
    stacks = _Stacks.read([one for one in records if is_profiled(one)], archive)
    if stacks is None:
        return None
    tree = call_tree(stacks.trials, stacks.transactions)
    own, total, outermost = tree.own.seconds.mean(axis=1), tree.total.seconds.mean(axis=1), tree.outermost()
    frames = [
        ProfiledTime(
            area, _name(name), float(total[outermost[area, name]].sum()), float(own[nodes].sum()), _in_kernel(name)
        )
        for (area, name), nodes in tree.functions().items()
    ]
    frames.sort(key=lambda one: (-one.own_s, one.name))
    return Profile(
        configuration,
        len(stacks.trials),
        tuple(frames[:MOST_FRAMES]),
        _times(stacks.activities()),
        _times(stacks.kernel()),
        tuple(map(ProfileNode, tree.parents, map(_name, tree.names), map(_in_kernel, tree.names), map(float, total))),
    )


def compare_profiles(before: Side, after: Side, archive: Archive, *, in_blocks: bool) -> ProfileComparison | None:
    """Compares the profiles of two configurations. Returns None if one of them was not profiled.

    `in_blocks`: whether both are configurations of one lab, so that the trials of one block are paired. Otherwise there
    are no intervals and no significant differences.
    """
    sides = [[one for one in side[1] if is_profiled(one)] for side in (before, after)]
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
    # A function without callees has the same time with and without its callees. This time must be tested only once.
    callers = frozenset(tree.parents)
    own = {key: family.add(tree.own.sum(nodes)) for key, nodes in functions.items() if not callers.isdisjoint(nodes)}
    groups = [{key: family.add(one) for key, one in found.items()} for found in (stacks.activities(), stacks.kernel())]
    significant = family.significant()
    certain = {key for key in functions if whole[key] in significant or own.get(key) in significant}
    nodes = tuple(
        _node(tree, place, family.change(tree.total.sum([place])), certain) for place in range(len(tree.names))
    )
    causes = _causes(tree, nodes, family)
    ranked = []
    for key, places in functions.items():
        of_function = [place for place in places if place in causes]
        if not whole[key].is_clear and family.has_intervals:
            continue
        if sum(abs(nodes[place].delta_s) for place in of_function) < abs(whole[key].delta_s) / 2:
            continue
        frame = FrameChange(
            *whole[key].fields,
            whole[key] in significant,
            key[0],
            _name(key[1]),
            _in_kernel(key[1]),
            own.get(key, whole[key]).delta_s,
            *_path(tree, max(places, key=lambda place: abs(nodes[place].delta_s)), stacks),
        )
        callees = [one for place in of_function for one in causes[place]]
        rest = family.change(tree.total.sum(of_function).minus(tree.total.sum(callees)))
        is_own = abs(rest.delta_s) >= _LEAST_OWN * abs(frame.delta_s)
        ranked.append((frame.at_least_s if is_own else rest.at_least_s, frame))
    ranked.sort(key=lambda one: (not one[1].called, one[1].in_queue, -one[0], -abs(one[1].delta_s), one[1].name))
    frames = [frame for _, frame in ranked]
    activities, kernel = (
        tuple(
            sorted(
                (GroupChange(*one.fields, one in significant, *key) for key, one in changes.items()),
                key=lambda one: (-abs(one.delta_s), one.name),
            )
        )
        for changes in groups
    )
    blocks = len(sides[0]) if in_blocks else 0
    return ProfileComparison(
        before[0],
        after[0],
        blocks,
        len(family),
        frames=tuple(frames[:MOST_FRAMES]),
        activities=activities,
        kernel=kernel,
        nodes=nodes,
        parts=tuple(_parts(stacks.functions(), family)),
    )


def _parts(times: Mapping[tuple[str, tuple[str, str]], Measured], family: _Family) -> Iterator[PartChange]:
    """Divides the difference into areas, activities and functions. `times`: by area, activity and function."""

    def sorted_by_size(place: int, keys: Iterable[_Key]) -> list[tuple[str, list[_Key]]]:
        found: dict[str, list[_Key]] = {}
        for key in keys:
            found.setdefault(key[place], []).append(key)
        return sorted(found.items(), key=lambda one: -abs(family.change(total(one[1])).delta_s))

    def total(keys: Sequence[_Key]) -> Measured:
        chosen = [flat[key] for key in keys]
        seconds, error = (
            np.sum(one, axis=0) for one in zip(*((one.seconds, one.error) for one in chosen), strict=True)
        )
        return Measured(seconds, error)

    def part(keys: Sequence[_Key], area: str, activity: str = "", function: str = "") -> PartChange:
        return PartChange(*family.change(total(keys)).fields, area, activity, function)

    flat = {(area, activity, function): one for (area, (activity, function)), one in times.items()}
    for area, in_area in sorted_by_size(0, flat):
        yield part(in_area, area)
        for activity, in_activity in _with_rest(sorted_by_size(1, in_area), MOST_ACTIVITIES):
            yield part(in_activity, area, activity)
            if activity != REST:
                for function, keys in _with_rest(sorted_by_size(2, in_activity), MOST_FUNCTIONS):
                    yield part(keys, area, activity, function)


_Key = tuple[str, str, str]
"""Area, activity and function."""


def _with_rest(groups: Sequence[tuple[str, list[_Key]]], most: int) -> list[tuple[str, list[_Key]]]:
    """Returns the first groups, and all others as one group."""
    if len(groups) <= most + 1:
        return list(groups)
    return [*groups[:most], (REST, [key for _, keys in groups[most:] for key in keys])]


def _in_kernel(name: str) -> bool:
    return name.endswith(KERNEL_MARK)


def _name(name: str) -> str:
    """Returns the name of a function without the suffix that marks kernel functions."""
    return name.removesuffix(KERNEL_MARK)


@dataclass(frozen=True, slots=True)
class _Stacks:
    """The stacks of several trials, without waits that are not part of a transaction."""

    trials: tuple[tuple[SampledStack, ...], ...]
    transactions: tuple[float, ...]
    activity: Callable[[str], str]
    deciding: Callable[[str], str]
    """Finds the function that determines the activity of a stack."""

    @staticmethod
    def read(records: Sequence[Record], archive: Archive) -> _Stacks | None:
        """Reads the stacks; returns None if there are none."""
        if not records:
            return None
        names: dict[str, str] = {}
        for record in records:
            names |= profile_groups(record.system.engine)
        activity = activity_of(names)
        trials = tuple(
            tuple(one for one in archive.profile(record.id) if in_transaction(one, activity)) for record in records
        )
        if not any(trials):
            return None
        return _Stacks(
            trials, tuple(record.metrics["transactions"] for record in records), activity, deciding_function(names)
        )

    def activities(self) -> dict[tuple[str, str], Measured]:
        """Returns the times of the engine's activities in each area. Returns nothing if no activity is recognised in
        these stacks."""
        found = summed(self.trials, self.transactions, self._activity_of)
        return found if any(name != OTHER for _, name in found) else {}

    def _activity_of(self, stack: SampledStack) -> str:
        """Returns the activity of the engine. The client's functions belong to none, even if a function of a common
        library has a name in the engine's table."""
        return self.activity(stack.stack) if stack.role == ENGINE else OTHER

    def functions(self) -> dict[tuple[str, tuple[str, str]], Measured]:
        """Returns the times by area, activity, and innermost function outside the kernel."""

        def group(stack: SampledStack) -> tuple[str, str]:
            user = (name for name in reversed(stack.frames) if not _in_kernel(name))
            return self._activity_of(stack), next(user, _name(stack.frames[-1]))

        return summed(self.trials, self.transactions, group)

    def kernel(self) -> dict[tuple[str, str], Measured]:
        """Returns the times of the kernel's subsystems in each area."""
        return summed(self.trials, self.transactions, kernel_path)


def _times(groups: Mapping[tuple[str, str], Measured]) -> tuple[ProfiledTime, ...]:
    times = (ProfiledTime(*key, float(one.seconds.mean())) for key, one in groups.items())
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
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.half_s < abs(self.delta_s)

    @property
    def at_least_s(self) -> float:
        """Distance between 0 and the closer bound of the interval. 0 if the interval contains 0."""
        return max(abs(self.delta_s) - self.half_s, 0.0)

    @property
    def fields(self) -> tuple[float, float, float, float, float]:
        """The values of the first five fields of a `TimeChange`."""
        return self.delta_s, self.delta_s - self.half_s, self.delta_s + self.half_s, self.before_s, self.after_s


class _Family:
    """The differences that are tested together."""

    def __init__(self, first: int, in_blocks: bool) -> None:
        """`first`: number of trials of the first configuration, whose columns come first."""
        self._first = first
        self._changes: list[_Change] = []
        self.has_intervals = in_blocks and first >= LEAST_BLOCKS_SHOWN

    def __len__(self) -> int:
        return len(self._changes)

    def change(self, measured: Measured) -> _Change:
        """Compares the two configurations, without adding the difference to the family."""
        seconds, error = measured.seconds[0], measured.error[0]
        before, after = seconds[: self._first], seconds[self._first :]
        sides = float(before.mean()), float(after.mean())
        delta = sides[1] - sides[0]
        if not self.has_intervals:
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


def _path(tree: CallTree, node: int, stacks: _Stacks) -> tuple[tuple[str, ...], str, str]:
    """Returns the callers of a node, the engine's activity on this path, and the function that determines the activity.
    Callers in the kernel are left out. The nearest caller is first."""
    names = [tree.names[node]]
    while tree.parents[tree.parents[node]] >= 0:
        node = tree.parents[node]
        names.append(tree.names[node])
    callers = [name for name in names[1:] if not _in_kernel(name)]
    path = ";".join(reversed(names))
    activity = stacks.activity(path)
    return tuple(callers[:_MOST_CALLERS]), activity, "" if activity == OTHER else stacks.deciding(path)


def _node(tree: CallTree, place: int, change: _Change, certain: Set[tuple[str, str]]) -> CallNode:
    key = tree.names[tree.areas[place]], tree.names[place]
    delta, low, high, before, after = change.fields
    return CallNode(
        parent=tree.parents[place],
        name=_name(tree.names[place]),
        in_kernel=_in_kernel(tree.names[place]),
        before_s=before,
        after_s=after,
        delta_s=delta,
        low_s=low,
        high_s=high,
        certain=change.is_clear and (tree.parents[place] < 0 or key in certain),
    )


def _causes(tree: CallTree, nodes: Sequence[CallNode], family: _Family) -> dict[int, list[int]]:
    """Returns the nodes whose difference is not explained by the functions that they call, each with the callees that
    explain a part of it. To check this, the differences of the callees in the same direction whose interval excludes 0
    are added up. The callees explain the difference of the caller if they are most of it, or if the rest is not
    significant. They do not explain a significant difference if none of them is significant itself. Without intervals,
    all callees that change in the same direction are added up.
    """
    callees: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        above = nodes[node.parent] if node.parent >= 0 else None
        if above is not None and node.delta_s * above.delta_s > 0 and (node.is_clear or not math.isfinite(node.low_s)):
            callees.setdefault(node.parent, []).append(place)
    causes: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        below = callees.get(place, [])
        explained = abs(sum(nodes[one].delta_s for one in below)) >= _MOST_EXPLAINED * abs(node.delta_s)
        if below and not explained:
            rest = family.change(tree.total.sum([place]).minus(tree.total.sum(below)))
            explained = abs(rest.delta_s) <= rest.half_s < math.inf
        if node.certain and not any(nodes[one].certain for one in below):
            causes[place] = []
        elif not explained:
            causes[place] = below
    return causes
