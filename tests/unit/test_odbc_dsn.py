"""ODBC connection strings: which parts are shown and which are secret."""

import importlib.util
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench import engines, workloads
from ironbench.engines.odbc import dsn, load
from ironbench.engines.odbc.dialects import with_from
from ironbench.engines.odbc.process import parameters, statements
from ironbench.errors import FailureError, InputError
from ironbench.model.secrets import Secrets
from ironbench.model.system import Choice

ENGINE = engines.get("odbc")


@pytest.mark.parametrize(
    ("written", "told", "hidden"),
    [
        (
            "odbc:Driver={A B};Server=h;UID=me;PWD=geheim;Port=1",
            "odbc:Driver={A B};Server=h;Port=1",
            "UID=me;PWD=geheim",
        ),
        ("odbc:sales", "odbc:DSN=sales", None),
        ("Driver=X; Database=d ;Password={a;b}}c};", "odbc:Driver=X;Database=d", "Password={a;b}}c}"),
        (
            "odbc:DSN=x;pqopt={sslmode=require password=geheim};Url=https://u:geheim@h/",
            "odbc:DSN=x",
            "pqopt={sslmode=require password=geheim};Url=https://u:geheim@h/",
        ),
        ("odbc:DSN=x;AccountKey=geheim;KeyStore=/k", "odbc:DSN=x;KeyStore=/k", "AccountKey=geheim"),
        ("ODBC:DSN=x;AccessToken=abc;User ID=u", "odbc:DSN=x", "AccessToken=abc;User ID=u"),
    ],
)
def test_users_and_passwords_are_kept_apart_and_put_back(written: str, told: str, hidden: str | None) -> None:
    address, secrets = dsn.parse(written)
    assert (address.text(), secrets.password) == (told, hidden)
    again, nothing = dsn.parse(address.text())
    assert again == address and nothing == Secrets()
    assert again.whole(secrets) == ";".join(filter(None, (told.removeprefix("odbc:"), hidden)))


def test_no_message_shows_a_password_once_it_is_known() -> None:
    dsn.parse("odbc:Driver=X;PWD={ge;heim}")
    assert "heim" not in str(FailureError("ODBC", "login with ge;heim refused, {ge;heim}"))


def test_a_string_that_cannot_be_read_is_refused_without_being_shown() -> None:
    for text in ("odbc:Driver=X;PWD={geheim", "odbc:Driver=X;geheim;PWD=1", "odbc:", "odbc:Server=geheim"):
        with pytest.raises(InputError) as caught:
            dsn.parse(text)
        assert "geheim" not in f"{caught.value} {caught.value.hint}"


def test_a_file_is_named_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    address, _ = dsn.parse("odbc:Driver=SQLite3;Database=sub/x.db")
    assert address.value("database") == str(tmp_path / "sub" / "x.db")
    assert dsn.parse("odbc:Driver=X;Database=sales")[0].value("database") == "sales"


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30))
def test_any_password_in_braces_comes_back_and_stays_out(password: str) -> None:
    braced = "{" + password.replace("}", "}}") + "}"
    address, secrets = dsn.parse(f"odbc:Driver=X;PWD={braced};Server=h")
    assert secrets.password == f"PWD={braced}"
    assert address.text() == "odbc:Driver=X;Server=h"


def test_strings_names_and_bodies_of_each_database_stay_whole() -> None:
    assert statements("select $$a;b$$, $x$;$y$;$x$, E'it\\'s;'; select '\\'; select \"a;b\"") == [
        "select $$a;b$$, $x$;$y$;$x$, E'it\\'s;'",
        " select '\\'",
        ' select "a;b"',
    ]
    maria = "select 'it\\'s;', \"a\\\";b\", `c;d`; # it's;\nselect 5--1; select 2"
    assert statements(maria, backslashes=True) == [
        "select 'it\\'s;', \"a\\\";b\", `c;d`",
        " # it's;\nselect 5--1",
        " select 2",
    ]
    assert parameters("select ?, '?', \"?\", `?`, $$?$$, E'\\'?' -- ?\n, ? /* ? */") == 2
    assert parameters("select ?, '\\'?', 5--?, # ?\n ?", backslashes=True) == 3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], ("SQL_BIGINT", 0, 0)),
        ([None, 3], ("SQL_BIGINT", 0, 0)),
        ([1, Decimal("2.125")], ("SQL_DECIMAL", 18, 3)),
        ([date(2026, 1, 2), datetime(2026, 1, 2, 3)], ("SQL_TYPE_TIMESTAMP", 19, 0)),
        ([7, "seven"], ("SQL_WVARCHAR", 5, 0)),
        ([None], ("SQL_WVARCHAR", 1, 0)),
    ],
)
def test_a_column_of_an_array_has_the_type_that_holds_all_of_its_values(
    monkeypatch: pytest.MonkeyPatch, values: list[object], expected: tuple[object, ...]
) -> None:
    class Names:
        def __getattr__(self, name: str) -> str:
            return name

    monkeypatch.setattr("ironbench.engines.odbc.driver.package", Names)
    assert load._size(values) == expected


def test_statements_are_parted_at_semicolons_that_end_them() -> None:
    assert statements("select ';' ; select \"a;b\" -- ;\n; /* ; */ select 1-2/3;") == [
        "select ';' ",
        ' select "a;b" -- ;\n',
        " /* ; */ select 1-2/3",
    ]
    body = "create procedure p() begin select 1; select 2; end"
    assert statements(f"select 0; {body}; end") == ["select 0", f" {body}; end"]


def test_a_query_without_a_table_reads_the_one_of_a_single_row() -> None:
    assert with_from("select 1", "dual") == "select 1 from dual"
    sums = "select (select sum(a) from t), (select count(*) from (select 1 from u) v)"
    assert with_from(sums, "dual") == f"{sums} from dual"
    for whole in ("select a from t", "update t set a = 1", "select 'x' from t where b in (select 1 from u)"):
        assert with_from(whole, "dual") == whole
    assert with_from("select ' from (' as a", "dual") == "select ' from (' as a from dual"


def test_an_unknown_database_gets_portable_sql_alone() -> None:
    other = next(one for one in ENGINE.variants.values() if not one.can("data"))
    assert other.can("scripts") and "not tested" in other.traits.doc


def test_what_no_server_could_try_says_so_and_its_workloads_have_their_texts() -> None:
    untried = [one for one in ENGINE.variants.values() if "not tested" in one.traits.doc and one.can("data")]
    assert len(untried) == 3
    for engine in untried:
        for name in ("tpcb-like", "simple-update", "select-only"):
            workload = workloads.get(name)
            dataset = workload.dataset(engine.name, workload.validated({}))
            assert dataset is not None and len(dataset.schema) == len(dataset.tables)
            assert workload.scripts(engine.name, Choice(name, workload.validated({})))


def test_without_pyodbc_the_refusal_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError) as caught:
        ENGINE.engine_for("odbc:Driver=X;Server=other")
    assert "pip install 'pyodbc>=" in caught.value.hint and "apt install unixodbc" in caught.value.hint
