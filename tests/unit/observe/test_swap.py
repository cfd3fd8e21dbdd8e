"""Swapping is counted in pages of the machine that was read."""

from __future__ import annotations

import os

import pytest

from ironbench.model.observation import Sample
from ironbench.trial.observe.memory import OBSERVER


def _samples(meminfo: str, mapped: int | None) -> dict[str, list[Sample]]:
    counts = [f"pswpin {10 * second}\npswpout {20 * second}\n" for second in range(3)]
    counts = [text if mapped is None else f"nr_mapped {mapped}\n{text}" for text in counts]
    return {
        "memory.meminfo": [Sample(float(second), meminfo.encode()) for second in range(3)],
        "memory.vmstat": [Sample(float(second), text.encode()) for second, text in enumerate(counts)],
    }


@pytest.mark.parametrize("page_bytes", [4096, 16384, 65536])
def test_what_was_swapped_is_counted_in_pages_of_the_machine_that_was_read(page_bytes: int) -> None:
    """Both files are read one after the other, and a few pages may be mapped in between."""
    seen = OBSERVER.parse(_samples(f"Mapped: {3000 * page_bytes // 1024} kB\n", 3100), 2.0)
    assert seen.metrics["swap_in_bytes_per_s"] == pytest.approx(10 * page_bytes)
    assert seen.metrics["swap_out_bytes_per_s"] == pytest.approx(20 * page_bytes)
    series = {one.name: one.value for one in seen.series}
    assert series["swap_out_bytes_per_s"] == pytest.approx([20 * page_bytes] * 2)


def test_a_container_whose_files_tell_of_different_machines_has_the_pages_of_this_one() -> None:
    seen = OBSERVER.parse(_samples("Mapped: 44128 kB\n", 1_000_000), 2.0)
    assert seen.metrics["swap_in_bytes_per_s"] == pytest.approx(10 * os.sysconf("SC_PAGE_SIZE"))


@pytest.mark.parametrize("mapped", [None, 0])
def test_where_nothing_tells_the_size_of_a_page_it_is_that_of_this_machine(mapped: int | None) -> None:
    seen = OBSERVER.parse(_samples("MemFree: 8 kB\n", mapped), 2.0)
    assert seen.metrics["swap_in_bytes_per_s"] == pytest.approx(10 * os.sysconf("SC_PAGE_SIZE"))
