"""Server statistics of trials in studies and in sections of reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import Shelf, example
from labfactory import lab, trials

from ironbench.engines.postgres.insight import lacking
from ironbench.engines.postgres.observers.statements import StatementsAccess
from ironbench.model.inside import NotShown, ServerStatement, ServerStatistics, StatementPlan, TableUse
from ironbench.model.note import note
from ironbench.records import attached
from ironbench.report import formats, wording
from ironbench.study.inside import uses
from ironbench.study.labstudy import lab_study
from ironbench.study.runstudy import studies
from ironbench.trial.drive.statements import statements
from ironbench.workloads.base import ScriptSource

FAST = StatementPlan("a.sql", 1, "select * from t where a = $1", "Index Scan …", ("Index Scan using t_a on t",))
SLOW = replace(FAST, text="Seq Scan …", steps=("Seq Scan on t",))
REMEDY = "CREATE EXTENSION what_counts"


def told(time_s: float, plan: StatementPlan, **changes: object) -> ServerStatistics:
    return replace(
        ServerStatistics(
            statements=(
                ServerStatement(FAST.statement, 1000.0, time_s, 1000.0),
                ServerStatement("commit", 1000.0, 0.1),
            ),
            statements_s=time_s + 0.1,
            tables=(TableUse("t", index_scans=1000.0, hit_bytes=8e6, dead_rows=5.0, bytes=2e6, bytes_before=1e6),),
            plans=(plan,),
        ),
        **changes,
    )


@pytest.fixture
def study():
    plan = lab({"index": ("with", "without")}, blocks=3)
    records = trials(plan, {"index=with": 1800.0, "index=without": 290.0})
    insides = {
        one.id: told(*((2.0, FAST) if one.cell.name == "index=with" else (40.0, SLOW)))
        for one in records
        if one.cell.name in ("index=with", "index=without")
    }
    return lab_study(plan, records, Shelf(records, insides=insides))


def test_sentences_of_earlier_versions_are_shown_as_they_are() -> None:
    (one,) = attached.read_inside(b'{"doubts": ["counters were reset"]}').notes
    assert wording.text(one) == "counters were reset"


def test_statements_without_a_text_have_the_same_name_in_old_and_new_records() -> None:
    data = attached.written_inside(ServerStatistics(statements=(ServerStatement("(its text was evicted)", 1, 1.0, 0),)))
    assert attached.read_inside(data).statements[0].text == "(text no longer available)"


def test_notes_of_trials_are_merged_and_worded() -> None:
    plan = lab({"index": ("with",)}, blocks=3)
    records = trials(plan, {"index=with": 1800.0})
    lost = [note("statements-not-counted", count=n, by="view", setting="size") for n in range(len(records))]
    insides = {one.id: told(2.0, FAST, notes=(lack,)) for one, lack in zip(records, lost, strict=True)}
    (use,) = uses([("all", records)], Shelf(records, insides=insides))
    (text,) = wording.texts(use.notes)
    assert f"no space for 0 to {len(records) - 1} statements, which are missing (increase size)" in text


def test_trials_of_a_cell_are_pooled(study) -> None:
    first, other = study.details.inside
    assert first.name == "index=with" and first.trials == 3
    assert first.statements[0].calls == 3000 and first.statements[0].time_s == 6.0
    assert other.counted.per_second(other.statements[0].calls) == pytest.approx(3000 / other.counted.elapsed_s)
    assert first.tables[0].index_scans == 3000
    assert (first.tables[0].dead_rows, first.tables[0].bytes) == (5.0, 2e6), "a state is not added up"


def test_a_trial_of_which_statements_or_tables_are_not_known_is_in_no_rate_of_theirs() -> None:
    records = example()[:4]
    unread, unseen = (told(2.0, FAST, **{name: ()}) for name in ("statements", "tables"))
    known = [unread, unread, unseen, told(2.0, FAST)]
    shelf = Shelf(records, insides={one.id: inside for one, inside in zip(records, known, strict=True)})
    (use,) = uses([("all", records)], shelf)
    assert use.counted.elapsed_s == sum(one.elapsed_s for one in records[2:]) and use.statements[0].calls == 2000
    assert use.used.elapsed_s == sum(one.elapsed_s for one in (*records[:2], records[3]))
    assert use.used.per_second(use.tables[0].index_scans) == pytest.approx(3000 / use.used.elapsed_s)
    assert use.used.transactions == sum(one.metrics["transactions"] for one in (*records[:2], records[3]))


def test_plans_that_differ_are_named_with_what_differs(study) -> None:
    (other,) = study.details.other_plans
    assert (other.name, other.baseline_name) == ("index=without", "index=with")
    assert other.words == note("plans-differ", more=(("Seq Scan on t", 1),), less=(("Index Scan using t_a on t", 1),))


@pytest.mark.parametrize("format", ["html", "md", "text", "csv", "json"])
def test_every_format_shows_it(study, format: str) -> None:
    text = formats.get(format)([study]).decode().replace("\\_", "_")
    for words in (FAST.statement, "Seq Scan on t instead of Index Scan using t_a on t"):
        assert words in text, words


def test_what_is_missing_is_said_with_how_to_get_it() -> None:
    records = example()
    lacking = ServerStatistics(missing=(NotShown("Cost of each statement", "statements are not counted", REMEDY),))
    shelf = Shelf(records, insides={one.id: lacking for one in records})
    for format in ("text", "md", "html"):
        text = formats.get(format)(studies(records, shelf)).decode().replace("\\_", "_")
        assert "Statistics that the server did not provide" in text and REMEDY in text
        assert "Statement cost" not in text


def test_a_server_that_says_nothing_has_no_section() -> None:
    records = example()
    text = formats.get("md")(studies(records, Shelf(records))).decode()
    assert "Not available from" not in text and "Statement cost" not in text


def test_a_password_in_a_statement_does_not_reach_the_record() -> None:
    spoken = "create role app login password 'open-sesame'"
    data = attached.written_inside(
        ServerStatistics(statements=(ServerStatement(spoken, 1.0, 1.0),), plans=(replace(FAST, failed=spoken),))
    )
    assert b"open-sesame" not in data and attached.read_inside(data).statements[0].text.startswith("create role app")


def test_a_file_with_too_much_in_it_is_refused() -> None:
    many = tuple(ServerStatement(str(n), 1.0, 1.0) for n in range(2000))
    with pytest.raises(ValueError, match="more than"):
        attached.read_inside(attached.written_inside(ServerStatistics(statements=many)))


SCRIPT = """\\set a random(5, 5)
select b as x from t where a = :a and c = 'at 12:30' \\gset
\\if :a > 7
delete from t where a = :a;
\\endif
update t set b = :a where a = :x;
select 1;
"""


def test_a_command_has_the_values_that_a_client_would_send_first() -> None:
    found = statements([ScriptSource("s", SCRIPT, 1)], {}, "prepared", 1)
    assert [one.number for one in found] == [1, 2, 3, 4]
    typical = [one.typical for one in found]
    assert typical[0] == "select b as x from t where a = 5 and c = 'at 12:30'"
    assert typical[1] == "", "that branch is not taken"
    assert typical[2] == "", "one value comes from the server"
    assert typical[3].startswith("select 1")
    assert [one.sent for one in found] == [True, False, True, True]


def test_a_script_that_counts_with_answers_of_the_server_still_has_its_commands() -> None:
    text = "select 1 as x \\gset\n\\set y :x + 1\nselect :y;\n"
    found = statements([ScriptSource("s", text, 1)], {}, "prepared", 1)
    assert [one.typical for one in found] == ["select 1 as x", ""] and all(one.sent for one in found)


def test_an_extension_that_a_copy_lacks_is_made_where_the_copy_comes_from() -> None:
    known = StatementsAccess(loaded=True, schema=None, there=True, version=150008, io_timed=True)
    missing = {copied: lacking(known, copied=copied) for copied in (False, True)}
    assert missing[False] and "in this database" in missing[False].remedy
    assert missing[True] and "that trials copy" in missing[True].remedy
