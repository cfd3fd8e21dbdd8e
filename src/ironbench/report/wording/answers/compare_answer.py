"""Words for the answers of `compare` and `explain`: the ratio of B to A, why there is no verdict, and how to read the
figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

from ironbench import units
from ironbench.model.note import Note
from ironbench.report.numbers import quantity, signed, unit_of
from ironbench.report.wording.answers.ratios import change, duration, interval, metric_words, than
from ironbench.report.wording.comparison import loop
from ironbench.report.wording.registry import text
from ironbench.study.compare import MeanRatio
from ironbench.study.differences import NOT_SET
from ironbench.words import counted, upper_first


def not_interleaved() -> str:
    """Example: `No verdict: the trials of A and B were not interleaved in blocks. The report shows only the difference
    between A and B, and the range of the repeats of each side.`"""
    return (
        "No verdict: the trials of A and B were not interleaved in blocks. The report shows only the difference "
        "between A and B, and the range of the repeats of each side."
    )


def undeclared() -> str:
    """Example: `No verdict: the lab file does not declare this comparison, and a comparison that is chosen after the
    numbers are known has a higher false-alarm rate. The ratios are computed within each block.`"""
    return (
        "No verdict: the lab file does not declare this comparison, and a comparison that is chosen after the numbers "
        "are known has a higher false-alarm rate. The ratios are computed within each block."
    )


def no_throughput() -> str:
    """Example: `Nothing to compare: one of the two sides has no throughput.`"""
    return "Nothing to compare: one of the two sides has no throughput."


def nothing_in_common() -> str:
    """Example: `Nothing to compare: the two sides have no metric in common.`"""
    return "Nothing to compare: the two sides have no metric in common."


def throughput_ratio(a: str, b: str, means: MeanRatio, difference: Note, clients: int | None) -> str:
    """Example with a='A', b='B', means=MeanRatio(1.26, 1.18, 1.35, (1000.0, 1260.0), (6, 6)),
    difference=note('difference-shown'), clients=8: `B is 26% faster than A with 8 clients: 1,260/s vs. 1,000/s (95% CI
    18% to 35%; the ranges of the repeats do not overlap).`

    `difference`: the note that states whether the trials show a difference. If they show none, the sentence starts with
    the reason. `clients`: the number of clients, if both sides were measured with this number only, or None if the
    peaks are compared.
    """
    where = "at the peak" if clients is None else f"with {counted(clients, 'client')}"
    words = (
        f"{b} is {change(means.ratio)} {than(means.ratio)} {a}" if means.ratio != 1 else f"{a} and {b} do not differ"
    )
    return _with_values(f"{words} {where}", "throughput", means, difference)


def metric_ratio(metric: str, a: str, b: str, means: MeanRatio, difference: Note) -> str:
    """Example with metric='throughput', a='A', b='B', means=MeanRatio(1.26, 1.18, 1.35, (1000.0, 1260.0), (6, 6)),
    difference=note('difference-shown'): `Throughput is 26% higher with B than with A: 1,260/s vs. 1,000/s (95% CI 18%
    to 35%; the ranges of the repeats do not overlap).`"""
    words = differs(metric_words(metric), a, b, means.ratio)
    return _with_values(upper_first(words), metric, means, difference)


def _with_values(words: str, metric: str, means: MeanRatio, difference: Note) -> str:
    """Adds the values and the confidence interval to a sentence. If the trials show no difference, the sentence starts
    with this statement and its reason."""
    known = interval(means.low, means.high, means.ratio)
    if difference.code == "difference-shown":
        return f"{words}: {_values(metric, means)} ({known}; {text(difference)})."
    return f"No difference shown: {text(difference)}. In these trials, {words}: {_values(metric, means)} ({known})."


def differs(what: str, a: str, b: str, ratio: float) -> str:
    """Example with what='throughput', a='A', b='B', ratio=1.26: `throughput is 26% higher with B than with A`."""
    if ratio == 1:
        return f"{what} does not differ between {a} and {b}"
    return f"{what} is {change(ratio, '')} with {b} {than(ratio)} with {a}"


def explained_ratio(metric: str, a: str, b: str, ratio: float, interval: str, not_shown: Note | None = None) -> str:
    """Example with metric='throughput', a='WAL on disk', b='WAL in memory', ratio=1.26, interval=' (95% CI 18% to
    35%)': `Throughput is 26% higher with WAL in memory than with WAL on disk (95% CI 18% to 35%).`

    `not_shown`: why the trials show no difference, or None if they show one. The sentence starts with this reason.
    """
    words = differs(metric_words(metric), a, b, ratio)
    if not_shown is not None:
        return f"No difference shown: {text(not_shown)}. In these trials, {words}{interval}."
    return f"{upper_first(words)}{interval}."


def observed_contradict(metric: str, a: str, b: str, ratio: float) -> str:
    """Example with metric='throughput', a='A', b='B', ratio=2.1: `In the observed trials, throughput is 2.10x as high
    with B as with A, but the blocks show a different ratio. Commands, wait classes and I/O were measured in the
    observed trials, so they do not explain the difference that the blocks show.`"""
    words = differs(metric_words(metric), a, b, ratio)
    return (
        f"In the observed trials, {words}, but the blocks show a different ratio. Commands, wait classes and I/O were "
        "measured in the observed trials, so they do not explain the difference that the blocks show."
    )


def only_listed(no_verdict: bool) -> str:
    """Example with no_verdict=False: `The trials show no difference, so the following points only list what differed in
    these trials.`

    `no_verdict`: whether a verdict is impossible, for example because there are too few trials.
    """
    if no_verdict:
        return "There is no verdict, so the following points only list what differed between the trials."
    return "The trials show no difference, so the following points only list what differed in these trials."


def _values(metric: str, means: MeanRatio) -> str:
    """Formats the two geometric means whose quotient is the ratio: `1,260/s vs. 1,000/s`."""
    of_a, of_b = means.centres
    return f"{quantity(of_b, unit_of(metric))} vs. {quantity(of_a, unit_of(metric))}"


def outcomes(sides: Sequence[tuple[str, float, Note]]) -> str:
    """States for each side whether it sustained its target rate: `A: 500/s sustained; B: 500/s not sustained`."""
    return "; ".join(f"{name}: {units.rate(rate)} {text(outcome)}" for name, rate, outcome in sides)


def different_loads(a: float | None, b: float | None, seen: str) -> str:
    """Example with a=None, b=500.0, seen='B: 500/s sustained': `A: closed loop; B: open loop at 500/s. With different
    loads, throughput and response times cannot be compared (B: 500/s sustained).`

    `a` and `b`: the target rates, or None for a closed loop. `seen`: the text that `outcomes` returns.
    """
    loops = f"A: {loop(a)}; B: {loop(b)}"
    return f"{loops}. With different loads, throughput and response times cannot be compared ({seen})."


def same_rate(rate: float, seen: str) -> str:
    """Example with rate=500.0, seen='A: 500/s sustained; B: 500/s sustained': `Both sides ran at a target rate of
    500/s. Result: A: 500/s sustained; B: 500/s sustained.`

    `seen`: the text that `outcomes` returns.
    """
    return f"Both sides ran at a target rate of {units.rate(rate)}. Result: {seen}."


def not_both_sustained() -> str:
    """Example: `Response times are compared only if both sides sustain the target rate.`"""
    return "Response times are compared only if both sides sustain the target rate."


def p99_at_rate(means: MeanRatio, difference: Note) -> str:
    """Example with means=MeanRatio(0.88, 0.82, 0.95, (0.0125, 0.011), (6, 6)), difference=note('difference-shown'): `At
    that target rate, the p99 response time of B is 12% lower than that of A: 11.0 ms vs. 12.5 ms (95% CI 5% to 18%; the
    ranges of the repeats do not overlap).`"""
    p99 = f"the p99 response time of B is {change(means.ratio, '')} {than(means.ratio)} that of A"
    if means.ratio == 1:
        p99 = "the p99 response times of A and B do not differ"
    if difference.code == "difference-shown":
        p99 = f"At that target rate, {p99}"
    return _with_values(p99, "response_time_p99_s", means, difference)


def geometric_means() -> str:
    """Example: `B / A is the value of B divided by the value of A. Both values are geometric means of the trials. If
    both sides have several runs, they are geometric means of the runs' means, as in `ironbench lead`. In rows without a
    ratio, the values are medians.`"""
    return (
        "B / A is the value of B divided by the value of A. Both values are geometric means of the trials. If both "
        "sides have several runs, they are geometric means of the runs' means, as in `ironbench lead`. In rows without "
        "a ratio, the values are medians."
    )


def zero_on_both_sides(metrics: Sequence[str]) -> str:
    """Example with metrics=('failed', 'deadlocks'): `These metrics are 0 on both sides: failed, deadlocks.`"""
    return f"These metrics are 0 on both sides: {', '.join(metrics)}."


def no_ratio(metrics: Sequence[str], why: Note) -> str:
    """Example with metrics=['throughput'], why=note('rate-requested'): `No ratio is computed for throughput: the target
    rate is an input, not a result.`"""
    return f"No ratio is computed for {', '.join(metrics)}: {text(why)}."


def service_equals_response() -> str:
    """Example: `Both sides ran in a closed loop, so service time equals response time.`"""
    return "Both sides ran in a closed loop, so service time equals response time."


def no_common_clients() -> str:
    """Example: `The two sides were measured with different numbers of clients.`"""
    return "The two sides were measured with different numbers of clients."


def most_changed_script(script: str, delta_s: float) -> str:
    """Example with script='new-order', delta_s=0.0012: `The script new-order contributes most to the change of the mean
    response time: +1.20 ms.`"""
    return f"The script {script} contributes most to the change of the mean response time: {signed(delta_s)}."


def takes(what: str, ratio: float, observed_once: bool) -> str:
    """Example with what='select * from orders', ratio=1.3, observed_once=True: `select * from orders takes 30% longer
    (one observed trial of each side, no CI).`"""
    return f"{what} takes {duration(ratio)}{' (one observed trial of each side, no CI)' if observed_once else ''}."


def from_one_trial() -> str:
    """Example: `Source: one observed trial of each configuration.`"""
    return "Source: one observed trial of each configuration."


def same_configuration() -> str:
    """Example: `settings, layout, versions and machine do not differ.`"""
    return "settings, layout, versions and machine do not differ."


def changed_facts(facts: Sequence[tuple[str, str, str]], more: int) -> str:
    """Example with facts=[('work_mem', '4 MB', '64 MB')], more=2: `work_mem changes from 4 MB to 64 MB; 2 other facts
    also differ.`

    `facts`: for each fact, its name, its value before, and its value after.
    """
    words = "; ".join(starmap(_changed, facts))
    return (
        words + (f"; {counted(more, 'other fact')} also {'differs' if more == 1 else 'differ'}" if more else "") + "."
    )


def _changed(name: str, before: str, after: str) -> str:
    if before == NOT_SET:
        return f"{name} is set to {after}"
    return (
        f"{name} is no longer set (before: {before})"
        if after == NOT_SET
        else f"{name} changes from {before} to {after}"
    )
