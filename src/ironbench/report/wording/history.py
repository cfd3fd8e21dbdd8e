"""Words for a metric over time: its load, and why a line has no verdict."""

from __future__ import annotations

from ironbench.report.wording.comparison import loop
from ironbench.report.wording.registry import wording
from ironbench.words import counted, in_percent


@wording("load-over-time")
def load_over_time(clients: int, rate: float | None = None, rate_share: float | None = None, curve: str = "") -> str:
    """8 clients, open loop at 500/s"""
    parts = [counted(clients, "client")]
    if rate_share is not None:
        parts.append(f"{in_percent(rate_share)} of the baseline's peak")
    elif curve or rate is not None:
        parts.append(curve or loop(rate))
    return ", ".join(parts)


@wording("unusable-left-out")
def unusable_left_out(trials: int) -> str:
    """3 trials left out: not valid, or run only to prepare others"""
    return f"{counted(trials, 'trial')} left out: not valid, or run only to prepare others"


@wording("untagged-left-out")
def untagged_left_out(trials: int, tag: str) -> str:
    """3 trials without the tag commit left out"""
    return f"{counted(trials, 'trial')} without the tag {tag} left out"


@wording("metric-without-values")
def metric_without_values(metric: str) -> str:
    """no trial has a value for throughput"""
    return f"no trial has a value for {metric}"


@wording("few-points")
def few_points(points: int, least: int, trials: int) -> str:
    """2 points with 3 trials or more; change points need at least 4"""
    return f"{counted(points, 'point')} with {trials} trials or more; change points need at least {least}"


@wording("few-points-besides-outliers")
def few_points_besides_outliers(points: int, least: int) -> str:
    """3 points besides outliers; change points need at least 4"""
    return f"{counted(points, 'point')} besides outliers; change points need at least {least}"
