"""A round added to a lab is measured like the first and judged separately, and earlier results are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from labfactory import lab, said, studied, trials

from ironbench.cli.verdict import exit_code
from ironbench.lab import schedule
from ironbench.model.finding import Conclusion
from ironbench.model.lab import Claim, Method, Stage
from ironbench.model.record import Record
from ironbench.plan import blocks, fixed_rates
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report import formats
from ironbench.stats.multiplicity import levels
from ironbench.study.claims import ClaimVerdict
from ironbench.study.interim import analysis_after
from ironbench.study.study import Study

LOG = {"log": ("disk", "memory")}
NO_FASTER = Claim("log=memory over log=disk: at most 1.2", "ratio", "throughput", ("log=memory", "log=disk"), None, 1.2)


def two_rounds() -> tuple[Study, list[Record]]:
    """Returns the study of a lab and its records. The first round finds a difference that contradicts a claim; the
    second round is too noisy for a verdict."""
    plan = lab(LOG, blocks=12, claims=[NO_FASTER])
    staged = [replace(trial, stage=1 + (trial.block >= 6)) for trial in plan.trials]
    stages = (Stage(1, 6), Stage(2, 6, added=True))
    plan = replace(plan, trials=tuple(staged), method=replace(plan.method, stages=stages))
    means = {"log=disk": 1000.0, "log=memory": 1500.0}
    quiet, loud = trials(plan, means, 0.02), trials(plan, dict.fromkeys(means, 1000.0), 0.5)
    records = [one if one.stage == 1 else other for one, other in zip(quiet, loud, strict=True)]
    return studied(plan, records), records


def test_what_an_earlier_round_found_is_in_the_answer_and_in_every_format() -> None:
    study, _ = two_rounds()
    assert [finding.conclusion for finding in study.findings] == [Conclusion.CANNOT_TELL]
    (first,) = study.earlier
    assert [finding.conclusion for finding in first.findings] == [Conclusion.FASTER]
    assert [finding.blocks for finding in first.findings] == [6]
    assert (
        "This is round 2; the verdicts of this round use only blocks of this round. Result of round 1: 1 faster, 1 "
        "claim refuted."
    ) in (said(study))
    for name in ("text", "md", "html"):
        assert "Earlier rounds" in formats.get(name)([study]).decode(), name
    (document,) = json.loads(formats.get("json")([study]))["labs"]
    (earlier,) = document["earlier"]
    assert (earlier["round"], earlier["findings"][0]["conclusion"]) == (1, "faster")
    assert earlier["claims"][0]["outcome"] == "refuted"


def test_a_claim_that_an_earlier_round_refuted_stays_refuted() -> None:
    study, records = two_rounds()
    assert [judged.verdict for judged in study.claims] == [ClaimVerdict.UNDECIDED]
    assert [one.claim for one in study.refuted] == [NO_FASTER]
    assert exit_code(study, records) == 4


def test_a_lab_of_one_round_has_no_earlier_ones() -> None:
    plan = lab(LOG, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    assert studied(plan, records).earlier == ()


@pytest.mark.parametrize("order", ["random", "fixed"])
def test_an_added_round_has_the_rated_cells_and_the_order_of_the_first(order: str, tmp_path: Path) -> None:
    plan = fixed_rates.extended(lab(LOG, blocks=6), "auto", "rates")
    assert plan.rated
    method = replace(plan.method, order=order)
    sides = [[setup.cell for setup in setups] for setups in (plan.setups, plan.rated)]
    planned = blocks.trials(sides[0], method.stages, method.seed, order, sides[1], 6)
    directory = LabDirectory(tmp_path)
    directory.begin(FrozenPlan(replace(plan, method=method, trials=planned), "m1", {}, {}))
    directory.declare(method.stages[0], planned)
    schedule.add_round(directory, 8)
    _, second = (one.trials for one in directory.declared())
    by_block = [[trial.cell.name for trial in second if trial.block == block] for block in range(6, 14)]
    assert sum(map(len, by_block)) == len(second)
    assert [len(cells) for cells in by_block] == [len(plan.setups) + len(plan.rated)] * 6 + [len(plan.setups)] * 2
    declared = [setup.cell.name for setup in plan.all_setups]
    assert all(cells == declared[: len(cells)] for cells in by_block) == (order == "fixed")


def test_analyses_that_an_added_round_replaced_keep_their_share_of_the_first_rounds_alpha(tmp_path: Path) -> None:
    plan = lab(LOG, blocks=10)
    method = Method((Stage(1, 6), Stage(2, 4)), 7)
    directory = LabDirectory(tmp_path)
    directory.begin(FrozenPlan(replace(plan, method=method), "m1", {}, {}))
    directory.declare(method.stages[0], plan.trials[:12])
    before = analysis_after(directory.lab().method, 1)
    schedule.add_round(directory, 6)
    after = analysis_after(directory.lab().method, 1)
    assert after == before
    assert after.level(0.05, 2) == levels(0.05, (6, 10))[0] < 0.05
    assert analysis_after(directory.lab().method, 2).level(0.05, 2) == pytest.approx(0.05)
