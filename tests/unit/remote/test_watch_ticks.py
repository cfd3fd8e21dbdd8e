"""When a remote machine is sampled."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest

from ironbench.host.remote import frames
from ironbench.host.remote.link import Link
from ironbench.host.remote.watch import LONGEST_S, SHORTEST_S, Watch
from ironbench.model.observation import Source

SOURCES = (Source("cpu.stat", "file", "/proc/stat"), Source("processes.all", "file", "/proc/*/stat", 5.0))


def test_a_connection_that_is_slower_than_the_start_of_the_window_delays_the_first_sample_of_all_files() -> None:
    one = Watch(cast(Link, None), SOURCES, 4.0)
    one._groups = frames.groups(SOURCES, SHORTEST_S, LONGEST_S)
    now = time.monotonic()
    one._due = [now - 1.5] * 2  # since `begin`
    one._origin_s = origin_s = now - 0.5
    one._follow(origin_s)
    assert asyncio.run(one._next_due()) == 1, "at once, and every group"
    assert [due_s - origin_s for due_s in one._due] == pytest.approx([SHORTEST_S, LONGEST_S]), "then in step"
