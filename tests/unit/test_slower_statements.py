"""Which statement a gate names as the cause, and which commands of two script versions are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from factories import Shelf
from hypothesis import given
from hypothesis import strategies as st
from labfactory import lab, studied, trials

from ironbench.model.inside import ServerStatement as Counted
from ironbench.model.inside import ServerStatistics, StatementPlan
from ironbench.model.record import Statement
from ironbench.report import formats
from ironbench.report.gate_page import written
from ironbench.study.commands import CommandKey, aligned, keyed, with_replacements
from ironbench.study.gate import gate
from ironbench.study.inside import ServerUse, TrialTotals
from ironbench.study.labstudy import lab_study
from ironbench.study.slower import NewStatement, RepeatedStatement, SlowerStatement, causes
from ironbench.study.study import Study

OLD, NEW = "script=old", "script=new"
INSERT, COUNT, ORDER = (
    "insert into line values (:id)",
    "select count(*) from line",
    "select * from orders where id = :id",
)
Rows = Sequence[tuple[str, float, float]]
"""Text, mean time and executions per transaction of each command."""


def compared(
    old: Mapping[str, Rows],
    new: Mapping[str, Rows],
    insides: Mapping[str, ServerStatistics] | None = None,
    evidence: bool = True,
) -> Study:
    """Returns a lab of two sides with the commands of their scripts."""
    plan = lab({"script": ("old", "new")}, blocks=6)
    records, statements = [], {}
    for one in trials(plan, {OLD: 1000.0, NEW: 800.0}, 0.01):
        executed = one.metrics["transactions"]
        own = statements[one.id] = [
            Statement(script, line, line, text, round(executed * often), 0, mean_s, mean_s / 10)
            for script, rows in (old if one.cell.name == OLD else new).items()
            for line, (text, mean_s, often) in enumerate(rows, 1)
        ]
        records.append(replace(one, statements=tuple(own)))
    seen = {one.id: insides[one.cell.name] for one in records} if insides else {}
    return lab_study(plan, records, Shelf(records, insides=seen, statements=statements if evidence else {}))


def reason(study: Study) -> Any:
    """Returns the only cause, with its values rounded to six digits."""
    found = causes(study, study.findings[0])
    assert len(found) <= 1
    return replace(found[0], **rounded(asdict(found[0]))) if found else None


def rounded(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in fields.items()}


def test_a_statement_that_the_baseline_lacks_is_named_where_it_adds_most_time() -> None:
    study = compared(
        {"old/q.sql": [("begin", 1e-4, 1), (INSERT, 0.731e-3, 1)]},
        {"new/q.sql": [("begin", 1e-4, 1), (INSERT, 1.13e-3, 1), (COUNT, 0.965e-3, 1), (COUNT, 1.02e-3, 1)]},
    )
    found = reason(study)
    assert isinstance(found, NewStatement)
    assert (found.text, found.after_s, found.source) == (COUNT, 1.02e-3, "clients")
    judged = gate(study, study.findings, 0.05, "fail")
    (told,) = json.loads(written(judged, "json"))["checks"][0]["causes"]
    assert (told["cause"], told["text"]) == ("new statement", COUNT)
    assert COUNT in written(judged, "text").decode()


def test_time_per_execution_counts_as_often_as_the_statement_runs() -> None:
    rare_and_long, frequent = (COUNT, 5e-3, 0.01), (INSERT, 2e-3, 1)
    study = compared(
        {"q.sql": [(INSERT, 1.5e-3, 1), ("select 1", 1e-4, 1)]},
        {"q.sql": [frequent, ("select 1", 1e-4, 1), rare_and_long]},
    )
    assert reason(study) == SlowerStatement(INSERT, 1.5e-3, 2e-3, "clients")


def test_of_a_list_that_leaves_statements_out_none_is_called_new() -> None:
    sides = {"q.sql": [(INSERT, 1e-3, 1)]}, {"q.sql": [(INSERT, 1.1e-3, 1), (COUNT, 5e-3, 1)]}
    assert isinstance(reason(compared(*sides)), NewStatement)
    found = reason(compared(*sides, evidence=False))
    assert isinstance(found, SlowerStatement) and found.text == INSERT


@pytest.mark.parametrize("names", [("old.sql", "new.sql"), ("v1/q.sql", "v2/q.sql"), ("q.sql", "q.sql")])
def test_a_version_of_a_script_is_compared_whatever_its_file_is_called(names: tuple[str, str]) -> None:
    rows = [("begin", 1e-4, 1), (ORDER, 1e-3, 1), ("end", 1e-4, 1)]
    slower = [rows[0], (ORDER, 4e-3, 1), rows[2]]
    study = compared({names[0]: rows}, {names[1]: slower})
    assert reason(study) == SlowerStatement(ORDER, 1e-3, 4e-3, "clients")
    ratios = [one.ratio.ratio for one in study.details.timed[1].statements if one is not None and one.ratio is not None]
    assert ratios == pytest.approx([1.0, 4.0, 1.0])


def test_a_plan_is_compared_in_another_version_of_the_script_at_another_line() -> None:
    def planned(script: str, number: int, step: str) -> ServerStatistics:
        return ServerStatistics(plans=(StatementPlan(script, number, ORDER, steps=(step,)),))

    insides = {OLD: planned("old.sql", 1, "Index Scan on orders"), NEW: planned("new.sql", 2, "Seq Scan on orders")}
    study = compared({"old.sql": [(ORDER, 1e-3, 1)]}, {"new.sql": [(ORDER, 1e-3, 1)]}, insides)
    (found,) = causes(study, study.findings[0])
    assert (found.more, found.less) == (("Seq Scan on orders",), ("Index Scan on orders",))  # type: ignore[union-attr]
    assert [one.plan.steps for one in study.details.other_plans] == [("Seq Scan on orders",)]


def test_a_rewritten_query_is_compared_with_the_one_that_it_replaces() -> None:
    rewritten = "select * from orders where id::text = :id"
    study = compared(
        {"old.sql": [("begin", 1e-4, 1), (ORDER, 1e-3, 1), ("end", 1e-4, 1)]},
        {"new.sql": [("begin", 1e-4, 1), (rewritten, 3e-3, 1), ("end", 1e-4, 1)]},
    )
    assert reason(study) == SlowerStatement(rewritten, 1e-3, 3e-3, "clients", ORDER)
    page = formats.get("md")([study]).decode()
    assert any("old.sql:2" in line and "new.sql:2" in line for line in page.splitlines())


def test_renamed_scripts_are_versions_of_those_with_the_same_statements() -> None:
    study = compared(
        {
            "read.sql": [("begin", 1e-4, 0.5), (ORDER, 1e-3, 0.5)],
            "write.sql": [("begin", 1e-4, 0.5), (INSERT, 1e-3, 0.5)],
        },
        {"w2.sql": [("begin", 1e-4, 0.5), (INSERT, 1e-3, 0.5)], "r2.sql": [("begin", 1e-4, 0.5), (ORDER, 9e-3, 0.5)]},
    )
    assert reason(study) == SlowerStatement(ORDER, 1e-3, 9e-3, "clients")
    assert len(study.details.timed[0].statements) == 4


def served(*rows: tuple[str, float, float], listed_share: float = 1.0) -> ServerUse:
    """Returns the server statistics for 1,000 transactions: text, mean time and executions per transaction."""
    own = tuple(Counted(text, 1000 * often, 1000 * often * mean_s) for text, mean_s, often in rows)
    over = TrialTotals(1.0, 1000.0)
    whole_s = sum(one.time_s for one in own) / listed_share
    return ServerUse("", over, over, own, whole_s, (), (), (), (), (), 0, 1, (), ())


def by_server(old: ServerUse, new: ServerUse) -> Any:
    plan = lab({"script": ("old", "new")}, blocks=6)
    study = studied(plan, trials(plan, {OLD: 1000.0, NEW: 800.0}, 0.01))
    return reason(
        replace(study, details=replace(study.details, inside=(replace(old, name=OLD), replace(new, name=NEW))))
    )


def test_of_the_servers_statistics_a_statement_is_new_only_where_they_list_all() -> None:
    new = served((INSERT, 1.1e-3, 1), (COUNT, 1e-3, 2))
    assert by_server(served((INSERT, 1e-3, 1)), new) == NewStatement(COUNT, 2.0, 1e-3, "server")
    found = by_server(served((INSERT, 1e-3, 1), listed_share=0.9), new)
    assert isinstance(found, SlowerStatement) and found.text == INSERT


def test_a_statement_that_runs_more_often_is_named_though_each_execution_takes_as_long() -> None:
    found = by_server(served((INSERT, 1e-3, 1), (COUNT, 1e-3, 1)), served((INSERT, 1.05e-3, 1), (COUNT, 1e-3, 3)))
    assert found == RepeatedStatement(COUNT, 1.0, 3.0, 1e-3, "server")


def test_executions_that_differ_by_chance_alone_are_no_reason() -> None:
    """With a mix of scripts, 10 and 15 executions in 1,000 transactions differ by less than chance explains."""
    assert by_server(served((COUNT, 1e-3, 0.010)), served((COUNT, 1e-3, 0.015))) is None


texts = st.lists(st.sampled_from("abcde"), max_size=8)


def keys(*scripts: tuple[str, list[str]]) -> list[CommandKey]:
    return list(keyed((name, text, None) for name, rows in scripts for text in rows))


@given(texts, texts)
def test_no_two_commands_of_a_script_become_one(own: list[str], first: list[str]) -> None:
    mine, theirs = keys(("new.sql", own)), keys(("old.sql", first))
    for shared in (aligned(mine, theirs), with_replacements(mine, theirs)):
        assert list(shared) == mine and len(set(shared.values())) == len(mine)
    assert {key.text for key in aligned(mine, theirs).values()} == set(own)


@given(texts)
def test_a_script_is_the_same_as_its_renamed_copy(rows: list[str]) -> None:
    mine, theirs = keys(("new.sql", rows)), keys(("old.sql", rows))
    assert list(with_replacements(mine, theirs).values()) == theirs


@given(texts, texts)
def test_a_script_of_the_same_name_is_its_own_version(own: list[str], other: list[str]) -> None:
    mine, theirs = keys(("a.sql", own), ("b.sql", other)), keys(("b.sql", other), ("a.sql", own))
    assert aligned(mine, theirs) == {key: key for key in mine}
