"""Tags are validated before anything starts, stored in every record, shown, and never contain passwords."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, record

from ironbench.cli.list import list_
from ironbench.errors import InputError
from ironbench.lab import declare, run_plan
from ironbench.model.secrets import HIDDEN
from ironbench.plan import labfile, run_file, tags
from ironbench.records import Store
from ironbench.study.differences import differences, facts_of

pytest.importorskip("ironbench._core", reason="the core is not built")

LAB = """question = "Is it slower?"
tag = { commit = "1f3c2a9", version = 18, nightly = true }
[workload]
name = "select-only"
[vary]
clients = [1, 2]
"""


@pytest.mark.parametrize(
    "text",
    ["commit", "=1", "commit=", "commit= ", "1st=a", "a b=c", "commit=a\nb", f"commit={'x' * 201}", "k" * 41 + "=1"],
)
def test_a_tag_that_could_not_be_found_again_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(InputError) as refused:
        tags.read("--tag", [text])
    assert "--tag" in str(refused.value)
    assert refused.value.hint


def test_more_tags_than_a_record_has_room_for_are_refused() -> None:
    with pytest.raises(InputError, match="has 17 tags; the maximum is 16"):
        tags.read("--tag", [f"key{number}=1" for number in range(17)])


def test_a_later_tag_of_one_key_wins_and_a_value_may_hold_an_equals_sign() -> None:
    assert tags.read("--tag", ["a=1", "a=x=y"]) == {"a": "x=y"}


def test_a_run_plans_its_tags(tmp_path: Path) -> None:
    asked = run_file.read("igen-oltp", engine="null", tag=("commit=1f3c2a9",), results=str(tmp_path))
    assert run_plan.planned(asked)[0].tags == {"commit": "1f3c2a9"}


def test_a_lab_has_the_tags_of_its_file_and_those_of_the_command_line_win(tmp_path: Path) -> None:
    file = tmp_path / "change.toml"
    file.write_text(LAB.replace("select-only", "igen-oltp").replace("[vary]", '[system]\nengine = "null"\n[vary]'))
    assert declare.lab(file)[0].tags == {"commit": "1f3c2a9", "version": "18", "nightly": "on"}
    assert declare.lab(file, tag=["commit=2"])[0].tags == {"commit": "2", "version": "18", "nightly": "on"}


def test_a_lab_file_with_a_wrong_tag_is_refused_with_the_field() -> None:
    with pytest.raises(InputError, match=r"change.toml, tag"):
        labfile.read(LAB.replace("1f3c2a9", ""), "change.toml")


def test_tags_are_listed_and_differ_like_other_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = record(DISK, 1, tags={"commit": "1f3c2a9"})
    other = record(replace(DISK, label="other"), 1, tags={"commit": "2"}, series="20261122T010000-x")
    for each in (one, other):
        Store(tmp_path).keep(each)
    assert list_("records", str(tmp_path), True) == 0
    rows = json.loads(capsys.readouterr().out)["records"]
    assert [row["tags"] for row in rows] == [{"commit": "1f3c2a9"}, {"commit": "2"}]
    assert list_("records", str(tmp_path), False) == 0
    assert "commit=1f3c2a9" in capsys.readouterr().out
    found = differences([facts_of(one), facts_of(other)])
    assert [(row.group, row.name, row.values) for row in found if row.group == "tag"] == [
        ("tag", "commit", ("1f3c2a9", "2"))
    ]


def test_records_without_tags_are_listed_without_their_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(tmp_path).keep(record(DISK, 1))
    list_("records", str(tmp_path), False)
    assert "tags" not in capsys.readouterr().out


def test_a_secret_among_tags_is_shown_nowhere() -> None:
    assert facts_of(record(DISK, 1, tags={"token": "sesame"}))["tag.token"] == HIDDEN
