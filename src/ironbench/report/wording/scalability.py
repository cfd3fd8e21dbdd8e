"""Words for the curve of a scalability law fitted to a system's trials."""

from __future__ import annotations

import math

from ironbench.report.wording.registry import wording
from ironbench.words import counted, grouped, in_percent, percents

_FAR = 10
"""An interval that ends beyond so many times its value bounds nothing."""
Bounds = tuple[float, float, float | None]
"""A value with its 95 % interval, whose upper end may be unknown."""


@wording("curve-falls")
def falls(throughput: Bounds) -> str:
    """the fitted curve falls from the first client on: a single client has the highest throughput, 500/s (…)"""
    alone = f"a single client has the highest throughput, {rate(throughput)}"
    return f"the fitted curve falls from the first client on: {alone}"


@wording("curve-highest-at-one-client")
def highest_at_one_client(throughput: Bounds, high: float | None) -> str:
    """the fitted curve is highest at 1 client with 500/s (490 to 510); the 95 % CI of its peak reaches to 3 clients"""
    end = f"reaches to {_clients(high)} clients" if high is not None else "has no upper end"
    return f"the fitted curve is highest at 1 client with {rate(throughput)}; the 95 % CI of its peak {end}"


@wording("curve-rises")
def rises(last: float, asymptote: Bounds | None, least: float | None) -> str:
    """the fitted curve still rises at 64 clients towards an asymptote of 900/s (880 to 920); a peak, if any, is at …"""
    towards = f" towards an asymptote of {rate(asymptote)}" if asymptote else ""
    end = f"; a peak, if any, is at {_up(least)} clients or more" if least is not None else ""
    return f"the fitted curve still rises at {_clients(last)} clients{towards}{end}"


@wording("curve-peak")
def peak(clients: Bounds, throughput: Bounds, last: float, beyond: bool, certain: bool) -> str:
    """the fitted curve peaks at 31 clients (95 % CI 30 to 33) with 7 000/s (6 900 to 7 100)"""
    found = f"the fitted curve peaks at {_at(clients)} with {rate(throughput)}"
    if beyond:
        return f"{found}. This is beyond the {_clients(last)} clients measured: measure there before you rely on it"
    return found if certain else f"{found}; the interval extends beyond the {_clients(last)} clients measured"


@wording("curve-superlinear")
def superlinear() -> str:
    """throughput grows superlinearly: the fitted contention is negative, so several clients get more done than …"""
    return (
        "throughput grows superlinearly: the fitted contention is negative, so several clients get more work done than "
        "as many times a single one (shared caches, group commit). The law does not explain that; do not rely on its "
        "predictions beyond the measured range"
    )


@wording("curve-without-knee")
def without_knee(least: float | None) -> str:
    """contention is not distinguishable from zero, so no knee is shown; a knee, if any, is at 24 clients or more"""
    end = f"; a knee, if any, is at {_up(least)} clients or more" if least is not None else ""
    return f"contention is not distinguishable from zero, so no knee is shown{end}"


@wording("curve-knee")
def knee(clients: Bounds, contention: Bounds, measured: bool) -> str:
    """the knee is at 20 clients (95 % CI 19 to 21): up to there, additional clients mostly work; beyond it, they …"""
    where = "" if measured else ", beyond what was measured"
    return (
        f"the knee is at {_at(clients)}{where}: up to there, additional clients mostly work; beyond it, they mostly "
        f"wait. Contention is {_share(contention)} of the work"
    )


@wording("curve-without-measured-fall")
def without_measured_fall(first: float, last: float) -> str:
    """measured throughput does not fall from 24 clients to 40, the most that were measured: only the fitted curve …"""
    flat = f"from {counted(first, 'client')} to {_clients(last)}, the most that were measured"
    return f"measured throughput does not fall {flat}: only the fitted curve falls beyond its peak"


@wording("curve-coherency")
def coherency() -> str:
    """keeping clients consistent with each other (coherency) costs time: past the peak, more clients do less work"""
    return "keeping clients consistent with each other (coherency) costs time: past the peak, more clients do less work"


@wording("curve-without-coherency")
def without_coherency() -> str:
    """a cost of keeping clients consistent with each other (coherency) is not distinguishable from zero: …"""
    return (
        "a cost of keeping clients consistent with each other (coherency) is not distinguishable from zero: a curve "
        "that never falls (Amdahl's law) fits as well"
    )


@wording("curve-of-few-points")
def of_few_points(points: int, enough: int) -> str:
    """the curve is fitted to 4 numbers of clients; 6 or more are advisable"""
    return f"the curve is fitted to {points} numbers of clients; {enough} or more are advisable"


@wording("curve-misfit")
def misfit(clients: float, missed: float) -> str:
    """the scalability law does not describe this system: its curve misses the trials by more than repeats vary, …"""
    return (
        "the scalability law does not describe this system: its curve misses the trials by more than repeats vary, "
        f"most at {_clients(clients)} clients (by {in_percent(missed)}). Its intervals are widened accordingly; rely "
        "on the measured points, not on the curve"
    )


@wording("curve-peak-beyond")
def peak_beyond(clients: float, last: float) -> str:
    """the predicted peak at 80 clients is beyond the measured range, which ends at 64"""
    measured = f"beyond the measured range, which ends at {_clients(last)}"
    return f"the predicted peak at {_clients(clients)} clients is {measured}"


def rate(bounds: Bounds) -> str:
    """`1 000/s (900 to 1 100)`"""
    value, low, high = bounds
    bounded = high is not None and high < _FAR * value
    upper = f"{grouped(low)} to {grouped(high or 0.0)}" if bounded else f"from {grouped(low)} on, without an upper end"
    return f"{grouped(value)}/s ({upper})"


def _at(bounds: Bounds) -> str:
    value, low, high = bounds
    interval = f"{_clients(low)} to {_clients(high)}" if high is not None else f"from {_clients(low)} on"
    return f"{_clients(value)} clients (95 % CI {interval})"


def _share(bounds: Bounds) -> str:
    """A share is below 0 where a system is superlinear."""
    value, low, high = bounds
    interval = f"{percents(low)} to {in_percent(high)}" if high is not None else f"from {in_percent(low)} on"
    return f"{in_percent(value)} ({interval})"


def _clients(clients: float) -> str:
    return grouped(clients) if clients >= 9.95 or clients == round(clients) else f"{clients:.1f}"


def _up(clients: float) -> str:
    return grouped(math.ceil(clients))
