"""`ironbench compare`: A against B, metric by metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ironbench.analyse.archive import Archive
    from ironbench.analyse.compare import Comparison
    from ironbench.analyse.explain import Explanation
    from ironbench.analyse.study import Effect
    from ironbench.cli.selection import Named
    from ironbench.model.record import Record


def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="The baseline: a record, series, label, cell or level of the lab in --results, or DIR/NAME."
        ),
    ],
    b: Annotated[str, typer.Argument(help="What to compare with A.")],
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    everything: Annotated[
        bool, typer.Option("--all", help="Show every fact that differs, not only the important ones.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    different_work: Annotated[
        bool, typer.Option("--different-work", help="Compare although options, data or versions differ.")
    ] = False,
) -> int:
    from ironbench.cli.selection import both
    from ironbench.printer import Printer

    held = held_against(*both(a, b, results), different_work)
    if json:
        from ironbench.report.comparison import document

        Printer().data(document(held.found, held.pairs))
        return 0
    from ironbench.report.comparison import text
    from ironbench.report.walk import section

    explained = section(held.explained(), chart=False) if held.usable else None
    Printer().data(text(held.found, everything, held.pairs, explained))
    return 0


@dataclass(frozen=True, slots=True)
class Held:
    """B held against A."""

    sides: tuple[Named, Named]
    store: Archive
    pairs: tuple[Effect, ...]
    """Findings of two cells of one lab."""
    found: Comparison

    @property
    def usable(self) -> bool:
        return all(self.found.trials)

    def explained(self) -> Explanation:
        from ironbench.analyse.explain import explain

        one, other = self.sides
        a, b = self.found.trials
        return explain((one.word, a), (other.word, b), self.store, in_blocks=bool(self.pairs))


def held_against(of_a: Named, of_b: Named, different_work: bool = False) -> Held:
    """InputError: a name that stands for nothing usable, or for several works, or sides that did different work."""
    from ironbench.analyse import compare as analysis
    from ironbench.analyse.archive import Archives
    from ironbench.analyse.comparability import other_work
    from ironbench.analyse.differences import facts
    from ironbench.analyse.lead import require_one_system
    from ironbench.analyse.subjects import Subject, work_name
    from ironbench.cli.selection import findings, usable
    from ironbench.errors import InputError
    from ironbench.report.derived import sentences
    from ironbench.words import counted

    a, b, records_a, records_b = of_a.word, of_b.word, of_a.records, of_b.records
    pairs = findings(of_a, of_b)
    store = Archives([of_a.store, of_b.store])
    for name, records in ((a, records_a), (b, records_b)):
        usable(name, records)
        _require_one_work(name, records)
        if not pairs:
            require_one_system(name, {work_name(records[0].choice): Subject(name, tuple(records)).usable}, store)
    apart = other_work(records_a, records_b)
    if apart and not pairs and not different_work:
        raise InputError(f"{a} and {b}", "; ".join(apart), "compare like with like, or insist with --different-work")
    common = {record.id for record in records_a} & {record.id for record in records_b}
    if common:
        cause = f"stands for {counted(len(common), 'trial')} that {a} stands for too"
        raise InputError(b, cause, "name two systems, or two series")
    known = [facts(next(r for r in one if r.status.comparable), store) for one in (records_a, records_b)]
    derived = sentences([*records_a, *records_b]).values()
    sides = (Subject(a, tuple(records_a)), Subject(b, tuple(records_b)))
    return Held((of_a, of_b), store, pairs, analysis.compare(*sides, known, tuple(derived), store))


def _require_one_work(name: str, records: Sequence[Record]) -> None:
    from ironbench.analyse.subjects import by_work, work_name
    from ironbench.errors import InputError

    works = by_work(records)
    if len(works) > 1:
        series = [f"{group[0].series} is {group[0].choice.workload}" for group in works]
        raise InputError(
            name,
            f"stands for {' and '.join(work_name(group[0].choice) for group in works)}",
            f"name the series of one on each side ({', '.join(series)}), or see all with `ironbench lead`",
        )
