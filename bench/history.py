"""Measures how often `ironbench history` finds real changes and reports false ones, compared with Apache Otava on the
same series. The production code analyses simulated nights whose true changes are known. Seeds are fixed.

Otava is installed into a separate environment (`build/otava`), since it pins numpy and requires cloud clients. Otava
gets one number per point, the mean of the night's trials, and uses its defaults (window 50, p 0.001, no minimum
magnitude).
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.figures import Target, at_least, at_most, report, within
from ironbench.stats.change_points import changes
from ironbench.stats.intervals import wilson

OTAVA = "apache-otava==0.8.0"
PLACE = Path(__file__).parents[1] / "build" / "otava"
SERIES = 500
NOISE = 0.03
"""Relative standard deviation of a trial."""
TRIALS, BEFORE, CONFIRMING = 6, 30, 3
"""Trials per night, nights before a shift, nights within which the shift must be found."""
SHIFT = math.log(0.95)
NIGHTS = 30
BETWEEN = {"trials vary by 3 %": 0.0, "and nights by 1 %": 0.01}
"""Relative standard deviation between nights."""
_DETECT = """
import json, sys
from otava.analysis import compute_change_points
print(json.dumps([[int(p.index) for p in compute_change_points(s, 50, 0.001, 0.0)[0]] for s in json.load(sys.stdin)]))
"""


@dataclass(frozen=True, slots=True)
class Nights:
    """A simulated series: logarithms of the trials of each night."""

    trials: np.ndarray[tuple[int, int], np.dtype[np.float64]]

    @property
    def means(self) -> list[float]:
        return list(np.exp(self.trials.mean(axis=1)) * 1000)


def nights(seed: int, count: int, between: float, shift: float = 0.0, at: int = 0, spike: float = 0.0) -> list[Nights]:
    """Creates `SERIES` series. A shift starts at night `at`; a spike affects only that night."""
    dice = np.random.default_rng(seed)
    found = []
    for _ in range(SERIES):
        level = between * dice.standard_normal(count) + np.where(np.arange(count) >= at, shift, 0.0)
        level[at] += spike
        found.append(Nights(level[:, None] + NOISE * dice.standard_normal((count, TRIALS))))
    return found


def logs_and_variances(one: Nights) -> tuple[list[float], list[float]]:
    """Computes means and variances from trials, like `study/history.py`."""
    own = one.trials.var(axis=1, ddof=1)
    return list(one.trials.mean(axis=1)), list((own + own.mean()) / 2 / TRIALS)


def ours(series: Sequence[Nights]) -> list[list[int]]:
    """Returns the indices of the change points in each series, found by ironbench."""
    return [[point.place for point in changes(*logs_and_variances(one)).points] for one in series]


def otavas(series: Sequence[Nights]) -> list[list[int]]:
    python = PLACE / "bin" / "python"
    if not (PLACE / "ready").exists():
        venv.create(PLACE, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", OTAVA], check=True, stdout=sys.stderr)
        (PLACE / "ready").touch()
    told = subprocess.run(
        [python, "-c", _DETECT],
        input=json.dumps([one.means for one in series]),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[int]] = json.loads(told.stdout)
    return found


def near(places: Sequence[int], at: int) -> bool:
    return any(abs(place - at) <= 2 for place in places)


def share(what: str, series: Sequence[Nights], counts: Callable[[list[int]], bool], asked: Target | str = "") -> None:
    """Reports the percentage of series that satisfy `counts`, for ironbench with its target, and for Otava."""
    for name, found, wanted in (("", ours(series), asked), ("Otava: ", otavas(series), "")):
        part = sum(map(counts, found)) / len(found)
        low, high = wilson(part, len(found))
        shown = f"{100 * part:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        report(f"{name}{what}", round(100 * part, 2), wanted, shown)


def main() -> None:
    print(f"{SERIES} simulated series a figure, nights of {TRIALS} trials, trial noise {NOISE:.0%}")
    for words, between in BETWEEN.items():
        first = not between
        share(f"change point in noise alone, {words}", nights(1, NIGHTS, between), bool, at_most(1.0) if first else "")
        after = [*range(BEFORE, BEFORE + CONFIRMING)]
        shifted = nights(2, len(after) + BEFORE, between, SHIFT, BEFORE)
        asked = at_least(90.0) if first else ""
        share(f"shift of 5 % found within 3 nights, {words}", shifted, lambda one: near(one, BEFORE), asked)
        later = nights(2, BEFORE + 10, between, SHIFT, BEFORE)
        share(f"the same within 10 nights, {words}", later, lambda one: near(one, BEFORE))
        for size in (0.1, -0.3):
            spiked = nights(3, NIGHTS, between, spike=size, at=NIGHTS // 2)
            asked = at_most(1.0) if first else ""
            share(f"change point beside a spike of {size:+.0%}, {words}", spiked, bool, asked)
    covered()


def covered() -> None:
    """Measures the coverage of the confidence interval of a change of 10% in the middle of 30 nights."""
    shift = math.log(0.9)
    found = [
        point
        for one in nights(4, NIGHTS, 0.01, shift, NIGHTS // 2)
        for point in changes(*logs_and_variances(one)).points
        if point.place == NIGHTS // 2
    ]
    held = 100 * sum(one.low <= shift <= one.high for one in found) / len(found)
    report("95 % interval holds the true size, nights vary by 1 %", round(held, 2), within(93.0, 98.0), f"{held:.1f} %")
