"""Words for notes on measurements in slices."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, number, percent, span, strings
from ironbench.words import listed


@wording("slow-start")
def slow_start(
    lost_s: Number, slice_s: Number, share: Number, least_turns: Number | None = None, needed_s: Number = 0.0
) -> str:
    """Example with lost_s=0.05, slice_s=1.0, share=0.05, least_turns=10, needed_s=60.0: `the measured throughput is too
    low by at least 5%: after the unmeasured start of each slice, the system needed at least 50.0 ms of a slice of 1 s
    to reach full throughput; with longer slices, each system would get fewer than 10 slices, so set `load.duration` to
    60 s or more, or use `method = "trials"``."""
    fix = f'slices of {span(slice_s)} are already the longest possible, so use `method = "trials"`'
    if least_turns is not None:
        fix = (
            f"with longer slices, each system would get fewer than {count(least_turns, 'slice')}, so set "
            f'`load.duration` to {span(needed_s)} or more, or use `method = "trials"`'
        )
    return (
        f"the measured throughput is too low by at least {percent(share)}: after the unmeasured start of each slice, "
        f"the system needed at least {span(lost_s)} of a slice of {span(slice_s)} to reach full throughput; {fix}"
    )


@wording("written-between-turns")
def written_between_turns(share: Number) -> str:
    """Example with share=0.12: `writing back dirty pages between slices took 12% of the slice time, including dirty
    pages of other programs in the same file systems; with `method = "trials"`, some of these pages would have been
    written during the measurement`."""
    return (
        f"writing back dirty pages between slices took {percent(share)} of the slice time, including dirty pages "
        'of other programs in the same file systems; with `method = "trials"`, some of these pages would have been '
        "written during the measurement"
    )


@wording("not-written-back")
def not_written_back(directories: Strings) -> str:
    """Example with directories='/srv/d': `dirty pages in /srv/d were not written back between slices, because the user
    that runs ironbench has no access to the directory; the kernel writes these pages later, possibly during slices of
    other systems`."""
    return (
        f"dirty pages in {listed(strings(directories)) or 'the data directories'} were not written back between "
        "slices, because the user that runs ironbench has no access to the directory; the kernel writes these "
        "pages later, possibly during slices of other systems"
    )


@wording("fewer-checkpoints")
def fewer_checkpoints(checkpoints: Number, planned: Number, every_s: Number) -> str:
    """Example with checkpoints=1, planned=3, every_s=10.0: `only 1 of 3 planned checkpoints (one for every 10 s in
    which this system is under load) started in the slices of this system. A checkpoint starts only at the start of a
    slice, and only if no other checkpoint is running. The other checkpoints did not run, so the result does not include
    their cost. Shorter slices allow more checkpoints`."""
    return (
        f"only {number(checkpoints)} of {count(planned, 'planned checkpoint')} (one for every {span(every_s)} in "
        "which this system is under load) started in the slices of this system. A checkpoint starts only at the start "
        "of a slice, and only if no other checkpoint is running. The other checkpoints did not run, so the result does "
        "not include their cost. Shorter slices allow more checkpoints"
    )
