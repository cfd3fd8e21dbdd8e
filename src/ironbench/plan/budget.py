"""From a time budget to blocks and trial length: the pair that resolves the smallest difference.

What a paired t interval of n blocks resolves is its minimum detectable effect: the true log ratio that it finds with
90 % power, about (t(1-α/2, n-1) + t(0.9, n-1)) · s / √n, where s is the standard deviation of the log ratio of two
trials of one block (Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, ch. 2; Bloom, Minimum
Detectable Effects, Evaluation Review 19, 1995). It comes in as `Detect`, computed by the analysis with the exact
noncentral t, α divided by the number of comparisons (Holm's first step) and spent over the looks: the plan promises
what the findings will hold.

More blocks lower it by √n; longer trials lower s, but only that part of its square that is noise within a trial.
Between trials there is more: where data and code came to lie in memory, background work, the state of the device.
`Spread` parts s² in halves at the length it was measured with: half shrinks with trial length, half does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ironbench import units
from ironbench.errors import InputError
from ironbench.model.lab import Stage
from ironbench.plan import blocks, same_load
from ironbench.words import counted

LENGTHS_S = (5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0)
"""Trial lengths tried. Below 5 s start-up and the last transactions weigh too much."""
MOST_BLOCKS = 500
MOST_LOOKS = 3
_SHRINKING = 0.5


@dataclass(frozen=True, slots=True)
class Spread:
    """How much the log ratio of two trials of one block varies."""

    share: float
    """Standard deviation of the log ratio; 0.05 is about 5 %."""
    trial_s: float
    """Length of the trials it holds for."""
    seen: int
    """Blocks it was measured with."""
    source: str
    """Where it is from, in words."""

    def at(self, trial_s: float) -> float:
        """For trials of another length."""
        return self.share * math.sqrt(1 - _SHRINKING + _SHRINKING * self.trial_s / trial_s)


ASSUMED = Spread(0.04 * math.sqrt(2), 30.0, 10_000, "assumed; `ironbench lab noise` measures it here")
"""Runs of 30 s on a small virtual machine varied by 3 to 6 %; a ratio of two varies √2 times as much."""

Detect = Callable[[Spread, float, tuple[Stage, ...]], float]
"""(spread, trial length in s, stages) → smallest relative difference found at the last look."""


@dataclass(frozen=True, slots=True)
class Cells:
    """What the cells of a lab cost. Times in s."""

    own_s: tuple[float | None, ...]
    """Measured time of each cell where the lab varies it; None: the budget chooses."""
    around_s: tuple[float, ...]
    """Warm-up, start, data, checks, stop: what a trial of each cell takes besides."""
    once_s: float
    """Loading, before the first trial."""
    peak_trials: int = 0
    """Of the first cell, before the first block."""
    declared_peaks: int = 0
    """Those of them that are needed without rated cells: where the lab declares a share of the peak as its rate."""
    pilots_s: float = 0.0
    """Trials that decide warm-ups, before the first block."""
    search_trials: int = 0
    """Of each cell, before the first block, to find its best load: about so many."""
    copies_s: float = 0.0
    """Of data that are copied once for the whole lab, and before each trial that finds the peak or a load."""
    rated_around_s: tuple[float, ...] = ()
    """`around_s` of the rated cells: all trials of a lab that has some are of one length."""
    rated_blocks: int = 0
    """In which rated cells are measured."""
    observed_s: float = 0.0
    """Observed trials, after the last block."""
    turning: float = 0.0
    """What is not measured of turns, as a share of what is; 0: the lab is measured by trials."""

    def block_s(self, trial_s: float) -> float:
        """One of the lab's own cells alone."""
        measured_s = sum(trial_s if own is None else own for own in self.own_s)
        return sum(self.around_s) + measured_s * (1 + self.turning)

    def before_s(self, trial_s: float) -> float:
        """Until the first block."""
        peaks = self.peak_trials * (self.around_s[0] + self._first_s(trial_s))
        return self.once_s + self.copies_s + self.pilots_s + peaks + self.search_s(trial_s)

    def search_s(self, trial_s: float) -> float:
        """What the search for the best load of all cells takes, about; copies of data apart."""
        return self.search_trials * self.block_s(trial_s)

    def rated_block_s(self, trial_s: float) -> float:
        """What the rated cells add to a block."""
        return sum(self.rated_around_s) + len(self.rated_around_s) * self._first_s(trial_s)

    def rated_s(self, trial_s: float) -> float:
        """What response times at the same load take in all, the peak included."""
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
    """What was chosen."""

    stages: tuple[Stage, ...]
    trial_s: float
    detectable: float
    elapsed_s: float
    rated_blocks: int = 0


def sized(
    cells: Cells,
    lengths: Sequence[float],
    budget_s: float,
    looks: int | None,
    spread: Spread,
    detect: Detect,
    file: str,
    rated_wanted: int = 0,
) -> Size:
    """The blocks and the trial length within the budget that resolve most. InputError: not even six of the shortest.

    Rated cells are measured where half of the budget holds two blocks of them and the rest six of the others;
    `rated_wanted`: in so many where they fit, since a claim about them cannot be decided with fewer.
    """
    plain = replace(cells, rated_around_s=(), rated_blocks=0, peak_trials=cells.declared_peaks)
    found = [
        Size(stages, trial_s, detect(spread, trial_s, stages), some.lab_s(trial_s, count), some.rated_blocks)
        for trial_s in lengths
        for some in _choices(cells, plain, trial_s, budget_s)
        if (count := _affordable(some, trial_s, budget_s)) >= blocks.FIRST
        for stages in [staged(count, looks)]
    ]
    if not found:
        least = plain.lab_s(min(lengths), blocks.FIRST)
        length = f" of {min(lengths):g} s" if None in cells.own_s else ""  # work that ends by itself has its own
        raise InputError(
            f"{file}, budget {units.span(budget_s)}",
            f"{len(cells.around_s)} cells in {blocks.FIRST} blocks{length} take {units.span(least)}",
            f"a verdict needs {blocks.FIRST} blocks: allow {units.span(spoken_up(least))}, or name fewer levels",
        )
    return min(found, key=lambda size: _worth(size, rated_wanted))


def _worth(size: Size, rated_wanted: int) -> tuple[bool, float, float, float]:
    """The smallest is best."""
    useful = -min(size.rated_blocks, same_load.USEFUL_BLOCKS)
    return size.rated_blocks < rated_wanted, useful, size.detectable, -size.trial_s


def for_rated_s(cells: Cells, lengths: Sequence[float], count: int) -> float:
    """The least budget, in whole minutes, that holds `count` blocks of rated cells and six of the lab's own."""
    shortest, these = min(lengths), replace(cells, rated_blocks=count)
    of_rated = these.rated_s(shortest) / same_load.SHARE_OF_BUDGET
    return _whole_minutes(max(of_rated, these.lab_s(shortest, blocks.FIRST)))


def _choices(cells: Cells, plain: Cells, trial_s: float, budget_s: float) -> Iterator[Cells]:
    """With as many blocks of rated cells as their part of the budget holds, and without any."""
    if cells.rated_around_s:
        peaks = replace(cells, rated_blocks=0).rated_s(trial_s)
        held = int((budget_s * same_load.SHARE_OF_BUDGET - peaks) / cells.rated_block_s(trial_s))
        if held >= same_load.LEAST_BLOCKS:
            yield replace(cells, rated_blocks=min(held, cells.rated_blocks))
    yield plain


def _whole_minutes(seconds: float) -> float:
    return 60.0 * math.ceil(seconds / 60)


def spoken_up(seconds: float) -> float:
    """The least that `units.span` writes without rounding it down: whole seconds, tens of them, or minutes."""
    step = 1.0 if seconds <= 119 else 10.0 if seconds <= 590 else 60.0
    return step * math.ceil(round(seconds / step, 6))


def staged(count: int, looks: int | None) -> tuple[Stage, ...]:
    """A look at the findings after every six blocks at most, three in all: a clear difference ends the lab early."""
    return blocks.stages(count, min(MOST_LOOKS, count // blocks.FIRST) if looks is None else looks)


WARMUP = "warm-up"


def sized_run(
    around_s: Sequence[float],
    confirmations: int,
    once_s: float,
    lengths: Sequence[float],
    budget_s: float,
    around: str = WARMUP,
) -> tuple[int, float]:
    """Blocks and trial length of a run whose means are surest within the budget. InputError: not one of the shortest.

    `around_s`: what a trial of each cell takes besides, called `around`; the `confirmations` may be of the longest. A
    mean of n trials varies by 1/√n of what one does, and `Spread` says how that changes with length.
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
        raise _too_little(around_s, confirmations, once_s, min(lengths), budget_s, around)
    _, negative_s, count = min(found)
    return count, -negative_s


def _too_little(
    around_s: Sequence[float], confirmations: int, once_s: float, shortest_s: float, budget_s: float, around: str
) -> InputError:
    """The fewest trials and what they take, with each way out that suffices by itself."""
    trials = len(around_s) + confirmations
    apart_s = sum(around_s) + confirmations * max(around_s)
    besides = [name for name, taken_s in (("loading", once_s), (around, apart_s)) if taken_s]
    ways = [f"allow {units.span(spoken_up(once_s + apart_s + trials * shortest_s))}"]
    if around == WARMUP and apart_s and once_s + trials * shortest_s <= budget_s:
        ways.append("give --warmup 0s")
    # Shorter ones are not chosen, but measured where they are asked for; checkpoints may need longer ones.
    fitting_s = math.floor((budget_s - once_s - apart_s) / trials)
    if shortest_s <= LENGTHS_S[0] and fitting_s >= 1:
        ways.append(f"give --duration {fitting_s}s")
    if len(around_s) > 1:
        ways.append("name fewer numbers in --clients")
    needed = f"at least {counted(trials, 'trial')} of {shortest_s:g} s {'is' if trials == 1 else 'are'} needed"
    cause = f"{needed}, besides {' and '.join(besides)}" if besides else needed
    return InputError(f"--budget {units.span(budget_s)}", cause, ", or ".join(ways))


def needed(trial_s: float, target: float, looks: int | None, spread: Spread, detect: Detect) -> int | None:
    """The fewest blocks that resolve `target`; None beyond 500."""
    low, high = blocks.FIRST - 1, MOST_BLOCKS
    if detect(spread, trial_s, staged(high, looks)) > target:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if detect(spread, trial_s, staged(middle, looks)) > target else (low, middle)
    return high


def next_target(detectable: float) -> float:
    """A round difference of about half of what is resolved."""
    return next((share for share in (0.2, 0.1, 0.05, 0.03, 0.02, 0.01) if share <= detectable * 0.6), 0.01)


def lengths(declared_s: float | None, checkpoints_s: Sequence[float | None]) -> tuple[float, ...]:
    """Trial lengths to choose from: none above the declared one, none too short for two complete checkpoints."""
    least = max((2.5 * interval for interval in checkpoints_s if interval is not None), default=0.0)
    most = math.inf if declared_s is None else declared_s
    tried = {*LENGTHS_S, *([] if declared_s is None else [declared_s]), least}
    fitting = sorted(length for length in tried if max(least, min(LENGTHS_S[0], most)) <= length <= max(most, least))
    return tuple(fitting)


def _affordable(cells: Cells, trial_s: float, budget_s: float) -> int:
    left_s = budget_s - cells.lab_s(trial_s, 0)
    return min(MOST_BLOCKS, int(left_s / cells.block_s(trial_s)))
