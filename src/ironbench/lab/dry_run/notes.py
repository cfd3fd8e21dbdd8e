"""Notes that are shown before a lab or a run starts: commands, changes to machines, claims that will stay undecided."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from ironbench import engines, units, workloads
from ironbench.devices import capability, emulation_rate
from ironbench.devices.emulation_rate import EmulatedSpeed, EmulationRate, Fidelity
from ironbench.devices.models import for_core, models
from ironbench.host import space
from ironbench.lab import builds, declare, server_control, size
from ironbench.lab.size import Planned
from ironbench.lab.slices import slice_plan
from ironbench.model.commands import Commands, manual_step_text
from ironbench.model.lab import Lab
from ironbench.model.system import ZERO_LATENCY, Layout, Setup
from ironbench.records.described import ideal_bytes
from ironbench.report import text_layout
from ironbench.report.charts.base import Table
from ironbench.report.numbers import quantity
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.trial.drive import checkpoints
from ironbench.trial.load import snapshot
from ironbench.words import counted, grouped, listed

_FILES = {"log": "WAL", "temp": "temporary files"}


def notes(planned: Planned) -> list[str]:
    """Lists what a user should know before running the lab."""
    lab = planned.lab
    warnings = map(text_layout.clean, [*declare.script_warnings(lab), *declare.in_use(lab.setups)])
    return [
        *map(text_layout.clean, planned.warnings),
        *warnings,
        *_notes(lab),
        *_room(planned),
        *_crowded_out(planned),
        *_undecidable(planned),
    ]


def _room(planned: Planned) -> Iterator[str]:
    """Yields warnings about too little disk space and page cache."""
    lab = planned.lab
    able = lab.measurable
    places = [
        setup.system.layout.data for setup in able if setup.system.layout.data and not setup.system.layout.devices
    ]
    if places:
        free = space.free_bytes(places[0])
        if lab.estimate_bytes > free:
            yield text_layout.clean(
                f"not enough space in {places[0]}: {units.stored(free)} are free, and this lab needs about "
                f"{units.stored(lab.estimate_bytes)}, less the data that are already stored; free some space, or "
                "use a smaller scale or another layout.data"
            )
    contents = {setup.cell.name: size.content(setup, lab.method.restore) for setup in able}
    if note := slice_plan.evicting(lab, contents):
        yield text_layout.clean(note)
    yield from _cached(able, {name: one.bytes for name, one in contents.items()})


def _cached(setups: Sequence[Setup], data_bytes: Mapping[str, int]) -> Iterator[str]:
    """Yields a warning if a lab compares data devices but all data fit in the page cache. In this case, no reads reach
    the devices."""
    if any("bare machine" in workloads.get(setup.choice.workload).needs for setup in setups):
        return  # the tests of such a workload choose whether they use the page cache
    places = {(_data_device(setup.system.layout), "data" in setup.system.ideal) for setup in setups}
    if len(places) < 2 or any(setup.system.dsn is not None or setup.cell.load.cache == "cold" for setup in setups):
        return
    unmeasured = [data for setup in setups if (data := setup.choice.data) and _unmeasured(setup)]
    if any(not data.dump for data in unmeasured):
        return  # the data are created by SQL files, so their size is unknown
    largest = max(data_bytes[setup.cell.name] for setup in setups)
    held = min(setup.system.memory_total_bytes or slice_plan.memory_there() for setup in setups)
    if not 0 < largest < held:
        return
    size, memory = f"about {units.stored(largest)}", units.memory(held)
    reads = "reads come from the page cache, and only WAL and checkpoint writes reach the devices"
    advice = "set limits.memory_total to make the ratio of memory to data the same as in production"
    if unmeasured:
        yield (
            f"the data ({size}, estimated from the size of the dump) may fit in memory ({memory}). If they do, "
            f"{reads}; {advice}. `ironbench lab plan` shows the real size after the dump has been loaded"
        )
    else:
        yield f"the data ({size}) fit in memory ({memory}), so {reads}; {advice}"


def _unmeasured(setup: Setup) -> bool:
    """Returns whether the size of the user's own data is only an estimate, because they have not been loaded yet."""
    data = setup.choice.data
    return data is not None and data.imported and snapshot.known_bytes(setup.system, data) is None


def _data_device(layout: Layout) -> Hashable:
    """Returns a key for the device that stores the data: the model of an emulated device, or else the file system of
    the directory. Two directories on one file system have the same key."""
    if (emulated := layout.device_of("data")) is not None:
        return emulated.model
    return space.file_system(layout.data) if layout.data else None


def commands_of(every: Sequence[Commands], folder: str) -> Iterator[str]:
    """Yields lines about the user's commands that a run or lab will execute."""
    if not every:
        return
    each = ("prepare", "cleanup")
    rows = tuple((one.of, when, getattr(one, when)) for one in every for when in each if getattr(one, when))
    yield from text_layout.facts(Table(("", "", ""), rows)).split("\n")
    run = [one for one in every if not all(map(manual_step_text, one.both))]
    limits = listed(list(dict.fromkeys(units.span(one.limit_s) for one in run)))
    yield (f"  in {folder}, time limit {limits}; " if run else "  ") + "a trial fails if its prepare command fails"


def controlled(setup: Setup) -> Iterator[str]:
    """Yields lines about the changes that ironbench will make on the server's machine."""
    for what in server_control.planned(setup.system, setup.cell.load):
        yield f"at {setup.system.server}: {what}"


def _crowded_out(planned: Planned) -> Iterator[str]:
    if planned.crowded_out:
        yield (
            "the budget is too small to also measure response times at the same load, that is, at percentages of the "
            "baseline's peak throughput; use a larger budget, or vary fewer values"
        )


def _undecidable(planned: Planned) -> Iterator[str]:
    """Yields the claims that will stay undecided because their fixed-rate configurations are measured in too few
    blocks."""
    own = {setup.cell.name for setup in planned.lab.setups}
    blocks = planned.costs.rated_blocks
    for claim in planned.lab.claims:
        if not own.issuperset(claim.cells) and (planned.crowded_out or blocks < LEAST_BLOCKS):
            why = (
                f"configurations at a target rate are measured in {counted(blocks, 'block')}, but a verdict needs "
                f"{LEAST_BLOCKS} blocks"
            )
            needed_s = planned.lab.method.budget_for_rates_s
            more = (
                f"; a budget of about {units.span(needed_s)} is enough for {LEAST_BLOCKS} blocks"
                if needed_s is not None
                else ""
            )
            yield text_layout.clean(
                f"{claim.text}: will stay undecided, because "
                f"{'the budget is too small' if planned.crowded_out else why}{more}"
            )


def latency_text(latency_s: float) -> str:
    """Describes the latency that a relay will add."""
    return f"a relay on this machine adds {units.span(latency_s)} of network latency to each round trip"


def _notes(lab: Lab) -> Iterator[str]:
    """Yields notes about differing builds, added latency, and conditions that will flag trials or leave claims
    undecided."""
    able = lab.measurable
    if text := builds.differing({setup.cell.name: setup.system for setup in able}):
        yield text_layout.clean(text)
    yield from map(text_layout.clean, declare.requirements(able))
    yield from _more_memory(able)
    yield from _emulation(able)
    for latency_s in dict.fromkeys(one.system.latency_s for one in able if one.system.latency_s):
        delayed = [one for one in able if one.system.latency_s == latency_s]
        yield text_layout.clean(f"{_which(delayed, lab)}: {latency_text(latency_s)}")
    if note := checkpoints.interval_note(able, lab.method.crash):
        yield text_layout.clean(note)
    shorter = [setup for setup in able if _short_of_two_checkpoints(setup, lab.method.crash)]
    if shorter:
        yield text_layout.clean(
            f"{_which(shorter, lab)}: {checkpoints.writing(shorter)} and are too short for two checkpoints, so WAL "
            "and data writes do not reach a steady state; use longer trials or a shorter load.checkpoint"
        )
    for claim in lab.claims:
        gone = [setup.cell.name for setup in lab.setups if setup.skipped and setup.cell.name in claim.cells]
        if gone:
            yield text_layout.clean(f"{claim.text}: will stay undecided, because {gone[0]} is skipped")


def _more_memory(setups: Sequence[Setup]) -> Iterator[str]:
    """Yields a warning for each configuration with zero-latency files in memory. ironbench raises the memory limit of
    such a configuration by the size of these files."""
    for setup in setups:
        system = setup.system
        if system.memory_total_bytes is None or not (needed := ideal_bytes(system)):
            continue
        files = listed([_FILES[part] for part in needed])
        more = units.memory(sum(needed.values()))
        yield text_layout.clean(
            f"{setup.cell.name}: the memory limit is {more} higher, because it includes memory for {files}. The server "
            f"can cache data in the unused part of this memory, so a gain does not show whether {files} or memory is "
            "the bottleneck. An emulated zero-latency device would not need a higher limit, but emulated devices need "
            f"{capability.lacking()}"
        )


def _emulation(setups: Sequence[Setup]) -> Iterator[str]:
    """Yields a warning for each device that this machine may emulate too slowly. If the emulation speed of this machine
    is unknown, yields a note about this instead."""
    named: dict[tuple[str, int], list[str]] = {}
    for setup in setups:
        for device in setup.system.layout.devices:
            if device.model != ZERO_LATENCY:
                size = sum(one.bytes for one in device.partitions)
                named.setdefault((device.model, size), []).append(setup.cell.name)
    if not named:
        return
    if (rate := emulation_rate.stored()) is None:
        yield (
            "the number of I/Os per second that this machine can emulate is unknown: `ironbench device calibrate` "
            "measures it, and lists the device models that this machine can emulate"
        )
        return
    core = for_core(models())
    for (model, size), names in named.items():
        words = _too_fast(units.device(model), emulation_rate.speed(model, core, size, rate), rate)
        if words:
            yield text_layout.clean(f"{listed(list(dict.fromkeys(names)))}: {words}")


def _about(rate: float) -> str:
    """Formats a rate with two significant digits, such as `98,000`, because calibrations are not more precise than
    that."""
    return grouped(float(f"{rate:.2g}"))


def _too_fast(model: str, speed: EmulatedSpeed, rate: EmulationRate) -> str:
    """Explains why the emulation of a model may be too slow. Returns an empty text if it is fast enough."""
    here = f"this machine emulated at most {_about(rate.reads_per_s)} reads/s on {rate.day}"
    calibrate = "`ironbench device calibrate` measures again"
    match speed.fidelity:
        case Fidelity.REFUSED:
            return (
                f"{model} does about {_about(speed.reads_per_s)} reads/s, but {here}, so the device will be "
                f"refused; remove it, or use an idle or faster machine ({calibrate})"
            )
        case Fidelity.SHORT:
            return (
                f"single I/Os of {model} take less time ({quantity(speed.read_s, 's')} per read, "
                f"{quantity(speed.log_write_s, 's')} to write and flush WAL) than the I/O path of this machine "
                f"allows ({quantity(rate.read_latency_s, 's')} per request). Trials will be flagged "
                "(`emulation-limit`), because a real device is faster than its emulation here"
            )
        case Fidelity.LIMITED:
            return (
                f"{model} does about {_about(speed.reads_per_s)} reads/s, but {here}. Trials with more than "
                f"{_about(rate.faithful_per_s)} I/Os per second will be flagged (`emulation-limit`), because a real "
                f"device is faster than its emulation here ({calibrate})"
            )
        case _:
            return ""


def _which(setups: list[Setup], lab: Lab) -> str:
    if len(setups) == len(lab.setups):
        return "every configuration"
    return ", ".join(setup.cell.name for setup in setups[:3])


def _short_of_two_checkpoints(setup: Setup, crash: str) -> bool:
    load, system = setup.cell.load, setup.system
    engine = engines.get(system.engine)
    if not checkpoints.made(system, setup.choice) or load.duration_s is None:
        return False
    every_s = checkpoints.interval_s(system, setup.choice, load, crash)
    if every_s is None and engine.administration.checkpoint_setting in system.settings:
        return False
    return load.duration_s < checkpoints.LEAST * (every_s or engine.traits.costs.checkpoint_s)
