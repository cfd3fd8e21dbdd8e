"""Objects that ironbench created in a running MariaDB are removed despite references, and no others."""

from __future__ import annotations

import pytest
from workload_trial import loaded

from ironbench import engines
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import FailureError

pytestmark = pytest.mark.live
ADMINISTRATION = engines.get("mariadb").administration


def there(session: MariadbSession) -> set[str | None]:
    """Returns the tables, sequences and routines of the session's database."""
    rows = session.query(
        "select table_name from information_schema.tables where table_schema = database() "
        "union all select routine_name from information_schema.routines where routine_schema = database()"
    )
    return {row[0] for row in rows}


def test_tables_that_refer_to_each_other_are_removed_at_once(joined: MariadbSession) -> None:
    joined.query("create table mine (a int)")
    loaded(joined, "igen-oltp", own_server=False)
    made = ADMINISTRATION.remove_made(joined)
    assert {"igen_customer", "igen_order", "igen_order_line"} <= set(made.tables)
    assert there(joined) == {"mine"}


def test_nothing_is_removed_where_a_table_of_others_refers_to_one(joined: MariadbSession) -> None:
    joined.query(
        "create table a (id int primary key); "
        "create table b (id int primary key, a int, foreign key (a) references a (id)); "
        "create table mine (b int, foreign key (b) references b (id))"
    )
    ADMINISTRATION.mark(joined, ("a", "b"))
    with pytest.raises(FailureError, match="table b: referenced by a foreign key of table mine"):
        ADMINISTRATION.remove_made(joined)
    assert there(joined) == {"a", "b", "mine"}
    joined.query("drop table mine")
    ADMINISTRATION.remove_made(joined)
    assert there(joined) == set()
