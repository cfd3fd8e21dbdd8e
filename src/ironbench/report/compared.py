"""A held against B, once they are known to be comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ironbench.errors import InputError
from ironbench.model.record import Record, Status
from ironbench.records.labs import LabDirectory
from ironbench.records.selection import NamedRecords
from ironbench.records.work import work_name
from ironbench.report import wording
from ironbench.report.derived import sentences
from ironbench.study import compare as analysis
from ironbench.study.archive import Archive, Archives
from ironbench.study.comparability import other_work
from ironbench.study.compare import SystemComparison
from ironbench.study.differences import facts
from ironbench.study.lead import require_one_system
from ironbench.study.subjects import Subject, by_work, marked
from ironbench.words import counted

if TYPE_CHECKING:
    # No comparison of two labels needs either: without them it starts sooner.
    from ironbench.study.explain import Explanation
    from ironbench.study.study import Effect


@dataclass(frozen=True, slots=True)
class Held:
    """B held against A."""

    sides: tuple[NamedRecords, NamedRecords]
    store: Archive
    pairs: tuple[Effect, ...]
    """Findings of two cells of one lab."""
    found: SystemComparison

    @property
    def usable(self) -> bool:
        return all(self.found.trials)

    def explained(self) -> Explanation:
        from ironbench.study.explain import explain, observed_of

        one, other = self.sides
        a, b = self.found.trials
        names = marked(one.word, a), marked(other.word, b)
        watched = observed_of(one.records), observed_of(other.records)
        observed = ((names[0], watched[0]), (names[1], watched[1])) if self.pairs and all(watched) else None
        return explain((names[0], a), (names[1], b), self.store, in_blocks=bool(self.pairs), observed=observed)


def held_against(of_a: NamedRecords, of_b: NamedRecords, different_work: bool = False) -> Held:
    """InputError: a name that stands for nothing usable, or for several works, or sides that did different work."""
    a, b, records_a, records_b = of_a.word, of_b.word, of_a.records, of_b.records
    pairs = _findings(of_a, of_b)
    store = Archives([of_a.store, of_b.store])
    for name, records in ((a, records_a), (b, records_b)):
        usable(name, records)
        _require_one_work(name, records)
        if not pairs:
            require_one_system(name, {work_name(records[0].choice): Subject(name, tuple(records)).usable}, store)
    apart = other_work(records_a, records_b)
    if apart and not pairs and not different_work:
        raise InputError(
            f"{a} and {b}", "; ".join(wording.texts(apart)), "compare like with like, or insist with --different-work"
        )
    common = {record.id for record in records_a} & {record.id for record in records_b}
    if common:
        cause = f"stands for {counted(len(common), 'trial')} that {a} stands for too"
        raise InputError(b, cause, "name two systems, or two series")
    known = [facts(next(r for r in one if r.status.comparable), store) for one in (records_a, records_b)]
    derived = sentences([*records_a, *records_b]).values()
    sides = (Subject(a, tuple(records_a)), Subject(b, tuple(records_b)))
    return Held((of_a, of_b), store, pairs, analysis.compare(*sides, known, tuple(derived), store))


def _require_one_work(name: str, records: Sequence[Record]) -> None:
    works = by_work(records)
    if len(works) > 1:
        series = [f"{group[0].series} is {group[0].choice.workload}" for group in works]
        raise InputError(
            name,
            f"stands for {' and '.join(work_name(group[0].choice) for group in works)}",
            f"name the series of one on each side ({', '.join(series)}), or see all with `ironbench lead`",
        )


def _findings(a: NamedRecords, b: NamedRecords) -> tuple[Effect, ...]:
    """Of two cells of one lab, paired by block; () for anything else. InputError: several cells, or the same one."""
    if not (a.cells and b.cells) or a.store.directory != b.store.directory:
        return ()
    for one in (a, b):
        if len(one.cells) > 1:
            cause = f"stands for {len(one.cells)} cells"
            raise InputError(one.word, cause, f"name one: {', '.join(one.cells)}; `ironbench lead` takes them together")
    if a.cells == b.cells:
        raise InputError(b.word, f"is the same cell as {a.word}", "name two cells")
    from ironbench.study.labstudy import compare_cells

    directory = LabDirectory(a.store.directory)
    look = max(1, len(directory.declared()))
    return compare_cells(directory.lab(), directory.records(), a.cells[0], b.cells[0], look)


def usable(word: str, records: Sequence[Record]) -> list[Record]:
    """The trials that may be compared. InputError: there is none, with why and what would help."""
    found = [record for record in records if record.status.comparable]
    if not found:
        causes = dict.fromkeys(
            ": ".join(filter(None, (record.status.value, wording.cause(record)))) for record in records
        )
        cut = all(record.status is Status.CUT_SHORT for record in records)
        hint = "remove the cause before you run it again"
        if cut:
            hint = "the same command with --resume goes on; of a lab, `ironbench lab resume`"
        raise InputError(word, f"has no trial that may be compared ({'; '.join(causes)})", hint)
    return found
