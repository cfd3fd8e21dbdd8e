"""Hostile servers: how ironbench handles a PostgreSQL, MySQL or LDAP server that misbehaves.

Each behaviour is tested with `ironbench run --dsn …` in a separate process. The run must end within its time limit and
1 GB of memory, without a good trial, an unexpected exception, or the password in any output. `python -m bench hostile`
runs all behaviours; `python -m bench.hostile WORD…` runs those whose name contains a word, or those of the named
protocols.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from bench.figures import at_least, equal, report
from bench.hostile import judge
from bench.hostile.answers import ANSWERS
from bench.hostile.behaviours import DRIVEN, LOGIN, SECRET, Behaviour
from bench.hostile.driven import WHILE_DRIVEN
from bench.hostile.judge import Ended
from bench.hostile.peer import MYSQL, POSTGRES, PROTOCOLS, between, hostile

BEHAVIOURS: tuple[Behaviour, ...] = (*LOGIN, *ANSWERS, *WHILE_DRIVEN)
LEAST = 25
"""Minimum number of behaviours for each protocol."""
TESTS = Path(__file__).parents[2] / "tests"


def main(words: Sequence[str] = ()) -> None:
    with ProcessPoolExecutor(len(PROTOCOLS), mp_context=get_context("spawn")) as pool:
        ended = list(pool.map(_protocol, PROTOCOLS, repeat(tuple(words))))
    _table(dict(zip(PROTOCOLS, ended, strict=True)))
    for protocol, met in zip(PROTOCOLS, ended, strict=True):
        report(f"behaviours of a hostile server, {protocol}", len(met), "" if words else at_least(LEAST))
    wrong = sum(bool(one.faults) for met in ended for one in met.values())
    report("runs that ended in another way than they must", wrong, equal(0))


def _protocol(protocol: str, words: Sequence[str]) -> dict[str, Ended]:
    """Runs all behaviours against servers of one protocol; returns the results by behaviour."""
    sys.path.insert(0, str(TESTS))
    chosen = [one for one in BEHAVIOURS if protocol in one.acts and _is_meant(one, protocol, words)]
    with _real(protocol, [one.stage for one in chosen]) as real:
        return {f"{one.stage}: {one.name}": _met(one, protocol, real) for one in chosen}


def _is_meant(behaviour: Behaviour, protocol: str, words: Sequence[str]) -> bool:
    named = [word for word in words if word not in PROTOCOLS]
    protocols = [word for word in words if word in PROTOCOLS]
    return (not named or any(word in f"{behaviour.stage}: {behaviour.name}" for word in named)) and (
        not protocols or protocol in protocols
    )


def _met(behaviour: Behaviour, protocol: str, real: Real | None) -> Ended:
    act = behaviour.acts[protocol]
    if behaviour.stage == DRIVEN:
        assert real is not None
        connect, secret = real
        with between(protocol, connect, act, secret) as listener:
            ended = judge.run(behaviour, protocol, listener.port, listener.received, secret)
    else:
        with hostile(protocol, act) as listener:
            ended = judge.run(behaviour, protocol, listener.port, listener.received)
    if listener.faults:
        raise RuntimeError(f"{behaviour.name}, {protocol}: the server itself failed") from listener.faults[0]
    word = "; ".join(ended.faults) or "as it must"
    print(f"{behaviour.stage}: {behaviour.name}, {protocol}: {ended.seconds:.1f} s, {word}", flush=True)
    if ended.faults or os.environ.get("HOSTILE_CAUSES"):
        print(f"    exit {ended.code}, {', '.join(ended.statuses) or 'no trial'}: {ended.cause!r}", flush=True)
    return ended


def _table(ended: Mapping[str, Mapping[str, Ended]]) -> None:
    print(f"\n{'':<58}{''.join(f'{protocol:<28}' for protocol in ended)}")
    for name in dict.fromkeys(f"{one.stage}: {one.name}" for one in BEHAVIOURS):
        found = [met.get(name) for met in ended.values()]
        if any(found):
            print(f"{name:<58}{''.join(f'{_cell(one):<28}' for one in found)}".rstrip())


def _cell(ended: Ended | None) -> str:
    if ended is None:
        return "n/a"
    status = ended.statuses[0] if ended.statuses else "no trial"
    return f"{'FAULT' if ended.faults else 'well'} exit {ended.code} {status} {ended.seconds:.0f} s"


Real = tuple[Callable[[], socket.socket], str]
"""A function that connects to a real server, and the password for that server."""


@contextmanager
def _real(protocol: str, stages: Collection[str]) -> Iterator[Real | None]:
    """Starts a real server, or yields None if none is needed."""
    if DRIVEN not in stages:
        yield None
        return
    from tests.live.directory_server import load, started
    from tests.live.raw_mysql import PASSWORD, RawMysql
    from tests.live.raw_server import RawServer, free_port

    with tempfile.TemporaryDirectory(prefix="ironbench-hostile-") as name, ExitStack() as stack:
        folder = Path(name)
        if protocol == POSTGRES:
            server = stack.enter_context(RawServer())
            yield _to(f"{server.host}/.s.PGSQL.{server.port}"), SECRET
        elif protocol == MYSQL:
            mysql = RawMysql(folder, free_port())
            stack.callback(mysql.stop)
            yield _to(str(mysql.socket)), PASSWORD
        else:
            port = free_port()
            session = stack.enter_context(started(folder, listen=f"ldap://127.0.0.1:{port}"))
            load(session, 300)
            yield lambda: socket.create_connection(("127.0.0.1", port)), session._secrets.password or ""


def _to(path: str) -> Callable[[], socket.socket]:
    def connect() -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        server.connect(path)
        return server

    return connect
