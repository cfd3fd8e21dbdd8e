"""Estimates the trials, time and space that a plan needs, and its minimum detectable effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ironbench import engines, units, workloads
from ironbench.lab.pace import TOLERATED
from ironbench.lab.size import MOST_OBSERVED, Planned, Resolution
from ironbench.model.commands import manual_step_text
from ironbench.model.lab import Lab
from ironbench.model.own_data import OwnData
from ironbench.model.plan import Plan
from ironbench.model.system import Setup, System
from ironbench.plan import blocks, commands
from ironbench.report import text_layout
from ironbench.report.numbers import quantity
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.trial.load import estimate, own, snapshot
from ironbench.words import counted, in_percent, listed

_MORE = in_percent(TOLERATED - 1)
"""How far a lab may exceed its budget, such as `10%`."""


def resolution_fields(resolution: Resolution) -> dict[str, Any]:
    return {
        "detectable": resolution.detectable,
        "target": resolution.target,
        "needed_blocks": resolution.needed,
        "trial_s": resolution.trial_s,
        "varies": resolution.varies,
        "spread": resolution.spread,
    }


def cost(planned: Planned) -> Iterator[str]:
    """Yields lines about the number of trials, the time and the disk space."""
    lab, costs = planned.lab, planned.costs
    around = sum((*costs.around_s, *costs.rated_around_s)) / len((*costs.around_s, *costs.rated_around_s))
    before, observed = blocks.trials_before(lab), len(blocks.observed_trials(lab))
    unknown = any(own == 0 for own in costs.own_s)
    measured = "plus the duration of the transactions, which is unknown" if unknown else _each(lab, costs.own_s, around)
    whole = f"about {units.span(lab.estimate_s)} in total"
    yield f"{counted(before + len(lab.trials) + observed, 'trial')}, {whole}: {measured}"
    if costs.once_s > 1:
        yield f"loading the data takes another {units.span(costs.once_s)}, unless the data are already stored"
    if costs.copies_s > 1:
        yield (
            f"this includes {units.span(costs.copies_s)} to copy the data, which is done once because the blocks "
            "only read the data"
        )
    if costs.peak_trials:
        yield (
            f"this includes {counted(costs.peak_trials, 'trial')} before the first block to measure the peak "
            "throughput of the baseline in a closed loop"
        )
    if searching := blocks.searching(lab.setups):
        span = units.span(costs.search_s(0.0))
        searches = counted(searching, "trial")
        yield f"this includes about {searches} before the first block ({span}) to search for the best loads"
    if pilots := len(blocks.piloted(lab.setups)):
        yield f"this includes {counted(pilots, 'pilot trial')} before the first block to determine the warm-up time"
    if observed:
        yield (
            f"this includes {counted(observed, 'trial')} with observers after the last block "
            f"({units.span(costs.observed_s)}); "
            "these trials explain differences and do not count towards a verdict"
        )
    elif lab.method.slice_s is not None and lab.method.budget_s is not None:
        yield (
            "no trials with observers follow the blocks, because they would take more than "
            f"{in_percent(MOST_OBSERVED)} of the budget"
        )
    if any(not manual_step_text(text) for one in lab.every_command for text in one.both):
        yield "the time of the commands is not included"
    yield from _manual_change_lines(lab)
    if lab.method.quiet_s:
        yield _quiet(lab)
    if lab.method.budget_s:
        yield _overrun(lab)
    yield from own_data(lab.measurable)
    yield from (shared.words for shared in estimate.shared_loads(lab.measurable))
    ours = [setup for setup in lab.measurable if setup.system.dsn is None]
    kept = [*(["data"] if ours else []), *(["snapshots"] if any(map(_loads, ours)) else []), "records"]
    yield f"about {quantity(lab.estimate_bytes, 'bytes')} of disk space for {listed(kept)}"


def _quiet(lab: Lab) -> str:
    """Describes how long ironbench waits at most for an idle machine before a trial. The wait is not longer than the
    trial (`drive.preparation.finished`)."""
    most_s = lab.method.quiet_s
    loads = [setup.cell.load for setup in lab.measurable]
    lasting = [min(most_s, (load.duration_s or most_s) + load.warmup_s) for load in loads]
    text = (
        "not included: the time that ironbench waits before a trial while other programs use the machine (at most "
        f"{units.span(max(lasting, default=most_s))})"
    )
    limits = ["never longer than the trial"] if len(set(lasting)) > 1 else []
    limits += [f"never so long that the lab exceeds its budget by more than {_MORE}"] if lab.method.budget_s else []
    return "; ".join(filter(None, (text, " and ".join(limits))))


def _overrun(lab: Lab) -> str:
    """States what happens if trials take longer than estimated. A lab can end early only at an interim analysis."""
    if len(lab.method.stages) > 1:
        return (
            "if trials take longer than estimated, the lab ends at the last interim analysis before it would exceed "
            f"the budget by more than {_MORE}"
        )
    return "if trials take longer than estimated, the lab exceeds the budget, because it has no interim analysis"


def _loads(setup: Setup) -> bool:
    return _brings(setup) or bool(
        workloads.get(setup.choice.workload).content_key(setup.system.engine, setup.choice.options)
    )


def _brings(setup: Setup) -> bool:
    """Returns whether the user's own data are imported into a database that ironbench creates."""
    return setup.choice.data is not None and setup.choice.data.imported


def own_data(setups: Sequence[Setup]) -> Iterator[str]:
    """Yields lines about the import of the user's own data: servers, size and time."""
    found: dict[str, tuple[OwnData, list[System]]] = {}
    for setup in setups:
        if setup.choice.data and _brings(setup):
            found.setdefault(setup.choice.data.key, (setup.choice.data, []))[1].append(setup.system)
    for data, systems in found.values():
        versions = [(one.engine, engines.get(one.engine).data_import.version(one)) for one in systems]
        servers = list(dict.fromkeys(f"{engine} {version}" for engine, version in versions if version))
        kept = [snapshot.known_bytes(one, data) for one in systems]
        known = max(filter(None, kept)) if all(kept) else None
        yield text_layout.clean(f"data {data.words}: {own.expected(data, servers, known)}")
    if any(system.dsn is not None for _, systems in found.values() for system in systems):
        yield "a dry run does not connect to the server; the run checks privileges, sizes and copies when it starts"


def _each(lab: Lab, own_s: Sequence[float | None], around_s: float) -> str:
    lengths = list(dict.fromkeys(units.span(own) for own in sorted(own or 0.0 for own in own_s)))
    span = " to ".join(dict.fromkeys((lengths[0], lengths[-1])))
    if around_s < 0.5:
        return f"each trial takes {span} of measuring"
    setups = lab.measurable
    ours = [setup for setup in setups if setup.system.dsn is None]
    parts = {
        "warm-up": any(setup.cell.load.warmup_s or setup.cell.load.cache for setup in setups),
        "starting": bool(ours),
        "restoring": any(map(_loads, ours)) or any(map(_brings, setups)),
        "checking": any(map(_loads, setups)),
    }
    around = listed([part for part, there in parts.items() if there] or ["preparing"])
    less = " (less on a fast machine)" if ours else ""
    return f"each trial takes {span} of measuring and about {units.span(around_s)} of {around}{less}"


def detectable_effect(planned: Planned) -> str:
    """Returns a phrase such as `minimum detectable effect in 15 min: 7%; to detect 3%, it needs 2 h 10 min (…)`."""
    lab, resolution = planned.lab, planned.resolution
    time_s = needed_s(planned)
    needs = "the lab needs " + ("more than 500 blocks" if time_s is None else units.span(time_s))
    verb = "is" if lab.method.blocks == 1 else "are"
    none = f"{counted(lab.method.blocks, 'block')} {verb} too few for a verdict, which needs {LEAST_BLOCKS} blocks"
    return resolves(resolution, units.span(lab.estimate_s), none, needs)


def needed_s(resolution: Planned) -> float | None:
    """Returns how many seconds a lab takes that can detect the difference `Resolution.target`. Returns None if the lab
    would need more than 500 blocks."""
    count = resolution.resolution.needed
    return None if count is None else resolution.costs.lab_s(resolution.resolution.trial_s, count)


def resolves(resolution: Resolution, what: str, none: str, needs: str) -> str:
    """Describes the minimum detectable effect, and what a smaller effect needs. `what`: the time or work for which the
    effect holds. `none`: the text for a lab with too few blocks. `needs`: what is needed to detect `target`."""
    smaller = f"to detect {in_percent(resolution.target)}, {needs}"
    spread = f"the SD between blocks is {in_percent(resolution.varies)} in trials of {resolution.trial_s:g} s"
    basis = f"(90% power; {spread}, {resolution.spread.source})"
    if resolution.detectable is None:
        return f"{none}; {smaller} {basis}"
    return f"minimum detectable effect in {what}: {in_percent(resolution.detectable)}; {smaller} {basis}"


def _manual_change_lines(lab: Lab) -> Iterator[str]:
    """Yields lines about changes that a person must make: how many there are, and how they affect the order of
    trials."""
    if not (count := commands.asks(lab)):
        return
    yield (
        f"ironbench prompts for a change at the terminal {counted(count, 'time')}; the estimate does not include "
        "the time for these changes"
    )
    if lab.method.order != "fixed":
        yield (
            "configurations that need the same change by hand are measured one after another in each block; the "
            "change must be made again in each block, so that blocks stay independent"
        )


def time_of(plan: Plan) -> str:
    """Describes how long the trials take. If a trial ends after a number of transactions or queries, its time is not
    known in advance."""
    span = units.span(plan.estimate_s)
    if all(trial.cell.load.duration_s for trial in plan.trials):
        warmed = any(trial.cell.load.warmup_s for trial in plan.trials)
        each_s = workloads.get(plan.choice.workload).resting_s(plan.choice.options)
        resting_s = each_s * (len(plan.trials) + plan.confirmations)
        resting = f", and {units.span(resting_s)} of pauses between measurements" if resting_s else ""
        return f"about {span} of {'warm-up and ' if warmed else ''}measuring{resting}"
    work_s = workloads.get(plan.choice.workload).expected_s(plan.system.engine, plan.choice.options)
    if work_s is not None and all(trial.cell.load.transactions is None for trial in plan.trials):
        return f"about {units.span(plan.estimate_s + work_s * len(plan.trials))} of measuring"
    if plan.estimate_s:
        return f"about {span} of warm-up, plus measuring for an unknown time"
    return "duration unknown"
