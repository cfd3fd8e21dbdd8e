"""Checks whether trials can be compared, and lists disturbances of the trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from ironbench.model.lab import Configuration
from ironbench.model.note import FLAGGED, Note, merged, note
from ironbench.model.own_data import OwnData
from ironbench.model.record import Record, Status, machines_of
from ironbench.records.progress import first_usable
from ironbench.records.work import same_work, work, work_name, works_apart
from ironbench.study.differences import OF_ONE_LOOP, differing, fact_text, facts_of
from ironbench.study.rate import clients_asked

# Facts that a comparison varies on purpose. Differences in these facts are what is compared.
_MEANT_TO_VARY = (
    *("system.engine", "system.settings", "system.layout", "system.memory_bytes", "system.dsn"),
    "system.reference_score",
    "tag",
)
_OWN_NOTE = ("load.rate",)
"""Facts for which there is a more specific note."""


def unlike(a: Sequence[Record], b: Sequence[Record], rates_vary: bool = False) -> tuple[Note, ...]:
    """Lists differences between A and B that may explain their ratio. Facts that a comparison varies on purpose are
    left out. `rates_vary`: whether target rates also differ on purpose, for example between the points of a search.
    """
    if not a or not b:
        return ()
    rows = [*work_apart(a, b), *_machines_apart(a[0], b[0])]
    facts = [facts_of(a[0]), facts_of(b[0])]
    loads = a[0].cell.load, b[0].cell.load
    if loads[0].rate != loads[1].rate and not rates_vary:
        rows.append(note("loads-differ", a=loads[0].rate, b=loads[1].rate))
    if a[0].method != b[0].method:
        rows.append(note("methods-differ", a=a[0].method, b=b[0].method))
    profiles = [one[0].profile.text if one[0].profile else "" for one in (a, b)]
    if profiles[0] != profiles[1]:
        rows.append(note("profiles-differ", a=profiles[0], b=profiles[1]))
    clients = [asked.get("load.clients", "") for asked in clients_asked((a, b))]
    if clients[0] != clients[1]:
        rows.append(note("clients-differ", a=clients[0], b=clients[1]))
    if apart := workers_apart(a, b):
        rows.append(apart)
    for name in differing(facts):
        one_loop = name in OF_ONE_LOOP and (loads[0].rate is None) != (loads[1].rate is None)
        if not one_loop and not name.startswith((*_MEANT_TO_VARY, *_OWN_NOTE)):
            left, right = (fact_text(flat, name) for flat in facts)
            rows.append(note("fact-differs", fact=name, a=left, b=right))
    if {record.series for record in a} & {record.series for record in b}:
        return tuple(rows)
    rows.append(note("not-in-turns"))
    return tuple(rows)


def _machines_apart(a: Record, b: Record) -> list[Note]:
    """Returns notes on differences between the server machines and between the client machines."""
    (server_a, client_a), (server_b, client_b) = machines_of(a), machines_of(b)
    rows = []
    if any(client and not server for server, client in (machines_of(a), machines_of(b))):
        if (a.series, a.system.dsn) != (b.series, b.system.dsn):
            rows.append(note("server-machine-unknown"))
    elif server_a != server_b:
        rows.append(note("machines-differ"))
    remote = (server_a, server_b) != (client_a, client_b)
    if remote and client_a != client_b:
        rows.append(note("client-machines-differ"))
    return rows


def not_paired(a: Record, b: Record) -> Note | None:
    """Returns the reason why two usable trials of one block cannot be compared. Returns None if they can be
    compared."""
    if a.machine != b.machine:  # the lab was continued on different hardware within this block (--changed)
        return note("block-on-machines")
    if a.turns_since != b.turns_since:  # the lab was interrupted between the two trials, so they were not interleaved
        return note("block-not-in-turns")
    return workers_apart([a], [b])  # a machine of the cluster was lost in this block


_block = attrgetter("block")


def complete_blocks(a: Sequence[Record], b: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Selects the blocks in which both configurations have a usable trial. Returns the first usable attempt of each
    configuration in each of these blocks, as in findings. The other blocks are left out, because a block in which one
    configuration has no usable trial may be faster or slower than the rest.
    """
    of_a, of_b = (
        {
            block: trial
            for block, attempts in groupby(sorted(side, key=_block), key=_block)
            if (trial := first_usable(attempts)) is not None
        }
        for side in (a, b)
    )
    kept = [block for block in of_a if block in of_b and not_paired(of_a[block], of_b[block]) is None]
    return [of_a[block] for block in kept], [of_b[block] for block in kept]


def workers_apart(a: Sequence[Record], b: Sequence[Record]) -> Note | None:
    """Returns a note if the same number of workers was requested for A and B, but different numbers worked. Otherwise
    returns None."""
    if {record.cell.load.workers for record in a} != {record.cell.load.workers for record in b}:
        return None
    drove = [tuple(sorted({_drove(record) for record in side})) for side in (a, b)]
    return note("workers-differ", a=drove[0], b=drove[1]) if drove[0] != drove[1] else None


def too_few_workers(records: Sequence[Record]) -> list[Note]:
    """Returns a note on trials that continued with fewer workers than the load requests, because machines were lost."""
    short = [record for record in records if _drove(record) < record.cell.load.workers]
    if not short:
        return []
    drove = tuple(sorted({_drove(record) for record in short}))
    asked = max(record.cell.load.workers for record in short)
    return [note("trials-of-fewer-workers", workers=drove, requested=asked, trials=len(short), of=len(records))]


def _drove(record: Record) -> float:
    return record.metrics.get("workers", float(record.cell.load.workers))


def other_work(a: Sequence[Record], b: Sequence[Record]) -> tuple[Note, ...]:
    """Returns the reasons why A and B cannot be compared: different work, different data or a different ironbench
    version."""
    if not a or not b:
        return ()
    rows = work_apart(a, b)
    versions = [sorted({record.software.get("ironbench", "") for record in side} - {""}) for side in (a, b)]
    if all(versions) and versions[0] != versions[1]:
        rows.append(note("versions-differ", a=tuple(versions[0]), b=tuple(versions[1])))
    return tuple(rows)


def work_apart(a: Sequence[Record], b: Sequence[Record]) -> list[Note]:
    """Returns notes on how the work of two sides differs: its name, the contents of scripts with the same name, or the
    data. Empty for equal work."""
    sides = [list({work(record): record.choice for record in side}.values()) for side in (a, b)]
    pairs = ((one, others) for mine, others in (sides, sides[::-1]) for one in mine)
    if all(any(same_work(one, other) for other in others) for one, others in pairs):
        return []
    rows = []
    names = [sorted(set(map(work_name, side))) for side in sides]
    if names[0] != names[1]:
        alone = all(len(side) == 1 for side in names)
        left, right = works_apart(sides[0][0], sides[1][0]) if alone else map(tuple, names)
        rows.append(note("work-differs", a=left, b=right))
    rows += [note("script-differs", script=script) for script in _rewritten(a, b)]
    data = [{one.data.key if one.data else "" for one in side} for side in sides]
    if data[0] != data[1]:
        left, right = (tuple(sorted({_own_data(one.data) for one in side})) for side in sides)
        rows.append(note("data-differ", a=left, b=right))
    return rows


def _own_data(data: OwnData | None) -> str:
    """Describes the user's own data. The text contains a key, because different data may have the same name. Empty for
    generated data."""
    return f"{data.words} ({data.key})" if data is not None and data.imported else ""


def _rewritten(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """Lists scripts that both sides have under the same name but with different contents."""
    sides: list[dict[str, set[str]]] = [{}, {}]
    for contents, records in zip(sides, (a, b), strict=True):
        for record in records:
            for script, digest in zip(record.choice.scripts, record.choice.digests, strict=False):
                contents.setdefault(script, set()).add(digest)
    return [script for script, digests in sides[0].items() if script in sides[1] and digests != sides[1][script]]


def left_out(records: Sequence[Record]) -> tuple[Note, ...]:
    """Counts excluded trials by status, with the causes."""
    rows = []
    for status in (Status.VOIDED, Status.FAILED, Status.CUT_SHORT):
        of_status = [record for record in records if record.status is status]
        if of_status:
            rows.append(note("trials-left-out", status=status.value, trials=len(of_status), causes=_causes(of_status)))
    return tuple(rows)


def repeated_blocks(records: Sequence[Record]) -> tuple[Note, ...]:
    """Returns notes on the blocks that were repeated, and on the failures because of which they were repeated."""
    if not records:
        return ()
    failed = [record for record in records if record.status in (Status.FAILED, Status.VOIDED)]
    blocks = len({record.block for record in records})
    return (note("blocks-repeated", blocks=blocks, trials=len(records), causes=_causes(failed)),)


def _causes(records: Sequence[Record]) -> tuple[Note, ...]:
    """Returns the causes of all records without duplicates."""
    return tuple(dict.fromkeys(cause for record in records for cause in record.causes))


def trial_warnings(records: Sequence[Record]) -> tuple[Note, ...]:
    """Returns the notes of the comparable trials, each once, with the number of affected trials and the range of the
    note's values."""
    entered = [record for record in records if record.status.comparable]
    rows = [note("of-trials", note=one, trials=count, of=len(entered)) for one, count in _notes(entered)]
    silent = [record for record in entered if record.status is Status.SUSPECT and not record.warnings]
    if silent:
        rows.append(note(FLAGGED, trials=len(silent), of=len(entered), causes=_causes(silent)))
    return tuple(rows)


def merged_notes(records: Sequence[Record]) -> list[Note]:
    """Returns the notes of all trials, each once, with the range of the note's values."""
    return [one for one, _ in _notes(records)]


def _notes(records: Sequence[Record]) -> Iterator[tuple[Note, int]]:
    """Yields each merged note with the number of trials that have it."""
    return _merged(record.warnings for record in records)


def flagged(records: Sequence[Record]) -> tuple[Note, ...]:
    """Returns a note with the number of flagged trials and the causes. Returns no note if no trial is flagged."""
    suspect = [record for record in records if record.status is Status.SUSPECT]
    if not suspect:
        return ()
    return (note(FLAGGED, trials=len(suspect), of=len(records), causes=tuple(causes(suspect))),)


def causes(suspect: Sequence[Record]) -> list[Note]:
    """Lists the causes for which trials are flagged, with the range of values of each cause. The most frequent cause is
    first."""
    each = (record.flags or record.causes for record in suspect)
    return [one for one, _ in sorted(_merged(each), key=lambda known: -known[1])]


def _merged(each: Iterable[Sequence[Note]]) -> Iterator[tuple[Note, int]]:
    """Merges the notes of several trials and yields each with the number of trials that have it."""
    groups: dict[tuple[str, frozenset[str]], list[Note]] = {}
    for notes in each:
        for one in merged(notes):
            groups.setdefault((one.code, frozenset(one.values)), []).append(one)
    for same in groups.values():
        (whole,) = merged(same)
        yield whole, len(same)


DISTURBED = ("not-quiet", "cpu-taken", "steal", "clock-step")
"""Codes of the warnings about disturbed trials. Only older records contain `steal`."""
UNEQUAL = 1 / 3
"""If the fractions of disturbed trials of two configurations differ by at least this much, the disturbance may explain
the difference between the configurations."""
_LEAST = 2


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A kind of disturbance, with its extent in all configurations."""

    code: str
    trials: int
    of: int
    most: tuple[Configuration, int, int] | None = None
    """The most affected configuration, its number of disturbed trials, and its number of trials. The value is None if
    all configurations were affected about equally."""
    least: tuple[Configuration, int, int] | None = None
    """The least affected configuration, in the same form."""

    @property
    def note(self) -> Note:
        return note("trials-disturbed", by=self.code, trials=self.trials, of=self.of, most=self.most, least=self.least)


def disturbances(cells: Iterable[tuple[Configuration, Sequence[Record]]]) -> tuple[Disturbance, ...]:
    """Returns every kind of disturbance that affected a trial. `cells`: configurations with their comparable trials."""
    known = [(cell, records) for cell, records in cells if records]
    results = []
    for code in DISTURBED:
        counts = [(cell, sum(record.warned(code) for record in records), len(records)) for cell, records in known]
        trials, of = sum(count for _, count, _ in counts), sum(all for _, _, all in counts)
        if trials:
            most, least = (end(counts, key=lambda one: one[1] / one[2]) for end in (max, min))
            apart = most[1] / most[2] - least[1] / least[2]
            unequal = apart >= UNEQUAL and most[1] >= _LEAST
            results.append(Disturbance(code, trials, of, *((most, least) if unequal else (None, None))))
    return tuple(results)
