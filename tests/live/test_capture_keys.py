"""Generated keys: statements of a replay that use a key find the row that the replay inserted."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from own_data import dumped
from raw_server import RawServer, binary
from user import User
from written_log import write_csvlog

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture")]

SCHEMA = """
create table buyer (id uuid primary key default gen_random_uuid(), name text);
create table purchase (
    id bigint generated always as identity primary key, buyer uuid not null references buyer, paid int
);
create table line (purchase bigint not null references purchase, number int, primary key (purchase, number));
create function counted() returns trigger language plpgsql as $$ begin update total set n = n + 1; return new; end $$;
create table total (n bigint);
insert into total values (0);
create trigger counted after insert on purchase execute function counted();
"""
SCRIPT = """insert into buyer (name) values ('new') returning id \\gset buyer_
begin;
insert into purchase (buyer) values (:buyer_id) returning id, paid \\gset purchase_
insert into line values (:purchase_id, 1);
insert into line values (:purchase_id, 2);
update purchase set paid = 1 where id = :purchase_id;
end;
delete from line where purchase = :purchase_id and number = 2;
select name from buyer where id = :buyer_id;
"""
EACH = 50
CLIENTS = 4


@pytest.fixture(scope="module", params=["simple", "extended"])
def logged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logged")
    # pgbench replaces variables in strings only with the simple protocol.
    script = SCRIPT.replace(":buyer_id", "':buyer_id'") if request.param == "simple" else SCRIPT
    (folder / "work.sql").write_text(script)
    settings = ("logging_collector=on", "log_destination=csvlog", "log_min_duration_statement=0")
    with RawServer(*settings, f"log_directory={folder / 'log'}") as server:
        server.connect().query("create database shop")
        inside = server.connect(database="shop")
        inside.query(SCHEMA)
        inside.close()
        dumped(server, folder / "shop.dump")
        user, dsn = User(folder), f"postgresql://postgres@/shop?host={server.host}&port={server.port}"
        assert user("capture", "--mark", dsn).code == 0
        command = [binary("pgbench"), "-h", server.host, "-p", str(server.port), "-U", "postgres", "-n"]
        command += ["-f", str(folder / "work.sql"), "-c", str(CLIENTS), "-t", str(EACH), "-M", request.param, "shop"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        time.sleep(0.5)
        assert user("capture", "--mark", dsn).code == 0
    return folder


def test_statements_find_the_rows_of_the_replay(place: Path, logged: Path) -> None:
    user = User(place)
    assert user("capture", str(logged / "log"), "-o", "shop.capture").code == 0
    keys = user("show", "shop.capture", "--json").document["keys"]
    inserts = 2 * CLIENTS * EACH
    assert keys == {"makers": inserts, "known": inserts, "values": CLIENTS * EACH * 6}
    check = (
        f"select (select count(*) from purchase where paid = 1) = {CLIENTS * EACH} and "
        f"(select array_agg(distinct n) from (select count(*) n from line group by purchase) x) = '{{1}}'"
    )
    words = ("--with", "file=shop.capture", "--dump", str(logged / "shop.dump"), "--no-observe", "--check", check)
    user.measured("run", "capture", *words, "--with", "mode=fast")
    (record,) = user.records()
    metrics = record["metrics"]
    assert metrics["failed"] == 0 and [one["passed"] for one in record["checks"]] == [True]
    assert metrics["replayed_keys"] == keys["values"] and metrics["replay_missing_keys"] == 0
    for measure in ("statements", "rows_inserted", "rows_updated", "rows_deleted"):
        assert metrics[f"replayed_work{{of={measure}}}"] == metrics[f"recorded_work{{of={measure}}}"], measure
    assert metrics["replay_divergence{of=wal_records}"] < 0.05


def test_recorded_keys_find_no_rows(place: Path, logged: Path) -> None:
    user = User(place)
    assert user("capture", str(logged / "log"), "-o", "shop.capture").code == 0
    words = ("--with", "file=shop.capture", "--dump", str(logged / "shop.dump"), "--no-observe")
    told = user("run", "capture", *words, "--with", "mode=fast", "--with", "keys=recorded", "--on-error", "continue")
    assert told.code == 1
    (record,) = user.records()
    assert record["metrics"]["errors"] == CLIENTS * EACH, "the recorded buyers do not exist"
    assert record["metrics"]["replayed_work{of=rows_deleted}"] == 0
    assert "replay-unfaithful" in [one["code"] for one in record["warnings"]]


def test_statements_find_every_row_that_an_insert_of_several_rows_added(place: Path) -> None:
    user, rounds, texts = User(place), 12, []
    (place / "pair.sql").write_text("create table pair (id int generated always as identity, nth int, paid int);\n")
    for number in range(rounds):
        first = 5001 + 3 * number
        texts.append("insert into pair (nth) values (1), (2), (3) returning id")
        texts += [f"update pair set paid = {nth} where id = {first - 1 + nth} and nth = {nth}" for nth in (3, 1, 2)]
        texts.append(f"select nth from pair where id in ({first}, {first + 1}, {first + 2})")
    write_csvlog(place / "server.csv", *((second / 2, text) for second, text in enumerate(texts, 1)))
    assert user("capture", "server.csv", "-o", "pairs.capture").code == 0
    keys = user("show", "pairs.capture", "--json").document["keys"]
    assert keys == {"makers": rounds, "known": rounds, "values": 6 * rounds}
    right = f"select count(*) = {3 * rounds} from pair where paid = nth"
    words = ("--with", "file=pairs.capture", "--with", "mode=fast", "--setup", "pair.sql", "--no-observe")
    user.measured("run", "capture", *words, "--check", right)
    (record,) = user.records()
    metrics = record["metrics"]
    assert metrics["failed"] == 0 and [one["passed"] for one in record["checks"]] == [True]
    assert metrics["replayed_keys"] == 6 * rounds and metrics["replay_missing_keys"] == 0
