"""`ironbench tune`: its plans and refusals, the choice by its screen, and confirmation in fresh blocks."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from labfactory import said

from bench.tuning import Machine, claimed, tuned
from ironbench.cli.lab import planned
from ironbench.errors import InputError, MistakesError
from ironbench.lab import confirm, declare, loop, schedule
from ironbench.lab.schedule import Blocks
from ironbench.model.finding import Conclusion
from ironbench.model.lab import SCREEN, Lab
from ironbench.printer import Printer
from ironbench.records import examine
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report import formats
from ironbench.report.sections.setup import plan as plan_tables
from ironbench.study.study import Study

START = 'question = "What matters?"\n[system]\nengine = "null"\n[workload]\nname = "select-only"\n'
FOUR = """[vary]
clients = "2..4"
threads = [1, 2]
max_tries = [1, 2, 3]
think_time = ["0s", "1ms"]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path.parent / f"{tmp_path.name}-data"))
    return tmp_path / "tune.toml"


def lab(file: Path, text: str = FOUR, budget_s: float | None = None) -> Lab:
    file.write_text(START + text)
    return declare.lab(file, budget_s, SCREEN)[0]


def refused(file: Path, text: str, budget_s: float | None = None) -> InputError | MistakesError:
    with pytest.raises((InputError, MistakesError)) as caught:
        lab(file, text, budget_s)
    return caught.value


def study(file: Path, effects: Mapping[str, float], noise: float = 0.05, text: str = FOUR, seed: int = 3) -> Study:
    found = lab(file, text)
    return tuned(found, LabDirectory(file.with_name("lab")), effects, noise, seed)


def test_a_run_is_measured_beside_its_mirror_image_and_the_first_is_the_baseline(file: Path) -> None:
    found = lab(file)
    levels = {setup.cell.name: setup.cell.levels for setup in found.setups}
    assert found.baseline == "baseline"
    assert levels["baseline"] == {"clients": "2", "threads": "1", "max_tries": "1", "think_time": "0s"}
    assert len(found.setups) == 8 and found.comparisons == () and found.rated == ()
    names = [trial.cell.name for trial in found.trials]
    assert len(names) == 8 * found.method.blocks == 24
    for one, other in zip(names[::2], names[1::2], strict=True):
        assert all(levels[one][factor] != level for factor, level in levels[other].items())
    orders = {tuple(names[place : place + 8]) for place in (0, 8, 16)}
    assert len(orders) == 3 and all(sorted(order) == sorted(levels) for order in orders)


def test_only_the_ends_of_a_list_are_screened_and_ranges_have_two(file: Path) -> None:
    found = lab(file)
    assert {setup.cell.levels["max_tries"] for setup in found.setups} == {"1", "3"}
    assert {setup.cell.load.clients for setup in found.setups} == {2, 4}


def test_the_plan_says_what_it_takes_and_what_it_sees(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab(file)
    assert planned(file, "", json=False, design=SCREEN) == 0
    shown = capsys.readouterr().out
    assert "8 runs: Plackett-Burman design with foldover (resolution IV)" in shown
    assert "24 trials" in shown and "minimum detectable effect of the screen:" in shown
    assert "for 2 factors, 4 configurations in 6 to 30 blocks" in shown
    assert "max_tries" in shown and "values in between (not screened)" in shown
    assert planned(file, "1h", json=True, design=SCREEN) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["design"] == "screen" and document["resolution"]["detectable"] > 0
    assert document["confirmation"]["blocks"] == [6, 30]
    assert document["estimate_s"] + document["confirmation"]["estimate_s"][0] <= 3600


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ('clients = "4..4"', "both ends of '4..4' are equal"),
        ('system.set.x = "1GB..1024MB"', "are equal"),
        ('system.set.x = "128MB..2"', "have different kinds of units"),
        ('system.set.x = "128MB..5s"', "have different kinds of units"),
        ('system.set.x = "on..off"', "is not a range"),
        ("clients = [1]", "has only one value"),
        ("clients = [1, 2]", "a screen cannot have 1 factor"),
    ],
)
def test_what_is_no_pair_of_levels_is_refused(file: Path, vary: str, words: str) -> None:
    assert words in str(refused(file, f"[vary]\n{vary}\n"))


@pytest.mark.parametrize("pair", ['"0..64"', '"128M..2G"', '"30s..5min"', '"0..2GB"', '"0.1..0.9"'])
def test_units_of_one_kind_make_a_range(file: Path, pair: str) -> None:
    from ironbench.plan import labfile

    declared = labfile.read(f"{START}[vary]\nsystem.set.x = {pair}\nclients = [1, 2]\n", "x.toml")
    assert "..".join(declared.factors[0].names) == pair.strip('"')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[expect]\nclaims = ['clients=4 over clients=2: 1 to 2']\n", "expect.claims"),
        ("[measure]\norder = 'fixed'\n", "measure.order"),
        ("[measure]\nrates = ['70%']\n", "measure.rates"),
        ("[measure]\nstages = 2\n", "measure.stages"),
        ("[measure]\nrepeats = 2\n", "blocks to estimate its error"),
    ],
)
def test_what_a_screen_cannot_have_is_refused(file: Path, text: str, words: str) -> None:
    assert words in str(refused(file, FOUR + text))


def test_too_many_factors_for_the_budget_are_refused_with_what_suffices(file: Path) -> None:
    error = refused(file, FOUR, 60.0)
    assert "8 runs of 4 factors in 3 blocks, and new blocks for 2 factors that matter, take" in str(error)
    assert lab(file, FOUR, 3600.0).method.budget_s == 3600.0


def test_a_level_that_cannot_be_is_named_and_nothing_is_skipped(file: Path) -> None:
    error = refused(file, '[vary]\nclients = [1, 2]\nsystem.set.no_such_setting = ["on", "off"]\n')
    assert "no_such_setting" in str(error)


def test_another_design_is_no_screen(file: Path) -> None:
    file.write_text('design = "full"\n' + START + FOUR)
    with pytest.raises(InputError, match="is full, but this command needs screen"):
        declare.lab(file, None, SCREEN)


def test_what_matters_is_found_and_confirmed_and_nothing_else_is_claimed(file: Path) -> None:
    found = study(file, {"clients": math.log(1.5), "think_time": math.log(0.6)})
    assert claimed(found) == {"clients": Conclusion.FASTER, "think_time": Conclusion.SLOWER}
    text = said(found)
    assert "with 4 clients than with the baseline" in text and "slower than the baseline" in text
    assert "The trials support one change to the baseline: clients=4." in text
    assert "No effect was detected for threads and max_tries. An effect of" in text
    assert {finding.baseline for finding in found.findings} == {"baseline"}
    assert all(block > 2 for finding in found.findings for block, _ in finding.ratios)  # none from the screen


def test_several_winners_are_measured_together_and_levels_between_alone(file: Path) -> None:
    found = study(file, {"clients": math.log(1.5), "max_tries": math.log(1.4)})
    cells = [finding.cell for finding in found.findings]
    assert cells == ["clients=4", "max_tries=2", "max_tries=3", "clients=4 + max_tries=3"]
    together = found.findings[-1]
    assert together.conclusion is Conclusion.FASTER and together.ratio == pytest.approx(2.1, rel=0.15)


def test_a_screen_without_effects_ends_with_what_it_could_have_seen(file: Path) -> None:
    found = study(file, {})
    assert found.findings == () and found.complete
    assert "No effect on throughput was detected for any of the 4 factors. An effect of" in said(found)
    assert "do not support any change to the baseline" in said(found)


def test_the_runs_of_a_screen_are_listed_with_their_settings_and_cells_with_names_that_tell_are_not(file: Path) -> None:
    rows = {row[0]: row[-1] for row in dict(plan_tables(study(file, {})))["Configurations"].texts}
    assert rows["baseline"] == ""
    assert set(rows["run 2"].split(", ")) == {"clients=4", "threads=2", "max_tries=3", "think_time=1ms"}
    assert len(rows) == len(set(rows.values())) == 8
    confirmed = study(file, {"clients": math.log(1.5)})
    assert dict(plan_tables(confirmed))["Configurations"].head[-1] == "retried"


def test_an_effect_that_only_the_screen_saw_is_not_claimed(file: Path) -> None:
    """An effect may appear only by chance, or only with other settings. Here, the machine loses the effect after the
    screen."""
    found = lab(file)
    directory = LabDirectory(file.with_name("lab"))
    directory.begin(FrozenPlan(found, "m1", {}, {}))
    records = loop.measured(Blocks(directory, []), Machine({"clients": 0.5}, found, 0.05, random.Random(1)))
    assert confirm.start_confirmation(directory, records, Printer.silent())
    machine = Machine({}, found, 0.05, random.Random(2), measured=len(records))
    records = loop.measured(Blocks(directory, records), machine, records)
    from ironbench.study.archive import EMPTY
    from ironbench.study.labstudy import lab_study

    after = lab_study(directory.lab(), records, EMPTY, stage=len(directory.declared()))
    assert claimed(after) == {}
    assert "The comparison with the baseline does not confirm this change" in said(after)
    assert "do not support any change to the baseline" in said(after)


def test_a_factor_whose_fresh_blocks_say_the_opposite_of_the_screen_is_not_supported(file: Path) -> None:
    found = lab(file)
    directory = LabDirectory(file.with_name("lab"))
    directory.begin(FrozenPlan(found, "m1", {}, {}))
    records = loop.measured(Blocks(directory, []), Machine({"clients": -0.5}, found, 0.05, random.Random(1)))
    assert confirm.start_confirmation(directory, records, Printer.silent())
    machine = Machine({"clients": 0.5}, found, 0.05, random.Random(2), measured=len(records))
    records = loop.measured(Blocks(directory, records), machine, records)
    from ironbench.study.archive import EMPTY
    from ironbench.study.labstudy import lab_study

    after = lab_study(directory.lab(), records, EMPTY, stage=len(directory.declared()))
    assert "The results for clients contradict each other: 2 was better in the screening experiment" in said(after)
    assert "do not support any change to the baseline" in said(after)


def test_a_screen_that_was_interrupted_goes_on_where_it_was(file: Path) -> None:
    effects, found = {"clients": math.log(1.5)}, lab(file)
    directory = LabDirectory(file.with_name("lab"))
    directory.begin(FrozenPlan(found, "m1", {}, {}))
    silent = Printer.silent()
    some = loop.measured(Blocks(directory, []), Machine(effects, found, 0.05, random.Random(1)))[:13]
    assert not confirm.start_confirmation(directory, some, silent)
    records = loop.measured(Blocks(directory, some), Machine(effects, found, 0.05, random.Random(2), 13), some)
    assert [one.cell.name for one in records] == [trial.cell.name for trial in found.trials]
    assert confirm.start_confirmation(directory, records, silent)
    assert not confirm.start_confirmation(directory, records, silent)  # the confirmation is chosen only once
    stages = directory.lab().method.stages
    assert [stage.added for stage in stages][:2] == [False, True]
    examine._lab(directory.path / "plan.json")


def test_more_blocks_of_a_screen_are_a_round_of_its_confirmation(file: Path) -> None:
    from ironbench.study.archive import EMPTY
    from ironbench.study.labstudy import lab_study

    found = lab(file)
    directory = LabDirectory(file.with_name("lab"))
    directory.begin(FrozenPlan(found, "m1", {}, {}))
    machine = Machine({"clients": math.log(1.5)}, found, 0.05, random.Random(3))
    records = loop.measured(Blocks(directory, []), machine)
    assert confirm.start_confirmation(directory, records, Printer.silent())
    records = loop.measured(Blocks(directory, records), machine, records)
    declared, planned_before = len(directory.declared()), directory.lab().method.stages
    first = lab_study(directory.lab(), records, EMPTY, stage=declared)
    schedule.add_round(directory, 6)
    added = [trial for trial in directory.lab().trials if trial.stage == declared + 1]
    assert {trial.cell.name for trial in added} == {"baseline", "clients=4"} and len(added) == 12
    assert directory.lab().method.dropped == tuple(stage.blocks for stage in planned_before[declared:])
    records = loop.measured(Blocks(directory, records), machine, before := list(records))
    assert len(records) == len(before) + 12
    after = lab_study(directory.lab(), records, EMPTY, stage=declared + 1)
    (finding,) = after.findings
    assert finding.blocks == 6 and finding.conclusion is Conclusion.FASTER
    (earlier,) = after.earlier
    (before_it,) = first.findings
    assert earlier.findings[0].ratio == before_it.ratio, "what a round has found stays as it was"


def test_every_format_shows_the_screen_with_its_data(file: Path) -> None:
    found = study(file, {"clients": math.log(1.5)})
    for name in ("text", "md", "html"):
        page = formats.get(name)([found]).decode()
        assert (
            "Screening of factors" in page and "effect detected, 4 is better" in page and "no effect detected" in page
        ), name
    (document,) = json.loads(formats.get("json")([found]))["labs"]
    clients = next(one for one in document["screen"]["factors"] if one["name"] == "clients")
    assert clients["matters"] and clients["low"] > 1 and len(clients["blocks"]) == 3
