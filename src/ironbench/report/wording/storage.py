"""Words for emulated devices, power cuts, checkpoints and I/O."""

from __future__ import annotations

from ironbench.model.record import EMULATED
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, names, percent, span, strings


@wording(EMULATED)
def emulated(models: Strings, cpu_share: Number | None = None) -> str:
    """storage was emulated (hdd-15k): its times come from a model; emulation used 3% of the machine's CPU"""
    which = f" ({names(models)})" if strings(models) else ""
    cpu = "" if cpu_share is None else f"; emulation used {percent(cpu_share)} of the machine's CPU"
    return f"storage was emulated{which}: its times come from a model{cpu}"


@wording("emulation-limit")
def emulation_limit(load: Number, late: Number) -> str:
    """the emulated device was at 60% of what this machine can emulate and 7% too slow: the real device …"""
    return (
        f"the emulated device was at {percent(load)} of what this machine can emulate and {percent(late)} too slow: "
        "the real device would be faster"
    )


@wording("nothing-at-stake")
def nothing_at_stake(how: Strings) -> str:
    """no unflushed write at the power cut (torn), so the device could neither lose nor tear a write"""
    cut = f"the power cut{f' ({names(how)})' if strings(how) else ''}"
    return f"no unflushed write at {cut}, so the device could neither lose nor tear a write"


@wording("ranges-by-chance")
def ranges_by_chance(rows: int, each: float, any: float, in_turns: bool) -> str:
    """without any real difference, the ranges of a row do not overlap in 0.79% of comparisons, and
    the ranges of at least one of 8 rows in 6.2%; drift between the two runs adds to that: …"""
    of_rows = f", and the ranges of at least one of {rows} rows in {percent(any)}" if rows > 1 else ""
    drift = "; drift between the two runs adds to that: only a lab with interleaved blocks excludes it"
    return (
        f"without any real difference, the ranges of a row do not overlap in {percent(each)} of comparisons{of_rows}"
        + ("" if in_turns else drift)
    )


@wording("no-io-uring")
def no_io_uring(reason: Strings) -> str:
    """io_uring is not allowed here: I/O uses threads instead"""
    return f"{names(reason) or 'io_uring was not used'}: I/O uses threads instead"


@wording("short-of-two-checkpoints")
def short_of_two_checkpoints(checkpoints: Number, elapsed_s: Number) -> str:
    """1 checkpoint in 30 s, fewer than two: WAL and data writes have not reached a steady state"""
    return (
        f"{count(checkpoints, 'checkpoint')} in {span(elapsed_s)}, fewer than two: WAL and data writes have not "
        "reached a steady state"
    )
