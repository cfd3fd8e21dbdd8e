"""The `tpcc` workload, derived from TPC-C: terminals of a wholesale supplier. Design: docs/workloads/tpcc.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironbench import engines
from ironbench.errors import FailureError, InputError, written
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option, ProgressRate, ScriptSource, Workload
from ironbench.workloads.tpcc import checks, figures, tables, transactions

TERMINALS = 10
"""Number of terminals per warehouse. TPC-C specifies it for trials with its keying and think times."""


def delivery_clients(clients: int) -> int:
    """Returns the number of clients that carry out deferred deliveries. One in 23 transactions is a Delivery."""
    return -(-clients // 10)


class Tpcc(Workload):
    name = "tpcc"
    doc = (
        "TPC-C-derived OLTP: orders, payments and deliveries of a wholesale supplier; 5 "
        "types of transactions on 9 tables."
    )
    derived = "Derived from TPC-C: not comparable with published TPC-C results."
    needs = ("scripts", "transactions", "data")
    scores = (figures.NOPM, "throughput")
    script_figures = ("throughput", "failed", *figures.RESPONSE_TIMES)
    usual_warmup_s = 10.0
    usual_max_tries = 1000
    options = (
        *tables.OPTIONS,
        Option(
            "affinity",
            "home",
            "assignment of clients to warehouses; home: each client always uses the same warehouse, "
            "as in TPC-C, or several warehouses if there are more warehouses than clients; random: "
            "each transaction uses a random warehouse",
            choices=("home", "random"),
        ),
        Option(
            "procedures",
            "false",
            "true: the client runs a transaction with one call of a stored procedure; false: the "
            "client sends the statements of a transaction one by one",
            choices=("true", "false"),
            words={"true": "stored procedures", "false": "client SQL"},
        ),
        Option(
            "batch",
            "false",
            "true: the client sends all stock updates of an order together and reads their results "
            "afterwards (a pipeline, as with JDBC batches; for engines with the ability `pipelines`); "
            "false: the client waits for the result of each update",
            choices=("true", "false"),
            words={"true": "stock updates together", "false": "stock updates one by one"},
        ),
        Option(
            "delivery",
            "inline",
            "inline: a terminal waits until its Delivery is committed; deferred: a terminal only "
            "queues its Delivery, as in TPC-C, and additional clients (one for every ten clients) run "
            "the queued Deliveries",
            choices=("inline", "deferred"),
            words={"inline": "inline deliveries", "deferred": "deferred deliveries"},
        ),
        Option(
            "pacing",
            "none",
            "none: clients do not pause; standard: clients pause for the keying and think times of "
            "TPC-C, which requires ten clients for each warehouse",
            choices=("none", "standard"),
        ),
    )

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        return 60.0

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return (figures.NOPM, "throughput", "response_time_mean_s")

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        in_server = choice.options["procedures"] == "true"
        batch = choice.options["batch"] == "true"
        scripts = [transactions.script(name, engine, in_server, batch) for name in transactions.ISOLATION]
        if choice.options["delivery"] == "deferred":
            scripts.append(sql_files.script(transactions.FOLDER, transactions.REQUEST, engine))
        return scripts

    def connections(self, clients: int, options: Mapping[str, str]) -> int:
        return clients + (delivery_clients(clients) if options.get("delivery") == "deferred" else 0)

    def rests(self, options: Mapping[str, str]) -> bool:
        return options.get("pacing") == "standard"

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        return dict.fromkeys(transactions.VARIABLES, "0")

    def progress_rate(self, engine: str, options: Mapping[str, str]) -> ProgressRate | None:
        return ProgressRate("NOPM", 60.0, first_script=True)

    def jobs(self, session: Session, options: Mapping[str, str], load: Load) -> Mapping[str, Any] | None:
        return {
            "kind": "tpcc",
            "data": tables.dataset(session.engine, options).generator,
            "home": options["affinity"] == "home",
            "paced": options["pacing"] == "standard",
            "delivery_clients": delivery_clients(load.clients) if options["delivery"] == "deferred" else 0,
            "hundredths": engines.get(session.engine).can("whole numbers"),
        }

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return tables.dataset(engine, options) if engines.get(engine).can("data") else None

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        if choice.options["batch"] == "true":
            _require_pipelines(system.engine, choice.options)
        if choice.options["procedures"] == "true" and not transactions.has_procedures(system.engine):
            raise InputError(
                written("workload.with", "procedures=true"),
                f"{system.engine} has no stored procedures",
                f"remove it: {written('workload.with', 'procedures=false')} runs on every engine",
            )
        if choice.options["pacing"] == "standard":
            _require_terminals(load, int(choice.options["warehouses"]))

    def set_up(self, session: Session, options: Mapping[str, str], own_server: bool) -> None:
        if options["procedures"] == "true":
            _create_procedures(session)

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        return checks.read_state(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        return checks.check(session, options, before, summary)

    def measured(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> Mapping[str, float]:
        if options["pacing"] != "standard":
            return {}
        per_warehouse = figures.nopm(summary) / int(options["warehouses"])
        return {figures.EFFICIENCY: per_warehouse / figures.MOST_PER_WAREHOUSE}

    def assessed(self, driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
        return figures.assessed(driven)


def _create_procedures(session: Session) -> None:
    """Creates the procedures, or replaces those of an earlier version. Raises InputError if the role lacks the
    privilege."""
    for statement in transactions.procedures(session.engine):
        try:
            session.query(statement)
        except FailureError as error:
            raise InputError(
                written("workload.with", "procedures=true"),
                f"the stored procedures cannot be created: {error.cause}",
                "grant the role the privilege to create procedures in this database, or remove it",
            ) from error


def _require_pipelines(engine: str, options: Mapping[str, str]) -> None:
    batch = written("workload.with", "batch=true")
    if not engines.get(engine).can("pipelines"):
        raise InputError(batch, f"{engine} cannot send several statements at once", f"remove {batch}")
    if options["procedures"] == "true":
        procedures = written("workload.with", "procedures=true")
        raise InputError(batch, f"has no effect with {procedures}", f"remove {batch} or {procedures}")


def _require_terminals(load: Load, warehouses: int) -> None:
    """Raises InputError unless the load has exactly ten clients for each warehouse, as TPC-C specifies. Also raises it
    if the load sets a rate, a think time or a curve."""
    pacing = written("workload.with", "pacing=standard")
    for name, given in (("rate", load.rate), ("think_time", load.think_time_s), ("curve", load.curve)):
        if given:
            raise InputError(
                written(f"load.{name}"),
                f"has no effect with {pacing}, which determines when transactions start",
                f"remove it, or remove {pacing}",
            )
    if load.clients != TERMINALS * warehouses:
        raise InputError(
            written("load.clients", str(load.clients)),
            f"{pacing} needs {TERMINALS} clients for each warehouse",
            f"use {written('load.clients', str(TERMINALS * warehouses))}, or remove {pacing}",
        )


WORKLOAD = Tpcc()
