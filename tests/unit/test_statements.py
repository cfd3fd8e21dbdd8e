"""Times of commands in scripts: pooled by configuration, paired by block, shown in every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from factories import Shelf, SortedHistogram, example
from labfactory import lab, trials

from ironbench.model.record import Record, Statement
from ironbench.records import attached, measures
from ironbench.report import formats
from ironbench.report.breakdown import breakdown_table
from ironbench.study.explain import explain
from ironbench.study.labstudy import lab_study
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.words import THIN

ORDER = "select * from orders where id = :id"


def commands(mean_s: float, folder: str = "before", count: int = 100) -> tuple[Statement, ...]:
    texts = ("begin", ORDER, "end", "begin", "update item set n = n + 1", "end")
    means = (1e-4, mean_s, 2e-4, 1e-4, 1e-3, 2e-4)
    return tuple(
        Statement(f"/srv/{folder}/shop.sql", 2 * n, n, text, count, int(n == 2), mean, mean / 10)
        for n, (text, mean) in enumerate(zip(texts, means, strict=True), 1)
    )


def study(plan_means: dict[str, Sequence[float]], evidence: bool = True) -> Study:
    """Returns the study of a lab. `plan_means`: configuration → mean of the one statement that differs, by block."""
    plan = lab({"index": ("with", "without", "other")}, blocks=4)
    records, statements = [], {}
    for one in trials(plan, dict.fromkeys((setup.cell.name for setup in plan.setups), 1000.0)):
        means = plan_means.get(one.cell.name)
        if means is not None:
            whole = commands(means[one.block], folder=one.cell.name)
            one, statements[one.id] = replace(one, statements=whole[1:2]), whole
        records.append(one)
    return lab_study(plan, records, Shelf(records, statements=statements if evidence else {}))


FAST, SLOW = (1e-3, 2e-3, 3e-3, 4e-3), (1e-2, 2e-2, 3e-2, 4e-2)


@pytest.fixture
def found() -> Study:
    return study({"index=with": FAST, "index=without": SLOW})


def test_commands_are_compared_block_by_block_and_told_apart_by_their_place(found: Study) -> None:
    first, other = found.details.timed
    assert [one.text for one in first.statements if one] == [one.text for one in commands(1.0)]
    slow = other.statements[1]
    assert slow is not None and slow.ratio is not None
    assert slow.ratio.ratio == pytest.approx(10.0) and slow.ratio.blocks == 4
    assert slow.ratio.low == pytest.approx(slow.ratio.high), (
        "every block has the same ratio, whatever its machine's mood"
    )
    assert slow.mean_s == pytest.approx(2.5e-2) and (slow.count, slow.failed) == (400, 4)
    assert slow.first_s == pytest.approx(2.5e-3)
    update = other.statements[4]
    assert update is not None and update.ratio is not None and update.ratio.ratio == pytest.approx(1.0)
    assert all(one is not None and one.ratio is None for one in first.statements)


def test_of_records_without_their_files_the_statements_in_them_are_shown() -> None:
    first, other = study({"index=with": FAST, "index=without": SLOW}, evidence=False).details.timed
    assert [one.text for one in first.statements if one] == [ORDER]
    assert other.statements[0] is not None and other.statements[0].ratio is not None


@pytest.mark.parametrize("format", ["html", "md", "text", "csv", "json"])
def test_every_format_of_a_labs_report_shows_times_and_ratios(found: Study, format: str) -> None:
    text = formats.get(format)([found]).decode().replace("\\", "")
    assert ORDER in text
    if format not in ("json", "csv"):
        assert "Response times of index=without relative to index=with: shop.sql:4" in text
        assert "The statements of index=other were not timed, because report_per_statement is off." in text
        assert "no verdict" in text


def test_the_walk_has_both_means_of_a_command_and_shows_where_its_text_is_cut() -> None:
    cells = ("index=with", "index=without")
    plan = lab({"index": ("with", "without")}, blocks=4)
    sides: dict[str, list[Record]] = {name: [] for name in cells}
    for one in trials(plan, dict.fromkeys(cells, 1000.0)):
        means = {"index=with": FAST, "index=without": SLOW}[one.cell.name]
        long = replace(commands(means[one.block])[1], text=f"{ORDER} and {'x' * 80}")
        sides[one.cell.name].append(replace(one, statements=(long,)))
    explained = explain(*((plan.configuration(name), own) for name, own in sides.items()), Shelf(), in_blocks=True)
    (row,) = [row for row in breakdown_table(explained).texts if row[0] == "command"]
    assert row[1].startswith(ORDER) and row[1].endswith("…") and len(row[1]) == 60
    assert [value.replace(THIN, " ") for value in row[2:4]] == ["2.50 ms", "25.0 ms"]


def test_a_lab_without_such_times_says_nothing_of_them() -> None:
    text = formats.get("md")([study({})]).decode()
    assert "statement" not in text.lower().replace("report_per_statement", "")


def test_percentiles_are_of_all_answers_and_of_none_where_some_are_unknown() -> None:
    plan = lab({"index": ("with", "without")}, blocks=2)
    records = [
        replace(one, statements=commands(1e-3)) for one in trials(plan, {"index=with": 1e3, "index=without": 1e3})
    ]
    answers = {one.histogram: SortedHistogram([1e-3] * 75 + [2e-3] * 25) for one in commands(1e-3)}
    for kept, seen in ((answers, 2e-3), ({}, None)):
        (first, _) = lab_study(plan, records, Kept(records, answers=kept)).details.timed
        assert first.statements[1] is not None and first.statements[1].percentiles.get("p95_s") == seen


@dataclass
class Kept(Shelf):
    answers: Mapping[str, SortedHistogram] = field(default_factory=dict)

    def histograms(self, id: str) -> dict[str, SortedHistogram]:
        return super().histograms(id) | dict(self.answers)


def test_runs_show_the_times_at_their_peaks() -> None:
    records = [replace(one, statements=commands(1e-3)) for one in example()]
    first, other = studies(records, Shelf(records))[0].details.timed
    assert first.statements[1] is not None and other.statements[1] is not None
    assert other.statements[1].ratio is not None


def test_passwords_in_commands_do_not_reach_the_record() -> None:
    spoken = "x" * 30 + " alter role app password 'open-sesame-at-the-end-of-a-long-line'"
    row = {"script": "a.sql", "line": 1, "command": 1, "text": spoken, "count": 1, "failed": 0}
    row |= {"mean_s": 1.0, "stdev_s": 0.0}
    assert b"sesame" not in attached.written_timed([row])
    (kept,) = measures.statements(_driven([row]))
    assert "open" not in kept.text
    (read,) = attached.read_timed(attached.written_timed([row]))
    assert read.script == "a.sql" and read.mean_s == 1.0


@pytest.mark.parametrize("change", [{"count": -1}, {"mean_s": -1.0}, {"mean_s": float("inf")}])
def test_a_file_of_impossible_times_is_refused(change: dict[str, float]) -> None:
    import msgspec

    row = {
        "script": "a.sql",
        "line": 1,
        "command": 1,
        "text": "x",
        "count": 1,
        "failed": 0,
        "mean_s": 1.0,
        "stdev_s": 0.0,
    }
    data = msgspec.json.encode([row | change]).replace(b"null", b"1e999")
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        attached.read_timed(data)


def _driven(rows: list[dict[str, object]]):
    from ironbench.model.driven import Driven

    return Driven("2026-01-01T00:00:00", True, summary={"statements": rows})
