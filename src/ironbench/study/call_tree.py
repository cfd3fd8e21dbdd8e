"""Call trees of profiled trials. A call tree shows how much time of a transaction each function took on each path of
callers. A path begins with an area, which tells who spent the time (`model.profile.ENGINE`, `CLIENT`) and how (`CPU`,
`BLOCKED`, `CPU_QUEUE`). The functions follow, with the outermost caller first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ironbench.model.profile import KERNEL_MARK, WAIT, SampledStack
from ironbench.study.profiled import LEAST_SAMPLES, LEAST_SHARE

_Group = TypeVar("_Group", str, tuple[str, str])
Matrix = np.ndarray[Any, np.dtype[np.float64]]
"""A row for each node or other subject, and a column for each trial."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds per transaction of several subjects in several trials."""

    seconds: Matrix
    error: Matrix
    """Variance of `seconds` that results from the number of samples. For n samples that represent s seconds, it is s²/n
    (Poisson)."""

    def sum(self, rows: Sequence[int]) -> Measured:
        """Returns the sum of these rows as one row."""
        chosen = list(rows)
        return Measured(self.seconds[chosen].sum(axis=0, keepdims=True), self.error[chosen].sum(axis=0, keepdims=True))

    def minus(self, part: Measured) -> Measured:
        """Subtracts `part`, which must be included in these times."""
        return Measured(self.seconds - part.seconds, np.maximum(self.error - part.error, 0.0))


@dataclass(frozen=True, slots=True)
class CallTree:
    """The call paths of several trials as nodes. A caller has a lower index than the functions that it calls."""

    names: tuple[str, ...]
    """For each node, the function's name; for an area, its code."""
    parents: tuple[int, ...]
    """For each node, the index of the caller; -1 for an area."""
    areas: tuple[int, ...]
    """For each node, the index of its area."""
    own: Measured
    """Time in the function itself, and in callees that are too small to be nodes."""
    total: Measured
    """Time in the function and in everything that it calls."""

    def outermost(self) -> dict[tuple[str, str], list[int]]:
        """Returns the outermost nodes of each function in each area. Such a node has no node of the same function among
        its callers, so recursive calls are not counted twice. The total times of the outermost nodes add up to the
        function's time."""
        above: list[frozenset[str]] = []
        found: dict[tuple[str, str], list[int]] = {}
        for place, (name, parent, area) in enumerate(zip(self.names, self.parents, self.areas, strict=True)):
            callers = above[parent] if parent >= 0 else frozenset[str]()
            above.append(callers | {name} if parent >= 0 else callers)
            if parent >= 0 and name not in callers:
                found.setdefault((self.names[area], name), []).append(place)
        return found

    def functions(self) -> dict[tuple[str, str], list[int]]:
        """Returns, for each area and function, all nodes of the function."""
        found: dict[tuple[str, str], list[int]] = {}
        for place, (name, parent, area) in enumerate(zip(self.names, self.parents, self.areas, strict=True)):
            if parent >= 0:
                found.setdefault((self.names[area], name), []).append(place)
        return found


def area_of(stack: SampledStack) -> str:
    """Returns the code of a stack's area, such as `engine:blocked`."""
    return f"{stack.role}:{stack.reason or stack.kind}"


def summed(
    trials: Sequence[Iterable[SampledStack]], transactions: Sequence[float], group: Callable[[SampledStack], _Group]
) -> dict[tuple[str, _Group], Measured]:
    """Sums the stacks of each trial by area and group, as seconds per transaction. Stacks without a group are left
    out."""
    found: dict[tuple[str, _Group], Measured] = {}
    for column, (stacks, count) in enumerate(zip(trials, transactions, strict=True)):
        for one in stacks:
            if one.samples and (name := group(one)):
                key = area_of(one), name
                if key not in found:
                    found[key] = Measured(np.zeros((1, len(trials))), np.zeros((1, len(trials))))
                found[key].seconds[0, column] += one.seconds / count
                found[key].error[0, column] += (one.seconds / count) ** 2 / one.samples
    return found


def call_tree(trials: Sequence[Iterable[SampledStack]], transactions: Sequence[float]) -> CallTree:
    """Builds the tree of all trials together.

    `transactions`: the number of transactions of each trial. Functions below the resolution (`LEAST_SAMPLES`,
    `LEAST_SHARE`) are merged into their callers.
    """
    names, parents, leaves, cells = _paths(trials, transactions)
    samples = np.zeros(len(names))
    own = Measured(np.zeros((len(names), len(transactions))), np.zeros((len(names), len(transactions))))
    for (area, stack, column), (count, seconds, error) in cells.items():
        node = leaves[area, stack]
        samples[node] += count
        own.seconds[node, column] += seconds
        own.error[node, column] += error
    weight = own.seconds.sum(axis=1)
    for node in range(len(names) - 1, -1, -1):
        if parents[node] >= 0:
            samples[parents[node]] += samples[node]
            weight[parents[node]] += weight[node]
    return _resolved(names, parents, samples, weight, own)


_SWITCH = re.compile(r"(__)?schedule(_(?!work)\w+)?|io_schedule\w*|preempt_schedule\w*|__cond_resched")
"""Kernel functions that give up the CPU. The stack of every wait ends with such functions."""


def _waiting_in(stack: SampledStack) -> tuple[str, ...]:
    """Returns the frames of a stack. For a wait, the functions that switch to another thread are left out."""
    frames = stack.frames
    while stack.kind == WAIT and len(frames) > 1 and _SWITCH.fullmatch(frames[-1].removesuffix(KERNEL_MARK)):
        frames = frames[:-1]
    return frames


_Cells = dict[tuple[str, str, int], list[float]]
"""For each area, stack and trial: samples, seconds per transaction, and variance."""


def _paths(
    trials: Sequence[Iterable[SampledStack]], transactions: Sequence[float]
) -> tuple[list[str], list[int], dict[tuple[str, str], int], _Cells]:
    names: list[str] = []
    parents: list[int] = []
    known: dict[tuple[int, str], int] = {}
    leaves: dict[tuple[str, str], int] = {}
    cells: _Cells = {}
    for column, (stacks, count) in enumerate(zip(trials, transactions, strict=True)):
        for one in stacks:
            area = area_of(one)
            if (area, one.stack) not in leaves:
                node = -1
                for name in (area, *_waiting_in(one)):
                    if (node, name) not in known:
                        known[node, name] = len(names)
                        names.append(name)
                        parents.append(node)
                    node = known[node, name]
                leaves[area, one.stack] = node
            cell = cells.setdefault((area, one.stack, column), [0.0, 0.0, 0.0])
            if one.samples:
                cell[0] += one.samples
                cell[1] += one.seconds / count
                cell[2] += (one.seconds / count) ** 2 / one.samples
    return names, parents, leaves, cells


def _resolved(names: Sequence[str], parents: Sequence[int], samples: Matrix, weight: Matrix, own: Measured) -> CallTree:
    """Merges nodes below the resolution into their callers. A caller has at least as many samples and as much time as
    each function that it calls, so the callers of a node that is kept are also kept."""
    kept: list[int] = []
    new: list[int] = []
    areas: list[int] = []
    for node, parent in enumerate(parents):
        areas.append(node if parent < 0 else areas[parent])
        enough = samples[node] >= LEAST_SAMPLES and weight[node] >= LEAST_SHARE * weight[areas[node]]
        if parent < 0 or enough:
            new.append(len(kept))
            kept.append(node)
        else:
            new.append(new[parent])
    columns = own.seconds.shape[1]
    seconds, error = np.zeros((len(kept), columns)), np.zeros((len(kept), columns))
    np.add.at(seconds, new, own.seconds)
    np.add.at(error, new, own.error)
    callers = tuple(new[parents[node]] if parents[node] >= 0 else -1 for node in kept)
    total = Measured(seconds.copy(), error.copy())
    for node in range(len(kept) - 1, -1, -1):
        if callers[node] >= 0:
            total.seconds[callers[node]] += total.seconds[node]
            total.error[callers[node]] += total.error[node]
    own_areas = tuple(new[areas[node]] for node in kept)
    return CallTree(tuple(names[node] for node in kept), callers, own_areas, Measured(seconds, error), total)
