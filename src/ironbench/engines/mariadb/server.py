"""How ironbench starts a MariaDB server (`engines.server`): settings, readiness, signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ironbench.engines.identity import Identity
from ironbench.engines.mariadb import settings as server_settings
from ironbench.engines.mariadb.home import MariadbHome, environment
from ironbench.engines.mariadb.installation import TITLE, MariadbInstallation, complaint
from ironbench.engines.server import ServerLaunch, ServerProgram
from ironbench.model.system import System

_READY = b"ready for connections."
MAKE = ServerProgram(
    "mariadb",
    TITLE,
    server_settings.SOCKET,
    complaint,
    # The server ignores SIGINT. SIGTERM and SIGQUIT cause an orderly shutdown (manual, "Shutting down").
    stop=signal.SIGTERM,
    kill=signal.SIGKILL,
)


def launch(
    home: MariadbHome,
    installation: MariadbInstallation,
    identity: Identity,
    settings_for: Callable[[str], Mapping[str, str]],
    lock: int,
    system: System,
) -> ServerLaunch:
    """Describes how to start a server with prepared files. `settings_for`: function that returns the settings for a
    socket directory."""
    return ServerLaunch(
        make=MAKE,
        place=home.place,
        messages=home.messages,
        command=(str(installation.server), f"--defaults-file={home.options}"),
        environment=environment(),
        identity=identity,
        configure=lambda sockets: _write_settings(home, identity, settings_for(sockets)),
        ready=partial(_says_ready, home.messages),
        lock=lock,
        cpus=system.server_cpus,
        limit_bytes=system.memory_total_bytes,
        cached=(home.files, home.log),
    )


def _write_settings(home: MariadbHome, identity: Identity, settings: Mapping[str, str]) -> None:
    home.options.unlink(missing_ok=True)  # a file of a different user could not be overwritten
    home.options.write_text(server_settings.as_file(settings))
    home.options.chmod(0o600)  # the server would ignore a world-writable file
    identity.give(home.options)


def _says_ready(messages: Path, pid: int | None) -> bool:
    """Returns whether the server accepts connections, according to its log. The log is emptied at each start, so the
    line is from this start. The socket exists before the line is written."""
    try:
        with messages.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            return _READY in file.read()
    except OSError:
        return False
