"""What systems cost, by the records in a directory: bills, and who meets a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ironbench.catalogue import prices
from ironbench.catalogue.typed import text_of
from ironbench.errors import InputError
from ironbench.model.note import Note, note
from ironbench.model.purpose import AUXILIARY
from ironbench.model.record import Record, Status, machine_of
from ironbench.plan import offers
from ironbench.plan.offers import Offers
from ironbench.records import Store
from ironbench.records.index import Listed
from ironbench.report.derived import sentences
from ironbench.study import leaderboard
from ironbench.study import target as targets
from ironbench.study.cost import Costs, Measured, costs


def compared(
    selection: Sequence[str], target: str, systems: str, sheets: Sequence[str], currency: str, results: str
) -> Costs:
    """InputError names the option, file, system or price at fault."""
    if not target and not systems:
        raise InputError(
            "cost", "neither a target nor a systems file is named", 'e.g. --target "p99 < 10ms at 5000 tps"'
        )
    prices.currency(f"--currency {currency}", currency)
    wanted = targets.parse(target) if target else None
    declared = _declared(systems) if systems else None
    sheet = prices.with_sheets([Path(path) for path in sheets])
    store = Store(Path(results))
    rows = _rows(store, selection, declared)
    without: dict[str, Note] = {}
    if wanted:
        trials = _against(store, selection, declared, wanted)
    else:
        trials, along_curves = leaderboard.steady(store.records(leaderboard.peaks(rows)))
        without = {**leaderboard.without_peak(rows), **along_curves}
    records: dict[str, list[Record]] = {}
    for record in trials:
        records.setdefault(record.system.label, []).append(record)
    machines = {key: store.machine(key) for key in dict.fromkeys(map(machine_of, trials))}
    if declared and selection:
        declared = _in_order(declared, list(records))
    result = costs(declared, sheet, Measured(records, machines, store), wanted, currency)
    notes = (note("system-without-score", system=label, why=why) for label, why in without.items())
    used = any(row.source == "records" for row in result.rows)
    derived = tuple(sorted(sentences(trials).values())) if used else ()
    return replace(result, notes=(*result.notes, *notes), derived=derived)


def _in_order(declared: Offers, labels: Sequence[str]) -> Offers:
    """Systems whose records were named come first, in that order: the first named is the baseline."""
    place = {label: number for number, label in enumerate(labels)}
    return replace(declared, offers=tuple(sorted(declared.offers, key=lambda one: place.get(one.records, len(place)))))


def _declared(path: str) -> Offers:
    return offers.read(text_of(Path(path), f"--systems {path}", "name a systems file (TOML)"), path)


def _against(store: Store, selection: Sequence[str], declared: Offers | None, target: targets.Target) -> list[Record]:
    """Those that may count, and of each load of each system one or two that say what else was measured."""
    labels = _labels(declared)
    telling: dict[tuple[str, bool], str] = {}

    def wanted(row: Listed) -> bool:
        if row.purpose in AUXILIARY or (labels and not selection and row.label not in labels):
            return False
        if row.rate is not None and row.rate >= target.rate:
            return True
        return telling.setdefault((row.alike, Status(row.status).comparable), row.id) == row.id

    return store.matching(selection, wanted)


def _rows(store: Store, selection: Sequence[str], declared: Offers | None) -> list[Listed]:
    """Of the records that were named, or that the systems file names."""
    labels = _labels(declared)
    return [row for row in store.rows(selection) if selection or row.label in labels]


def _labels(declared: Offers | None) -> set[str]:
    return {offer.records for offer in declared.offers} if declared else set()
