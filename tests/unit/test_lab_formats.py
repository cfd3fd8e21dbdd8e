"""Every format contains a lab's question, answer and evidence, and user text cannot break it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from labfactory import lab, studied, trials
from test_report_formats import EVIL, Page

from ironbench.model.note import text_note
from ironbench.model.record import Status
from ironbench.report import formats, theme
from ironbench.report.sections import sections
from ironbench.study.study import Study


def study(**factors: tuple[str, ...]) -> Study:
    plan = lab(factors or {"log": ("disk", "memory", "ssd")}, blocks=8)
    means = {setup.cell.name: 1000.0 + 150 * place for place, setup in enumerate(plan.setups)}
    records = trials(plan, means)
    lost = records[4].block  # lost on every side, because a block lost on one side would prevent a verdict
    records = [
        replace(one, status=Status.FAILED, metrics={}, causes=(text_note("server died"),)) if one.block == lost else one
        for one in records
    ]
    return studied(plan, records)


@pytest.fixture(scope="module")
def page() -> str:
    return formats.get("html")([study()]).decode()


def test_every_chart_of_the_page_has_its_place_its_words_and_its_figures(page: str) -> None:
    found = Page(page)
    charts = next(json.loads(text) for attributes, text in found.scripts if attributes.get("id") == "charts")
    places = {a["id"]: a for _, a in found.elements if a.get("class") == "chart"}
    assert set(places) == set(charts)
    assert {"study0-chart-effects", "study0-chart-points", "study0-chart-by-block"} <= set(charts)
    assert all(len(str(attributes["aria-label"])) > 30 for attributes in places.values())


def test_no_bar_hides_its_data_every_trial_is_a_point() -> None:
    made = study()
    (chart,) = [chart for part in sections(made) for chart in part.charts if chart.id == "points"]
    usable = sum(len(cell.usable) for cell in made.cells)
    assert len(chart.specification["datasets"]["trials"]) == usable == 21
    (chart,) = [chart for part in sections(made) for chart in part.charts if chart.id == "effects"]
    assert len(chart.specification["datasets"]["blocks"]) == sum(finding.blocks for finding in made.findings)


def test_both_themes_know_every_colour_of_a_lab(page: str) -> None:
    charts = next(text for attributes, text in Page(page).scripts if attributes.get("id") == "charts")
    assert set(re.findall(r'"@(\w+)"', charts)) <= set(theme.LIGHT)


def test_the_lab_file_is_inside_the_page(page: str) -> None:
    assert "[workload]" in page


@pytest.mark.parametrize("format", ["html", "md", "text", "json"])
def test_question_and_answer_come_first(format: str) -> None:
    text = formats.get(format)([study()]).decode().replace("\\", "")
    question, said = text.index("Is the log what holds"), text.index("WAL on disk (95% CI")
    assert question < said < text.index("[workload]")


def test_what_a_user_wrote_cannot_become_part_of_a_labs_page() -> None:
    made = study(**{EVIL: (EVIL, "b")})
    made = replace(made, lab=replace(made.lab, question=EVIL, name=EVIL, source=EVIL))
    found = Page(formats.get("html")([made]).decode())
    assert not [tag for tag, _ in found.elements if tag == "img"]
    assert len(found.scripts) == 3
    markdown = formats.get("md")([made]).decode()
    assert "<img" not in re.sub(r"(?ms)^```.*?^```$", "", markdown).replace("\\<img", "")
    assert "\x1b" not in formats.get("text")([made]).decode() + markdown


def test_the_document_holds_findings_in_base_units() -> None:
    (found,) = json.loads(formats.get("json")([study()]))["labs"]
    first = found["findings"][0]
    assert {"metric", "cell", "baseline", "ratios", "ratio", "low", "high", "conclusion", "detectable"} <= set(first)
    assert first["conclusion"] == "faster"
    assert found["answer"]
    assert found["lab"]["source"].startswith("question")
    assert [cell["levels"] for cell in found["cells"]] == [{"log": "disk"}, {"log": "memory"}, {"log": "ssd"}]


@pytest.mark.long
def test_a_labs_pictures_are_drawn_without_a_browser() -> None:
    pytest.importorskip("vl_convert")
    made = study()
    assert formats.get("png")([made]).startswith(b"\x89PNG")
    assert "WAL in memory" in formats.get("svg")([made]).decode()


def test_an_empty_lab_is_written_without_error() -> None:
    plan = lab({"log": ("disk", "memory")})
    for format in formats.of_any_page():
        assert formats.get(format)([studied(plan, [])])
