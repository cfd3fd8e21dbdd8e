"""Answers are right within the specified tolerances, and wrong beyond them."""

from pathlib import Path

import pytest

from ironbench.model.note import note
from ironbench.workloads.tpch import answers, validation, validator
from ironbench.workloads.tpch.answers import QueryAnswer
from ironbench.workloads.tpch.parameters import QUERIES
from ironbench.workloads.tpch.streams import OVER_LIMIT, StepRun
from ironbench.workloads.tpch.validation import Ledger


def one(query: int, *rows: tuple[str | None, ...]) -> QueryAnswer:
    return QueryAnswer(tuple(f"c{place}" for place in range(len(answers.TOLERANCES[query]))), rows)


@pytest.mark.parametrize(
    ("query", "expected", "found", "right"),
    [
        (6, "123141078.2283", "123141178.2283", True),
        (6, "123141078.2283", "123141178.2284", False),
        (14, "16.380778", "16.54", True),
        (14, "16.380778", "16.56", False),
        (17, "348406.05", "348406.0542857143", True),
        (14, "0.001", "0.004", True),
    ],
)
def test_sums_may_differ_by_100_and_ratios_by_one_percent_of_hundredths(
    query: int, expected: str, found: str, right: bool
) -> None:
    assert (answers.difference(query, one(query, (expected,)), one(query, (found,))) == "") is right


def test_counts_and_texts_must_be_the_same_and_the_place_is_named() -> None:
    right = one(4, ("1-URGENT", "93"), ("2-HIGH", "103"))
    assert answers.difference(4, right, one(4, ("1-URGENT", "93"), ("2-HIGH", "103.00"))) == ""
    assert (
        answers.difference(4, right, one(4, ("1-URGENT", "93"), ("2-HIGH", "104"))) == "row 2, c1: 104 instead of 103"
    )
    assert answers.difference(4, right, one(4, ("1-URGENT", "93"))) == "1 rows instead of 2"
    assert "nothing instead of 93" in answers.difference(4, right, one(4, ("1-URGENT", None), ("2-HIGH", "103")))


def test_no_revenue_at_all_is_an_answer_too() -> None:
    assert answers.difference(17, one(17, (None,)), one(17, (None,))) == ""
    assert answers.difference(17, one(17, (None,)), one(17, ("0.0",))) != ""


def test_equal_values_of_stock_may_come_in_any_order() -> None:
    first, second = ("12", "100.00"), ("7", "100.00")
    assert answers.difference(11, one(11, first, second), one(11, second, first)) == ""


def test_files_hold_answers_unchanged() -> None:
    answer = QueryAnswer(("s_name", "numwait"), (('Supplier#1, "a"', "20"), ("b ", None)))
    assert answers.as_csv(answer) == 's_name|numwait\nSupplier#1, "a"|20\nb |\n'
    assert answers.from_csv(answers.as_csv(answer)) == answer
    nothing = QueryAnswer(("avg_yearly",), ((None,),))
    assert answers.from_csv(answers.as_csv(nothing)) == nothing
    with pytest.raises(ValueError, match="columns"):
        answers.from_csv("a|b\n1\n")


def test_answers_that_a_limit_withheld_are_asked_for_again_under_a_longer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path))
    ledger = Ledger("content", "2026-11-26", "engine", "1.0")
    assert ledger.read(60.0) is None
    some = note("answers-checked", right=20, of=22, slow=("q09", "q17"), limit_s=60.0, refused=())
    ledger.write(some, 60.0)
    assert ledger.read(60.0) == ledger.read(5.0) == some
    assert ledger.read(3600.0) is None
    every = note("answers-checked", right=22, of=22, slow=(), limit_s=60.0, refused=())
    ledger.write(every, None)
    assert ledger.read(5.0) == ledger.read(1e7) == every


def test_a_query_that_the_engine_refused_is_not_said_to_be_slow() -> None:
    ran = [StepRun("q01", 4, 0.0, 1.0), StepRun("q02", 0, 1.0, 2.0, "42883"), StepRun("q03", 0, 2.0, 62.0, OVER_LIMIT)]
    found = validator._checked(1, 3, ["q02", "q03"], ran, 60.0)
    assert found.values["slow"] == ("q03",) and found.values["refused"] == (("q02", "42883"),)


def test_blanks_that_fill_a_column_of_fixed_length_are_no_part_of_an_answer() -> None:
    kept = answers.answer(["s_name", "s_address"], [("Supplier#1   ", "a street "), (None, "x")])
    assert kept.rows == (("Supplier#1", "a street "), (None, "x"))


def test_a_wrong_answer_fails_a_check_of_its_own_and_the_one_of_all() -> None:
    right = {query: one(query, ("1",) * len(answers.TOLERANCES[query])) for query in QUERIES}
    wrong = {**right, 12: one(12, ("1", "2", "1"))}
    assert all(check.passed for check in validation.checks(right, right))
    failed = [check for check in validation.checks(wrong, right) if not check.passed]
    assert [check.name for check in failed] == ["answer q12", "answers"]
    assert failed[0].actual == "row 1, c1: 2 instead of 1"
    assert failed[1].actual == "21 right"
