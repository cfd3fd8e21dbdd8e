"""Records of version 0.1 can still be listed, compared, reported and exported."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from ironbench.cli import main
from ironbench.records import Store

BEFORE = Path(__file__).parents[1] / "data" / "records-0.1"
TRIALS = 15


@pytest.fixture
def results(tmp_path: Path) -> Path:
    shutil.copytree(BEFORE, tmp_path / "results")
    return tmp_path / "results"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit) as ended:
        patched.setattr(sys, "argv", ["ironbench", *words])
        main()
    out, err = capsys.readouterr()
    assert ended.value.code in (0, 3), err
    return out


def test_every_earlier_record_is_listed(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(said(capsys, "list", "records", "--results", str(results), "--json"))["records"]
    assert len(rows) == TRIALS
    assert {row["label"] for row in rows} == {"lite", "select", "rated", "queries", "device"}


@pytest.mark.parametrize("label", ["lite", "select", "rated", "queries", "device"])
@pytest.mark.parametrize("format", ["html", "text", "md", "json", "csv"])
def test_earlier_records_are_reported(
    results: Path, label: str, format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = results / f"page.{format}"
    said(capsys, "report", label, "--results", str(results), "--format", format, "-o", str(page))
    assert label in page.read_text()


def test_an_earlier_lab_is_reported_with_its_finding(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = said(capsys, "report", str(results / "lab"), "--format", "md")
    assert "What does a relaxed commit bring?" in page
    assert "off" in page and "full" in page


def test_earlier_records_are_compared(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = said(capsys, "compare", "lite", "select", "--different-work", "--results", str(results))
    assert "throughput" in page


def test_earlier_records_are_exported_and_imported(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = results / "select.ibr"
    said(capsys, "record", "export", "select", "--results", str(results), "-o", str(bundle))
    said(capsys, "record", "import", str(bundle), "--results", str(results / "elsewhere"))
    rows = json.loads(said(capsys, "list", "records", "--results", str(results / "elsewhere"), "--json"))["records"]
    assert {row["label"] for row in rows} == {"select"}


def test_metrics_that_were_renamed_have_their_names_of_today(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = "run_queue_delay_share", "run_queue_waiting_per_core"
    store = Store(results)
    records = store.all()
    assert any(new in record.metrics for record in records)
    assert not any(old in record.metrics for record in records)
    observed = {name for record in records for name in store.observed(record.id)}
    assert new in observed and old not in observed
    assert old not in said(capsys, "show", records[0].id, "--results", str(results))
