"""Parameters stay in the specified domains, and every query text gets all of its parameters."""

import re
from datetime import date
from decimal import Decimal
from string import Formatter

import pytest

from ironbench.workloads.tpch import parameters, texts
from ironbench.workloads.tpch.parameters import QUERIES
from ironbench.workloads.tpch.trial_choices import ORDERS, order

ENGINES = ("postgres", "duckdb", "sqlite")
SEEDS = range(400)
ONE = Decimal(1)


def test_there_are_41_orders_and_each_has_every_query_once() -> None:
    assert len(ORDERS) == 41
    assert all(sorted(row) == list(QUERIES) for row in ORDERS)
    assert order(0)[:4] == (14, 2, 9, 20)
    assert order(40)[-1] == 19
    assert order(41) == order(0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("query", QUERIES)
def test_every_parameter_of_a_text_has_a_value_and_none_is_left_in_it(query: int, engine: str) -> None:
    for values in (parameters.validation(query), parameters.random_parameters(query, 7, Decimal("0.1"))):
        fields = {field for _, field, _, _ in Formatter().parse(texts.template(query, engine)) if field}
        assert fields <= set(values)
        text = texts.text(query, engine, values)
        assert not re.search(r"[{}]", text)
        assert text.startswith(("SELECT", "WITH"))
    assert texts.about(query).endswith(".")


def test_the_same_seed_draws_the_same_and_streams_draw_others() -> None:
    assert parameters.random_parameters(8, 42, ONE) == parameters.random_parameters(8, 42, ONE)
    assert len({tuple(parameters.random_parameters(8, seed, ONE).items()) for seed in range(20)}) > 15


def test_dates_are_drawn_from_the_first_to_the_last_of_their_domain() -> None:
    def drawn(query: int, name: str) -> set[str]:
        return {parameters.random_parameters(query, seed, ONE)[name] for seed in range(4000)}

    months = drawn(4, "since")
    assert (min(months), max(months), len(months)) == ("1993-01-01", "1997-10-01", 58)
    assert len(drawn(14, "since")) == 60
    assert len(drawn(10, "since")) == 24
    assert drawn(5, "since") == {f"{year}-01-01" for year in range(1993, 1998)}
    assert len(drawn(3, "day")) == 31
    days = sorted(drawn(1, "until"))
    assert (len(days), days[0], days[-1]) == (61, "1998-08-03", "1998-10-02")


def test_a_span_ends_so_many_months_after_it_begins() -> None:
    assert parameters.validation(4) == {"since": "1993-07-01", "before": "1993-10-01"}
    assert parameters.validation(15)["before"] == "1996-04-01"
    for seed in SEEDS:
        values = parameters.random_parameters(14, seed, ONE)
        first, past = (date.fromisoformat(values[name]) for name in ("since", "before"))
        assert 28 <= (past - first).days <= 31
        assert past.day == 1


def test_numbers_and_words_are_drawn_from_their_lists() -> None:
    for seed in SEEDS:
        six = parameters.random_parameters(6, seed, ONE)
        assert Decimal("0.01") <= Decimal(six["least"]) == Decimal(six["most"]) - Decimal("0.02") <= Decimal("0.08")
        assert six["quantity"] in ("24", "25")
        seven = parameters.random_parameters(7, seed, ONE)
        assert seven["nation1"] != seven["nation2"]
        eight = parameters.random_parameters(8, seed, ONE)
        assert parameters.REGION_OF[eight["nation"]] == eight["region"]
        sizes = parameters.random_parameters(16, seed, ONE)["sizes"].split(", ")
        assert len(set(sizes)) == 8
        assert all(1 <= int(size) <= 50 for size in sizes)
        assert parameters.random_parameters(18, seed, ONE)["quantity"] in ("312", "313", "314", "315")
        codes = re.findall(r"'(\d\d)'", parameters.random_parameters(22, seed, ONE)["codes"])
        assert len(set(codes)) == 7
        assert all(10 <= int(code) <= 34 for code in codes)
    assert (len(parameters.COLOURS), len(parameters.NATIONS)) == (92, 25)


def test_bounds_of_discounts_are_written_and_never_computed_in_binary() -> None:
    values = parameters.validation(6)
    assert (values["least"], values["most"], values["least_percent"], values["most_percent"]) == (
        "0.05",
        "0.07",
        "5",
        "7",
    )


def test_the_share_of_stock_shrinks_with_the_scale_but_not_for_the_published_answers() -> None:
    assert parameters.random_parameters(11, 1, Decimal("0.01"))["fraction"] == "0.01"
    assert parameters.random_parameters(11, 1, Decimal(100))["fraction"] == "0.000001"
    assert parameters.validation(11)["fraction"] == "0.0001"


def test_an_engine_has_a_wording_of_its_own_only_where_it_differs() -> None:
    for query in QUERIES:
        assert texts.template(query, "postgres") == texts.template(query, "duckdb")
    assert texts.template(4, "sqlite") == texts.template(4, "postgres")
    assert texts.template(6, "sqlite") != texts.template(6, "postgres")
