"""A trial of days on a watched machine uses no more memory than its stored samples."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest

from ironbench.host.remote import frames, watch
from ironbench.host.remote.frames import Frame
from ironbench.host.remote.link import Link
from ironbench.host.remote.watch import LONGEST_S, SHORTEST_S, Watch
from ironbench.model.observation import Source

SOURCES = (Source("cpu.stat", "file", "/proc/stat"), Source("processes.all", "file", "/proc/*/stat", 5.0))
TEXT = b"/proc/stat:cpu 1 2\n" + b"/proc/7/stat:7 (a) S 1\n" * 40


def test_frames_are_thinned_evenly_and_those_at_the_ends_of_the_window_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_KEEP_BYTES", 100 * len(TEXT))
    one = Watch(cast(Link, None), SOURCES)
    one._groups = frames.groups(SOURCES, SHORTEST_S, LONGEST_S)
    assert [period_s for period_s, _ in one._groups] == [1.0, 2.0]
    one._origin_s = 60.0
    at_s, taken, samples = 0.0, 0, 0
    while at_s < 5000.0:
        one._keep(Frame(at_s, at_s, at_s, at_s, taken % 2, TEXT))
        samples += 1 + taken % 2
        taken += 1
        at_s += one._groups[0][0]
    assert one._bytes == sum(len(frame.text) for frame in one._frames) <= 100 * len(TEXT)
    times = [frame.sent_s for frame in one._frames]
    assert {58.0, 59.0, 60.0, 61.0, 62.0} <= set(times), "the start of the window"
    assert times[0] == 0.0 and times[-1] > 4900.0
    for group in (0, 1):
        of_it = [frame.sent_s for frame in one._frames if frame.group == group and frame.sent_s > 70.0]
        gaps = [after - before for before, after in pairwise(of_it)]
        assert max(gaps) <= 4 * min(gaps)
    seen = one._watched(0.0, 0.0)
    assert seen.dropped == samples - sum(map(len, seen.samples.values())) > 0
    assert len(seen.samples["cpu.stat"]) == len(one._frames)
