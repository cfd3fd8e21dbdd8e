"""Checkpoints during a trial: how far apart they are is set, so that short trials cover as many as long ones.

Right after a checkpoint every page that changes goes whole into the log, which can grow twentyfold; a trial that covers
part of one cycle measures that flood or its absence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ironbench import engines, workloads
from ironbench.model.observation import Source
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, Setup, System

LEAST = 2
"""Complete ones that a writing trial must cover."""
PER_TRIAL = LEAST + 1
"""Default number of checkpoint cycles per trial: the last one may not be complete at the end."""


def made(system: System, choice: Choice) -> bool:
    """Whether trials change data on an engine whose checkpoints are requested and reported."""
    return engines.get(system.engine).can("checkpoints") and workloads.get(choice.workload).writes(choice.options)


def settled(setup: Setup, crash: str = "") -> Setup:
    """The setup with an interval of checkpoints where its trials write to a server of ours and nobody chose one.

    None before a power cut (`crash`): a checkpoint right before it makes safe what the settings leave unsafe.
    """
    load, system = setup.cell.load, setup.system
    setting = engines.get(system.engine).administration.checkpoint_setting
    chosen = load.checkpoint_s is not None or setting in system.settings
    if crash or chosen or system.dsn is not None or not made(system, setup.choice) or load.duration_s is None:
        return setup
    interval_s = load.duration_s / PER_TRIAL
    return replace(setup, cell=replace(setup.cell, load=replace(load, checkpoint_s=interval_s)))


def interval_note(setups: Sequence[Setup], crash: str = "", field: str = "load.checkpoint") -> str:
    """Says how far apart checkpoints are in cells where nobody chose; empty where there are none.

    `field`: where the user may choose."""
    given = [setup for setup in setups if setup.cell.load.checkpoint_s is None and settled(setup, crash) != setup]
    if not given:
        return ""
    which = "every cell" if len(given) == len(setups) else ", ".join(setup.cell.name for setup in given[:3])
    spans = sorted({settled(setup).cell.load.checkpoint_s or 0.0 for setup in given})
    interval = " to ".join(f"{span:.3g}" for span in dict.fromkeys((spans[0], spans[-1])))
    return (
        f"{which}: {writing(given)}, so the server makes a checkpoint every {interval} s, three in a trial; "
        f"{field} chooses another interval"
    )


def writing(setups: Sequence[Setup]) -> str:
    """That their trials write, as far as that is known beforehand."""
    foreign = any(workloads.get(setup.choice.workload).foreign for setup in setups)
    return "trials may write" if foreign else "trials write"


def prepared(
    session: Session, load: Load, own: bool, by_clock: bool = True
) -> tuple[tuple[Source, ...], Mapping[str, str]]:
    """Sources that make the checkpoints of a trial, and what is to be said of them; `by_clock`: see `pace_checkpoints`.
    FailureError."""
    if load.checkpoint_s is None:
        return (), {}
    return engines.get(session.engine).administration.pace_checkpoints(session, load.checkpoint_s, own, by_clock)
