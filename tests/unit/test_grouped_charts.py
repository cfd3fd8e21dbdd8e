"""Grouped bars: configurations of two factors by their values, and I/O latencies by role on emulated devices."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from factories import DISK, MEMORY, record
from labfactory import lab, studied, trials

from ironbench.model.record import Record
from ironbench.model.system import Device, Partition
from ironbench.report.charts.base import Chart
from ironbench.report.charts.grouped import value_bars, value_queries
from ironbench.report.document import report as report_of
from ironbench.report.formats.png import svg as lab_svg
from ironbench.report.sections import sections
from ironbench.report.sections.devices import role_latency
from ironbench.study.device_io import RoleLatency, role_latencies
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.words import THIN

FACTORS = {"SSDs": ("2", "4", "6"), "tables": ("raw", "compressed")}


def emulated(system=DISK, mean_s: float = 0.004, reads_per_s: float = 100.0, **more: float) -> Record:
    metrics = {
        "device_read_latency_s{role=data}": mean_s,
        "device_read_latency_p99_s{role=data}": 3 * mean_s,
        "device_reads_per_s{role=data}": reads_per_s,
        "device_read_size_bytes{role=data}": 131072.0,
    }
    return record(on_device(system, "data", "temp"), 1, 10.0, metrics=metrics | more)


def on_device(system, *roles: str):
    device = Device("hdd-10k", tuple(Partition(role, 1 << 30, f"/d/{role}") for role in roles), "ext4", "ram")
    return replace(system, layout=replace(system.layout, devices=(device,)))


def charts_of(latencies: Sequence[RoleLatency]) -> list[Chart]:
    (one,) = studies([record()])
    return role_latency(replace(one, details=replace(one.details, role_latencies=tuple(latencies))))


def study(full: bool = True) -> Study:
    plan = lab(FACTORS, blocks=2, metric="query_time_geomean_s", full=full)
    found = [
        replace(
            one,
            metrics={
                "query_time_geomean_s": 8.0 / int(one.cell.levels["SSDs"]),
                "query_time_s{query=q01}": 16.0 / int(one.cell.levels["SSDs"]) + one.block,
                "query_time_s{query=q02}": 1.0,
            },
        )
        for one in trials(plan, {setup.cell.name: 1.0 for setup in plan.setups})
    ]
    return studied(plan, found)


def test_two_factors_of_a_full_design_are_bars_in_groups_and_every_query_has_them_by_the_second_factor() -> None:
    found = study()
    (whole,) = value_bars(found.levels)
    assert whole.title == "Geometric mean of query times by SSDs and tables"
    assert [row[0] for row in whole.table.texts] == ["SSDs=2", "SSDs=4", "SSDs=6"]
    assert whole.table.texts[0][1].replace(THIN, " ").startswith("4.00 s")
    raw, compressed = value_queries(found.levels)
    assert [raw.title, compressed.title] == ["Query times, tables=raw", "Query times, tables=compressed"]
    assert [key.label for key in raw.legend] == ["SSDs=2", "SSDs=4", "SSDs=6"]
    axes = {str(chart.specification["layer"][0]["encoding"]["y"]["scale"]) for chart in (raw, compressed)}
    assert axes == {"{'domain': [0, 9.0]}"}, "both charts have one scale"
    assert {"findings", "queries"} <= {section.id for section in sections(found)}


@pytest.mark.parametrize("other", [study(full=False), None])
def test_other_designs_have_no_such_groups(other: Study | None) -> None:
    found = other.levels if other else None
    assert value_bars(found) == [] and value_queries(found) == []


def test_io_of_emulated_devices_is_timed_by_role_and_direction() -> None:
    temp = {
        "device_write_latency_s{role=temp}": 0.02,
        "device_write_latency_p99_s{role=temp}": 0.05,
        "device_writes_per_s{role=temp}": 50.0,
    }
    slow = [emulated(**temp), replace(emulated(mean_s=0.006, **temp), block=1)]
    found = role_latencies([("disk", slow), ("ssd", [emulated(MEMORY, 0.001)])])
    assert [(one.name, one.what) for one in found] == [
        ("disk", "data read"),
        ("ssd", "data read"),
        ("disk", "temp write"),
    ]
    (chart,) = charts_of(found)
    plain = [cell.replace(THIN, " ") for cell in chart.table.texts[0]]
    assert plain == ["data read, disk", "5.00 ms", "4.00 to 6.00 ms", "15.0 ms", "100/s", "131 kB"]
    assert "temp write, disk: 20.0 ms" in chart.alt.replace(THIN, " ")


def test_a_log_that_lies_with_the_data_is_told_once() -> None:
    both = emulated()
    # Read a moment later, so that the rate differs a little.
    same = {name.replace("role=data", "role=log"): value * 1.001 for name, value in both.metrics.items()}
    assert [one.what for one in role_latencies([("one", [emulated(**same)])])] == ["data read"]
    own = replace(emulated(**same), system=on_device(DISK, "data", "log"))
    assert [one.what for one in role_latencies([("two", [own])])] == ["data read", "log read"]


def test_flushes_of_a_log_are_told_beside_its_writes_for_commits_wait_for_them() -> None:
    log = {
        "device_flush_latency_s{role=log}": 0.0085,
        "device_flush_latency_p99_s{role=log}": 0.03,
        "device_flushes_per_s{role=log}": 70.0,
    }
    own = replace(emulated(**log), system=on_device(DISK, "data", "log"))
    *_, flush = role_latencies([("disk", [own])])
    assert (flush.what, flush.mean_s.centre, flush.size_bytes) == ("log flush", 0.0085, None)
    (chart,) = charts_of((flush,))
    assert "WAL flush, disk" in str(chart.table)


def test_a_disk_beside_a_card_are_points_on_a_logarithmic_axis_for_a_bar_of_the_card_would_not_be_seen() -> None:
    def chart(slow_s: float):
        return charts_of(role_latencies([("disk", [emulated(mean_s=slow_s)]), ("card", [emulated(MEMORY, 0.0001)])]))[0]

    far, near = chart(0.01), chart(0.001)
    assert far.unit == "ms, logarithmic" and far.legend[0].mark == "circle"
    marks = [layer["mark"]["type"] for layer in far.specification["layer"]]
    assert marks == ["rule", "point"] and far.note.startswith("The mean latencies are over") and "Bars" not in far.note
    assert near.unit == "ms" and near.specification["layer"][0]["mark"]["type"] == "bar"


def test_real_devices_whose_roles_cannot_be_told_apart_and_few_ios_are_left_out() -> None:
    layout = replace(emulated().system.layout, devices=())
    real = replace(passed_through(), system=replace(emulated().system, layout=layout))
    assert role_latencies([("disk", [real]), ("idle", [emulated(reads_per_s=0.1)])]) == ()
    assert charts_of(()) == []


def test_a_device_whose_requests_the_kernel_passes_through_is_told_without_what_its_process_counts() -> None:
    (one,) = role_latencies([("free", [passed_through()])])
    assert (one.what, one.mean_s.centre, one.p99_s) == ("data read", 0.004, None)
    (chart,) = charts_of((one,))
    cells = dict(zip(chart.table.head, chart.table.texts[0], strict=True))
    assert cells["mean incl. kernel queue"].replace(THIN, " ") == "4.00 ms"
    assert not any(letter.isdigit() for letter in cells["p99 excl. kernel queue"])


def passed_through() -> Record:
    one = emulated()
    return replace(one, metrics={name: value for name, value in one.metrics.items() if "p99" not in name})


def test_a_report_of_runs_on_emulated_devices_shows_their_io_by_role() -> None:
    (found,) = studies([emulated()])
    (section,) = [section for section in sections(found) if section.id == "devices"]
    assert "role-latency" in [chart.id for chart in section.charts]


def test_a_picture_of_a_lab_has_its_queries_and_groups_as_wide_as_their_own_bars() -> None:
    import re

    drawn = lab_svg([report_of(study())]).decode()
    assert "Query times relative to" in drawn
    # The overall chart has two bars per group, others more. With shared positions, its groups would be half empty.
    bar = r'aria-label="group: SSDs[^"]*"[^>]*d="M[-\d.]+,[-\d.]+h([\d.]+)'
    bars = [float(width) for width in re.findall(bar, drawn)]
    assert len(bars) == 6 and min(bars) > 20
