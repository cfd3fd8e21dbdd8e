"""The engine `slapd`: validates systems and starts servers."""

from __future__ import annotations

import hashlib
import secrets as random
import signal
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from ironbench.engines import ideal as memory
from ironbench.engines import own_files, server
from ironbench.engines.base import Engine, EngineCosts, SuggestedSetting, Traits
from ironbench.engines.durability import ON, Hazard
from ironbench.engines.existing_server import validated_existing
from ironbench.engines.identity import Identity
from ironbench.engines.own_server import OwnServer
from ironbench.engines.server import ServerLaunch, ServerProgram
from ironbench.engines.server_session import OwnedServer
from ironbench.engines.slapd import dsn, installation, profile_groups, settings
from ironbench.engines.slapd import home as homes
from ironbench.engines.slapd.administration import SlapdAdministration
from ironbench.engines.slapd.home import SlapdHome
from ironbench.engines.slapd.installation import TITLE, OpenldapInstallation, complaint
from ironbench.engines.slapd.session import SlapdSession
from ironbench.errors import InputError, written
from ironbench.host import control_groups, data_dirs
from ironbench.host.copies import CopyResult
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System

_MAKE = ServerProgram("slapd", TITLE, settings.SOCKET, complaint, stop=signal.SIGTERM, kill=signal.SIGKILL)
_NEVER_IDEAL = {
    "log": "back-mdb has no separate log: it copies pages before changing them (slapd-mdb(5))",
    "temp": "slapd writes no temporary files",
    "data": "slapd relies on the page cache, so there is no cache to enlarge",
}


class SlapdEngine(Engine):
    name = "slapd"
    administration = SlapdAdministration()
    profile_groups = profile_groups.GROUPS
    traits = Traits(
        doc="OpenLDAP's slapd that is installed on the machine, with back-mdb, or an existing "
        "directory server (`--dsn ldap://…`)",
        abilities=frozenset({"directory", "power cut", "latency"}),
        protocols=("ldap",),
        costs=EngineCosts(start_stop_s=0.5, empty_bytes=100_000, log_bytes=0, mixed_read_bytes=4096),
        schemes=dsn.SCHEMES,
        hazards=tuple(
            Hazard(name, (*ON, "nosync"), "os-crash", "last-changes")
            for name in (
                "dbnosync",
                "olcDbNoSync",
                "olcDbEnvFlags",
            )  # sources: slapd-mdb(5); the last two names are those in cn=config
        ),
        knobs=(
            SuggestedSetting("dbnosync", ("off", "on"), "With on, a power failure may lose the last changes."),
            SuggestedSetting(
                "envflags",
                ("", "writemap"),
                "With writemap, changes are made directly in the memory map, without copying pages.",
            ),
        ),
        # LMDB allows only one writer at a time.
        writers=1,
    )

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Validates everything that can be checked before a server is started. Raises InputError."""
        if system.dsn is not None:
            return validated_existing(system, dsn.parse)
        for role in ("temp", "log"):
            if getattr(system.layout, role) is not None:
                cause = f"{TITLE} has no separate {role} directory"
                raise InputError(written(f"layout.{role}"), cause, "remove it")
        if system.memory_bytes is not None:
            cause = f"{TITLE} has no cache of its data besides the page cache"
            hint = f"use {written('limits.memory_total')}, which limits the server's memory and its page cache"
            raise InputError(written("system.memory"), cause, hint)
        if system.parallelism is not None:
            cause = f"{TITLE} runs each operation in one thread"
            raise InputError(written("system.parallelism"), cause, "remove it")
        if system.memory_total_bytes is not None:
            control_groups.require(system.memory_total_bytes)
        memory.refuse(system, _NEVER_IDEAL)
        programs = installation.find(system.settings.get("bin"))
        settings.validate(system)
        home = homes.of(system.layout, programs)
        homes.validate(home, programs)
        return replace(system, layout=Layout(str(home.place), devices=system.layout.devices)), Secrets()

    def in_use(self, system: System) -> InputError | None:
        home = self._home(system)
        return own_files.in_use(home.files, home.place)

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        if system.dsn is not None:
            session = SlapdSession(dsn.parse(system.dsn, {})[0], secrets)
            try:
                return {"version": str(session.known()["version"])}
            finally:
                session.stop()
        programs = installation.find(system.settings.get("bin"))
        return {
            "version": programs.version,
            "program": hashlib.sha256(programs.server.read_bytes()).hexdigest()[:16],
        }

    def start(self, system: System, secrets: Secrets, clients: int) -> SlapdSession:
        """Starts the server of a validated system, or connects to an existing server."""
        server.raise_file_limit()
        if system.dsn is not None:
            return SlapdSession(dsn.parse(system.dsn, {})[0], secrets)
        programs = installation.find(system.settings.get("bin"))
        return _OwnSlapd(system, programs, homes.of(system.layout, programs)).session()

    def basis(self, system: System) -> str:
        if system.dsn is not None:
            return ""
        programs = installation.find(system.settings.get("bin"))
        return own_files.basis([self.name, programs.version], settings.shaping(system.settings))

    def loading_system(self, system: System, folder: Path) -> System:
        return own_files.loading_system(system, settings.shaping(system.settings), folder)

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> CopyResult:
        home = self._home(system)
        with own_files.locked(home.place):
            return homes.take(home, folder, keep=keep)

    def restore(self, system: System, folder: Path) -> CopyResult:
        home = self._home(system)
        with own_files.locked(data_dirs.claim(str(home.place), "data")):
            return homes.put_back(home, folder)

    def _home(self, system: System) -> SlapdHome:
        return homes.of(system.layout, installation.find(system.settings.get("bin")))


@dataclass(frozen=True, slots=True)
class _OwnSlapd(OwnServer[SlapdSession]):
    system: System
    installation: OpenldapInstallation
    home: SlapdHome
    password: str = field(default_factory=lambda: random.token_hex(16))

    @property
    def place(self) -> Path:
        return self.home.place

    def connected(self, own: OwnedServer) -> SlapdSession:
        path = f"{own.running.socket_directory}/{settings.SOCKET}"
        address = dsn.DirectoryAddress(settings.ROOT, settings.BASE, socket=path)
        return SlapdSession(address, Secrets(password=self.password), own, self._load_offline)

    def directories(self) -> dict[str, str]:
        return {"data": str(self.home.files)}

    def facts(self) -> dict[str, object]:
        cpus = self.system.server_cpus
        return {"installation": str(self.installation.server), "cpus": None if cpus is None else list(cpus)}

    def running(self, lock: int) -> server.RunningServer:
        effective = settings.effective(self.system)
        homes.prepare(self.home, self.installation, effective)
        # A shell inserts the path of the private socket into the command line, because the path differs at each start.
        listen = " ".join(effective[name] for name in settings.LISTEN if name in effective)
        home, program = self.home, self.installation.server
        words = ("sh", "-c", f'cd "$1" && exec "$2" -d none -f "$3" -h "$(cat "$4") {listen}"', "sh")
        addresses, waiting = home.place / "addresses", list[str]()

        def configure(sockets: str) -> None:
            homes.write_private(home.options, settings.as_file(effective, self.installation, home.files, self.password))
            path = f"{sockets}/{settings.SOCKET}"
            addresses.write_text(f"ldapi://{quote(path, safe='')}")
            waiting.append(path)

        launch = ServerLaunch(
            make=_MAKE,
            place=home.place,
            messages=home.messages,
            command=(*words, str(home.files), str(program), str(home.options), str(addresses)),
            environment=homes.environment(),
            identity=Identity("own user"),
            configure=configure,
            ready=lambda _: _answers(waiting[-1]),
            lock=lock,
            cpus=self.system.server_cpus,
            limit_bytes=self.system.memory_total_bytes,
            cached=(home.files,),
        )
        return server.start(launch)

    def _load_offline(self, pieces: Iterable[bytes]) -> None:
        homes.load_offline(self.home, self.installation, settings.effective(self.system), pieces)


def _answers(path: str) -> bool:
    """Returns whether a server accepts connections on the socket. The log message "starting" is written too early."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


ENGINE = SlapdEngine()
