"""Words for the difference of two configurations by part of a transaction's time."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.wording.registry import wording
from ironbench.report.wording.target import milliseconds
from ironbench.words import counted


@wording("no-clear-step")
def no_clear_step(before: str, after: str) -> str:
    """no part of the time differs clearly between log=disk and log=memory"""
    return f"no part of the time differs clearly between {before} and {after}"


@wording("largest-step")
def largest_step(whole_s: float, part: str, delta_s: float, low_s: float, high_s: float) -> str:
    """a transaction takes 1.5 ms less of a client's time. log flush: 1.2 ms less (1.1 ms to 1.3 ms)"""
    low, high = sorted((abs(low_s), abs(high_s)))  # a clear step has both on the same side of 0
    step = f"{part}: {_change(delta_s)} ({milliseconds(low)} to {milliseconds(high)})"
    return f"a transaction takes {_change(whole_s)} of a client's time. {step}"


def _change(seconds: float) -> str:
    return f"{milliseconds(abs(seconds))} {'more' if seconds > 0 else 'less'}"


@wording("sampling-error")
def sampling_error(least_blocks: int | None) -> str:
    """sampling error only: a configuration has fewer than 3 blocks"""
    few = "a single trial" if least_blocks is None else f"fewer than {counted(least_blocks, 'block')}"
    return f"sampling error only: a configuration has {few}"


@wording("t-intervals-of-differences")
def t_intervals_of_differences(blocks: int) -> str:
    """t intervals of the differences of 6 blocks"""
    return f"t intervals of the differences of {counted(blocks, 'block')}"


@wording("welch-intervals")
def welch_intervals(trials: Sequence[int], in_blocks: bool) -> str:
    """Welch's t intervals of 6 and 5 trials: not every block has both configurations"""
    why = "not every block has both configurations" if in_blocks else "trials of different runs do not pair"
    return f"Welch's t intervals of {' and '.join(map(str, trials))} trials: {why}"
