"""A MariaDB server for tests of the wire protocol, started without an engine of ironbench."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ironbench import _core
from ironbench.engines.mariadb.installation import find
from ironbench.errors import IronbenchError
from ironbench.host import programs

CERTIFICATES = Path(__file__).parents[1] / "data" / "tls"
PASSWORD = "open-sesame"
"""Password of the users that have one."""
LACKING = shutil.which("mariadbd") is None


class RawMysql:
    def __init__(self, folder: Path, port: int, settings: Sequence[str] = ()) -> None:
        self.socket, self.port = folder / "sock", port
        user = pwd.getpwuid(os.geteuid()).pw_name
        # At its start, a server removes other servers' temporary tables from its temporary directory.
        ours = ["--no-defaults", f"--user={user}", f"--datadir={folder / 'data'}", f"--tmpdir={folder / 'tmp'}"]
        (folder / "data").mkdir()
        (folder / "tmp").mkdir()
        made = programs.run_program(["mariadbd", *ours, "--bootstrap"], given=find().system_tables())
        assert made.returncode == 0, made.stderr
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *("mariadbd", *ours, f"--socket={self.socket}", f"--port={port}", "--bind-address=127.0.0.1"),
                    *("--innodb-buffer-pool-size=32M", "--innodb-lock-wait-timeout=1", "--performance-schema"),
                    *(f"--ssl-cert={CERTIFICATES / 'server.crt'}", f"--ssl-key={CERTIFICATES / 'server.key'}"),
                    f"--pid-file={folder / 'pid'}",
                    *settings,
                ],
                stdout=log,
                stderr=log,
            )
        self._wait()
        root = self.connect(database="")
        root.query(
            f"CREATE DATABASE d; CREATE USER password_user IDENTIFIED BY '{PASSWORD}'; "
            "GRANT ALL ON d.* TO password_user; "
            f"CREATE USER tls_user IDENTIFIED BY '{PASSWORD}' REQUIRE SSL; GRANT ALL ON d.* TO tls_user"
        )
        root.close()

    def _wait(self) -> None:
        for _ in range(600):
            try:
                return self.connect(database="").close()
            except IronbenchError:
                assert self.process.poll() is None, self.log.read_text()
                time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def address(self, **changes: Any) -> dict[str, Any]:
        here = {"socket": str(self.socket), "host": "127.0.0.1", "port": self.port, "user": "root", "database": "d"}
        return here | changes

    def connect(self, **changes: Any) -> _core.MysqlConnection:
        return _core.MysqlConnection(json.dumps(self.address(**changes)).encode())

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        connection = self.connect()
        try:
            return connection.query(sql)
        finally:
            connection.close()

    def status(self, name: str) -> int:
        """Returns a status counter of the whole server."""
        [(_, value)] = self.query(f"SHOW GLOBAL STATUS LIKE '{name}'")
        return int(value or 0)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
