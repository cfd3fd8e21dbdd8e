"""Words for the answer of `history`: change points, open questions, and how to read the points."""

from __future__ import annotations

from ironbench.model.note import Note
from ironbench.report.wording.answers.ratios import change, change_bounds, metric_words, than
from ironbench.report.wording.registry import text
from ironbench.report.wording.values import CI
from ironbench.stats.change_points import NIGHTS, FalseAlarms
from ironbench.words import counted, grouped, in_percent, upper_first

_DIRECTION = {True: "worse", False: "better", None: "changed"}


def scope(trials: int, points: int, by: str, works: int) -> str:
    """Example with trials=120, points=40, by='commit', works=2: `120 trials, grouped by commit into 40 points; 2
    combinations of work and load.`"""
    seen = f"{counted(trials, 'trial')}, grouped by {by} into {counted(points, 'point')}"
    return f"{seen}; {counted(works, 'combination')} of work and load."


def nothing_to_show() -> str:
    """Example: `There are no points to show.`"""
    return "There are no points to show."


def no_change_point(lines: int) -> str:
    """Example with lines=3: `No change point in 3 series.`

    If no series could be judged, the text is `There is no verdict yet.`
    """
    return f"No change point in {counted(lines, 'series', 'series')}." if lines else "There is no verdict yet."


def changed(
    metric: str,
    since: str,
    day: str,
    ratio: float,
    low: float,
    high: float,
    worse: bool | None,
    line: str,
    flagged: bool,
) -> str:
    """Example with metric='throughput', since='1f3c2a9', day='2026-11-21', ratio=0.88, low=0.84, high=0.919,
    worse=True, line='postgres 18', flagged=False: `Throughput worse since 1f3c2a9 (2026-11-21): 12% lower than before
    (95% CI 8.1% to 16%). Series: postgres 18.`

    `day`: the date of the point, or an empty text if the point's name already begins with the date. `worse`: None if
    neither higher nor lower values of the metric are better.
    """
    bounds = f"{CI} {change_bounds(low, high, ratio)}"
    size = f"{change(ratio, '')} {than(ratio)} before ({bounds})"
    place = f"{since} ({day})" if day else since
    mark = f" Every trial of the point {since} is flagged." if flagged else ""
    return f"{upper_first(metric_words(metric))} {_DIRECTION[worse]} since {place}: {size}. Series: {line}.{mark}"


def no_verdict(line: str, why: Note) -> str:
    """Example with line='postgres 18', why=note('few-points', points=2, least=4, trials=3): `postgres 18: no verdict:
    finding a change point takes at least 4 points with at least 3 trials each, but there are only 2.`"""
    return f"{line}: no verdict: {text(why)}."


def unchanged(line: str, judged: int, too_few_trials: int, detectable: float | None) -> str:
    """Example with line='postgres 18', judged=40, too_few_trials=2, detectable=0.041: `postgres 18: no change point in
    40 points (2 more points have too few trials). A change by 4.1% or more can be detected three points after the
    change.`"""
    points = counted(judged, "point") + (
        f" ({counted(too_few_trials, 'more point has', 'more points have')} too few trials)" if too_few_trials else ""
    )
    seen = (
        f" A change by {in_percent(detectable)} or more can be detected three points after the change."
        if detectable
        else ""
    )
    return f"{line}: no change point in {points}.{seen}"


def unconfirmed(line: str, point: str) -> str:
    """Example with line='postgres 18', point='1f3c2a9': `postgres 18: the point 1f3c2a9 may be a change; the next point
    will confirm or reject it.`"""
    return f"{line}: the point {point} may be a change; the next point will confirm or reject it."


def flagged_trials(trials: int, whole_points: int) -> str:
    """Example with trials=7, whole_points=2: `7 trials flagged, including all trials at 2 points (marked with ?);
    `ironbench show` lists the reasons.`"""
    marked = f", including all trials at {counted(whole_points, 'point')} (marked with ?)" if whole_points else ""
    return f"{counted(trials, 'trial')} flagged{marked}; `ironbench show` lists the reasons."


def what_a_point_is() -> str:
    """Example: `A point is the geometric mean of the trials of one commit, version or run. The 95% CI of a point is
    Student's t interval of the logarithms of the trials.`"""
    return (
        f"A point is the geometric mean of the trials of one commit, version or run. The {CI} of a point is "
        "Student's t interval of the logarithms of the trials."
    )


def what_a_change_point_is(independent: FalseAlarms, correlated: FalseAlarms) -> str:
    """Example: `A change point separates two segments with means that differ by more than chance explains. …`

    The arguments are the rates of false alarms in two simulations. In the first, the values of successive nights are
    independent; in the second, they are correlated.
    """
    return (
        "A change point separates two segments with means that differ by more than chance explains. In "
        f"simulations of {grouped(independent.series)} series without a change, with one point per night and a test "
        f"after each of {NIGHTS} nights, {false_alarms(independent)} of the series had a false change point if the "
        "nights were independent. ironbench estimates the correlation between successive nights and corrects for this "
        f"correlation. With a correlation of {correlated.correlation:g}, {false_alarms(correlated)} of "
        f"{grouped(correlated.series)} simulated series still had a false change point."
    )


def false_alarms(found: FalseAlarms) -> str:
    """Example: `1% (95% CI 0.78% to 1.3%)`."""
    low, high = found.interval
    return f"{in_percent(found.share)} ({CI} {in_percent(low)} to {in_percent(high)})"


def what_a_spike_is() -> str:
    """Example: `A single outlier is a spike, not a change. A change at the last point is confirmed only by the next
    point.`"""
    return "A single outlier is a spike, not a change. A change at the last point is confirmed only by the next point."


def without_verdict() -> str:
    """Example: `Points with fewer than 3 trials are shown without a verdict.`"""
    return "Points with fewer than 3 trials are shown without a verdict."
