"""Behaviours of hostile servers during the measurement: a proxy changes some answers of a real server."""

from __future__ import annotations

import socket
from collections.abc import Callable

from bench.hostile.behaviours import DRIVEN, ESCAPES, GARBAGE, Behaviour
from bench.hostile.messages import Ldap, Mysql, Postgres
from bench.hostile.peer import LDAP, MYSQL, POSTGRES, PROTOCOLS, Between, GoneError, Message

AFTER = 40
"""Number of messages that are passed on unchanged first, so that some transactions succeed."""


def later(act: Message) -> Message:
    """Applies `act` to messages after some successful transactions."""

    def change(peer: Between, message: bytes) -> None:
        if peer.messages <= AFTER:
            peer.raw(message)
        else:
            act(peer, message)

    return change


def instead(act: Callable[[Between], None]) -> Message:
    return later(lambda peer, _: act(peer))


def packet(message: bytes, body: bytes, further: int = 0) -> bytes:
    """Returns a MySQL packet with the sequence number of `message`, plus `further`."""
    return len(body).to_bytes(3, "little") + bytes([(message[3] + further) % 256]) + body


def identity(message: bytes) -> int:
    head = 2 + (message[1] & 0x7F if message[1] & 0x80 else 0)
    return int.from_bytes(message[head + 2 : head + 2 + message[head + 1]], "big", signed=True)


def operation(message: bytes) -> int:
    head = 2 + (message[1] & 0x7F if message[1] & 0x80 else 0)
    return message[head + 2 + message[head + 1]]


def ends_answer(peer: Between, message: bytes) -> bool:
    if peer.protocol == POSTGRES:
        return message[:1] == b"Z"
    if peer.protocol == MYSQL:
        return message[4:5] in (b"\0", b"\xfe") and len(message) < 20
    return operation(message) == Ldap.DONE


def _close(peer: Between) -> None:
    # Closing the socket would wait for the thread that reads from it.
    peer.client.shutdown(socket.SHUT_RDWR)
    raise GoneError


def _close_half(peer: Between) -> None:
    peer.client.shutdown(socket.SHUT_WR)
    peer.silence()


def _cut_short(peer: Between, message: bytes) -> None:
    peer.raw(message[: len(message) // 2])
    _close(peer)


def _noise(peer: Between, message: bytes) -> None:
    if peer.protocol == POSTGRES:
        peer.endless(Postgres.notice(b"still busy"))
    elif peer.protocol == MYSQL:
        # Result sets one after another, all empty.
        peer.endless(packet(message, Mysql.ok(2 | 8)))
    else:
        reference = Ldap.element(Ldap.REFERENCE, Ldap.element(0x04, b"ldap://attacker.example/"))
        peer.endless(Ldap.message(identity(message), reference))


def _rows(peer: Between, message: bytes) -> None:
    if peer.protocol == POSTGRES:
        peer.raw(Postgres.message(b"2") + Postgres.columns([b"c"]))
        peer.endless(Postgres.row([b"x" * 100]))
    elif peer.protocol == MYSQL:
        column = Mysql.column(b"c")
        peer.raw(packet(message, b"\1") + packet(message, column, 1))
        peer.endless(packet(message, b"\0\0\x64" + b"x" * 100))
    else:
        peer.endless(Ldap.message(identity(message), Ldap.entry(b"dc=x", {b"a": [b"x" * 100]})))


def _group(peer: Between, message: bytes) -> bytes | None:
    """Returns the whole answer that ends with `message`; None if it continues."""
    peer.kept["answer"] = peer.kept.get("answer", b"") + message
    return peer.kept.pop("answer") if ends_answer(peer, message) else None


def _twice(peer: Between, message: bytes) -> None:
    if (answer := _group(peer, message)) is not None:
        peer.raw(answer + answer)


def _in_advance(peer: Between, message: bytes) -> None:
    """Sends one extra answer, once; all others are correct."""
    if (answer := _group(peer, message)) is not None:
        peer.raw(answer if peer.kept.get("done") else answer + answer)
        peer.kept["done"] = True


def _out_of_order(peer: Between, message: bytes) -> None:
    """Sends the end of an answer first."""
    before = peer.kept.get("before", b"")
    if ends_answer(peer, message):
        peer.raw(message + before)
        peer.kept["before"] = b""
    else:
        peer.kept["before"] = before + message


def _without_columns(peer: Between, message: bytes) -> None:
    """Omits the description of rows. For MySQL the number of columns is omitted; MariaDB adds a byte that indicates
    whether descriptions follow."""
    described = message[:1] == b"T" if peer.protocol == POSTGRES else message[3] == 1 and len(message) in (5, 6)
    if not described:
        peer.raw(message)


def _wider(peer: Between, message: bytes) -> None:
    """Sends a row with one column more than described."""
    if peer.protocol == POSTGRES and message[:1] == b"D":
        count = int.from_bytes(message[5:7], "big") + 1
        message = Postgres.message(b"D", count.to_bytes(2, "big") + message[7:] + b"\0\0\0\x01x")
    elif (
        peer.protocol == MYSQL and len(message) > 5 and message[4:8] != b"\x03def" and message[4] not in (0, 0xFE, 0xFF)
    ):
        message = packet(message, message[4:] + b"\x01x")
    peer.raw(message)


def _without_rows(peer: Between, message: bytes) -> None:
    dropped = {POSTGRES: message[:1] == b"D", LDAP: peer.protocol == LDAP and operation(message) == Ldap.ENTRY}
    if not dropped.get(peer.protocol):
        peer.raw(message)


def _state(state: bytes) -> Message:
    def change(peer: Between, message: bytes) -> None:
        peer.raw(Postgres.ready(state) if message[:1] == b"Z" else message)

    return change


def _flag(flag: int) -> Message:
    """Sets a status flag in every OK packet."""

    def change(peer: Between, message: bytes) -> None:
        if len(message) >= 11 and message[4] in (0, 0xFE) and len(message) < 20:
            message = message[:7] + bytes([message[7] | flag]) + message[8:]
        peer.raw(message)

    return later(change)


def _fails(words: bytes) -> Message:
    """Replaces each answer by an error. `%` stands for the password."""

    def change(peer: Between, message: bytes) -> None:
        if not ends_answer(peer, message):
            return
        text = words.replace(b"%", peer.secret)
        if peer.protocol == POSTGRES:
            peer.raw(Postgres.error(text) + message)
        elif peer.protocol == MYSQL:
            peer.raw(packet(b"\0\0\0\1", Mysql.error(text)))
        else:
            peer.raw(Ldap.message(identity(message), Ldap.result(Ldap.DONE, 80, text)))

    return later(change)


def _wants_data(peer: Between, message: bytes) -> None:
    peer.raw(
        Postgres.message(b"G", b"\0\0\1\0\0") if peer.protocol == POSTGRES else packet(message, b"\xfb/etc/hostname")
    )


def _long(peer: Between) -> None:
    heads = {POSTGRES: b"D\x7f\xff\xff\xff", MYSQL: b"\xff\xff\xff\1", LDAP: b"\x30\x84\x7f\xff\xff\xff"}
    peer.raw(heads[peer.protocol])
    peer.endless(bytes(1 << 20))


def _dripped(peer: Between, message: bytes) -> None:
    for byte in message:
        peer.raw(bytes([byte]))
        if peer.ended.wait(1.0):
            return


def _odd_types(peer: Between, message: bytes) -> None:
    if peer.protocol == POSTGRES and message[:1] == b"T":
        message = Postgres.columns([b"answer"], -1)
    peer.raw(message)


def _shutdown(peer: Between, message: bytes) -> None:
    """Announces a shutdown that does not happen."""
    if peer.protocol == POSTGRES:
        peer.raw(Postgres.notice(b"terminating connection", b"N", b"WARNING", b"57P02") + message)
    else:
        peer.raw(Ldap.message(0, Ldap.result(Ldap.EXTENDED, 52, b"shutting down")) + message)


def _elsewhere(peer: Between, message: bytes) -> None:
    there = Ldap.element(0xA3, Ldap.element(0x04, b"ldap://attacker.example/dc=x"))
    if operation(message) == Ldap.DONE:
        message = Ldap.message(identity(message), Ldap.result(Ldap.DONE, 10, more=there))
    peer.raw(message)


def _nested(peer: Between, message: bytes) -> None:
    value = b"x"
    for _ in range(10_000):
        value = Ldap.element(0x30, value)
    peer.raw(Ldap.message(identity(message), Ldap.element(Ldap.ENTRY, Ldap.element(0x04, b"dc=x"), value)) + message)


def _done_as(change: Callable[[int], bytes]) -> Message:
    """Changes the end of each search; `change` gets the message number."""

    def act(peer: Between, message: bytes) -> None:
        peer.raw(change(identity(message)) if operation(message) == Ldap.DONE else message)

    return later(act)


def _odd_code(number: int) -> bytes:
    """Sends a text as the result code."""
    words = Ldap.element(0x04, b"")
    return Ldap.message(number, Ldap.element(Ldap.DONE, Ldap.element(0x04, b"\0"), words, words))


def _wide_number(number: int) -> bytes:
    """Sends a message number of nine bytes."""
    wide = Ldap.element(0x02, number.to_bytes(9, "big"))
    return Ldap.element(0x30, wide, Ldap.result(Ldap.DONE))


def driven(name: str, change: Message, *protocols: str, harmless: bool = False, unanswered: bool = False) -> Behaviour:
    plain = {MYSQL: "tls=disable"}
    acts = dict.fromkeys(protocols or PROTOCOLS, change)
    return Behaviour(name, DRIVEN, acts, plain, harmless=harmless, unanswered=unanswered)


WHILE_DRIVEN = (
    driven("nothing wrong", lambda peer, message: peer.raw(message), harmless=True),
    driven("dies after some transactions", instead(_close)),
    driven("resets in the middle of a transaction", instead(Between.reset)),
    driven("closes its half", instead(_close_half)),
    driven("stops answering", instead(Between.silence), unanswered=True),
    # For MySQL, the packet header announces more than is sent.
    driven("garbage", instead(lambda peer: peer.raw(GARBAGE)), unanswered=True),
    driven("endless garbage", instead(lambda peer: peer.endless(GARBAGE))),
    driven("cut short", later(_cut_short)),
    driven("one byte a second", later(_dripped), unanswered=True),
    driven("endless noise", later(_noise), unanswered=True),
    driven("endless rows", later(_rows), unanswered=True),
    driven("length 2 GiB", instead(_long)),
    driven("answers twice", later(_twice)),
    driven("one answer in advance", later(_in_advance)),
    driven("answers out of order", later(_out_of_order)),
    driven("rows not described", later(_without_columns), POSTGRES, MYSQL),
    driven("rows wider than described", later(_wider), POSTGRES, MYSQL),
    driven("rows left out", later(_without_rows), POSTGRES, LDAP),
    driven("always idle, it says", later(_state(b"I")), POSTGRES),
    driven("always in a transaction, it says", later(_state(b"T")), POSTGRES),
    driven("always in a failed transaction, it says", later(_state(b"E")), POSTGRES),
    driven("an unknown state", later(_state(b"?")), POSTGRES),
    driven("always in a transaction, it says (flag)", _flag(1), MYSQL),
    driven("more results, it says", _flag(8), MYSQL, unanswered=True),
    driven("errors of 7 MB", _fails(b"x" * (7 << 20))),
    driven("errors with escapes", _fails(ESCAPES)),
    driven("errors that quote the password", _fails(b"wrong: %")),
    driven("errors without text", _fails(b"")),
    # PostgreSQL: a client refuses to send data and waits for an error message that never comes.
    driven("asks for data", later(_wants_data), POSTGRES, unanswered=True),
    driven("asks for a file", later(_wants_data), MYSQL),
    driven("types out of range", later(_odd_types), POSTGRES, harmless=True),
    # PostgreSQL: a warning, followed by correct answers.
    driven("warns that it ends", later(_shutdown), POSTGRES, harmless=True),
    driven("says that it ends", later(_shutdown), LDAP),
    driven("refers elsewhere", later(_elsewhere), LDAP),
    driven("10,000 levels in an entry", later(_nested), LDAP, harmless=True),
    driven("the answer to another operation", _done_as(lambda n: Ldap.message(n, Ldap.result(Ldap.BOUND))), LDAP),
    driven("the number of another request", _done_as(lambda n: Ldap.message(n + 7, Ldap.result(Ldap.DONE))), LDAP),
    driven("an unknown result code", _done_as(lambda n: Ldap.message(n, Ldap.result(Ldap.DONE, 121))), LDAP),
    driven("a negative result code", _done_as(lambda n: Ldap.message(n, Ldap.result(Ldap.DONE, 255))), LDAP),
    driven("a text for a result code", _done_as(_odd_code), LDAP),
    driven("a number of nine bytes", _done_as(_wide_number), LDAP),
)
