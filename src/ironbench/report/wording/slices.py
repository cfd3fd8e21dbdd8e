"""Words for measuring by slices."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, number, percent, span, strings
from ironbench.words import listed


@wording("slow-start")
def slow_start(
    lost_s: Number, slice_s: Number, share: Number, least_turns: Number | None = None, needed_s: Number = 0.0
) -> str:
    """each turn lost at least 50 ms after start-up, 5% of a slice of 1 s, so throughput is at least that much too …"""
    fix = f"slices of {span(slice_s)} are the longest possible: measure by trials"
    if least_turns is not None:
        fix = (
            f"longer slices would leave fewer than {count(least_turns, 'turn')}: set load.duration to {span(needed_s)} "
            "or more, or measure by trials"
        )
    return (
        f"each turn lost at least {span(lost_s)} after start-up, {percent(share)} of a slice of {span(slice_s)}, so "
        f"throughput is at least that much too low; {fix}"
    )


@wording("written-between-turns")
def written_between_turns(share: Number) -> str:
    """writing back dirty pages between turns took 12% of the slice time, including pages that other programs …"""
    return (
        f"writing back dirty pages between turns took {percent(share)} of the slice time, including pages that other "
        "programs left in the same file systems; a trial would have written some of them while it measured"
    )


@wording("not-written-back")
def not_written_back(directories: Strings) -> str:
    """dirty pages in /srv/d were not written back between turns, because this user has no access to the directory: …"""
    return (
        f"dirty pages in {listed(strings(directories)) or 'the data directories'} were not written back between turns, "
        "because this user has no access to the directory: the kernel writes them later, also during turns of other "
        "systems"
    )


@wording("fewer-checkpoints")
def fewer_checkpoints(checkpoints: Number, planned: Number, every_s: Number) -> str:
    """1 of 3 planned checkpoints (every 10 s of this system's time) started in its slices: a checkpoint starts …"""
    return (
        f"{number(checkpoints)} of {count(planned, 'planned checkpoint')} "
        f"(every {span(every_s)} of this system's time) "
        "started in its slices: a checkpoint starts only at the start of a turn and only if no other one is running. "
        "The cost of the missing checkpoints is not in the result; slices may be too long"
    )
