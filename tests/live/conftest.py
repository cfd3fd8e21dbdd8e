"""Engines for the live tests. If possible, their files are in memory, so that no test waits for a disk."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from raw_mysql import LACKING, RawMysql
from raw_mysql import PASSWORD as MYSQL_PASSWORD
from raw_server import PASSWORD, RawServer, free_port
from ssh_server import SshServer
from tls_proxy import TlsProxy
from user import User
from workload_trial import Filed, Served, Target

from ironbench import engines
from ironbench.engines.mariadb.dsn import MysqlAddress
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System

MEMORY = Path("/dev/shm")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def fast_directory() -> Iterator[Path]:
    """A new directory for the whole test session."""
    base = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="ironbench-tests-", dir=base))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def raw_mysql(fast_directory: Path) -> Iterator[RawMysql]:
    """A MariaDB server started without ironbench's engine, if the program is on PATH."""
    if LACKING:
        pytest.skip("mariadbd is not on PATH (Debian's package mariadb-server-core)")
    folder = fast_directory / "mysql"
    folder.mkdir()
    server = RawMysql(folder, free_port())
    yield server
    server.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes a file system of this many MB in memory. Skips if mounting is not permitted."""
    mounted: list[Path] = []

    def mount(size_mb: int) -> Path:
        path = tmp_path / f"small-disk-{len(mounted)}"
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0755", "none", str(path)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("mounting is not permitted here")
        mounted.append(path)
        return path

    yield mount
    for path in mounted:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def place(fast_directory: Path) -> Iterator[Path]:
    """A new directory for one test, in memory."""
    path = Path(tempfile.mkdtemp(dir=fast_directory))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def user(place: Path) -> User:
    return User(place)


@pytest.fixture
def own_register(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A separate register, so that tests do not see each other's servers, and a directory for default data."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))
    return tmp_path / "ironbench"


@pytest.fixture(scope="session")
def raw_server() -> Iterator[RawServer]:
    """The worker's server, shared by its tests. A test that kills or configures a server starts another one."""
    with RawServer() as server:
        yield server


@pytest.fixture
def database(raw_server: RawServer) -> Iterator[str]:
    """The name of a database of `raw_server` for this test only."""
    name = f"test_{next(_numbers)}"
    session = raw_server.connect()
    session.query(f"CREATE DATABASE {name}")
    yield name
    session.query(f"DROP DATABASE {name} WITH (FORCE)")
    session.close()


@pytest.fixture
def served(raw_server: RawServer, database: str) -> Iterator[Served]:
    """A session on a database for this test only, as workloads and loads see it."""
    session = Served(raw_server, database)
    yield session
    session.close()


@pytest.fixture
def dsn(raw_server: RawServer, database: str) -> str:
    """The address of a database for this test only."""
    return f"host={raw_server.host} port={raw_server.port} user=postgres dbname={database}"


@pytest.fixture
def postgres(dsn: str) -> Iterator[Session]:
    """The engine's session on a running server, in a database for this test only."""
    system, secrets = engines.get("postgres").validated(System("postgres", "test", dsn=dsn), 4)
    with engines.running(system, secrets, 4) as session:
        yield session


@pytest.fixture
def mysql_database(raw_mysql: RawMysql) -> Iterator[str]:
    """The name of a database of `raw_mysql` for this test only."""
    name = f"test_{next(_numbers)}"
    raw_mysql.query(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    yield name
    raw_mysql.query(f"DROP DATABASE {name}")


@pytest.fixture
def joined(raw_mysql: RawMysql, mysql_database: str) -> Iterator[MariadbSession]:
    """The engine's session on a running server, in a database for this test only."""
    address = MysqlAddress("root", mysql_database, socket=str(raw_mysql.socket), tls="disable")
    session = MariadbSession(address, Secrets())
    yield session
    session.stop()


@pytest.fixture(params=["postgres", "sqlite", "mariadb"])
def target(request: pytest.FixtureRequest, place: Path) -> Iterator[Target]:
    """Runs the test on PostgreSQL, on an SQLite file and, if installed, on MariaDB."""
    if request.param != "sqlite":
        yield request.getfixturevalue({"postgres": "served", "mariadb": "joined"}[request.param])
        return
    session = Filed(place)
    yield session
    session.close()


@pytest.fixture(scope="module")
def ssh() -> Iterator[SshServer]:
    with SshServer(free_port()) as server:
        yield server


@pytest.fixture
def tls_proxy(raw_server: RawServer) -> Iterator[TlsProxy]:
    """TLS in front of `raw_server`, with a certificate for `localhost` signed by tests/data/tls/root.crt."""
    with TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}") as proxy:
        yield proxy


@pytest.fixture
def guarded(engine: str, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Returns addresses of a user with a password on a running server of `engine`; "" represents the correct
    password."""
    if engine == "postgres":
        port = request.getfixturevalue("raw_server").port
        return lambda password: (
            f"host=127.0.0.1 port={port} user=scram_user dbname=postgres password='{password or PASSWORD}'"
        )
    port = request.getfixturevalue("raw_mysql").port
    return lambda password: f"mysql://password_user:{password or MYSQL_PASSWORD}@127.0.0.1:{port}/d?tls=disable"
