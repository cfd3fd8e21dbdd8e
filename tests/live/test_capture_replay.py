"""A capture of a real server's logs, replayed on its restored data."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_data import dumped, shop
from raw_server import RawServer, binary
from user import User

from ironbench.errors import FailureError

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture")]

BLOCK = """\\set i random(1, 1000)
begin;
select name, price from item where id = :i;
insert into sale (item) values (:i) returning id \\gset
update sale set at = now() where id = :id;
end;
"""
ALONE = "\\set i random(1, 1000)\nselect count(*) from sale where item = :i;\n"
_STATISTICS_S = 0.5
TRANSACTIONS = 40
"""Number of transactions of each client of each script."""


def pgbench(server: RawServer, script: Path, *words: str) -> None:
    command = [binary("pgbench"), "-h", server.host, "-p", str(server.port), "-U", "postgres", "-n", "-f", str(script)]
    done = subprocess.run([*command, "-t", str(TRANSACTIONS), *words, "shop"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with a dump and the log of what happened after it, in csvlog and jsonlog."""
    folder = tmp_path_factory.mktemp("logged")
    (folder / "block.sql").write_text(BLOCK)
    (folder / "alone.sql").write_text(ALONE)
    settings = (
        "logging_collector=on",
        "log_destination=csvlog,jsonlog",
        "log_min_duration_statement=0",
        f"log_directory={folder / 'log'}",
    )
    with RawServer(*settings) as server:
        shop(server)
        dumped(server, folder / "shop.dump")
        user = User(folder)
        dsn = f"postgresql://postgres@/shop?host={server.host}&port={server.port}"
        assert user("capture", "--mark", dsn).code == 0
        pgbench(server, folder / "block.sql", "-c", "2", "-M", "prepared")
        pgbench(server, folder / "alone.sql", "-c", "1", "-M", "simple")
        psql = server.connect(database="shop")
        psql.query("set application_name = 'pgbench'")
        with pytest.raises(FailureError):
            psql.query("select 1 / 0")
        psql.close()
        time.sleep(_STATISTICS_S)
        assert user("capture", "--mark", dsn).code == 0
    yield folder


@pytest.fixture
def user(place: Path) -> User:
    return User(place)


def capture(user: User, logged: Path) -> None:
    told = user("capture", str(logged / "log"), "-o", "shop.capture")
    assert told.code == 0, told.stderr
    assert told.stdout == "shop.capture\n"


ONLY = ("--with", "file=shop.capture", "--with", "only=application:pgbench", "--no-observe")
BLOCKS, SINGLE = 2 * TRANSACTIONS, TRANSACTIONS


def test_the_mix_of_a_replay_is_that_of_the_capture(user: User, logged: Path) -> None:
    capture(user, logged)
    shown = user("show", "shop.capture", "--json").document
    by_template = {one["template"]: one["calls"] for one in shown["top"]}
    assert by_template["insert into sale(item) values (?) returning id"] == BLOCKS
    check = f"select count(*) = {5000 + BLOCKS} from sale"
    dump = ("--dump", str(logged / "shop.dump"), "--check", check)
    user.measured("run", "capture", *ONLY, *dump, "--with", "mode=fast")
    (record,) = user.records()
    assert [one["passed"] for one in record["checks"]] == [True]
    metrics = record["metrics"]
    assert metrics["failed"] == metrics["errors"] == 0
    # The session of `select 1 / 0`, whose failure is expected, began with a setting.
    assert metrics["transactions"] == BLOCKS + SINGLE + 2
    replayed: dict[str, int] = {}
    for one in record["statements"]:
        replayed[one["text"]] = replayed.get(one["text"], 0) + one["count"]
    for template, calls in by_template.items():
        if template in replayed and ("sale" in template or "item" in template):
            assert replayed[template] == calls, template
    assert replayed["select name, price from item where id = ?"] == BLOCKS
    assert metrics["replayed_statements"] == sum(replayed.values())
    assert metrics["replayed_failures"] == 1 and metrics["replayed_recoveries"] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--with", "mode=schedule", "--with", "speed=2"),
        ("--with", "mode=think", "--with", "speed=20"),
        ("--with", "mode=rate", "--rate", "400", "--duration", "1s"),
    ],
    ids=["schedule", "think", "rate"],
)
def test_every_mode_replays_the_transactions(user: User, logged: Path, words: tuple[str, ...]) -> None:
    capture(user, logged)
    user.measured("run", "capture", *ONLY, "--dump", str(logged / "shop.dump"), *words)
    (record,) = user.records()
    metrics = record["metrics"]
    assert metrics["failed"] == 0
    assert metrics["transactions"] > (BLOCKS + SINGLE) / 4
    if "mode=rate" not in words:
        assert metrics["transactions"] == BLOCKS + SINGLE + 2
        assert metrics["replayed_statements"] == 5 * BLOCKS + SINGLE + 2


def test_the_replay_is_compared_with_the_recording(user: User, logged: Path) -> None:
    """Only the transactions of pgbench and psql are between the marks."""
    capture(user, logged)
    user.measured("run", "capture", "--with", "file=shop.capture", "--dump", str(logged / "shop.dump"), "--no-observe")
    (record,) = user.records()
    metrics = record["metrics"]
    for measure in ("statements", "rows_inserted", "rows_updated"):
        assert metrics[f"recorded_work{{of={measure}}}"] == metrics[f"replayed_work{{of={measure}}}"], measure
    assert metrics["recorded_work{of=rows_inserted}"] == BLOCKS
    assert metrics["replay_divergence{of=mix}"] == metrics["replay_divergence{of=failed_statements}"] == 0
    assert metrics["recorded_work{of=wal_bytes}"] > 0 and metrics["replayed_work{of=wal_bytes}"] > 0
    shown = user("report").stdout
    assert "Fidelity of the replay" in shown and "not compared" not in shown


def test_two_replays_are_compared_by_statement(user: User, logged: Path) -> None:
    capture(user, logged)
    dump = str(logged / "shop.dump")
    scans = ("--set", "enable_indexscan=off", "--set", "enable_bitmapscan=off", "--set", "enable_indexonlyscan=off")
    words = ("run", "capture", *ONLY[:-1], "--with", "mode=fast", "--dump", dump)
    user.measured(*words, "--label", "with")
    user.measured(*words, "--label", "without", *scans)
    told = user("report")
    assert told.code == 0, told.stderr
    shown = told.stdout
    section = shown.partition("What changed, by statement")[2].partition("\n\n\n")[0]
    assert "select name, price from item where id = ?" in section, shown
    assert "Seq Scan" in section, section


def test_sessions_are_multiplied_and_writes_left_out(user: User, logged: Path) -> None:
    capture(user, logged)
    more = ("--with", "mode=fast", "--with", "sessions=3", "--with", "read_only=yes", "--with", "shift_time=yes")
    user.measured("run", "capture", *ONLY, "--dump", str(logged / "shop.dump"), *more)
    (record,) = user.records()
    metrics = record["metrics"]
    assert metrics["failed"] == 0
    assert metrics["replayed_statements"] == 3 * (SINGLE + 2)
    assert metrics["recorded_work{of=statements}"] == metrics["replayed_statements"]
    assert metrics["replay_divergence{of=mix}"] == 0
    assert "recorded_work{of=wal_records}" not in metrics, "the counters include writes"
