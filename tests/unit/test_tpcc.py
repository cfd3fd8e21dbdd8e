"""Options, refusals, scripts and figures of the TPC-C-derived workload, without an engine."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ironbench import _core
from ironbench.errors import InputError
from ironbench.model.driven import Driven
from ironbench.model.record import SUSPICIOUS
from ironbench.model.system import Choice, Load, System
from ironbench.workloads.base import ScriptSource
from ironbench.workloads.tpcc import WORKLOAD, figures, transactions

ENGINES = ("postgres", "mariadb", "sqlite")
SHARES = {"new-order": 10 / 23, "payment": 10 / 23, "order-status": 1 / 23, "delivery": 1 / 23, "stock-level": 1 / 23}
NAMES = ("new-order", "payment", "order-status", "delivery", "stock-level")


def choice(**options: str) -> Choice:
    return Choice("tpcc", WORKLOAD.validated(options))


def refused(load: Load, engine: str = "postgres", **options: str) -> InputError:
    with pytest.raises(InputError) as error:
        WORKLOAD.accepts(System(engine, "t"), load, choice(**options))
    return error.value


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_scripts_compile_and_use_only_variables_that_terminals_set(engine: str, protocol: str) -> None:
    compiled = WORKLOAD.compile(engine, choice(), protocol)
    assert tuple(compiled) == NAMES
    assert WORKLOAD.warnings(engine, choice(), protocol) == []


def test_the_variables_are_those_that_the_core_sets() -> None:
    assert sorted(transactions.VARIABLES) == sorted(_core.job_variables("tpcc"))
    texts = "".join(transactions.script(name, engine).text for name in NAMES for engine in ENGINES)
    assert [name for name in transactions.VARIABLES if f":{name}" not in texts] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_transactions_begin_with_their_isolation_and_end_once(engine: str) -> None:
    for name, isolation in transactions.ISOLATION.items():
        text = transactions.script(name, engine).text
        assert engine == "sqlite" or f"isolation level {isolation};" in text or f"isolation level {isolation}\n" in text
        assert text.count("begin") == text.count("commit;") == 1, name


@pytest.mark.parametrize("engine", ENGINES)
def test_an_order_changes_the_stock_of_each_of_its_lines(engine: str) -> None:
    text = transactions.script("new-order", engine).text
    assert text.count("update stock set") == 15
    # Five lines always, the others each below a condition.
    assert [f"\\if :lines >= {line}\n" in text for line in range(1, 17)] == [False] * 5 + [True] * 10 + [False]
    assert text.count("\\if ") == text.count("\\endif") == 11
    assert "N" not in text.replace("New-Order", "")


def test_new_order_without_its_line_for_the_stock_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = ScriptSource("new-order", "begin;\n-- The stock of each line: see stock.sql.\ncommit;\n")
    monkeypatch.setattr(transactions.sql_files, "script", lambda *_: edited)
    with pytest.raises(ValueError, match="exactly once"):
        transactions.script("new-order", "postgres")


def test_pacing_needs_ten_clients_for_each_warehouse() -> None:
    error = refused(Load(8), pacing="standard", warehouses="3")
    assert "10 clients for each warehouse" in error.cause and "--clients 30" in error.hint
    WORKLOAD.accepts(System("postgres", "t"), Load(30), choice(pacing="standard", warehouses="3"))
    WORKLOAD.accepts(System("postgres", "t"), Load(8), choice(warehouses="3"))


@pytest.mark.parametrize("load", [Load(10, rate=5.0), Load(10, think_time_s=1.0)])
def test_pacing_determines_when_transactions_start(load: Load) -> None:
    assert "determines when transactions start" in refused(load, pacing="standard").cause


DECKS = 1000


def driven(slow: str = "", **changes: int) -> Driven:
    """Returns the result of a minute in which clients drew whole decks of transactions."""
    counts = {name: round(share * 23 * DECKS) for name, share in SHARES.items()} | changes
    scripts = [
        {"name": name, "transactions": count, "rolled_back": count // 100 if name == "new-order" else 0}
        for name, count in counts.items()
    ]
    histograms = {}
    for name in counts:
        histogram = _core.Histogram()
        for _ in range(100):
            histogram.record(21_000_000_000 if name == slow else 10_000_000)
        histograms[f"response_time{{script={name}}}"] = histogram
    summary = {"elapsed_s": 60.0, "scripts": scripts, "transactions": sum(counts.values())}
    return Driven("", True, summary=summary, histograms=histograms)


def test_the_score_counts_committed_orders_per_minute() -> None:
    values, warnings = figures.assessed(driven())
    assert values[figures.NOPM] == 10 * DECKS - 100
    assert values[figures.TPM] == 23 * DECKS
    assert values[figures.ROLLED_BACK] == 0.01
    assert warnings == ()
    assert WORKLOAD.scores[0] == figures.NOPM


@pytest.mark.parametrize("name", NAMES)
def test_each_transaction_has_a_limit(name: str) -> None:
    (warning,) = figures.assessed(driven(slow=name))[1]
    assert warning.code == "response-limit-missed" and warning.code in SUSPICIOUS
    assert warning.values["script"] == name and warning.values["limit_s"] == (20.0 if name == "stock-level" else 5.0)


def test_a_missing_share_is_noticed_and_chance_is_not() -> None:
    whole = 23 * DECKS
    assert figures.assessed(driven(delivery=round(0.04 * whole)))[1] == ()
    (warning,) = figures.assessed(driven(delivery=round(0.03 * whole)))[1]
    assert warning.code == "mix-missed" and warning.code in SUSPICIOUS
    assert warning.values["script"] == "delivery" and warning.values["specified"] == 0.04


def test_a_deferred_delivery_has_two_limits_and_its_requests_are_its_share() -> None:
    assert figures.assessed(driven(slow="delivery", **{"delivery-request": DECKS, "delivery": 10}))[1] == ()
    (warning,) = figures.assessed(driven(slow="delivery-request", **{"delivery-request": DECKS}))[1]
    assert warning.code == "response-limit-missed" and warning.values["limit_s"] == 5.0
    few = figures.assessed(driven(**{"delivery-request": DECKS // 2}))[1]
    assert [warning.values["script"] for warning in few] == ["delivery"]
    histogram = _core.Histogram()
    histogram.record(500_000_000)
    trial = driven(**{"delivery-request": DECKS})
    trial.summary["figures"] = {"skipped_districts": 7.0, "deliveries_left": 2.0, "delivery_queue_max": 9.0}
    values = figures.assessed(replace(trial, histograms={**trial.histograms, "delivery_lag": histogram}))[0]
    assert (values["skipped_districts"], values["deliveries_left"]) == (7.0, 2.0)
    assert values["delivery_lag_p99_s"] == pytest.approx(0.5, rel=0.01)


def test_deferred_deliveries_have_clients_of_their_own() -> None:
    def connections(**options: str) -> list[int]:
        return [WORKLOAD.connections(clients, choice(**options).options) for clients in (1, 10, 11)]

    assert connections() == [1, 10, 11] and connections(delivery="deferred") == [2, 11, 13]
    deferred = choice(delivery="deferred")
    assert [script.name for script in WORKLOAD.scripts("postgres", deferred)] == [*NAMES, "delivery-request"]
    for engine in ENGINES:
        assert WORKLOAD.warnings(engine, deferred, "prepared") == []


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_each_transaction_is_one_call_of_a_procedure(engine: str) -> None:
    in_server = choice(procedures="true")
    assert WORKLOAD.warnings(engine, in_server, "prepared") == []
    created = "\n".join(transactions.procedures(engine))
    for script in WORKLOAD.scripts(engine, in_server):
        name = f"tpcc_{script.name.replace('-', '_')}("
        assert script.text.count("tpcc_") == script.text.count(name) == 1 and f"{name}" in created
    assert "has no stored procedures" in refused(Load(1), "sqlite", procedures="true").cause


def test_a_batch_has_the_same_statements_in_one_pipeline() -> None:
    alone, together = (WORKLOAD.scripts("postgres", choice(batch=batch))[0].text for batch in ("false", "true"))
    before, pipeline, after = re.split(r"\\(?:start|end)pipeline\n", together)
    assert before + pipeline + after == alone and pipeline.count("update stock") == 15
    WORKLOAD.compile("postgres", choice(batch="true"), "prepared")
    assert "cannot send several statements at once" in refused(Load(1), "mariadb", batch="true").cause
    assert "has no effect" in refused(Load(1), batch="true", procedures="true").cause


def test_efficiency_is_measured_only_with_pacing() -> None:
    def efficiency(**options: str) -> float | None:
        summary = driven().summary
        return WORKLOAD.measured(None, choice(**options).options, None, summary).get(figures.EFFICIENCY)  # type: ignore[arg-type]

    assert efficiency() is None
    assert efficiency(pacing="standard", warehouses="1000") == pytest.approx(9.9 / 12.86)


def test_a_trial_without_a_window_has_no_figures() -> None:
    assert figures.assessed(Driven("", True)) == ({}, ())


def test_results_say_that_they_are_derived() -> None:
    assert "not comparable with published TPC-C results" in WORKLOAD.derived and "TPC-C-derived" in WORKLOAD.doc
