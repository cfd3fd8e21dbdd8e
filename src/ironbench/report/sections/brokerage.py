"""Results of the brokerage workload: the score, the transaction mix, the response times with their limits, and the
market lag."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.report import wording
from ironbench.report.cell import UNKNOWN, Row, TableCell, centre, count
from ironbench.report.charts.base import Table
from ironbench.report.numbers import unit_of
from ironbench.report.page import Section
from ironbench.study.study import CellResults, Study, SubjectResults
from ironbench.study.summarise import Summary, summarise
from ironbench.workloads.brokerage.figures import LAG, LIMITS_S, MIX, SCORE, TAKEN_BACK, allowed
from ironbench.workloads.response_limits import P90

PLACE = 110
_LEAD = (
    "The score is the rate of Trade-Result transactions, which process orders that the market has answered; one "
    "transaction in ten is a Trade-Result. A trial is flagged if its transaction mix or response times are "
    "outside the specification. The market lag is the time from the scheduled start of the market's work to its "
    "actual start. ironbench defines the tolerance of the mix: 0.2% of the specified share plus three standard "
    "deviations of sampling variation."
)
_FACTS = {
    "Trade-Results per second": SCORE,
    "transactions per second": "throughput",
    "market lag, 99th percentile": f"{LAG}_p99_s",
    "rolled-back orders per trial": TAKEN_BACK,
    "retries per trial": "retries",
    "failed transactions per trial": "failed",
}


def sections(study: Study) -> Iterator[Section]:
    systems = [one for one in study.main if any(SCORE in trial.metrics for trial in one.main_trials)]
    if not systems:
        return
    head = ("", *(one.name for one in systems))
    rows: list[Row] = [
        (words, *(centre(one.metrics.get(metric), unit_of(metric)) for one in systems))
        for words, metric in _FACTS.items()
        if any(metric in one.metrics for one in systems)
    ]
    scores = list(map(_per_core, systems))
    rows[1:1] = [
        ("Trade-Results per second and core", *(centre(score, "1/s") for score in scores)),
        ("server cores", *(count(one.cores) if one.cores else UNKNOWN for one in systems)),
    ]
    tables = [("", Table(head, tuple(rows)))]
    tables += [(one.name, _mix(one)) for one in systems]
    title = f"Brokerage workload, {wording.text(study.place)}" if study.parts else "Brokerage workload"
    yield Section("brokerage", title, _LEAD, tables=tuple(tables), printed_at_end=True)


def _per_core(system: SubjectResults | CellResults) -> Summary | None:
    """Returns the score per core of the server. Returns None if the number of cores is unknown."""
    if not system.cores:
        return None
    return summarise([one.metrics[SCORE] / system.cores for one in system.main_trials if SCORE in one.metrics])


def _mix(system: SubjectResults | CellResults) -> Table:
    metrics = system.metrics
    rates = {name: metrics[tag].centre for name in MIX if (tag := f"throughput{{script={name}}}") in metrics}
    whole, seconds = sum(rates.values()), min(one.elapsed_s for one in system.main_trials)
    rows = []
    for name, share in MIX.items():
        if name not in rates or not whole:
            continue
        within = allowed(name, whole * seconds) / (whole * seconds)
        slowest = metrics.get(f"{P90}{{script={name}}}")
        rows.append(
            (
                name.replace("_", "-"),
                TableCell(rates[name], "1/s"),
                TableCell(rates[name] / whole, "share"),
                TableCell(share, "share"),
                TableCell(within, "± share"),
                centre(slowest, "s"),
                TableCell(LIMITS_S[name], "s"),
                _judged(abs(rates[name] / whole - share) <= within, slowest, LIMITS_S[name]),
            )
        )
    head = ("transaction", "rate", "share", "specified", "tolerance", "p90", "limit", "result")
    return Table(head, tuple(rows))


def _judged(in_mix: bool, slowest: Summary | None, limit_s: float) -> str:
    over = slowest is not None and slowest.centre > limit_s
    wrong = " and ".join(
        words for words, holds in (("outside the tolerance", not in_mix), ("over the limit", over)) if holds
    )
    return wrong or "pass"
