"""Words for a study's notes, which are about several trials or configurations."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.lab import Configuration
from ironbench.model.note import FLAGGED, MISSING, Note
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.terms import Configurations, compared, configurations
from ironbench.report.wording.terms import status as terms_status
from ironbench.report.wording.values import Number, highest, names, percent
from ironbench.words import counted, some


def _text(note: Note) -> str:
    return text(note).rstrip(".")


def _causes(causes: Sequence[Note]) -> str:
    return "; ".join(dict.fromkeys(map(_text, causes)))


@wording("of-trials")
def of_trials(note: Note, trials: int, of: int) -> str:
    """Example with note=note('samples-dropped', samples=40), trials=1, of=8: `40 observer samples were dropped
    [samples-dropped, 1 of 8 trials]`."""
    return f"{_text(note)} [{note.code}, {trials} of {counted(of, 'trial')}]"


@wording("of-subjects")
def of_subjects(
    subjects: Configurations,
    note: Note,
    comparisons: Sequence[tuple[Configuration, Configuration, Configuration]] = (),
) -> str:
    """Example with subjects='WAL in memory', note=note('ratio-changed', before=3.37, after=1.0): `WAL in memory: the
    ratio drifted from 3.37 to 1.00 between the first and the last block`."""
    words = [compared(*one) for one in comparisons] or configurations(subjects)
    return ": ".join(filter(None, (names(words), text(note))))


@wording(FLAGGED)
def trials_flagged(trials: int, of: int, causes: Sequence[Note] = ()) -> str:
    """Example with trials=4, of=24, causes=[note('cpu-taken', share=NoteRange(0.05, 0.12), programs=0.05, steal=0.0)]:
    `4 of 24 trials flagged: 5 to 12% of CPU time was lost (5% to other programs).`"""
    return f"{trials} of {counted(of, 'trial')} flagged{f': {_causes(causes)}' if causes else ''}."


@wording("peak-flagged")
def peak_flagged(work: str, where: str, side: str, trials: int, of: int, causes: Sequence[Note] = ()) -> str:
    """Example with work='tpcb-like', where='peak', side='old', trials=1, of=3, causes=[note('client-saturated',
    busy=0.97, threads=2, clients=8)]: `tpcb-like: 1 of 3 trials at the peak of old flagged: the client's 2 threads were
    97% busy and may be the bottleneck: increase `--threads``."""
    place = {"rate": "at the target rate of", "alone": "of"}.get(where, "at the peak of")
    flagged = f"{trials} of {counted(of, 'trial')} {place} {side or 'one side'} flagged"
    return ": ".join(filter(None, (work, flagged, _causes(causes))))


@wording("trials-left-out")
def trials_left_out(status: str, trials: int, causes: Sequence[Note] = ()) -> str:
    """Example with status='invalid', trials=2, causes=[note('engine-died', error='out of memory')]: `2 invalid trials
    left out (the server crashed: out of memory).`"""
    why = some(list(map(text, causes)))
    return f"{counted(trials, f'{terms_status(status)} trial'.lstrip())} left out{f' ({why})' if why else ''}."


@wording("blocks-repeated")
def blocks_repeated(blocks: int, trials: int, causes: Sequence[Note] = ()) -> str:
    """Example with blocks=1, trials=2, causes=[note('engine-died')]: `1 block was repeated after failed trials; 2
    earlier trials were left out (the server crashed).`"""
    why = some(list(map(text, causes)))
    earlier = (
        f"{counted(trials, 'earlier trial')} {'was' if trials == 1 else 'were'} left out{f' ({why})' if why else ''}"
    )
    return f"{counted(blocks, 'block')} {'was' if blocks == 1 else 'were'} repeated after failed trials; {earlier}."


@wording(MISSING)
def trials_missing(missing: int, due: int) -> str:
    """Example with missing=2, due=24: `2 of 24 planned trials have not run: run them with `ironbench lab resume``."""
    verb, them = ("has", "it") if missing == 1 else ("have", "them")
    return f"{missing} of {due} planned trials {verb} not run: run {them} with `ironbench lab resume`"


@wording("reads-from-memory")
def reads_from_memory(share: Number) -> str:
    """Example with share=0.002: `device reads took at most 0.2% of transaction time, because the data was cached, so
    the data devices differ only in WAL and checkpoint writes. To make reads reach the device, set `limits.memory_total`
    so that the ratio of memory to data is the same as in production`."""
    return (
        f"device reads took at most {percent(highest(share))} of transaction time, because the data was cached, "
        "so the data devices differ only in WAL and checkpoint writes. To make reads reach the device, set "
        "`limits.memory_total` so that the ratio of memory to data is the same as in production"
    )
