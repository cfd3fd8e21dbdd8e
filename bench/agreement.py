"""Compares slices with trials of ten times the measured time: do both methods give the same answers?

Each of seven questions compares two configurations, and is answered first by slices, then by trials. If slices were
precise but wrong, the two confidence intervals would not overlap. Data are on the disk, because WAL and flushes are
part of the questions. Takes about 80 minutes; each question resumes where it was stopped.
`IRONBENCH_BENCH_QUESTIONS=log,engine` selects the questions `log` and `engine`.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import special

from bench.figures import Between, equal, report
from bench.series import HOME, Declaration, finding
from ironbench.model.finding import Finding
from ironbench.stats.multiplicity import LEVEL
from ironbench.stats.power import detectable

PLACE = Path(tempfile.gettempdir(), "ironbench-bench", "agreement")
SLICES, LONG, TRIALS = "slices", "slices, as long as trials", "trials"
"""If slices and trials disagree, or if the minimum detectable effect of slices is not much smaller, longer blocks of
slices show whether the method or the duration is the reason."""
BLOCKS: Mapping[str, int] = {SLICES: 6, LONG: 6, TRIALS: 16}
SECONDS: Mapping[str, float] = {SLICES: 2.5, LONG: 10, TRIALS: 10}
"""Seconds per configuration and block: a block takes 15 s by slices and 160 s by trials."""
LAB = """
question = "{question}"
[system]
{system}
[layout]
data = "{place}"
[workload]
name = "{workload}"
with = {{ scale = {scale} }}
[load]
clients = 4
duration = "{seconds}s"
warmup = "1s"
max_tries = 10
{devices}
[vary.cell]
{cells}
[measure]
method = "{method}"
repeats = {blocks}
quiet = "0s"
rates = "none"
seed = 1
"""
POSTGRES = 'engine = "postgres"\nmemory = "128MB"'
DEVICES = """cache = "hot"
[devices]
disk = { model = "hdd-10k(cache=on)", capacity = "1GiB", fs = "ext4" }
ssd = { model = "ssd-sata-2008(cache=on)", capacity = "1GiB", fs = "ext4" }"""


@dataclass(frozen=True, slots=True)
class Question:
    """A comparison of two configurations. The result is the ratio of the second to the first."""

    text: str
    workload: str
    scale: int
    cells: str
    system: str = POSTGRES
    devices: str = ""
    seconds: float = 1.0
    """Factor applied to `SECONDS`."""


QUESTIONS: Mapping[str, Question] = {
    "log": Question("Is a free log faster?", "igen-oltp", 2, 'disk = {}\nfree = { ideal = "log" }'),
    "memory": Question(
        "Does memory matter?", "select-only", 5, 'little = { memory = "8MB" }\nmuch = { memory = "256MB" }'
    ),
    "clients": Question(
        "Do eight clients do more than two?", "igen-oltp", 1, "two = { clients = 2 }\neight = { clients = 8 }"
    ),
    "version": Question(
        "Is the newer version faster?",
        "simple-update",
        5,
        'old = { bin = "wheel:16" }\nnew = { bin = "wheel:18", layout.data = "@PLACE@-18" }',
    ),
    "setting": Question(
        "What does it cost to wait for the log?",
        "tpcb-like",
        5,
        'waits = {}\n"does not" = { set = { synchronous_commit = "off" } }',
    ),
    "engine": Question(
        "Which engine is faster?",
        "igen-oltp",
        2,
        'postgres = { engine = "postgres", memory = "128MB" }\n'
        'mariadb = { engine = "mariadb", memory = "128MB", layout.data = "@PLACE@-mariadb" }',
        system="",
    ),
    "devices": Question(
        "What does an emulated SSD bring over an emulated disk?",
        "igen-oltp",
        2,
        'disk = { layout.data = "disk", layout.log = "disk" }\nSSD = { layout.data = "ssd", layout.log = "ssd" }',
        devices=DEVICES,
        seconds=2.0,
    ),
}


def declaration(name: str, method: str, blocks: int = 0) -> Declaration:
    question = QUESTIONS[name]
    text = LAB.format(
        question=question.text,
        system=question.system,
        place=PLACE / name,
        workload=question.workload,
        scale=question.scale,
        seconds=SECONDS[method] * question.seconds,
        devices=question.devices,
        cells=question.cells.replace("@PLACE@", str(PLACE / name)),
        method=TRIALS if method == TRIALS else SLICES,
        blocks=blocks or BLOCKS[method],
    )
    short = "long" if method == LONG else method
    return Declaration(f"agreement-{name}-{short}{'-in-turn' if blocks else ''}", text)


def answered(name: str, method: str) -> tuple[Finding, float]:
    """Returns the finding, and the seconds per block from reading the lab file to the finding. Reuses an existing
    measurement."""
    declared = declaration(name, method)
    took, began = HOME / declared.name / "took", time.monotonic()
    found = finding(declared, 0)
    if not took.exists():
        took.write_text(str(time.monotonic() - began))
    return found, float(took.read_text()) / BLOCKS[method]


def logs(found: Finding) -> list[float]:
    return [math.log(ratio) for _, ratio in found.ratios]


def in_turn(name: str) -> Between:
    """Returns the ratio of long slices to trials. Their blocks alternate in random order, so that both are measured
    under the same conditions."""
    dice, each = random.Random(25), dict[str, list[float]]()
    for number in range(BLOCKS[LONG]):
        for method in dice.sample((LONG, TRIALS), 2):
            each.setdefault(method, []).extend(logs(finding(declaration(name, method, blocks=1), number)))
    return distance(each[LONG], each[TRIALS])


def distance(*each: Sequence[float]) -> Between:
    """Returns the ratio of the first series of blocks to the second, computed from logarithms, with the 95% confidence
    interval of Welch's t-test (Biometrika 34, 1947)."""
    squares = [statistics.variance(one) / len(one) for one in each]
    freedom = sum(squares) ** 2 / sum(square**2 / (len(one) - 1) for square, one in zip(squares, each, strict=True))
    mean = statistics.fmean(each[0]) - statistics.fmean(each[1])
    half = float(special.stdtrit(freedom, 0.975)) * math.sqrt(sum(squares))
    return Between(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def detected(found: Finding, block_s: float) -> float:
    """Returns the minimum detectable effect of a lab of ten minutes with this variation between blocks; infinite if
    there is none."""
    blocks = max(6, int(600 / block_s))
    effect = detectable(statistics.stdev(logs(found)), blocks, LEVEL, len(found.ratios))
    return math.inf if effect is None else effect


def main() -> None:
    named = os.environ.get("IRONBENCH_BENCH_QUESTIONS", "")
    apart = 0
    names = named.split(",") if named else list(QUESTIONS)
    for name in names:
        (slices, slices_s), (trials, trials_s) = (answered(name, method) for method in (SLICES, TRIALS))
        for method, found, block_s in ((SLICES, slices, slices_s), (TRIALS, trials, trials_s)):
            value = f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f}), {len(found.ratios)} blocks"
            report(f"{name}, {found.cell} over {found.baseline}, {method}", f"{value} of {block_s:.1f} s")
            report(f"  difference found in ten minutes, {method}", f"{detected(found, block_s):.1%}")
        between = distance(logs(slices), logs(trials))
        report("  slices over trials", str(between))
        precise = detected(slices, slices_s) <= detected(trials, trials_s) / 2
        if not precise or not between.low <= 1 <= between.high:
            longer, longer_s = answered(name, LONG)
            report(
                f"  {LONG}", f"{longer.ratio:.3f} ({longer.low:.3f} to {longer.high:.3f}), blocks of {longer_s:.1f} s"
            )
            between = distance(logs(longer), logs(trials))
            report("  these over trials", str(between))
            report("  difference found in ten minutes by these", f"{detected(longer, longer_s):.1%}")
            if not between.low <= 1 <= between.high:
                report("  these over trials of the same hour", str(in_turn(name)))
        apart += slices.low > trials.high or trials.low > slices.high
    report(f"{len(names)} questions: intervals of slices and of trials that do not overlap", apart, equal(0))
