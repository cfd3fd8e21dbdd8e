"""A lab continues while a later stage could still decide something, and no longer."""

from __future__ import annotations

import random
from dataclasses import replace

import labfactory

from ironbench.lab.schedule import stage_ends_lab
from ironbench.model.finding import Conclusion
from ironbench.model.lab import Claim, Lab, Stage
from ironbench.model.record import Record
from ironbench.plan import blocks, fixed_rates
from ironbench.study.claims import ClaimVerdict, judged
from ironbench.study.findings import findings

CELLS = ("log=memory", "log=disk")
RATED = ("log=memory rate=70%", "log=disk rate=70%")
P99 = "response_time_p99_s"


def lab(*claims: Claim) -> Lab:
    """Returns a lab with two interim analyses, after 6 and 12 blocks, and fixed-rate configurations in the first 6
    blocks."""
    plain = labfactory.lab({"log": ("disk", "memory")}, blocks=12, claims=claims)
    stages = (Stage(1, 6), Stage(2, 6))
    found = fixed_rates.extended(replace(plain, method=replace(plain.method, stages=stages)), ["70%"], "measure.rates")
    own, rated = ([setup.cell for setup in setups] for setups in (found.setups, found.rated))
    return replace(found, trials=blocks.trials(own, stages, 1, "random", rated, 6))


def first_stage(plan: Lab, faster: float, p99: float, spread: float = 0.01) -> list[Record]:
    """Returns the records of the first stage. `faster`, `p99`: ratios of memory to disk."""
    dice = random.Random(3)
    begun = replace(plan, trials=tuple(trial for trial in plan.trials if trial.stage == 1))
    rates = {name: 1000.0 * (faster if "memory" in name else 1.0) for name in (*CELLS, *RATED)}
    found = labfactory.trials(begun, rates, spread)
    times = [0.01 * (p99 if "memory" in one.cell.name else 1.0) * dice.gauss(1, spread) for one in found]
    return [replace(one, metrics={**one.metrics, P99: time}) for one, time in zip(found, times, strict=True)]


def verdict(plan: Lab, records: list[Record], stage: int = 1) -> ClaimVerdict:
    return judged(plan, findings(records, plan, stage, others=()))[0].verdict


def test_a_verdict_does_not_end_a_lab_whose_claim_is_open() -> None:
    for least, answer in ((1.1, ClaimVerdict.CONFIRMED), (1.2, ClaimVerdict.UNDECIDED), (1.3, ClaimVerdict.REFUTED)):
        plan = lab(Claim("?", "ratio", "throughput", CELLS, least))
        records = first_stage(plan, 1.2, 1.0)
        assert verdict(plan, records) is answer
        assert stage_ends_lab(plan, records, 1) == (answer is not ClaimVerdict.UNDECIDED)


def test_what_no_later_stage_measures_does_not_keep_a_lab_going() -> None:
    plan = lab(Claim("?", "ratio", P99, RATED, None, 1.0))
    records = first_stage(plan, 3.0, 1.0, spread=0.2)
    assert verdict(plan, records) is ClaimVerdict.UNDECIDED
    assert stage_ends_lab(plan, records, 1)
    assert not stage_ends_lab(plan, first_stage(plan, 1.0, 0.5, spread=0.1), 1), "the lab's own comparison is open"


def test_configurations_of_only_the_first_stage_have_one_analysis() -> None:
    plan = lab(Claim("?", "ratio", P99, RATED, None, 0.9))
    for stage in (1, 2):
        rated = next(one for one in findings(first_stage(plan, 1.2, 1.0, 0.2), plan, stage) if one.cell == RATED[0])
        assert rated.conclusion is Conclusion.CANNOT_TELL
        assert rated.method.values["looks"] == 1
        assert rated.advice is not None and rated.advice.code == "reduce-variation"
    assert verdict(plan, first_stage(plan, 1.2, 0.8)) is ClaimVerdict.CONFIRMED
