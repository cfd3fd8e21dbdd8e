"""Trials that enter a finding, notes on those that do not, and verdicts of claims."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import factories
import pytest
from factories import codes

from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Claim, Factor, Lab, Method, Stage
from ironbench.model.note import FLAGGED, note, text_note
from ironbench.model.record import Record, Status
from ironbench.model.system import Cell, Load, Setup, Trial
from ironbench.study.claims import ClaimVerdict, judged
from ironbench.study.findings import declared, findings

LOAD = Load(clients=8, duration_s=30.0, warmup_s=5.0, seed=1)
SYSTEMS = {"log=disk": factories.DISK, "log=memory": factories.MEMORY, "log=ssd": replace(factories.DISK, label="ssd")}
MOST = {"log=disk": 1000.0, "log=memory": 1200.0, "log=ssd": 1004.0}


def lab(
    cells: Sequence[str] = ("log=disk", "log=memory"),
    claims: Sequence[Claim] = (),
    blocks: Sequence[int] = (6,),
    **method: object,
) -> Lab:
    setups = tuple(Setup(Cell(name, LOAD, {"log": name[4:]}), SYSTEMS[name], factories.OLTP) for name in cells)
    stages = tuple(Stage(number, count) for number, count in enumerate(blocks, 1))
    trials = tuple(Trial(setup.cell, block, "lab") for block in range(sum(blocks)) for setup in setups)
    return Lab(
        "log", "s", "Does the log hold it back?",
        (Factor("log", tuple(name[4:] for name in cells), (("layout.log",),) * len(cells)),), "one-at-a-time", setups,
        cells[0], tuple((name, cells[0]) for name in cells[1:]), Method(stages, 1, **method),  # type: ignore[arg-type]
        tuple(claims), trials, "",
    )  # fmt: skip


def records(plan: Lab, noise: float = 0.01, stage: int = 1) -> list[Record]:
    dice = random.Random(4)
    made = []
    for trial in plan.trials:
        name = trial.cell.name
        one = factories.record(
            SYSTEMS[name], 8, MOST[name] * dice.gauss(1, noise), block=trial.block, purpose="lab", load=LOAD,
            series="s", id=f"s-{name}-b{trial.block}", machine="m1", stage=stage,
        )  # fmt: skip
        made.append(replace(one, cell=trial.cell))
    return made


def changed(found: list[Record], cell: str, block: int, **fields: object) -> list[Record]:
    return [
        replace(one, **fields) if (one.cell.name, one.block) == (cell, block) else one  # type: ignore[arg-type]
        for one in found
    ]


def first(plan: Lab, found: Sequence[Record], stage: int = 1) -> Finding:
    return findings(found, plan, stage)[0]


def test_a_clear_difference_is_found_and_other_metrics_only_reported() -> None:
    plan = lab()
    found = findings(records(plan), plan, 1)
    assert found[0].conclusion is Conclusion.FASTER
    assert found[0].ratio == pytest.approx(1.2, abs=0.02)
    assert [one.metric for one in found if one.decides] == ["throughput"]
    beside = [one for one in found if not one.decides]
    assert "response_time_p99_s" in {one.metric for one in beside}
    assert {one.conclusion for one in beside} == {Conclusion.CANNOT_TELL}


@pytest.mark.parametrize("status", [Status.VOIDED, Status.FAILED, Status.CUT_SHORT])
def test_a_block_that_lacks_a_usable_trial_is_dropped_and_named(status: Status) -> None:
    plan = lab(blocks=(7,))
    found = changed(records(plan), "log=memory", 2, status=status, causes=(text_note("the server died"),))
    one = first(plan, found)
    assert one.blocks == 6
    assert 2 not in [block for block, _ in one.ratios]
    why = note(
        "cell-lost", cell=plan.configuration("log=memory"), status=status.value, causes=(text_note("the server died"),)
    )
    assert one.dropped == (note("block-dropped", block=3, why=(why,)),)


def test_a_block_that_was_interrupted_half_way_is_dropped_and_named() -> None:
    plan = lab(blocks=(7,))
    one = first(plan, records(plan)[:-1])
    assert one.blocks == 6
    assert codes(*one.dropped) == ["block-dropped", "cell-not-measured"]
    assert one.warnings[-1] == note("blocks-missing", complete=6, planned=7, missing=1)
    none = first(plan, records(plan)[:1])
    assert note("blocks-missing", complete=0, planned=7, missing=7) in none.warnings


def test_a_block_that_was_cut_short_is_missing_for_it_is_measured_again() -> None:
    plan = lab(blocks=(3,))
    cut = [replace(one, status=Status.CUT_SHORT) for one in records(plan) if one.block == 0]
    assert note("blocks-missing", complete=0, planned=3, missing=3) in first(plan, cut).warnings


def test_a_second_attempt_stands_in_for_the_first() -> None:
    plan = lab()
    found = records(plan)
    again = replace(found[0], attempt=2, id="again")
    broken = changed(found, found[0].cell.name, 0, status=Status.FAILED)
    assert first(plan, [*broken, again]).blocks == 6


def test_suspect_trials_enter_with_a_warning_and_without_a_verdict_on_cpu() -> None:
    plan = lab(metric="client_cpu_per_transaction_s")
    found = [
        replace(one, metrics={**one.metrics, "client_cpu_per_transaction_s": 0.01 / one.metrics["throughput"]})
        for one in records(plan)
    ]
    assert first(plan, found).conclusion is Conclusion.FASTER
    doubted = changed(
        found, "log=disk", 1, status=Status.SUSPECT, causes=(text_note("The client's thread was 97 % busy."),)
    )
    one = first(plan, doubted)
    assert (one.conclusion, one.blocks) == (Conclusion.CANNOT_TELL, 6)
    assert one.barred == note("suspect-cpu")
    assert [one.values["trials"] for one in one.warnings if one.code == FLAGGED] == [1]
    assert first(lab(), doubted).conclusion is Conclusion.FASTER


def test_a_value_of_zero_has_no_ratio() -> None:
    plan = lab(blocks=(7,))
    found = [
        replace(one, metrics={**one.metrics, "throughput": 0.0}) if one.block == 4 else one for one in records(plan)
    ]
    assert codes(*first(plan, found).dropped) == ["block-dropped", "cell-without-ratio", "cell-without-ratio"]


def test_only_the_stages_looked_at_enter() -> None:
    plan = lab(blocks=(6, 6))
    found = [replace(one, stage=1 if one.block < 6 else 2) for one in records(plan)]
    assert (first(plan, found, 1).blocks, first(plan, found, 2).blocks) == (6, 12)
    assert first(plan, found, 1).confidence > 0.95
    method = first(plan, found, 1).method.values
    assert (method["look"], method["looks"]) == (1, 2)


def test_an_added_stage_is_judged_on_its_own_blocks() -> None:
    plan = lab(blocks=(6, 8))
    method = replace(plan.method, stages=(Stage(1, 6), Stage(2, 8, added=True)))
    found = [replace(one, stage=1 if one.block < 6 else 2) for one in records(plan)]
    one = first(replace(plan, method=method), found, 2)
    assert (one.blocks, one.confidence) == (8, 0.95)
    assert one.method.values["round"] == 2


def test_several_comparisons_are_corrected() -> None:
    plan = lab(("log=disk", "log=memory", "log=ssd"))
    memory, ssd = findings(records(plan), plan, 1, others=())
    assert memory.conclusion is Conclusion.FASTER
    assert memory.confidence == pytest.approx(0.975)
    assert ssd.conclusion is Conclusion.EQUIVALENT
    assert ssd.confidence == pytest.approx(0.95)


def test_what_was_not_meant_to_vary_is_named() -> None:
    plan = lab()
    other = [replace(one, software={"ironbench": "2"}) if one.cell.name == "log=disk" else one for one in records(plan)]
    other = [replace(one, machine="m2") if one.block > 2 else one for one in other]
    warnings = first(plan, other).warnings
    assert note("machine-changed") in warnings
    assert {one.values["fact"] for one in warnings if one.code == "varied-unintended"} == {"software.ironbench"}
    assert first(plan, records(plan)).warnings == ()


def test_response_times_of_a_closed_loop_are_not_at_the_same_load() -> None:
    plan = lab(metric="response_time_p99_s")
    assert "not-same-load" in codes(*first(plan, records(plan)).warnings)
    open_loop = [replace(one, cell=replace(one.cell, load=replace(LOAD, rate=500.0))) for one in records(plan)]
    assert "not-same-load" not in codes(*first(plan, open_loop).warnings)


def test_cells_that_cannot_be_measured_are_not_compared() -> None:
    plan = lab()
    skipped = replace(plan, setups=(plan.setups[0], replace(plan.setups[1], skipped="no memory file system")))
    assert findings(records(plan), skipped, 1) == ()


def claim(kind: str, *cells: str, low: float | None = None, high: float | None = None) -> Claim:
    return Claim("as written", kind, "throughput", cells, low, high)


@pytest.mark.parametrize(
    ("claimed", "verdict"),
    [
        (claim("ratio", "log=memory", "log=disk", low=1.1, high=1.3), ClaimVerdict.CONFIRMED),
        (claim("ratio", "log=memory", "log=disk", low=1.0, high=1.1), ClaimVerdict.REFUTED),
        (claim("ratio", "log=memory", "log=disk", low=1.0, high=1.2), ClaimVerdict.UNDECIDED),
        (claim("ratio", "log=disk", "log=memory", low=0.8, high=0.9), ClaimVerdict.CONFIRMED),
        (claim("ratio", "log=memory", "log=ssd", low=1.1, high=1.3), ClaimVerdict.CONFIRMED),
        (claim("order", "log=memory", "log=disk"), ClaimVerdict.CONFIRMED),
        (claim("order", "log=disk", "log=memory"), ClaimVerdict.REFUTED),
        (claim("order", "log=memory", "log=disk", "log=ssd"), ClaimVerdict.REFUTED),
    ],
)
def test_a_claim_is_confirmed_refuted_or_undecided(claimed: Claim, verdict: ClaimVerdict) -> None:
    plan = lab(("log=disk", "log=memory", "log=ssd"), [claimed])
    one = judged(plan, findings(records(plan), plan, 1))[0]
    assert one.verdict is verdict, one.reasons


def test_a_claim_without_enough_blocks_is_undecided() -> None:
    plan = lab(claims=[claim("ratio", "log=memory", "log=disk", low=1.1), claim("order", "log=memory", "log=disk")])
    found = [one for one in records(plan) if one.block < 5]
    assert {one.verdict for one in judged(plan, findings(found, plan, 1))} == {ClaimVerdict.UNDECIDED}
    assert {one.verdict for one in judged(plan, ())} == {ClaimVerdict.UNDECIDED}


def test_what_claims_are_about_is_declared_once() -> None:
    cells = ("log=disk", "log=memory", "log=ssd")
    plan = lab(cells, [claim("order", "log=disk", "log=memory", "log=ssd")])
    assert declared(plan) == (
        ("log=memory", "log=disk", "throughput"),
        ("log=ssd", "log=disk", "throughput"),
        ("log=memory", "log=ssd", "throughput"),
    )


def test_a_block_whose_trials_ran_on_machines_that_differ_is_dropped_by_name() -> None:
    plan = lab(blocks=(7,))
    found = first(plan, changed(records(plan), "log=memory", 2, machine="m2"))
    assert [block for block, _ in found.ratios] == [0, 1, 3, 4, 5, 6]
    assert found.dropped == (note("block-dropped", block=3, why=(note("block-on-machines"),)),)
