"""Words for the answer of `lead`: comparisons of the hardware and the peaks of two systems, and how to read the
figures."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.note import Note
from ironbench.report.numbers import number
from ironbench.report.wording.registry import text
from ironbench.report.wording.values import CI
from ironbench.study.subjects import failed_percent
from ironbench.words import counted, grouped


def interleaved() -> str:
    """Example: `The trials of both systems were interleaved in blocks. The difference applies to these
    configurations.`"""
    return "The trials of both systems were interleaved in blocks. The difference applies to these configurations."


def not_interleaved() -> str:
    """Example: `The trials of the two systems were not interleaved. The difference applies to the two machines as
    configured, with all differences that are listed below.`"""
    return (
        "The trials of the two systems were not interleaved. The difference applies to the two machines as "
        "configured, with all differences that are listed below."
    )


def no_difference() -> str:
    """Example: `The records show no other difference between the two systems.`"""
    return "The records show no other difference between the two systems."


def geometric_means() -> str:
    """Example: `Values are geometric means of the trials. If both sides have several runs, values are geometric means
    of the runs' means. Ratios have Welch's 95% CI. `ironbench compare` and `ironbench report` show the same ratios, but
    medians as values.`"""
    return (
        "Values are geometric means of the trials. If both sides have several runs, values are geometric means of the "
        f"runs' means. Ratios have Welch's {CI}. `ironbench compare` and `ironbench report` show the same ratios, but "
        "medians as values."
    )


def single_trial() -> str:
    """Example: `A ratio has no CI if one side has only one trial; the difference may then be chance.`"""
    return "A ratio has no CI if one side has only one trial; the difference may then be chance."


def single_run() -> str:
    """Example: `No verdict, because one side has only one run: the CI covers the variation between the trials of that
    run, but not the variation between runs. Run both sides at least three times.`"""
    return (
        "No verdict, because one side has only one run: the CI covers the variation between the trials of that "
        "run, but not the variation between runs. Run both sides at least three times."
    )


def rows_and_peak() -> str:
    """Example: `Each row uses all trials with that number of clients. The row for the peak uses only the confirmation
    trials of the peak.`"""
    return (
        "Each row uses all trials with that number of clients. The row for the peak uses only the confirmation "
        "trials of the peak."
    )


def hardware(
    a: str, b: str, clock: float | None, clock_kind: str, cores: tuple[int | None, int | None] | None, comparable: bool
) -> str:
    """Describes how cores and clock frequency differ, or returns an empty text if they are equal: `Compared with old,
    new has 1.25x the nominal clock frequency, and 16 cores instead of 8.`

    `clock`: B's clock frequency divided by A's, or None if this ratio is unknown or 1. `cores`: the numbers of cores of
    A and B, or None if both are equal. `comparable`: whether both frequencies are of the same kind, such as nominal.
    """
    has = [f"{number(clock)}x the {clock_kind} clock frequency"] if clock else []
    if cores and any(cores):
        before, after = cores
        number_of = counted(after, "core") if after else "an unknown number of cores"
        has.append(f"{number_of} instead of {grouped(before) if before else 'an unknown number'}")
    texts = [f"Compared with {a}, {b} has {', and '.join(has)}."] if has else []
    texts += [] if comparable else ["The clock frequencies of the two processors cannot be compared."]
    return " ".join(texts)


def no_usable_trial(work: str) -> str:
    """Example with work='tpcb-like': `tpcb-like: one side has no usable trial.`"""
    return f"{work}: one side has no usable trial."


def peaks(work: str, parts: Sequence[str], confirmed: bool) -> str:
    """Example: `tpcb-like: throughput at the peak: 1.27x (27% higher); response time at the peak: 0.79x (21% lower,
    which is better).`

    `parts`: texts that the functions `ratio`, `failed`, `both_sustained` and `outcomes` return.
    """
    fresh = (
        ""
        if confirmed
        else " (measured in the same trials from which the peaks were chosen, without confirmation trials)"
    )
    return f"{work}: {'; '.join(parts)}{fresh}."


def ratio(value: float, outcome: Note) -> str:
    """Example with value=1.27, outcome=note('lead', ratio=1.27, higher_is_better=True): `1.27x (27% higher)`.

    If there is no verdict, the text is `inconclusive (0.852x)`.
    """
    if outcome.code in ("lead", "lead-equal"):
        return f"{number(value)}x ({text(outcome)})"
    return f"{text(outcome)} ({number(value)}x)"


def failed(share: float, units: str, side: str) -> str:
    """Example with share=0.002, units='transactions', side='new': `0.2% of the transactions of new failed`."""
    return f"{failed_percent(share)} of the {units} of {side} failed"


def both_sustained() -> str:
    """Example: `both systems sustained the target rate`."""
    return "both systems sustained the target rate"


def outcomes(a: str, of_a: Note, b: str, of_b: Note) -> str:
    """Example with a='old', of_a=note('rate-outcome', kept=3, trials=3, confirmed=False), b='new',
    of_b=note('rate-outcome', kept=0, trials=3, confirmed=False): `the target rate was sustained with old and not
    sustained with new; response times are compared only if both systems sustain the target rate`."""
    sides = f"the target rate was {text(of_a)} with {a} and {text(of_b)} with {b}"
    return f"{sides}; response times are compared only if both systems sustain the target rate"
