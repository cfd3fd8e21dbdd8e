"""`ironbench gate`: what makes it pass or fail, and its output for other programs."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from factories import codes
from labfactory import lab, studied, trials

from ironbench.cli import verdict
from ironbench.cli.gate import CLOSED, gate, require_comparisons, whole
from ironbench.cli.lab import _gated, _policy, measured
from ironbench.errors import InputError
from ironbench.lab import declare, schedule
from ironbench.lab.gate_rounds import Policy, adds_blocks
from ironbench.model.finding import Conclusion
from ironbench.model.inside import ServerStatement, StatementPlan
from ironbench.model.lab import VALUE, Claim, Method, Stage
from ironbench.model.note import FLAGGED, note, text_note
from ironbench.model.record import Status
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report import wording
from ironbench.study.findings import compare_cells
from ironbench.study.gate import Gate, GateOutcome, GateVerdict
from ironbench.study.gate import gate as judged
from ironbench.study.inside import ServerUse, TrialTotals

GUIDE = Path(__file__).parents[2] / "docs" / "how" / "gate.md"
CELLS = ("version=16", "version=18")
Made = Callable[..., str]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A lab's directory whose new version has `ratio` times the throughput of the old one."""

    def directory(
        ratio: float, blocks: int = 12, spread: float = 0.01, kept: int | None = None, **fields: object
    ) -> str:
        plan = lab({"version": ("16", "18")}, blocks=blocks, question="Is the new version slower?")
        found = LabDirectory(tmp_path / f"lab-{ratio}-{blocks}-{kept}")
        found.begin(FrozenPlan(plan, "m1", {}, {}))
        found.declare(plan.method.stages[0], plan.trials)
        for one in trials(plan, {CELLS[0]: 1000.0, CELLS[1]: 1000.0 * ratio}, spread, **fields)[:kept]:
            found.store.keep(one)
        return str(found.path)

    return directory


def test_a_gate_is_open_where_the_blocks_exclude_a_slowdown_beyond_the_margin(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(*CELLS, results=made(1.0)) == 0
    said = capsys.readouterr().out
    assert "PASS: no comparison is slower by more than the margin of 5%" in said
    assert "% slower; the allowed slowdown is 4.8%" in said and "variation of this machine is unknown" in said


def test_a_slower_change_closes_it_with_exit_code_4(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(*CELLS, results=made(0.9)) == CLOSED == 4
    shown = capsys.readouterr()
    assert "FAIL: slower by more than the margin of 5%" in shown.out
    assert re.search(r"\b(9|9\.\d|10|11)% slower; the allowed slowdown is 4\.8%", shown.out)
    assert "exit code 4: gate FAIL" in shown.err


@pytest.mark.parametrize("kind", ["text", "md", "xml"])
def test_a_slowdown_has_one_size_everywhere(kind: str) -> None:
    """The size is the change of the metric itself, as in the findings of the same lab: 20% less throughput, not 25%
    more time."""
    from ironbench.report.gate_page import written

    plan = lab({"version": ("16", "18")}, blocks=12)
    study = studied(plan, trials(plan, {CELLS[0]: 1000.0, CELLS[1]: 800.0}, 1e-6))
    text = written(judged(study, study.findings, 0.05, "fail"), kind).decode()
    assert set(re.findall(r"(\d+)% slower", text)) == {"20"}
    assert "the allowed slowdown is 4.8%" in text


def test_a_slowdown_of_a_time_is_the_change_of_that_time() -> None:
    assert wording.text(note("slower", slowdown=0.25, margin=0.05)) == "25% slower; the allowed slowdown is 5%"
    assert wording.text(note("slower", slowdown=0.25, margin=0.05, higher_is_better=True)).startswith("20% slower")
    assert wording.text(note("perhaps-slower", least=-0.1, most=math.inf, margin=2.0, higher_is_better=True)) == (
        "between 11% faster and 100% slower; the allowed slowdown is 67% (the same work may take 200% longer)"
    )


@pytest.mark.parametrize(
    ("least", "most", "higher_is_better", "words"),
    [
        (-1 / 12, 1 / 3, True, "between 9.1% faster and 25% slower; the allowed slowdown is 4.8%"),
        (-0.09, 0.24, False, "between 9% faster and 24% slower; the allowed slowdown is 5%"),
        (-0.75, 0.1, True, "between 4.00x as fast and 9.1% slower;"),
        (0.0, 0.1, False, "between 0% faster and 10% slower;"),
        (0.02, 0.1, False, "2% to 10% slower;"),
    ],
)
def test_an_inconclusive_slowdown_has_both_ends(least: float, most: float, higher_is_better: bool, words: str) -> None:
    one = note("perhaps-slower", least=least, most=most, margin=0.05, higher_is_better=higher_is_better)
    assert wording.text(one).startswith(words)


def test_the_answer_of_an_inconclusive_gate_starts_with_both_ends_of_the_interval() -> None:
    from ironbench.report.gate_page import sentence

    plan = lab({"version": ("16", "18")}, blocks=12)
    study = studied(plan, trials(plan, dict.fromkeys(CELLS, 1000.0), 0.2))
    found = judged(study, study.findings, 0.05, "fail")
    (one,) = found.comparisons
    finding = one.finding
    assert finding.low < 1 < finding.high
    slower, faster = 100 * (1 - finding.low), 100 * (finding.high - 1)
    assert sentence(found).startswith(
        f"INCONCLUSIVE: between {faster:.2g}% faster and {slower:.2g}% slower (95% CI, 12 paired repeats), so"
    )


def test_a_slowdown_whose_interval_holds_the_margin_is_not_called_slower_than_it(made: Made) -> None:
    """A true slowdown of 5.2% at a margin of 5% is significant, but not significantly above the margin."""
    directory = LabDirectory(Path(made(1 / 1.052, spread=0.015)))
    found = whole(directory, "fail")
    (one,) = found.comparisons
    assert one.finding.conclusion is Conclusion.SLOWER
    assert 0 < one.slowdown.least < 0.05 < one.slowdown.likely
    assert found.verdict is GateVerdict.CANNOT_TELL


@pytest.mark.parametrize(("ratio", "spread"), [(0.9, 0.3), (0.93, 0.03), (1.0, 0.01), (0.8, 0.01)])
def test_the_range_of_a_slowdown_is_the_interval_that_stands_beside_it(ratio: float, spread: float) -> None:
    plan = lab({"version": ("16", "18")}, blocks=12)
    study = studied(plan, trials(plan, {CELLS[0]: 1000.0, CELLS[1]: 1000.0 * ratio}, spread))
    (one,) = judged(study, study.findings, 0.05, "fail").comparisons
    finding, found = one.finding, one.slowdown
    assert (found.least, found.most) == pytest.approx((1 / finding.high - 1, 1 / finding.low - 1))
    assert found.least < found.likely < found.bound < found.most
    assert (one.verdict is GateVerdict.NOT_SLOWER) == (found.bound <= 0.05)


def rounds(*ratios: float, spread: float = 0.01) -> Gate:
    """Returns a gate on a lab of several rounds of 6 blocks, each with its own true ratio."""
    plan = lab({"version": ("16", "18")}, blocks=6 * len(ratios))
    staged = tuple(replace(trial, stage=1 + trial.block // 6) for trial in plan.trials)
    stages = tuple(Stage(number + 1, 6, added=number > 0) for number in range(len(ratios)))
    plan = replace(plan, trials=staged, method=replace(plan.method, stages=stages))
    records = [
        replace(one, metrics={**one.metrics, "throughput": one.metrics["throughput"] * ratios[one.stage - 1]})
        if one.cell.name == CELLS[1]
        else one
        for one in trials(plan, dict.fromkeys(CELLS, 1000.0), spread)
    ]
    study = studied(plan, records)
    return judged(study, study.findings, 0.05, "pass")


def test_an_earlier_round_that_was_slower_is_not_taken_back() -> None:
    assert rounds(1.0, 1.0).verdict is GateVerdict.NOT_SLOWER
    found = rounds(0.85, 1.0)
    assert (found.verdict, found.closed) == (GateVerdict.SLOWER, True)
    assert found.comparisons[0].slowdown.least > 0.05
    assert rounds(0.85, 1.0, 1.0).verdict is GateVerdict.SLOWER


def test_an_earlier_round_counts_whichever_way_round_the_cells_are_named() -> None:
    found = rounds(0.85, 1.0)
    (finding,) = found.study.findings
    turned = replace(finding, cell=CELLS[0], baseline=CELLS[1])
    assert not judged(found.study, [turned], 0.05, "fail").closed


def test_each_further_round_has_less_of_the_level() -> None:
    first, second, third = (rounds(*[1.0] * count).comparisons[0].finding for count in (1, 2, 3))
    assert [1 - one.confidence for one in (first, second, third)] == pytest.approx([0.05, 0.05 / 4, 0.05 / 16])


@pytest.mark.parametrize("status", [Status.VOIDED, Status.FAILED])
def test_blocks_that_only_the_new_version_lost_never_pass(status: Status) -> None:
    plan = lab({"version": ("16", "18")}, blocks=12)
    records = trials(plan, dict.fromkeys(CELLS, 1000.0), 0.005)

    def died(*cells: str, blocks: Collection[int] = (2, 5, 7, 9)) -> Gate:
        lost = [
            replace(one, status=status, metrics={}, causes=(text_note("out of memory"),))
            if one.block in blocks and one.cell.name in cells
            else one
            for one in records
        ]
        again = [replace(one, id=f"{one.id}-2", attempt=2) for one in lost if one.status is status]
        study = studied(plan, [*lost, *again])
        return judged(study, study.findings, 0.05, "pass")

    assert not died().closed
    found = died(CELLS[1])
    assert found.comparisons[0].finding.lost == (4, 0)
    assert (found.verdict, found.closed) == (GateVerdict.CANNOT_TELL, True)
    assert not died(*CELLS).closed  # lost alike: the remaining blocks are a fair sample
    assert died(*CELLS).comparisons[0].finding.lost == (4, 4)
    every = died(CELLS[1], blocks=range(12))
    assert every.comparisons[0].finding.lost == (12, 0)
    assert (every.verdict, every.closed) == (GateVerdict.CANNOT_TELL, True)


def test_a_faster_change_passes_however_much_it_scatters(made: Made) -> None:
    assert gate(*CELLS, results=made(2.0, spread=0.2)) == 0


def test_the_first_name_is_what_was_there_before(made: Made) -> None:
    directory = made(0.8)
    assert gate(CELLS[0], CELLS[1], results=directory) == CLOSED
    assert gate(CELLS[1], CELLS[0], results=directory) == 0


def test_a_slowdown_within_the_margin_passes(made: Made) -> None:
    directory = made(0.9)
    assert gate(*CELLS, results=directory, margin=0.2) == 0
    assert gate(*CELLS, results=directory, margin=0.02) == CLOSED


@pytest.mark.parametrize(("policy", "code"), [("fail", CLOSED), ("pass", 0)])
def test_blocks_that_cannot_tell_follow_the_policy(
    policy: str, code: int, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(*CELLS, results=made(1.0, spread=0.2), undecided=policy) == code
    said = " ".join(capsys.readouterr().out.split())
    assert "INCONCLUSIVE: " in said and f"with `--undecided {policy}`, the gate" in said and "To decide:" in said


def test_fewer_blocks_than_a_verdict_needs_cannot_tell(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(*CELLS, results=made(0.5, blocks=4)) == CLOSED
    assert "a verdict needs at least 6 complete blocks, but there are only 4" in capsys.readouterr().out


def test_a_lab_that_is_not_over_cannot_tell(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(*CELLS, results=made(0.5, kept=20), undecided="pass") == 0
    assert "4 planned trials have not run" in capsys.readouterr().out


def test_a_directory_alone_stands_for_all_comparisons_of_its_lab(made: Made) -> None:
    assert gate(made(1.0)) == 0
    assert gate(made(0.8)) == CLOSED


@pytest.mark.parametrize("cells", [CELLS, (CELLS[1], CELLS[0])])
def test_a_claim_about_response_times_is_judged_in_its_own_direction(cells: tuple[str, str]) -> None:
    claim = Claim("p99", "ratio", "response_time_p99_s", cells, 0.9, 1.1)
    plan = lab({"version": ("16", "18")}, blocks=12, claims=[claim])
    records = trials(plan, dict.fromkeys(CELLS, 1000.0), 0.01)
    worse = [
        replace(one, metrics={**one.metrics, "response_time_p99_s": one.metrics["response_time_p99_s"] * 1.3})
        if one.cell.name == CELLS[1]
        else one
        for one in records
    ]
    study = studied(plan, worse)
    found = judged(study, [*study.findings, *study.claimed], 0.05, "fail")
    assert [one.verdict for one in found.comparisons] == [GateVerdict.NOT_SLOWER, GateVerdict.SLOWER]
    assert found.closed
    asked = [one for one in compare_cells(plan, worse, *CELLS, 1) if one.decides]
    assert [one.metric for one in asked] == ["throughput", "response_time_p99_s"]


@pytest.mark.parametrize("ratio", [0.7, 2.0])
def test_a_claim_about_a_metric_that_is_neither_better_nor_worse_is_not_part_of_the_gate(ratio: float) -> None:
    claim = Claim("cores", "ratio", "engine_cpu_cores", CELLS, 0.0, 1.05)
    plan = lab({"version": ("16", "18")}, blocks=12, claims=[claim])
    records = [
        replace(one, metrics={**one.metrics, "engine_cpu_cores": 1.0 if one.cell.name == CELLS[0] else ratio})
        for one in trials(plan, dict.fromkeys(CELLS, 1000.0), 0.01)
    ]
    study = studied(plan, records)
    found = judged(study, [*study.findings, *study.claimed], 0.05, "fail")
    assert [one.finding.metric for one in found.comparisons] == ["throughput"]
    assert found.verdict is GateVerdict.NOT_SLOWER
    assert found.closed is (1 / ratio > 1.05)  # then the claim is refuted, whatever the comparison says
    (alone,) = judged(study, study.claimed, 0.05, "fail").comparisons
    assert alone.verdict is GateVerdict.CANNOT_TELL and alone.why == note(
        "no-better-direction", metric="engine_cpu_cores"
    )


def test_what_it_would_take_is_said_for_the_margin_of_the_lab_alone() -> None:
    plan = lab({"version": ("16", "18")}, blocks=12)
    study = studied(plan, trials(plan, dict.fromkeys(CELLS, 1000.0), 0.2))
    for margin, advised in ((plan.method.margin, True), (0.01, False)):
        (one, *_) = judged(study, study.findings, margin, "fail").comparisons
        assert (one.why.values["advice"] is not None) == advised


@pytest.mark.parametrize("turned", [False, True])
def test_a_pair_that_a_claim_alone_is_about_has_its_verdict_whichever_way_round_it_is_asked_for(turned: bool) -> None:
    order = Claim("order", "order", "throughput", ("log=memory", "log=ssd", "log=disk"))
    plan = lab({"log": ("disk", "memory", "ssd")}, blocks=12, claims=[order], full=False)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1300.0, "log=ssd": 1150.0}, 0.01)
    (claimed,) = studied(plan, records).claimed
    assert (claimed.cell, claimed.baseline) == ("log=memory", "log=ssd")
    pair = ("log=memory", "log=ssd") if turned else ("log=ssd", "log=memory")
    (found,) = [one for one in compare_cells(plan, records, *pair, 1) if one.decides]
    assert found.p == pytest.approx(claimed.p)
    assert found.ratio == pytest.approx(1 / claimed.ratio if turned else claimed.ratio)
    assert found.conclusion is (Conclusion.SLOWER if turned else Conclusion.FASTER)


def test_a_ratio_that_drifts_beyond_the_margin_cannot_tell_though_its_mean_would_pass() -> None:
    plan = lab({"version": ("16", "18")}, blocks=12)
    factors = [0.95 * (0.80 / 0.95) ** (block / 11) for block in range(12)]
    records = [
        replace(one, metrics={**one.metrics, "throughput": one.metrics["throughput"] * factors[one.block]})
        if one.cell.name == CELLS[1]
        else one
        for one in trials(plan, dict.fromkeys(CELLS, 1000.0), 0.005)
    ]
    study = studied(plan, records)
    (found,) = judged(study, study.findings, 0.22, "fail").comparisons
    assert found.finding.conclusion is Conclusion.SLOWER and found.slowdown.bound < 0.22
    assert found.verdict is GateVerdict.CANNOT_TELL
    assert codes(found.why) == ["slower-at-one-end", "ratio-changed"]
    assert 0.2 <= found.why.values["slowdown"] < 0.3
    assert judged(study, study.findings, 0.30, "fail").comparisons[0].verdict is GateVerdict.NOT_SLOWER


def test_records_that_were_not_run_in_blocks_are_refused(made: Made, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    plan = lab({"version": ("16", "18")}, blocks=6)
    for one in trials(plan, dict.fromkeys(CELLS, 1000.0)):
        store.keep(replace(one, purpose="sweep", series=one.cell.name[-2:]))
    with pytest.raises(InputError, match="were not run in blocks of one lab") as caught:
        gate("16", "18", results=str(store.directory))
    assert "ironbench compare" in caught.value.hint
    with pytest.raises(InputError, match="were not run in blocks of one lab"):
        gate(f"{made(1.0)}/version=16", f"{made(0.9)}/version=18")


def test_a_gate_on_other_work_says_what_differs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plan = lab({"version": ("16", "18")}, blocks=6)
    for one in trials(plan, dict.fromkeys(CELLS, 1000.0)):
        scale = one.cell.name[-2:]
        choice = replace(one.choice, options={**one.choice.options, "scale": scale})
        store.keep(replace(one, purpose="sweep", series=scale, choice=choice))
    with pytest.raises(InputError, match=r"work differs.*scale=16 vs. scale=18"):
        gate("16", "18", results=str(tmp_path))


def test_a_comparison_that_the_lab_does_not_declare_is_refused(tmp_path: Path) -> None:
    plan = lab({"version": ("16", "17", "18")}, blocks=6)
    found = LabDirectory(tmp_path)
    found.begin(FrozenPlan(plan, "m1", {}, {}))
    for one in trials(plan, {setup.cell.name: 1000.0 for setup in plan.setups}):
        found.store.keep(one)
    with pytest.raises(InputError, match="does not declare this comparison") as caught:
        gate("17", "18", results=str(tmp_path))
    assert '"version=16" "version=17"' in caught.value.hint


def test_a_lab_that_compares_cells_with_skipped_ones_alone_is_refused(tmp_path: Path) -> None:
    factors = {"version": ("16", "18"), "log": ("disk", "memory")}
    skipped = {"version=16 log=memory": "no room", "version=18 log=disk": "no such program"}
    plan = lab(factors, blocks=6, skipped=skipped)
    neither, other, one, both = (setup.cell.name for setup in plan.setups)
    plan = replace(plan, comparisons=((one, neither), (both, other), (other, neither), (both, one)))
    found = LabDirectory(tmp_path)
    found.begin(FrozenPlan(plan, "m1", {}, {}))
    found.declare(plan.method.stages[0], plan.trials)
    for record in trials(plan, {neither: 1000.0, both: 1000.0}):
        found.store.keep(record)
    with pytest.raises(InputError, match="compares nothing without the skipped configurations: version=16 log=memory"):
        gate(str(tmp_path))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"undecided": "more or less"}, "is not a valid policy"),
        ({"output": ["gate.pdf"]}, "the file name has no known suffix"),
        ({"output": ["nowhere/gate.md"]}, "does not exist"),
        ({"base": "here", "new": ""}, "is not a lab directory"),
    ],
)
def test_mistakes_are_named(words: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gate(**{"base": "a", "new": "b", **words})  # type: ignore[arg-type]


def test_documents_say_what_the_terminal_says(made: Made, tmp_path: Path) -> None:
    names = [str(tmp_path / f"gate.{end}") for end in ("xml", "md", "json", "txt")]
    assert gate(*CELLS, results=made(0.8), output=names) == CLOSED
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "1",
        "failures": "1",
        "skipped": "0",
    }
    case, failure = suite.find("testcase"), suite.find("testcase/failure")
    assert case is not None and case.attrib["name"] == "version 18 vs. version 16, throughput"
    assert failure is not None and "% slower" in failure.attrib["message"]
    page = (tmp_path / "gate.md").read_text()
    # A step summary cannot show a picture from a file beside it.
    assert "**FAIL: " in page and "![" not in page
    assert not (tmp_path / "gate.svg").exists()
    found = json.loads((tmp_path / "gate.json").read_text())
    assert (found["outcome"], found["closed"], found["margin"]) == ("slower", True, 0.05)
    assert found["checks"][0]["slowdown"] == pytest.approx(0.25, abs=0.03)
    assert "FAIL: " in (tmp_path / "gate.txt").read_text()


def _expecting(text: str, low: float | None, high: float | None, undecided: str = "fail") -> Gate:
    """Returns a gate of equal versions whose author also expects a certain throughput of the new version."""
    claim = Claim(text, VALUE, "throughput", (CELLS[1],), low, high)
    plan = lab({"version": ("16", "18")}, blocks=12, claims=[claim])
    study = studied(plan, trials(plan, dict.fromkeys(CELLS, 1000.0), 0.01))
    return judged(study, study.findings, 0.05, undecided)


def test_a_refuted_expectation_closes_the_gate_and_stands_in_every_document() -> None:
    from ironbench.report.gate_page import written

    found = _expecting("version=18: at least 2000/s", 2000.0, None)
    assert found.verdict is GateVerdict.NOT_SLOWER and found.closed
    suite = ElementTree.fromstring(written(found, "xml"))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("classname") for case in suite if case.find("failure") is not None] == ["ironbench.claim"]
    assert "| version=18: at least 2000/s | refuted |" in written(found, "md").decode()
    (claim,) = json.loads(written(found, "json"))["claims"]
    assert (claim["outcome"], claim["closes"]) == ("refuted", True)


def test_an_expectation_of_flagged_trials_says_so_in_every_document() -> None:
    from ironbench.report.gate_page import written

    claim = Claim("version=18: at least 2000/s", VALUE, "throughput", (CELLS[1],), 2000.0, None)
    plan = lab({"version": ("16", "18")}, blocks=12, claims=[claim])
    taken = note("cpu-taken", programs=0.9, steal=0.04, share=0.94)
    measured = [
        replace(one, status=Status.SUSPECT, warnings=(taken,))
        for one in trials(plan, dict.fromkeys(CELLS, 1000.0), 0.01)
    ]
    study = studied(plan, measured)
    found = judged(study, study.findings, 0.05, "fail")
    (one,) = found.claims
    assert one.reasons[-1] == note(FLAGGED, trials=12, of=12, causes=(taken,))
    flags = wording.text(one.reasons[-1])
    failures = [case.find("failure") for case in ElementTree.fromstring(written(found, "xml"))]
    assert any(flags in failure.get("message", "") for failure in failures if failure is not None)
    assert flags.split(":")[0] in written(found, "md").decode()
    assert json.loads(written(found, "json"))["claims"][0]["why"].endswith(flags)
    assert verdict.claims_words(4, "refuted", [("x", one)]) == f"exit code 4: refuted: x; {flags.rstrip('.')}"


def test_a_confirmed_expectation_passes_and_an_undecided_one_as_the_policy_says() -> None:
    from ironbench.report.gate_page import written

    assert not _expecting("version=18: at least 900/s", 900.0, None).closed
    assert _expecting("version=18: at least 1000/s", 1000.0, None).closed
    passed = _expecting("version=18: at least 1000/s", 1000.0, None, "pass")
    assert not passed.closed and ElementTree.fromstring(written(passed, "xml")).get("skipped") == "1"


def test_a_slower_change_names_the_statement_that_grew_and_the_plan_that_changed() -> None:
    from ironbench.report.gate_page import written

    plan = lab({"version": ("16", "18")}, blocks=12)
    study = studied(plan, trials(plan, {CELLS[0]: 1000.0, CELLS[1]: 800.0}, 0.01))
    text = "select * from t where n = $1"
    used = [
        replace(
            ServerUse(name, TrialTotals(1.0, 1.0), TrialTotals(1.0, 1.0), (), 1.0, (), (), (), (), (), 0, 1, (), ()),
            statements=(ServerStatement(text, 100.0, 100.0 * mean_s), ServerStatement("commit", 100.0, 0.1)),
            plans=(StatementPlan("s", 1, text, steps=(step,)),),
        )
        for name, mean_s, step in ((CELLS[0], 0.001, "Index Scan on t"), (CELLS[1], 0.003, "Seq Scan on t"))
    ]
    found = judged(replace(study, details=replace(study.details, inside=tuple(used))), study.findings, 0.05, "fail")
    causes = json.loads(written(found, "json"))["checks"][0]["causes"]
    assert [one["cause"] for one in causes] == ["other plan", "slower statement"]
    assert (causes[0]["more"], causes[0]["less"]) == (["Seq Scan on t"], ["Index Scan on t"])
    assert causes[1]["after_s"] == pytest.approx(3 * causes[1]["before_s"]) and causes[1]["text"] == text
    for page in (written(found, "md").decode(), written(found, "xml").decode()):
        assert "Seq Scan on t instead of Index Scan on t" in page and "select" in page


def test_what_cannot_tell_and_passes_is_skipped_in_junit(made: Made, tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    assert gate(*CELLS, results=made(1.0, spread=0.2), undecided="pass", output=[str(path)]) == 0
    suite = ElementTree.parse(path).getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_junit_describes_an_inconclusive_comparison_as_the_other_documents_do() -> None:
    """A size such as `2% faster` reads as a result, and flagged trials are part of the reason."""
    from ironbench.report.gate_page import written

    plan = lab({"version": ("16", "18")}, blocks=12)
    taken = note("cpu-taken", programs=0.9, steal=0.04, share=0.94)
    measured = [
        replace(one, status=Status.SUSPECT, warnings=(taken,))
        for one in trials(plan, {CELLS[0]: 1000.0, CELLS[1]: 1020.0}, 0.2)
    ]
    study = studied(plan, measured)
    found = judged(study, study.findings, 0.05, "fail")
    assert found.outcome is GateOutcome.INCONCLUSIVE
    case = ElementTree.fromstring(written(found, "xml")).find("testcase")
    assert case is not None and case.get("name") == "version 18 vs. version 16, throughput"
    failure = case.find("failure")
    assert failure is not None and failure.text is not None
    size, *caveats = failure.text.splitlines()
    decision = wording.text(found.comparisons[0].why).partition(";")[0]
    assert decision in " ".join(written(found, "text").decode().split())
    assert decision.startswith("between ") and failure.get("message", "").startswith(f"INCONCLUSIVE: {decision}")
    assert size == f"inconclusive: {decision} (95% CI, 12 paired repeats)"
    assert any(line.startswith("Caveat: ") and "24 of 24" in line for line in caveats), caveats
    assert (case.findtext("system-out") or "").startswith(size)


def test_a_users_own_words_are_no_markup(tmp_path: Path) -> None:
    from ironbench.report.gate_page import written

    plan = lab({"version": ("16", "a|b<script>")}, blocks=6, question="<img src=x> & `rm` [x](y)\x1b[1m")
    study = studied(plan, trials(plan, {setup.cell.name: 1000.0 for setup in plan.setups}))
    found = judged(study, study.findings, 0.05, "fail")
    page = written(found, "md").decode()
    assert not re.search(r"(?<!\\)<(script|img)", page) and "\x1b" not in page and r"\[x\](y)" in page
    row = next(line for line in page.splitlines() if line.startswith("| version"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 7
    assert ElementTree.fromstring(written(found, "xml")).get("name")


def simulated(ratio: float, seed: int, blocks: int = 12, spread: float = 0.03) -> Gate:
    """Returns a lab with Gaussian noise, judged by the production code."""
    from ironbench.study import verdict

    dice = random.Random(seed)
    pairs = [
        (block, ratio * 1000 * dice.lognormvariate(0, spread), 1000 * dice.lognormvariate(0, spread))
        for block in range(blocks)
    ]
    one = verdict.of_blocks("throughput", CELLS[1], CELLS[0], pairs)
    result = verdict.judged(one, Method((Stage(1, blocks),), 1))
    plan = lab({"version": ("16", "18")}, blocks=blocks)
    study = replace(EMPTY, lab=plan)
    return judged(study, [result], 0.05, "fail")


EMPTY = studied(
    lab({"version": ("16", "18")}, blocks=6),
    trials(lab({"version": ("16", "18")}, blocks=6), dict.fromkeys(CELLS, 1.0)),
)


def test_a_gate_keeps_its_error_rates_on_simulated_labs() -> None:
    """As the guide states: A/A is called slower in at most 5 of 100 labs, and a slowdown of 10% is found in 95 of
    100."""
    same = [simulated(1.0, seed).verdict for seed in range(200)]
    assert same.count(GateVerdict.SLOWER) <= 6
    assert sum(one is not GateVerdict.NOT_SLOWER for one in same) <= 10
    slower = [simulated(1 / 1.1, 1000 + seed).closed for seed in range(200)]
    assert sum(slower) >= 190
    # A slowdown equal to the margin passes as rarely as the interval errs.
    assert [simulated(1 / 1.05, 2000 + seed).verdict for seed in range(200)].count(GateVerdict.NOT_SLOWER) <= 18


def test_the_example_of_the_guide_is_what_is_printed(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    gate(*CELLS, results=made(0.9))
    said = capsys.readouterr().out
    block = next(one for one in re.findall(r"^```text\n(.*?)^```", GUIDE.read_text(), re.M | re.S))
    assert block == f"$ ironbench gate version=16 version=18 --results LAB\n{said}"


def test_a_gate_that_only_reads_names_what_measures_more(made: Made) -> None:
    with pytest.raises(InputError, match="judges existing trials") as refused:
        gate(*CELLS, undecided="more:30m", results=made(1.0))
    assert "lab run FILE --gate" in refused.value.hint


@pytest.mark.parametrize("text", ["more", "more:", "more:soon", "maybe", "fail:1m"])
def test_an_unknown_policy_of_a_gated_lab_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--undecided"):
        _policy(True, text)


def test_a_gate_that_cannot_tell_gets_as_many_blocks_as_the_time_of_those_measured_allows(made: Made) -> None:
    directory = LabDirectory(Path(made(1.0, spread=0.2)))
    records = [
        replace(record, started_at=f"2026-11-21T01:{record.block // 6:02}:{record.block % 6}0")
        for record in directory.records()
    ]
    (first,) = directory.lab().method.stages
    plan = replace(directory.lab(), method=Method((first, Stage(2, 36)), 1))
    assert plan.method.blocks == 48
    added: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LabDirectory, "lab", lambda _: plan)
        patch.setattr(schedule, "add_round", lambda _, blocks: added.append(blocks))
        # A block started every ten seconds; before the first, data were loaded for an hour.
        judge = partial(whole, directory, "fail")
        assert adds_blocks(Policy("fail", 100.0), directory, records, 3720.0, judge, Printer.silent())
    assert added == [10]


def test_no_blocks_are_added_for_a_metric_that_can_pass_no_gate(made: Made) -> None:
    directory = LabDirectory(Path(made(1.0, spread=0.2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ironbench.study.gate.has_better", lambda metric: False)
        judge = partial(whole, directory, "fail")
        assert not adds_blocks(Policy("fail", 1e6), directory, directory.records(), 120.0, judge, Printer.silent())


@pytest.mark.parametrize("code", [0, 1, 130])
def test_a_gated_lab_prints_one_document_its_own_where_the_gate_does_not_decide(
    code: int, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = LabDirectory(Path(made(1.0)))
    records = directory.records()
    assert verdict.show(directory, records, json=True, printer=Printer(), gated=True) == 0
    assert _gated(directory, records, code, True, Policy("fail")) == code
    found = json.loads(capsys.readouterr().out)
    assert ("checks" in found, "lab" in found) == (code == 0, code != 0)


def test_a_gate_on_a_lab_that_compares_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))
    file = tmp_path / "screen.toml"
    file.write_text(
        'question = "What matters?"\ndesign = "screen"\n[system]\nengine = "null"\n[workload]\nname = "select-only"\n'
        '[vary]\nclients = "2..4"\nthreads = [1, 2]\nmax_tries = [1, 3]\nthink_time = ["0s", "1ms"]\n'
    )
    screen, _ = declare.lab(file)
    with pytest.raises(InputError, match="compares nothing") as refused:
        require_comparisons("screen", screen)
    assert "has confirmed no effect" in refused.value.hint
    # The comparisons of a screen are known only after its trials; those of other labs are known before.
    monkeypatch.setattr(declare, "lab", lambda *_: (replace(screen, design="one-at-a-time"), {}))
    with pytest.raises(InputError, match="--gate"):
        measured(file, "", str(tmp_path / "lab"), "", False, policy=Policy("fail"))
    assert not (tmp_path / "lab").exists()


def test_a_policy_without_a_gate_is_refused() -> None:
    with pytest.raises(InputError, match="needs --gate"):
        _policy(False, "pass")
    assert _policy(False, "") is None
    assert _policy(True, "more:30m") == Policy("fail", 1800.0)
