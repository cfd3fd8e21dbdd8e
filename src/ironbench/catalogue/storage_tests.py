"""The storage tests: the profiles of CrystalDiskMark and KDiskMark, and I/O patterns of databases.

Names are written as in CrystalDiskMark 8. For example, SEQ1M Q8T1 means sequential I/O in blocks of 1 MiB at queue
depth 8 in one thread. Sources: published result texts of CrystalDiskMark 3 to 8; KDiskMark, `src/appsettings.cpp`.

Tests in the sets `default` and `nvme` use KDiskMark's method, which runs fio once for each pass (KDiskMark
`src/helper.cpp`: `--ioengine=libaio --direct=1 --end_fsync=1 --randrepeat=0 --size=1024m --runtime=5`, without
`--time_based`). In the other tests, each pass lasts its full time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ironbench.errors import InputError, nearest, written

KIB = 1024
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Test:
    """A test of the storage workload with one direction of I/O."""

    name: str
    """Name of the test within names of metrics, such as `seq1m-q8t1-read`."""
    title: str
    """Name of the line in tables, such as `SEQ1M Q8T1`."""
    direction: str
    """Direction of the I/Os: `read`, `write` or `mix`."""
    order: str
    """Order of the offsets: `sequential` or `random`."""
    block_bytes: int
    depth: int = 1
    threads: int = 1
    read_percent: int = 100
    sync: str = "none"
    """How each write is made durable: `none`, `fsync`, `fdatasync`, or `dsync` for a file opened with O_DSYNC."""
    cached: bool = False
    """Whether I/Os go through the page cache, as in a table scan. The page cache is emptied before each pass."""
    sustained: bool = False
    """Whether the test is a single long pass instead of several short passes."""
    hot: bool = False
    """Whether all I/Os are served from the page cache. The page cache then contains the whole file, and the device is
    not accessed."""
    blocking: bool = False
    """Whether the test uses one thread with blocking calls. This is the case even if asynchronous I/O is available, so
    that CPU times are comparable."""
    kdiskmark: bool = False
    """Whether the test uses KDiskMark's method. A pass then ends when its time is over, or when each thread has
    transferred the size of the file. A write pass includes a final fsync. Buffers use normal pages. The result is the
    mean of the passes."""


def _pair(order: str, block: int, depth: int, threads: int = 1) -> tuple[Test, Test]:
    size = f"{block // MIB}M" if block >= MIB else f"{block // KIB}K"
    title = f"{'SEQ' if order == 'sequential' else 'RND'}{size} Q{depth}T{threads}"
    name = title.lower().replace(" ", "-")
    read = Test(f"{name}-read", title, "read", order, block, depth, threads, 100)
    return read, replace(read, name=f"{name}-write", direction="write", read_percent=0)


def _sync(kind: str, block: int) -> Test:
    title = f"{'O_DSYNC' if kind == 'dsync' else kind} {block // KIB}K"
    return Test(
        name=f"{kind}-{block // KIB}k",
        title=title,
        direction="write",
        order="sequential",
        block_bytes=block,
        depth=1,
        threads=1,
        read_percent=0,
        sync=kind,
    )


def _cost(block: int) -> tuple[Test, Test]:
    """Returns two tests with the same random reads. The first test reads from the device and bypasses the page cache.
    The second test reads from the page cache."""
    size = f"{block // MIB}M" if block >= MIB else f"{block // KIB}K"
    read = Test(f"cost{size.lower()}-device", f"COST{size} device", "read", "random", block, blocking=True)
    return read, replace(read, name=f"cost{size.lower()}-cached", title=f"COST{size} cached", hot=True)


def _kdiskmark(line: tuple[Test, Test]) -> tuple[Test, Test]:
    read, write = (
        replace(test, name=f"{KDISKMARK}{test.name}", title=f"KDiskMark {test.title}", kdiskmark=True) for test in line
    )
    return read, write


KDISKMARK = "kdm-"
"""Prefix of the names of tests that use KDiskMark's method."""
SEQ1M_Q8 = _pair("sequential", MIB, 8)
SEQ1M_Q1 = _pair("sequential", MIB, 1)
SEQ128K_Q32 = _pair("sequential", 128 * KIB, 32)
RND512K_Q1 = _pair("random", 512 * KIB, 1)
RND4K_Q32 = _pair("random", 4 * KIB, 32)
RND4K_Q32T16 = _pair("random", 4 * KIB, 32, 16)
RND4K_Q1 = _pair("random", 4 * KIB, 1)

SETS: dict[str, tuple[tuple[Test, ...], ...]] = {
    "default": tuple(map(_kdiskmark, (SEQ1M_Q8, SEQ1M_Q1, RND4K_Q32, RND4K_Q1))),
    "nvme": tuple(map(_kdiskmark, (SEQ1M_Q8, SEQ128K_Q32, RND4K_Q32T16, RND4K_Q1))),
    "steady": (SEQ1M_Q8, SEQ1M_Q1, RND4K_Q32, RND4K_Q1),
    "steady-nvme": (SEQ1M_Q8, SEQ128K_Q32, RND4K_Q32T16, RND4K_Q1),
    "peak": (SEQ1M_Q8, RND4K_Q32),
    "real-world": (SEQ1M_Q1, RND4K_Q1),
    "classic": (SEQ1M_Q1, RND512K_Q1, RND4K_Q1, RND4K_Q32),
    "sync": tuple((_sync(kind, size * KIB),) for kind in ("fdatasync", "fsync", "dsync") for size in (8, 16)),
    "scan": (
        (Test("scan128k-read", "SCAN128K Q1T1", "read", "sequential", 128 * KIB, cached=True),),
        (Test("seq512k-q32t1-read", "SEQ512K Q32T1", "read", "sequential", 512 * KIB, 32),),
    ),
    "cost": tuple((test,) for size in (8, 64, 128, 256, 1024) for test in _cost(size * KIB)),
    "sustained": ((Test("sustained-write", "SUSTAINED 1M Q8", "write", "sequential", MIB, 8, 1, 0, sustained=True),),),
}
"""The tests of each set. Each set consists of lines, which are shown as lines of the result. A line contains one test
for each direction of I/O."""
SET_WORDS = {
    "default": "KDiskMark's SEQ1M Q8T1, SEQ1M Q1T1, RND4K Q32T1, RND4K Q1T1",
    "nvme": "KDiskMark's SEQ1M Q8T1, SEQ128K Q32T1, RND4K Q32T16, RND4K Q1T1",
    "steady": "the tests of `default`, but each pass runs for its full time, and I/O buffers are in huge pages",
    "steady-nvme": "the tests of `nvme`, run in the same way as `steady`",
    "peak": "SEQ1M Q8T1, RND4K Q32T1",
    "real-world": "SEQ1M Q1T1, RND4K Q1T1",
    "classic": "SEQ1M Q1T1, RND512K Q1T1, RND4K Q1T1, RND4K Q32T1",
    "sync": "durable writes of 8 KiB and 16 KiB with fdatasync, fsync and O_DSYNC, as for a database's WAL",
    "scan": "sequential reads of 128 KiB through an empty page cache, as in a table scan, and sequential reads of 512 "
    "KiB at Q32T1",
    "cost": "CPU time of a random read of 8 KiB to 1 MiB, from the device and from the page cache",
    "sustained": "one long sequential write that exceeds a drive's write cache",
}
MOST_TESTS = 20
"""Maximum number of tests in a trial, because its record must be small. More tests need several trials."""


def chosen(text: str, mix: int) -> tuple[Test, ...]:
    """Returns the tests of an expression such as `default+sync`, without duplicates. Reads come first, then writes,
    then mixed tests. Raises InputError."""
    subject = written("workload.with", f"tests={text}")
    lines: dict[str, tuple[Test, ...]] = {}
    for name in text.split("+"):
        if name not in SETS:
            raise InputError(subject, f"unknown set of tests {name!r}", nearest(name, list(SETS)))
        lines |= {line[0].name: line for line in SETS[name]}
    mixed = [_mixed(line[0], mix) for line in lines.values() if mix and len(line) == 2]
    every = [*(test for line in lines.values() for test in line), *mixed]
    order = ("read", "write", "mix")
    tests = sorted(every, key=lambda test: order.index(test.direction))
    if len(tests) > MOST_TESTS:
        raise InputError(subject, f"has {len(tests)} tests; the maximum is {MOST_TESTS}", "use fewer sets")
    return tuple(tests)


def _mixed(read: Test, percent: int) -> Test:
    name = read.name.removesuffix("read") + f"mix{percent}"
    return replace(read, name=name, direction="mix", read_percent=percent)


def storage_test(name: str) -> Test | None:
    """Returns the test with this name in metrics, including mixed tests. Returns None if no set contains the test."""
    head, _, percent = name.rpartition("mix")
    for test in (test for lines in SETS.values() for line in lines for test in line):
        if test.name == name:
            return test
        if percent.isdigit() and test.name == f"{head}read":
            return _mixed(test, int(percent))
    return None


def order(name: str) -> int:
    """Returns the sort key of a test in a table. Tests have the order of `SETS`. A mixed test follows the write test of
    its line."""
    names = [test.name for lines in SETS.values() for line in lines for test in line]
    plain = name.rpartition("mix")[0] + "write" if "mix" in name else name
    return names.index(plain) * 2 + ("mix" in name) if plain in names else len(names) * 2
