"""Sessions and trials on the hostile servers of bench/hostile that need no waiting. `python -m bench hostile` runs all
of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from user import FULL_SPEED, User

from bench.hostile import judge
from bench.hostile.answers import ANSWERS, answered
from bench.hostile.behaviours import LOGIN, SECRET, Behaviour
from bench.hostile.peer import LDAP, MYSQL, POSTGRES, PROTOCOLS, hostile
from ironbench import _core
from ironbench.engines import server_session
from ironbench.engines.mariadb import dsn as mysql_dsn
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.engines.postgres import dsn as postgres_dsn
from ironbench.engines.postgres.session import PostgresSession
from ironbench.engines.server_session import ServerSession
from ironbench.engines.slapd import dsn as ldap_dsn
from ironbench.engines.slapd.session import SlapdSession
from ironbench.errors import FailureError, IronbenchError

pytestmark = pytest.mark.live

SESSIONS: dict[str, Callable[[str], ServerSession[Any, Any]]] = {
    POSTGRES: lambda text: PostgresSession(*postgres_dsn.parse(text, {})),
    MYSQL: lambda text: MariadbSession(*mysql_dsn.parse(text, {})),
    LDAP: lambda text: SlapdSession(*ldap_dsn.parse(text, {})),
}
WAITING = (
    "never answers",
    "one byte a second",
    "endless messages during login",
    "endless parameters",
    "closes its half during login",
    "a handshake that does not end",
    "length 4 GiB",
)
"""Logins that end at the connection timeout."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_session, "_ANSWER_S", 0.3)


def fault(behaviour: Behaviour, protocol: str) -> str:
    """Returns what is wrong with the end of a session on this server; empty if nothing."""
    with hostile(protocol, behaviour.acts[protocol]) as listener:
        host = "127.0.0.1" if behaviour.trusted else "0.0.0.0"
        words = behaviour.words.get(protocol, "")
        try:
            session = SESSIONS[protocol](judge.address(protocol, host, listener.port, SECRET, words))
            try:
                session.facts()
                session.counters()
            finally:
                session.stop()
            told = ""
        except IronbenchError as error:
            told = f"{error} {error.hint}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        if SECRET in told:
            return "the password is in the message"
        if not behaviour.trusted and SECRET.encode() in listener.received:
            return "the password was sent"
        if len(told) > 20_000 or any(ord(letter) < 32 and letter not in "\n\t" for letter in told):
            return f"a message of {len(told)} characters: {told[:200]!r}"
        return ""


def faults(behaviours: Sequence[Behaviour], protocol: str) -> dict[str, str]:
    met = {one.name: fault(one, protocol) for one in behaviours if protocol in one.acts and one.name not in WAITING}
    assert len(met) >= 15
    return {name: told for name, told in met.items() if told}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hostile_login_ends_in_an_error_without_the_password(protocol: str) -> None:
    assert faults(LOGIN, protocol) == {}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_hostile_answers_end_in_an_error_or_are_understood(protocol: str) -> None:
    assert faults(ANSWERS, protocol) == {}


def connected(protocol: str, port: int) -> Any:
    """Returns a connection of the core."""
    text = judge.address(protocol, "127.0.0.1", port, SECRET, "")
    if protocol == POSTGRES:
        where, secrets = postgres_dsn.parse(text, {})
        return _core.Connection(json.dumps(where.connection(secrets)).encode())
    if protocol == MYSQL:
        there, secrets = mysql_dsn.parse(text, {})
        return _core.MysqlConnection(json.dumps(there.connection(secrets)).encode())
    directory, secrets = ldap_dsn.parse(text, {})
    return _core.LdapConnection(json.dumps(directory.connection(secrets)).encode())


def answering(name: str, protocol: str) -> Any:
    return hostile(protocol, next(one for one in ANSWERS if one.name == name).acts[protocol])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one(protocol: str) -> None:
    question = "search ?1.1" if protocol == LDAP else "SELECT 1"
    with answering("answers twice", protocol) as listener:
        asking = connected(protocol, listener.port)
        first = asking.query(question)
        with pytest.raises(FailureError):
            assert asking.query(question) == first
            asking.query(question)
        asking.close()


@pytest.mark.parametrize("name", ["never answers a question", "one byte of an answer a second", "endless noise"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_question_with_a_limit_ends_there(protocol: str, name: str) -> None:
    if (protocol, name) == (MYSQL, "endless noise"):
        pytest.skip("MySQL's descriptions of columns have an end")
    with answering(name, protocol) as listener:
        asking = connected(protocol, listener.port)
        with pytest.raises(FailureError, match="within the time limit"):
            asking.query("search ?1.1" if protocol == LDAP else "SELECT 1", 0.3)
        asking.close()


@pytest.mark.parametrize(
    "name", ["never answers a question", "one byte of an answer a second", "endless noise", "endless rows"]
)
def test_a_count_of_a_directory_ends_at_the_limit_of_an_operation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironbench.engines.slapd.session.OPERATION_S", 0.3)
    with answering(name, LDAP) as listener:
        session = SESSIONS[LDAP](judge.address(LDAP, "127.0.0.1", listener.port, SECRET, ""))
        with pytest.raises(FailureError, match="within the time limit"):
            session.count("search ?1.1", among=100)  # type: ignore[attr-defined]
        session.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_has_a_largest_size(protocol: str) -> None:
    with answering("endless rows", protocol) as listener:
        asking = connected(protocol, listener.port)
        with pytest.raises(FailureError, match="larger than 64 MiB"):
            asking.query("search ?monitoredInfo" if protocol == LDAP else "SELECT 1")
        asking.close()


@pytest.mark.parametrize("protocol", [POSTGRES, MYSQL])
def test_an_answer_that_fits_no_question_is_a_failure_of_the_server(protocol: str) -> None:
    with (
        hostile(protocol, answered([b"nonsense"] * 7)) as listener,
        pytest.raises(FailureError, match="unexpected response"),
    ):
        SESSIONS[protocol](judge.address(protocol, "0.0.0.0", listener.port, SECRET, "")).facts()


@pytest.mark.parametrize(
    ("protocol", "name"),
    [(POSTGRES, "endless rows"), (MYSQL, "words for numbers"), (LDAP, "an error with escapes")],
)
def test_a_command_given_a_hostile_server_ends_with_a_message(user: User, protocol: str, name: str) -> None:
    behaviour = next(one for one in ANSWERS if one.name == name)
    (user.home / "script.sql").write_text("SELECT 1;\n")
    work = ["directory", "--with", "entries=300"] if protocol == LDAP else ["script", "script.sql"]
    with hostile(protocol, behaviour.acts[protocol]) as listener:
        told = user("run", *work, "--dsn", judge.address(protocol, "127.0.0.1", listener.port, SECRET, ""), *FULL_SPEED)
    assert told.code in (1, 2, 3)
    assert "error: " in told.stderr and "Traceback" not in told.stderr
    assert SECRET not in told.stdout + told.stderr and "\x1b" not in told.stderr
