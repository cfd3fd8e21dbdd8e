"""Profiles in reports of labs and runs, in `explain`, and in the sentence on the bottleneck."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from factories import Shelf, record
from profiles import AFTER, BEFORE, BURN, ProfiledLab, profiled

from ironbench.model.profile import SampledStack
from ironbench.records.evidence import PROFILE
from ironbench.report import formats
from ironbench.report.answer import answer
from ironbench.report.breakdown import breakdown_table
from ironbench.report.cell import TableCell
from ironbench.report.page import Section
from ironbench.report.sections import sections
from ironbench.report.wording.profile import result
from ironbench.study.labstudy import lab_study
from ironbench.study.runstudy import studies
from ironbench.study.study import Study

LOCK = "main;serve;execute;heap_update;XLogInsert;LWLockAcquire;PGSemaphoreLock;futex_wait_[k];schedule_[k]"
EVIL = "f<script>alert(1)</script>|`*"


def study_of(lab: ProfiledLab) -> Study:
    return lab_study(lab.lab, lab.records, lab.shelf)


def shown(study: Study) -> Section:
    (found,) = (one for one in sections(study) if one.id == "profile")
    return found


@pytest.fixture(scope="module")
def found() -> Study:
    return study_of(profiled({BURN: 20e-6}, {LOCK: 30e-6}))


def test_the_functions_that_explain_most_are_listed_with_their_intervals(found: Study) -> None:
    _, frames = shown(found).tables[0]
    first, second, *_ = frames.rows
    assert [row[0] for row in (first, second)] == ["futex_wait (kernel)", "burn"]
    difference, interval = second[4:6]
    assert isinstance(difference, TableCell) and difference.value == pytest.approx(20e-6, rel=0.3)
    assert isinstance(interval, TableCell) and interval.low is not None and interval.high is not None
    assert interval.low < 20e-6 < interval.high and interval.confidence == 0.95
    assert second[7] == "yes" and len(frames.rows) <= 10


def test_the_wait_for_a_lock_is_shown_by_activity_and_by_kernel_path(found: Study) -> None:
    _, activities = shown(found).tables[1]
    _, kernel = shown(found).tables[2]
    assert activities.rows[0][:2] == ("WAL insertion", "engine, waiting")
    assert kernel.rows[0][:2] == ("futex", "engine, waiting")


def test_the_difference_is_divided_from_the_top_down(found: Study) -> None:
    _, parts = shown(found).tables[3]
    wheres = [row[:3] for row in parts.rows]
    assert wheres.index(("engine, waiting", "", "")) + 2 == wheres.index(
        ("engine, waiting", "WAL insertion", "PGSemaphoreLock")
    )
    assert ("engine, on CPU", "other", "burn") in wheres


def test_the_answer_names_the_function_with_the_largest_significant_difference(found: Study) -> None:
    assert re.search(
        r"With extension=on, a transaction spends .+ more in futex_wait \(kernel, called through XLogInsert",
        answer(found).limit,
    )


def test_an_answer_names_no_function_if_none_differs_significantly() -> None:
    found = study_of(profiled({}))
    assert answer(found).limit == ""
    (explained,) = found.explanations
    assert explained.profile is not None and explained.profile.main is None
    assert shown(found).sentences == (result(explained.profile),)


def test_a_difference_that_only_the_correction_makes_insignificant_is_named_with_its_interval() -> None:
    found = shown(study_of(profiled({BURN: 3e-6}, seed=5)))
    _, frames = found.tables[0]
    assert [row[7] for row in frames.rows] == ["no", "no"]
    (interval,) = (row[5] for row in frames.rows if row[0] == "burn")
    assert isinstance(interval, TableCell) and interval.low is not None and interval.low > 0
    assert "burn" in found.sentences[0]


def test_the_breakdown_has_a_row_for_each_function_that_differs_significantly(found: Study) -> None:
    (one,) = found.explanations
    names = [row[1] for row in breakdown_table(one).rows if row[0] == "function"]
    assert names == ["futex_wait (kernel) (engine, waiting)", "burn (engine, on CPU)"]


def test_with_two_blocks_the_section_names_functions_without_intervals() -> None:
    section = shown(study_of(profiled({BURN: 20e-6}, blocks=2)))
    assert "at least 3 blocks" in section.sentences[0]
    assert all(row[7] == "unknown" for row in section.tables[0][1].rows)


def test_a_report_of_runs_lists_the_functions_of_each_system() -> None:
    one = record(metrics={"transactions": 1000.0}, files={PROFILE: "0" * 64})
    stacks = [
        SampledStack("cpu", "engine", "postgres", "", "main;XLogInsert", "", 300, 3.0),
        SampledStack("cpu", "engine", "postgres", "", "main;read_[k]", "", 100, 1.0),
    ]
    (found,) = studies([one], Shelf([one], profiles={one.id: stacks}))
    (name, frames), (_, activities), _ = shown(found).tables
    assert name == one.system.label
    assert [row[0] for row in frames.rows] == ["XLogInsert", "read (kernel)", "main"]
    assert isinstance(frames.rows[0][2], TableCell) and frames.rows[0][2].value == pytest.approx(3e-3)
    assert isinstance(frames.rows[0][3], TableCell) and frames.rows[0][3].value == pytest.approx(0.75)
    assert activities.rows[0][0] == "WAL insertion"


def test_without_profiles_there_is_no_section() -> None:
    lab = profiled({})
    lab.records = [replace(one, files={}) for one in lab.records]
    study = study_of(lab)
    assert not study.details.profiles and "profile" not in {one.id for one in sections(study)}


@pytest.mark.parametrize("format", ["html", "md", "text", "csv", "json"])
def test_every_format_shows_the_functions(found: Study, format: str) -> None:
    text = formats.get(format)([found]).decode().replace("\\", "")
    assert "burn" in text and "futex_wait" in text


def test_the_document_has_every_difference_in_base_units(found: Study) -> None:
    (lab,) = json.loads(formats.get("json")([found]))["labs"]
    profile = lab["explanations"][0]["profile"]
    assert profile["frames"][1]["name"] == "burn" and 0 < profile["frames"][1]["low_s"] < 20e-6
    assert {one["configuration"] for one in lab["profiles"]} == {BEFORE, AFTER}


def test_a_flame_graph_of_differences_is_as_wide_as_the_slower_configuration(found: Study) -> None:
    graph, *of_each = shown(found).flames
    assert [one.subject for one in of_each] == [BEFORE, AFTER] and not graph.subject
    whole, *bars = graph.bars
    assert whole.parent == -1 and whole.time_s == pytest.approx(of_each[1].bars[0].time_s, rel=1e-6)
    for place, bar in enumerate(graph.bars):
        assert sum(one.time_s for one in bars if one.parent == place) <= bar.time_s * (1 + 1e-9)


def test_only_significant_differences_have_a_strong_colour(found: Study) -> None:
    graph = shown(found).flames[0]
    strong = {bar.name for bar in graph.bars if bar.strength > 0.3}
    assert {"burn", "futex_wait", "PGSemaphoreLock"} <= strong and "f1" not in strong
    assert {bar.kind for bar in graph.bars if bar.name == "burn"} == {"more"}
    assert not [bar for bar in shown(study_of(profiled({}))).flames[0].bars if bar.strength > 0.3]


def test_own_times_of_a_flame_graph_add_up_to_the_whole(found: Study) -> None:
    for graph in shown(found).flames[1:]:
        assert sum(time_s for _, time_s in graph.paths()) == pytest.approx(graph.bars[0].time_s)


def test_the_page_draws_only_bars_that_can_be_seen(found: Study) -> None:
    graph = shown(found).flames[1]
    assert 0 < len(graph.data) <= len(graph.bars)
    assert all(parent < place for place, (parent, *_) in enumerate(graph.data))


@pytest.mark.parametrize("format", ["html", "md"])
def test_a_function_name_cannot_break_a_page(format: str) -> None:
    found = study_of(profiled({f"main;serve;{EVIL}": 50e-6}))
    text = formats.get(format)([found]).decode()
    assert "f<script>alert" not in text
