"""Compares an emulated token bucket with the kernel's token bucket: PostgreSQL runs on an emulated volume and on a
throttled loop device.

Both devices have ext4 and the same limit on reads per second; the data are half cached, and the WAL is on a
zero-latency device. The kernel's limit is set with control groups of version 1
(Documentation/admin-guide/cgroup-v1/blkio-controller.rst, "Throttling/Upper limit policy") for a loop device on a file
in memory, which has no latency. The model limits reads and writes together. The kernel limits them separately, and
cannot limit writeback by its own threads. A first, uncounted run on the model therefore shows how reads and writes
share the limit, and the kernel gets the same shares. Takes about 20 minutes; `IRONBENCH_BENCH_PAIRS=3` runs three
pairs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import oltp
from bench.figures import report, within
from bench.oltp import Seen
from bench.pairs import interleaved, ratio
from bench.series import number_from_environment

IOPS = 1000
MODEL = f"aws-gp3(iops={IOPS})"
RATE = 125 << 20
"""Bytes per second, as in the model."""
BLKIO = Path("/sys/fs/cgroup/blkio")
MEMORY = Path("/dev/shm")
LOG = ("--log", "free")
PAIRS = 6
SHARE = 0.10


def main() -> None:
    if not (BLKIO / "blkio.throttle.read_iops_device").exists():
        raise RuntimeError(f"no block throttling of control groups, version 1, in {BLKIO}")
    pairs = number_from_environment("IRONBENCH_BENCH_PAIRS", PAIRS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ironbench-bench-", dir=MEMORY)))
        block, point = stack.enter_context(oltp.loop_device(folder))
        group = stack.enter_context(_limited(block, round(_emulated().rate("reads"))))
        emulated, plain = interleaved(pairs, _emulated, lambda: oltp.loaded_anew(point, *LOG, group=group))
    found = ratio([one.throughput for one in emulated], [one.throughput for one in plain])
    for name, runs in (("model", emulated), ("kernel", plain)):
        reads, writes = (sum(one.rate(what) for one in runs) / len(runs) for what in ("reads", "writes"))
        report(f"{name}: reads and writes of the data's device per second", f"{reads:.0f} and {writes:.0f} ({IOPS})")
    report(f"half-cached igen-oltp, {MODEL} / the kernel's limits", found, within(1 - SHARE, 1 + SHARE), str(found))


def _emulated() -> Seen:
    return oltp.driven(MODEL, *oltp.TOTAL, *LOG, "--capacity", str(oltp.CAPACITY))


@contextmanager
def _limited(block: str, reads: int) -> Iterator[Path]:
    """Creates a control group with the model's limits for a block device. `reads`: I/Os per second that are reserved
    for reads."""
    device = Path(block).stat().st_rdev
    number = f"{os.major(device)}:{os.minor(device)}"
    group = BLKIO / f"ironbench-bench-{os.getpid()}"
    group.mkdir()
    try:
        limits = {"read_iops": reads, "write_iops": max(1, IOPS - reads), "read_bps": RATE, "write_bps": RATE}
        for what, most in limits.items():
            (group / f"blkio.throttle.{what}_device").write_text(f"{number} {most}\n")
        yield group
    finally:
        group.rmdir()


if __name__ == "__main__":
    main()
