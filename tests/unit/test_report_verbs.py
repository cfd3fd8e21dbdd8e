"""`report` and `compare` as users call them, on a real store."""

from __future__ import annotations

import array
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MEMORY, Shelf, record, sweep

from ironbench.cli.compare import compare
from ironbench.cli.lead import lead
from ironbench.cli.record import export
from ironbench.cli.report import report
from ironbench.errors import InputError
from ironbench.model.driven import Driven
from ironbench.model.note import text_note
from ironbench.model.observation import Series
from ironbench.model.record import Record, Status
from ironbench.records import Store

pytest.importorskip("ironbench._core", reason="the core is not built")


def stored(directory: Path, records: Sequence[Record]) -> str:
    from ironbench._core import Histogram

    store, shelf = Store(directory), Shelf(records)
    for one in records:
        histogram = Histogram()
        for thousand in range(1, 200):
            histogram.record(thousand * 10_000)
        seconds = {name: array.array("d", column).tobytes() for name, column in shelf.seconds(one.id).items()}
        series = [Series(name, tuple(c["t_s"]), tuple(c["value"])) for name, c in shelf.observed(one.id).items()]
        histograms = {"response_time": histogram} if seconds else {}
        store.keep(one, Driven(seconds=seconds, series=tuple(series), histograms=histograms))
    return str(directory)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> str:
    trials = sweep(DISK, 3000, 6, clients=(1, 4), repeats=1) + sweep(MEMORY, 9000, 6, clients=(1, 4), repeats=1)
    dead = record(
        replace(DISK, label="gone"),
        1,
        None,
        status=Status.FAILED,
        causes=(text_note("no such host"),),
        id="dead",
        series="dead",
    )
    cut = record(
        replace(DISK, label="ended"),
        1,
        900.0,
        status=Status.CUT_SHORT,
        causes=(text_note("interrupted"),),
        series="cut",
    )
    return stored(tmp_path_factory.mktemp("results"), [*trials, dead, cut])


def test_the_format_follows_from_the_files_name(
    results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.html"
    assert report(["log on disk", "log in memory"], str(target), "", results) == 0
    assert capsys.readouterr().out.strip() == str(target)
    text = target.read_text()
    assert text.startswith("<!doctype html>")
    for chart in ("latency", "time-throughput", "time-device_write_bytes_per_s"):
        assert f'id="study0-chart-{chart}"' in text
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_without_a_file_the_report_is_text(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(["log on disk"], "", "", results) == 0
    assert "log on disk peaks at" in capsys.readouterr().out


def test_a_picture_needs_a_file(results: str) -> None:
    with pytest.raises(InputError, match="needs an output file"):
        report(["log on disk"], "", "png", results)


def test_a_directory_that_does_not_exist_is_named_before_any_work(results: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        report([], str(tmp_path / "no" / "r.html"), "", results)


@pytest.mark.parametrize(("name", "cause"), [("no/l.html", "does not exist"), ("l.pdf", "has no known suffix")])
def test_a_file_that_no_lead_can_be_written_to_is_named_before_any_work(name: str, cause: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=cause):
        lead("a", "b", 0.05, str(tmp_path / name), str(tmp_path), False)


def test_an_unknown_ending_is_answered_with_the_formats(results: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        report([], str(tmp_path / "r.pdf"), "", results)
    assert "html" in caught.value.hint


def test_no_records_is_said_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        report([], "", "", str(tmp_path))
    assert "ironbench run" in caught.value.hint


def test_compare_says_ratios_in_text_and_in_json(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("log on disk", "log in memory", results, False, False) == 0
    assert "throughput ↑" in capsys.readouterr().out
    assert compare("log on disk", "log in memory", results, False, True) == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["peaks"]["rows"]}
    assert rows["throughput"]["ratio"] == pytest.approx(3, abs=0.3)


def test_a_side_that_is_the_other_is_refused(results: str) -> None:
    with pytest.raises(InputError, match="with log on disk"):
        compare("log on disk", "log on disk", results, False, False)


def test_a_side_that_never_ran_is_refused_with_its_cause(results: str) -> None:
    with pytest.raises(InputError, match="no such host"):
        compare("dead", "log on disk", results, False, False)


def test_compare_gives_the_answer_and_its_doubts_before_the_numbers(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("log on disk", "log in memory", results, False, False) == 0
    out = capsys.readouterr().out
    order = ["B is ", "No verdict", "Before you use these numbers", "Each side at its peak", "What differs"]
    assert sorted(order, key=out.index) == order


@pytest.mark.parametrize("name", ["seconds.parquet", "observed.parquet", "latency.hlog"])
def test_a_damaged_file_stops_no_report(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    results = stored(tmp_path / "results", sweep(DISK, 3000, 6, clients=(1, 4), repeats=1))
    for one in Store(Path(results)).all():
        path = Store(Path(results)).path(one.id) / name
        path.write_bytes(path.read_bytes()[:-100])
    assert report([], str(tmp_path / "r.html"), "", results) == 0
    assert f"{name} is damaged: " in capsys.readouterr().err
    assert "log on disk" in (tmp_path / "r.html").read_text()


def test_a_label_that_is_also_the_directory_of_its_data_means_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(tmp_path / "results", sweep(replace(DISK, label="duck"), 3000, 6, clients=(1, 4), repeats=1))
    (tmp_path / "duck").mkdir()
    (tmp_path / "nothing").mkdir()
    monkeypatch.chdir(tmp_path)
    assert report(["duck"], "", "", results) == 0
    assert "duck peaks at" in capsys.readouterr().out
    assert export(["duck"], "duck.ibr", results) == 0
    with pytest.raises(InputError, match="contains no lab"):
        report(["nothing"], "", "", results)


def test_percentiles_of_trials_that_do_not_count_are_not_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = record(DISK, 1, 3.0, status=Status.VOIDED, causes=(text_note("no such table"),), id="short", series="short")
    results = stored(tmp_path, [short])
    assert report([], "", "", results) == 0
    text = capsys.readouterr().out
    assert "no such table" in text
    assert "too few" not in text


@pytest.mark.parametrize("verb", [compare, lead])
def test_what_cannot_be_compared_says_why_and_what_would_help(verb: Callable[..., int], results: str) -> None:
    with pytest.raises(InputError) as caught:
        verb("log on disk", "gone", results=results)
    assert "failed: no such host" in caught.value.cause
    assert caught.value.hint == "fix the cause, and repeat the run"
    with pytest.raises(InputError, match="aborted: interrupted") as caught:
        verb("log on disk", "ended", results=results)
    assert "with the same command and `--resume`" in caught.value.hint and "lab resume" in caught.value.hint
