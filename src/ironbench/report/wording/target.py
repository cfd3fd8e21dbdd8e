"""Words for whether a system meets a target for response time at a rate."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units as written
from ironbench.model.record import FAILED_LIMITS
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import percent


def milliseconds(value_s: float) -> str:
    """`12.5 ms`, `1.2 s`"""
    return f"{value_s:.3g} s" if value_s >= 0.9995 else f"{value_s * 1e3:.3g} ms"


@wording("target-met")
def met(bound_s: float, rate: float, failed: float = 0.0) -> str:
    """at most 12.5 ms at 500/s, 0.1% failed"""
    lost = f", {percent(failed, *FAILED_LIMITS)} failed" if failed else ""
    return f"at most {milliseconds(bound_s)} at {written.rate(rate)}{lost}"


@wording("target-rate-not-kept")
def rate_not_kept(rate: float, centre_s: float) -> str:
    """does not sustain 500/s; 12.5 ms at that rate"""
    return f"does not sustain {written.rate(rate)}; {milliseconds(centre_s)} at that rate"


@wording("target-of-few-trials")
def of_few_trials(rate: float, centre_s: float, trials: int, least: int) -> str:
    """not measured: 2 of 3 trials at 500/s, too few for a confidence interval (12.5 ms)"""
    at = f"{trials} of {least} trials at {written.rate(rate)}"
    return f"not measured: {at}, too few for a confidence interval ({milliseconds(centre_s)})"


@wording("target-inconclusive")
def inconclusive(rate: float, centre_s: float, bound_s: float) -> str:
    """inconclusive: 12.5 ms, at most 14 ms at 500/s; run more trials"""
    return f"inconclusive: {_near(rate, centre_s, bound_s)}; run more trials"


@wording("target-missed")
def missed(rate: float, centre_s: float, bound_s: float, limit_s: float) -> str:
    """missed, 1.25x the limit: 12.5 ms, at most 14 ms at 500/s"""
    times = f", {centre_s / limit_s:.2f}x the limit" if limit_s else ""
    return f"missed{times}: {_near(rate, centre_s, bound_s)}"


def _near(rate: float, centre_s: float, bound_s: float) -> str:
    return f"{milliseconds(centre_s)}, at most {milliseconds(bound_s)} at {written.rate(rate)}"


@wording("target-unresolved")
def unresolved(units: str, metric: str) -> str:
    """not measured: transactions still waiting at the end of every trial could change response_time_p99_s"""
    return f"not measured: {units} still waiting at the end of every trial could change {metric}"


@wording("target-of-too-few")
def of_too_few(units: str, needs: Sequence[Sequence[float]]) -> str:
    """not measured: too few transactions in a trial, 99% needs 299"""
    return f"not measured: too few {units} in a trial, {needed(needs)}"


@wording("target-no-records")
def no_records() -> str:
    """not measured: no records of this work"""
    return "not measured: no records of this work"


@wording("target-of-other-hardware")
def of_other_hardware() -> str:
    """not measured: the records are of other hardware than the systems file declares"""
    return "not measured: the records are of other hardware than the systems file declares"


@wording("target-none-usable")
def none_usable() -> str:
    """not measured: no usable trial"""
    return "not measured: no usable trial"


@wording("target-no-rate")
def no_rate(curved: bool) -> str:
    """not measured: closed loop only; run with --rate"""
    return f"not measured: {'no steady rate' if curved else 'closed loop only'}; run with --rate"


@wording("target-rate-lower")
def rate_lower(highest: float) -> str:
    """not measured: the highest rate tried is 500/s"""
    return f"not measured: the highest rate tried is {written.rate(highest)}"
