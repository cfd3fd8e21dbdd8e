"""No part of a password is shown or stored, even from an invalid address or a server's message."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from factories import record

from ironbench import engines, workloads
from ironbench.engines.postgres import dsn
from ironbench.errors import FailureError, InputError
from ironbench.lab.build import without_password
from ironbench.model import redact, secrets
from ironbench.model.commands import Commands
from ironbench.model.note import Note, text_note
from ironbench.model.record import Status
from ironbench.model.redact import redacted, redacted_sql, redacted_toml
from ironbench.model.secrets import Secrets, hidden
from ironbench.records import Store


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_KNOWN", set())


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:S3cr3t",
        "postgresql://u:S3c/S3cr3t@h/db",
        "postgresql://u:12/S3cr3t@h/db",
        "postgresql://u:p?S3cr3t@h/db",
        "postgresql://u:p?a=S3cr3t@h/db",
        "postgresql://u:p@[S3cr3t/x",
        "postgresql://u:p@h:S3cr3t/x",
        "postgresql://u:p@h/x?S3cr3t",
        "postgresql://u:p@h/x?S3cr3t=1",
        "postgresql://u:p@h/x?sslmode=S3cr3t",
        "postgresql://u:p@h/x?sslrootcert=S3cr3t",
        "mysql://u:S3cr3t@h/db",
        "u:S3cr3t@h:5/db",
        "host=a password=my S3cr3t=x",
        "host=a password=my S3cr3t",
        "host=a password='S3cr3t",
        "host=a password=my ssl_S3cr3t=x",
        "host=a port=S3cr3t",
        "host=h port=²S3cr3t",
    ],
)
def test_no_piece_of_an_address_that_cannot_be_read_is_quoted(text: str) -> None:
    with pytest.raises(InputError) as caught:
        dsn.parse(text, {"HOME": "/nonexistent"})
    assert "S3cr3t" not in f"{caught.value} {caught.value.hint}"
    assert caught.value.subject == "--dsn"


@pytest.mark.parametrize(
    "pair",
    [
        "PWD={S3;cr3t}",
        "PWD={a}};S3cr3t}",
        "PWD=my S3cr3t",
        "Pwd=a,S3cr3t",
        "PWD = {a S3cr3t}",
        "TrustStorePassword=S3cr3t",
        "Proxy_Pwd=S3cr3t",
        "AccessToken=S3cr3t",
        "Account Key=S3cr3t",
    ],
)
def test_a_kept_text_has_no_piece_of_a_password_of_a_list_of_keywords(pair: str) -> None:
    for text in (f"Driver=X;{pair};Port=1", f"odbc:{pair};DSN=x", f"odbc:DSN=x;{pair}"):
        lab = f'[system]\ndsn = "{text}"  # as "{text}"\nengine = "x"\n'
        kept = redacted_toml(lab)
        assert "cr3t" not in kept and redacted_toml(kept) == kept
        assert tomllib.loads(kept)["system"].keys() == {"dsn", "engine"}
        assert "cr3t" not in redacted(text) and ("Port=1" in redacted(text)) == ("Port=1" in text)


def test_what_a_server_says_is_searched_for_the_password_first() -> None:
    Secrets("hunter2!")
    error = FailureError("server", "no such role: hunter2!", "is hunter2! right?")
    assert str(error) == "server: no such role: •••" and error.hint == "is ••• right?"


@pytest.mark.parametrize(
    "line",
    [
        "CREATE ROLE bench LOGIN PASSWORD 'hunter3!';",
        "CREATE ROLE \"bench\" LOGIN PASSWORD 'hunter3!';",
        f"CREATE ROLE bench LOGIN CONNECTION LIMIT 5 PASSWORD '{'hunter3!' * 20}';",
    ],
)
def test_a_refused_file_is_quoted_without_its_password(tmp_path: Path, line: str) -> None:
    file = tmp_path / "setup.sql"
    file.write_text(f"select 1;\n{line}\n")
    for engine in ("postgres", "mariadb"):
        if engine == "mariadb":
            file.write_text(line.replace("ROLE", "USER").replace("PASSWORD", "IDENTIFIED BY"))
        with pytest.raises(InputError, match="outside the trial's database") as refused:
            engines.get(engine).data_import.examined_setup(file)
        assert "hunter" not in str(refused.value) and "CREATE" in str(refused.value)


def test_an_error_repeats_no_password_of_the_statement_that_it_is_about() -> None:
    sql = "CREATE USER MAPPING FOR bench SERVER s OPTIONS (user 'x', password 'hunter3!')"
    error = FailureError("setup.sql", f'role "bench" does not exist (in: {sql};)')
    assert "hunter" not in str(error) and "SERVER s" in str(error)


def test_a_password_of_few_letters_does_not_take_messages_apart() -> None:
    Secrets("ab")
    assert hidden("ab: about a cab, 'ab'") == "•••: about a cab, '•••'"


def test_a_record_keeps_no_password_that_a_server_repeated(tmp_path: Path) -> None:
    Secrets("hunter2!")
    one = replace(
        record(status=Status.FAILED),
        causes=(text_note("FATAL: hunter2! is wrong"),),
        warnings=(Note("x", {"text": "said hunter2!"}),),
    )
    kept = Store(tmp_path).keep(one)
    assert kept.causes == (text_note("FATAL: ••• is wrong"),)
    assert not any(b"hunter2!" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "command",
    [
        "PGPASSWORD=S3cr3t psql -h db1",
        "export MYSQL_PWD='a S3cr3t'; mariadb shop",
        'LDAP_ENTRY_PASSWORD="a S3cr3t" ./load',
        "SSHPASS=S3cr3t sshpass -e ssh db1",
        "curl -H x API_TOKEN=S3cr3t",
        "psql -c \"ALTER ROLE app PASSWORD 'S3cr3t'\"",
    ],
)
def test_a_command_that_holds_a_password_is_refused_and_nothing_of_it_is_shown(command: str) -> None:
    with pytest.raises(InputError, match="contains a password"):
        without_password(Commands(command))
    assert "cr3t" not in redacted_sql(command)
    kept = redacted_toml(f"prepare = {json.dumps(command)}\n")
    assert "cr3t" not in kept or "ALTER" in command
    assert tomllib.loads(kept).keys() == {"prepare"} and redacted_toml(kept) == kept


@pytest.mark.parametrize(
    "command",
    [
        "PGPASSWORD=$PW psql",
        'PGPASSWORD="$(cat secret)" psql',
        "PGPASSWORD=`cat secret` psql",
        "cd $OLDPWD; BYPASS=1 ./x",
    ],
)
def test_a_command_that_gets_its_password_from_elsewhere_is_taken(command: str) -> None:
    assert without_password(Commands(command)) == Commands(command)


def test_the_password_of_entries_of_ones_own_is_hidden_and_that_of_made_ones_is_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LDAP_ENTRY_PASSWORD", "hunter2!")
    assert workloads.get("directory").variables({})["password"] == "hunter2!"
    assert hidden("bind uid=a?hunter2!") == "bind uid=a?•••"
    monkeypatch.delenv("LDAP_ENTRY_PASSWORD")
    assert workloads.get("directory").variables({})["password"] == "password"
    assert hidden("a password") == "a password"


REPEATED = (
    *("a", "A", "_", " ", ";", "=", "'", '"', "$", "{", "\\", "@", ":", "/", "\n", "#"),
    *(
        "password",
        "pwd ",
        "pass",
        "password '",
        "password $a$ ",
        "x://y:",
        "x://y:z@",
        "driver=",
        "driver=;",
        "secret=;",
    ),
    *(
        "dsn=pass;",
        'a="b" ',
        "'''",
        '"""',
        "k-",
        "E'",
        "identified by ",
        "PGPASSWORD=",
        'TOKEN="',
        "pwd='",
        "driver=x;pass",
    ),
)


@pytest.mark.parametrize("function", [redact.redacted, redact.redacted_sql, redact.redacted_toml])
def test_redaction_takes_time_in_proportion_to_any_text(function: Callable[[str], str]) -> None:
    """If it were quadratic, one of these texts would exceed the time limit of a test."""
    for part in REPEATED:
        for begin in ("", "driver=;@"):
            function(begin + part * (200_000 // len(part)))


def test_a_secret_that_a_cut_leaves_without_its_end_is_hidden() -> None:
    for text in ("PASSWORD 'hunter2", "IDENTIFIED BY $a$hunter2", "password ''hunter2"):
        assert "hunter2" not in redact.redacted_sql(text)


def test_a_message_of_megabytes_is_cut() -> None:
    assert len(str(InputError("server", "x" * 2_000_000))) < 100_000
