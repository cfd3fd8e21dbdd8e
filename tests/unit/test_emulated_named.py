"""Every page that shows a result from an emulated device says that it is emulated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import DISK, Shelf, record, unfolded
from labfactory import lab, said, studied, trials

from ironbench.catalogue import prices
from ironbench.model.note import Note
from ironbench.model.record import CAN_LOSE_DATA, EMULATED, Record
from ironbench.model.system import Device, Layout
from ironbench.report import compare_page
from ironbench.report.document import report
from ironbench.study.archive import EMPTY
from ironbench.study.compare import compare
from ironbench.study.cost import StoredTrials as CostOf
from ironbench.study.cost import costs
from ironbench.study.history import histories
from ironbench.study.runstudy import studies
from ironbench.study.subjects import marked, subjects

NOTE = Note(EMULATED, {"text": "storage was emulated (aws-gp3), its times are a model's"})


def of(label: str, emulated: bool, throughput: float) -> list[Record]:
    system = replace(DISK, label=label)
    found = [record(system, 8, throughput + place, block=place, id=f"{label}-{place}") for place in range(3)]
    return [replace(one, warnings=(NOTE,)) for one in found] if emulated else found


def test_a_system_of_a_run_is_called_emulated_in_headline_cards_and_charts() -> None:
    records = [*of("disk", False, 1000.0), *of("gp3", True, 4000.0)]
    (study,) = studies(records, Shelf(records))
    page = report(study)
    texts = [page.title, *page.answer.sentences, *(card.name for card in page.cards)]
    assert all("gp3 (emulated)" in text for text in texts if "gp3" in text)
    assert any("gp3 (emulated)" in card.name for card in page.cards) and "gp3 (emulated)" in page.title
    charts = [chart.title for section in page.sections for chart in section.charts]
    assert charts and all("emulated" in title and "disk" not in title for title in charts)


@pytest.mark.parametrize("level", ["memory", "disk"])
def test_a_cell_of_a_lab_is_called_emulated_in_answer_cards_and_charts(level: str) -> None:
    plan = lab({"log": ("disk", "memory")})
    measured = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, 0.02, observed=True)
    study = studied(plan, [replace(one, warnings=(NOTE,)) if level in one.cell.name else one for one in measured])
    names = {"memory": "WAL in memory", "disk": "WAL on disk"}
    other = names["disk" if level == "memory" else "memory"]
    assert f"{names[level]} (emulated)" in said(study) and f"{other} (emulated)" not in said(study)
    page = report(study)
    assert any(f"{names[level]} (emulated)" in str(fact) for card in page.cards for fact in card.facts)
    charts = [chart.title for section in page.sections for chart in section.charts]
    assert charts and all(f"emulated: {names[level]}" in title for title in charts)


def test_nothing_is_called_emulated_that_was_measured() -> None:
    plan = lab({"log": ("disk", "memory")})
    study = studied(plan, trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, 0.02, observed=True))
    assert "emulated" not in said(study)
    assert not any("emulated" in chart.title for section in report(study).sections for chart in section.charts)


def test_compare_names_the_emulated_side() -> None:
    a, b = subjects([*of("disk", False, 1000.0), *of("gp3", True, 4000.0)])
    text = unfolded(compare_page.page(compare(a, b)))
    head = text.partition("No verdict")[0]
    assert "A: disk; B: gp3 (emulated)" in head
    assert "B (emulated) is 4.00x as fast as A" in head


def test_a_name_is_marked_once_and_an_emulated_layout_counts_without_a_warning() -> None:
    device = Layout("/d", devices=(Device("gp3", "aws-gp3", ()),))
    assert marked("x", [record(replace(DISK, layout=device))]) == "x (emulated)"
    assert marked("emulated gp3", of("gp3", True, 1.0)) == "emulated gp3"
    assert marked("x", of("x", False, 1.0)) == "x"


def test_a_price_comparison_says_that_a_result_is_emulated_or_can_lose_data() -> None:
    lossy = Note(CAN_LOSE_DATA, {"text": "fsync=off can lose data"})
    records = {"gp3": [replace(one, warnings=(NOTE, lossy)) for one in of("gp3", True, 4000.0)]}
    found = costs(None, prices.shipped(), CostOf(records, {}, Shelf([])))
    assert [row.caveats for row in found.rows] == [(NOTE, lossy)]


def test_a_line_of_a_history_is_called_emulated() -> None:
    (found,) = histories(of("gp3", True, 4000.0), EMPTY).all
    assert [line.name for line in found.lines] == ["gp3 (emulated)"]
