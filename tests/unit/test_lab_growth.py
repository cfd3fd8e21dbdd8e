"""Configurations that differ only in clients form curves, with statements on how far each grows."""

from __future__ import annotations

import pytest
from factories import knee
from labfactory import lab, said, studied, trials

from ironbench.report.sections import sections

LOG = {"log": ("disk", "memory")}


def test_cells_that_differ_in_clients_alone_are_drawn_as_curves() -> None:
    plan = lab({"cache": ("warm", "cold"), "clients": ("1", "4", "8")}, blocks=6)
    study = studied(plan, trials(plan, {s.cell.name: 100.0 * s.cell.load.clients for s in plan.setups}))
    assert [curve.name.name for curve in study.growths] == ["cache=warm", "cache=cold"]
    chart = next(chart for part in sections(study) for chart in part.charts if part.id == "growth")
    assert len(chart.specification["datasets"]["trials"]) == 36
    assert not studied(lab(LOG), []).growths


def test_a_curve_of_enough_numbers_of_clients_is_fitted_and_never_followed_beyond_what_was_measured() -> None:
    plan = lab({"clients": ("1", "2", "4", "8", "16")}, blocks=6)
    means = {s.cell.name: knee(s.cell.load.clients, 4000.0, 6) for s in plan.setups}
    study = studied(plan, trials(plan, means))
    (curve,) = study.growths
    assert curve.fit is not None
    assert curve.grows
    assert said(study).startswith("Throughput grows from ")
    assert " at 16 clients, the highest number measured: " in said(study)
    section = next(section for section in sections(study) if section.id == "growth")
    assert max(row["clients"] for row in section.charts[0].specification["datasets"]["curves"]) == pytest.approx(16)
    assert "extrapolated" in section.tables[0][1].texts[0][-1]


@pytest.mark.parametrize(("last", "words"), [(2600.0, "shows no statistically clear change"), (2480.0, "falls")])
def test_a_plateau_is_not_said_to_grow_still(last: float, words: str) -> None:
    plan = lab({"clients": ("1", "2", "4", "8", "16")}, blocks=6)
    at = {1: 1500.0, 2: 1700.0, 4: 2200.0, 8: 2600.0, 16: last}
    study = studied(plan, trials(plan, {s.cell.name: at[s.cell.load.clients] for s in plan.setups}, 0.01))
    (curve,) = study.growths
    assert curve.course is not None and curve.course.enough == 8
    found = said(study)
    assert found.startswith("Throughput grows from ")
    assert f"); beyond that, it {words}: with 16 clients it is " in found


def test_an_answer_about_clients_begins_with_how_far_each_curve_grows_and_then_compares_cells() -> None:
    plan = lab({"cache": ("warm", "cold"), "clients": ("1", "2", "4", "8")}, blocks=6)
    means = {"warm": (1000.0, 1900.0, 3000.0, 3050.0), "cold": (500.0, 450.0, 400.0, 300.0)}
    cells = {s.cell.name: dict(zip((1, 2, 4, 8), means[s.cell.levels["cache"]], strict=True)) for s in plan.setups}
    study = studied(
        plan, trials(plan, {s.cell.name: cells[s.cell.name][s.cell.load.clients] for s in plan.setups}, 0.02)
    )
    found = said(study)
    assert found.startswith("With cache=warm, throughput grows from ")
    assert "With cache=cold, throughput shows no statistically clear growth beyond 1 client (" in found
    assert "; beyond that, it falls: with 8 clients it is 40% lower (" in found
    assert found.index("With cache=cold") < found.index(" paired repeats") and "with more clients" not in found


def test_too_few_blocks_or_numbers_of_clients_do_not_say_how_far_throughput_grows() -> None:
    for counts, blocks in ((("1", "2", "4", "8"), 5), (("1", "4", "8"), 6)):
        plan = lab({"clients": counts}, blocks=blocks)
        study = studied(plan, trials(plan, {s.cell.name: 100.0 * s.cell.load.clients for s in plan.setups}))
        assert study.growths[0].course is None
        assert "Throughput grows" not in said(study)


def test_a_curve_that_falls_is_said_to_fall_in_the_answer() -> None:
    plan = lab({"clients": ("1", "2", "4", "8", "16", "32")}, blocks=6)
    means = {
        s.cell.name: (n := s.cell.load.clients) * 500 / (1 + 0.05 * (n - 1) + 0.01 * n * (n - 1)) for s in plan.setups
    }
    assert "beyond that, it falls" in said(studied(plan, trials(plan, means, 0.01)))
