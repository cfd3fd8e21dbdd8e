"""Words for profiles: where time was spent, and which functions cause a difference."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.report.numbers import percent, quantity, range_text
from ironbench.report.wording.terms import configuration
from ironbench.report.wording.values import CI
from ironbench.study.profile_groups import OTHER
from ironbench.study.profiled import (
    LEAST_SAMPLES,
    LEAST_SHARE,
    REST,
    FrameChange,
    PartChange,
    ProfileComparison,
    ProfiledTime,
    TimeChange,
)
from ironbench.study.wait_parts import EVENT
from ironbench.words import counted

_AREAS = {
    "engine:cpu": "engine, on CPU",
    "engine:blocked": "engine, waiting",
    "engine:cpu-queue": "engine, waiting for a CPU",
    "client:cpu": "client, on CPU",
    "client:cpu-queue": "client, waiting for a CPU",
}
"""Names of the areas of a profile."""


def area_name(area: str) -> str:
    """Example with area='engine:cpu': `engine, on CPU`."""
    return _AREAS.get(area, area)


def function_name(one: FrameChange | ProfiledTime) -> str:
    """Example: `tcp_sendmsg (kernel)`."""
    return f"{one.name} (kernel)" if one.in_kernel else one.name


def part(one: PartChange) -> tuple[str, str, str]:
    """Returns the area, the activity and the function of a part of the time: `engine, waiting`, `WAL insertion`, `other
    functions`. For a whole area, the activity and the function are empty. For a whole activity, the function is
    empty."""
    activity = "other activities" if one.activity == REST else one.activity
    function = "other functions" if one.function == REST else one.function
    return area_name(one.area), activity, function


def part_rest(kind: str) -> str:
    """Names the rest of a wait class in the breakdown by wait events or by functions."""
    return "other events" if kind == EVENT else "other functions, and time that the profile does not contain"


def parts_title(one: ProfileComparison) -> str:
    """Example: `From index=on to index=off, from the top down`."""
    return f"{sides(one)}, from the top down"


def result(one: ProfileComparison) -> str:
    """States the largest significant difference, or why there is none."""
    if one.main or one.main_activity:
        return change(one)
    return no_change(one) if one.has_intervals else no_intervals(one)


def change(one: ProfileComparison) -> str:
    """Example: `With index=off, a transaction spends 41 µs more in index_getnext (engine, on CPU) than with index=on
    (95% CI 33 to 48 µs).` If an activity has a much larger difference than each of its functions: `With new=yes, a
    transaction spends 187 µs more in regular expressions (engine, on CPU) than with new=no (95% CI 179 to 194 µs). The
    function with the largest difference is miss (regular expressions; engine, on CPU): 27 µs more (95% CI 24 to 29
    µs).` Needs a significant difference."""
    activity, function = one.main_activity, one.main
    first = activity or function
    assert first is not None
    where = area_name(activity.area) if activity else _where(function) if function else ""
    sentence = (
        f"With {configuration(one.after)}, a transaction spends {_size(first)} in {first.name} ({where}) than with "
        f"{configuration(one.before)} ({_interval(first)})."
    )
    if activity is None or function is None:
        return sentence
    largest = f"{function.name} ({_where(function)}): {_size(function)} ({_interval(function)})"
    return f"{sentence} The function with the largest difference is {largest}."


def _size(one: TimeChange) -> str:
    """Example: `41 µs more`."""
    return f"{quantity(abs(one.delta_s), 's')} {'more' if one.delta_s > 0 else 'less'}"


def _interval(one: TimeChange) -> str:
    """Example: `95% CI 33 to 48 µs`."""
    low, high = sorted((abs(one.low_s), abs(one.high_s)))
    return f"{CI} {range_text(low, high, 's')}"


def _where(one: FrameChange) -> str:
    """Example: `kernel, called through XactLockTableWait; row and table locks; engine, waiting`. If the activity is
    unknown, names the nearest caller: `kernel, called by PGSemaphoreLock; engine, waiting`."""
    caller = f", called by {one.callers[0]}" if one.callers else ""
    caller = f", called through {one.through}" if one.through else caller
    parts = (f"kernel{caller}" if one.in_kernel else "", one.activity if one.activity != OTHER else "")
    return "; ".join([*filter(None, parts), area_name(one.area)])


def callers(one: FrameChange) -> str:
    """Example: `LWLockAcquire ← WALInsertLockAcquire ← XLogInsert`."""
    return " ← ".join(one.callers)


def no_change(one: ProfileComparison) -> str:
    """Example: `From index=on to index=off: no function differs significantly (239 times compared, with a
    correction for multiple comparisons). Apart from waits for a CPU, the largest difference is 12 µs more in
    index_getnext (engine, on CPU; 95% CI 1 to 23 µs). Its interval excludes 0, but so does one in 20 intervals by
    chance.` If every interval contains 0, the example ends after the first sentence."""
    compared = f"{counted(one.compared, 'time')} compared, with a correction for multiple comparisons"
    none = f"{sides(one)}: no function differs significantly ({compared})."
    if (largest := one.largest_clear) is None:
        return none
    where = f"{largest.name} ({_where(largest)}; {_interval(largest)})"
    return (
        f"{none} Apart from waits for a CPU, the largest difference is {_size(largest)} in {where}. Its interval "
        "excludes 0, but so does one in 20 intervals by chance."
    )


def no_intervals(one: ProfileComparison) -> str:
    """Example: `From A to B: no confidence intervals, because they need at least 3 blocks of one lab.`"""
    return f"{sides(one)}: no confidence intervals, because they need at least {LEAST_BLOCKS_SHOWN} blocks of one lab."


def sides(one: ProfileComparison) -> str:
    """Example: `From index=on to index=off`."""
    return f"From {configuration(one.before)} to {configuration(one.after)}"


LEAD = (
    "Time per transaction in functions of the engine, the client and the kernel, estimated from samples of their call "
    "stacks. The time of a function includes the functions that it calls. Waits for the next request, waits of the "
    f"client, and background processes without work are left out. Functions with fewer than {LEAST_SAMPLES} samples or "
    f"with less than {percent(LEAST_SHARE)} of the time count as part of their caller."
)
LEAD_COMPARED = (
    "Significance is corrected for the number of compared times, so that the false discovery rate is at most 5%. A "
    "function is left out of the table if the functions that it calls account for its difference."
)

FLAME_NOTE = (
    "The width of a bar is proportional to the time per transaction. Functions are below their callers. Click a bar "
    "to enlarge it. On the keyboard, use the arrow keys, Enter and Escape."
)
FLAME_PALE = "pale colours: not significant"


def node_name(name: str, in_kernel: bool, *, is_area: bool) -> str:
    """Names a node of a call tree, such as `tcp_sendmsg (kernel)`."""
    return area_name(name) if is_area else f"{name} (kernel)" if in_kernel else name


def flame_title(name: str) -> str:
    """Example with name='index=on': `Flame graph of index=on`."""
    return f"Flame graph of {name}"


def flame_alt(name: str, areas: Sequence[tuple[str, float]]) -> str:
    """Example with name='index=on', areas=[('engine:cpu', 0.00033), ('engine:blocked', 0.0000301)]: `Time per
    transaction with index=on: engine, on CPU 330 µs; engine, waiting 30.1 µs`."""
    times = "; ".join(f"{area_name(area)} {quantity(time_s, 's')}" for area, time_s in areas)
    return f"Time per transaction with {name}: {times}"


def flame_difference_title(one: ProfileComparison) -> str:
    """Example: `Differences from index=on to index=off`."""
    return f"Differences from {configuration(one.before)} to {configuration(one.after)}"


def flame_difference_note(wider: str) -> str:
    """Example: `The width of a bar is proportional to the time per transaction with index=off. …`"""
    return (
        f"The width of a bar is proportional to the time per transaction with {wider}. Functions are below their "
        "callers. Click a bar to enlarge it. On the keyboard, use the arrow keys, Enter and Escape."
    )


def flame_more(name: str) -> str:
    """Example with name='index=off': `more time with index=off`."""
    return f"more time with {name}"


def flame_less(name: str) -> str:
    """Example with name='index=off': `less time with index=off`."""
    return f"less time with {name}"
