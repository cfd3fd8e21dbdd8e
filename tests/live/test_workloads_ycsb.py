"""YCSB on real engines: trials pass their checks, checks notice wrong data, and tables of other tools are used."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from factories import rarely_mariadb
from user import User
from workload_trial import Served, Target, Trial, loaded

from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import InputError
from ironbench.workloads.ycsb import records
from ironbench.workloads.ycsb.operations import CORE
from ironbench.workloads.ycsb.records import TRIAL_NUMBERS, key

pytestmark = pytest.mark.live

SMALL = {"records": "2000", "fields": "3", "field_length": "20"}
EVERY_ENGINE = rarely_mariadb(
    "sqlite", pytest.param("postgres", marks=pytest.mark.long), argument="target", indirect=True
)


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
@pytest.mark.parametrize("mix", list(CORE))
def test_every_core_workload_passes_its_checks(target: Target, mix: str) -> None:
    loaded(target, "ycsb", **SMALL)
    trial = Trial(target, "ycsb", mix=mix, **SMALL)
    checks = trial.checks()
    assert [check for check in checks.values() if not check.passed] == []
    inserts = sum(script["completed"] for script in trial.summary["scripts"] if script["name"] == "insert")
    assert inserts > 0 or mix not in "de"
    assert checks["records = records before + inserts"].actual == str(2000 + inserts)
    assert ("reads that did not find their record" in checks) == (mix != "e")


@pytest.mark.long
@pytest.mark.parametrize("target", ["postgres", "sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("mix", ["a", "d", "e", "f"])
@pytest.mark.parametrize("layout", ["columns", "json"])
@pytest.mark.parametrize(("read_all_fields", "write_all_fields"), [("yes", "yes"), ("no", "no"), ("no", "yes")])
def test_every_option_passes_its_checks(
    target: Target, mix: str, layout: str, read_all_fields: str, write_all_fields: str
) -> None:
    options = {**SMALL, "mix": mix, "layout": layout}
    loaded(target, "ycsb", **options)
    options |= {"read_all_fields": read_all_fields, "write_all_fields": write_all_fields}
    assert Trial(target, "ycsb", **options).failed() == set()


@EVERY_ENGINE
def test_json_documents_keep_their_fields(target: Target) -> None:
    options = {**SMALL, "layout": "json"}
    loaded(target, "ycsb", **options)
    documents = "select ycsb_key, fields from usertable order by ycsb_key"
    before = target.query(documents)
    assert Trial(target, "ycsb", mix="a", **options).failed() == set()
    after = target.query(documents)
    assert [row[0] for row in before] == [row[0] for row in after]
    assert before != after


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
def test_a_check_fails_when_its_rule_is_broken(target: Target) -> None:
    loaded(target, "ycsb", **SMALL)
    trial = Trial(target, "ycsb", mix="a", **SMALL)
    assert trial.failed(figures={"ycsb_reads_missed": 1.0}) == {"reads that did not find their record"}
    for sql, failed in (
        (
            "delete from usertable where ycsb_key = (select max(ycsb_key) from usertable)",
            "records = records before + inserts",
        ),
        ("update usertable set field1 = 'short'", "sampled records in which all fields are intact"),
    ):
        target.query("begin")
        target.query(sql)
        assert failed in trial.failed()
        target.query("rollback")


@EVERY_ENGINE
def test_a_read_that_finds_nothing_is_noticed(target: Target) -> None:
    loaded(target, "ycsb", **SMALL)
    target.query(f"delete from usertable where ycsb_key <> '{key(0)}'")
    assert "reads that did not find their record" in Trial(target, "ycsb", mix="c", **SMALL).failed()


@EVERY_ENGINE
def test_a_trial_inserts_above_the_records_of_earlier_ones(target: Target) -> None:
    loaded(target, "ycsb", **SMALL)
    for trial in range(3):
        assert Trial(target, "ycsb", mix="d", **SMALL).failed() == set()
        options = {**SMALL, "mix": "d"}
        assert records.first_unused(target, options) == 2000 + (trial + 1) * TRIAL_NUMBERS  # type: ignore[arg-type]
    loaded(target, "ycsb", own_server=False, **SMALL)  # grown data are used again


@pytest.mark.parametrize("protocol", ["simple", pytest.param("extended", marks=pytest.mark.long)])
@pytest.mark.parametrize("layout", ["columns", "json"])
def test_texts_are_the_same_in_every_protocol(served: Served, layout: str, protocol: str) -> None:
    options = {**SMALL, "layout": layout}
    loaded(served, "ycsb", **options)
    for mix in "adef":
        assert Trial(served, "ycsb", mix=mix, protocol=protocol, **options).failed() == set()
    written = {**options, "read_all_fields": "no", "write_all_fields": "yes"}
    assert Trial(served, "ycsb", mix="f", protocol=protocol, **written).failed() == set()


@pytest.mark.long
def test_texts_are_the_same_in_every_protocol_of_mariadb(joined: MariadbSession) -> None:
    loaded(joined, "ycsb", **SMALL)
    for mix in "adef":
        assert Trial(joined, "ycsb", mix=mix, protocol="simple", **SMALL).failed() == set()


def by_another_tool(target: Target, count: int, columns: str, name: Callable[[int], str] = key) -> None:
    target.query(f"create table usertable (YCSB_KEY varchar(255) primary key, {columns})")
    fields = columns.count(",") + 1
    for first in range(0, count, 500):
        rows = ", ".join(
            f"('{name(number)}'" + f", '{'x' * 20}'" * fields + ")" for number in range(first, min(count, first + 500))
        )
        target.query(f"insert into usertable values {rows}")


THREE = "FIELD0 text, FIELD1 text, FIELD2 text"


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
def test_a_table_of_another_tool_is_used_as_it_is(target: Target) -> None:
    by_another_tool(target, 2000, THREE)
    assert loaded(target, "ycsb", own_server=False, **SMALL).reused
    for mix in "af":
        assert Trial(target, "ycsb", mix=mix, **SMALL).failed() == set()


@EVERY_ENGINE
@pytest.mark.parametrize(
    ("count", "columns", "name"),
    [
        (1999, THREE, key),
        (2000, THREE + ", FIELD3 text", key),
        (2000, "FIELD0 text, FIELD1 text, other text", key),
        (2000, THREE, lambda number: f"user{number}"),
    ],
    ids=["records", "fields", "columns", "keys"],
)
def test_other_tables_are_refused(target: Target, count: int, columns: str, name: Callable[[int], str]) -> None:
    by_another_tool(target, count, columns, name)
    with pytest.raises(
        InputError, match="were not loaded by ironbench, and do not match `ycsb load jdbc` with records=2000"
    ) as refused:
        loaded(target, "ycsb", own_server=False, **SMALL)
    assert "--with records=…" in refused.value.hint
    assert target.query("select count(*) from usertable") == [(str(count),)]


@pytest.mark.long
@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(300)
def test_workers_insert_different_keys_and_read_their_own(user: User) -> None:
    words = ("run", "ycsb", "--engine", "postgres", "--with", "mix=d", "--with", "records=5000", "--json")
    load = ("--clients", "4", "--workers", "2", "--duration", "3s", "--warmup", "0s")
    with user.begun(*words, *load) as run:
        run.measured(within_s=240.0)
    (record,) = user.records()
    assert record["metrics"]["workers"] == 2
    checks = {check["name"]: check for check in record["checks"]}
    assert all(check["passed"] for check in checks.values()), checks
    assert int(checks["records = records before + inserts"]["actual"]) > 5000


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mix", ["a", "d"])
def test_systems_in_slices_pass_their_checks(user: User, mix: str) -> None:
    file = user.home / "slices.toml"
    file.write_text(SLICES.format(mix=mix))
    told = user("lab", "run", str(file))
    assert told.code in (0, 3), told
    found = [json.loads(path.read_text()) for path in user.results.glob("labs/*/trials/*/record.json")]
    sliced = [record for record in found if record["purpose"] != "observed"]
    assert len(sliced) == 2
    for record in sliced:
        assert record["metrics"]["slices"] == 6
        assert all(check["passed"] for check in record["checks"]), record["checks"]


SLICES = """
question = "Does work_mem matter?"
[workload]
name = "ycsb"
with = {{ mix = "{mix}", records = 5000 }}
[load]
clients = 2
duration = "1500ms"
warmup = "0.2s"
[vary.work_mem]
small = {{ system.set.work_mem = "4MB" }}
large = {{ system.set.work_mem = "8MB" }}
[measure]
repeats = 1
quiet = "0s"
rates = "none"
method = "slices"
slice = "250ms"
"""
