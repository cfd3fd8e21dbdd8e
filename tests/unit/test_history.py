"""`ironbench history`: points, separate lines, verdicts, and every format."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MEMORY, OLTP, Shelf, record, suspect

from ironbench.cli.history import history
from ironbench.errors import InputError
from ironbench.model.note import note
from ironbench.model.record import SLICES, Record, Status
from ironbench.model.system import System
from ironbench.records import Store
from ironbench.report import formats
from ironbench.report.history import page
from ironbench.study.archive import EMPTY
from ironbench.study.history import HistoryLine, histories

pytest.importorskip("ironbench._core", reason="the core is not built")


def run(night: int, level: float, blocks: int = 6, system: System = DISK, **fields: object) -> list[Record]:
    """Returns one run of a night, with trials within 1%."""
    dice = random.Random(night)
    day = f"2026-10-{night + 1:02d}"
    tags = {"commit": f"c{night}"}
    return [
        record(
            system, 8, level * dice.lognormvariate(0, 0.01), block=block, series=f"{day.replace('-', '')}T0200-{night}",
            started_at=f"{day}T02:{block:02d}:00", **{"tags": tags, **fields},
        )
        for block in range(blocks)
    ]  # fmt: skip


def nights(levels: Sequence[float], **fields: object) -> list[Record]:
    return [one for night, level in enumerate(levels) for one in run(night, level, **fields)]


def line(records: Sequence[Record], by: str = "date", metric: str = "") -> HistoryLine:
    (found,) = histories(records, EMPTY, metric, by).all
    (only,) = found.lines
    return only


SLOWER = [1000.0] * 8 + [920.0] * 4


def test_a_change_is_found_with_its_size_interval_and_direction() -> None:
    (change,) = line(nights(SLOWER)).changes
    assert change.place == 8
    assert change.low < 0.92 < change.high
    assert change.worse is True


def test_of_a_response_time_more_is_worse() -> None:
    (change,) = line(nights(SLOWER), metric="response_time_mean_s").changes
    assert change.ratio > 1
    assert change.worse is True


def test_a_point_is_a_run_or_all_trials_of_a_tag() -> None:
    records = nights([1000.0] * 3)
    assert [point.name for point in line(records).points] == ["2026-10-01", "2026-10-02", "2026-10-03"]
    assert [point.name for point in line(records, "commit").points] == ["c0", "c1", "c2"]
    again = [replace(one, tags={"commit": "c0"}) for one in records]
    (point,) = line(again, "tag:commit").points
    assert len(point.trials) == 18


def test_points_without_repeats_are_shown_and_carry_no_verdict() -> None:
    only = line(nights(SLOWER, blocks=1))
    assert len(only.points) == 12
    assert not any(point.judged for point in only.points)
    assert only.changes == ()
    assert only.open_question is not None and only.open_question.values["points"] == 0


def test_a_line_parts_where_the_configuration_changes_and_names_what_changed() -> None:
    records = nights([1000.0] * 8) + [one for night in range(8, 16) for one in run(night, 1200.0, system=MEMORY)]
    (found,) = histories(records, EMPTY).all
    first, second = found.lines
    assert (len(first.points), len(second.points)) == (8, 8)
    assert first.changes == second.changes == ()
    assert [(row.name, row.values) for row in second.differs] == [("layout.log", ("not set", "/shm/l"))]


def test_slices_make_another_line_than_trials_and_no_change_point() -> None:
    turned = {"method": SLICES, "turns_since": "2026-10-09T02:00:00"}
    records = nights([1000.0] * 8) + [one for night in range(8, 16) for one in run(night, 1100.0, **turned)]
    (found,) = histories(records, EMPTY).all
    assert [(len(one.points), one.changes) for one in found.lines] == [(8, ()), (8, ())]
    assert [(row.name, row.values) for row in found.lines[1].differs] == [("method", ("trials", "slices"))]


def test_other_work_data_or_load_has_a_history_of_its_own() -> None:
    other = replace(OLTP, options={"scale": "8", "weight": "light"})
    records = nights([1000.0] * 2) + nights([1000.0] * 2, choice=other)
    assert [one.work for one in histories(records, EMPTY).all] == [
        "igen-oltp scale=4 weight=light", "igen-oltp scale=8 weight=light",
    ]  # fmt: skip


def test_unusable_trials_and_those_without_the_tag_are_left_out_and_counted() -> None:
    records = nights([1000.0] * 3)
    records[0] = replace(records[0], status=Status.VOIDED)
    records[1] = replace(records[1], tags={})
    found = histories(records, EMPTY, by="commit")
    assert found.left_out == (note("unusable-left-out", trials=1), note("untagged-left-out", trials=1, tag="commit"))


def test_cpu_time_of_suspect_trials_carries_no_verdict() -> None:
    metric = "cpu_server_s_per_transaction"
    records = [suspect(replace(one, metrics={**one.metrics, metric: 1e-3})) for one in nights(SLOWER)]
    assert line(records, metric=metric).open_question == note("suspect-cpu")


def test_a_spike_is_named_and_is_no_change() -> None:
    only = line(nights([1000.0] * 5 + [1400.0] + [1000.0] * 6))
    assert (only.changes, only.spikes) == ((), (5,))


def test_too_few_points_beside_one_that_stands_apart_carry_no_verdict() -> None:
    only = line(nights([1000.0] * 5 + [1400.0]))
    assert only.unconfirmed
    assert only.open_question is not None and only.open_question.values["points"] == 5


def test_a_mean_leaves_out_the_point_that_is_not_confirmed() -> None:
    only = line(nights([*SLOWER, 1400.0]))
    assert only.unconfirmed
    assert only.mean(*only.segments[-1]) == pytest.approx(920.0, rel=0.01)


@pytest.mark.parametrize("format", formats.of_any_page())
def test_every_format_tells_the_change(format: str) -> None:
    written = formats.of_page(format)(page(histories(nights(SLOWER), EMPTY)))
    assert written
    if format not in ("png",):
        assert b"2026-10-09" in written
    if format == "json":
        (found,) = json.loads(written)["histories"][0]["lines"]
        assert found["changes"][0]["at"] == "2026-10-09"


def test_text_of_others_is_escaped_on_the_page() -> None:
    evil = "<script>alert(1)</script>"
    records = [replace(one, tags={"commit": evil + one.tags["commit"]}) for one in nights(SLOWER)]
    assert evil.encode() not in formats.of_page("html")(page(histories(records, EMPTY, by="commit")))


@pytest.fixture
def results(tmp_path: Path) -> str:
    for one in nights(SLOWER):
        Store(tmp_path).keep(one)
    return str(tmp_path)


def test_the_verb_prints_text_and_writes_what_the_files_name_says(
    results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert history(by="commit", results=results) == 0
    assert "Throughput worse since c8 (2026-10-09): " in capsys.readouterr().out
    assert history(results=results, output=str(tmp_path / "h.html")) == 0
    assert (tmp_path / "h.html").read_bytes().startswith(b"<!doctype html>")


def test_records_of_labs_among_the_results_are_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for one in nights(SLOWER):
        Store(tmp_path / "labs" / one.series).keep(one)
    assert history(results=str(tmp_path)) == 0
    assert "Throughput worse since 2026-10-09: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"by": "time"}, "is not a valid order"),
        ({"by": "tag:"}, "is not a valid order"),
        ({"by": "tag:branch"}, "have no tag `branch`"),
        ({"metric": "speed"}, "metric"),
        ({"metric": "failed"}, "failed"),
        ({"output": "h.doc"}, "has no known suffix"),
        ({"format": "html"}, "needs an output file"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_a_way_out(given: dict[str, str], cause: str, results: str) -> None:
    with pytest.raises(InputError, match=cause) as refused:
        history(**given, results=results)  # type: ignore[arg-type]
    assert refused.value.hint


def test_points_that_carry_no_verdict_are_not_counted_as_searched() -> None:
    records = [*nights([1000.0] * 8), *run(8, 1000.0, blocks=1), *run(9, 1000.0, blocks=2)]
    (sentence,) = page(histories(records, EMPTY)).answer.points
    assert "no change point in 8 points (2 more points have too few trials)" in sentence.text


def test_a_cache_that_ideal_fits_to_the_data_begins_no_new_line() -> None:
    free = replace(DISK, settings={}, memory_bytes=None, ideal=("data",))
    before, after = run(0, 1000.0, system=free, engine="e1"), run(1, 1000.0, system=free, engine="e2")
    settings = [{"shared_buffers": str(pages), "work_mem": "4096"} for pages in (74_560, 74_561)]
    shelf = Shelf(engines={f"e{n}": {"version": "18.1", "settings": each} for n, each in enumerate(settings, 1)})
    (found,) = histories([*before, *after], shelf).all
    assert len(found.lines) == 1
    declared = [replace(one, system=DISK) for one in (*before, *after)]
    (found,) = histories(declared, shelf).all
    assert len(found.lines) == 2, "a cache that was declared is a part of the configuration"


def test_a_point_whose_trials_are_all_flagged_is_marked_everywhere() -> None:
    records = nights(SLOWER)
    last = [one for one in records if one.series.endswith("-11")]
    records = [suspect(one) if one in last or one is records[0] else one for one in records]
    found = histories(records, EMPTY)
    shown = page(found)
    (chart,) = shown.sections[0].charts
    assert [row["point"] for row in chart.specification["datasets"]["flagged"]] == [last[0].started_at[:10]]
    remarks = [row[-1] for row in chart.table.texts]
    assert "every trial flagged" in remarks[-1] and remarks[0] == "1 flagged"
    assert shown.caveats == (
        "7 trials flagged, including all trials at 1 point (marked with ?); `ironbench show` lists the reasons.",
    )
    points = shown.fields()["histories"][0]["lines"][0]["points"]
    assert [point["flagged"] for point in points] == [False] * 11 + [True]
