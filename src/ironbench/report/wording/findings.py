"""Words for findings: how they were computed, why there is no verdict, which blocks were dropped."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.finding import NOT_AT_BOTH_ENDS
from ironbench.model.note import Note
from ironbench.model.record import DUET, SLICES
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import text, wording
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
    """t interval on log ratios of 6 blocks, look 1 of 2, 1 of 3 comparisons (Holm)"""
    words = f"t interval on log ratios of {counted(blocks, 'block')}"
    if looks > 1:
        words += f", look {look} of {looks}"
    if round > 1:
        words += f", round {round} on its own blocks"
    if comparisons > 1:
        words += f", 1 of {comparisons} comparisons (Holm)"
    if equivalence_level is not None:
        words += f"; equivalent by two one-sided t tests at {100 * equivalence_level:.2g} % each"
    return words


@wording("no-complete-block")
def no_complete_block() -> str:
    """no complete block"""
    return "no complete block"


# Advice: read after "To tell: ".


@wording("choose-other-metric")
def choose_other_metric() -> str:
    """another metric, since this one has no better direction"""
    return "another metric, since this one has no better direction"


@wording("finish-lab")
def finish_lab(planned: int, least: int) -> str:
    """finish the lab; 8 blocks are planned, and a verdict needs 6"""
    return f"finish the lab; {planned} blocks are planned, and a verdict needs {least}"


@wording("least-blocks")
def least_blocks(least: int) -> str:
    """a round of 6 complete blocks at least"""
    return f"a round of {least} complete blocks at least"


@wording("reduce-variation")
def reduce_variation(variation: float, margin: float, more_than: int) -> str:
    """a quieter machine, longer trials or a wider margin, since blocks differ by 30% from one to the next …"""
    return (
        f"a quieter machine, longer trials or a wider margin, since blocks differ by {percent(variation)} from one to "
        f"the next and to find a difference of {percent(margin)} would take more than {grouped(more_than)} of them"
    )


@wording("planned-blocks")
def planned_blocks(blocks: int, margin: float) -> str:
    """the 12 blocks that are planned, which find a difference of 5% or more, or that there is none so large, …"""
    return f"the {blocks} blocks that are planned, which find {_in_9_of_10(margin)}"


@wording("another-round")
def another_round(blocks: int, margin: float) -> str:
    """a round of 9 blocks, which finds a difference of 5% or more, or that there is none so large, in 9 of 10 cases"""
    return f"a round of {blocks} blocks, which finds {_in_9_of_10(margin)}"


def _in_9_of_10(margin: float) -> str:
    return f"a difference of {percent(margin)} or more, or that there is none so large, in 9 of 10 cases"


@wording("find-change")
def find_change() -> str:
    """find what changed from block to block (data that grow, a cache that fills, …), correct it, and measure again"""
    return (
        "find what changed from block to block (data that grow, a cache that fills, a warm-up that is too short), "
        "correct it, and measure again"
    )


# Why there is no verdict.


@wording("unequal-losses")
def unequal_losses(lost: Sequence[tuple[str, int]]) -> str:
    """log=memory has no usable trial in 2 blocks: blocks lost on one side more than on the other carry no verdict"""
    sides = " and ".join(f"{name} has no usable trial in {counted(blocks, 'block')}" for name, blocks in lost)
    return f"{sides}: blocks lost on one side more than on the other carry no verdict"


@wording(NOT_AT_BOTH_ENDS)
def not_at_both_ends(change: Note) -> str:
    """the ratio drifted from 3.37 to 1.00 over the blocks, and no verdict holds at both ends"""
    return f"{text(change)}, and no verdict holds at both ends"


@wording("suspect-cpu")
def suspect_cpu() -> str:
    """CPU time of suspect trials carries no verdict"""
    return "CPU time of suspect trials carries no verdict"


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
    """3 complete blocks: a verdict needs 6 at least"""
    return f"{counted(blocks, 'complete block')}: a verdict needs {least} at least"


@wording("below-margin")
def below_margin(margin: Number) -> str:
    """the difference is real but smaller than the declared margin of 5%"""
    return f"the difference is real but smaller than the declared margin of {percent(margin)}"


@wording("both-changed")
def both_changed(metric: str, change: float, block: int | None = None) -> str:
    """throughput of both cells drifted by +12%; ratios within blocks cancel most of it"""
    verb, where = ("drifted", "") if block is None else ("changed", f" from block {block} on")
    by = f"{100 * change:+.0f} %"
    return f"{metric} of both cells {verb} by {by}{where}; ratios within blocks cancel most of it"


@wording("machine-drifts")
def machine_drifts() -> str:
    """the machine drifts from trial to trial by more than its noise: a false alarm is likelier than 5 %, up to 8 %"""
    return (
        "the machine drifts from trial to trial by more than its noise: a false alarm is likelier than 5 %, up to 8 %"
    )


@wording("blocks-missing")
def blocks_missing(complete: int, planned: int, missing: int) -> str:
    """4 of 6 planned blocks complete, 2 missing: the verdict is provisional"""
    known = f"{complete} of {counted(planned, 'planned block')} complete, {missing} missing"
    return f"{known}: {'the verdict is provisional' if complete else 'there is no verdict yet'}"


@wording("machine-changed")
def machine_changed() -> str:
    """the machine, or how it was set up, changed between trials"""
    return "the machine, or how it was set up, changed between trials"


@wording("varied-unintended")
def varied_unintended(fact: str, cell: str, baseline: str) -> str:
    """not meant to vary, but it did: system.settings.work_mem 4MB against 64MB"""
    return f"not meant to vary, but it did: {fact} {cell} against {baseline}"


@wording("not-same-load")
def not_same_load(rated: bool) -> str:
    """closed loop: at equal clients the faster system was given more work, so these times are not at the same …"""
    more = (
        "At the same load they were measured, too, at shares of the baseline's peak"
        if rated
        else 'Compare them at rates that the baseline can sustain: rate = ["50%", "70%", "90%"] in [vary], with '
        'design = "full"'
    )
    return (
        "closed loop: at equal clients the faster system was given more work, so these times are not at the same load. "
        f"{more}"
    )


@wording("loads-searched")
def loads_searched(of: str, cell: float, baseline: float) -> str:
    """each cell ran at the load that its search chose (clients: 8 against 16): not the same load"""
    return f"each cell ran at the load that its search chose ({of}: {cell:g} against {baseline:g}): not the same load"


# Blocks that did not enter.


@wording("block-dropped")
def block_dropped(block: int, why: Sequence[Note]) -> str:
    """block 3: log=memory was not measured"""
    return f"block {block}: {'; '.join(map(text, why)) or 'not complete'}"


@wording("block-on-machines")
def block_on_machines() -> str:
    """its trials ran on machines that differ"""
    return "its trials ran on machines that differ"


@wording("block-not-in-turns")
def block_not_in_turns() -> str:
    """its systems did not take turns with each other"""
    return "its systems did not take turns with each other"


@wording("cell-not-measured")
def cell_not_measured(cell: str) -> str:
    """log=memory was not measured"""
    return f"{cell} was not measured"


@wording("cell-lost")
def cell_lost(cell: str, status: str, causes: Sequence[Note] = ()) -> str:
    """log=memory voided (the engine died)"""
    why = "; ".join(map(text, causes))
    return f"{cell} {status}{f' ({why})' if why else ''}"


@wording("cell-unresolved")
def cell_unresolved(cell: str, units: str, metric: str) -> str:
    """log=memory has transactions that were still waiting at its end, which could change response_time_p99_s"""
    return f"{cell} has {units} that were still waiting at its end, which could change {metric}"


@wording("cell-of-too-few")
def cell_of_too_few(cell: str, units: str, needs: Sequence[Sequence[float]]) -> str:
    """log=disk has too few transactions (99.9 % needs 2,995)"""
    return f"{cell} has too few {units} ({needed(needs)})"


@wording("cell-without-ratio")
def cell_without_ratio(cell: str, metric: str, value: float | None = None) -> str:
    """log=disk has throughput 0, of which there is no ratio"""
    return f"{cell} has no {metric}" if value is None else f"{cell} has {metric} {value:g}, of which there is no ratio"


# Notes about the whole lab.


@wording("half-of-cores")
def half_of_cores() -> str:
    """each system had one half of the cores, while the other one worked on the other half (a duet): …"""
    return (
        "each system had one half of the cores, while the other one worked on the other half (a duet): throughput and "
        "response times are not those of the whole machine"
    )


@wording("fixed-order")
def fixed_order(method: Strings) -> str:
    """every block ran the cells in the same order (measure.order): what changes in the course of a block, …"""
    if names(method) == DUET:
        return (
            "the first system began on the first half of the cores in every pair of slices of a duet, or every "
            "rotation had the systems in the same order (measure.order): what one slice leaves to the next is in the "
            "ratios, and no interval shows it"
        )
    if names(method) == SLICES:
        return (
            "every rotation had the systems in the same order (measure.order): what one turn leaves to the next, such "
            "as caches of the processor or a device at work, is in the ratios, and no interval shows it"
        )
    return (
        "every block ran the cells in the same order (measure.order): what changes in the course of a block, such as a "
        "machine that warms up or what one trial leaves to the next, is in the ratios, and no interval shows it"
    )


@wording("record-unreadable")
def record_unreadable(fault: Strings) -> str:
    """left out: trials/b1/record.json is not valid JSON"""
    return f"left out: {names(fault) or 'a record'}"


_DISTURBED = {
    "not-quiet": "the machine was not quiet before",
    "cpu-taken": "other programs or virtual machines took CPU time during",
    "steal": "other virtual machines took CPU time during",
    "clock-step": "the clock was set during",
}
"""Code of a warning → what happened, to be followed by the trials that have it."""


@wording("trials-disturbed")
def trials_disturbed(
    by: str,
    trials: int,
    of: int,
    most: tuple[str, int, int] | None = None,
    least: tuple[str, int, int] | None = None,
) -> str:
    """other programs or virtual machines took CPU time during 13 of 36 compared trials"""
    # Trials that were left out, and those at a share of a peak, are not counted.
    which = f"{trials} of {of} compared trials"
    if trials == of:
        which = f"each of the {of} compared trials" if of > 1 else "the only compared trial"
    event = f"{_DISTURBED.get(by, by)} {which}"
    if most is None or least is None:
        return event
    sides = [f"{name} ({count} of {all})" for name, count, all in (most, least)]
    return f"{event}, and more often at {sides[0]} than at {sides[1]}: part of a difference may be its doing"
