"""MariaDB's settings: those that ironbench sets and those that the user may set."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from ironbench import units
from ironbench.engines import server_settings
from ironbench.engines.mariadb.home import MariadbHome, environment, option_line
from ironbench.engines.mariadb.installation import MariadbInstallation
from ironbench.errors import InputError, similar, written
from ironbench.host.programs import run_program
from ironbench.model.system import System
from ironbench.words import counted

SOCKET = "server.sock"
CACHE = "innodb_buffer_pool_size"
LEAST_CACHE_BYTES = 8 << 20
DEFAULT_CACHE_BYTES = 128 << 20
"""Default size of the buffer pool."""
BASE_BYTES = 150 << 20
"""Approximate memory of a server, not counting clients and buffer pool."""
_CLIENT_BYTES = 1 << 20
"""Minimum memory of a thread that serves one client."""
OURS = {
    "basedir": "`bin` selects the programs",
    "bind_address": "the server listens on a private socket only",
    "bootstrap": "ironbench starts the server itself",
    "datadir": "the layout sets the data directory",
    "init_file": "ironbench starts the server itself",
    "innodb_data_home_dir": "the layout sets the data directory",
    "innodb_log_group_home_dir": "the layout sets the log directory",
    "innodb_undo_directory": "the layout sets the data directory",
    "lc_messages": "ironbench parses the server's messages",
    "log_bin": "ironbench runs its servers without a binary log",
    "log_error": "ironbench reads the server's messages from its own file",
    "pid_file": "ironbench monitors the server itself",
    "port": "the server listens on a private socket only",
    "skip_grant_tables": "ironbench connects as an ordinary client",
    "skip_networking": "the server listens on a private socket only",
    "socket": "the server listens on a private socket only",
    "sql_mode": "the workloads' SQL is written for the default sql_mode",
    "tmpdir": "the layout sets the directory for temporary files",
    "user": "ironbench chooses the server's operating system user",
}
"""For each setting that is reserved for ironbench, the reason."""
SHAPING = (
    *("innodb_page_size", "innodb_checksum_algorithm", "innodb_compression_algorithm", "innodb_compression_default"),
    *("innodb_default_row_format", "innodb_file_per_table", "innodb_undo_tablespaces", "character_set_server"),
    *("collation_server", "default_storage_engine", "innodb_encrypt_tables", "innodb_compression_level"),
    *("innodb_fill_factor", "innodb_stats_persistent", "innodb_stats_persistent_sample_pages", "innodb_stats_method"),
    *("use_stat_tables", "analyze_sample_percentage", "histogram_size", "histogram_type"),
)
"""Settings that affect what loading writes, including planner statistics. Data that were loaded with different values
of these settings are different data."""
INSTALLING = ("innodb_page_size", "innodb_checksum_algorithm", "innodb_undo_tablespaces")
"""Settings that can only be chosen when the data directory is created."""
LOADING = {"innodb_flush_log_at_trx_commit": "0", "innodb_doublewrite": "OFF"}
"""Settings for loading. These settings disable durability: the files are synced after the server has stopped. If the
server crashes before, the files are discarded."""
_FLASH = {"innodb_flush_neighbors": "0", "innodb_io_capacity": "2000", "innodb_io_capacity_max": "20000"}
"""Settings for flash storage. By default, InnoDB also writes the neighbours of a dirty page. This helps only on
rotating disks (manual, innodb_flush_neighbors)."""


def normal(name: str) -> str:
    """Returns the name of a setting as the server's system variables spell it."""
    return name.replace("-", "_").lower()


def own(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the server's settings. `bin` is omitted, because it selects the server's programs."""
    return {normal(name): value for name, value in settings.items() if name != "bin"}


def named(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings in the spelling of the server's system variables. `bin` is omitted, because it is not a
    system variable."""
    return {name if name == "bin" else normal(name): value for name, value in settings.items()}


def shaping(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that affect what loading writes."""
    return {name: value for name, value in own(settings).items() if name in SHAPING}


def for_devices(system: System) -> dict[str, str]:
    """Returns settings for the emulated device of the data, because the server cannot detect the device's
    properties."""
    on = system.layout.device_of("data")
    return {} if on is None or on.rotates else dict(_FLASH)


def validate(system: System, clients: int, installation: MariadbInstallation) -> None:
    """Raises InputError for a setting that the server does not know or accept, and for values beyond this machine's
    limits."""
    declared = own(system.settings)
    for name, value in system.settings.items():
        server_settings.refuse_ours(name, value, OURS.get(normal(name)))
    if system.memory_bytes is not None:
        needs = f"MariaDB needs a buffer pool of at least {units.memory(LEAST_CACHE_BYTES)}"
        server_settings.require_memory(system.memory_bytes, declared, CACHE, LEAST_CACHE_BYTES, needs)
    server_settings.require_clients(clients)
    server_settings.require_connections(clients, declared)
    _require_threads(clients)
    if system.parallelism not in (None, 1):
        subject = written("system.parallelism", system.parallelism)
        raise InputError(subject, "MariaDB runs each statement in one thread", "remove it")
    if system.memory_total_bytes is not None:
        cache = server_settings.cache_bytes(system.memory_bytes, declared, CACHE, DEFAULT_CACHE_BYTES)
        others, takers = clients * _CLIENT_BYTES + BASE_BYTES, f"buffer pool, {counted(clients, 'client')}"
        server_settings.require_total(system.memory_total_bytes, cache, others, takers)
    for name, value in system.settings.items():
        if name != "bin" and installation.may_run:
            _ask_the_server(name, value, installation)


def effective(
    system: System, clients: int, home: MariadbHome, sockets: str, installation: MariadbInstallation
) -> dict[str, str]:
    """Returns the settings that differ from the server's defaults. The user's settings take precedence."""
    settings = {
        "basedir": str(installation.base),
        "datadir": str(home.files),
        "innodb_log_group_home_dir": str(home.log),
        "tmpdir": str(home.temp),
        "socket": f"{sockets}/{SOCKET}",
        "pid_file": f"{sockets}/server.pid",
        "skip_networking": "ON",
        "skip_name_resolve": "ON",
        "lc_messages": "en_US",
        "max_connections": str(max(100, clients + server_settings.HEADROOM)),
        # With this collation, texts are equal only if their bytes are equal, as in the other engines.
        "character_set_server": "utf8mb4",
        "collation_server": "utf8mb4_bin",
        # This is the isolation level of the other engines. The server's default level also locks the gaps between rows.
        "transaction_isolation": "READ-COMMITTED",
        # A buffer pool that is filled from a file at startup would not be cold.
        "innodb_buffer_pool_dump_at_shutdown": "OFF",
        "innodb_buffer_pool_load_at_startup": "OFF",
        # The observers use these counters. They are disabled by default.
        "innodb_monitor_enable": "log_checkpoints,trx_rw_commits,trx_ro_commits,trx_nl_ro_commits,trx_rollbacks",
        "local_infile": "ON",
        "report_host": OWN_HOST,
    }
    if system.memory_bytes is not None:
        settings[CACHE] = str(system.memory_bytes)
    return settings | own(system.settings)


OWN_HOST = "ironbench"
"""Value of `report_host` for a server that ironbench started. SQL statements recognise such a server by this value."""


def as_file(settings: Mapping[str, str]) -> str:
    """Returns the contents of the server's option file."""
    first = ["# Written by ironbench at every start of the server; changes are lost.", "[mariadbd]"]
    return "\n".join([*first, *(option_line(name, value) for name, value in settings.items())]) + "\n"


@functools.cache
def setting_names(installation: MariadbInstallation) -> frozenset[str]:
    """Returns the names of the server's settings from the server's own list."""
    words = [str(installation.server), "--no-defaults", "--user=root", "--verbose", "--help"]
    _, _, table = run_program(words, environment=environment()).stdout.partition("\n-----")
    return frozenset(normal(line.split()[0]) for line in table.splitlines()[1:] if re.match(r"[a-z]\S* ", line))


def _ask_the_server(name: str, value: str, installation: MariadbInstallation) -> None:
    """Lets the server check a setting. `--help --verbose` parses the settings as at startup and reports errors, but
    does not start the server."""
    subject = written("system.set", f"{name}={value}")
    server_settings.require_one_line(subject, value)
    names = setting_names(installation)
    # The server would also accept an unambiguous prefix of a name.
    if normal(name) not in names:
        hint = similar(normal(name), names) or "`mariadbd --verbose --help` lists all settings"
        raise InputError(subject, f"MariaDB {installation.version} has no such setting", hint)
    option = f"--{name}={value}"
    done = run_program(
        [str(installation.server), "--no-defaults", "--user=root", option, "--verbose", "--help"],
        environment=environment(),
    )
    option = normal(name).replace("_", "[-_]")
    for kind in ("ERROR", "Warning"):
        mentioned = re.search(rf"\[{kind}\] (?:mariadbd: |mysqld: )?(.*\b{option}\b.*)", done.stderr + done.stdout)
        if mentioned is not None:
            raise InputError(subject, f"MariaDB rejects this setting: {mentioned[1]}", "change the value")
    if done.returncode != 0:
        raise InputError(subject, f"MariaDB rejects this setting: {done.stderr.strip()[-200:]}", "change the value")


def _require_threads(clients: int) -> None:
    threads = int(Path("/proc/sys/kernel/threads-max").read_text())
    most = min(100_000, threads - 1000) - server_settings.HEADROOM  # 100,000 is the maximum of max_connections
    if clients > most:
        cause = f"MariaDB uses one thread per client, and this machine supports at most {most}"
        raise InputError(f"{clients} clients", cause, "use fewer clients")
