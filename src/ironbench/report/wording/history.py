"""Words for a metric over time: the load, and why a time series has no verdict."""

from __future__ import annotations

from ironbench.report.wording.comparison import loop
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import agreed
from ironbench.words import counted, in_percent


@wording("load-over-time")
def load_over_time(clients: int, rate: float | None = None, rate_share: float | None = None, curve: str = "") -> str:
    """Example with clients=8, curve='open loop at 500/s': `8 clients, open loop at 500/s`."""
    parts = [counted(clients, "client")]
    if rate_share is not None:
        parts.append(f"{in_percent(rate_share)} of the baseline's peak throughput")
    elif curve or rate is not None:
        parts.append(curve or loop(rate))
    return ", ".join(parts)


@wording("unusable-left-out")
def unusable_left_out(trials: int) -> str:
    """Example with trials=3: `3 trials left out, because they are not valid or were only run to prepare other
    trials`."""
    return f"{counted(trials, 'trial')} left out, because they are not valid or were only run to prepare other trials"


@wording("untagged-left-out")
def untagged_left_out(trials: int, tag: str) -> str:
    """Example with trials=3, tag='commit': `3 trials left out, because they have no tag `commit``."""
    return f"{counted(trials, 'trial')} left out, because they have no tag `{tag}`"


@wording("metric-without-values")
def metric_without_values(metric: str) -> str:
    """Example with metric='throughput': `no trial has a value for throughput`."""
    return f"no trial has a value for {metric}"


@wording("few-points")
def few_points(points: int, least: int, trials: int) -> str:
    """Example with points=2, least=4, trials=3: `finding a change point takes at least 4 points with at least 3 trials
    each, but there are only 2`."""
    return (
        f"finding a change point takes at least {least} points with at least {trials} trials each, but there "
        f"{agreed(points, 'is', 'are')} only {points}"
    )


@wording("few-points-besides-outliers")
def few_points_besides_outliers(points: int, least: int) -> str:
    """Example with points=3, least=4: `finding a change point takes at least 4 points that are not outliers, but there
    are only 3`."""
    return (
        f"finding a change point takes at least {least} points that are not outliers, but there "
        f"{agreed(points, 'is', 'are')} only {points}"
    )
