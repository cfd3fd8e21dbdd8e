"""Requirements of runs and limits in lab files: how their texts are read, and when trials confirm or refute them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from factories import record
from hypothesis import given
from hypothesis import strategies as st

from ironbench.cli.requirements import fields, text, words
from ironbench.errors import InputError
from ironbench.model.lab import RATE, VALUE, Claim
from ironbench.model.note import FLAGGED, note
from ironbench.model.record import Status
from ironbench.plan import requirements
from ironbench.report import wording
from ironbench.study.claims import ClaimVerdict, requirement


@pytest.mark.parametrize(
    ("text", "metric", "low", "high"),
    [
        ("p99 < 10ms", "response_time_p99_s", None, 0.01),
        ("mean <= 1.5s", "response_time_mean_s", None, 1.5),
        ("rate >= 2,000/s", "throughput", 2000.0, None),
        ("failed < 0.1%", "failed_fraction", None, 0.001),
        ("throughput > 100", "throughput", 100.0, None),
        ("data_bytes < 2GB", "data_bytes", None, 2e9),
    ],
)
def test_a_requirement_names_a_metric_and_a_limit_in_base_units(
    text: str, metric: str, low: float | None, high: float | None
) -> None:
    (claim,) = requirements.read([text])
    assert (claim.kind, claim.metric, claim.low, claim.high) == (VALUE, metric, low, high)


def test_a_rate_that_is_equal_to_a_value_is_a_rate_to_be_sustained() -> None:
    (claim,) = requirements.read(["rate = 200/s"])
    assert (claim.kind, claim.metric, claim.low) == (RATE, "throughput", 200.0)


@pytest.mark.parametrize("text", ["p99 < 10", "p98 < 10ms", "p99 = 10ms", "fast", "p99 < soon", "failed < x%", ""])
def test_a_text_that_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        requirements.read([text])


def test_every_wrong_text_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        requirements.read(["p99 < 10", "nonsense"])
    assert "p99 < 10" in str(caught.value) and "nonsense" in str(caught.value)


def _trials(metric: str, *values: float) -> list:
    first = record()
    metrics = [{**first.metrics, "transactions": 10_000.0, metric: value} for value in values]
    return [replace(first, id=f"{first.id}-{number}", block=number, metrics=own) for number, own in enumerate(metrics)]


P99 = Claim("p99 < 10ms", VALUE, "response_time_p99_s", (), None, 0.010)


@pytest.mark.parametrize(
    ("values_ms", "verdict"),
    [
        ((8.0, 8.1, 8.2, 7.9), ClaimVerdict.CONFIRMED),
        ((12.0, 12.1, 12.2, 11.9), ClaimVerdict.REFUTED),
        ((9.0, 10.5, 8.0, 11.5), ClaimVerdict.UNDECIDED),
        ((8.0, 8.1), ClaimVerdict.UNDECIDED),
        ((9.995, 9.995, 9.995), ClaimVerdict.UNDECIDED),
    ],
)
def test_a_limit_is_decided_by_the_whole_interval_over_trials(
    values_ms: tuple[float, ...], verdict: ClaimVerdict
) -> None:
    assert requirement(P99, _trials(P99.metric, *(value / 1e3 for value in values_ms))).verdict is verdict


def test_a_percentile_of_too_few_transactions_decides_nothing() -> None:
    few = [
        replace(one, metrics={**one.metrics, "transactions": 50.0}) for one in _trials(P99.metric, 0.001, 0.001, 0.001)
    ]
    assert requirement(P99, few).verdict is ClaimVerdict.UNDECIDED


def test_no_failure_in_a_few_transactions_does_not_exclude_one_in_a_thousand() -> None:
    claim = Claim("failed < 0.1%", VALUE, "failed_fraction", (), None, 0.001)
    trials = _trials("failed_fraction", 0.0, 0.0, 0.0)
    assert requirement(claim, trials).verdict is ClaimVerdict.CONFIRMED
    few = [replace(one, metrics={**one.metrics, "transactions": 200.0}) for one in trials]
    assert requirement(claim, few).verdict is ClaimVerdict.UNDECIDED


@given(
    st.lists(st.floats(1e-4, 10.0), min_size=3, max_size=8),
    st.floats(1e-4, 10.0),
)
def test_a_limit_and_its_opposite_are_never_both_confirmed(values: list[float], limit: float) -> None:
    trials = _trials("response_time_mean_s", *values)
    below = Claim("below", VALUE, "response_time_mean_s", (), None, limit)
    above = Claim("above", VALUE, "response_time_mean_s", (), limit, None)
    ends = {requirement(below, trials).verdict, requirement(above, trials).verdict}
    assert ends != {ClaimVerdict.CONFIRMED}
    found = requirement(below, trials)
    assert (
        found.low is not None
        and found.high is not None
        and found.low < math.exp(math.fsum(map(math.log, values)) / len(values)) < found.high
    )


TAKEN = note("cpu-taken", programs=0.9, steal=0.04, share=0.94)
SUSTAINED = Claim("rate = 200/s", RATE, "throughput", (), 200.0, None)


@pytest.mark.parametrize(("claim", "verdict"), [(P99, ClaimVerdict.REFUTED), (SUSTAINED, ClaimVerdict.CONFIRMED)])
def test_reasons_include_how_many_trials_are_flagged_and_why(claim: Claim, verdict: ClaimVerdict) -> None:
    trials = _trials(P99.metric, 0.012, 0.0121, 0.0122, 0.0119)
    load = replace(trials[0].cell.load, rate=200.0)
    if claim is SUSTAINED:
        trials = [replace(one, cell=replace(one.cell, load=load)) for one in trials]
    assert requirement(claim, trials).reasons[1:] == ()
    some = [replace(one, status=Status.SUSPECT, warnings=(TAKEN,)) for one in trials[:3]] + trials[3:]
    found = requirement(claim, some)
    assert (found.verdict, found.reasons[1:]) == (verdict, (note(FLAGGED, trials=3, of=4, causes=(TAKEN,)),))
    because = wording.text(found.reasons[1])
    assert because in text([("clients=8", found)])
    (field,) = fields([("clients=8", found)])
    assert field["reasons"][1]["code"] == FLAGGED and field["why"].endswith(because)


def test_the_line_on_the_exit_code_says_once_how_many_trials_are_flagged() -> None:
    trials = [
        replace(one, status=Status.SUSPECT, warnings=(TAKEN,)) for one in _trials(P99.metric, 0.012, 0.0121, 0.0122)
    ]
    found = requirement(P99, trials)
    line = words([("clients=8", found), ("clients=16", found)])
    flags = wording.text(note(FLAGGED, trials=3, of=3, causes=(TAKEN,))).rstrip(".")
    assert line == f"exit code 4: refuted: 'p99 < 10ms' at clients=8; 'p99 < 10ms' at clients=16; {flags}"
