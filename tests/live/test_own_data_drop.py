"""Copies of a user's data on a running server have recognisable names, and their owner can drop them."""

from __future__ import annotations

from pathlib import Path

import pytest
from patience import eventually
from raw_server import RawServer

from ironbench import engines
from ironbench.engines.own_databases import is_ours, new_name
from ironbench.model.system import System

DISTRIBUTION = Path("/usr/lib/postgresql/15/bin")
pytestmark = [pytest.mark.live]


def test_a_name_of_ours_is_no_accident() -> None:
    assert is_ours(new_name())
    for name in ("ironbench", "ironbench_shop", "ironbench_0123456789_01234567", new_name() + "x", "x" + new_name()):
        assert not is_ours(name)


@pytest.mark.long
def test_a_copy_is_dropped_by_its_owner_while_autovacuum_works_in_it(place: Path) -> None:
    """PostgreSQL 15 refuses DROP DATABASE WITH (FORCE) to a role that may not end an autovacuum worker."""
    if not DISTRIBUTION.is_dir():
        pytest.skip("PostgreSQL 15 of the distribution is not installed")
    eager = ("naptime=1s", "vacuum_threshold=1", "vacuum_scale_factor=0", "vacuum_cost_delay=100ms")
    # Slow workers in other databases must leave one worker for the copy.
    slow = ("autovacuum_vacuum_cost_limit=1", "log_autovacuum_min_duration=0", "autovacuum_max_workers=10")
    with RawServer(*(f"autovacuum_{one}" for one in eager), *slow, programs=DISTRIBUTION) as server:
        boss = server.connect()
        boss.query("create role maker login createdb")
        dsn = f"postgresql://maker@/postgres?host={server.host}&port={server.port}"
        system, secrets = engines.get("postgres").validated(System("postgres", "one", dsn=dsn), 1)
        copies = engines.get("postgres").data_import.copies(system, secrets)
        try:
            copy = copies.new("key")
            inside = server.connect(database=copy.name, user="maker")
            inside.query("create table t as select n, repeat('x', 500) from generate_series(1, 20000) n")
            inside.query("delete from t where n % 2 = 0")
            worker = (
                f"select from pg_stat_activity where backend_type = 'autovacuum worker' and datname = '{copy.name}'"
            )
            assert eventually(lambda: bool(boss.query(worker)))
            copies.drop(copy.name)  # although the other session is connected to it
        finally:
            copies.close()
        assert not [name for (name,) in boss.query("select datname from pg_database") if is_ours(str(name))]
        boss.close()
