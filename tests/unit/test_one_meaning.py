"""A label, the order of names and a value mean the same in every command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import DISK, MEMORY, record
from test_cost import stored

from ironbench.cli.compare import compare
from ironbench.cli.cost import cost
from ironbench.cli.lead import lead
from ironbench.cli.leaderboard import leaderboard
from ironbench.cli.record import export
from ironbench.cli.report import report
from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.model.system import Choice, Load, System
from ironbench.records.bundle import Reader

A, B = replace(DISK, label="a"), replace(MEMORY, label="b")
SYSTEMS = """
[system.first]
records = "a"
sockets = 1
cores = 2
buy = ["sql-server-2014-enterprise"]
[system.second]
records = "b"
sockets = 1
cores = 2
buy = ["sql-server-2014-enterprise"]
"""


def trial(system: System, throughput: float, series: str, day: int, load: Load | None = None) -> Record:
    return record(
        system, 8, throughput, series=series, id=f"{series}-{throughput:.0f}", started_at=f"2026-01-0{day}T00:00:00",
        load=load,
    )  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> str:
    """Stores results in which label `a` selects two series with medians of 1000 and 2000. Their mean is 1500, their
    geometric mean 1414."""
    trials = [trial(A, rate, series, day) for series, day, rate in (("s1", 1, 1000.0), ("s3", 3, 2000.0))]
    return stored(tmp_path, [*trials, trial(B, 3000.0, "s2", 2)])


def test_a_label_means_all_its_series_in_every_verb(
    results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> Any:
        return json.loads(capsys.readouterr().out)

    report(["a"], "", "json", results)
    assert said()["studies"][0]["trials"] == 2
    compare("a", "b", results, False, True)
    assert next(row for row in said()["peaks"]["rows"] if row["metric"] == "throughput")["a"]["centre"] == 1500
    lead("a", "b", 0.05, "", results, True)
    assert said()["works"][0]["peaks"]["values"]["throughput"] == pytest.approx([(1000 * 2000) ** 0.5, 3000])
    leaderboard("igen-oltp", "", "", "", None, results, True)
    assert [(place["system"], place["score"]) for place in said()["rankings"][0]["places"]] == [
        ("b", 3000),
        ("a", pytest.approx((1000 * 2000) ** 0.5)),
    ]
    systems = tmp_path / "systems.toml"
    systems.write_text(SYSTEMS)
    cost(["a"], "", str(systems), None, "", results, True)
    assert said()["systems"][0]["score_value"] == pytest.approx((1000 * 2000) ** 0.5)
    export(["a"], str(tmp_path / "a.ibr"), results)
    with Reader(tmp_path / "a.ibr") as reader:
        assert sum(name.endswith("record.json") for name in reader.manifest.files) == 2


@pytest.mark.parametrize(("named", "ratio"), [(["a", "b"], 2.0), (["b", "a"], 0.5)])
def test_the_first_named_is_the_reference_in_every_verb(
    named: list[str], ratio: float, results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> Any:
        return json.loads(capsys.readouterr().out)

    report(named, "", "json", results)
    parts = said()["studies"][0]["parts"]
    assert [part["subject"]["name"] for part in parts] == named
    shown = parts[1]["standing"]["ratio"]
    compare(*named, results, False, True)
    assert next(row for row in said()["peaks"]["rows"] if row["metric"] == "throughput")["ratio"] == shown
    lead(*named, 0.05, "", results, True)
    assert said()["works"][0]["peaks"]["leads"]["throughput"]["ratio"] == shown == pytest.approx(ratio, rel=0.07)
    systems = tmp_path / "systems.toml"
    systems.write_text(SYSTEMS)
    cost(named, "", str(systems), None, "", results, True)
    told = said()
    assert [one["system"] for one in told["systems"]] == [{"a": "first", "b": "second"}[word] for word in named]
    first, second = told["systems"]
    assert second["score_value"] / first["score_value"] == pytest.approx(shown)
    assert told["advice"][-1].startswith(f"{second['system']} costs as much as ")


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        (trial(A, 900.0, "s9", 4, Load(duration_s=60.0)), "two kinds of load.*load.duration_s 30 vs. 60;"),
        (trial(replace(A, settings={"fsync": "off"}), 900.0, "s9", 4), "two systems.*fsync"),
    ],
)
def test_a_label_whose_series_are_unlike_is_not_one_side_of_a_comparison(
    other: Record, cause: str, results: str
) -> None:
    stored(Path(results), [other])
    with pytest.raises(InputError, match=cause) as caught:
        compare("a", "b", results, False, False)
    assert "s9" in caught.value.hint


def test_a_trial_is_not_on_both_sides_of_a_comparison(results: str) -> None:
    with pytest.raises(InputError, match="shares 1 trial with s1"):
        compare("s1", "a", results, False, False)


@pytest.mark.parametrize("format", ["text", "md", "html"])
def test_a_report_of_many_records_begins_with_its_contents(
    format: str, results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(trial(B, 700.0, "s8", 5), choice=Choice("select-only", {"scale": "1"}))
    slow = trial(B, 480.0, "s7", 6, Load(rate=500.0, duration_s=30.0, warmup_s=5.0))
    stored(Path(results), [other, slow])
    target = tmp_path / f"r.{format}"
    report([], str(target), format, results)
    text = " ".join(target.read_text().replace("\\", "").split())
    start = text.index("<h1>Contents</h1>") if format == "html" else 0
    said = ["Contents", "2 kinds of work, 4 systems, 5 trials", "1,500/s", "3,000/s", "500/s (sustained)", "700/s"]
    assert all(one in text[start:] for one in said)
    assert text.index("Contents", start) < text.index("2 kinds of work") < text.index("transactions per second")
    if format == "html":
        assert 'href="#study1"' in text and 'id="study1"' in text
    report(["s1", "s2"], str(target), format, results)
    assert "kinds of work" not in target.read_text()
