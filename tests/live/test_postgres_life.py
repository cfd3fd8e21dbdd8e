"""The life cycle of a server that ironbench starts: created, started, placed, reused, stopped."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import own_server as pg
import pytest
from patience import eventually

from ironbench import engines
from ironbench.engines.postgres import facts, installation
from ironbench.errors import InputError
from ironbench.host import processes, register
from ironbench.model.system import Layout

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]

OLDER = installation.find().bin.parents[1] / "pginstall" / "bin"


def value(session, name: str) -> str:
    return session.query(f"SHOW {name}")[0][0]


def test_a_server_starts_answers_and_leaves_nothing_behind(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    server, sockets = processes.identify(pg.pid_of(session)), pg.sockets(session)
    assert session.alive()
    assert session.query("SELECT 1, NULL, 'x'") == [("1", None, "x")]
    assert [entry.server for entry in register.entries()] == [server]
    session.stop()
    assert not session.alive()
    assert not server.alive()
    assert not sockets.exists()
    assert register.entries() == []
    session.stop()


def test_its_socket_is_private_and_nothing_listens_on_the_network(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    try:
        assert pg.sockets(session).stat().st_mode & 0o777 == 0o700
        assert value(session, "listen_addresses") == ""
    finally:
        session.stop()


def test_settings_arrive_in_the_server(place: Path) -> None:
    wanted = pg.system(place / "d", memory_bytes=64 << 20, settings={"work_mem": "8MB", "cluster_name": "it's"})
    session = pg.start(wanted, clients=150)
    try:
        assert value(session, "shared_buffers") == "64MB"
        assert value(session, "work_mem") == "8MB"
        assert value(session, "cluster_name") == "it's"
        assert int(value(session, "max_connections")) >= 150
        assert value(session, "track_io_timing") == "on"
    finally:
        session.stop()


def test_a_setting_is_the_same_in_any_case(place: Path) -> None:
    engine = engines.get("postgres")
    checked, _ = engine.validated(pg.system(place / "d", settings={"Work_Mem": "8MB"}), 4)
    assert checked.settings == {"work_mem": "8MB"}
    with pytest.raises(InputError, match="a private socket only"):
        engine.validated(pg.system(place / "d", settings={"Listen_Addresses": "*"}), 4)
    with pytest.raises(InputError, match="sets the same value"):
        engine.validated(pg.system(place / "d", memory_bytes=64 << 20, settings={"SHARED_BUFFERS": "1GB"}), 4)


def test_settings_of_one_run_do_not_reach_into_the_next(place: Path) -> None:
    session = pg.start(pg.system(place / "d", settings={"work_mem": "8MB"}))
    session.query("ALTER SYSTEM SET random_page_cost = 1.5")
    session.stop()
    session = pg.start(pg.system(place / "d"))
    try:
        assert value(session, "work_mem") == "4MB"
        assert value(session, "random_page_cost") == "4"
    finally:
        session.stop()


def test_facts_tell_version_settings_build_and_identity_and_are_the_same_at_every_start(place: Path) -> None:
    told = []
    for _ in range(2):
        session = pg.start(pg.system(place / "d"))
        told.append(session.facts())
        session.stop()
    assert told[0] == told[1]
    facts = told[0]
    assert facts["server_version_num"] >= 180000
    assert re.match(r"18\.\d+", facts["version"])
    assert "--without-icu" in facts["configure"]
    assert set(facts["lacks"]) >= {"TLS", "ICU", "JIT", "lz4", "io_uring"}
    assert facts["changed"]["track_io_timing"] == "configuration file"
    assert facts["observable"] == {"track_io_timing": "on", "track_wal_io_timing": "on"}
    assert facts["settings"]["data_directory"].endswith("/cluster")
    assert facts["runs_as"]


def test_facts_name_installed_extensions_and_say_whether_settings_are_hidden(raw_server, database: str) -> None:
    boss = raw_server.connect(database=database)
    boss.query("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN")
    try:
        seen, hidden = facts.read(boss.query), facts.read(raw_server.connect(database=database, user="plain").query)
    finally:
        boss.query("DROP ROLE plain")
        boss.close()
    assert [name.partition(" ")[0] for name in seen["extensions"]] == ["plpgsql"], "available ones are not installed"
    assert seen["settings_seen"] == "all" and hidden["settings_seen"] != "all"
    assert set(seen["settings"]) - set(hidden["settings"]) >= {"shared_preload_libraries", "log_directory"}


def test_counters_count_commits(postgres) -> None:
    connection = postgres.connect()
    before = postgres.counters()
    for _ in range(7):
        connection.query("SELECT 1")
    connection.close()
    assert eventually(lambda: postgres.counters()["commits"] >= before["commits"] + 7)
    assert {"rollbacks", "blocks_read", "wal_bytes", "checkpoints_timed", "checkpoints_requested"} <= before.keys()


def test_data_stay_from_run_to_run(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    session.query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    session.stop()
    session = pg.start(pg.system(place / "d"))
    try:
        assert session.query("SELECT n FROM kept") == [("7",)]
    finally:
        session.stop()


def test_spills_go_to_the_temp_directory(place: Path) -> None:
    session = pg.start(pg.system(place / "d", layout=Layout(temp=str(place / "t")), settings={"work_mem": "64kB"}))
    try:
        session.query("CREATE TEMP TABLE big AS SELECT g AS n FROM generate_series(1, 10000) g")
        where = session.query("SELECT pg_relation_filepath('big')")[0][0]
        assert where.startswith("pg_tblspc/")
        assert session.directories()["temp"] == str(place / "t" / "temp")
    finally:
        session.stop()
    session = pg.start(pg.system(place / "d", layout=Layout(temp=str(place / "t2"))))
    try:
        location = "SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = 'ironbench_temp'"
        assert session.query(location) == [(str(place / "t2" / "temp"),)]
    finally:
        session.stop()
    session = pg.start(pg.system(place / "d"))
    try:
        assert session.query(location) == []
    finally:
        session.stop()


def test_the_log_moves_where_the_layout_wants_it_and_data_stay(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    session.query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    session.stop()
    for log in (place / "l1", place / "l2", None):
        session = pg.start(pg.system(place / "d", layout=Layout(log=None if log is None else str(log))))
        try:
            assert session.query("SELECT n FROM kept") == [("7",)]
            wal = place / "d/cluster/pg_wal" if log is None else log / "wal"
            assert session.directories()["log"] == str(wal)
            assert any(re.fullmatch("[0-9A-F]{24}", path.name) for path in wal.iterdir())
        finally:
            session.stop()
    assert not (place / "l1" / "wal").exists()
    assert not (place / "l2" / "wal").exists()


def test_a_log_that_was_lost_after_a_clean_shutdown_is_begun_anew(place: Path) -> None:
    wanted = pg.system(place / "d", layout=Layout(log=str(place / "memory")))
    session = pg.start(wanted)
    session.query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    session.stop()
    shutil.rmtree(place / "memory")
    session = pg.start(wanted)
    try:
        assert session.query("SELECT n FROM kept") == [("7",)]
    finally:
        session.stop()


def test_two_servers_live_side_by_side(place: Path) -> None:
    one, two = pg.start(pg.system(place / "one")), pg.start(pg.system(place / "two"))
    try:
        assert pg.sockets(one) != pg.sockets(two)
        assert one.query("SELECT 1") == two.query("SELECT 1")
    finally:
        one.stop()
        two.stop()


def test_the_server_runs_on_the_cpus_given_to_it(place: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    session = pg.start(pg.system(place / "d", server_cpus=(cpu,)))
    try:
        seen = set()
        for pid in session.processes():
            with suppress(ProcessLookupError):  # the server's own workers come and go
                seen.add(tuple(os.sched_getaffinity(pid)))
        assert seen == {(cpu,)}
    finally:
        session.stop()


def test_a_running_server_is_used_and_left_running(place: Path) -> None:
    ours = pg.start(pg.system(place / "d", settings={"work_mem": "8MB"}))
    try:
        dsn = f"postgresql://ironbench@/ironbench?host={pg.sockets(ours)}"
        given = pg.start(pg.System("postgres", "given", dsn=dsn))
        assert given.facts()["settings"]["work_mem"] == "8MB"
        assert given.facts()["server"].startswith("running already")
        assert given.processes()[0] == pg.pid_of(ours)
        assert given.directories() == ours.directories()
        given.stop()
        assert ours.alive()
    finally:
        ours.stop()


@pytest.mark.skipif(not (OLDER / "postgres").exists(), reason="the wheel holds one version only")
def test_another_installation_is_used_by_its_directory(place: Path) -> None:
    wanted = pg.system(place / "d", settings={"bin": str(OLDER), "work_mem": "8MB"}, memory_bytes=32 << 20)
    session = pg.start(wanted)
    try:
        facts = session.facts()
        assert facts["version"].startswith("16.")
        assert facts["settings"]["work_mem"] == "8MB"
        assert facts["installation"] == str(OLDER)
        assert {"commits", "wal_bytes", "checkpoints_timed"} <= session.counters().keys()
    finally:
        session.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("user", "runs_as"), [(65534, "own user"), (54321, "user namespace")])
def test_an_ordinary_user_needs_no_other_identity_but_a_name(place: Path, user: int, runs_as: str) -> None:
    alone = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    server = [*alone, "unshare", "--user", installation.find().program("postgres"), "--version"]
    if runs_as != "own user" and subprocess.run(server, capture_output=True).returncode:
        pytest.skip("this user may make no namespace, or not read the server's program")
    place.chmod(0o777)
    place.parent.chmod(0o755)
    code = f"""
import sys; sys.path.insert(0, {str(pg.SOURCE)!r})
from ironbench import engines
from ironbench.model.system import Layout, System
engine = engines.get("postgres")
system, secrets = engine.validated(System("postgres", "t", layout=Layout(data={str(place / "d")!r})), 4)
with engines.running(system, secrets, 4) as session:
    print(session.facts()["runs_as"], session.query("SELECT 40 + 2")[0][0], len(session.processes()) > 3)
"""
    # The capability only lets it read Python and ironbench in root's directories.
    become = [*alone, "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    environ = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    done = subprocess.run([*become, sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    assert done.stdout.strip() == f"{runs_as} 42 True", done.stderr
