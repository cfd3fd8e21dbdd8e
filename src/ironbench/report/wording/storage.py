"""Words for emulated devices, power cuts, checkpoints and I/O."""

from __future__ import annotations

from ironbench.model.record import EMULATED
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, names, percent, span, strings


@wording(EMULATED)
def emulated(models: Strings, cpu_share: Number | None = None) -> str:
    """storage was emulated (hdd-15k), its times are a model's; the emulation took 3% of the machine's CPU"""
    which = f" ({names(models)})" if strings(models) else ""
    cpu = "" if cpu_share is None else f"; the emulation took {percent(cpu_share)} of the machine's CPU"
    return f"storage was emulated{which}, its times are a model's{cpu}"


@wording("emulation-limit")
def emulation_limit(load: Number, late: Number) -> str:
    """the emulated device was at 60% of what this machine can emulate and late by 7% of its time: the real one …"""
    return (
        f"the emulated device reached {percent(load)} of what this machine can emulate and was late by {percent(late)} "
        "of its time: the real one would be faster"
    )


@wording("nothing-at-stake")
def nothing_at_stake(how: Strings) -> str:
    """no write was unflushed when the power was cut (torn): the device could neither lose nor tear any"""
    cut = f"the power was cut{f' ({names(how)})' if strings(how) else ''}"
    return f"no write was unflushed when {cut}: the device could neither lose nor tear any"


@wording("ranges-by-chance")
def ranges_by_chance(rows: int, each: float, any: float, in_turns: bool) -> str:
    """if nothing changed, the ranges of a row are apart in 0.79% of comparisons, and those of at least one of 8 rows in
    6.2%; drift between the two runs comes on top: only a lab that alternates them in blocks can exclude it"""
    of_rows = f", and those of at least one of {rows} rows in {percent(any)}" if rows > 1 else ""
    drift = "; drift between the two runs comes on top: only a lab that alternates them in blocks can exclude it"
    return f"if nothing changed, the ranges of a row are apart in {percent(each)} of comparisons{of_rows}" + (
        "" if in_turns else drift
    )


@wording("no-io-uring")
def no_io_uring(reason: Strings) -> str:
    """io_uring is not allowed here: threads keep the I/Os in flight"""
    return f"{names(reason) or 'io_uring was not used'}: threads keep the I/Os in flight"


@wording("short-of-two-checkpoints")
def short_of_two_checkpoints(checkpoints: Number, elapsed_s: Number) -> str:
    """1 checkpoint in 30 s, fewer than two: WAL and data writes are not yet steady"""
    return (
        f"{count(checkpoints, 'checkpoint')} in {span(elapsed_s)}, fewer than two: WAL and data writes are not yet "
        "steady"
    )
