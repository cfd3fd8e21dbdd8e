"""`ironbench run --plan`: shows the planned trials, their time, and the effects that they can detect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from ironbench import engines, units, workloads
from ironbench.lab import declare, schedule, size
from ironbench.lab.dry_run import estimate, notes
from ironbench.lab.dry_run import lab as of_lab
from ironbench.lab.size import Resolution
from ironbench.model.plan import Plan
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.model.system import Setup
from ironbench.printer import Printer
from ironbench.records.described import losses
from ironbench.report import text_layout, wording
from ironbench.report.numbers import quantity
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study import optimum
from ironbench.trial.drive import checkpoints
from ironbench.words import counted

_SHOWN_BLOCKS = 12


def show(plan: Plan, before: Sequence[Record], over: bool, drawn: bool, json: bool) -> None:
    """Prints what a run would do.

    `before`: records that the run already has. `over`: whether these records contain all trials. `drawn`: whether the
    seed is random, so that each run has a different order.
    """
    workload = workloads.get(plan.choice.workload)
    data_bytes = size.data_bytes(Setup(plan.trials[0].cell, plan.system, plan.choice))
    blocks = 1 + max(trial.block for trial in plan.trials)
    setups = [Setup(one.cell, plan.system, plan.choice) for one in plan.trials if one.block == 0]
    left = plan if plan.search else schedule.remaining(plan, before)
    # If trials end after a number of transactions, their length and therefore their variation are not known in advance.
    timed = all(setup.cell.load.duration_s is not None for setup in setups)
    resolution = size.of_blocks(setups, blocks) if blocks > 1 and timed and not plan.search else None
    load = plan.trials[0].cell.load
    if json:
        trials = [{"cell": one.cell.name, "block": one.block} for one in left.trials]
        document = {"schema": 1, "system": plan.system, "choice": plan.choice, "search": plan.search, "trials": trials}
        cells = {one.cell.name: one.cell.load for one in plan.trials}
        document |= {"loads": cells, "confirmations": left.confirmations, "measured": len(_counting(before))}
        document |= {"resolution": estimate.resolution_fields(resolution) if resolution else None}
        document |= {"seed": None if drawn else setups[0].cell.load.seed}
        document |= {"estimate_s": left.estimate_s, "estimate_bytes": data_bytes}
        if plan.search:
            each_s = (load.duration_s or 0.0) + load.warmup_s
            expected = optimum.expected_trials(plan.search) + plan.confirmations
            document |= {"estimate_s": expected * each_s, "most_trials": _most_trials(plan)}
            document |= {"most_s": _most_trials(plan) * each_s}
        Printer().data(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    label, engine = plan.system.label, plan.system.engine
    lines = [f"{workload.name} on {label if label == engine else f'{label} ({engine})'}"]
    if over:
        lines.append(f"{counted(len(_counting(before)), 'trial')} already measured; no trial is left to run")
    else:
        lines += _search_lines(plan, before) if plan.search else _sweep_lines(plan, left, before, drawn)
    lines += (own_lines := list(estimate.own_data(setups[:1])))
    if resolution is not None:
        lines.append(_resolved_by_run(resolution, blocks))
    if over:
        Printer().data("\n".join(map(text_layout.clean, lines)))
        return
    if data_bytes and not own_lines:
        lines.append(
            f"about {quantity(data_bytes, 'bytes')} of data, which are loaded first unless they are already present"
        )
    if note := checkpoints.interval_note(setups[:1], plan.crash, "--checkpoint"):
        lines.append(note)
    if plan.system.latency_s is not None:
        lines.append(notes.latency_text(plan.system.latency_s))
    if load.reconnect:
        lines.append(f"each client opens a new connection {of_lab.reconnect_text(load)}")
    if load.reconnect_on_loss:
        lines.append("a client that loses its connection opens a new one")
    if changes := list(notes.controlled(setups[0])):
        lines += ["changes on the server's machine for each trial:", *(f"  {one}" for one in changes)]
    lines += declare.requirements(setups[:1])
    if plan.system.commands:
        lines += ["commands:", *notes.commands_of(plan.system.commands, "the current directory")]
    protocol = engines.get(plan.system.engine).protocol(load.protocol)
    warnings = [*workload.warnings(plan.system.engine, plan.choice, protocol), *wording.texts(losses(plan.system))]
    warnings += declare.forecasts(setups, highest_rate(plan))
    warnings += declare.in_use(setups[:1])
    Printer().data("\n".join(map(text_layout.clean, [*lines, *(f"warning: {one}" for one in warnings)])))


def highest_rate(plan: Plan) -> float | None:
    """Returns the highest rate of a search, or None if the rate is not searched."""
    return float(plan.search.high) if plan.search and plan.search.of == "rate" else None


def _counting(before: Sequence[Record]) -> list[Record]:
    """Returns the records without those of aborted trials, which will be measured again."""
    return [record for record in before if record.status is not Status.CUT_SHORT]


def _search_lines(plan: Plan, before: Sequence[Record]) -> Iterator[str]:
    assert plan.search is not None
    best = wording.search.search_subject(plan.search.of)
    yield f"search for the best {best} from {plan.search.low} to {plan.search.high}"
    if done := _counting(before):
        yield f"{counted(len(done), 'trial')} already measured"
    load, expected = plan.trials[0].cell.load, optimum.expected_trials(plan.search) + plan.confirmations
    most = _most_trials(plan)
    yield f"as many {'more ' * bool(done)}trials as the search needs, each of {of_lab.length_of(load)}"
    yield (
        f"then {plan.confirmations} new trials confirm the best load, because the search tends to choose a trial "
        "that was fast by chance"
    )
    yield (
        "if a new trial exceeds a limit or does not sustain the rate, new trials at a lower load follow, for at most "
        f"{optimum.MOST_CONFIRMED} loads in total"
    )
    if load.duration_s is None:
        yield f"about {expected} trials in total, at most {most}; their duration is unknown"
    else:
        each_s = load.duration_s + load.warmup_s
        yield (
            f"about {expected} trials in total ({units.span(expected * each_s)} of warm-up and measuring), at "
            f"most {most} ({units.span(math.ceil(most * each_s / 60) * 60)})"
        )


def _most_trials(plan: Plan) -> int:
    """Returns the maximum number of trials that a run with a search can have. Trials that confirm loads are
    included."""
    assert plan.search is not None
    return optimum.most_trials(plan.search) + plan.confirmations * optimum.MOST_CONFIRMED


def _sweep_lines(plan: Plan, left: Plan, before: Sequence[Record], drawn: bool) -> Iterator[str]:
    if done := _counting(before):
        yield f"{counted(len(done), 'trial')} already measured; remaining:"
    load = plan.trials[0].cell.load
    rate = f", target rate {units.rate(load.rate)}" if load.rate is not None else ""
    if load.curve is not None:
        rate = f", {of_lab.load_text(load)}"
    yield f"each trial {of_lab.length_of(load)}{rate}"
    by_block: dict[tuple[str, int], list[str]] = {}
    for trial in left.trials:
        by_block.setdefault((trial.purpose, trial.block), []).append(trial.cell.name)
    if drawn and len(next(iter(by_block.values()))) > 1:
        cells = sorted({one.cell.load.clients: one.cell.name for one in left.trials}.items())
        yield f"{counted(len(by_block), 'block')} of {', '.join(name for _, name in cells)}"
        yield "the order of each block is chosen at random when the run starts; set --seed to fix the order"
    elif len({trial.cell.name for trial in plan.trials}) == 1:
        yield f"each with {plan.trials[0].cell.name}"
    else:
        for (purpose, block), names in list(by_block.items())[:_SHOWN_BLOCKS]:
            yield f"{'block' if purpose == Purpose.SWEEP else purpose} {block + 1}: {', '.join(names)}"
        if len(by_block) > _SHOWN_BLOCKS:
            yield f"and {counted(len(by_block) - _SHOWN_BLOCKS, 'block')} more (--json shows all)"
    yield f"{counted(len(left.trials) + left.confirmations, 'trial')}, {estimate.time_of(left)}"
    if left.confirmations:
        yield (
            f"this includes {left.confirmations} new trials that confirm the peak, because the sweep tends to "
            "choose a trial that was fast by chance"
        )


def _resolved_by_run(resolution: Resolution, count: int) -> str:
    """Describes what a lab could detect whose blocks are like those of the run. The run itself has no verdict. `count`:
    number of blocks."""
    blocks = "more than 500 blocks" if resolution.needed is None else counted(resolution.needed, "block")
    lab = f"a lab of {count} such blocks"
    text = estimate.resolves(
        resolution,
        lab,
        f"{lab} has no verdict either, because a verdict needs {LEAST_BLOCKS} blocks",
        f"it needs {blocks}",
    )
    return f"a run has no verdict; {text}"
