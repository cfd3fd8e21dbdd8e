"""`list` and `show` as users call them: every number has a unit, and every name can be found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, record, suspect, sweep
from served import LAB, begun, stocked

from ironbench.cli.list import KINDS, list_
from ironbench.cli.show import show
from ironbench.errors import InputError
from ironbench.records import Store, foreign

pytest.importorskip("ironbench._core", reason="the core is not built")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("results")
    fast = record(
        replace(DISK, label="quick"), 1, 100_000.0, id="fast", series="fast-series",
        metrics={"transactions": 3_000_001.0, "cache_hit_share": 0.5, "data_bytes": 640e6},
    )  # fmt: skip
    for one in [*map(suspect, sweep(DISK, 3000, 6, clients=(1, 4), repeats=1)), fast]:
        Store(directory).keep(one)
    begun(directory)
    foreign.take_in("pgbench", [Path(__file__).parents[1] / "data" / "foreign" / "pgbench.txt"], "", directory)
    return str(directory)


def test_without_a_kind_the_kinds_are_named(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert list_("", results, False) == 0
    out = capsys.readouterr().out
    assert all(kind in out for kind in KINDS)
    assert list_("", results, True) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["kinds"]] == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_that_is_named_can_be_listed(kind: str, results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert list_(kind, results, True) == 0
    assert json.loads(capsys.readouterr().out)[kind]


def test_times_are_shown_in_a_unit_that_fits(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    list_("records", results, False)
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("fast "))
    assert "40.0\u202fµs" in row
    assert "100,000/s" in row


def test_piped_rows_are_one_line_each(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    list_("metrics", results, False)
    rows = len(capsys.readouterr().out.splitlines())
    list_("metrics", results, True)
    assert rows == 1 + len(json.loads(capsys.readouterr().out)["metrics"])


def test_a_trial_is_shown_with_status_warnings_and_units(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    trial = next(one.id for one in Store(Path(results)).all() if one.status == "suspect")
    show(trial, results, False, False)
    suspicious = capsys.readouterr().out
    assert "status: flagged" in suspicious
    assert "97% busy and may be the bottleneck: increase `--threads` [client-saturated]" in suspicious
    assert suspicious.index("client-saturated") < suspicious.index("throughput ↑")
    show("fast", results, False, False)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.replace("\u202f", " ").splitlines()]
    for line in ("throughput ↑ 100,000/s", "transactions 3,000,001", "cache_hit_share 50%", "data_bytes 640 MB"):
        assert line in lines


def test_a_label_is_shown_as_its_trials_with_their_warnings(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    show("log on disk", results, False, False)
    out = capsys.readouterr().out
    assert "client-saturated, 5 of 5 trials" in out
    assert out.count("flagged") == 5
    assert "/s" in out and "ms" in out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("igen-olpt", "workload igen-oltp"),
        ("postgras", "engine postgres"),
        ("throughputt", "metric throughput"),
        ("pg_wait", "observer pg_waits"),
        ("log on dsik", "label log on disk"),
        ("fast-serie", "series fast-series"),
        ("fsat", "record fast"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_of_any_kind(typed: str, meant: str, results: str) -> None:
    with pytest.raises(InputError) as told:
        show(typed, results, False, False)
    assert meant in told.value.hint


def test_a_name_like_nothing_is_answered_with_where_to_look(results: str) -> None:
    with pytest.raises(InputError) as told:
        show("zzzzzz", results, False, False)
    assert "ironbench list" in told.value.hint


def test_a_part_of_a_metric_is_explained_by_the_metric(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    show("throughput{script=pay}", results, False, False)
    assert "name: throughput" in capsys.readouterr().out


def test_trials_of_labs_are_listed_with_their_lab_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = str(stocked(tmp_path))
    assert list_("labs", results, True) == 0
    (lab,) = json.loads(capsys.readouterr().out)["labs"]
    assert lab["name"] == LAB and lab["what"] and lab["trials"]
    assert list_("records", results, True) == 0
    of_lab = [row["name"] for row in json.loads(capsys.readouterr().out)["records"] if row["lab"] == LAB]
    assert of_lab
    assert show(of_lab[0], results, False, True) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [of_lab[0]]
