"""Answers of another machine, converted to the form and time of local samples."""

from __future__ import annotations

import pytest

from ironbench.host.remote import frames
from ironbench.host.remote.frames import Frame
from ironbench.model.observation import Source

SOURCES = (
    Source("cpu.stat", "file", "/proc/stat"),
    Source("disk.data", "file", "/sys/dev/block/8:0/stat"),
    Source("dirty.meminfo", "file", "/proc/meminfo", 5.0),
    Source("memory.meminfo", "file", "/proc/meminfo"),
    Source("processes.all", "file", "/proc/*/stat", 5.0),
)


def test_lines_of_grep_become_files_as_the_core_samples_them() -> None:
    text = b"/proc/stat:cpu 1 2\n/proc/stat:ctxt 3\n/sys/dev/block/8:0/stat: 7 8\n/proc/12/stat:12 (a: b) S 1\n"
    assert frames.contents(text, SOURCES) == {
        "cpu.stat": b"cpu 1 2\nctxt 3\n",
        "disk.data": b" 7 8\n",
        "processes.all": b"==> /proc/12/stat\n12 (a: b) S 1\n",
    }


def test_a_file_of_two_observers_is_read_once() -> None:
    script = frames.script(frames.groups(SOURCES, 1.0, 2.0))
    assert script.count("/proc/meminfo") == 1
    assert set(frames.contents(b"/proc/meminfo:Dirty: 1 kB\n", SOURCES)) == {"dirty.meminfo", "memory.meminfo"}


@pytest.mark.parametrize("offset_s", [0.0, 1234.5, -1e6])
def test_a_sample_is_placed_within_its_stated_error_whatever_the_other_clock_shows(offset_s: float) -> None:
    taken, truths = [], []
    for number in range(30):
        sent_s = number * 1.0 + 0.0037 * (number % 5)
        way_s = 0.002 + 0.003 * (number % 7) + (4.0 if number == 12 else 0.0)
        read_s = sent_s + way_s
        truths.append(read_s)
        there_s = int((read_s - offset_s) * 100) / 100
        taken.append(Frame(sent_s, read_s + 0.004, there_s, there_s, 0, b""))
    for place, truth_s in zip(frames.placed(taken), truths, strict=True):
        assert abs(place.at_s - truth_s) <= place.error_s + 1e-9
        assert place.error_s < 0.02, "one late frame does not blur its time"
