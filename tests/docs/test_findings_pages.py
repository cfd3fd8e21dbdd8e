"""`make findings` replaces the measured part of a page with a lab's records and keeps the text around it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from labfactory import lab, studied, trials

from ironbench.report.cell import TableCell
from ironbench.report.charts.base import Table
from ironbench.report.page import Section

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("findings", ROOT / "scripts" / "findings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plan = lab({"log": ("disk", "memory")}, blocks=8)
    records = trials(plan, {setup.cell.name: 1000.0 + 150 * place for place, setup in enumerate(plan.setups)})
    monkeypatch.setattr(module, "study_of", lambda _: studied(plan, records))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PAGES", tmp_path)
    (tmp_path / "docs" / "img").mkdir(parents=True)
    monkeypatch.setattr(sys, "argv", ["findings.py", "page"])
    return module


def test_the_measured_part_is_written_anew_and_the_words_around_it_stay(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Words\n\n<!-- measured -->\nearlier figures\n<!-- end -->\n\nIn words.\n")
    for _ in range(2):
        assert script.main() == 0
        page = (tmp_path / "page.md").read_text()
        assert page.startswith("# Words\n\n<!-- measured -->\n") and page.endswith("\n<!-- end -->\n\nIn words.\n")
        assert "earlier figures" not in page and page.count("## Findings") == 1
        assert "(../img/page.png)" in page
    assert (tmp_path / "docs" / "img" / "page.png").read_bytes().startswith(b"\x89PNG")


def test_the_measured_part_has_verdicts_then_the_main_parts_then_caveats(
    script: ModuleType,
) -> None:
    bottlenecks = Table(("configuration", "bottleneck"), (("disk", "The bottleneck is WAL."),))
    long = Table(("query", *(f"system {number}" for number in range(15))), (("q01", *("1",) * 15),))
    head = ("configuration and wait class", "time per transaction", "% of transaction time")
    shares = (("disk: CPU", 0.6), ("disk: locks", 0.004))
    time = Table(head, tuple((name, TableCell(0.001, "s"), TableCell(share, "share")) for name, share in shares))
    metrics = Table(
        ("metric", "ratio", "CI"), (("mean response time", "0.5x", "–"), ("observers' CPU time", "1x", "–"))
    )
    page = replace(
        script.report(script.study_of(None)),
        sections=(
            Section("others", "Other metrics", tables=(("", metrics),)),
            Section("time", "Where the time goes", "By wait class.", tables=(("", time), ("", bottlenecks))),
            Section("queries", "Query by query", tables=(("Every query", long),)),
        ),
    )
    written = script.measured(page, "page.png")
    assert [line for line in written.splitlines() if line.startswith("#")] == [
        "## Where the time goes",
        "### Bottlenecks",
        "## Other metrics",
        "## Before you use these numbers",
    ]
    assert "| metric | ratio to the baseline | CI |" in written and "observers" not in written
    assert "disk: CPU" in written and "disk: locks" not in written
    assert "left out" in written and "system 14" not in written


PAGES = [page for page in sorted((ROOT / "docs" / "results").glob("*.md")) if page.stem != "index"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_page_has_its_lab_and_a_place_for_what_is_measured(page: Path) -> None:
    text = page.read_text()
    assert text.count("<!-- measured -->") == text.count("<!-- end -->") == 1
    (lab,) = (ROOT / "labs").rglob(f"{page.stem}.toml")
    assert str(lab.relative_to(ROOT)) in text
