"""A brokerage workload derived from TPC-E: customers trade, and a market responds. Design:
docs/workloads/brokerage.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.workloads import response_limits
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload
from ironbench.workloads.brokerage import checks, figures, tables, transactions

MOST_BROKERS = 40
"""Maximum number of brokers for which one Broker-Volume transaction asks."""
LEAST_DAYS = 8
"""Minimum number of business days in the data. A business day has 8 hours. Trade-Lookup goes back at least 32 hours,
and the data must cover twice this time."""


def market_clients(clients: int) -> int:
    """Returns the number of clients that act as the market.

    The market executes only a tenth of all transactions. These take almost half of the time, because Trade-Result is
    the slowest transaction. As many market clients as customers are therefore always enough. An idle client costs only
    a connection.
    """
    return max(2, clients)


class Brokerage(Workload):
    name = "brokerage"
    doc = "OLTP derived from TPC-E: customers, brokers and a simulated market; 12 types of transactions on 33 tables."
    derived = "Derived from TPC-E: not comparable with published TPC-E results."
    needs = ("scripts", "transactions", "data")
    scores = (figures.SCORE, "throughput")
    script_figures = ("throughput", "failed", response_limits.P90)
    usual_warmup_s = 10.0
    usual_max_tries = 1000
    options = (
        *tables.OPTIONS,
        Option(
            "price_period",
            "20",
            "time in s in which prices rise from $20 to $30 and fall back to $20; a limit order waits "
            "at most this long; TPC-E specifies 900 s, and a warm-up of at least 900 s",
            lowest=1,
            highest=3600,
            whole=False,
        ),
        Option(
            "inputs",
            "scaled",
            "inputs of the transactions; scaled: if there are few customers or days, lists of brokers "
            "and time ranges are limited to the existing data; specified: as in TPC-E, which "
            "ironbench refuses if there are too few customers or days",
            choices=("scaled", "specified"),
        ),
        Option(
            "logic",
            "client",
            "where the logic of a transaction runs; client: the client sends the statements one by "
            "one; server: the client calls a stored function",
            choices=("client", "server"),
        ),
        Option(
            "isolation",
            "levels",
            "isolation of Trade-Result transactions; levels: serializable, as TPC-E specifies; locks: "
            "read committed, but the transaction first locks the account, which prevents the same "
            "anomalies among the transactions of this workload",
            choices=("levels", "locks"),
        ),
        Option(
            "maintenance",
            "60",
            "time between Data-Maintenance transactions in s",
            lowest=0.1,
            highest=3600,
            whole=False,
        ),
    )

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        return 60.0

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return (figures.SCORE, "throughput", "response_time_mean_s")

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        levels = transactions.ISOLATION | (transactions.BY_LOCKS if choice.options["isolation"] == "locks" else {})
        logic = choice.options["logic"]
        return [transactions.script(name, engine, isolation, logic) for name, isolation in levels.items()]

    def connections(self, clients: int, options: Mapping[str, str]) -> int:
        return clients + market_clients(clients) + 1

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        return dict.fromkeys(transactions.VARIABLES, "0")

    def jobs(self, session: Session, options: Mapping[str, str], load: Load) -> Mapping[str, Any] | None:
        return {
            "kind": "brokerage",
            "data": tables.dataset(session.engine, options).generator,
            "hundredths": engines.get(session.engine).can("whole numbers"),
            "first_trade": checks.first_trade(session),
            "first_time": checks.last_time(session, tables.initial_trades(options)),
            "market_clients": market_clients(load.clients),
            # With one client and a fixed number of transactions, trials with the same seed end in the same state.
            "alone": load.clients == 1 and load.transactions is not None,
            "maintenance_s": float(options["maintenance"]),
            "price_period_s": float(options["price_period"]),
        }

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return tables.dataset(engine, options) if engines.get(engine).can("data") else None

    def identified(self, choice: Choice, engine: str) -> Choice:
        """Sets `references=no` if the engine cannot declare the foreign keys, even if the user requested `yes`. Results
        with and without foreign keys are not ranked together, so the record must state the truth."""
        if tables.has_references(engine):
            return choice
        return replace(choice, options={**choice.options, "references": "no"})

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        dialect = engines.get(system.engine).traits.dialect
        if choice.options["isolation"] == "locks" and dialect.transaction("serializable") == "begin":
            raise InputError(
                written("workload.with", "isolation=locks"),
                f"{system.engine} has only one isolation level",
                "remove it",
            )
        if choice.options["logic"] == "server" and not tables.routines(system.engine):
            raise InputError(
                written("workload.with", "logic=server"),
                f"{system.engine} cannot run ironbench's stored functions",
                f"remove it: {written('workload.with', 'logic=client')} runs on every engine",
            )
        if choice.options["inputs"] == "specified":
            _require_specified(choice.options)
        most = int(choice.options["customers"])
        if load.clients > most:
            raise InputError(
                written("load.clients", str(load.clients)),
                f"each client acts for one customer at a time, but there are only {most} customers",
                f"use at most {most}, or {written('workload.with', f'customers={_rounded(load.clients)}')}",
            )

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        return checks.read_state(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        return checks.check(session, before, summary)

    def assessed(self, driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
        return figures.assessed(driven, seen)


def _require_specified(options: Mapping[str, str]) -> None:
    """Raises InputError if the data are too small for the inputs that the standard specifies. In such data,
    crates/…/roles/inputs.rs would use other inputs."""
    customers, days = int(options["customers"]), int(options["days"])
    brokers = customers // tables.LOAD_UNIT * tables.BROKERS
    if brokers < MOST_BROKERS:
        least = MOST_BROKERS // tables.BROKERS * tables.LOAD_UNIT
        raise InputError(
            written("workload.with", f"customers={customers}"),
            f"too few for the specified mix: Broker-Volume uses 20 to {MOST_BROKERS} brokers, "
            f"but {customers} customers have only {brokers}",
            f"use {written('workload.with', f'customers={least}')} or more, or remove "
            f"{written('workload.with', 'inputs=specified')}",
        )
    if days < LEAST_DAYS:
        raise InputError(
            written("workload.with", f"days={days}"),
            "too few for the specified mix: Trade-Lookup goes back at least 32 business hours, "
            "and half of the days must be older than that",
            f"use {written('workload.with', f'days={LEAST_DAYS}')} or more, or remove "
            f"{written('workload.with', 'inputs=specified')}",
        )


def _rounded(clients: int) -> int:
    return -(-clients // tables.LOAD_UNIT) * tables.LOAD_UNIT


WORKLOAD = Brokerage()
