"""Chooses the number of blocks and the trial length within a time budget, such that the minimum detectable effect is
smallest.

For a paired t interval of n blocks, the minimum detectable effect is the true log ratio that is detected with 90%
power. This effect is about (t(1-α/2, n-1) + t(0.9, n-1)) · s / √n, where s is the standard deviation of the log ratio
of two trials of one block (Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, ch. 2; Bloom, Minimum
Detectable Effects, Evaluation Review 19, 1995). `Detect` functions use the exact noncentral t distribution, and divide
α by the number of comparisons (Holm's first step) and among the interim analyses. The analysis of the results divides α
in the same way, so the lab can detect the effect that the plan promises.

The effect is proportional to 1/√n, and decreases with longer trials. The variance s² has two parts: noise within a
trial, which longer trials reduce, and variation from trial to trial, which they do not reduce. Trials differ, for
example, in the memory addresses of data and code, in background work, and in the state of the device. `PairVariation`
assumes that the two parts are equal at the trial length with which s was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ironbench import units
from ironbench.errors import InputError
from ironbench.model.lab import Stage
from ironbench.plan import blocks, fixed_rates
from ironbench.words import counted

LENGTHS_S = (5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0)
"""Trial lengths in seconds from which a budget chooses. In trials shorter than 5 s, the start-up and the last
transactions have too much weight."""
CHECKPOINTS = 2.5
"""A trial must last at least this many checkpoint intervals, so that it contains two complete checkpoints."""
MOST_BLOCKS = 500
MOST_ANALYSES = 3
_SHRINKING = 0.5


@dataclass(frozen=True, slots=True)
class PairVariation:
    """Variation of the log ratio of two trials of the same block."""

    share: float
    """Standard deviation of the log ratio; 0.05 is about 5%."""
    trial_s: float
    """Length in seconds of the trials that have this variation."""
    seen: int
    """Number of blocks from which the variation was computed."""
    source: str
    """How the variation was measured, as text."""

    def at(self, trial_s: float) -> float:
        """Returns the standard deviation for trials of another length."""
        return self.share * math.sqrt(1 - _SHRINKING + _SHRINKING * self.trial_s / trial_s)


ASSUMED = PairVariation(
    0.04 * math.sqrt(2), 30.0, 10_000, "assumed; `ironbench lab noise` measures the variation on this machine"
)
"""Variation that is assumed if none was measured. Runs of 30 s on a small virtual machine varied by 3% to 6%. The ratio
of two runs varies √2 times as much."""

Detect = Callable[[PairVariation, float, tuple[Stage, ...]], float]
"""A function that computes the minimum detectable effect at the last analysis, as a relative difference. The arguments
are the variation, the trial length in seconds, and the stages."""


@dataclass(frozen=True, slots=True)
class LabTimes:
    """The time that the configurations of a lab need, in seconds."""

    own_s: tuple[float | None, ...]
    """Measured time in seconds of one trial of each configuration, or None if the budget chooses this time."""
    around_s: tuple[float, ...]
    """Seconds that one trial of each configuration takes in addition to the measured time. This time is spent on the
    warm-up, start, data, checks and stop."""
    once_s: float
    """Seconds for loading data before the first trial."""
    peak_trials: int = 0
    """Number of trials before the first block that determine the peak of the first configuration."""
    declared_peaks: int = 0
    """What `peak_trials` would be without fixed-rate configurations. Above 0 if the lab file declares a rate as a
    percentage of the peak."""
    pilots_s: float = 0.0
    """Seconds that pilots take before the first block to determine warm-ups."""
    search_trials: int = 0
    """Approximate number of trials before the first block that search for the best load of each configuration."""
    copies_s: float = 0.0
    """Seconds for two kinds of data copies: those made once for the whole lab, and those made before trials that
    determine the peak or a load."""
    rated_around_s: tuple[float, ...] = ()
    """`around_s` of the fixed-rate configurations. Trials of these configurations are as long as those of the first
    configuration."""
    rated_blocks: int = 0
    """Number of blocks that contain fixed-rate configurations."""
    observed_s: float = 0.0
    """Seconds of observed trials after the last block."""
    turning: float = 0.0
    """Overhead of interleaving as a fraction of the measured time. 0 if the lab measures whole trials."""

    def block_s(self, trial_s: float) -> float:
        """Returns the seconds that one block takes without fixed-rate configurations."""
        measured_s = sum(trial_s if own is None else own for own in self.own_s)
        return sum(self.around_s) + measured_s * (1 + self.turning)

    def before_s(self, trial_s: float) -> float:
        """Returns the seconds before the first block."""
        peaks = self.peak_trials * (self.around_s[0] + self._first_s(trial_s))
        return self.once_s + self.copies_s + self.pilots_s + peaks + self.search_s(trial_s)

    def search_s(self, trial_s: float) -> float:
        """Returns the approximate seconds of the searches for the best load of all configurations, without copies of
        data."""
        return self.search_trials * self.block_s(trial_s)

    def rated_block_s(self, trial_s: float) -> float:
        """Returns the seconds that fixed-rate configurations add to a block."""
        return sum(self.rated_around_s) + len(self.rated_around_s) * self._first_s(trial_s)

    def rated_s(self, trial_s: float) -> float:
        """Returns the total seconds of fixed-rate configurations, including trials that determine the peak."""
        peaks = self.peak_trials * (self.around_s[0] + self._first_s(trial_s)) if self.rated_around_s else 0.0
        return peaks + self.rated_blocks * self.rated_block_s(trial_s)

    def lab_s(self, trial_s: float, count: int) -> float:
        rated_s = self.rated_blocks * self.rated_block_s(trial_s)
        return self.before_s(trial_s) + count * self.block_s(trial_s) + rated_s + self.observed_s

    def _first_s(self, trial_s: float) -> float:
        own = self.own_s[0]
        return trial_s if own is None else own


@dataclass(frozen=True, slots=True)
class Size:
    """The chosen number of blocks and trial length."""

    stages: tuple[Stage, ...]
    trial_s: float
    detectable: float
    elapsed_s: float
    rated_blocks: int = 0


def sized(
    cells: LabTimes,
    lengths: Sequence[float],
    budget_s: float,
    analyses: int | None,
    spread: PairVariation,
    detect: Detect,
    file: str,
    rated_wanted: int = 0,
    checkpoint_s: float = 0.0,
    least_s: float = 0.0,
) -> Size:
    """Among the sizes that fit into the budget, returns the number of blocks and the trial length with the smallest
    minimum detectable effect. Raises InputError if the budget is too small for six blocks of the shortest trials.

    Fixed-rate configurations are measured only if two blocks of them fit into half of the budget, and six blocks of the
    other configurations fit into the rest. `rated_wanted`: number of blocks that a claim about fixed-rate
    configurations needs. `checkpoint_s`: longest time between checkpoints. `least_s`: minimum length of trials in
    slices. The last two are used for the error's hint.
    """
    plain = replace(cells, rated_around_s=(), rated_blocks=0, peak_trials=cells.declared_peaks)
    found = [
        Size(stages, trial_s, detect(spread, trial_s, stages), some.lab_s(trial_s, count), some.rated_blocks)
        for trial_s in lengths
        for some in _choices(cells, plain, trial_s, budget_s)
        if (count := _affordable(some, trial_s, budget_s)) >= blocks.FIRST
        for stages in [staged(count, analyses)]
    ]
    if not found:
        least = plain.lab_s(min(lengths), blocks.FIRST)
        # Some trials end when their work is done. The budget does not determine their length.
        length = f" with trials of {min(lengths):g} s" if None in cells.own_s else ""
        raise InputError(
            f"{file}, budget {units.span(budget_s)}",
            f"{len(cells.around_s)} configurations in {blocks.FIRST} blocks{length} take {units.span(least)}",
            f"a verdict needs {blocks.FIRST} blocks: {_ways(plain, least, budget_s, checkpoint_s, least_s)}",
        )
    return min(found, key=lambda size: _worth(size, rated_wanted))


def _ways(cells: LabTimes, needed_s: float, budget_s: float, checkpoint_s: float, least_s: float) -> str:
    """Lists ways to change a lab that does not fit into its budget. Each way is sufficient by itself, except that the
    lab may still be too large after some values were removed."""
    ways = [f"use a budget of {units.span(spoken_up(needed_s))}"]
    fixed_s = cells.lab_s(0.0, blocks.FIRST)
    per_second = cells.lab_s(1.0, blocks.FIRST) - fixed_s
    # Some trials end when their work is done. Their length cannot be changed.
    fitting_s = math.floor((budget_s - fixed_s) / per_second) if per_second > 0 else 0
    if fitting_s >= max(1.0, least_s) and (settings := _shorter(fitting_s, checkpoint_s)):
        ways.append(f"set {settings}")
    if len(cells.around_s) > 2:
        ways.append("vary fewer values")
    return ", or ".join(ways)


def _shorter(fitting_s: int, checkpoint_s: float) -> str:
    """Returns the settings that make trials at most this long. Returns an empty text if checkpoints need longer
    trials."""
    settings = [f'load.duration = "{fitting_s}s"'] if fitting_s < LENGTHS_S[0] else []
    if CHECKPOINTS * checkpoint_s > fitting_s:
        interval_s = math.floor(fitting_s / CHECKPOINTS)
        settings.append(f'load.checkpoint = "{interval_s}s"')
        if interval_s < 1:
            return ""
    return " and ".join(settings)


def _worth(size: Size, rated_wanted: int) -> tuple[bool, float, float, float]:
    """Returns a sort key. The best size has the smallest key."""
    useful = -min(size.rated_blocks, fixed_rates.USEFUL_BLOCKS)
    return size.rated_blocks < rated_wanted, useful, size.detectable, -size.trial_s


def for_rated_s(cells: LabTimes, lengths: Sequence[float], count: int) -> float:
    """Returns the smallest budget in seconds, rounded up to whole minutes, that allows `count` blocks of fixed-rate
    configurations and six blocks of the other configurations."""
    shortest, these = min(lengths), replace(cells, rated_blocks=count)
    of_rated = these.rated_s(shortest) / fixed_rates.MAX_BUDGET_SHARE
    return 60.0 * math.ceil(max(of_rated, these.lab_s(shortest, blocks.FIRST)) / 60)


def _choices(cells: LabTimes, plain: LabTimes, trial_s: float, budget_s: float) -> Iterator[LabTimes]:
    """Yields two alternatives: as many blocks with fixed-rate configurations as half of the budget allows, and no such
    blocks. The first alternative is left out if the budget allows too few such blocks."""
    if cells.rated_around_s:
        peaks = replace(cells, rated_blocks=0).rated_s(trial_s)
        held = int((budget_s * fixed_rates.MAX_BUDGET_SHARE - peaks) / cells.rated_block_s(trial_s))
        if held >= fixed_rates.LEAST_BLOCKS:
            yield replace(cells, rated_blocks=min(held, cells.rated_blocks))
    yield plain


def spoken_up(seconds: float) -> float:
    """Returns the time rounded up to a value that `units.span` can format exactly: whole seconds, tens of seconds, or
    minutes."""
    step = 1.0 if seconds <= 119 else 10.0 if seconds <= 590 else 60.0
    return step * math.ceil(round(seconds / step, 6))


def staged(count: int, analyses: int | None) -> tuple[Stage, ...]:
    """Divides blocks into `analyses` stages. By default, there is one stage for every six blocks, but at most three. An
    interim analysis follows each stage, so that a clear difference ends the lab early."""
    return blocks.stages(count, min(MOST_ANALYSES, count // blocks.FIRST) if analyses is None else analyses)


WARMUP = "warm-up"


def sized_run(
    around_s: Sequence[float],
    confirmations: int,
    once_s: float,
    lengths: Sequence[float],
    budget_s: float,
    around: str = WARMUP,
    own_length: bool = False,
) -> tuple[int, float]:
    """Among the sizes that fit into the budget, returns the number of blocks and the trial length that give the most
    precise means. Raises InputError if not even one block of the shortest trials fits.

    `around_s`: time that a trial of each configuration takes in addition to the measured time. `around`: what messages
    call this time. `confirmations`: number of confirmation trials, each of which is assumed to take the longest of the
    times in `around_s`. `own_length`: whether the workload determines the trial length. If it does, no shorter length
    is suggested. The standard deviation of the mean of n trials is that of one trial divided by √n. For one trial, it
    depends on the trial length as in `PairVariation`.
    """

    def fixed_s(trial_s: float) -> float:
        return once_s + confirmations * (max(around_s) + trial_s)

    def block_s(trial_s: float) -> float:
        return sum(around_s) + len(around_s) * trial_s

    found = [
        (ASSUMED.at(trial_s) / math.sqrt(count), -trial_s, count)
        for trial_s in lengths
        if (count := min(MOST_BLOCKS, int((budget_s - fixed_s(trial_s)) / block_s(trial_s)))) >= 1
    ]
    if not found:
        raise _too_little(around_s, confirmations, once_s, min(lengths), budget_s, around, own_length)
    _, negative_s, count = min(found)
    return count, -negative_s


def _too_little(
    around_s: Sequence[float],
    confirmations: int,
    once_s: float,
    shortest_s: float,
    budget_s: float,
    around: str,
    own_length: bool,
) -> InputError:
    """Returns an error with the minimum number of trials, their time, and hints. Following any one of the hints is
    sufficient."""
    trials = len(around_s) + confirmations
    apart_s = sum(around_s) + confirmations * max(around_s)
    besides = [name for name, taken_s in (("loading", once_s), (around, apart_s)) if taken_s]
    ways = [f"use a budget of {units.span(spoken_up(once_s + apart_s + trials * shortest_s))}"]
    if around == WARMUP and apart_s and once_s + trials * shortest_s <= budget_s:
        ways.append("use --warmup 0s")
    # If the workload or the time between checkpoints determines the length, no shorter duration is suggested. The
    # suggested duration may be shorter than the lengths that a budget chooses.
    fitting_s = math.floor((budget_s - once_s - apart_s) / trials)
    if not own_length and shortest_s <= LENGTHS_S[0] and fitting_s >= 1:
        ways.append(f"use --duration {fitting_s}s")
    if len(around_s) > 1:
        ways.append("use fewer numbers in --clients")
    needed = f"at least {counted(trials, 'trial')} of {shortest_s:g} s {'is' if trials == 1 else 'are'} needed"
    cause = f"{needed}, in addition to {' and '.join(besides)}" if besides else needed
    return InputError(f"--budget {units.span(budget_s)}", cause, ", or ".join(ways))


def needed(trial_s: float, target: float, analyses: int | None, spread: PairVariation, detect: Detect) -> int | None:
    """Returns the smallest number of blocks that can detect `target`. Returns None if more than 500 blocks are
    needed."""
    low, high = blocks.FIRST - 1, MOST_BLOCKS
    if detect(spread, trial_s, staged(high, analyses)) > target:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if detect(spread, trial_s, staged(middle, analyses)) > target else (low, middle)
    return high


def next_target(detectable: float) -> float:
    """Returns a round relative difference that is about half of the detectable difference."""
    return next((share for share in (0.2, 0.1, 0.05, 0.03, 0.02, 0.01) if share <= detectable * 0.6), 0.01)


def lengths(declared_s: float | None, checkpoints_s: Sequence[float | None]) -> tuple[float, ...]:
    """Returns the trial lengths from which a budget chooses. These lengths are at most the declared length, and long
    enough for two complete checkpoints."""
    least = max((CHECKPOINTS * interval for interval in checkpoints_s if interval is not None), default=0.0)
    most = math.inf if declared_s is None else declared_s
    tried = {*LENGTHS_S, *([] if declared_s is None else [declared_s]), least}
    fitting = sorted(length for length in tried if max(least, min(LENGTHS_S[0], most)) <= length <= max(most, least))
    return tuple(fitting)


def _affordable(cells: LabTimes, trial_s: float, budget_s: float) -> int:
    left_s = budget_s - cells.lab_s(trial_s, 0)
    return min(MOST_BLOCKS, int(left_s / cells.block_s(trial_s)))
