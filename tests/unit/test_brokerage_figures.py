"""Results of a brokerage trial: score, mix, limits and steady state, from a summary only."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from factories import doubles, record

from ironbench import _core, workloads
from ironbench.errors import InputError
from ironbench.lab import declare
from ironbench.lab.run_plan import planned
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.record import SUSPICIOUS
from ironbench.model.system import Choice, Load, System
from ironbench.plan import run_file
from ironbench.report.reproduce import run_command
from ironbench.workloads import response_limits
from ironbench.workloads.brokerage import figures, tables

DECKS = 60
COUNTS = {name: round(share * 1000 * DECKS) for name, share in figures.MIX.items()}


def driven(slow: str = "", seconds: float = 60.0, **changes: int) -> Driven:
    scripts = [
        {"name": name, "transactions": count, "rolled_back": count // 101} for name, count in (COUNTS | changes).items()
    ]
    histograms = {}
    for name in COUNTS:
        histogram = _core.Histogram()
        for _ in range(100):
            histogram.record(5_000_000_000 if name == slow else 10_000_000)
        histograms[f"response_time{{script={name}}}"] = histogram
    buckets = doubles(*itertools.islice(itertools.cycle((10.0, 11.0)), round(seconds * 10)))
    return Driven(
        "",
        True,
        summary={"elapsed_s": seconds, "scripts": scripts},
        timeline={"unscheduled": buckets},
        histograms=histograms,
    )


def warned(of: Driven, *seen: Note) -> list[str]:
    return [warning.code for warning in figures.assessed(of, seen)[1]]


def test_shares_of_the_mix_add_up_to_one_and_have_a_limit_each() -> None:
    assert sum(figures.MIX.values()) == pytest.approx(1.0)
    assert figures.MIX.keys() == figures.LIMITS_S.keys()


def test_the_score_is_the_rate_of_results() -> None:
    values, warnings = figures.assessed(driven(), ())
    assert values[figures.SCORE] == pytest.approx(COUNTS["trade_result"] / 60)
    assert values[figures.TAKEN_BACK] == COUNTS["trade_order"] // 101
    assert warnings == ()


def test_missing_results_are_out_of_mix() -> None:
    count = COUNTS["trade_result"]
    few = round(count - figures.allowed("trade_result", sum(COUNTS.values())))
    assert warned(driven(trade_result=few + 60)) == []
    (warning,) = figures.assessed(driven(trade_result=few - 60), ())[1]
    assert warning.code == "mix-missed" and warning.values["script"] == "trade_result"
    assert warning.values["share"] == pytest.approx(0.095, abs=0.001) and warning.values["specified"] == 0.1


def test_what_may_be_missed_by_chance_is_a_smaller_share_of_a_longer_trial() -> None:
    shares = [figures.allowed("market_feed", count) / count for count in (10**4, 10**6, 10**10)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(0.01 * 0.002, rel=0.2)


def test_slow_transactions_and_no_steady_state_make_a_trial_suspect() -> None:
    assert warned(driven(slow="market_feed")) == ["response-limit-missed"]
    unsteady = Note("not-steady", {"change": -0.2})
    assert warned(driven(), unsteady) == ["no-steady-state"]
    assert {figures.MIX_MISSED, response_limits.CODE, figures.NO_STEADY_STATE} <= SUSPICIOUS


def test_each_maintenance_has_its_limit() -> None:
    histograms = {}
    for seconds in (54, 57):
        histogram = _core.Histogram()
        histogram.record(seconds * 1_000_000_000)
        histograms[seconds] = {"response_time{script=data_maintenance}": histogram}
    trial = driven()
    assert warned(replace(trial, histograms={**trial.histograms, **histograms[54]})) == []
    (warning,) = figures.assessed(replace(trial, histograms={**trial.histograms, **histograms[57]}), ())[1]
    assert (
        warning.code == "response-limit-missed"
        and warning.values["limit_s"] == 55
        and warning.values["longest_s"] >= 57
    )


def test_a_market_that_slows_down_is_no_steady_state_whatever_the_load() -> None:
    # An external rate or curve explains the change, so no other check looks for one (record/judge.py).
    slower = doubles(*(10.0 + place % 3 - 2 * (place > 300) for place in range(600)))
    (warning,) = figures.assessed(replace(driven(), timeline={"unscheduled": slower}), ())[1]
    assert warning.code == "no-steady-state"
    assert warning.values["rate"] == "market" and warning.values["change"] < 0


@pytest.mark.parametrize(("seconds", "expected"), [(9.0, ["no-steady-state"]), (10.0, [])])
def test_a_trial_too_short_to_show_a_steady_state_says_so(seconds: float, expected: list[str]) -> None:
    trial = driven(seconds=seconds)
    assert warned(trial) == expected
    assert all(one.values == {"least_s": 10.0} for one in figures.assessed(trial, ())[1])


def test_a_trial_whose_market_gave_something_up_is_suspect_and_says_how_much() -> None:
    trial = driven()
    trial.summary["figures"] = {"market_given_up": 0.0}
    assert warned(trial) == []
    trial.summary["figures"]["market_given_up"] = 3.0
    (warning,) = figures.assessed(trial, ())[1]
    assert warning.code == "market-gave-up" and warning.code in SUSPICIOUS
    assert warning.values == {"given_up": 3}


def test_one_client_that_plays_all_roles_has_no_score() -> None:
    trial = driven()
    trial.summary["waiting_clients"] = 3
    assert warned(trial) == []
    trial.summary["waiting_clients"] = 0
    (warning,) = figures.assessed(trial, ())[1]
    assert warning.code == "no-score" and warning.code in SUSPICIOUS


def test_a_trial_without_a_window_has_no_figures() -> None:
    assert figures.assessed(driven(seconds=0.0), ()) == ({}, ())
    assert figures.assessed(Driven("", True), ()) == ({}, ())


def refusal(engine: str, clients: int, **options: str) -> InputError:
    workload = workloads.get("brokerage")
    with pytest.raises(InputError) as refused:
        workload.accepts(System(engine, "t"), Load(clients), Choice("brokerage", workload.validated(options)))
    return refused.value


def test_each_client_stands_for_a_customer_of_its_own() -> None:
    refused = refusal("postgres", 1001, customers="1000")
    assert "there are only 1000 customers" in refused.cause
    assert "customers=2000" in refused.hint


def test_too_few_customers_for_the_specified_mix_are_refused_with_the_rule() -> None:
    refused = refusal("postgres", 8, inputs="specified", customers="3000")
    assert refused.subject == "--with customers=3000"
    assert "uses 20 to 40 brokers, but 3000 customers have only 30" in refused.cause
    assert "--with customers=4000" in refused.hint
    refused = refusal("postgres", 8, inputs="specified", customers="4000", days="7")
    assert "goes back at least 32 business hours" in refused.cause and "--with days=8" in refused.hint
    options = {"inputs": "specified", "customers": "4000", "days": "8"}
    workload = workloads.get("brokerage")
    workload.accepts(System("postgres", "t"), Load(8), Choice("brokerage", workload.validated(options)))


def test_an_engine_of_one_isolation_level_has_no_choice() -> None:
    assert "has only one isolation level" in refusal("sqlite", 1, isolation="locks").cause


def test_an_engine_without_functions_runs_no_logic_in_the_server() -> None:
    assert "cannot run ironbench's stored functions" in refusal("sqlite", 1, logic="server").cause


def test_the_market_has_connections_of_its_own() -> None:
    workload = workloads.get("brokerage")
    assert [workload.connections(clients, {}) for clients in (1, 2, 8)] == [4, 5, 17]
    assert workloads.get("igen-oltp").connections(8, {}) == 8


@pytest.mark.parametrize(("asked", "tries"), [(None, 1000), (1, 1), (5, 5), (0, 0)])
def test_a_trial_has_the_tries_that_were_asked_for_and_a_thousand_where_nobody_asks(
    asked: int | None, tries: int, tmp_path: Path
) -> None:
    plan, _ = planned(run_file.read("brokerage", engine="sqlite", max_tries=asked, seed=1, data=str(tmp_path / "d")))
    assert {trial.cell.load.max_tries for trial in plan.trials} == {tries}
    of_other = planned(run_file.read("igen-oltp", engine="sqlite", max_tries=asked, seed=1, data=str(tmp_path / "d")))[
        0
    ]
    assert {trial.cell.load.max_tries for trial in of_other.trials} == {1 if asked is None else asked}
    lab = tmp_path / "tries.toml"
    said = "" if asked is None else f"max_tries = {asked}\n"
    head = 'question = "?"\nsystem.engine = "sqlite"\nworkload.name = "brokerage"\n'
    lab.write_text(f"{head}[load]\n{said}[vary]\nclients = [1, 2]\n")
    assert {setup.cell.load.max_tries for setup in declare.lab(lab)[0].setups} == {tries}


def test_the_command_that_repeats_a_trial_names_its_tries_only_where_they_are_not_usual() -> None:
    def tries(workload: str, count: int) -> bool:
        choice = Choice(workload, workloads.get(workload).validated({}))
        load = Load(duration_s=30.0, max_tries=count, on_error="stop", seed=1)
        return f"--max-tries {count}" in run_command([record(choice=choice, load=load)])

    assert not tries("brokerage", 1000) and tries("brokerage", 1)
    assert not tries("igen-oltp", 1) and tries("igen-oltp", 1000)


def test_the_derived_sentence_and_the_score_are_the_workloads() -> None:
    workload = workloads.get("brokerage")
    assert "not comparable with published TPC-E results" in workload.derived
    assert workload.scores[0] == figures.SCORE
    assert {option.name for option in tables.OPTIONS} < {option.name for option in workload.options}
