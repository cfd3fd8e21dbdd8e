"""`ironbench lab plan`: shows the planned trials, their time, and the effects that they can detect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ironbench import units
from ironbench.catalogue import better
from ironbench.lab.dry_run import screen
from ironbench.lab.dry_run.estimate import cost, detectable_effect, needed_s, resolution_fields
from ironbench.lab.dry_run.notes import commands_of, controlled, notes
from ironbench.lab.size import Planned
from ironbench.lab.slices import slice_plan
from ironbench.model.lab import SCREEN, VALUE, Lab
from ironbench.model.system import Load, Setup, Trial
from ironbench.plan import commands
from ironbench.plan.budget import ASSUMED
from ironbench.printer import Printer
from ironbench.report import text_layout, wording
from ironbench.report.charts.base import Table
from ironbench.report.numbers import quantity, unit_of
from ironbench.trial.load import estimate
from ironbench.words import counted, in_percent, listed

_SHOWN_BLOCKS = 12


def show(planned: Planned, json: bool) -> None:
    """Prints the plan."""
    if json:
        Printer().data(msgspec.json.format(msgspec.json.encode(document(planned)), indent=2).decode())
    else:
        Printer().data(text(planned))


def text(planned: Planned) -> str:
    """Returns the plan as text."""
    pages = screen.pages if planned.lab.design == SCREEN else _pages
    return "\n\n".join(pages(planned))


def document(planned: Planned) -> dict[str, Any]:
    """Returns the plan as a JSON document in base units."""
    lab, resolution = planned.lab, planned.resolution
    more = screen.fields(planned) if lab.design == SCREEN else {}
    return {
        "schema": 1,
        "name": lab.name,
        "question": lab.question,
        "design": lab.design,
        "factors": lab.factors,
        "baseline": lab.baseline,
        "cells": [
            {
                "name": setup.cell.name,
                "levels": setup.cell.levels,
                "skipped": setup.skipped,
                "system": setup.system,
                "load": setup.cell.load,
                "search": setup.search,
                "choice": setup.choice,
            }
            for setup in lab.setups
        ],
        "comparisons": lab.comparisons,
        "rated": [{"name": one.cell.name, "of": one.of, "share": one.cell.load.rate_share} for one in lab.rated],
        "rated_comparisons": lab.rated_comparisons,
        "claims": lab.claims,
        "commands": {"lab": lab.commands, "block": lab.block_commands, "folder": lab.folder},
        "asked": commands.asks(lab),
        "method": lab.method,
        "trials": [{"cell": one.cell.name, "block": one.block, "stage": one.stage} for one in lab.trials],
        "estimate_s": lab.estimate_s,
        "estimate_bytes": lab.estimate_bytes,
        "loads": estimate.shared_loads(lab.measurable),
        "resolution": resolution_fields(resolution) | {"needed_s": needed_s(planned)},
    } | more


def _pages(planned: Planned) -> Iterator[str]:
    lab = planned.lab
    yield text_layout.clean(lab.question)
    yield _cells(lab)
    yield _order(lab)
    if lab.every_command:
        yield "\n".join(["Commands", *commands_of(lab.every_command, lab.folder)])
    if lines := list(_controlled(lab)):
        yield "\n".join(["Changes that ironbench makes on the server's machine for each trial", *lines])
    if lab.rated:
        yield "At the same load\n" + "\n".join(f"  {line}" for line in _rated(planned))
    if lab.claims:
        yield "Expected\n" + "\n".join(
            f"  - {text_layout.clean(claim.text)!r}: {_meaning(claim)}" for claim in lab.claims
        )
    yield "Estimate\n" + "\n".join(
        f"  {line}" for line in (*cost(planned), detectable_effect(planned), *_why_slices(planned))
    )
    if known := notes(planned):
        yield "Before you run it\n" + "\n".join(f"  - {note}" for note in known)


def _controlled(lab: Lab) -> Iterator[str]:
    """Yields the changes that ironbench makes on the server's machine, with the configurations to which they apply."""
    setups = lab.measurable
    for line in dict.fromkeys(line for setup in setups for line in controlled(setup)):
        cells = [setup.cell.name for setup in setups if line in controlled(setup)]
        yield text_layout.clean(f"  {line}" + ("" if len(cells) == len(setups) else f"  ({listed(cells)})"))


def _meaning(claim: Any) -> str:
    if claim.kind == "order":
        among = f" is better ({better(claim.metric)}) than ".join(claim.cells)
        return text_layout.clean(f"by {claim.metric}, {among}")
    if claim.kind == VALUE:
        return text_layout.clean(f"{claim.metric} of {claim.cells[0]}")
    return text_layout.clean(f"ratio of {claim.metric}: {claim.cells[0]} divided by {claim.cells[1]}")


def _rated(planned: Planned) -> Iterator[str]:
    """Yields lines about the trials at percentages of the baseline's peak throughput: their rates, number and time.
    These trials compare response times at the same load."""
    lab, costs = planned.lab, planned.costs
    shares = list(dict.fromkeys(setup.cell.load.rate_share or 0.0 for setup in lab.rated))
    trials = costs.rated_blocks * len(lab.rated) + (costs.peak_trials - costs.declared_peaks)
    cells = counted(len(lab.rated) // len(shares), "configuration")
    yield (
        f"{cells} also run at {_listed(shares)} of the baseline's peak throughput, in the first "
        f"{costs.rated_blocks} blocks:"
    )
    yield f"{counted(trials, 'trial')}, which take {units.span(costs.rated_s(0.0))} of the estimated time"
    yield "these trials have no verdict unless a claim names them"
    yield 'measure.rates = "none" omits these trials'


def _listed(shares: Sequence[float]) -> str:
    """Joins percentages to a phrase such as `50%, 70% and 90%`."""
    return listed([f"{share * 100:g}%" for share in shares])


def _cells(lab: Lab) -> str:
    baselines: dict[str, list[str]] = {}
    numbers = {setup.cell.name: number for number, setup in enumerate(lab.setups, 1)}
    for cell, baseline in lab.comparisons:
        baselines.setdefault(cell, []).append(str(numbers[baseline]))
    rows = [("", "configuration", "compared with", "load", "")]
    compared_with = {baseline for _, baseline in lab.comparisons}
    for setup in lab.setups:
        name = setup.cell.name
        against = ", ".join(baselines.get(name, ())) or ("baseline" if name in compared_with else "")
        note = f"skipped: {setup.skipped}" if setup.skipped else ""
        rows.append((str(numbers[name]), name, against, _load(setup), note))
    what = f"{counted(len(lab.setups), 'configuration')}, design {lab.design}"
    return f"{what}\n" + text_layout.facts(Table(rows[0], tuple(rows)))


def _load(setup: Setup) -> str:
    load, search = setup.cell.load, setup.search
    if search:
        limits = [f"{one.metric} at most {quantity(one.most, unit_of(one.metric))}" for one in search.limits]
        kept = f" with {' and '.join(limits)}" if limits else ""
        clients = f", {counted(load.clients, 'client')}" if search.of == "rate" else ""
        best = f"best {wording.search.search_subject(search.of)} from {search.low} to {search.high}"
        return f"{best}{kept}{clients}, {length_of(load)}"
    new = f", a new connection {reconnect_text(load)}" if load.reconnect else ""
    return f"{load_text(load)}{new}, {length_of(load)}"


def load_text(load: Load) -> str:
    """Describes clients and rate, or the load curve."""
    clients = counted(load.clients, "client")
    if load.curve is not None:
        return f"{load.curve.of} {load.curve.text}" + (f", {clients}" if load.curve.of == "rate" else "")
    if load.rate_share is not None:
        return f"{clients}, {in_percent(load.rate_share)} of the baseline's peak throughput"
    return f"{clients}, {units.rate(load.rate)}" if load.rate is not None else clients


def reconnect_text(load: Load) -> str:
    """Describes when a client opens a new connection."""
    return f"after every {load.reconnect} transactions" if load.reconnect > 1 else "after each transaction"


def length_of(load: Load) -> str:
    """Describes the duration of a trial, including its warm-up."""
    warmup = " + pilot warm-up" if load.warmup_auto else f" + {load.warmup_s:g} s warm-up" if load.warmup_s else ""
    if load.duration_s is None and load.transactions is None:
        return f"until the work is done{warmup}"
    if load.duration_s is None:
        return f"{counted(load.transactions or 0, 'transaction')} per client{warmup}"
    return f"{load.duration_s:g} s{warmup}"


def _order(lab: Lab) -> str:
    numbers = {setup.cell.name: str(number) for number, setup in enumerate(lab.setups, 1)}
    numbers |= {one.cell.name: f"{numbers[one.of]}@{(one.cell.load.rate_share or 0) * 100:g}" for one in lab.rated}
    by_block: dict[int, list[Trial]] = {}
    for trial in lab.trials:
        by_block.setdefault(trial.block, []).append(trial)
    rows = [
        (f"block {block + 1}", " ".join(numbers[one.cell.name] for one in trials), _interim_analysis(lab, block))
        for block, trials in list(by_block.items())[:_SHOWN_BLOCKS]
    ]
    fixed = lab.method.order == "fixed"
    how = "in the order of the lab file" if fixed else f"each block in random order (seed {lab.method.seed})"
    more = len(by_block) - len(rows)
    rest = f"\n  and {counted(more, 'block')} more (--json shows all)" if more > 0 else ""
    rest += "\n  1@50 is configuration 1 at 50% of the baseline's peak throughput" if lab.rated else ""
    rest += "".join(f"\n  {line}" for line in _method(lab))
    return f"{counted(len(by_block), 'block')}, {how}\n" + text_layout.facts(Table(rows[0], tuple(rows))) + rest


def _method(lab: Lab) -> Iterator[str]:
    """Yields lines about the method (trials or slices), and the reason for it."""
    method = lab.method
    if method.slice_s is None and not method.why_trials:
        yield "method: trials, one after another (measure.method)"
    if method.why_trials:
        yield (
            "method: trials, one after another; slices are not possible, because: "
            f"{text_layout.clean(method.why_trials)}"
        )
    elif method.slice_s is not None:
        count = slice_plan.rotations(lab.measurable[0].cell.load, method.slice_s)
        meanwhile = (
            "while the other systems are paused"
            if slice_plan.pauses_systems(lab)
            else "while the other systems are idle on the same server, which is not paused"
        )
        turns = f"{counted(count, 'time')} for {units.span(method.slice_s)}"
        if method.slice_piloted:
            longest_s = slice_plan.longest(lab.measurable[0].cell.load.duration_s or 0.0)
            if longest_s > slice_plan.LENGTHS_S[0]:
                turns += f" (a pilot trial in the first block may choose a length from 0.5 to {longest_s:g} s)"
        order = "the order of the lab file" if method.order == "fixed" else "random order"
        yield (
            f"method: slices; all systems of a block run at the same time, and each system is under load {turns}, in "
            f"{order}, {meanwhile}"
        )
        if lab.rated:
            yield "configurations at a target rate are measured by trials in the same blocks"


def _why_slices(planned: Planned) -> Iterator[str]:
    """Yields lines about how slices may reduce the number of blocks. Yields nothing if the variation of slices was
    already measured on this machine."""
    if planned.lab.method.slice_s is not None and planned.resolution.spread.source == ASSUMED.source:
        yield (
            "the variation of slices was not measured on this machine, so ironbench assumes a typical variation "
            "between blocks of trials. Slices may need fewer blocks for the same minimum detectable effect, because "
            "slow changes of the machine affect interleaved systems equally, but each block takes longer"
        )
        yield (
            "to measure the variation of slices on this machine, run `ironbench lab noise` with this method in "
            "the lab file"
        )


def _interim_analysis(lab: Lab, block: int) -> str:
    """Names the interim analysis that follows this block, if there is one."""
    seen = 0
    for stage in lab.method.stages:
        seen += stage.blocks
        if seen == block + 1:
            return f"interim analysis {stage.number} of {len(lab.method.stages)}" if len(lab.method.stages) > 1 else ""
    return ""
