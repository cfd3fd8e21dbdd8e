"""What `cost` was asked for, validated, and the records it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ironbench.analyse import target as targets
from ironbench.analyse.cores import machine_cores
from ironbench.analyse.cost import Costs, costs
from ironbench.catalogue import prices
from ironbench.errors import InputError
from ironbench.model.record import Record, Status
from ironbench.plan import offers
from ironbench.plan.offers import Offers
from ironbench.record import Store
from ironbench.record.index import Listed


def asked(
    selection: Sequence[str], target: str, systems: str, sheets: Sequence[str], currency: str, results: str
) -> Costs:
    """InputError names the option, file, system or price at fault."""
    if not target and not systems:
        raise InputError(
            "cost", "neither a target nor a systems file is named", 'e.g. --target "p99 < 10ms at 5000 tps"'
        )
    wanted = targets.parse(target) if target else None
    declared = _declared(systems) if systems else None
    sheet = prices.with_sheets([Path(path) for path in sheets])
    store = Store(Path(results))
    records = _records(store, selection, declared, wanted) if wanted else {}
    return costs(declared, sheet, records, _cores(store, records), wanted, currency)


def _declared(path: str) -> Offers:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"--systems {path}", cause, "name a systems file (TOML)") from None
    return offers.read(text, path)


def _records(
    store: Store, selection: Sequence[str], declared: Offers | None, target: targets.Target
) -> dict[str, list[Record]]:
    """By label: those that may count, and of each load of each system one or two that say what else was measured."""
    labels = {offer.records for offer in declared.offers} if declared else set()
    telling: dict[tuple[str, bool], str] = {}

    def wanted(row: Listed) -> bool:
        if row.purpose in ("pilot", "peak") or (labels and not selection and row.label not in labels):
            return False
        if row.rate is not None and row.rate >= target.rate:
            return True
        return telling.setdefault((row.alike, Status(row.status).comparable), row.id) == row.id

    found: dict[str, list[Record]] = {}
    for record in store.matching(selection, wanted):
        found.setdefault(record.system.label, []).append(record)
    return found


def _cores(store: Store, records: dict[str, list[Record]]) -> dict[str, int]:
    """Physical cores of each machine by its key, where its fingerprint tells them."""
    machines = {record.machine for group in records.values() for record in group}
    found = {key: machine_cores(store.machine(key)) for key in sorted(machines)}
    return {key: cores for key, cores in found.items() if cores}
