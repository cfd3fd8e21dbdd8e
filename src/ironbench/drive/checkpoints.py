"""Checkpoints during a trial: how far apart they are is set, so that short trials cover as many as long ones.

Right after a checkpoint every page that changes goes whole into the log, which can grow twentyfold; a trial that covers
part of one cycle measures that flood or its absence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ironbench import workloads
from ironbench.model.observation import Source
from ironbench.model.session import Session
from ironbench.model.system import Load, Setup

NAME = "checkpoints.request"
LEAST = 2
"""Complete ones that a writing trial must cover."""
PER_TRIAL = LEAST + 1
"""Whole cycles in a trial, where nobody said how far apart: the last one may not be complete at the end."""
SHORTEST_TIMEOUT_S = 30.0
"""The least that checkpoint_timeout takes (PostgreSQL 18 documentation, 19.5.2)."""


def settled(setup: Setup) -> Setup:
    """The setup with an interval of checkpoints where its trials write to a PostgreSQL of ours and nobody chose one."""
    load, system = setup.cell.load, setup.system
    chosen = load.checkpoint_s is not None or "checkpoint_timeout" in system.settings
    ours = system.engine == "postgres" and system.dsn is None
    writes = workloads.get(setup.choice.workload).writes(setup.choice.options)
    if chosen or not ours or not writes or load.duration_s is None:
        return setup
    interval_s = load.duration_s / PER_TRIAL
    return replace(setup, cell=replace(setup.cell, load=replace(load, checkpoint_s=interval_s)))


def said(setups: Sequence[Setup]) -> str:
    """Of cells whose checkpoints nobody chose: what is done, for plan and report; empty where there are none."""
    given = [setup for setup in setups if setup.cell.load.checkpoint_s is None and settled(setup) != setup]
    if not given:
        return ""
    which = "every cell" if len(given) == len(setups) else ", ".join(setup.cell.name for setup in given[:3])
    spans = sorted({settled(setup).cell.load.checkpoint_s or 0.0 for setup in given})
    interval = " to ".join(f"{span:.3g}" for span in dict.fromkeys((spans[0], spans[-1])))
    return (
        f"{which}: {writing(given)}, so PostgreSQL makes a checkpoint every {interval} s, three in a trial; "
        "load.checkpoint chooses another interval"
    )


def writing(setups: Sequence[Setup]) -> str:
    """That their trials write, as far as that is known beforehand."""
    foreign = any(workloads.get(setup.choice.workload).foreign for setup in setups)
    return "trials may write" if foreign else "trials write"


def prepared(session: Session, load: Load, own: bool) -> tuple[tuple[Source, ...], Mapping[str, str]]:
    """Sources that make the checkpoints of a trial, and what is to be said of them. FailureError.

    Long intervals are the server's own business, which spreads the writing over them; shorter ones than it knows are
    requested, and such a checkpoint is written at full speed (CHECKPOINT, PostgreSQL 18 documentation).
    """
    interval_s = load.checkpoint_s
    if interval_s is None or session.engine != "postgres":
        return (), {}
    if own and interval_s >= SHORTEST_TIMEOUT_S:
        session.query(f"alter system set checkpoint_timeout = '{round(interval_s)}s'")
        session.query("select pg_reload_conf()")
        session.query("checkpoint")  # the next one is due an interval after this one
        return (), {"checkpoints": f"every {round(interval_s)} s (checkpoint_timeout)"}
    if own:
        session.query("checkpoint")
    how = f"requested every {interval_s:.3g} s (CHECKPOINT, at full speed)"
    return (Source(NAME, "request", "checkpoint", interval_s),), {"checkpoints": how}
