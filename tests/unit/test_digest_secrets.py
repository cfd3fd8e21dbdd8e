"""Comments and literals in the statistics of PostgreSQL."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ironbench.engines.postgres import digests

TEXT = "select /* user='Ann' */ name from item where id = $1 and owner = 'Bob' -- trace 471147"


@pytest.mark.parametrize("values", [False, True])
def test_a_masked_digest_contains_neither_comments_nor_literals(values: bool) -> None:
    def query(sql: str) -> list[tuple[str | None, ...]]:
        sent.append(sql)
        return [('["integer"]',)] if "parameter_types" in sql else []

    sent: list[str] = []
    session = SimpleNamespace(query=query)
    found = digests._Drawing(session, values).digest(TEXT, "app", 2, 0.001, 2)  # type: ignore[arg-type]
    assert found.refused == "" and len(found.values) == 2
    kept = [word for word in ("Ann", "Bob", "471147") if word in found.text]
    assert kept == (["Ann", "Bob", "471147"] if values else [])
    assert "name from item where id = $1 and owner = '" in found.text


def test_comments_before_a_statement_do_not_hide_its_kind() -> None:
    texts = ["/* a */ -- b\n /* c\nd */select 1 /* e */", "/* a */begin", "insert into t values ($1)"]
    rows = [("app", str(number), text) for number, text in enumerate(texts)]
    found = digests._texts(SimpleNamespace(query=lambda sql: rows), "pg_stat_statements")  # type: ignore[arg-type]
    assert list(found.values()) == ["select 1 /* e */", "begin", "insert into t values ($1)"]
