"""`report` and `compare` on the directory of a lab, called as users call them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from labfactory import SOURCE, lab, trials

from ironbench.cli.compare import compare
from ironbench.cli.lab import resume
from ironbench.cli.lead import lead
from ironbench.cli.report import report
from ironbench.errors import FailureError, InputError
from ironbench.records import labs
from ironbench.records.labs import FrozenPlan, LabDirectory

CELLS = ("log=disk clients=1", "log=disk clients=8", "log=memory clients=1", "log=memory clients=8")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    plan = lab({"log": ("disk", "memory"), "clients": ("1", "8")}, blocks=8)
    found = LabDirectory(tmp_path_factory.mktemp("lab"))
    found.begin(FrozenPlan(plan, "m1", {}, {}))
    found.declare(plan.method.stages[0], plan.trials)
    for one in trials(plan, dict(zip(CELLS, (1000.0, 3000.0, 1500.0, 4500.0), strict=True)), observed=True):
        found.store.keep(one)
    return str(found.path)


def test_the_report_of_a_labs_directory_answers_its_question(
    directory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report([directory], "", "", "") == 0
    said = capsys.readouterr().out
    assert said.startswith("Is the log what holds this database back?")
    assert " faster than " in said or "x as fast as " in said


@pytest.mark.parametrize("name", ["r.html", "r.md", "r.json", "r.svg", "r.png"])
def test_the_report_of_a_lab_is_written_in_every_format(name: str, directory: str, tmp_path: Path) -> None:
    assert report([directory], str(tmp_path / name), "", "") == 0
    assert (tmp_path / name).stat().st_size > 1000


def test_a_directory_that_is_no_labs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no lab"):
        report([str(tmp_path)], "", "", "")


def test_a_lab_and_records_are_not_mixed(directory: str) -> None:
    with pytest.raises(InputError, match="combined with a lab"):
        report([directory, "some record"], "", "", "")


def test_cells_of_one_lab_are_compared_with_the_labs_verdict(
    directory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(CELLS[0], CELLS[2], directory, False, False) == 0
    said = capsys.readouterr().out
    assert "WAL in memory is 49% faster than WAL on disk" in said
    assert "No verdict" not in said
    assert compare("log=disk clients=1", "log=memory clients=1", directory, False, True) == 0
    (first, *_) = json.loads(capsys.readouterr().out)["findings"]
    assert (first["metric"], first["conclusion"], first["decides"]) == ("throughput", "faster", True)


def test_the_first_cell_named_is_the_reference_whichever_the_lab_declared(
    directory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for a, b in ((CELLS[0], CELLS[2]), (CELLS[2], CELLS[0])):
        assert compare(a, b, directory, False, True) == 0
        found.append(json.loads(capsys.readouterr().out)["findings"][0])
    assert [(one["cell"], one["baseline"]) for one in found] == [(CELLS[2], CELLS[0]), (CELLS[0], CELLS[2])]
    assert [one["conclusion"] for one in found] == ["faster", "slower"]
    assert found[1]["ratio"] == pytest.approx(1 / found[0]["ratio"])
    assert found[1]["low"] == pytest.approx(1 / found[0]["high"])
    assert found[1]["p"] == pytest.approx(found[0]["p"])
    assert compare(CELLS[2], CELLS[0], directory, False, False) == 0
    assert " slower than WAL in memory" in capsys.readouterr().out


def test_cells_that_the_lab_does_not_compare_get_intervals_but_no_verdict(
    directory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(CELLS[1], CELLS[3], directory, False, True) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {one["conclusion"] for one in found} == {"cannot tell"}
    assert found[0]["ratio"] == pytest.approx(1.5, abs=0.1)
    assert compare(CELLS[1], CELLS[3], directory, False, False) == 0
    assert "No verdict: the lab file does not declare this comparison" in capsys.readouterr().out


def test_levels_of_several_cells_are_refused_with_their_names(directory: str) -> None:
    with pytest.raises(InputError) as caught:
        compare("log=disk", "log=memory", directory, False, False)
    assert "log=disk clients=8" in caught.value.hint


def test_a_cell_that_does_not_exist_is_answered_with_the_nearest(directory: str) -> None:
    with pytest.raises(InputError) as caught:
        compare("log=disk clients=1", "log=memori clients=1", directory, False, False)
    assert "log=memory clients=1" in caught.value.hint


@pytest.mark.parametrize(("old", "new"), [("disk", "memory"), ("log=disk", "log=memory")])
def test_lead_takes_the_levels_of_a_lab_and_confirms_its_peaks_in_other_blocks(
    directory: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lead(old, new, 0.05, "", directory, True) == 0
    (work,) = json.loads(capsys.readouterr().out)["works"]
    assert [one["clients"] for one in work["by_clients"]] == [1, 8]
    assert [one["ratio"] for one in work["by_clients"]] == pytest.approx([1.5, 1.5], abs=0.1)
    assert work["peaks"]["confirmed"] is True
    assert work["peaks"]["leads"]["throughput"]["trials"] == [8, 8]
    assert lead(old, new, 0.05, "", directory, False) == 0
    assert "The trials of both systems were interleaved" in capsys.readouterr().out


def test_a_word_that_is_no_level_and_no_label_is_refused(directory: str) -> None:
    with pytest.raises(InputError, match="matches no configuration, value or record") as caught:
        lead("disk", "memori", 0.05, "", directory, False)
    assert "log=memory" in caught.value.hint


def of_machine(folder: Path, cpu: str, speed: float, clients: tuple[str, ...] = ("1", "8")) -> str:
    """Returns a lab of one machine in a separate directory."""
    plan = lab({"log": ("disk", "memory"), "clients": clients} if clients else {"log": ("disk", "memory")}, blocks=8)
    found = LabDirectory(folder)
    key = found.store.keep_shared("machines", {"cpu": {"model": cpu, "cores": 4}})
    found.begin(FrozenPlan(plan, key, {}, {}))
    found.declare(plan.method.stages[0], plan.trials)
    rates = (1000.0 * speed, 3000.0 * speed, 1500.0 * speed, 4500.0 * speed)
    for one in trials(plan, dict(zip([one.cell.name for one in plan.setups], rates, strict=False))):
        found.store.keep(replace(one, machine=key, series=cpu, id=f"{cpu}-{one.id}"))
    return str(folder)


def test_a_lead_of_one_lab_over_another_takes_each_side_from_its_own_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = of_machine(tmp_path / "a", "Old", 1.0), of_machine(tmp_path / "b", "New", 1.5)
    assert lead(f"{old}/disk", f"{new}/disk", 0.05, "", str(tmp_path / "none"), False) == 0
    said = capsys.readouterr().out
    assert "were not interleaved" in said
    assert "Old" in said and "New" in said
    with pytest.raises(InputError, match="two systems"):
        lead(old, new, 0.05, "", str(tmp_path / "none"), False)
    with pytest.raises(InputError, match="matches no configuration"):
        lead(f"{old}/nosuch", f"{new}/disk", 0.05, "", str(tmp_path / "none"), False)
    with pytest.raises(InputError, match="matches no record"):
        lead("nosuch", f"{new}/disk", 0.05, "", str(tmp_path / "none"), False)


def test_every_verb_resolves_names_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = (of_machine(tmp_path / name, name, 1.0, clients=()) for name in ("here", "there"))
    for words in (("disk", "memory"), ("log=disk", "log=memory"), (f"{here}/disk", f"{here}/memory")):
        assert compare(*words, here, False, False) == 0
        assert "as fast as WAL on disk" in capsys.readouterr().out
        assert lead(*words, 0.05, "", here, False) == 0
        assert "The trials of both systems were interleaved" in capsys.readouterr().out
    assert compare(f"{here}/disk", f"{there}/disk", here, False, False) == 0
    assert "No verdict" in capsys.readouterr().out
    assert report(["memory"], "", "text", here) == 0
    assert "memory" in capsys.readouterr().out


def test_a_lab_takes_no_file_of_the_users_own_away(tmp_path: Path) -> None:
    frozen = FrozenPlan(lab({"log": ("disk", "memory")}, blocks=2), "m1", {}, {})
    (tmp_path / "lab.toml").write_text("question = 'Another?'\n")
    with pytest.raises(InputError, match=r"lab\.toml: already exists") as caught:
        LabDirectory(tmp_path).begin(frozen)
    assert "--results" in caught.value.hint
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("lab.toml", "question = 'Another?'\n")]
    (tmp_path / "lab.toml").unlink()
    (tmp_path / "plan.json").write_text('{"resources": []}')
    with pytest.raises(FailureError, match=r"plan\.json: cannot be read"):
        LabDirectory(tmp_path).begin(frozen)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("plan.json", '{"resources": []}')]


def test_a_lab_is_found_by_its_file_whatever_the_name_of_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRONBENCH_RESULTS", str(tmp_path))
    plan = replace(lab({"log": ("disk", "memory")}, blocks=2), name="log[1]")
    directory = LabDirectory(labs.home() / f"{plan.name}-20261121T010000-3fa9")
    directory.begin(FrozenPlan(plan, "m1", {}, {}))
    assert labs.find("log[1].toml").path == directory.path


def test_the_text_of_a_lab_file_is_kept_as_it_was_whatever_ends_its_lines(tmp_path: Path) -> None:
    plan = replace(lab({"log": ("disk", "memory")}, blocks=2), source=SOURCE.replace("\n", "\r\n"))
    directory = LabDirectory(tmp_path)
    directory.begin(FrozenPlan(plan, "m1", {}, {}))
    assert directory.source() == directory.frozen().lab.source == plan.source


def test_a_lab_file_that_is_no_text_any_more_is_named_when_its_lab_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRONBENCH_RESULTS", str(tmp_path / "results"))
    plan = lab({"log": ("disk", "memory")}, blocks=2)
    LabDirectory(labs.home() / f"{plan.name}-{plan.series}").begin(FrozenPlan(plan, "m1", {}, {}))
    (tmp_path / "log.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"log\.toml: byte 0 is not UTF-8"):
        resume(str(tmp_path / "log.toml"))
