"""Sets the interval of checkpoints during a trial, so that short trials include as many as long ones.

After a checkpoint, the first change of each page writes the whole page to the WAL, so the volume of WAL can be twenty
times as large. A trial that covers only part of a checkpoint cycle measures either this burst or its absence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironbench import engines, workloads
from ironbench.model.observation import Source
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, Setup, System

LEAST = 2
"""Number of complete checkpoints that a trial with writes must cover."""
PER_TRIAL = LEAST + 1
"""Default number of checkpoint cycles per trial. The number is one more than `LEAST`, because the last checkpoint may
be incomplete when the trial ends."""


def made(system: System, choice: Choice) -> bool:
    """Returns whether ironbench should request checkpoints during trials. This is the case if trials write data and the
    engine's checkpoints can be requested and observed."""
    return engines.get(system.engine).can("checkpoints") and workloads.get(choice.workload).writes(choice.options)


def interval_s(system: System, choice: Choice, load: Load, crash: str = "") -> float | None:
    """Returns the interval of checkpoints in seconds: the declared one or a default. Returns None if the engine's own
    settings determine the interval.

    There is no default if trials do not write, if ironbench does not start the server, or if the user has set an
    interval in the engine's settings. There is also no default if the power is cut after the trial (`crash`). A
    checkpoint shortly before the power cut would save data that could otherwise be lost with unsafe settings.
    """
    if load.checkpoint_s is not None or load.duration_s is None:
        return load.checkpoint_s
    chosen = engines.get(system.engine).administration.checkpoint_setting in system.settings
    if crash or chosen or system.dsn is not None or not made(system, choice):
        return None
    return load.duration_s / PER_TRIAL


def interval_note(setups: Sequence[Setup], crash: str = "", field: str = "load.checkpoint") -> str:
    """Returns a sentence about the default interval of checkpoints. Returns "" if no configuration uses the default.

    `field`: the field in which the user may set another interval.
    """
    by_default = [
        (setup, every_s)
        for setup in setups
        if setup.cell.load.checkpoint_s is None
        and (every_s := interval_s(setup.system, setup.choice, setup.cell.load, crash)) is not None
    ]
    if not by_default:
        return ""
    given = [setup for setup, _ in by_default]
    named = f"with {', '.join(setup.cell.name for setup in given[:3])}"
    which = "in every configuration" if len(given) == len(setups) else named
    spans = sorted({every_s for _, every_s in by_default})
    interval = " to ".join(f"{span:.3g}" for span in dict.fromkeys((spans[0], spans[-1])))
    return (
        f"{which}, {writing(given)}, so the server performs a checkpoint every {interval} s (three per trial); use "
        f"{field} to set another interval"
    )


def writing(setups: Sequence[Setup]) -> str:
    """Returns a phrase for messages. The phrase says that the trials write data, or that they may write data if
    ironbench cannot know this in advance."""
    foreign = any(workloads.get(setup.choice.workload).foreign for setup in setups)
    return "trials may write data" if foreign else "trials write data"


def prepared(
    session: Session, every_s: float | None, own: bool, by_clock: bool = True
) -> tuple[tuple[Source, ...], Mapping[str, str]]:
    """Returns the sources that request checkpoints during a trial, and conditions for the record. Raises FailureError.
    `every_s`: the interval, or None if no checkpoints are requested. `by_clock`: see `pace_checkpoints`."""
    if every_s is None:
        return (), {}
    return engines.get(session.engine).administration.pace_checkpoints(session, every_s, own, by_clock)
