"""I/Os by latency and size: counts over all trials at the peak, in charts and text."""

import itertools
from dataclasses import replace

import pytest
from factories import Shelf, record

from ironbench.model.observation import Counted
from ironbench.model.system import Device, Layout, Partition
from ironbench.report.sections import sections
from ironbench.report.sections.devices import device_io
from ironbench.study.device_io import Distribution, distributions, stored_on
from ironbench.study.runstudy import studies
from ironbench.words import THIN

READS = Counted("device_read_latency_s{role=data}", (100e-6, 109e-6, 800e-6), (90.0, 8.0, 2.0))
SIZES = Counted("device_write_size_bytes{role=log}", (8192.0, 131072.0), (3.0, 1.0))


def of(*counted: Counted, trials: int = 1) -> dict[str, Distribution]:
    made = [record(block=block) for block in range(trials)]
    return {f"{one.metric} {one.part}": one for one in distributions(made, Shelf(made, io=counted))}


def test_shares_of_all_trials_together_add_up_to_one() -> None:
    found = of(READS, SIZES, trials=3)
    reads = found["device_read_latency_s data"]
    assert reads.count == 300
    assert sum(share for _, share in reads.points) == pytest.approx(1)


def test_buckets_without_any_lie_between_as_zero() -> None:
    sizes = of(SIZES)["device_write_size_bytes log"]
    assert sizes.points == ((8192, 0.75), (16384, 0), (32768, 0), (65536, 0), (131072, 0.25))


def test_the_name_of_an_emulated_device_has_its_iops_as_a_number() -> None:
    device = Device("aws-gp3(iops=3KB)", (Partition("data", 1 << 30, "/mnt/device"),), "ext4", "ram")
    made = record()
    made = replace(made, system=replace(made.system, layout=Layout(data="/mnt/device/db", devices=(device,))))
    assert stored_on(made, "data", {}) == ("emulated aws-gp3(iops=3000)", "/mnt/device")


def test_a_quantile_is_at_most_a_bucket_too_high() -> None:
    reads = of(READS)["device_read_latency_s data"]
    assert 100e-6 <= reads.quantile(0.5) <= 120e-6
    assert 800e-6 <= reads.quantile(0.99) <= 960e-6


def test_the_first_bucket_is_drawn_as_wide_as_any_other() -> None:
    made = [record()]
    (study,) = studies(made, Shelf(made, io=(READS, SIZES)))
    latency, size = device_io(study)
    for chart, step in ((latency, 2**0.25), (size, 2.0)):
        edges = [row["edge"] for row in chart.specification["datasets"]["io"]]
        assert [high / low for low, high in itertools.pairwise(edges)] == pytest.approx([step] * (len(edges) - 1))


def test_a_chart_says_in_words_and_figures_what_it_draws() -> None:
    made = [record()]
    (study,) = studies(made, Shelf(made, io=(READS, SIZES)))
    latency, size = device_io(study)
    assert latency.title == "Read latency" and "p99" in latency.alt
    assert size.table.texts[0][1:] == ("4", f"8{THIN}KiB", f"128{THIN}KiB", f"128{THIN}KiB")
    assert "device-io" in {section.id for section in sections(study)}


def test_real_devices_count_nothing_and_have_no_section() -> None:
    made = [record()]
    (study,) = studies(made, Shelf(made))
    assert "device-io" not in {section.id for section in sections(study)}


def test_what_another_version_counted_is_left_out() -> None:
    assert list(of(READS, Counted("device_read_depth{role=data}", (1.0,), (5.0,)))) == ["device_read_latency_s data"]
