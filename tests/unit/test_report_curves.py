"""Labels in charts are readable, and pictures show as much as pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from factories import DISK, MEMORY, Shelf, example, record, suspect, sweep
from labfactory import lab, studied, trials

from ironbench.model.record import Record
from ironbench.report import formats
from ironbench.report.document import report as report_of
from ironbench.report.formats import png as image
from ironbench.report.sections.curves import curves
from ironbench.study.runstudy import studies
from ironbench.study.study import Study


def study_of(trials: list[Record]) -> Study:
    return studies(trials, Shelf(trials))[0]


def throughput(trials: list[Record]) -> dict[str, Any]:
    return curves(study_of(trials))[0].specification


def labels(specification: dict[str, Any]) -> list[dict[str, Any]]:
    peaks: list[dict[str, Any]] = specification["datasets"]["peaks"]
    return peaks


def top(specification: dict[str, Any]) -> float:
    [most] = {
        layer["encoding"]["y"]["scale"]["domain"][1]
        for layer in specification["layer"]
        if "scale" in layer["encoding"]["y"]
    }
    return float(most)


@pytest.mark.parametrize(
    "trials",
    [
        example(),
        sweep(DISK, 3000, 6) + sweep(MEMORY, 3100, 6, seed=9),
        sweep(DISK, 3000, 6, clients=(1, 1000)) + sweep(MEMORY, 9000, 6, clients=(1, 1000)),
        [record(throughput=500.0)],
    ],
    ids=["far apart", "nearly the same", "logarithmic", "one trial"],
)
def test_a_peak_s_figure_stands_above_every_mark_and_inside_the_chart(trials: list[Record]) -> None:
    specification = throughput(trials)
    marks = [row["value"] for row in specification["datasets"]["trials"]]
    for peak in labels(specification):
        assert max(marks) * 1.05 < peak["label"] < top(specification)


def test_figures_of_peaks_at_the_same_number_of_clients_stand_over_each_other() -> None:
    first, second = labels(throughput(sweep(DISK, 3000, 6) + sweep(MEMORY, 9000, 6, seed=2)))
    assert first["clients"] == second["clients"]
    assert second["label"] - first["label"] > 0.05 * second["value"], "the higher one's figure is the upper one"


def test_figures_of_peaks_far_from_each_other_share_a_row() -> None:
    few, many = sweep(DISK, 3000, 0, clients=(1, 2)), sweep(MEMORY, 9000, 6, clients=(10, 20))
    first, second = labels(throughput(few + many))
    assert abs(first["clients"] - second["clients"]) > 5
    assert first["label"] == second["label"]


def test_a_picture_has_the_sections_of_the_page_with_their_titles() -> None:
    trials = example()
    said = json.dumps(image.picture([image._page(report_of(study_of(trials)))]))
    for title in ("CPU time by program", "Backend wait events", "Devices", "Over time", "Latency"):
        assert f'"text": "{title}"' in said
    assert "hollow point: confirmation trial" in said


def test_a_picture_explains_every_mark_of_its_charts() -> None:
    plan = lab({"log": ("disk", "memory")})
    of_lab = trials(plan, {"log=disk": 1000.0, "log=memory": 1900.0}, observed=True)
    of_lab[3] = suspect(of_lab[3])
    of_runs = sweep(DISK, 3000, 6) + sweep(MEMORY, 9000, 6, seed=2)
    for study in (study_of(of_runs), studied(plan, of_lab)):
        content = report_of(study)
        text = " ".join(json.dumps(image.picture([image._page(content)]), ensure_ascii=False).split('", "'))
        for chart in (chart for section in content.sections for chart in section.charts):
            assert chart.note in text, chart.id
            assert all(key.label in text for key in chart.legend), chart.id
    assert "? flagged" in text and "grey area: equivalent within" in text
    assert "solid line: data" in json.dumps(image.picture([image._page(report_of(study_of(of_runs)))]))


@pytest.mark.long
def test_pictures_of_the_whole_report_are_drawn() -> None:
    trials = example()
    assert formats.get("svg")(studies(trials, Shelf(trials))).decode().count("confirmation trial") >= 3
