"""igen-oltp on real engines: its checks pass after a run and fail after tampering with the data."""

from __future__ import annotations

import re
import subprocess

import pytest
from factories import rarely_mariadb
from raw_server import binary
from workload_trial import Served, Target, Trial, loaded, without_references

from ironbench import workloads
from ironbench.trial.load.restore import without_dead_tuples
from ironbench.workloads import igen_oltp
from ironbench.workloads.igen_oltp.layout import MOST_ORDERS

pytestmark = pytest.mark.live

TAMPERED = {
    "orders agree with their lines": (
        "update igen_order set total_cents = total_cents + 1 where customer_id = 7 and order_no = "
        "(select max(order_no) from igen_order where customer_id = 7)"
    ),
    "stock is never negative": "update igen_stock set quantity = -1 where product_id = 3 and region_id = 2",
    "every customer has an order": "delete from igen_order where customer_id = 9",
    "inserted - deleted = difference in orders": (
        "update igen_order set order_no = order_no + 1000 where customer_id = 11 and order_no = "
        "(select max(order_no) from igen_order where customer_id = 11)"
    ),
    "orders per customer are bounded": (
        "insert into igen_order (customer_id, order_no, line_count, total_cents, placed_at, status) "
        "select 13, (select max(order_no) from igen_order where customer_id = 13) + product_id, 0, 0, "
        "'2026-01-01 00:00:00', 'placed' from igen_product where product_id <= 20"
    ),
    "igen_product is unchanged": "update igen_product set price_cents = price_cents + 1 where product_id = 1",
    "igen_customer is unchanged": "update igen_customer set city = 'elsewhere by far' where customer_id = 1",
    "igen_stock is unchanged": "update igen_stock set region_id = 7 where product_id = 1 and region_id = 6",
    "igen_region is unchanged": "update igen_region set name = 'Antarctica' where region_id = 1",
}


@pytest.mark.parametrize("weight", ["light", "heavy"])
def test_all_checks_pass_after_a_trial(target: Target, weight: str) -> None:
    loaded(target, "igen-oltp")
    checks = Trial(target, "igen-oltp", weight=weight).checks()
    assert [check for check in checks.values() if not check.passed] == []
    expected = (
        set(TAMPERED)
        | {
            "light": {"statements that placed an order", "statements that archived an order"},
            "heavy": {"orders placed = commits", "orders archived = commits"},
        }[weight]
    )
    assert set(checks) == expected | ({"client commits = server commits"} if target.engine == "postgres" else set())


@pytest.mark.parametrize("protocol", ["prepared", pytest.param("extended", marks=pytest.mark.long), "simple"])
@pytest.mark.parametrize("weight", ["light", "heavy"])
def test_scripts_run_unchanged_under_pgbench(served: Served, protocol: str, weight: str) -> None:
    loaded(served, "igen-oltp")
    workload = workloads.get("igen-oltp")
    variables = workload.variables(workload.validated({}))
    names = igen_oltp.LIGHT if weight == "light" else igen_oltp.HEAVY
    connection = served.target()["connection"]
    done = subprocess.run(
        [
            binary("pgbench"), "-n", "-h", connection["host"], "-p", str(connection["port"]), "-U", "postgres",
            "-M", protocol, "-c", "4", "-t", "50", *(f"-D{name}={value}" for name, value in variables.items()),
            *(f"-f{igen_oltp.FOLDER / name}.sql@{share}" for name, share in names.items()), connection["database"],
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"actually processed: 200/200", done.stdout), done.stdout


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
def test_a_check_fails_when_its_rule_is_broken(target: Target) -> None:
    loaded(target, "igen-oltp")
    trial = Trial(target, "igen-oltp", transactions=10)
    without_references(target)
    for check, sql in TAMPERED.items():
        target.query("begin")
        target.query(sql)
        assert check in trial.failed()
        target.query("rollback")
    # Each round of checks has opened connections, whose commits are no transactions of the trial.
    assert trial.failed() <= {"client commits = server commits"}


def test_lines_without_their_order_are_noticed(target: Target) -> None:
    loaded(target, "igen-oltp")
    trial = Trial(target, "igen-oltp", transactions=10)
    without_references(target)
    target.query("delete from igen_order where customer_id = 5 and order_no = 1")
    assert "orders agree with their lines" in trial.failed()


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
def test_transactions_that_did_nothing_are_noticed(target: Target) -> None:
    loaded(target, "igen-oltp")
    trial = Trial(target, "igen-oltp", transactions=10, weight="heavy")
    assert not trial.failed()
    more = trial.summary["commits"] + 100
    assert {"orders placed = commits", "orders archived = commits"} <= trial.failed(commits=more)
    light = Trial(target, "igen-oltp", transactions=100)
    scripts = [{**script, "completed": script["completed"] + 1000} for script in light.summary["scripts"]]
    assert {"statements that placed an order", "statements that archived an order"} <= light.failed(scripts=scripts)


def test_a_commit_that_the_server_does_not_know_is_noticed(served: Served) -> None:
    loaded(served, "igen-oltp")
    trial = Trial(served, "igen-oltp", transactions=50)
    found = int(trial.checks()["client commits = server commits"].actual)
    assert trial.summary["commits"] <= found
    assert trial.failed(commits=found + 100) == {"client commits = server commits"}


def test_commits_that_clients_do_not_know_are_noticed(served: Served) -> None:
    loaded(served, "igen-oltp")
    trial = Trial(served, "igen-oltp", transactions=500)
    fewer = trial.summary["commits"] * 9 // 10
    assert not trial.failed()
    assert trial.failed(commits=fewer) == {"client commits = server commits"}


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
@pytest.mark.parametrize("skew", [pytest.param("0", marks=pytest.mark.long), "4"])
def test_every_skew_runs(target: Target, skew: str) -> None:
    loaded(target, "igen-oltp", skew=skew)
    assert Trial(target, "igen-oltp", skew=skew).failed() == set()


def test_clients_of_one_customer_place_no_order_twice(served: Served) -> None:
    """A skewed distribution: all activity is on one region of one customer, so that all clients conflict there."""
    loaded(served, "igen-oltp", skew="4")
    served.query("update igen_customer set region_id = 1")
    workload = workloads.get("igen-oltp")
    options = workload.validated({"skew": "4"})
    variables = workload.variables(options) | {"active1": "1000000", "last1": "1"}
    connection = served.target()["connection"]
    for script in ("place_order", "business", "archive_order"):
        done = subprocess.run(
            [
                binary("pgbench"), "-n", "-h", connection["host"], "-p", str(connection["port"]), "-U", "postgres",
                "-c", "16", "-j", "2", "-t", "20", *(f"-D{name}={value}" for name, value in variables.items()),
                "-f", f"{igen_oltp.FOLDER / script}.sql", connection["database"],
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "actually processed: 320/320" in done.stdout, done.stderr
        [(held, newest, oldest)] = served.query(
            "select count(*), max(order_no), min(order_no) from igen_order where customer_id = 1"
        )
        assert 1 <= int(held or 0) <= MOST_ORDERS
        assert int(newest or 0) - int(oldest or 0) + 1 == int(held or 0)


@pytest.mark.long
def test_the_size_stays_the_same_under_load(served: Served) -> None:
    """20,000 transactions; the number of orders is a sum of bounded random walks and stays within its variation."""
    loaded(served, "igen-oltp")
    [(before,)] = served.query("select count(*) from igen_order")
    trial = Trial(served, "igen-oltp", transactions=2500, clients=8)
    assert not trial.failed()
    [(after,)] = served.query("select count(*) from igen_order")
    writes = sum(script["completed"] for script in trial.summary["scripts"] if script["name"].endswith("e_order"))
    assert writes > 1000
    assert abs(int(after or 0) - int(before or 0)) < 6 * writes**0.5


@pytest.mark.long
def test_garbage_of_one_trial_does_not_burden_the_next(served: Served) -> None:
    """Half of all orders are replaced, with autovacuum off. The tables keep their size apart from one trial's dead
    tuples, and index pages split once. Without vacuum, the tables would have grown by 40%."""

    def sizes() -> tuple[int, int]:
        [(tables, keys)] = served.query(
            "select sum(pg_table_size(relid)), sum(pg_indexes_size(relid)) from pg_stat_user_tables "
            "where relname like 'igen_%'"
        )
        return int(tables or 0), int(keys or 0)

    loaded(served, "igen-oltp")
    dataset = workloads.get("igen-oltp").dataset("postgres", {"scale": "1", "weight": "heavy", "skew": "1"})
    assert dataset is not None
    for table in dataset.tables:
        served.query(f"alter table {table} set (autovacuum_enabled = false)")
    fresh = sizes()
    assert without_dead_tuples(served, dataset) == {"garbage": "below 2%"}
    for _ in range(8):
        assert not Trial(served, "igen-oltp", transactions=250, clients=8, weight="heavy").failed()
        assert without_dead_tuples(served, dataset)["garbage"].startswith(
            "vacuumed igen_customer, igen_order, igen_order_line"
        )
    grown = sizes()
    assert grown[0] < 1.15 * fresh[0]
    assert grown[1] < 2.2 * fresh[1]


@pytest.mark.long
def test_keys_reach_a_size_and_keep_it(served: Served) -> None:
    """Seven times as many orders as exist are placed and archived, with vacuum at autovacuum's pace."""

    def size() -> int:
        [(found,)] = served.query(
            "select pg_relation_size('igen_order_pkey') + pg_relation_size('igen_order_line_pkey')"
        )
        return int(found or 0)

    loaded(served, "igen-oltp")
    sizes = [size()]
    for _ in range(6):
        for _ in range(5):
            assert not Trial(served, "igen-oltp", transactions=1000, clients=8, weight="heavy").failed()
            served.query("vacuum igen_order")
            served.query("vacuum igen_order_line")
        sizes.append(size())
    assert sizes[6] < 1.1 * sizes[3]
    assert sizes[6] < 3 * sizes[0]
