"""Warnings of a trial whose watched machine stopped answering."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import cast

import pytest

from ironbench.host.remote import watch
from ironbench.host.remote.frames import Frame
from ironbench.host.remote.link import Link
from ironbench.host.remote.watch import Watch
from ironbench.model.observation import Source


class Silent:
    """A machine with an unplugged cable: it neither accepts nor refuses connections."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def process(self, command: str) -> None:
        self.asked.set()
        await asyncio.Event().wait()


def test_a_machine_that_is_silent_at_the_end_of_a_trial_was_lost_since_its_last_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "_LAST_S", -0.8)
    machine = Silent()
    seen_from_here = Watch(cast(Link, machine), (Source("cpu.stat", "file", "/proc/stat"),), 10.0)
    seen_from_here.begin()
    assert machine.asked.wait(10)
    start_s = time.monotonic() - 10.0
    for at_s in (start_s, start_s + 1.0):
        seen_from_here._frames.append(Frame(at_s, at_s, 500.0 + at_s, 500.0 + at_s, 0, b"/proc/stat:cpu 1 2\n"))
    seen = seen_from_here.end(start_s)
    assert len(seen.samples["cpu.stat"]) == 2
    (gap,) = watch.gap_notes(seen, 10.0)
    assert gap.values["times"] == 1 and gap.values["lost_s"] == pytest.approx(9.0, abs=0.1)
