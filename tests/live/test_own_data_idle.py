"""The user's own data are loaded although the server ends an idle connection of ironbench in the meantime."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw_server import RawServer
from user import SHORT, User

from ironbench.engines.postgres.copies import KEEPER

pytestmark = pytest.mark.live
SETUP = f"""create table item as select generate_series(1, 1000) as id;
select 1 / count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = '{KEEPER}';
"""


@pytest.mark.parametrize("fails", [False, True], ids=["loaded", "failed"])
def test_a_load_outlives_the_connection_that_waits_for_it(place: Path, raw_server: RawServer, fails: bool) -> None:
    user = User(place)
    dsn = f"postgresql://postgres@/postgres?host={raw_server.host}&port={raw_server.port}"
    (user.home / "one.sql").write_text("select count(*) from item;\n")
    (user.home / "shop.sql").write_text(SETUP + ("select nothing;\n" if fails else ""))
    told = user("run", "script", "one.sql", "--dsn", dsn, "--setup", "shop.sql", *SHORT)
    cleaned = user("cleanup", "--dsn", dsn)
    assert cleaned.code == 0, cleaned.stderr
    assert told.code == 1 if fails else told.code in (0, 3), told.stderr
    assert ("removed: 1 database" in cleaned.stderr) != fails, "a load that failed leaves no database"
