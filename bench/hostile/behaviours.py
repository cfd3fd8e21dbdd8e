"""Behaviours of hostile servers. Before and during login, and for ironbench's own queries, no real server is
involved."""

from __future__ import annotations

import base64
import random
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.hostile.messages import Ldap, Mysql, Postgres
from bench.hostile.peer import CERTIFICATES, LDAP, MYSQL, POSTGRES, PROTOCOLS, Peer

SECRET = "correct-horse/battery"
"""The password in the DSN."""
GARBAGE = random.Random(1).randbytes(4096)
ESCAPES = b"\x1b[31mred\x1b[0m \x1b]0;title\x07 \r\x00\xff\xfe \xc3("[:-1]
LONG = b"x" * (10 << 20)
BEFORE_LOGIN, AFTER_LOGIN, DRIVEN = "before login", "after login", "driven"


@dataclass(frozen=True)
class Behaviour:
    """A behaviour of a server, by protocol; protocols without this behaviour are missing."""

    name: str
    stage: str
    acts: Mapping[str, Callable[..., None]]
    words: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the DSN."""
    trusted: bool = True
    """Whether the client connects through the loopback interface, where a clear-text password is allowed."""
    unanswered: bool = False
    """Whether transactions never end. This also happens with servers that are not hostile, so the trial may be
    flagged."""
    harmless: bool = False
    """Whether a trial may be good: the client cannot detect anything false in the server's messages."""


def alone(act: Callable[[Peer], None], *protocols: str) -> dict[str, Callable[..., None]]:
    return dict.fromkeys(protocols or PROTOCOLS, act)


def introduced(act: Callable[[Peer], None]) -> Callable[[Peer], None]:
    """Runs `act` after the client's first login message."""

    def both(peer: Peer) -> None:
        peer.introduction()
        act(peer)

    return both


def asked(answer: Callable[[Peer], None]) -> Callable[[Peer], None]:
    """Sends `answer` to every request after the login."""

    def act(peer: Peer) -> None:
        for _ in peer.asked():
            answer(peer)

    return act


def sent(**data: bytes) -> dict[str, Callable[..., None]]:
    """Sends these bytes, by protocol, and then nothing more."""

    def act(peer: Peer, said: bytes) -> None:
        peer.introduction()
        peer.raw(said)
        peer.silence()

    return {protocol: (lambda peer, said=said: act(peer, said)) for protocol, said in data.items()}


def dripped(peer: Peer, data: bytes) -> None:
    for byte in data:
        peer.raw(bytes([byte]))
        if peer.ended.wait(1.0):
            return
    peer.silence()


def admission(peer: Peer) -> bytes:
    """Returns the message that accepts the login."""
    if peer.protocol == POSTGRES:
        return Postgres.let_in()
    if peer.protocol == MYSQL:
        return len(Mysql.ok()).to_bytes(3, "little") + bytes([peer.sequence]) + Mysql.ok()
    return Ldap.message(peer.identity, Ldap.result(Ldap.BOUND))


def refused(peer: Peer, text: bytes) -> None:
    """Sends an error instead of accepting the login."""
    if peer.protocol == POSTGRES:
        peer.send(Postgres.error(text, b"28P01", b"FATAL"))
    elif peer.protocol == MYSQL:
        peer.send(Mysql.error(text, 1045, b"#28000"))
    else:
        peer.send(Ldap.result(Ldap.BOUND, 49, text))


def for_each(protocols: Iterable[str], acts: Callable[[str], Callable[..., None]]) -> dict[str, Callable[..., None]]:
    return {protocol: acts(protocol) for protocol in protocols}


def scram(
    peer: Peer, rounds: int = 4096, nonce: str = "{}more", last: bytes = b"v=AAAA", *, skip: bool = False
) -> None:
    """Runs the server side of SCRAM without knowing the password. `nonce` contains the client's nonce; `skip` omits the
    last message."""
    if peer.protocol == POSTGRES:
        peer.introduction()
        peer.send(Postgres.authentication(10, b"SCRAM-SHA-256\0\0"))
        first = peer.take()
    else:
        first = peer.introduction()
    found = re.search(rb"r=([!-+\--~]+)", first)
    ours = found[1].decode() if found else ""
    salt = base64.b64encode(b"0123456789abcdef").decode()
    challenge = f"r={nonce.format(ours)},s={salt},i={rounds}".encode()
    if peer.protocol == POSTGRES:
        peer.send(Postgres.authentication(11, challenge))
        peer.take()
        if not skip:
            peer.send(Postgres.authentication(12, last))
        peer.send(Postgres.let_in())
    else:
        peer.send(Ldap.result(Ldap.BOUND, Ldap.IN_PROGRESS, more=Ldap.element(0x87, challenge)))
        peer.take()
        peer.send(Ldap.result(Ldap.BOUND, more=b"" if skip else Ldap.element(0x87, last)))
    peer.silence()


def _scram(**how: Any) -> dict[str, Callable[..., None]]:
    return alone(lambda peer: scram(peer, **how), POSTGRES, LDAP)


SCRAM = {LDAP: "mechanism=SCRAM-SHA-256"}
ROOT = CERTIFICATES / "root.crt"
VERIFIED = {
    POSTGRES: f"sslmode=verify-full&sslrootcert={ROOT}",
    MYSQL: f"tls=verify-full&tls_ca={ROOT}",
    LDAP: f"tls=verify-full&tls_ca={ROOT}",
}
REQUIRED = {POSTGRES: "sslmode=require", MYSQL: "tls=require", LDAP: "tls=require"}
_TLS_GREETING = Mysql.greeting(capabilities=Mysql.CAPABILITIES | Mysql.SSL)


def _clear(peer: Peer) -> None:
    """Requests the clear-text password and accepts any."""
    if peer.protocol == POSTGRES:
        peer.introduction()
        peer.send(Postgres.authentication(3))
        peer.take()
        peer.send(Postgres.let_in())
    elif peer.protocol == MYSQL:
        peer.introduction()
        peer.send(b"\1\4")
        peer.take()
        peer.send(Mysql.ok())
    else:
        peer.introduction()
        peer.send(Ldap.result(Ldap.BOUND))
    peer.silence()


def _clear_within(certificate: str) -> Callable[[Peer], None]:
    """Requests the clear-text password inside TLS."""

    def act(peer: Peer) -> None:
        agree(peer)
        peer.secured(certificate)
        if peer.protocol == POSTGRES:
            peer.introduction()
            peer.send(Postgres.authentication(3))
        elif peer.protocol == MYSQL:
            peer.take()
            peer.send(b"\1\4")
        peer.take()
        peer.silence()

    return act


def agree(peer: Peer, more: bytes = b"") -> None:
    """Runs the protocol up to the start of TLS. `more`: clear-text bytes sent together with the consent."""
    if peer.protocol == POSTGRES:
        peer.introduction(tls=b"S" + more)
    elif peer.protocol == MYSQL:
        peer.raw(len(_TLS_GREETING).to_bytes(3, "little") + b"\0" + _TLS_GREETING + more)
        peer.sequence = 1
        peer.take()
    else:
        request = peer.take()
        assert request[0] == 0x77
        peer.raw(Ldap.message(peer.identity, Ldap.result(Ldap.EXTENDED)) + more)


def _stripped(peer: Peer) -> None:
    """Agrees to TLS, but continues in clear text."""
    agree(peer)
    peer.raw(admission(peer))
    peer.silence()


def _injected(peer: Peer) -> None:
    """Injects clear-text bytes that look like the first answer inside TLS."""
    more = {POSTGRES: Postgres.let_in(), MYSQL: b"\x07\0\0\2" + Mysql.ok(), LDAP: b""}[peer.protocol]
    if peer.protocol == LDAP:
        more = b"".join(Ldap.message(number, Ldap.result(Ldap.BOUND)) for number in range(1, 9))
    agree(peer, more)
    peer.secured()
    peer.silence()


def _endless_login(peer: Peer) -> None:
    peer.introduction()
    if peer.protocol == POSTGRES:
        peer.endless(Postgres.notice(b"still busy"))
    elif peer.protocol == MYSQL:
        peer.endless(b"\2\0\0\2\1\3")
    else:
        peer.endless(Ldap.message(peer.identity, Ldap.element(0x79)))


def _endless_parameters(peer: Peer) -> None:
    peer.introduction()
    peer.raw(Postgres.authentication(0))
    number = 0
    while not peer.ended.is_set():
        peer.raw(b"".join(Postgres.parameter(b"p%d" % one, b"v" * 1000) for one in range(number, number + 1000)))
        number += 1000


def _again_and_again(peer: Peer) -> None:
    """Requests one authentication proof after another."""
    peer.introduction()
    for number in range(10**9):
        if peer.protocol == POSTGRES:
            peer.send(Postgres.authentication(5, number.to_bytes(4, "big")))
        elif peer.protocol == MYSQL:
            peer.send(b"\xfemysql_native_password\0" + number.to_bytes(20, "big") + b"\0")
        else:
            peer.send(Ldap.result(Ldap.BOUND, Ldap.IN_PROGRESS, more=Ldap.element(0x87, b"r=x,s=AAAA,i=4096")))
        peer.take()


def _old_method(peer: Peer) -> None:
    peer.introduction()
    if peer.protocol == POSTGRES:
        peer.send(Postgres.authentication(5, b"salt"))
        peer.take()
        refused(peer, b"no")
    else:
        peer.send(b"\xfemysql_clear_password\0")
        peer.take()
    peer.silence()


def _unknown_method(peer: Peer) -> None:
    peer.introduction()
    if peer.protocol == POSTGRES:
        peer.send(Postgres.authentication(99))
    elif peer.protocol == MYSQL:
        peer.send(b"\xfedialog\0Password: ")
    else:
        peer.send(Ldap.result(Ldap.BOUND, 7))
    peer.silence()


def _short_nonce(peer: Peer) -> None:
    greeting = Mysql.greeting(plugin=b"mysql_native_password")
    peer.introduction(greeting=greeting)
    peer.send(b"\xfemysql_native_password\0")
    peer.take()
    peer.silence()


def _version(version: bytes) -> Callable[[Peer], None]:
    def act(peer: Peer) -> None:
        if peer.protocol == POSTGRES:
            peer.introduction()
            peer.raw(Postgres.authentication(0) + Postgres.parameter(b"server_version", version))
            peer.raw(Postgres.parameter(b"server_encoding", version) + Postgres.message(b"K", bytes(8)))
            peer.raw(Postgres.ready())
        else:
            peer.introduction(greeting=Mysql.greeting(version=version))
            peer.send(Mysql.ok())
        while True:
            peer.take()
            peer.error(version[:1000])

    return act


def _half_closed(peer: Peer) -> None:
    peer.client.shutdown(socket.SHUT_WR)
    peer.silence()


def _without_fields(peer: Peer) -> None:
    empty = {POSTGRES: Postgres.message(b"E", b"\0"), MYSQL: b"\xff", LDAP: Ldap.element(Ldap.BOUND)}
    peer.send(empty[peer.protocol])
    peer.silence()


def _out_of_order(peer: Peer) -> None:
    """Sends the end of the login before its start."""
    if peer.protocol == POSTGRES:
        peer.introduction()
        peer.send(Postgres.ready(), Postgres.let_in())
    elif peer.protocol == MYSQL:
        peer.send(Mysql.ok(), Mysql.greeting())
    else:
        peer.introduction()
        peer.send(Ldap.result(Ldap.DONE), Ldap.result(Ldap.BOUND))
    peer.silence()


_DEEP = bytes([0x30, 0x80]) * 10_000
_NESTED = Ldap.element(0x04, b"dc=x")
for _ in range(10_000):
    _NESTED = Ldap.element(0x30, _NESTED)

LOGIN = (
    Behaviour("closes at once", BEFORE_LOGIN, alone(lambda peer: None)),
    Behaviour("resets at once", BEFORE_LOGIN, alone(Peer.reset)),
    Behaviour("never answers", BEFORE_LOGIN, alone(Peer.silence)),
    Behaviour("garbage at once", BEFORE_LOGIN, alone(lambda peer: (peer.raw(GARBAGE), peer.silence())[1])),
    Behaviour("garbage for a login", BEFORE_LOGIN, alone(introduced(lambda peer: peer.raw(GARBAGE)))),
    Behaviour("endless garbage", BEFORE_LOGIN, alone(lambda peer: peer.endless(GARBAGE))),
    Behaviour(
        "a message cut short",
        BEFORE_LOGIN,
        alone(introduced(lambda peer: peer.raw(admission(peer)[: len(admission(peer)) // 2]))),
    ),
    Behaviour(
        "length 0",
        BEFORE_LOGIN,
        sent(postgres=Postgres.message(b"R", length=0), mysql=b"\0\0\0\2", ldap=b"\x30\0"),
    ),
    Behaviour(
        "negative length",
        BEFORE_LOGIN,
        sent(postgres=Postgres.message(b"E", length=-5), ldap=b"\x30\x89" + b"\xff" * 9),
    ),
    Behaviour(
        "length 2 GiB",
        BEFORE_LOGIN,
        {
            POSTGRES: introduced(lambda peer: peer.endless(Postgres.message(b"E", bytes(1 << 20), 0x7FFFFFFF))),
            MYSQL: introduced(lambda peer: peer.endless(b"\xff\xff\xff\2" + bytes(0xFFFFFF))),
            LDAP: introduced(lambda peer: peer.endless(b"\x30\x84\x7f\xff\xff\xff" + bytes(1 << 20))),
        },
    ),
    Behaviour("length 4 GiB", BEFORE_LOGIN, sent(ldap=b"\x30\x85\1\0\0\0\0")),
    Behaviour(
        "one byte a second", BEFORE_LOGIN, alone(introduced(lambda peer: dripped(peer, admission(peer) + bytes(60))))
    ),
    Behaviour("endless messages during login", BEFORE_LOGIN, alone(_endless_login)),
    Behaviour("endless parameters", BEFORE_LOGIN, alone(_endless_parameters, POSTGRES)),
    Behaviour("resets during login", BEFORE_LOGIN, alone(introduced(Peer.reset))),
    Behaviour("closes its half during login", BEFORE_LOGIN, alone(introduced(_half_closed))),
    Behaviour("asks for the password, plain TCP", BEFORE_LOGIN, alone(_clear), trusted=False),
    Behaviour(
        "asks for the password, unverified TLS",
        BEFORE_LOGIN,
        alone(_clear_within("self_signed")),
        words={LDAP: "tls=prefer"},
        trusted=False,
    ),
    Behaviour("asks for an old method", BEFORE_LOGIN, alone(_old_method, POSTGRES, MYSQL), trusted=False),
    Behaviour("asks for an unknown method", BEFORE_LOGIN, alone(_unknown_method)),
    Behaviour("asks for proofs again and again", BEFORE_LOGIN, alone(_again_and_again), words=SCRAM),
    Behaviour("short nonce", BEFORE_LOGIN, alone(_short_nonce, MYSQL)),
    Behaviour("SCRAM: bad signature", BEFORE_LOGIN, _scram(), words=SCRAM, trusted=False),
    Behaviour("SCRAM: no signature", BEFORE_LOGIN, _scram(skip=True), words=SCRAM, trusted=False),
    Behaviour("SCRAM: 4,000,000,000 rounds", BEFORE_LOGIN, _scram(rounds=4 * 10**9), words=SCRAM),
    Behaviour("SCRAM: another nonce", BEFORE_LOGIN, _scram(nonce="other"), words=SCRAM),
    Behaviour(
        "TLS refused",
        BEFORE_LOGIN,
        alone(lambda peer: (peer.let_in(), peer.silence())[1]),
        words=VERIFIED,
        trusted=False,
    ),
    Behaviour("self-signed certificate", BEFORE_LOGIN, alone(_clear_within("self_signed")), VERIFIED, False),
    Behaviour("TLS agreed, then plain text", BEFORE_LOGIN, alone(_stripped), REQUIRED, False),
    Behaviour("TLS agreed, then plain text, verified", BEFORE_LOGIN, alone(_stripped), VERIFIED, False),
    Behaviour("answers injected before TLS", BEFORE_LOGIN, alone(_injected), REQUIRED, False),
    Behaviour(
        "a handshake that does not end", BEFORE_LOGIN, alone(lambda peer: (agree(peer), peer.silence())[1]), REQUIRED
    ),
    Behaviour("refusal of 10 MB", BEFORE_LOGIN, alone(introduced(lambda peer: refused(peer, LONG)))),
    Behaviour("refusal of 7 MB", BEFORE_LOGIN, alone(introduced(lambda peer: refused(peer, LONG[: 7 << 20])))),
    Behaviour("refusal with escapes", BEFORE_LOGIN, alone(introduced(lambda peer: refused(peer, ESCAPES)))),
    Behaviour(
        "refusal that quotes the password",
        BEFORE_LOGIN,
        alone(introduced(lambda peer: refused(peer, f"password {SECRET} is wrong".encode()))),
    ),
    Behaviour("refusal without fields", BEFORE_LOGIN, alone(introduced(_without_fields))),
    Behaviour("the login out of order", BEFORE_LOGIN, alone(_out_of_order)),
    Behaviour(
        "lets in twice",
        BEFORE_LOGIN,
        alone(introduced(lambda peer: (peer.raw(2 * admission(peer)), peer.silence())[1]), POSTGRES, MYSQL),
    ),
    Behaviour("no version", BEFORE_LOGIN, alone(_version(b""), POSTGRES, MYSQL)),
    Behaviour("version with escapes", BEFORE_LOGIN, alone(_version(b"\x1b[31m1.\xff"), POSTGRES, MYSQL)),
    Behaviour("version of 60 kB", BEFORE_LOGIN, alone(_version(b"9" * 60_000), POSTGRES, MYSQL)),
    Behaviour("indefinite lengths", BEFORE_LOGIN, sent(ldap=_DEEP)),
    Behaviour("10,000 levels", BEFORE_LOGIN, sent(ldap=Ldap.message(1, _NESTED))),
    Behaviour(
        "a referral for a login",
        BEFORE_LOGIN,
        alone(
            introduced(
                lambda peer: peer.send(
                    Ldap.result(
                        Ldap.BOUND, 10, more=Ldap.element(0xA3, Ldap.element(0x04, b"ldap://attacker.example/dc=x"))
                    )
                )
            ),
            LDAP,
        ),
    ),
)
