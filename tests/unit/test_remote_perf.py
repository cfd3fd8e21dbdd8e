"""The output of `perf script` on a server's machine becomes stacks like those of the core's sampler."""

from __future__ import annotations

import pytest

from ironbench.host.remote.perf import Stacks
from ironbench.model.profile import CPU, ENGINE

OUTPUT = """
postgres 1000.500000: \n\
\tffffffff81a3f4aa read ([kernel.kallsyms])
\tffffffffc03f4aaa ext4_read ([ext4])
\t          a3f4aa pgwin(int, char const*) (/usr/lib/postgresql/15/bin/postgres)
\t          a3f4ab main (/usr/lib/postgresql/15/bin/postgres)
\tffffffffffffffff [unknown] ([unknown])

io worker 1 1000.600000: \n\
\t           1234a [unknown] (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t            2222 [unknown] ([unknown])

postgres 1000.700000: \n\
\tffffffff81a3f4aa read ([kernel.kallsyms])
\tffffffffc03f4aaa ext4_read ([ext4])
\t          a3f4aa pgwin(int, char const*) (/usr/lib/postgresql/15/bin/postgres)
\t          a3f4ab main (/usr/lib/postgresql/15/bin/postgres)

postgres 1002.000000: \n\
\t          a3f4ab main (/usr/lib/postgresql/15/bin/postgres)
"""


def test_samples_of_the_window_are_counted_by_thread_and_stack() -> None:
    counted = Stacks(100, 1000.0, 1002.0)
    counted.read(OUTPUT.split("\n"))
    found = counted.profile(0.25)
    first, second = found.stacks
    assert (first.kind, first.role, first.thread, first.samples, first.seconds) == (CPU, ENGINE, "postgres", 2, 0.02)
    assert first.stack == "main;pgwin(int, char const*);ext4_read_[k];read_[k]"
    assert (second.thread, second.stack) == ("io worker 1", "[unknown];[libc.so.6]")
    assert (found.cpu_s, found.lost) == (0.25, 0)
    assert found.unresolved_share == pytest.approx(2 / 10)


def test_without_samples_there_is_an_empty_profile() -> None:
    counted = Stacks(99, 0.0, 1.0)
    counted.read([])
    assert counted.profile(0.0).stacks == () and counted.profile(0.0).unresolved_share == 0.0
