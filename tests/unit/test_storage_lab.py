"""A lab of storage shows the table that users of disk benchmarks know, with its configurations side by side."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from labfactory import lab, studied, trials

from ironbench.model.record import Record
from ironbench.model.system import Choice
from ironbench.report import formats
from ironbench.report.cell import TableCell
from ironbench.report.sections import sections
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.stats.ratio import paired
from ironbench.study.study import Study
from ironbench.words import THIN

READ = "storage_bytes_per_s{profile=seq1m-q8t1-read}"
WRITE = "storage_bytes_per_s{profile=rnd4k-q32t1-write}"
RATES = {"generic": {READ: 682.8e6, WRITE: 282.3e6}, "vendor's": {READ: 1547.7e6, WRITE: 419.7e6}}


def study(rates: Mapping[str, Mapping[str, float]] = RATES, blocks: int = 6, spread: float = 0.0) -> Study:
    """Returns a study of a lab. `spread`: by how much the second configuration differs from block to block."""
    plan = lab({"driver": tuple(rates)}, blocks=blocks, metric=READ)
    work = Choice("storage", {})
    plan = replace(plan, setups=tuple(replace(setup, choice=work) for setup in plan.setups))
    found = [
        replace(one, choice=work, metrics=_varied(rates[one.cell.levels["driver"]], one, spread))
        for one in trials(plan, {setup.cell.name: 1.0 for setup in plan.setups})
    ]
    return studied(plan, found)


def _varied(rates: Mapping[str, float], one: Record, spread: float) -> dict[str, float]:
    factor = 1 + spread * (one.block % 2) * (one.cell.levels["driver"] != "generic")
    return {name: rate * factor for name, rate in rates.items()}


def test_a_ratio_of_a_storage_lab_has_a_confidence_interval_over_its_blocks() -> None:
    made = study(spread=0.1)
    ((_, table),) = next(one for one in sections(made) if one.id == "storage").tables
    cell = table.rows[0][3]
    assert isinstance(cell, TableCell) and cell.low is not None and cell.high is not None
    (finding,) = made.findings
    expected = paired([ratio for _, ratio in finding.ratios]).with_interval(0.05)
    assert (cell.value, cell.low, cell.high) == pytest.approx(expected)
    assert cell.confidence == 0.95 and cell.low < cell.value < cell.high


def test_two_blocks_are_too_few_for_a_confidence_interval() -> None:
    ((_, table),) = next(one for one in sections(study(blocks=2, spread=0.1)) if one.id == "storage").tables
    cell = table.rows[0][3]
    assert isinstance(cell, TableCell) and cell.value is not None and cell.low is None


def test_a_labs_cells_stand_beside_each_other_in_the_known_table() -> None:
    section, latency = [section for section in sections(study()) if section.id.startswith("storage")]
    ((_, table),), details = section.tables, latency.tables
    assert table.head == ("MB/s", "driver=generic", "driver=vendor's", "driver=vendor's / driver=generic")
    rows = [tuple(cell.replace(THIN, " ") for cell in row) for row in table.texts]
    assert rows[0] == ("SEQ1M Q8T1 read", "682.8", "1,547.7", "2.27x (2.27 to 2.27)")
    assert rows[1][:3] == ("RND4K Q32T1 write", "282.3", "419.7")
    assert [name for name, _ in details] == ["driver=generic", "driver=vendor's"]
    assert [chart.id for chart in section.charts] == ["sequential-read", "random-write"]


def test_tables_have_every_cell_and_charts_say_how_many_they_leave_out() -> None:
    many = {f"d{place}": RATES["generic"] for place in range(10)}
    section, latency = [section for section in sections(study(many)) if section.id.startswith("storage")]
    ((_, table),), details = section.tables, latency.tables
    assert len(table.head) == 1 + 10 + 9 and len(details) == 10
    assert section.lead.endswith("The charts leave out 2 of 10 configurations; the tables include all configurations.")
    assert {len(chart.legend) for chart in section.charts} == {8}
    assert not any("leave out" in section.lead for section in sections(study()))


def test_a_test_is_called_as_in_the_known_table() -> None:
    assert metric_words(READ) == "bandwidth of SEQ1M Q8T1 read"
    assert metric_words("storage_iops{profile=unheard-of}") == "I/Os per second of unheard-of"


def test_the_picture_and_the_page_of_such_a_lab_can_be_drawn() -> None:
    made = study()
    assert formats.get("png")([made]).startswith(b"\x89PNG")
    assert b"SEQ1M Q8T1" in formats.get("html")([made])
