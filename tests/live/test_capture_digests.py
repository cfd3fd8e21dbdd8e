"""A capture from the statistics of a running server, replayed on its restored data."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from own_data import dumped, shop
from raw_server import RawServer
from user import User

DEBIAN = Path("/usr/lib/postgresql/15/bin")
pytestmark = [
    pytest.mark.live,
    pytest.mark.xdist_group("capture"),
    pytest.mark.skipif(not DEBIAN.exists(), reason="needs Debian's postgresql-15, which has pg_stat_statements"),
]
PARTS = """
create table part (item integer references item, number integer, note text, primary key (item, number));
insert into part select n, m, 'a' from generate_series(1, 1000) n, generate_series(1, 2) m;
"""
SCRIPT = """\\set i random(1, 1000)
\\set n random(3, 1000000000)
select name, price from item where id = :i;
insert into sale (item) values (:i);
update sale set at = now() where id = :i;
select count(*) from part where number = 1 + :i % 5;
begin;
insert into part values (:i, :n, :note);
select count(*) from part where item = :i and note = any (:notes);
end;
"""


@pytest.mark.parametrize("mask", [False, True], ids=["drawn", "masked"])
def test_a_server_is_watched_and_what_ran_is_replayed(place: Path, mask: bool) -> None:
    user = User(place)
    (place / "work.sql").write_text(SCRIPT)
    with RawServer("shared_preload_libraries=pg_stat_statements", programs=DEBIAN) as server:
        shop(server)
        inside = server.connect(database="shop")
        inside.query("create extension pg_stat_statements")
        inside.query(PARTS)
        inside.query("analyze")
        dsn = f"postgresql://postgres@/shop?host={server.host}&port={server.port}"
        refused = user("capture", "--from", dsn, "-o", "idle.capture", "--duration", "200ms")
        assert refused.code == 2 and "no statement ran" in refused.stderr
        dumped(server, place / "shop.dump", "plain")
        command = [str(DEBIAN / "pgbench"), "-h", server.host, "-p", str(server.port), "-U", "postgres", "-n"]
        command += ["-f", str(place / "work.sql"), "-c", "2", "-T", "8", "-R", "100", "-M", "prepared"]
        command += ["-D", "note=a", "-D", "notes={a}", "shop"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            words = ("--mask",) if mask else ()
            told = user("capture", "--from", dsn, "-o", "shop.capture", "--duration", "3s", *words)
            load.terminate()
        assert told.code == 0, told.stderr
        inside.close()
    shown = user("show", "shop.capture", "--json").document
    calls = {one["template"]: one["calls"] for one in shown["top"]}
    each = list(calls.values())
    assert len(calls) == 6, "BEGIN and COMMIT are left out"
    assert min(each) > 200 and max(each) < 1.1 * min(each)
    if mask:
        return
    restored = ("--dump", str(place / "shop.dump"), "--with", "file=shop.capture")
    user.measured("run", "capture", *restored, "--with", "mode=fast", "--no-observe")
    (record,) = user.records()
    metrics = record["metrics"]
    assert metrics["failed"] == 0
    assert metrics["replayed_statements"] == sum(each)
    # The values are other items and sales, which nevertheless exist.
    assert metrics["replay_divergence{of=rows}"] < 0.05
    assert metrics["replay_divergence{of=mix}"] == 0
