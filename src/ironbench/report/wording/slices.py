"""Words for measuring by slices."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, number, percent, span, strings
from ironbench.words import listed


@wording("slow-start")
def slow_start(
    lost_s: Number, slice_s: Number, share: Number, least_turns: Number | None = None, needed_s: Number = 0.0
) -> str:
    """a turn lost at least 50 ms of work after its start-up, 5% of its slice of 1 s: throughput is too low by …"""
    fix = f"slices of {span(slice_s)} are the longest: measure by trials"
    if least_turns is not None:
        fix = (
            f"longer slices would leave fewer than {count(least_turns, 'turn')}: set load.duration to {span(needed_s)} "
            "or more, or measure by trials"
        )
    return (
        f"a turn lost at least {span(lost_s)} of work after its start-up, {percent(share)} of its slice of "
        f"{span(slice_s)}: throughput is too low by as much or more; {fix}"
    )


@wording("written-between-turns")
def written_between_turns(share: Number) -> str:
    """writing back dirty pages at the ends of its turns took 12% of the time of its slices …"""
    return (
        f"writing back what was dirty at the ends of its turns took {percent(share)} of the time of its slices, pages "
        "that other programs had left in its file systems included: a trial would have written some of it while it "
        "measured"
    )


@wording("not-written-back")
def not_written_back(directories: Strings) -> str:
    """what its turns left dirty in /srv/d was not written back at their ends, since this user may not enter there …"""
    return (
        f"what its turns left dirty in {listed(strings(directories)) or 'its directories'} was not written back at "
        "their ends, since this user may not enter there: the kernel writes it later, also during turns of others"
    )


@wording("fewer-checkpoints")
def fewer_checkpoints(checkpoints: Number, planned: Number, every_s: Number) -> str:
    """1 of 3 planned checkpoints began in its slices, which were to come every 10 s of its own time: …"""
    return (
        f"{number(checkpoints)} of {count(planned, 'planned checkpoint')} began in its slices, which were to come "
        f"every {span(every_s)} of its own time: one begins only at the start of a turn, so that slices may be too "
        "long for them, and none while another one runs; what the others cost is missing"
    )
