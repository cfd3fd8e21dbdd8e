"""Words for the result of a target, which is a limit for the response time at a rate."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units as written
from ironbench.model.judging_limits import FAILED_LIMITS
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import percent
from ironbench.words import counted


def milliseconds(value_s: float) -> str:
    """Examples: `12.5 ms`, `1.2 s`."""
    return f"{value_s:.3g} s" if value_s >= 0.9995 else f"{value_s * 1e3:.3g} ms"


@wording("target-met")
def met(bound_s: float, rate: float, failed: float = 0.0) -> str:
    """Example with bound_s=0.0125, rate=500, failed=0.001: `at most 12.5 ms at 500/s, 0.1% failed`."""
    lost = f", {percent(failed, *FAILED_LIMITS)} failed" if failed else ""
    return f"at most {milliseconds(bound_s)} at {written.rate(rate)}{lost}"


@wording("target-rate-not-kept")
def rate_not_kept(rate: float, centre_s: float) -> str:
    """Example with rate=500, centre_s=0.0125: `does not sustain 500/s; its response time at that rate is 12.5 ms`."""
    return f"does not sustain {written.rate(rate)}; its response time at that rate is {milliseconds(centre_s)}"


@wording("target-of-few-trials")
def of_few_trials(rate: float, centre_s: float, trials: int, least: int, short: int = 0) -> str:
    """Example with rate=500, centre_s=0.0125, trials=2, least=3: `not measured: a confidence interval needs 3 usable
    trials at 500/s, but there are only 2 (response time 12.5 ms)`."""
    needs = f"a confidence interval needs {least} usable trials at {written.rate(rate)}, but there are only {trials}"
    longer = f"; {counted(short, 'more trial')} had too few transactions, so use a longer `--duration`" if short else ""
    return f"not measured: {needs} (response time {milliseconds(centre_s)}){longer}"


@wording("target-inconclusive")
def inconclusive(rate: float, centre_s: float, bound_s: float) -> str:
    """Example with rate=500.0, centre_s=0.0125, bound_s=0.014: `inconclusive: 12.5 ms at 500/s (upper confidence limit
    14 ms); run more trials`."""
    return f"inconclusive: {_near(rate, centre_s, bound_s)}; run more trials"


@wording("target-missed")
def missed(rate: float, centre_s: float, bound_s: float, limit_s: float) -> str:
    """Example with rate=500.0, centre_s=0.0125, bound_s=0.014, limit_s=0.01: `missed with 12.5 ms at 500/s (upper
    confidence limit 14 ms), 1.25x the limit`."""
    times = f", {centre_s / limit_s:.2f}x the limit" if limit_s else ""
    return f"missed with {_near(rate, centre_s, bound_s)}{times}"


def _near(rate: float, centre_s: float, bound_s: float) -> str:
    return f"{milliseconds(centre_s)} at {written.rate(rate)} (upper confidence limit {milliseconds(bound_s)})"


@wording("target-unresolved")
def unresolved(units: str, metric: str) -> str:
    """Example with units='transactions', metric='response_time_p99_s': `not measured: response_time_p99_s is unknown,
    because too many transactions were still waiting at the end of every trial`."""
    return f"not measured: {metric} is unknown, because too many {units} were still waiting at the end of every trial"


@wording("target-of-too-few")
def of_too_few(units: str, needs: Sequence[Sequence[float]]) -> str:
    """Example with units='transactions', needs=[(0.99, 299)]: `not measured: too few transactions in a trial (the 99th
    percentile needs at least 299)`."""
    return f"not measured: too few {units} in a trial ({needed(needs)})"


@wording("target-no-records")
def no_records() -> str:
    """Example: `not measured: there are no records of this workload`."""
    return "not measured: there are no records of this workload"


@wording("target-of-other-hardware")
def of_other_hardware() -> str:
    """Example: `not measured: the hardware in the records differs from the hardware in the systems file`."""
    return "not measured: the hardware in the records differs from the hardware in the systems file"


@wording("target-none-usable")
def none_usable() -> str:
    """Example: `not measured: there is no usable trial`."""
    return "not measured: there is no usable trial"


@wording("target-no-rate")
def no_rate(curved: bool) -> str:
    """Example with curved=False: `not measured: all trials ran in a closed loop; run the system with `--rate``."""
    return (
        f"not measured: {'the rate followed a load curve' if curved else 'all trials ran in a closed loop'}; run the "
        "system with `--rate`"
    )


@wording("target-rate-higher")
def rate_higher(rate: float, centre_s: float) -> str:
    """Example with rate=500, centre_s=0.0125: `inconclusive: measured only at the higher rate 500/s, where the response
    time is 12.5 ms; measure the target's rate`."""
    at = f"measured only at the higher rate {written.rate(rate)}, where the response time is {milliseconds(centre_s)}"
    return f"inconclusive: {at}; measure the target's rate"


@wording("target-rate-lower")
def rate_lower(highest: float) -> str:
    """Example with highest=500: `not measured: the highest tested rate is 500/s, below the target's rate`."""
    return f"not measured: the highest tested rate is {written.rate(highest)}, below the target's rate"
