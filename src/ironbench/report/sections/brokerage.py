"""What a brokerage has done: its score, its mix and response times against what is allowed, and its market."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Part, Study
from ironbench.analyse.summarise import Summary
from ironbench.report.charts.base import Table
from ironbench.report.columns import metrics_of
from ironbench.report.numbers import measured, percent, quantity, unit_of
from ironbench.report.section import Section
from ironbench.workloads.brokerage.figures import LAG, LIMITS_S, MIX, P90, SCORE, TAKEN_BACK, allowed

PLACE = 110
_LEAD = (
    "The score is the rate of Trade-Results: orders that the market has answered. One transaction in "
    "ten is one; a trial whose mix or response times are not as specified is suspect. The market's lag is from "
    "the instant at which its work is due to its start."
)
_FACTS = {
    "Trade-Results per second": SCORE,
    "all transactions per second": "throughput",
    "market's lag, 99th percentile": f"{LAG}_p99_s",
    "orders taken back, of a trial": TAKEN_BACK,
    "retries, of a trial": "retries",
    "failed transactions, of a trial": "failed",
}


def sections(study: Study) -> Iterator[Section]:
    parts = [part for part in study.parts if SCORE in metrics_of(part)]
    if not parts:
        return
    head = ("", *(part.name for part in parts))
    rows = [
        (words, *(measured(metrics_of(part).get(metric), unit_of(metric)) for part in parts))
        for words, metric in _FACTS.items()
        if any(metric in metrics_of(part) for part in parts)
    ]
    tables = [("", Table(head, tuple(rows), numbers=True))]
    tables += [(part.name, _mix(part)) for part in parts]
    yield Section("brokerage", f"The brokerage, {study.place}", _LEAD, tables=tuple(tables), at_end=True)


def _mix(part: Part) -> Table:
    metrics = metrics_of(part)
    rates = {name: metrics[tag].centre for name in MIX if (tag := f"throughput{{script={name}}}") in metrics}
    whole, seconds = sum(rates.values()), _measured_s(part)
    rows = []
    for name, share in MIX.items():
        if name not in rates or not whole:
            continue
        within = allowed(name, whole * seconds) / (whole * seconds)
        slowest = metrics.get(f"{P90}{{script={name}}}")
        rows.append(
            (
                name.replace("_", "-"),
                quantity(rates[name], "1/s"),
                percent(rates[name] / whole),
                f"{percent(share)} ± {percent(within)}",
                measured(slowest, "s"),
                quantity(LIMITS_S[name], "s"),
                _judged(abs(rates[name] / whole - share) <= within, slowest, LIMITS_S[name]),
            )
        )
    head = ("transaction", "rate", "share", "specified", "90 % within", "limit", "")
    return Table(head, tuple(rows))


def _measured_s(part: Part) -> float:
    assert part.curve.main is not None
    return min(trial.elapsed_s for trial in part.curve.main.trials)


def _judged(in_mix: bool, slowest: Summary | None, limit_s: float) -> str:
    over = slowest is not None and slowest.centre > limit_s
    return " and ".join(words for words, wrong in (("out of mix", not in_mix), ("too slow", over)) if wrong) or "kept"
