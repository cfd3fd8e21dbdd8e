"""Words for one system's lead over another."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.words import in_percent


@wording("lead-of-one-trial")
def of_one_trial() -> str:
    """no interval: one trial"""
    return "no interval: one trial"


@wording("lead-of-one-run")
def of_one_run() -> str:
    """no verdict: one run"""
    return "no verdict: one run"


@wording("lead-equal")
def equal(margin: float) -> str:
    """equal within 5 %"""
    return f"equal within {in_percent(margin)}"


@wording("lead")
def lead(ratio: float, higher_is_better: bool) -> str:
    """leads by 28 %; takes 50 % less time"""
    apart, more = in_percent(abs(ratio - 1)), ratio > 1
    if higher_is_better:
        return f"{'leads' if more else 'trails'} by {apart}"
    return f"takes {apart} {'longer' if more else 'less time'}"


@wording("lead-inconclusive")
def inconclusive() -> str:
    """inconclusive"""
    return "inconclusive"


@wording("work-of-one-side")
def work_of_one_side(side: str, work: str) -> str:
    """only old did igen-oltp scale=8"""
    return f"only {side} did {work}"
