"""A gate has one outcome, PASS, FAIL or INCONCLUSIVE, in every document, on the terminal and in its exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from labfactory import lab, studied, trials
from test_gate import CELLS, simulated

from ironbench.cli.gate import CLOSED, write_documents
from ironbench.cli.lab import _gated
from ironbench.cli.verdict import REFUTED
from ironbench.lab.gate_rounds import Policy
from ironbench.model.lab import VALUE, Claim, Lab, Stage
from ironbench.model.note import text_note
from ironbench.model.record import Record, Status
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report.gate_page import written
from ironbench.serve import gate as served
from ironbench.study.gate import POLICIES, Gate, GateOutcome
from ironbench.study.gate import gate as judged
from ironbench.study.study import Study

PASS, FAIL, INCONCLUSIVE = GateOutcome.PASS, GateOutcome.FAIL, GateOutcome.INCONCLUSIVE
REFUTED_LIMIT = Claim("at least 2000/s", VALUE, "throughput", (CELLS[1],), 2000.0, None)
OPEN_LIMIT = Claim("at least 1000/s", VALUE, "throughput", (CELLS[1],), 1000.0, None)
REFUTED_RATIO = Claim("twice as fast", "ratio", "throughput", CELLS[::-1], 2.0, 3.0)
OPEN_RATIO = Claim("no slower", "ratio", "throughput", CELLS[::-1], 1.0, 3.0)


def study_of(ratio: float = 1.0, spread: float = 0.01, blocks: int = 12, claims: Sequence[Claim] = ()) -> Study:
    plan = lab({"version": ("16", "18")}, blocks=blocks, claims=claims)
    return studied(plan, trials(plan, {CELLS[0]: 1000.0, CELLS[1]: 1000.0 * ratio}, spread))


def with_lost_blocks() -> Study:
    plan = lab({"version": ("16", "18")}, blocks=12)
    records = [
        replace(one, status=Status.FAILED, metrics={}, causes=(text_note("out of memory"),))
        if one.block in (2, 5) and one.cell.name == CELLS[1]
        else one
        for one in trials(plan, dict.fromkeys(CELLS, 1000.0), 0.005)
    ]
    return studied(plan, [*records, *(replace(one, id=f"{one.id}-2", attempt=2) for one in records if not one.metrics)])


def unfinished() -> Study:
    plan = lab({"version": ("16", "18")}, blocks=12)
    return studied(plan, trials(plan, dict.fromkeys(CELLS, 1000.0), 0.01)[:20])


def two_rounds() -> tuple[Lab, list[Record]]:
    """Returns a lab whose first round refuted a claim that its second round confirms."""
    claim = Claim("at least 900/s", VALUE, "throughput", (CELLS[1],), 900.0, None)
    plan = lab({"version": ("16", "18")}, blocks=24, claims=[claim])
    staged = tuple(replace(trial, stage=1 + trial.block // 12) for trial in plan.trials)
    stages = (Stage(1, 12), Stage(2, 12, added=True))
    plan = replace(plan, trials=staged, method=replace(plan.method, stages=stages))
    records = [
        replace(one, metrics={**one.metrics, "throughput": one.metrics["throughput"] * (0.5 if one.stage == 1 else 1)})
        for one in trials(plan, dict.fromkeys(CELLS, 1000.0), 0.01)
    ]
    return plan, records


CASES = {
    "equal": (study_of, PASS),
    "faster": (lambda: study_of(2.0), PASS),
    "slower": (lambda: study_of(0.8), FAIL),
    "wide interval": (lambda: study_of(spread=0.2), INCONCLUSIVE),
    "few blocks": (lambda: study_of(0.5, blocks=4), INCONCLUSIVE),
    "missing trials": (unfinished, INCONCLUSIVE),
    "lost blocks": (with_lost_blocks, INCONCLUSIVE),
    "refuted limit": (lambda: study_of(claims=[REFUTED_LIMIT]), FAIL),
    "open limit": (lambda: study_of(claims=[OPEN_LIMIT]), INCONCLUSIVE),
    "refuted ratio": (lambda: study_of(claims=[REFUTED_RATIO]), FAIL),
    "open ratio": (lambda: study_of(claims=[OPEN_RATIO]), PASS),
    "wide interval, refuted limit": (lambda: study_of(spread=0.2, claims=[REFUTED_LIMIT]), FAIL),
    "slower, open limit": (lambda: study_of(0.8, claims=[OPEN_LIMIT]), FAIL),
    "limit refuted in an earlier round": (lambda: studied(*two_rounds()), FAIL),
}
LOST = "lost blocks"


def outcomes(found: Gate, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str]]:
    """Returns the exit code, and the outcome by each output of the gate."""
    said: dict[str, str] = {}
    capsys.readouterr()
    code = write_documents(found, (), False)
    text, messages = capsys.readouterr()
    said["text"] = re.findall(r"^(PASS|FAIL|INCONCLUSIVE): ", text, re.MULTILINE)[0]
    if code:
        said["console"] = re.findall(rf"^exit code {code}: gate (\w+)", messages, re.MULTILINE)[0]
    said["md"] = re.findall(r"^\*\*(PASS|FAIL|INCONCLUSIVE): ", written(found, "md").decode(), re.MULTILINE)[0]
    document = json.loads(written(found, "json"))
    said["json"] = document["result"]
    assert document["closed"] is bool(code)
    suite = ElementTree.fromstring(written(found, "xml"))
    failures = [one.get("type") for one in suite.iter("failure")]
    skipped = [one.get("message", "").partition(":")[0] for one in suite.iter("skipped")]
    assert (suite.get("failures"), suite.get("skipped")) == (str(len(failures)), str(len(skipped)))
    assert bool(failures) is bool(code)
    ends = {*failures, *skipped}
    said["junit"] = next((one for one in (FAIL.value, INCONCLUSIVE.value) if one in ends), PASS.value)
    return code, said


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", CASES)
def test_every_output_of_a_gate_has_its_outcome(case: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    made, expected = CASES[case]
    study = made()
    found = judged(study, [*study.findings, *study.claimed], 0.05, policy)
    code, said = outcomes(found, capsys)
    assert said == dict.fromkeys(said, expected.value)
    fails = expected is FAIL or (expected is INCONCLUSIVE and (policy == "fail" or case == LOST))
    assert code == (CLOSED if fails else 0)
    sentence = written(found, "text").decode()
    if expected is INCONCLUSIVE and case != LOST:
        assert f"with `--undecided {policy}`, the gate {policy}" in " ".join(sentence.split())
    if case == LOST:
        assert "so the gate fails" in " ".join(sentence.split()) and "--undecided" not in sentence


@pytest.mark.parametrize("case", CASES)
def test_the_browser_shows_the_same_outcome(case: str) -> None:
    made, expected = CASES[case]
    summary = served.summary(made())
    assert summary is not None and summary["word"] == expected.value
    assert summary["sentence"].startswith(f"{expected}: ")


def test_outcomes_agree_on_simulated_labs(capsys: pytest.CaptureFixture[str]) -> None:
    seen = set()
    for ratio in (1.0, 1 / 1.05, 1 / 1.1):
        for seed in range(12):
            for policy in POLICIES:
                found = replace(simulated(ratio, seed), undecided=policy)
                code, said = outcomes(found, capsys)
                assert set(said.values()) == {found.outcome.value}
                assert bool(code) is (found.outcome is FAIL or (found.outcome is INCONCLUSIVE and policy == "fail"))
                seen.add(found.outcome)
    assert seen == set(GateOutcome)


@pytest.mark.parametrize("case", ["refuted limit", "limit refuted in an earlier round"])
def test_a_gated_lab_that_refutes_a_claim_ends_as_the_gate_does(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if case == "refuted limit":
        plan = lab({"version": ("16", "18")}, blocks=12, claims=[REFUTED_LIMIT])
        records = trials(plan, dict.fromkeys(CELLS, 1000.0), 0.01)
    else:
        plan, records = two_rounds()
    directory = LabDirectory(tmp_path / "lab")
    directory.begin(FrozenPlan(plan, "m1", {}, {}, gate=True))
    for stage in plan.method.stages:
        directory.declare(stage, [trial for trial in plan.trials if trial.stage == stage.number])
    for one in records:
        directory.store.keep(one)
    assert _gated(directory, directory.records(), REFUTED, True, Policy("pass")) == CLOSED
    assert json.loads(capsys.readouterr().out)["result"] == "FAIL"
