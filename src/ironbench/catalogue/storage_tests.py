"""The tests of storage: the profiles people know from CrystalDiskMark and KDiskMark, and those that a database makes.

Names as CrystalDiskMark 8 writes them: SEQ1M Q8T1 is sequential, blocks of 1 MiB, queue depth 8, 1 thread
(profiles of versions 3 to 8 by their published result texts; KDiskMark `src/appsettings.cpp`).

Lines of the sets `default` and `nvme` follow KDiskMark's method, which is a call of fio for each pass (KDiskMark
`src/helper.cpp`: `--ioengine=libaio --direct=1 --end_fsync=1 --randrepeat=0 --size=1024m --runtime=5`, not
`--time_based`). The other lines run each pass for its whole time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ironbench.errors import InputError, nearest, written

KIB = 1024
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Test:
    """One line of a result in one direction."""

    name: str
    """In names of metrics: `seq1m-q8t1-read`."""
    title: str
    """The line's name: `SEQ1M Q8T1`."""
    direction: str
    """`read`, `write` or `mix`."""
    order: str
    """`sequential` or `random`."""
    block_bytes: int
    depth: int = 1
    threads: int = 1
    read_percent: int = 100
    sync: str = "none"
    """What follows each write: `none`, `fsync`, `fdatasync`, or `dsync` for a file opened with O_DSYNC."""
    cached: bool = False
    """Through the page cache, which is emptied before, as a database scans a table."""
    sustained: bool = False
    """One long pass instead of several short ones."""
    hot: bool = False
    """From the page cache, which holds the whole file: no device is asked."""
    blocking: bool = False
    """By one call after the other of one thread, whatever else is possible: CPU times are then of the same calls."""
    kdiskmark: bool = False
    """By KDiskMark's method: a pass ends after its seconds or once each thread has transferred the size of the file,
    whichever comes first; a write pass ends with an fsync, which counts; buffers lie in ordinary pages; the result is
    the mean of the passes."""


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
    """The same random reads twice: from the device, past the page cache, and from the page cache."""
    size = f"{block // MIB}M" if block >= MIB else f"{block // KIB}K"
    read = Test(f"cost{size.lower()}-device", f"COST{size} device", "read", "random", block, blocking=True)
    return read, replace(read, name=f"cost{size.lower()}-cached", title=f"COST{size} cached", hot=True)


def _kdiskmark(line: tuple[Test, Test]) -> tuple[Test, Test]:
    read, write = (
        replace(test, name=f"{KDISKMARK}{test.name}", title=f"KDiskMark {test.title}", kdiskmark=True) for test in line
    )
    return read, write


KDISKMARK = "kdm-"
"""Begins the names of tests that follow KDiskMark's method."""
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
"""Name of a set → its lines, each with its directions."""
SET_WORDS = {
    "default": "KDiskMark's SEQ1M Q8T1, SEQ1M Q1T1, RND4K Q32T1, RND4K Q1T1",
    "nvme": "KDiskMark's SEQ1M Q8T1, SEQ128K Q32T1, RND4K Q32T16, RND4K Q1T1",
    "steady": "the lines of default, each pass for its whole time, buffers in large pages",
    "steady-nvme": "the lines of nvme in the same way",
    "peak": "SEQ1M Q8T1, RND4K Q32T1",
    "real-world": "SEQ1M Q1T1, RND4K Q1T1",
    "classic": "SEQ1M Q1T1, RND512K Q1T1, RND4K Q1T1, RND4K Q32T1",
    "sync": "8 KiB and 16 KiB made safe by fdatasync, fsync and O_DSYNC, as a database's log does",
    "scan": "128 KiB through an empty page cache as a table scan reads, and 512 KiB Q32T1",
    "cost": "CPU time of a random read of 8 KiB to 1 MiB, from the device and from the page cache",
    "sustained": "one long sequential write, past a drive's write cache",
}
MOST_TESTS = 20
"""A record stays small; more sets are more trials."""


def chosen(text: str, mix: int) -> tuple[Test, ...]:
    """The tests of `default+sync`: all that read before all that write, mixed ones last, none twice. InputError."""
    subject = written("workload.with", f"tests={text}")
    lines: dict[str, tuple[Test, ...]] = {}
    for name in text.split("+"):
        if name not in SETS:
            raise InputError(subject, f"there is no set of tests {name!r}", nearest(name, list(SETS)))
        lines |= {line[0].name: line for line in SETS[name]}
    mixed = [_mixed(line[0], mix) for line in lines.values() if mix and len(line) == 2]
    every = [*(test for line in lines.values() for test in line), *mixed]
    order = ("read", "write", "mix")
    tests = sorted(every, key=lambda test: order.index(test.direction))
    if len(tests) > MOST_TESTS:
        raise InputError(subject, f"it holds {len(tests)} tests, at most {MOST_TESTS} go together", "name fewer sets")
    return tuple(tests)


def _mixed(read: Test, percent: int) -> Test:
    name = read.name.removesuffix("read") + f"mix{percent}"
    return replace(read, name=name, direction="mix", read_percent=percent)


def known(name: str) -> Test | None:
    """A test by its name in metrics, a mixed one too; None where no set has it."""
    head, _, percent = name.rpartition("mix")
    for test in (test for lines in SETS.values() for line in lines for test in line):
        if test.name == name:
            return test
        if percent.isdigit() and test.name == f"{head}read":
            return _mixed(test, int(percent))
    return None


def order(name: str) -> int:
    """Where a test stands in a table: lines as in their sets, reading before writing."""
    names = [test.name for lines in SETS.values() for line in lines for test in line]
    plain = name.rpartition("mix")[0] + "write" if "mix" in name else name
    return names.index(plain) * 2 + ("mix" in name) if plain in names else len(names) * 2
