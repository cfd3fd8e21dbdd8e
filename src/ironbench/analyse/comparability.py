"""Whether trials can be compared, and what disturbed them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ironbench.analyse.differences import differing, fact_text, facts_of
from ironbench.analyse.rate import clients_asked, loop_words
from ironbench.analyse.subjects import method, same_work, work, work_name, works_apart
from ironbench.model.note import FLAGGED, Note, merged, note, text_note
from ironbench.model.own_data import OwnData
from ironbench.model.record import Record, Status, machines_of
from ironbench.words import counted

# What a comparison is meant to vary: that these differ is the question, not a flaw of the answer.
_MEANT_TO_VARY = (
    *("system.engine", "system.settings", "system.layout", "system.memory_bytes", "system.dsn"),
    "system.reference_score",
    "tag",
)
_OWN_SENTENCE = ("load.rate",)
"""Reported in a sentence of its own."""


def unlike(a: Sequence[Record], b: Sequence[Record], rates_vary: bool = False) -> tuple[str, ...]:
    """Differences besides the systems that may explain a ratio of A and B, one sentence each. `rates_vary`: they are
    meant to, as between points of one search."""
    if not a or not b:
        return ()
    rows = []
    rows += [f"The work differs: {text}." for _, text in work_apart(a, b)]
    rows += _machines_apart(a[0], b[0])
    facts = [facts_of(a[0]), facts_of(b[0])]
    loads = a[0].cell.load, b[0].cell.load
    if loads[0].rate != loads[1].rate and not rates_vary:
        rows.append(f"The load differs: {loop_words(loads[0])} against {loop_words(loads[1])}.")
    methods = method(a[0]), method(b[0])
    if methods[0] != methods[1]:
        rows.append(f"The method differs: by {methods[0]} against by {methods[1]}.")
    clients = [asked.get("load.clients", "") for asked in clients_asked((a, b))]
    if clients[0] != clients[1]:
        rows.append(f"The number of clients differs: {clients[0]} against {clients[1]}.")
    if apart := workers_apart(a, b):
        rows.append(f"The number of workers differs: {apart} drove.")
    for name in differing(facts):
        if not name.startswith((*_MEANT_TO_VARY, *_OWN_SENTENCE)):
            left, right = (fact_text(flat, name) for flat in facts)
            rows.append(f"{_title(name)} differs: {left} against {right}.")
    if {record.series for record in a} & {record.series for record in b}:
        return tuple(rows)
    rows.append(
        "The systems were run one after the other, not in turns: a drift of the machine would look like a difference."
    )
    return tuple(rows)


def _machines_apart(a: Record, b: Record) -> list[str]:
    """Sentences on the machines that did the work and the ones that drove it."""
    (server_a, client_a), (server_b, client_b) = machines_of(a), machines_of(b)
    rows = []
    if any(client and not server for server, client in (machines_of(a), machines_of(b))):
        if (a.series, a.system.dsn) != (b.series, b.system.dsn):
            rows.append("The machine of a server is unknown, and may differ: --server ssh://HOST records it.")
    elif server_a != server_b:
        rows.append("The machines differ, or the same machine was set up differently.")
    remote = (server_a, server_b) != (client_a, client_b)
    if remote and client_a != client_b:
        rows.append("The clients ran on different machines, or on one that was set up differently.")
    return rows


def workers_apart(a: Sequence[Record], b: Sequence[Record]) -> str:
    """How many workers drove A, and how many B, where as many were asked for and they are not as many; else empty."""
    if {record.cell.load.workers for record in a} != {record.cell.load.workers for record in b}:
        return ""
    drove = [", ".join(f"{count:g}" for count in sorted({_drove(record) for record in side})) for side in (a, b)]
    return f"{drove[0]} against {drove[1]} workers" if drove[0] != drove[1] else ""


def too_few_workers(records: Sequence[Record]) -> list[str]:
    """A sentence where trials went on with fewer workers than the load asks for, since machines were lost."""
    short = [record for record in records if _drove(record) < record.cell.load.workers]
    if not short:
        return []
    drove = ", ".join(f"{count:g}" for count in sorted({_drove(record) for record in short}))
    asked = max(record.cell.load.workers for record in short)
    return [f"{drove} of {asked} workers drove {len(short)} of {counted(len(records), 'trial')}: machines were lost."]


def _drove(record: Record) -> float:
    return record.metrics.get("workers", float(record.cell.load.workers))


def other_work(a: Sequence[Record], b: Sequence[Record]) -> tuple[str, ...]:
    """Why A and B cannot be compared: other work, other data or another ironbench."""
    if not a or not b:
        return ()
    begins = {"names": "they did different work: ", "data": "they started from other data: "}
    rows = [f"{begins.get(part, '')}{text}" for part, text in work_apart(a, b)]
    versions = [sorted({record.software.get("ironbench", "") for record in side} - {""}) for side in (a, b)]
    if all(versions) and versions[0] != versions[1]:
        rows.append(f"ironbench {', '.join(versions[0])} measured one, {', '.join(versions[1])} the other")
    return tuple(rows)


def work_apart(a: Sequence[Record], b: Sequence[Record]) -> list[tuple[str, str]]:
    """In what the work of two sides differs, by contents: its `names`, `contents` of scripts of one name, or `data`,
    each with a description. Empty for equal work."""
    sides = [list({work(record): record.choice for record in side}.values()) for side in (a, b)]
    pairs = ((one, others) for mine, others in (sides, sides[::-1]) for one in mine)
    if all(any(same_work(one, other) for other in others) for one, others in pairs):
        return []
    rows = []
    names = [sorted(set(map(work_name, side))) for side in sides]
    if names[0] != names[1]:
        alone = all(len(side) == 1 for side in names)
        text = works_apart(sides[0][0], sides[1][0]) if alone else " against ".join(map(", ".join, names))
        rows.append(("names", text))
    rows += [("contents", f"{script} has other contents") for script in _rewritten(a, b)]
    data = [{one.data.key if one.data else "" for one in side} for side in sides]
    if data[0] != data[1]:
        words = [sorted({_own_data(one.data) for one in side}) for side in sides]
        rows.append(("data", " against ".join(map(", ".join, words))))
    return rows


def _own_data(data: OwnData | None) -> str:
    """The user's own data with what tells them from others of the same name."""
    return f"{data.words} ({data.key})" if data is not None and data.imported else "the workload's"


def _rewritten(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """Scripts of one name on both sides whose contents are recorded and not the same."""
    sides: list[dict[str, set[str]]] = [{}, {}]
    for contents, records in zip(sides, (a, b), strict=True):
        for record in records:
            for script, digest in zip(record.choice.scripts, record.choice.digests, strict=False):
                contents.setdefault(script, set()).add(digest)
    return [script for script, digests in sides[0].items() if script in sides[1] and digests != sides[1][script]]


def left_out(records: Sequence[Record]) -> tuple[Note, ...]:
    """Excluded trials by status, with their causes."""
    rows = []
    for status in (Status.VOIDED, Status.FAILED, Status.CUT_SHORT):
        of_status = [record for record in records if record.status is status]
        if of_status:
            rows.append(
                note("trials-left-out", status=status.value, trials=len(of_status), causes=_messages(of_status))
            )
    return tuple(rows)


def set_aside(records: Sequence[Record]) -> tuple[Note, ...]:
    """Trials of blocks that were measured again, and what had failed there."""
    if not records:
        return ()
    failed = [record for record in records if record.status in (Status.FAILED, Status.VOIDED)]
    blocks = len({record.block for record in records})
    return (note("blocks-repeated", blocks=blocks, trials=len(records), causes=_messages(failed)),)


def _messages(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.cause for record in records if record.cause))


def doubts(records: Sequence[Record]) -> tuple[Note, ...]:
    """Notes of the comparable trials: each once, with how many trials have it and the range of its numbers."""
    entered = [record for record in records if record.status.comparable]
    rows = [note("of-trials", note=one, trials=count, of=len(entered)) for one, count in _notes(entered)]
    silent = [record for record in entered if record.status is Status.SUSPECT and not record.warnings]
    if silent:
        causes = tuple(map(text_note, _messages(silent)))
        rows.append(note(FLAGGED, trials=len(silent), of=len(entered), causes=causes))
    return tuple(rows)


def together(records: Sequence[Record]) -> list[Note]:
    """The notes of all trials, each once, with the range of its numbers."""
    return [one for one, _ in _notes(records)]


def _notes(records: Sequence[Record]) -> Iterator[tuple[Note, int]]:
    """Each note, merged, and how many trials have it."""
    return _merged(record.warnings for record in records)


def causes(suspect: Sequence[Record]) -> list[Note]:
    """Why trials are flagged: each cause once, with the range of its numbers, beginning with the most frequent."""
    each = (record.flags or ((text_note(record.cause),) if record.cause else ()) for record in suspect)
    return [one for one, _ in sorted(_merged(each), key=lambda known: -known[1])]


def _merged(each: Iterable[Sequence[Note]]) -> Iterator[tuple[Note, int]]:
    """The notes of several trials, merged, each with how many trials have it."""
    groups: dict[tuple[str, frozenset[str]], list[Note]] = {}
    for notes in each:
        for one in merged(notes):
            groups.setdefault((one.code, frozenset(one.values)), []).append(one)
    for same in groups.values():
        (whole,) = merged(same)
        yield whole, len(same)


def _title(name: str) -> str:
    kind, _, rest = name.partition(".")
    return f"{kind.capitalize()}: {rest or kind}"


DISTURBED = {
    "not-quiet": "the machine was not quiet before",
    "cpu-taken": "other programs or virtual machines took CPU time during",
    "steal": "other virtual machines took CPU time during",
    "clock-step": "the clock was set during",
}
"""Warning of a trial (`steal`: in older records) → what happened, to be followed by which trials."""
UNEQUAL = 1 / 3
"""Difference between the shares of two cells' trials from which a difference between the cells may be its doing."""
_LEAST = 2


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One kind of it, over all cells."""

    code: str
    trials: int
    of: int
    most: tuple[str, int, int] | None = None
    """Cell, disturbed trials and all of them: the one met most, where it met cells unequally;"""
    least: tuple[str, int, int] | None = None
    """and the one met least."""

    @property
    def sentence(self) -> str:
        # Trials that were left out, and those at a share of a peak, are not among them.
        which = f"{self.trials} of {self.of} compared trials"
        if self.trials == self.of:
            which = f"each of the {self.of} compared trials" if self.of > 1 else "the only compared trial"
        words = DISTURBED[self.code]
        event = f"{words[0].upper()}{words[1:]} {which}"
        if self.most is None or self.least is None:
            return f"{event}."
        sides = [f"{name} ({count} of {of})" for name, count, of in (self.most, self.least)]
        return f"{event}, and more often at {sides[0]} than at {sides[1]}: part of a difference may be its doing."


def disturbances(cells: Iterable[tuple[str, Sequence[Record]]]) -> tuple[Disturbance, ...]:
    """Of each kind that met a trial. `cells`: names with the trials that may be compared."""
    known = [(name, records) for name, records in cells if records]
    results = []
    for code in DISTURBED:
        counts = [(name, sum(record.warned(code) for record in records), len(records)) for name, records in known]
        trials, of = sum(count for _, count, _ in counts), sum(all for _, _, all in counts)
        if trials:
            most, least = (end(counts, key=lambda one: one[1] / one[2]) for end in (max, min))
            apart = most[1] / most[2] - least[1] / least[2]
            unequal = apart >= UNEQUAL and most[1] >= _LEAST
            results.append(Disturbance(code, trials, of, *((most, least) if unequal else (None, None))))
    return tuple(results)
