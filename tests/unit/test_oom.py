"""A death by lack of memory is reported as such."""

from __future__ import annotations

from pathlib import Path

from ironbench.host.cgroup_limits import OutOfMemoryKills
from ironbench.host.tree import Tree


def test_kills_since_are_said_and_earlier_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    counts = tmp_path / "proc" / "vmstat"
    counts.write_text("pgfault 10\noom_kill 7\ndrop_pagecache 0\n")
    starved = OutOfMemoryKills(Tree(tmp_path))
    assert starved.words() == ""
    counts.write_text("pgfault 12\noom_kill 8\n")
    assert starved.words() == "out of memory: the kernel killed a process on this machine during the trial"
    counts.write_text("oom_kill 9\n")
    assert "killed 2 processes" in starved.words()


def test_a_kernel_that_does_not_count_them_says_nothing(tmp_path: Path) -> None:
    assert OutOfMemoryKills(Tree(tmp_path)).words() == ""
