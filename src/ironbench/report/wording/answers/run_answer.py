"""Words for the answer at the top of a report about runs: what each system sustained or reached, compared with the
first system.

Most functions return the rest of a sentence that starts with the system's name. `nothing_usable` and `no_difference`
return complete sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.note import Note
from ironbench.report.numbers import number, quantity, span, unit_of
from ironbench.report.wording.answers.ratios import change, interval, metric_words, than
from ironbench.report.wording.curve import tally
from ironbench.report.wording.registry import text
from ironbench.study.compare import MeanRatio
from ironbench.study.subjects import failed_percent
from ironbench.study.summarise import Summary
from ironbench.units import all_digits, rate
from ironbench.words import counted, in_percent, listed


def nothing_usable() -> str:
    """Example: `No trial is usable.`"""
    return "No trial is usable."


def pace(multiple: float) -> str:
    """Example with multiple=3.0: `at 3 times the recorded pace`."""
    return "at the recorded pace" if multiple == 1 else f"at {multiple:g} times the recorded pace"


def rates_sustained(sustained: Sequence[float], rates: int) -> str:
    """Example with sustained=[100.0, 200.0, 500.0], rates=5: `sustained 3 of 5 target rates, up to 500/s.`"""
    highest = f", up to {rate(max(sustained))}" if sustained else ""
    return f"sustained {len(sustained)} of {rates} target rates{highest}."


def required(requirement: str, verdict: str, reasons: Sequence[Note]) -> str:
    """Example with requirement='p99 < 50ms', verdict='refuted', reasons=[note('value-against-limit', verdict='refuted',
    low=1.2, high=1.6, unit='s', confidence=0.95, trials=3)]: `does not meet the requirement p99 < 50ms (95% CI 1.2 s to
    1.6 s from 3 trials, beyond the limit).`"""
    outcome = {"confirmed": "meets the requirement", "refuted": "does not meet the requirement"}
    words = outcome.get(verdict, "was not shown to meet or to miss the requirement")
    why = "; ".join(text(reason).rstrip(".") for reason in reasons)
    return f"{words} {requirement}{f' ({why})' if why else ''}."


def search_result(result: Note) -> str:
    """Example with result=note('search-none-sustained', of='rate', tried=(20, 40)): `has this search result: no rate
    was sustained (tried: 20, 40).`"""
    return f"has this search result: {text(result)}."


def recorded_search(result: Note | None, target: float, kept: int, trials: int) -> str:
    """Example with result=None, target=500.0, kept=3, trials=3: `has this search result: 3 of 3 confirmation trials
    sustained 500/s.`"""
    found = f"{text(result)}; " if result else ""
    confirmations = counted(trials, "confirmation trial")
    return f"has this search result: {found}{kept} of {confirmations} sustained {rate(target)}."


def target_rate(
    target: float,
    units: str,
    clients: int,
    kept: int,
    trials: int,
    confirmed: bool,
    on_curve: bool,
    finished: float | None,
    p99_s: float | None,
) -> str:
    """Example with target=500.0, units='transactions', clients=16, kept=3, trials=3, confirmed=False, on_curve=False,
    finished=None, p99_s=0.012: `sustains 500 transactions per second with 16 clients (3 trials); p99 response time
    12.0 ms.`

    `kept`: the number of trials that sustained the rate. `finished`: the fraction of the scheduled transactions that
    were finished.
    """
    asked = number(target) if on_curve else all_digits(target)
    asked = f"{asked} {units} per second{' on average over the curve' if on_curve else ''}"
    asked += f" with {counted(clients, 'client')}"
    of_trials = tally(trials, confirmed)
    if kept == trials:
        return f"sustains {asked} ({of_trials}){_p99(p99_s)}."
    part = "" if finished is None else f"; {quantity(finished, 'share')} of the scheduled {units} were finished"
    if kept:
        return f"sustains {asked} in only {kept} of {of_trials}{part}."
    return f"does not sustain {asked} ({of_trials}){part}."


def _p99(seconds: float | None) -> str:
    return "" if seconds is None else f"; p99 response time {quantity(seconds, 's')}"


def leading_ratio(
    metric: str, ratio: float, first: str, means: tuple[float, float], passes: bool, interleaved: bool
) -> str:
    """Compares a system with the first one, by the main metric of a workload whose result is not a throughput: `has 26%
    higher random-read IOPS than ssd: 12,600/s vs. 10,000/s; the ranges of the trials do not overlap.`"""
    unit = unit_of(metric)
    values = f"{quantity(means[1], unit)} vs. {quantity(means[0], unit)}"
    ranges = f"the ranges of the {'passes' if passes else 'trials'} do not overlap"
    end = "." if interleaved else ", but there is no verdict, because the two runs were not interleaved."
    return f"has {change(ratio, '')} {metric_words(metric)} {than(ratio)} {first}: {values}; {ranges}{end}"


def peak(
    throughput: Summary,
    units: str,
    clients: int,
    basis: Note,
    *,
    single_maximum: bool = False,
    on_curve: bool = False,
    recorded_pace: float | None = None,
    score: str = "",
    plateau: tuple[int, int] | None = None,
    limits: Sequence[str] = (),
    limited: Sequence[tuple[str, float]] = (),
    exceeded: bool = False,
    lost: float | None = None,
    p99_s: float | None = None,
    failed: float | None = None,
) -> str:
    """Example with throughput=Summary(3, 940.0, 940.0, 920.0, 950.0, 15.0), units='transactions', clients=8,
    basis=note('peak-basis', trials=3, confirmed=True, swept=False), single_maximum=True, p99_s=0.012: `peaks at 940
    transactions per second with 8 clients (range 920 to 950/s, 3 confirmation trials); p99 response time 12.0 ms.`

    `single_maximum`: whether this number of clients was shown to be better than all others that were measured.
    `plateau`: the range of clients in which no difference was shown. `limits`: the limits of the search that found the
    peak. `limited`: pairs of a limited metric and its value at the peak. `exceeded`: whether one of these values
    exceeds its limit. `lost`: the fraction by which throughput was lower in the confirmation trials than in the sweep.
    """
    spread = f"range {span(throughput, '1/s')}, " if throughput.n > 1 else ""
    reached, with_clients = f"{number(throughput.centre)} {units} per second", counted(clients, "client")
    if on_curve:
        reached, with_clients = f"{reached} on average over the curve", f"at most {with_clients}"
    verb = "peaks at" if single_maximum else "reaches"
    if limits and exceeded:
        verb = f"exceeds the limit {', '.join(limits)} in the confirmation trials and reaches"
    elif limits:
        verb = "reaches"
        with_clients = f"{with_clients} within the {'limit' if len(limits) == 1 else 'limits'} {', '.join(limits)}"
    if recorded_pace is not None:
        verb, reached = "runs", f"{reached} {pace(recorded_pace)}"
    first = f"{score} and " if score else ""
    rest = (
        ""
        if plateau is None
        else f"; no difference in throughput was shown between {plateau[0]} and {plateau[1]} clients"
    )
    rest += f"; {listed([f'{name} {quantity(value, unit_of(name))}' for name, value in limited])}" if limited else ""
    rest += "" if lost is None else f"; throughput is {in_percent(lost)} lower than in the sweep"
    rest += _p99(p99_s)
    rest += f"; {failed_percent(failed)} of the {units} failed" if failed else ""
    return f"{verb} {first}{reached} with {with_clients} ({spread}{text(basis)}){rest}."


def score(metric: str, value: Summary) -> str:
    """Formats the score of a workload that counts only one kind of transaction: `12.6 new orders (range 12.4/min to
    12.8/min)`."""
    spread = f" (range {span(value, unit_of(metric))})" if value.n > 1 else ""
    return f"{number(value.centre)} {metric_words(metric)}{spread}"


def ratio_to_first(means: MeanRatio, first: str) -> str:
    """Example with means=MeanRatio(1.26, 1.18, 1.35, (1000.0, 1260.0), (6, 6)), first='old': `is 26% faster than old:
    1,260/s vs. 1,000/s (geometric means; 95% CI 18% to 35%; the ranges of the repeats do not overlap).`"""
    known = "; ".join((*_means(means), "the ranges of the repeats do not overlap"))
    return f"is {change(means.ratio)} {than(means.ratio)} {first}: {_values(means)} ({known})."


def no_difference(why: Note, name: str, means: MeanRatio, first: str) -> str:
    """Example with why=note('no-difference-ranges-overlap'), name='new', means=MeanRatio(0.85, 0.58, 1.26, (1000.0,
    850.0), (3, 3)), first='old': `No difference shown: the ranges of the repeats overlap. In these trials, new was 15%
    slower than old: 850/s vs. 1,000/s (geometric means; 95% CI −42% to +26%).`"""
    measured = "as fast as" if means.ratio == 1 else f"{change(means.ratio)} {than(means.ratio)}"
    known = f" ({known})" if (known := "; ".join(_means(means))) else ""
    words = f"{name} was {measured} {first}: {_values(means)}{known}"
    return f"No difference shown: {text(why)}. In these trials, {words}."


def _values(means: MeanRatio) -> str:
    """Formats the two values whose quotient is the ratio."""
    of_first, own = means.centres
    return f"{quantity(own, '1/s')} vs. {quantity(of_first, '1/s')}"


def _means(means: MeanRatio) -> list[str]:
    """Returns remarks on the two values. If there are several trials, states that the values are geometric means,
    because other values on the page are medians. If there is a confidence interval, adds it."""
    return [
        *(["geometric means"] if max(means.trials) > 1 else []),
        *([interval(means.low, means.high, means.ratio)] if means.known else []),
    ]
