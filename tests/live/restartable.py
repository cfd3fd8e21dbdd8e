"""A server that is restarted by a command of its user. A restart creates a new process, which the test must also
end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from patience import eventually
from raw_server import RawServer, as_user


class Restartable(RawServer):
    def __enter__(self) -> Restartable:
        super().__enter__()
        data = self.directory / "data"
        words = [*as_user(), self._program("pg_ctl"), "-D", str(data), "-w", "-m", "fast"]
        self.restart = self.directory / "restart.sh"
        self.restart.write_text(f"#!/bin/sh\necho restarting\nexec {' '.join(words)} restart\n")
        self.restart.chmod(0o755)
        return self

    @property
    def first(self) -> int:
        """Process id of its first process, as this machine counts."""
        return int((self.directory / "data" / "postmaster.pid").read_text().split()[0])

    def stop(self) -> None:
        assert self.process is not None
        first = self.first
        os.kill(first, signal.SIGINT)
        self.process.wait(20)
        assert eventually(lambda: not Path(f"/proc/{first}").exists())
        self.process = None
