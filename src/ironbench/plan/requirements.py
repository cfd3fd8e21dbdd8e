"""Reads requirements for a measurement, such as `p99 < 10ms` or `rate = 200/s`, and converts them to claims."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial

from ironbench import catalogue, ranges, units
from ironbench.errors import InputError, collected, quoted
from ironbench.model.lab import RATE, VALUE, Claim
from ironbench.model.plan import Plan

LEAST_TRIALS = 3
"""Minimum number of trials for deciding a requirement. With fewer trials, the confidence interval is too wide."""
SHORT = {
    **{name: f"response_time_{name}_s" for name in ("p50", "p90", "p95", "p99", "p999", "mean", "max")},
    "rate": "throughput",
    "failed": "failed_fraction",
}
"""Full names of metrics by their short names."""
_FORM = re.compile(r"([a-z][a-z0-9_]*(?:\{[^{}]*\})?)\s*(<=|>=|<|>|=|≤|≥)\s*(\S.*)")
_EXAMPLE = 'write for example "p99 < 10ms", "rate = 200/s", "rate >= 2000/s" or "failed < 0.1%"'


def read(texts: Sequence[str]) -> tuple[Claim, ...]:
    """Returns the claims of `--require`. Raises InputError for every text that is not a requirement."""
    return tuple(collected(partial(_requirement, text, f"--require {quoted(text)}") for text in texts))


def bound(text: str, option: str) -> Claim:
    """Reads an upper bound of a metric, such as `p99 < 10ms`. Raises InputError."""
    where = f"{option} {quoted(text)}"
    claim = _requirement(text, where)
    if claim.high is None or catalogue.better(claim.metric) != "lower" or not claim.high > 0:
        hint = 'use a metric for which lower is better, e.g. "p99 < 20ms"'
        raise InputError(where, "is not an upper bound of a response time", hint)
    return claim


def _requirement(text: str, where: str) -> Claim:
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InputError(where, "is not a requirement", _EXAMPLE)
    name, relation, written = match.groups()
    metric = SHORT.get(name, name)
    if catalogue.base_name(metric) not in catalogue.metrics():
        raise InputError(where, f"unknown metric {name}", catalogue.suggestion(name, tuple(SHORT)))
    value = quantity(metric, written, where)
    if relation == "=" and metric != SHORT["rate"]:
        raise InputError(where, f"a measured {name} never equals a value exactly", f'write "{name} < {written}"')
    low = value if relation in (">", ">=", "≥", "=") else None
    high = value if relation in ("<", "<=", "≤") else None
    return Claim(text.strip(), RATE if relation == "=" else VALUE, metric, (), low, high)


def quantity(metric: str, written: str, where: str) -> float:
    """Reads a value of the metric, such as `10ms`, `200/s`, `5%` or `3GB`, in base units. Raises InputError."""
    unit, text = catalogue.metric(metric).unit, written.strip()
    if unit == "s":
        if text[-1:].isdigit():
            raise InputError(where, f"{text} has no unit", f"write {text}ms or {text}s")
        return units.seconds(where, text)
    if unit in ("bytes", "bytes/s"):
        return float(units.size(where, text.removesuffix("/s")))
    share = text.endswith("%") and unit == "1"
    try:
        value = float(text.removesuffix("%" if share else "/s").strip().replace(",", ""))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(where, f"{quoted(text)} is not a value of {metric}", _EXAMPLE)
    return value / 100 if share else value


def refuse_undecidable(claims: Sequence[Claim], plan: Plan) -> None:
    """Raises InputError for requirements that the planned trials cannot decide."""
    if not claims:
        return
    subject = f"--require {quoted(claims[0].text)}"
    if plan.search:
        raise InputError(subject, "a search varies the load until its limits are met", "use --limit instead")
    repeats: dict[str, int] = {}
    for trial in plan.trials:
        repeats[trial.cell.name] = repeats.get(trial.cell.name, 0) + 1
    if (fewest := min(repeats.values(), default=0)) < LEAST_TRIALS:
        cause = f"a confidence interval needs {LEAST_TRIALS} trials; planned: {fewest}"
        raise InputError(subject, cause, f"use --repeats {LEAST_TRIALS} or more")
    for claim in claims:
        for trial in plan.trials:
            _require_rate(claim, trial.cell.load.rate)


def _require_rate(claim: Claim, rate: float | None) -> None:
    """Raises InputError if a claim requires a rate other than the load's target rate."""
    where = f"--require {quoted(claim.text)}"
    if claim.metric != SHORT["rate"] or claim.low is None:
        return
    if claim.kind == RATE and rate is None:
        cause = "a closed loop has no target rate"
        least = f"{claim.low:g}"
        raise InputError(where, cause, f'add --rate {least}, or write "rate >= {least}/s"')
    if rate is not None and (rate < claim.low or (claim.kind == RATE and rate != claim.low)):
        cause = f"does not match the target rate of the load, {ranges.in_words(rate)} transactions per second"
        raise InputError(where, cause, f"use --rate {claim.low:g}")
