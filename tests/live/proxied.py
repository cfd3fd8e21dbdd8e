"""A running `ironbench capture --listen`, and programs that connect to its proxy."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from raw_server import RawServer, binary
from user import Begun, Told, User

from ironbench import _core

_LISTENING = re.compile(r"listening on (\S+);")


@dataclass(frozen=True)
class Proxied:
    begun: Begun
    server: RawServer
    address: str
    """`127.0.0.1:PORT`, or the path of a socket."""

    @property
    def place(self) -> dict[str, Any]:
        """Host and port, as a connection of a drive plan names them."""
        if self.address.startswith("/"):
            path = Path(self.address)
            return {"host": str(path.parent), "port": int(path.name.rpartition(".")[2])}
        host, _, port = self.address.rpartition(":")
        return {"host": host, "port": int(port)}

    def connect(self, **changes: Any) -> _core.Connection:
        return self.server.connect(**(self.place | changes))

    def words(self, user: str = "postgres") -> list[str]:
        return ["-h", self.place["host"], "-p", str(self.place["port"]), "-U", user]

    def pgbench(self, script: Path, *words: str, database: str = "shop") -> str:
        command = [binary("pgbench"), *self.words(), "-n", "-f", str(script), *words, database]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def psql(self, text: str, user: str = "postgres", database: str = "shop") -> subprocess.CompletedProcess[str]:
        """Runs the statements and commands of a text, each on a line."""
        command = [binary("psql"), *self.words(user), "-X", "-A", "-t", "-q", database]
        return subprocess.run(command, input=text, capture_output=True, text=True)

    def end(self) -> Told:
        """Ends the capture as Ctrl-C does."""
        told, _ = self.begun.end(signal.SIGINT)
        assert told.code == 0, told.stderr
        return told


def recorded(user: User, columns: str, condition: str = "true") -> list[tuple[Any, ...]]:
    """Queries the capture."""
    with duckdb.connect() as opened:
        path = user.home / "shop.capture"
        return opened.execute(f"select {columns} from read_parquet('{path}') where {condition}").fetchall()


@contextmanager
def proxied(
    user: User, server: RawServer, *words: str, listen: str = "127.0.0.1:0", output: Path | None = None
) -> Iterator[Proxied]:
    """Yields a running proxy. The test ends it with a signal."""
    dsn = f"postgresql://127.0.0.1:{server.port}/shop?sslmode=disable"
    if listen.startswith("/"):
        dsn = f"postgresql:///shop?host={server.host}&port={server.port}"
    to = () if "--to" in words else ("--to", dsn)
    more = ("--listen", listen, *to, "-o", str(output or "shop.capture"), *words)
    with listening(user, server, *more) as proxy:
        yield proxy


@contextmanager
def listening(user: User, server: Any, *words: str) -> Iterator[Proxied]:
    """Yields a proxy that listens."""
    with user.begun("capture", *words) as begun:
        begun.wait_for("listening on ")
        found = _LISTENING.search(begun.stderr.read_text())
        assert found is not None
        yield Proxied(begun, server, found[1])
