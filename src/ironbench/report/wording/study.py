"""Words for notes of a study, about several trials or configurations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench import units
from ironbench.model.note import FLAGGED, MISSING, Note
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.values import Number, Strings, highest, names, percent
from ironbench.words import counted, some


def _text(note: Note) -> str:
    return text(note).rstrip(".")


def _causes(causes: Sequence[Note]) -> str:
    return "; ".join(dict.fromkeys(map(_text, causes)))


@wording("of-trials")
def of_trials(note: Note, trials: int, of: int) -> str:
    """40 observer samples were dropped [samples-dropped, 1 of 8 trials]"""
    return f"{_text(note)} [{note.code}, {trials} of {counted(of, 'trial')}]"


@wording("of-subjects")
def of_subjects(subjects: Strings, note: Note) -> str:
    """log=memory: the ratio drifted"""
    return ": ".join(filter(None, (names(subjects), text(note))))


@wording(FLAGGED)
def trials_flagged(trials: int, of: int, causes: Sequence[Note] = ()) -> str:
    """4 of 24 trials suspect: 5 to 12% of CPU time was taken from the work."""
    return f"{trials} of {counted(of, 'trial')} suspect{f': {_causes(causes)}' if causes else ''}."


@wording("peak-flagged")
def peak_flagged(work: str, where: str, side: str, trials: int, of: int, causes: Sequence[Note] = ()) -> str:
    """tpcb-like: 1 of 3 trials at the peak of old suspect: the client's 2 threads were 97% busy"""
    place = {"rate": "at the rate asked of", "alone": "of"}.get(where, "at the peak of")
    flagged = f"{trials} of {counted(of, 'trial')} {place} {side or 'a side'} suspect"
    return ": ".join(filter(None, (work, flagged, _causes(causes))))


@wording("trials-left-out")
def trials_left_out(status: str, trials: int, causes: Sequence[Note] = ()) -> str:
    """2 voided trials left out: server died: out of memory."""
    why = some(list(map(text, causes)))
    return f"{counted(trials, f'{status} trial'.lstrip())} left out{f': {why}' if why else ''}."


@wording("blocks-repeated")
def blocks_repeated(blocks: int, trials: int, causes: Sequence[Note] = ()) -> str:
    """1 block measured again whole after failed trials; 2 earlier trials left out: server died."""
    why = some(list(map(text, causes)))
    earlier = f"{counted(trials, 'earlier trial')} left out{f': {why}' if why else ''}"
    return f"{counted(blocks, 'block')} measured again whole after failed trials; {earlier}."


@wording(MISSING)
def trials_missing(missing: int, due: int) -> str:
    """2 of 24 planned trials are still to be run: `ironbench lab resume` runs them"""
    verb, them = ("is", "it") if missing == 1 else ("are", "them")
    return f"{missing} of {due} planned trials {verb} still to be run: `ironbench lab resume` runs {them}"


@wording("search-too-short")
def search_too_short(metrics: Strings, seconds: Number) -> str:
    """the search is inconclusive where trials have too few transactions for the limit on response_time_p99_s: at the
    lowest rate tried, that takes trials of 60 s or longer"""
    return (
        f"the search is inconclusive where trials have too few transactions for the limit on {names(metrics)}: at the "
        f"lowest rate tried, that takes trials of {units.span(math.ceil(highest(seconds)))} or longer"
    )


@wording("reads-from-memory")
def reads_from_memory(share: Number) -> str:
    """device reads took at most 0.2% of the time, pages came from memory: the devices for the data were compared by
    WAL and checkpoints alone. limits.memory_total, set to the memory …"""
    return (
        f"device reads took at most {percent(highest(share))} of the time, pages came from memory: the devices for the "
        "data were compared by WAL and checkpoints alone. limits.memory_total, set to the memory that the database "
        "will have beside its real size, makes reads reach the device"
    )
