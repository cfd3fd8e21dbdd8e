"""Types of profile results: the time per transaction of functions and waits, and the differences between two
configurations. `study.profile` computes them."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.lab import Configuration
from ironbench.model.profile import CPU_QUEUE
from ironbench.model.record import Record
from ironbench.records.evidence import PROFILE
from ironbench.study.profile_groups import OTHER
from ironbench.study.shares import TimeDifference

MOST_FRAMES = 10
"""Maximum number of functions that a table names."""
MOST_ACTIVITIES, MOST_FUNCTIONS = 4, 3
"""Maximum number of activities of an area, and of functions of an activity, that are listed as parts."""
REST = "*"
"""Name of all parts that are not listed."""
LEAST_SAMPLES = 20
"""Minimum number of samples of a function over all trials. A function with fewer samples is merged into its caller."""
LEAST_SHARE = 0.001
"""Minimum time of a function as a fraction of its area's time. A function with less time is merged into its caller."""


def is_profiled(record: Record) -> bool:
    """Returns whether times per transaction are known. For this, the trial must have a profile and transactions."""
    return PROFILE in record.files and record.metrics.get("transactions", 0.0) > 0


@dataclass(frozen=True, slots=True)
class TimeChange(TimeDifference):
    """Seconds per transaction of two configurations, and their difference."""

    before_s: float
    after_s: float
    called: bool
    """Whether the difference is significant after the correction for the number of comparisons."""
    area: str
    """Who spent the time, and how: an area of `study.call_tree`."""
    name: str

    @property
    def in_queue(self) -> bool:
        """Whether the thread waited for a free CPU. The function in which a thread waits for a CPU is not the cause of
        the wait. The cause is all CPU time on the machine."""
        return self.area.endswith(f":{CPU_QUEUE}")

    @property
    def at_least_s(self) -> float:
        """Distance between 0 and the closer bound of the interval. 0 if the interval contains 0."""
        return max(self.low_s, -self.high_s, 0.0)


@dataclass(frozen=True, slots=True)
class FrameChange(TimeChange):
    """Change of a function's time, including the functions that it calls."""

    in_kernel: bool
    own_s: float
    """Difference of the time in the function itself."""
    callers: tuple[str, ...]
    """The callers of the function on the path with the largest difference. The nearest caller is first. Callers in the
    kernel are left out."""
    activity: str
    """Activity of the engine on this path."""
    through: str
    """The outermost function on this path that determines the activity. Empty if the activity is unknown."""


@dataclass(frozen=True, slots=True)
class GroupChange(TimeChange):
    """Change of an activity of the engine, or of a subsystem of the kernel."""


@dataclass(frozen=True, slots=True)
class PartChange(TimeDifference):
    """Change of a part of a transaction's time: of an area, of an activity in it, or of a function in the activity.

    Areas add up to the whole difference, activities to their area, and functions to their activity.
    """

    before_s: float
    after_s: float
    area: str
    activity: str
    """Activity of the engine; empty for a whole area, `REST` for all activities that are not listed."""
    function: str
    """Innermost function outside the kernel; empty for a whole activity, `REST` for all functions that are not
    listed."""


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function in a call tree. Callers come before the functions that they call."""

    parent: int
    """Index of the caller; -1 for an area."""
    name: str
    in_kernel: bool
    before_s: float
    after_s: float
    delta_s: float
    low_s: float
    high_s: float
    """Bounds of the 95% confidence interval of the difference. Infinite if there are too few blocks."""
    certain: bool
    """Whether the interval excludes 0, and the function's difference is significant."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low_s > 0 or self.high_s < 0


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """Profiles of two configurations."""

    before: Configuration
    after: Configuration
    blocks: int
    """Number of blocks in which both were profiled. 0 if the trials are not paired by block."""
    compared: int
    """Number of comparisons in the correction of significance: comparisons of functions with and without their callees,
    of activities, and of subsystems."""
    frames: tuple[FrameChange, ...]
    """The functions that explain most of the difference, at most `MOST_FRAMES`. Significant differences come first,
    ordered by `at_least_s`, with waits for a free CPU last. If its callees explain more than two thirds of a
    function's difference, only the rest counts for this order. A function is left out if its interval contains 0 or
    if its callees explain its difference."""
    activities: tuple[GroupChange, ...]
    kernel: tuple[GroupChange, ...]
    nodes: tuple[CallNode, ...]
    parts: tuple[PartChange, ...] = ()
    """The whole difference from the top down. A part precedes the parts that add up to it, and the largest come
    first."""

    @property
    def has_intervals(self) -> bool:
        return self.blocks >= LEAST_BLOCKS_SHOWN

    @property
    def main(self) -> FrameChange | None:
        """The first function with a significant difference, or None if there is none."""
        return next((one for one in self.frames if one.called), None)

    @property
    def main_activity(self) -> GroupChange | None:
        """The activity of the engine with the largest significant difference, if the first function explains less than
        half of it. Then no single function is the cause. Waits for a free CPU are left out."""
        significant = [one for one in self.activities if one.called and not one.in_queue and one.name != OTHER]
        most = max(significant, key=lambda one: one.at_least_s, default=None)
        if most is None or (self.main is not None and abs(self.main.delta_s) >= abs(most.delta_s) / 2):
            return None
        return most

    @property
    def largest_clear(self) -> FrameChange | None:
        """The function with the largest difference whose interval excludes 0, whether or not the difference is
        significant after the correction. A wait for a free CPU is returned only if there is nothing else. None if
        every interval contains 0."""
        clear = [one for one in self.frames if one.clear]
        return max(clear, key=lambda one: (not one.in_queue, abs(one.delta_s)), default=None)


@dataclass(frozen=True, slots=True)
class ProfiledTime:
    """Seconds per transaction of a function, an activity or a subsystem; mean of the trials."""

    area: str
    name: str
    time_s: float
    own_s: float = 0.0
    """For functions: time in the function itself."""
    in_kernel: bool = False
    """Whether this is a function of the kernel."""


@dataclass(frozen=True, slots=True)
class ProfileNode:
    """A function in the call tree of one configuration. Callers come before the functions that they call."""

    parent: int
    name: str
    in_kernel: bool
    time_s: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Profile of one configuration."""

    configuration: Configuration
    trials: int
    """Number of profiled trials."""
    frames: tuple[ProfiledTime, ...]
    """The functions in which most time is spent, not counting what they call, at most `MOST_FRAMES`."""
    activities: tuple[ProfiledTime, ...]
    kernel: tuple[ProfiledTime, ...]
    nodes: tuple[ProfileNode, ...]
