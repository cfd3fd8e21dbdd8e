"""Words for notes about storage, such as caches, emulated devices, power cuts, checkpoints, and settings that can lose
data."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.record import CAN_LOSE_DATA, EMULATED
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, names, percent, size, span, strings
from ironbench.words import listed

EVENTS = {
    "crash": "a crash",
    "crash-in-transaction": "a crash during a transaction",
    "server-crash": "a server crash",
    "os-crash": "an operating system crash",
    "os-crash-or-power-failure": "an operating system crash or power failure",
    "power-failure": "a power failure",
}
LOSSES = {
    "binary-log": "may lose the end of the binary log",
    "database": "may corrupt the database",
    "last-changes": "may lose the last changes",
    "last-commits": "may lose the last commits",
    "torn-pages": "may leave torn pages that recovery cannot repair",
    "whole-database": "may corrupt the whole database",
}


@wording("data-as-found")
def data_as_found() -> str:
    """Example: `the data was not restored between trials, because it existed before this run; each trial starts with
    the data that the previous trial left`."""
    return (
        "the data was not restored between trials, because it existed before this run; each trial starts with "
        "the data that the previous trial left"
    )


@wording("cache-not-cold")
def cache_not_cold() -> str:
    """Example: `the cache was declared cold, but no data was read from a device: the files were cached in memory, or
    the queries needed no data`."""
    return (
        "the cache was declared cold, but no data was read from a device: the files were cached in memory, or "
        "the queries needed no data"
    )


@wording("cache-not-warm")
def cache_not_warm(declared: Strings, read_bytes: Number) -> str:
    """Example with declared='warm', read_bytes=1500000000.0: `the cache was declared warm, but 1.50 GB was read from
    devices`."""
    return f"the cache was declared {names(declared) or 'warm'}, but {size(read_bytes)} was read from devices"


@wording("cache-not-steady")
def cache_not_steady(rehearsals: Number) -> str:
    """Example with rehearsals=15: `the cache was declared hot, but the cache hit rate was not steady after 15 warm-up
    passes`."""
    passes = count(rehearsals, "warm-up pass", "warm-up passes")
    return f"the cache was declared hot, but the cache hit rate was not steady after {passes}"


@wording(EMULATED)
def emulated(models: Strings, cpu_share: Number | None = None) -> str:
    """Example with models='hdd-15k', cpu_share=0.03: `storage was emulated (hdd-15k), so its I/O times come from a
    device model; the emulation used 3% of the machine's CPU time`."""
    which = f" ({names([units.device(model) for model in strings(models)])})" if strings(models) else ""
    cpu = "" if cpu_share is None else f"; the emulation used {percent(cpu_share)} of the machine's CPU time"
    return f"storage was emulated{which}, so its I/O times come from a device model{cpu}"


@wording("emulation-limit")
def emulation_limit(load: Number, late: Number) -> str:
    """Example with load=0.6, late=0.07: `the emulated device ran at 60% of the highest rate that this machine can
    emulate and was 7% too slow, so the real device would be faster`."""
    return (
        f"the emulated device ran at {percent(load)} of the highest rate that this machine can emulate and was "
        f"{percent(late)} too slow, so the real device would be faster"
    )


@wording("nothing-at-stake")
def nothing_at_stake(how: Strings) -> str:
    """Example with how='torn': `no unflushed write was on the device at the power cut (torn), so the device could
    neither lose nor tear a write, and the passed checks prove little`."""
    cut = f"the power cut{f' ({names(how)})' if strings(how) else ''}"
    return (
        f"no unflushed write was on the device at {cut}, so the device could neither lose nor tear a write, and the "
        "passed checks prove little"
    )


@wording("storage-in-memory")
def storage_in_memory(folders: Strings) -> str:
    """Example with folders='/dev/shm': `/dev/shm is in memory (tmpfs), so the results describe memory and not a
    device`."""
    are = "are" if len(strings(folders)) > 1 else "is"
    return (
        f"{names(folders) or 'the directory'} {are} in memory (tmpfs), so the results describe memory and not a device"
    )


def passes_apart(first: str, apart: int, rows: int, by_chance: float) -> str:
    """Example with first='before', apart=0, rows=14, by_chance=0.1: `shows no difference from before: the ranges of the
    passes overlap in all 14 tests.`"""
    if not apart:
        return f"shows no difference from {first}: the ranges of the passes overlap in all {rows} tests."
    return (
        f"differs from {first} in {apart} of {rows} tests, in which the ranges of the passes do not overlap. This is "
        "no verdict: even without a real difference, the ranges of at least one test do not overlap "
        f"in {percent(by_chance)} of comparisons, and more often if the speed of the device changes over time."
    )


@wording("ranges-by-chance")
def ranges_by_chance(rows: int, each: float, any: float, in_turns: bool) -> str:
    """Example with rows=8, each=0.0079, any=0.062, in_turns=False: `even without a real difference, the two ranges of a
    row do not overlap in 0.79% of comparisons, and the ranges of at least one of 8 rows do not overlap in 6.2%. Such
    false differences are more frequent if the machine's speed changes between the two runs; only a lab with interleaved
    blocks excludes this cause`."""
    of_rows = f", and the ranges of at least one of {rows} rows do not overlap in {percent(any)}" if rows > 1 else ""
    more_often = (
        ". Such false differences are more frequent if the machine's speed changes between the two runs; only a lab "
        "with interleaved blocks excludes this cause"
    )
    return (
        f"even without a real difference, the two ranges of a row do not overlap in {percent(each)} of "
        f"comparisons{of_rows}"
    ) + ("" if in_turns else more_often)


@wording("no-io-uring")
def no_io_uring(reason: Strings) -> str:
    """Example with reason='io_uring is not allowed here': `io_uring is not allowed here, so I/O uses threads
    instead`."""
    return f"{names(reason) or 'io_uring was not used'}, so I/O uses threads instead"


@wording("short-of-two-checkpoints")
def short_of_two_checkpoints(checkpoints: Number, elapsed_s: Number) -> str:
    """Example with checkpoints=1, elapsed_s=30: `1 checkpoint in 30 s, but at least two are needed for WAL and data
    writes to reach a steady state`."""
    return (
        f"{count(checkpoints, 'checkpoint')} in {span(elapsed_s)}, but at least two are needed for WAL and data "
        "writes to reach a steady state"
    )


@wording(CAN_LOSE_DATA)
def can_lose_data(settings: Sequence[Sequence[str]]) -> str:
    """Example with settings=[('fsync', 'off', 'power', 'everything')]: `fsync=off can lose data (power everything)`.

    `settings`: for each setting, its name, its value, the event that causes a loss of data, and the lost data. Older
    records contain the event and the lost data as one text.
    """
    clauses = ((name, value, " ".join(map(_word, why))) for name, value, *why in settings)
    return listed([f"{name}={value} can lose data ({why})" for name, value, why in clauses]) or "data can be lost"


def _word(code: str) -> str:
    return EVENTS.get(code) or LOSSES.get(code, code)
