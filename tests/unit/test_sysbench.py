"""The workload `sysbench`: statements as a server's log shows them for sysbench 1.0.20; options and their errors."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from ironbench.errors import InputError
from ironbench.model.system import Choice
from ironbench.workloads.sysbench import WORKLOAD, events

_RANGE = "WHERE id BETWEEN ? AND ?"
_READS = [
    *["SELECT c FROM sbtest1 WHERE id=?"] * 10,
    f"SELECT c FROM sbtest1 {_RANGE}",
    f"SELECT SUM(k) FROM sbtest1 {_RANGE}",
    f"SELECT c FROM sbtest1 {_RANGE} ORDER BY c",
    f"SELECT DISTINCT c FROM sbtest1 {_RANGE} ORDER BY c",
]
_WRITES = [
    "UPDATE sbtest1 SET k=k+1 WHERE id=?",
    "UPDATE sbtest1 SET c=? WHERE id=?",
    "DELETE FROM sbtest1 WHERE id=?",
    "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
]
_RANGES = " OR ".join(["k BETWEEN ? AND ?"] * 10)
OBSERVED = {
    "oltp_read_write": ["BEGIN", *_READS, *_WRITES, "COMMIT"],
    "oltp_read_only": ["BEGIN", *_READS, "COMMIT"],
    "oltp_write_only": ["BEGIN", *_WRITES, "COMMIT"],
    "oltp_point_select": ["SELECT c FROM sbtest1 WHERE id=?"],
    "oltp_update_index": ["UPDATE sbtest1 SET k=k+1 WHERE id=?"],
    "oltp_update_non_index": ["UPDATE sbtest1 SET c=? WHERE id=?"],
    "oltp_insert": ["INSERT INTO sbtest1 (k, c, pad) VALUES (?, ?, ?)"],
    "oltp_delete": ["DELETE FROM sbtest1 WHERE id=?"],
    "select_random_points": ["SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"],
    "select_random_ranges": [f"SELECT count(k) FROM sbtest1 WHERE {_RANGES}"],
}


def options(**asked: str) -> dict[str, str]:
    return WORKLOAD.validated(asked)


def script(engine: str = "postgres", **asked: str) -> str:
    (source,) = WORKLOAD.scripts(engine, Choice("sysbench", options(**asked)))
    return source.text


def executed(text: str, variables: Mapping[str, int]) -> list[str]:
    """Returns the statements that a script runs with these values of the variables of its conditions."""
    found: list[str] = []
    runs = [True]
    for line in text.splitlines():
        if condition := re.fullmatch(r"\\if :(\w+) <= (\d+)", line):
            runs.append(runs[-1] and variables[condition[1]] <= int(condition[2]))
        elif line == "\\else":
            runs[-1] = runs[-2] and not runs[-1]
        elif line == "\\endif":
            runs.pop()
        elif line and runs[-1] and not line.startswith("\\set"):
            found.append(re.sub(r":\w+", "?", line).removesuffix(";"))
    return found


@pytest.mark.parametrize("test", events.TESTS)
def test_statements_are_those_of_sysbench(test: str) -> None:
    assert executed(script(test=test), {}) == OBSERVED[test]
    event = events.event("postgres", options(test=test))
    assert event.queries == len(OBSERVED[test])
    assert event.reads == sum(one.startswith("SELECT") for one in OBSERVED[test])
    assert event.others == sum(one.startswith(("BEGIN", "COMMIT")) for one in OBSERVED[test])
    assert WORKLOAD.writes(options(test=test)) == any(
        not one.startswith(("SELECT", "BEGIN", "COMMIT")) for one in OBSERVED[test]
    )


def test_the_dialects_differ_in_two_statements() -> None:
    assert "INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, :k1, :c1, :pad1);" in script("mariadb", test="oltp_insert")
    assert script("sqlite").startswith("BEGIN IMMEDIATE;\n")
    assert script("sqlite", test="oltp_read_only").startswith("BEGIN;\n")


def test_every_group_of_statements_has_its_own_table() -> None:
    text = script(tables="5")
    drawn = [name for name in events.event("postgres", options(tables="5")).inputs if name.startswith("table")]
    assert len(drawn) == 8
    for number in range(1, 6):
        tables = {name: 1 + (number + place) % 5 for place, name in enumerate(drawn)}
        groups = [tables[name] for name in drawn for _ in range({"table1": 10, "table8": 2}.get(name, 1))]
        found = executed(text, tables)
        assert [int(one) for statement in found for one in re.findall(r"sbtest(\d+)", statement)] == groups
        assert len(found) == 20


def test_numbers_of_statements_and_transactions_can_be_changed() -> None:
    few = {"point_selects": "2", "range_selects": "off", "index_updates": "0", "delete_inserts": "2", "skip_trx": "on"}
    assert [statement.split()[0] for statement in executed(script(**few), {})] == [
        *("SELECT", "SELECT", "UPDATE", "DELETE", "INSERT", "DELETE", "INSERT"),
    ]
    assert "\\set id11_last :id11 + 49" in script(range_size="50")


def test_inputs_are_drawn_as_requested_and_texts_get_quotes_only_in_the_text_of_a_statement() -> None:
    asked = options(test="oltp_update_non_index", table_size="500", rand_type="zipfian", rand_zipfian_exp="0.9")
    for protocol, quote in (("prepared", ""), ("extended", ""), ("simple", "'")):
        draws = {one["variable"]: one["value"] for one in WORKLOAD.inputs(asked, protocol)["draws"]}
        assert draws["id1"] == {"number": {"distribution": {"zipfian": {"exponent": 0.9}}, "low": 1, "high": 500}}
        text = draws["c1"]["digits"]
        assert text == f"{quote}{'-'.join(['#' * 11] * 10)}{quote}"
    assert set(draws) == set(WORKLOAD.variables(asked))


def test_names_may_have_dashes() -> None:
    assert options(**{"table-size": "7", "rand-type": "pareto"})["table_size"] == "7"


@pytest.mark.parametrize(
    ("asked", "subject", "cause", "hint"),
    [
        ({"threads": "8"}, "--with threads", "is not an option of the workload", "use --clients"),
        ({"db-ps-mode": "disable"}, "--with db_ps_mode", "is not an option of the workload", "use --protocol"),
        ({"table_sise": "8"}, "--with table_sise", "is not an option of sysbench", "did you mean table_size"),
        ({"tables": "0"}, "--with tables=0", "0 is out of range", "from 1 to 1,000"),
        ({"test": "oltp"}, "--with test=oltp", "'oltp' is unknown", "oltp_"),
        (
            {"test": "oltp_write_only", "index_updates": "0", "non_index_updates": "0", "delete_inserts": "0"},
            "--with test=oltp_write_only",
            "has no statement with these options",
            "set the number of at least one kind of statement to 1 or more",
        ),
        (
            {"tables": "1000", "point_selects": "1000"},
            "--with tables=1000",
            "the script would have 1,007,000 statements",
            "use at most 99 tables",
        ),
    ],
)
def test_mistakes_are_refused(asked: dict[str, str], subject: str, cause: str, hint: str) -> None:
    with pytest.raises(InputError) as told:
        WORKLOAD.validated(asked)
    assert told.value.subject == subject and cause in told.value.cause and hint in told.value.hint


def test_options_that_a_test_does_not_use_do_not_make_its_work_another() -> None:
    first, second = options(test="oltp_point_select"), options(test="oltp_point_select", point_selects="3", delta="9")
    assert WORKLOAD.telling(first) == WORKLOAD.telling(second)
    assert WORKLOAD.telling(options()) != WORKLOAD.telling(options(range_size="5"))


def test_all_tests_but_deletes_share_their_data() -> None:
    keys = {test: WORKLOAD.content_key("postgres", options(test=test)) for test in events.TESTS}
    deletes = keys.pop("oltp_delete")
    assert len(set(keys.values())) == 1 and deletes not in keys.values()
    unstable = {test for test in events.TESTS if not WORKLOAD.is_stable(options(test=test))}
    assert unstable == {"oltp_insert", "oltp_delete"}


def test_a_thousand_tables_are_possible() -> None:
    asked = options(tables="1000", table_size="10")
    dataset = WORKLOAD.dataset("sqlite", asked)
    assert dataset is not None and len(dataset.tables) == 1000 and dataset.rows == 10_000
    compiled = WORKLOAD.compile("postgres", Choice("sysbench", asked), "prepared")
    assert len(compiled["oltp_read_write"]) == 18_002
