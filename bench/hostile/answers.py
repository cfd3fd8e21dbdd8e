"""Answers of hostile servers to ironbench's own queries, after a successful login."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from bench.hostile.behaviours import AFTER_LOGIN, ESCAPES, GARBAGE, LONG, SECRET, Behaviour, alone, asked, dripped
from bench.hostile.messages import Ldap, Mysql, Postgres
from bench.hostile.peer import LDAP, MYSQL, POSTGRES, Peer


def table(peer: Peer, values: Sequence[Sequence[bytes]], width: int | None = None) -> None:
    """Sends rows as an answer. `width`: announced number of columns, if it differs from the actual number."""
    if peer.protocol == POSTGRES:
        peer.send(Postgres.rows(values, width))
    elif peer.protocol == MYSQL:
        peer.send(*Mysql.rows(values, width))
    else:
        names = [(b"a%d" % number) for number in range(len(values[0]) if values else 0)]
        for row in values:
            cells = {name: [value] for name, value in zip(names, row, strict=True)}
            peer.send(Ldap.entry(b"dc=x", cells | {b"monitoredInfo": row, b"monitorOpCompleted": row}))
        peer.send(Ldap.result(Ldap.DONE))


def answered(*values: Sequence[bytes], width: int | None = None) -> Callable[[Peer], None]:
    return asked(lambda peer: table(peer, values, width))


def _endless_rows(peer: Peer) -> None:
    if peer.protocol == POSTGRES:
        peer.raw(Postgres.columns([b"c"]))
        peer.endless(Postgres.row([b"x" * 100]))
    elif peer.protocol == MYSQL:
        peer.send(b"\1", Mysql.column(b"c"))
        peer.endless(b"\x65\0\0\3\x64" + b"x" * 100)
    else:
        peer.endless(Ldap.message(peer.identity, Ldap.entry(b"dc=x", {b"monitoredInfo": [b"x" * 100]})))


def _endless_noise(peer: Peer) -> None:
    """Sends messages without end, but no row."""
    if peer.protocol == POSTGRES:
        peer.endless(Postgres.notice(b"still busy"))
    elif peer.protocol == MYSQL:
        column = Mysql.column(b"c")
        peer.send(b"\xfc\xff\xff")
        peer.endless(len(column).to_bytes(3, "little") + b"\2" + column)
    else:
        reference = Ldap.element(Ldap.REFERENCE, Ldap.element(0x04, b"ldap://attacker.example/"))
        peer.endless(Ldap.message(peer.identity, reference))


def _flood_unread(peer: Peer) -> None:
    """Sends without reading."""
    peer.let_in()
    _endless_noise(peer)


def _in_advance(peer: Peer) -> None:
    """Sends an answer before the query."""
    peer.let_in()
    peer.sequence = 1
    table(peer, [[b"1"]])
    while True:
        peer.take()
        table(peer, [[b"1"]])


def _twice(peer: Peer) -> None:
    sequence = peer.sequence
    with peer.at_once():
        table(peer, [[b"t"]])
        peer.sequence = sequence
        table(peer, [[b"f"]])


def _out_of_order(peer: Peer) -> None:
    if peer.protocol == POSTGRES:
        peer.send(Postgres.row([b"1"]), Postgres.columns([b"c"]), Postgres.complete(), Postgres.ready())
    elif peer.protocol == MYSQL:
        peer.send(b"\x011", b"\1", Mysql.column(b"c"), Mysql.end())
    else:
        peer.send(Ldap.result(Ldap.DONE), Ldap.entry(b"dc=x", {b"monitoredInfo": [b"1"]}))


def _odd_types(peer: Peer) -> None:
    if peer.protocol == POSTGRES:
        peer.send(Postgres.columns([b"c"], -1), Postgres.row([b"1"]), Postgres.complete(), Postgres.ready())
    else:
        peer.send(b"\1", Mysql.column(b"c", 255), b"\x011", Mysql.end())


def _many_columns(peer: Peer) -> None:
    if peer.protocol == POSTGRES:
        table(peer, [[b"1"] * 65_535])
    else:
        peer.send(b"\xfc\xff\xff", *[Mysql.column(b"c")] * 65_535, b"\x011" * 65_535, Mysql.end())


def _wants_data(peer: Peer) -> None:
    """Requests data, or a file of the client."""
    if peer.protocol == POSTGRES:
        peer.send(Postgres.message(b"G", b"\0\0\1\0\0"))
        peer.take()
        table(peer, [[b"1"]])
    else:
        peer.send(b"\xfb/etc/hostname")
        peer.take()
        peer.send(Mysql.ok())


def _cut_short(peer: Peer) -> None:
    answer = {POSTGRES: Postgres.columns([b"c"]), MYSQL: b"\x09\0\0\1abc"}.get(peer.protocol) or Ldap.message(
        peer.identity, Ldap.entry(b"dc=x", {})
    )
    peer.raw(answer[: len(answer) // 2])
    peer.client.close()


def _dripped(peer: Peer) -> None:
    with suppress(OSError):
        dripped(peer, {POSTGRES: Postgres.rows([[b"1" * 100]]), MYSQL: b"\xff\0\0\1" + LONG[:255]}.get(
            peer.protocol, Ldap.message(peer.identity, Ldap.entry(b"dc=x", {b"a": [b"1" * 100]}))
        ))  # fmt: skip


def _state(state: bytes) -> Callable[[Peer], None]:
    def answer(peer: Peer) -> None:
        peer.send(Postgres.columns([b"c"]), Postgres.row([b"1"]), Postgres.complete(), Postgres.ready(state))

    return asked(answer)


def _nested(peer: Peer) -> None:
    value = b"x"
    for _ in range(10_000):
        value = Ldap.element(0x30, value)
    peer.send(Ldap.element(Ldap.ENTRY, Ldap.element(0x04, b"dc=x"), value), Ldap.result(Ldap.DONE))


def _to_each(name: str, act: Callable[[Peer], None], *protocols: str, harmless: bool = False) -> Behaviour:
    return Behaviour(name, AFTER_LOGIN, alone(act, *protocols), harmless=harmless)


ANSWERS = (
    _to_each("closes at a question", asked(lambda peer: peer.client.close())),
    _to_each("resets at a question", asked(Peer.reset)),
    _to_each("never answers a question", asked(Peer.silence)),
    _to_each("garbage for an answer", asked(lambda peer: peer.raw(GARBAGE))),
    _to_each("an answer cut short", asked(_cut_short)),
    _to_each("one byte of an answer a second", asked(_dripped)),
    _to_each("endless rows", asked(_endless_rows)),
    _to_each("endless noise", asked(_endless_noise)),
    _to_each("sends without reading", _flood_unread),
    _to_each("no rows", answered()),
    _to_each("empty values", answered([b""])),
    _to_each("words for numbers", answered([b"nonsense"])),
    _to_each("negative numbers", answered([b"-5"])),
    _to_each("numbers out of range", answered([b"9" * 400])),
    _to_each("seven columns for each question", answered([b"1"] * 7)),
    _to_each("fewer columns announced than sent", answered([b"1", b"2"], width=1), POSTGRES, MYSQL),
    _to_each("more columns announced than sent", answered([b"1"], width=3), POSTGRES, MYSQL),
    _to_each("65,535 columns", asked(_many_columns), POSTGRES, MYSQL),
    _to_each("types out of range", asked(_odd_types), POSTGRES, MYSQL),
    _to_each("answers twice", asked(_twice)),
    _to_each("answers in advance", _in_advance),
    _to_each("an answer out of order", asked(_out_of_order)),
    _to_each("asks for data or a file", asked(_wants_data), POSTGRES, MYSQL),
    _to_each("in a transaction, it says", _state(b"T"), POSTGRES),
    _to_each("in a failed transaction, it says", _state(b"E"), POSTGRES),
    _to_each("an unknown state", _state(b"Q"), POSTGRES),
    _to_each("an error of 10 MB", asked(lambda peer: peer.error(LONG))),
    _to_each("an error with escapes", asked(lambda peer: peer.error(ESCAPES))),
    _to_each("an error that quotes the password", asked(lambda peer: peer.error(f"not {SECRET}!".encode()))),
    _to_each("10,000 levels in an entry", asked(_nested), LDAP),
    _to_each("indefinite lengths in an entry", asked(lambda peer: peer.raw(bytes([0x30, 0x80]) * 9000)), LDAP),
)
