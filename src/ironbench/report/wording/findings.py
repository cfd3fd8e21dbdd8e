"""Words for findings: how a finding was computed, why there is no verdict, and which blocks were dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ironbench.model.finding import NOT_AT_BOTH_ENDS, REPEAT_FAILED
from ironbench.model.lab import Configuration
from ironbench.model.note import Note
from ironbench.model.record import DUET, SLICES
from ironbench.report.wording import terms
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.terms import configuration
from ironbench.report.wording.values import Number, Strings, agreed, names, percent
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
    """Example with blocks=6, look=1, looks=2, comparisons=3: `t confidence interval of the log ratios of 6 blocks,
    interim analysis 1 of 2, Holm's correction for 3 comparisons`."""
    words = f"t confidence interval of the log ratios of {counted(blocks, 'block')}"
    if looks > 1:
        words += f", interim analysis {look} of {looks}"
    if round > 1:
        words += f", from the blocks of round {round} only"
    if comparisons > 1:
        words += f", Holm's correction for {comparisons} comparisons"
    if equivalence_level is not None:
        words += f"; equivalent by two one-sided t tests at {100 * equivalence_level:.2g}% each"
    return words


@wording("no-complete-block")
def no_complete_block() -> str:
    """Example: `there is no complete block`."""
    return "there is no complete block"


# Advice on how to decide a comparison. Each text follows the words "To decide: ".


@wording("choose-other-metric")
def choose_other_metric() -> str:
    """Example: `choose a metric for which higher or lower values are better; for this metric, neither are`."""
    return "choose a metric for which higher or lower values are better; for this metric, neither are"


@wording("finish-lab")
def finish_lab(planned: int, least: int) -> str:
    """Example with planned=8, least=6: `finish the lab: 8 blocks are planned, and a verdict needs 6 complete
    blocks`."""
    return f"finish the lab: {planned} blocks are planned, and a verdict needs {least} complete blocks"


@wording("least-blocks")
def least_blocks(least: int) -> str:
    """Example with least=6: `run another round with at least 6 complete blocks`."""
    return f"run another round with at least {least} complete blocks"


@wording(REPEAT_FAILED)
def repeat_failed(blocks: int) -> str:
    """Example with blocks=2: `remove the cause of the failed trials, then repeat their 2 blocks with `ironbench lab
    resume --failed``."""
    which = "block" if blocks == 1 else counted(blocks, "block")
    trials = "failed trial, then repeat its" if blocks == 1 else "failed trials, then repeat their"
    return f"remove the cause of the {trials} {which} with `ironbench lab resume --failed`"


@wording("reduce-variation")
def reduce_variation(variation: float, margin: float, more_than: int) -> str:
    """Example with variation=0.3, margin=0.05, more_than=500: `use a machine on which fewer other programs run, longer
    trials or a wider margin: the ratio varies between blocks by 30% (SD), so detecting a difference of 5% takes more
    than 500 blocks`."""
    return (
        "use a machine on which fewer other programs run, longer trials or a wider margin: the ratio varies between "
        f"blocks by {percent(variation)} (SD), so detecting a difference of {percent(margin)} takes more than "
        f"{grouped(more_than)} blocks"
    )


@wording("planned-blocks")
def planned_blocks(blocks: int, margin: float) -> str:
    """Example with blocks=12, margin=0.05: `finish the 12 planned blocks, which detect or rule out a difference of 5%
    with 90% power`."""
    return f"finish the {blocks} planned blocks, which {_with_power(margin)}"


@wording("another-round")
def another_round(blocks: int, margin: float) -> str:
    """Example with blocks=9, margin=0.05: `run another round of 9 blocks, which detect or rule out a difference of 5%
    with 90% power`."""
    return f"run another round of {blocks} blocks, which {_with_power(margin)}"


def _with_power(margin: float) -> str:
    return f"detect or rule out a difference of {percent(margin)} with {percent(0.9)} power"


@wording("find-change")
def find_change() -> str:
    """Example: `find out what changed from block to block (for example growing data, a cache that fills, or a warm-up
    that is too short), correct it, and measure again`."""
    return (
        "find out what changed from block to block (for example growing data, a cache that fills, or a warm-up that is "
        "too short), correct it, and measure again"
    )


# Why there is no verdict.


@wording("unequal-losses")
def unequal_losses(lost: Sequence[tuple[Configuration, int]]) -> str:
    """Example with lost=[('WAL in memory', 2)]: `WAL in memory has no usable trial in 2 blocks, so one side lost more
    blocks than the other side, and there is no verdict`."""
    sides = " and ".join(
        f"{configuration(name)} has no usable trial in {counted(blocks, 'block')}" for name, blocks in lost
    )
    return f"{sides}, so one side lost more blocks than the other side, and there is no verdict"


@wording(NOT_AT_BOTH_ENDS)
def not_at_both_ends(change: Note) -> str:
    """Example with change=note('ratio-changed', before=3.37, after=1.0): `the ratio drifted from 3.37 to 1.00 between
    the first and the last block, so no verdict would be true for all blocks`."""
    return f"{text(change)}, so no verdict would be true for all blocks"


@wording("suspect-cpu")
def suspect_cpu() -> str:
    """Example: `there is no verdict about CPU time, because the CPU time of flagged trials may be wrong`."""
    return "there is no verdict about CPU time, because the CPU time of flagged trials may be wrong"


@wording("ratio-changed")
def ratio_changed(before: float, after: float, block: int | None = None) -> str:
    """Example with before=3.37, after=1: `the ratio drifted from 3.37 to 1.00 between the first and the last block`."""
    ends = f"{before:.2f} to {after:.2f}"
    if block is None:
        return f"the ratio drifted from {ends} between the first and the last block"
    return f"the ratio changed from {ends} at block {block}"


# Warnings.


@wording("too-few-blocks")
def too_few_blocks(blocks: int, least: int) -> str:
    """Example with blocks=3, least=6: `a verdict needs at least 6 complete blocks, but there are only 3`."""
    return f"a verdict needs at least {least} complete blocks, but there {agreed(blocks, 'is', 'are')} only {blocks}"


@wording("below-margin")
def below_margin(margin: Number) -> str:
    """Example with margin=0.05: `the difference is significant but smaller than the declared margin of 5%`."""
    return f"the difference is significant but smaller than the declared margin of {percent(margin)}"


@wording("both-changed")
def both_changed(metric: str, change: float, block: int | None = None) -> str:
    """Example with metric='throughput', change=0.12: `throughput of both configurations changed by +12% between the
    first and the last block; comparing within blocks cancels most of this change`."""
    by = f"{100 * change:+.0f}%"
    when = "between the first and the last block" if block is None else f"from block {block} on"
    return (
        f"{metric} of both configurations changed by {by} {when}; comparing within blocks cancels most of this change"
    )


@wording("machine-drifts")
def machine_drifts() -> str:
    """Example: `the machine's speed changed during the lab by more than its run-to-run variation, so the false-alarm
    rate is between 5% and 8% instead of 5%`."""
    return (
        "the machine's speed changed during the lab by more than its run-to-run variation, so the false-alarm rate is "
        "between 5% and 8% instead of 5%"
    )


@wording("blocks-missing")
def blocks_missing(complete: int, planned: int, missing: int) -> str:
    """Example with complete=4, planned=6, missing=2: `4 of 6 planned blocks are complete and 2 are missing: the verdict
    is provisional`."""
    known = f"{complete} of {counted(planned, 'planned block')} are complete and {missing} are missing"
    return f"{known}: {'the verdict is provisional' if complete else 'there is no verdict yet'}"


@wording("machine-changed")
def machine_changed() -> str:
    """Example: `the machine or its settings changed between trials`."""
    return "the machine or its settings changed between trials"


@wording("varied-unintended")
def varied_unintended(fact: str, cell: str, baseline: str) -> str:
    """Example with fact='system.settings.work_mem', cell='4MB', baseline='64MB': `a setting differs between the sides,
    although the lab file does not vary it: system.settings.work_mem 4MB vs. 64MB`."""
    return f"a setting differs between the sides, although the lab file does not vary it: {fact} {cell} vs. {baseline}"


@wording("not-same-load")
def not_same_load(rated: bool) -> str:
    """Example with rated=True: `closed loop: with the same number of clients, the faster system gets more work, so
    these response times were not measured at the same load. For response times at the same load, see the results at a
    percentage of the baseline's peak throughput`."""
    more = (
        "For response times at the same load, see the results at a percentage of the baseline's peak throughput"
        if rated
        else (
            'To compare response times, run the systems at rates that the baseline can sustain: `rate = ["50%", '
            '"70%", "90%"]` in `[vary]`, with `design = "full"`'
        )
    )
    return (
        "closed loop: with the same number of clients, the faster system gets more work, so these response times "
        f"were not measured at the same load. {more}"
    )


@wording("loads-searched")
def loads_searched(of: str, cell: float, baseline: float) -> str:
    """Example with of='clients', cell=8, baseline=16: `different loads: each configuration ran at the load that a
    search chose for it (clients: 8 vs. 16)`."""
    return (
        f"different loads: each configuration ran at the load that a search chose for it ({of}: {cell:g} vs. "
        f"{baseline:g})"
    )


# Reasons why blocks were left out of a finding.


@wording("block-dropped")
def block_dropped(block: int, why: Sequence[Note]) -> str:
    """Example with block=3, why=[note('cell-not-measured', cell='WAL in memory')]: `block 3: WAL in memory was not
    measured`."""
    return f"block {block}: {_reasons(why)}"


def _reasons(why: Sequence[Note]) -> str:
    return "; ".join(map(text, why)) or "incomplete"


def dropped_blocks(dropped: Iterable[Note]) -> list[str]:
    """Names the blocks that were dropped for the same reasons. `dropped`: notes of the code `block-dropped`.

    Example with dropped=[note('block-dropped', block=2, why=[note('cell-not-measured', cell='WAL in memory')]),
    note('block-dropped', block=3, why=[note('cell-not-measured', cell='WAL in memory')])]: `blocks 2, 3: WAL in memory
    was not measured`."""
    blocks: dict[str, list[str]] = {}
    for one in dropped:
        blocks.setdefault(_reasons(one.values["why"]), []).append(str(one.values["block"]))
    return [f"{'block' if len(named) == 1 else 'blocks'} {', '.join(named)}: {why}" for why, named in blocks.items()]


@wording("block-on-machines")
def block_on_machines() -> str:
    """Example: `the trials of this block ran on different machines`."""
    return "the trials of this block ran on different machines"


@wording("block-not-in-turns")
def block_not_in_turns() -> str:
    """Example: `the trials of the two systems were not interleaved in this block`."""
    return "the trials of the two systems were not interleaved in this block"


@wording("cell-not-measured")
def cell_not_measured(cell: Configuration) -> str:
    """Example with cell='WAL in memory': `WAL in memory was not measured`."""
    return f"{configuration(cell)} was not measured"


_LOST = {"invalid": "is invalid", "aborted": "was aborted"}
"""Words that follow the name of a configuration, for each status of its trial."""


@wording("cell-lost")
def cell_lost(cell: Configuration, status: str, causes: Sequence[Note] = ()) -> str:
    """Example with cell='WAL in memory', status='invalid', causes=[note('engine-died')]: `WAL in memory is invalid (the
    server crashed)`."""
    why = "; ".join(map(text, causes))
    word = terms.status(status)
    return f"{configuration(cell)} {_LOST.get(word, word)}{f' ({why})' if why else ''}"


@wording("cell-unresolved")
def cell_unresolved(cell: Configuration, units: str, metric: str) -> str:
    """Example with cell='WAL in memory', units='transactions', metric='response_time_p99_s': `WAL in memory:
    response_time_p99_s is unknown, because too many transactions were still waiting at the end of a trial`."""
    return (
        f"{configuration(cell)}: {metric} is unknown, because too many {units} were still waiting at the end of a trial"
    )


@wording("cell-of-too-few")
def cell_of_too_few(cell: Configuration, units: str, needs: Sequence[Sequence[float]]) -> str:
    """Example with cell='WAL on disk', units='transactions', needs=[(0.999, 2995)]: `WAL on disk has too few
    transactions (the 99.9th percentile needs at least 2,995)`."""
    return f"{configuration(cell)} has too few {units} ({needed(needs)})"


@wording("cell-without-ratio")
def cell_without_ratio(cell: Configuration, metric: str, value: float | None = None) -> str:
    """Example with cell='WAL on disk', metric='throughput', value=0.0: `WAL on disk has throughput 0, so the ratio is
    not defined`."""
    name = configuration(cell)
    return f"{name} has no {metric}" if value is None else f"{name} has {metric} {value:g}, so the ratio is not defined"


# Notes that apply to the whole lab.


@wording("half-of-cores")
def half_of_cores() -> str:
    """Example: `duet: each system ran on half of the cores while the other system used the other half, so throughput
    and response times do not apply to the whole machine`."""
    return (
        "duet: each system ran on half of the cores while the other system used the other half, so throughput "
        "and response times do not apply to the whole machine"
    )


@wording("fixed-order")
def fixed_order(method: Strings) -> str:
    """Example with method='trials': `fixed order (`measure.order`): every block ran the configurations in the same
    order. Changes within a block (such as a machine that warms up) and effects of the previous trial therefore bias the
    ratios, and the confidence intervals do not include this bias`."""
    if names(method) == DUET:
        return (
            "fixed order (`measure.order`): every pair of slices of a duet started with the same system on the "
            "same half of the cores, or every rotation ran the systems in the same order. Effects of one slice "
            "on the next slice therefore bias the ratios, and the confidence intervals do not include this bias"
        )
    if names(method) == SLICES:
        return (
            "fixed order (`measure.order`): every rotation ran the systems in the same order. Effects of one slice "
            "on the next slice, such as the contents of CPU caches or device writes, therefore bias the ratios, and "
            "the confidence intervals do not include this bias"
        )
    return (
        "fixed order (`measure.order`): every block ran the configurations in the same order. Changes within a "
        "block (such as a machine that warms up) and effects of the previous trial therefore bias the ratios, and "
        "the confidence intervals do not include this bias"
    )


@wording("record-unreadable")
def record_unreadable(fault: Strings) -> str:
    """Example with fault='trials/b1/record.json is not valid JSON': `left out of the report: trials/b1/record.json is
    not valid JSON`."""
    return f"left out of the report: {names(fault) or 'a record'}"


_DISTURBED = {
    "not-quiet": "other programs were using the machine shortly before",
    "cpu-taken": "other programs or virtual machines used CPU time during",
    "steal": "steal time: other virtual machines used CPU time during",
    "clock-step": "the clock was set during",
}
"""Words for the event behind each warning. In the sentence, the affected trials follow these words."""


@wording("trials-disturbed")
def trials_disturbed(
    by: str,
    trials: int,
    of: int,
    most: tuple[Configuration, int, int] | None = None,
    least: tuple[Configuration, int, int] | None = None,
) -> str:
    """Example with by='cpu-taken', trials=13, of=36: `other programs or virtual machines used CPU time during 13 of 36
    compared trials`."""
    # The numbers do not include trials that were left out, or trials at a percentage of peak throughput.
    which = f"{trials} of {of} compared trials"
    if trials == of:
        which = f"all {of} compared trials" if of > 1 else "the only compared trial"
    event = f"{_DISTURBED.get(by, by)} {which}"
    if most is None or least is None:
        return event
    sides = [f"{configuration(name)} ({count} of {all})" for name, count, all in (most, least)]
    return (
        f"{event}, more often with {sides[0]} than with {sides[1]}, so part of the difference may come from these "
        "disturbances"
    )
