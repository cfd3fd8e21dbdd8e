"""Adds fixed-rate configurations to a lab. These configurations repeat the lab's configurations at rates that the
baseline can sustain, so that response times can be compared.

In a closed loop with an equal number of clients, the faster system gets more work (`plan.rates`). A lab that varies the
system and not the load therefore also measures its configurations at 50%, 70% and 90% of the baseline's peak. These
*rated* configurations run in the first blocks, together with the other configurations, in random order. Rated
configurations have no verdict unless a claim names them (`plan.claims`), because the lab declares only one metric for
verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ironbench.errors import InputError
from ironbench.model.lab import RATE_FACTOR, Lab
from ironbench.model.system import Load, Setup
from ironbench.plan import rates

MOST_BLOCKS = 6
"""Maximum number of blocks with fixed-rate configurations. This is also the minimum for a verdict. More blocks would
take more time than the lab's own question."""
LEAST_BLOCKS = 2
"""Minimum number of blocks for a confidence interval."""
USEFUL_BLOCKS = 3
"""Number of blocks for a useful confidence interval. To reach this number, a budget chooses shorter trials if
necessary."""
MAX_BUDGET_SHARE = 0.5
"""Maximum fraction of the budget for fixed-rate configurations. The rest is for the lab's own question."""
AUTO, NONE = "auto", "none"


def shares(asked: str | Sequence[str], where: str) -> tuple[float, ...]:
    """Returns the fractions of the peak in `measure.rates`. Raises InputError for values that are not percentages and
    for duplicates."""
    if isinstance(asked, str):
        return rates.SHARES if asked == AUTO else ()
    shares = []
    for number, word in enumerate(asked):
        at = f"{where}[{number}]"
        share = rates.read(at, word, numbers=False)[1]
        if share is None:
            raise InputError(at, f"{word!r} is not a percentage of the peak throughput", 'write for example "70%"')
        if share in shares:
            raise InputError(at, f"{word} is listed twice", "list each percentage once")
        shares.append(share)
    return tuple(shares)


def extended(
    lab: Lab, asked: str | Sequence[str], where: str, allows_rate: Callable[[Setup], bool] = lambda _: True
) -> Lab:
    """Returns the lab with fixed-rate configurations added. A configuration is repeated at a fixed rate if only the
    system differs between it and its baseline.

    `allows_rate`: returns whether the transactions of a configuration can be started at a target rate. Raises
    InputError if the user requests rates that are not possible in this lab.
    """
    wanted = shares(asked, where)
    measurable = {setup.cell.name: setup for setup in lab.measurable}
    why_not = _hindrance(list(measurable.values()))
    if not all(map(allows_rate, measurable.values())):
        why_not = "the workload has no transactions that can start at a rate"
    pairs = [] if why_not else [pair for pair in lab.comparisons if _alike_but_for_the_system(*pair, measurable)]
    if not isinstance(asked, str) and wanted and not pairs:
        raise InputError(
            where,
            why_not or "no two configurations differ only in the system",
            'remove measure.rates, or write rates = "none"',
        )
    taking_part = dict.fromkeys(name for pair in pairs for name in (pair[1], pair[0]))
    rated = [_at(measurable[name], share) for share in wanted for name in taking_part]
    compared = [(name_at(cell, share), name_at(baseline, share)) for share in wanted for cell, baseline in pairs]
    return replace(lab, rated=tuple(rated), rated_comparisons=tuple(compared))


def without(lab: Lab) -> Lab:
    """Returns the lab without its fixed-rate configurations."""
    return replace(lab, rated=(), rated_comparisons=())


def in_blocks(blocks: int) -> int:
    """Returns how many of `blocks` blocks contain fixed-rate configurations if the lab has no budget. Fixed-rate
    configurations are measured in the first blocks."""
    return min(blocks, MOST_BLOCKS)


def name_at(cell: str, share: float) -> str:
    """Returns the name of a fixed-rate configuration, such as `log=memory rate=50%`. The name has the same form as if
    the rate were a factor of the lab."""
    return f"{cell} {RATE_FACTOR}={_level(share)}"


def _level(share: float) -> str:
    return f"{share * 100:g}%"


def _at(setup: Setup, share: float) -> Setup:
    load = replace(setup.cell.load, rate_share=share)
    levels = {**setup.cell.levels, RATE_FACTOR: _level(share)}
    cell = replace(setup.cell, name=name_at(setup.cell.name, share), load=load, levels=levels)
    return replace(setup, cell=cell, of=setup.cell.name)


def _hindrance(setups: Sequence[Setup]) -> str:
    """Returns the reason why the configurations of the lab cannot run at percentages of a common peak. Returns an empty
    text if they can."""
    loads = [setup.cell.load for setup in setups]
    if any(setup.search for setup in setups):
        return "the best load of each configuration is found by a search, so there is no common load"
    if len({load.clients for load in loads}) > 1:
        return "the lab varies the number of clients, so there is no single peak"
    if any(rates.open_loop(load) for load in loads):
        return "the lab already declares rates"
    if any(load.curve is not None for load in loads):
        return "the load follows a curve, so there is no single peak"
    if any(load.duration_s is None for load in loads):
        return "the trials have no duration, and an open loop needs one"
    if len({load.duration_s for load in loads}) > 1:
        return "the trials have different durations"
    if any(load.think_time_s for load in loads):
        return "clients have a think time, so their peak throughput is not the peak of the system"
    return ""


def _alike_but_for_the_system(cell: str, baseline: str, measurable: Mapping[str, Setup]) -> bool:
    one, other = measurable[cell], measurable[baseline]
    if one.choice != other.choice or _work(one.cell.load) != _work(other.cell.load):
        return False
    systems = [replace(setup.system, label="") for setup in (one, other)]
    return systems[0] != systems[1] or one.cell.load.cache != other.cell.load.cache


def _work(load: Load) -> Load:
    """Returns the load without the caches, checkpoints and threads. These fields do not affect which work is done."""
    return replace(load, cache="", checkpoint_s=None, threads=0)
