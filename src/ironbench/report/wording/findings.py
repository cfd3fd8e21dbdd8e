"""Words for findings: how they were computed, why there is no verdict, which blocks were dropped."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.finding import NOT_AT_BOTH_ENDS
from ironbench.model.lab import Configuration
from ironbench.model.note import Note
from ironbench.model.record import DUET, SLICES
from ironbench.report.wording import terms
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.terms import configuration
from ironbench.report.wording.values import Number, Strings, names, percent
from ironbench.words import counted, grouped


@wording("t-interval")
def t_interval(
    blocks: int,
    look: int = 1,
    looks: int = 1,
    round: int = 1,
    comparisons: int = 1,
    equivalence_level: float | None = None,
) -> str:
    """t confidence interval on log ratios of 6 blocks, interim analysis 1 of 2, 1 of 3 comparisons (Holm)"""
    words = f"t confidence interval on log ratios of {counted(blocks, 'block')}"
    if looks > 1:
        words += f", interim analysis {look} of {looks}"
    if round > 1:
        words += f", only blocks of round {round}"
    if comparisons > 1:
        words += f", 1 of {comparisons} comparisons (Holm)"
    if equivalence_level is not None:
        words += f"; equivalent by two one-sided t tests at {100 * equivalence_level:.2g}% each"
    return words


@wording("no-complete-block")
def no_complete_block() -> str:
    """no complete block"""
    return "no complete block"


# Advice: each text continues the phrase "To decide: ".


@wording("choose-other-metric")
def choose_other_metric() -> str:
    """choose another metric; neither direction of this one is better"""
    return "choose another metric; neither direction of this one is better"


@wording("finish-lab")
def finish_lab(planned: int, least: int) -> str:
    """finish the lab; 8 blocks are planned, and a verdict needs 6"""
    return f"finish the lab; {planned} blocks are planned, and a verdict needs {least}"


@wording("least-blocks")
def least_blocks(least: int) -> str:
    """run a round of at least 6 complete blocks"""
    return f"run a round of at least {least} complete blocks"


@wording("reduce-variation")
def reduce_variation(variation: float, margin: float, more_than: int) -> str:
    """use a quieter machine, longer trials or a wider margin: blocks vary by 30% (SD), so detecting a difference …"""
    return (
        f"use a quieter machine, longer trials or a wider margin: blocks vary by {percent(variation)} (SD), so "
        f"detecting a difference of {percent(margin)} would take more than {grouped(more_than)} blocks"
    )


@wording("planned-blocks")
def planned_blocks(blocks: int, margin: float) -> str:
    """finish the 12 planned blocks, which detect or rule out a difference of 5% with 90% power"""
    return f"finish the {blocks} planned blocks, which {_with_power(margin)}"


@wording("another-round")
def another_round(blocks: int, margin: float) -> str:
    """run a round of 9 blocks, which detect or rule out a difference of 5% with 90% power"""
    return f"run a round of {blocks} blocks, which {_with_power(margin)}"


def _with_power(margin: float) -> str:
    return f"detect or rule out a difference of {percent(margin)} with {percent(0.9)} power"


@wording("find-change")
def find_change() -> str:
    """find out what changed from block to block (growing data, a cache that fills, …), fix it, and measure again"""
    return (
        "find out what changed from block to block (growing data, a cache that fills, too short a warm-up), fix it, "
        "and measure again"
    )


# Why there is no verdict.


@wording("unequal-losses")
def unequal_losses(lost: Sequence[tuple[Configuration, int]]) -> str:
    """WAL in memory has no usable trial in 2 blocks: no verdict if one side lost more blocks than the other"""
    sides = " and ".join(
        f"{configuration(name)} has no usable trial in {counted(blocks, 'block')}" for name, blocks in lost
    )
    return f"{sides}: no verdict if one side lost more blocks than the other"


@wording(NOT_AT_BOTH_ENDS)
def not_at_both_ends(change: Note) -> str:
    """the ratio drifted from 3.37 to 1.00 over the blocks, so no verdict is true for all of them"""
    return f"{text(change)}, so no verdict is true for all of them"


@wording("suspect-cpu")
def suspect_cpu() -> str:
    """no verdict about CPU time from flagged trials"""
    return "no verdict about CPU time from flagged trials"


@wording("ratio-changed")
def ratio_changed(before: float, after: float, block: int | None = None) -> str:
    """the ratio drifted from 3.37 to 1.00 over the blocks"""
    ends = f"{before:.2f} to {after:.2f}"
    if block is None:
        return f"the ratio drifted from {ends} over the blocks"
    return f"the ratio changed from {ends} at block {block}"


# Warnings.


@wording("too-few-blocks")
def too_few_blocks(blocks: int, least: int) -> str:
    """3 complete blocks: a verdict needs at least 6"""
    return f"{counted(blocks, 'complete block')}: a verdict needs at least {least}"


@wording("below-margin")
def below_margin(margin: Number) -> str:
    """the difference is significant but smaller than the declared margin of 5%"""
    return f"the difference is significant but smaller than the declared margin of {percent(margin)}"


@wording("both-changed")
def both_changed(metric: str, change: float, block: int | None = None) -> str:
    """throughput of both configurations drifted by +12%; pairing within blocks cancels most of it"""
    verb, where = ("drifted", "") if block is None else ("changed", f" from block {block} on")
    by = f"{100 * change:+.0f}%"
    return f"{metric} of both configurations {verb} by {by}{where}; pairing within blocks cancels most of it"


@wording("machine-drifts")
def machine_drifts() -> str:
    """the machine drifts by more than its run-to-run variation: the false-alarm rate is above 5%, up to 8%"""
    return "the machine drifts by more than its run-to-run variation: the false-alarm rate is above 5%, up to 8%"


@wording("blocks-missing")
def blocks_missing(complete: int, planned: int, missing: int) -> str:
    """4 of 6 planned blocks complete, 2 missing: the verdict is provisional"""
    known = f"{complete} of {counted(planned, 'planned block')} complete, {missing} missing"
    return f"{known}: {'the verdict is provisional' if complete else 'there is no verdict yet'}"


@wording("machine-changed")
def machine_changed() -> str:
    """the machine or its settings changed between trials"""
    return "the machine or its settings changed between trials"


@wording("varied-unintended")
def varied_unintended(fact: str, cell: str, baseline: str) -> str:
    """varied unintentionally: system.settings.work_mem 4MB vs. 64MB"""
    return f"varied unintentionally: {fact} {cell} vs. {baseline}"


@wording("not-same-load")
def not_same_load(rated: bool) -> str:
    """closed loop: with equal clients the faster system gets more work, so these times are not at the same load …"""
    more = (
        "Response times at the same load: see the rates at a percentage of the baseline's peak"
        if rated
        else 'Compare them at rates that the baseline can sustain: rate = ["50%", "70%", "90%"] in [vary], with '
        'design = "full"'
    )
    return (
        "closed loop: with equal clients the faster system gets more work, so these times are not at the same load. "
        f"{more}"
    )


@wording("loads-searched")
def loads_searched(of: str, cell: float, baseline: float) -> str:
    """different loads: each configuration ran at the load that its search chose (clients: 8 vs. 16)"""
    return (
        f"different loads: each configuration ran at the load that its search chose ({of}: {cell:g} vs. {baseline:g})"
    )


# Blocks that did not enter.


@wording("block-dropped")
def block_dropped(block: int, why: Sequence[Note]) -> str:
    """block 3: WAL in memory was not measured"""
    return f"block {block}: {'; '.join(map(text, why)) or 'incomplete'}"


@wording("block-on-machines")
def block_on_machines() -> str:
    """trials ran on different machines"""
    return "trials ran on different machines"


@wording("block-not-in-turns")
def block_not_in_turns() -> str:
    """trials of the two systems were not interleaved"""
    return "trials of the two systems were not interleaved"


@wording("cell-not-measured")
def cell_not_measured(cell: Configuration) -> str:
    """WAL in memory was not measured"""
    return f"{configuration(cell)} was not measured"


@wording("cell-lost")
def cell_lost(cell: Configuration, status: str, causes: Sequence[Note] = ()) -> str:
    """WAL in memory invalid (the server crashed)"""
    why = "; ".join(map(text, causes))
    return f"{configuration(cell)} {terms.status(status)}{f' ({why})' if why else ''}"


@wording("cell-unresolved")
def cell_unresolved(cell: Configuration, units: str, metric: str) -> str:
    """WAL in memory: transactions still waiting at the end could change response_time_p99_s"""
    return f"{configuration(cell)}: {units} still waiting at the end could change {metric}"


@wording("cell-of-too-few")
def cell_of_too_few(cell: Configuration, units: str, needs: Sequence[Sequence[float]]) -> str:
    """WAL on disk has too few transactions (99.9% needs 2,995)"""
    return f"{configuration(cell)} has too few {units} ({needed(needs)})"


@wording("cell-without-ratio")
def cell_without_ratio(cell: Configuration, metric: str, value: float | None = None) -> str:
    """WAL on disk has throughput 0, so there is no ratio"""
    name = configuration(cell)
    return f"{name} has no {metric}" if value is None else f"{name} has {metric} {value:g}, so there is no ratio"


# Notes about the whole lab.


@wording("half-of-cores")
def half_of_cores() -> str:
    """duet: each system ran on half of the cores while the other system used the other half, so throughput and …"""
    return (
        "duet: each system ran on half of the cores while the other system used the other half, so throughput and "
        "response times do not apply to the whole machine"
    )


@wording("fixed-order")
def fixed_order(method: Strings) -> str:
    """fixed order (measure.order): changes within a block, such as a machine that warms up or effects of the …"""
    if names(method) == DUET:
        return (
            "fixed order (measure.order): in every pair of slices of a duet the first system started on the first half "
            "of the cores, or every rotation ran the systems in the same order; effects of one slice on the next bias "
            "the ratios, and the confidence intervals do not account for this bias"
        )
    if names(method) == SLICES:
        return (
            "fixed order (measure.order): every rotation ran the systems in the same order; effects of one turn on the "
            "next, such as CPU caches or device writes, bias the ratios, and the confidence intervals do not account "
            "for this bias"
        )
    return (
        "fixed order (measure.order): changes within a block, such as a machine that warms up or effects of the "
        "previous trial, bias the ratios, and the confidence intervals do not account for this bias"
    )


@wording("record-unreadable")
def record_unreadable(fault: Strings) -> str:
    """left out: trials/b1/record.json is not valid JSON"""
    return f"left out: {names(fault) or 'a record'}"


_DISTURBED = {
    "not-quiet": "other programs were using the machine before",
    "cpu-taken": "other programs or virtual machines used CPU time during",
    "steal": "steal time: other virtual machines used CPU time during",
    "clock-step": "the clock was set during",
}
"""Code of a warning → what happened, to be followed by the trials that have it."""


@wording("trials-disturbed")
def trials_disturbed(
    by: str,
    trials: int,
    of: int,
    most: tuple[Configuration, int, int] | None = None,
    least: tuple[Configuration, int, int] | None = None,
) -> str:
    """other programs or virtual machines used CPU time during 13 of 36 compared trials"""
    # Trials that were left out, and those at a percentage of the peak, are not counted.
    which = f"{trials} of {of} compared trials"
    if trials == of:
        which = f"all {of} compared trials" if of > 1 else "the only compared trial"
    event = f"{_DISTURBED.get(by, by)} {which}"
    if most is None or least is None:
        return event
    sides = [f"{configuration(name)} ({count} of {all})" for name, count, all in (most, least)]
    return f"{event}, more often with {sides[0]} than with {sides[1]}, so part of the difference may come from that"
