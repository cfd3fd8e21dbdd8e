"""The user's own data on servers that ironbench starts: effects and refusals of dumps, setup files and checks."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_data import FORMS, SCRIPT, SUMS, dumped, shop
from patience import eventually
from raw_server import RawServer
from user import SHORT, User

from ironbench import engines, workloads
from ironbench.model.own_data import OwnData
from ironbench.model.secrets import Secrets
from ironbench.model.system import Cell, Choice, Layout, Load, Setup, System
from ironbench.printer import Printer
from ironbench.trial.load import own, restore, snapshot

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def dumps(raw_server: RawServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with `shop.custom`, `shop.directory`, `shop.tar` and `shop.plain`."""
    folder = tmp_path_factory.mktemp("dumps")
    shop(raw_server)
    for form in FORMS:
        dumped(raw_server, folder / f"shop.{form}", form)
    yield folder
    boss = raw_server.connect()
    boss.query("drop database shop")
    boss.query("drop role shopkeeper")
    boss.close()


@pytest.fixture
def user(place: Path) -> User:
    (one := User(place)).home.joinpath("one.sql").write_text(SCRIPT)
    return one


def loaded_nothing(user: User) -> bool:
    """Checks that there is no snapshot, complete or partial, and no trial."""
    snapshots = user.home / "data" / "snapshots"
    return not [path for path in snapshots.glob("*") if path.suffix != ".lock"] and not user.records()


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.long if form in ("directory", "tar") else ()) for form in FORMS]
)
def test_every_kind_of_dump_is_restored_whole_whoever_owned_its_tables(user: User, dumps: Path, form: str) -> None:
    counts = "(select count(*) from item) = 1000 and (select count(*) from sale) >= 5000"
    check = f"select {counts} and (select count(*) from dear) = 500"
    user.measured("run", "script", "one.sql", "--dump", str(dumps / f"shop.{form}"), "--check", check, *SHORT)
    (record,) = user.records()
    assert [check["passed"] for check in record["checks"]] == [True]
    assert record["choice"]["data"]["kind"].startswith(f"{form} dump of version 18")
    assert record["metrics"]["data_bytes"] > 0


@pytest.mark.long
def test_the_trials_of_a_lab_start_from_equal_data_and_setup_is_a_factor(user: User, dumps: Path) -> None:
    (user.home / "index.sql").write_text("create index on sale (item);\n")
    (user.home / "lab.toml").write_text(
        f"""question = "Does an index help?"
[workload]
name = "script"
files = ["one.sql"]
[data]
dump = "{dumps / "shop.custom"}"
check = "select count(*) between 5001 and 100000 from sale"
[load]
think_time = "5ms"
duration = "0.3s"
warmup = "0s"
[vary]
setup = [[], ["index.sql"]]
[measure]
repeats = 2
quiet = "0s"
"""
    )
    plan = user("lab", "plan", "lab.toml")
    assert plan.code == 0 and "custom dump of version 18" in plan.stdout, plan.stdout
    assert "when loaded into postgres 18." in plan.stdout and "reused from an earlier load" not in plan.stdout, (
        plan.stdout
    )
    told = user.measured("lab", "run", "lab.toml", "--results", "lab")
    assert told.stderr.count("when loaded") == 2  # once for each value, not for each trial
    assert len(list((user.home / "lab" / "trials").glob("*"))) == 4
    assert told.stderr.count("when loaded into postgres 18.") == 2
    plan = user("lab", "plan", "lab.toml")
    assert (
        plan.stdout.count("when loaded into postgres 18.") == plan.stdout.count("reused from an earlier load") == 2
    ), plan.stdout
    again = user("lab", "run", "lab.toml", "--results", "again")
    assert "when loaded" not in again.stderr and again.stderr.count("snapshot of") == 2


def test_each_trial_of_a_run_starts_from_the_data_as_they_were_loaded(user: User, dumps: Path) -> None:
    count = ("--transactions", "10", "--warmup", "0s", "--repeats", "3", "--clients", "2", "--no-observe")
    check = "select count(*) = 5020 from sale"
    told = user.measured("run", "script", "one.sql", "--dump", str(dumps / "shop.custom"), "--check", check, *count)
    records = user.records()
    assert len(records) == 3 and all(one["checks"][0]["passed"] for one in records), told.stderr
    assert all("snapshot" in one["conditions"]["data"] for one in records)
    assert told.stderr.count("data: snapshot") == 1
    assert user.nothing_runs()


@pytest.mark.parametrize(
    ("check", "seen"),
    [
        ("select count(*) = 5000 from sale", "false"),
        *(
            pytest.param(*pair, marks=pytest.mark.long)
            for pair in (
                ("select 1 / (count(*) - count(*)) = 1 from sale", "division by zero"),
                ("select count(*) from sale", "neither true nor false"),
                ("select null::boolean", "null"),
                ("select true from item", "1000 rows"),
            )
        ),
    ],
)
def test_a_check_that_is_not_true_voids_the_trial_and_says_what_it_found(
    user: User, dumps: Path, check: str, seen: str
) -> None:
    told = user("run", "script", "one.sql", "--dump", str(dumps / "shop.custom"), "--check", check, *SHORT)
    (record,) = user.records()
    assert record["status"] == "voided" and seen in record["checks"][0]["actual"], record["checks"]
    assert told.code == 1 and seen in told.stderr, told.stderr


def test_a_check_that_cannot_be_understood_ends_the_run_before_a_trial(user: User, dumps: Path) -> None:
    told = user(
        "run", "script", "one.sql", "--dump", str(dumps / "shop.custom"), "--check", "select no from sale", *SHORT
    )
    assert told.code == 2 and '"no" does not exist' in told.stderr and "--check" in told.stderr
    assert not user.records()


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("CREATE VIEW", "CREATE WIEV", 'syntax error at or near "WIEV"'),
        ("\n7\t", "\nseven\t", 'invalid input syntax for type integer: "seven"'),
        ("COPY public.sale (id", "COPY public.sale (di", 'column "di" of relation "sale" does not exist'),
    ],
)
def test_a_dump_that_does_not_restore_is_refused_in_its_own_words_and_nothing_is_kept(
    user: User, dumps: Path, good: str, bad: str, words: str
) -> None:
    text = (dumps / "shop.plain").read_text()
    assert good in text
    (user.home / "broken.sql").write_text(text.replace(good, bad, 1))
    told = user("run", "script", "one.sql", "--dump", "broken.sql", *SHORT)
    assert told.code == 1 and words in told.stderr and "broken.sql" in told.stderr, told.stderr
    assert loaded_nothing(user)


def test_a_custom_dump_that_is_cut_short_is_refused(user: User, dumps: Path) -> None:
    whole = (dumps / "shop.custom").read_bytes()
    (user.home / "cut.dump").write_bytes(whole[: len(whole) * 2 // 3])
    told = user("run", "script", "one.sql", "--dump", "cut.dump", *SHORT)
    assert told.code in (1, 2) and "cut.dump" in told.stderr and "end of file" in told.stderr, told.stderr
    assert loaded_nothing(user)


def test_a_dump_of_a_newer_pg_dump_is_refused_with_the_version_that_it_has(user: User, dumps: Path) -> None:
    whole = bytearray((dumps / "shop.custom").read_bytes())
    whole[6] = 99
    (user.home / "new.dump").write_bytes(whole)
    told = user("run", "script", "one.sql", "--dump", "new.dump", *SHORT)
    assert told.code == 2 and "unsupported version (1.99)" in told.stderr and "install" in told.stderr
    assert user.untouched()


def test_a_dump_of_a_newer_server_is_refused(user: User, dumps: Path) -> None:
    text = (dumps / "shop.plain").read_text().replace("from database version 18", "from database version 19")
    (user.home / "new.sql").write_text(text)
    told = user("run", "script", "one.sql", "--dump", "new.sql", *SHORT)
    assert told.code == 2 and "PostgreSQL 19" in told.stderr and "older" in told.stderr
    assert user.untouched()


def test_a_dump_that_needs_an_extension_that_is_not_there_is_refused_by_its_name(user: User, dumps: Path) -> None:
    text = (dumps / "shop.plain").read_text()
    text = text.replace(
        "SET default_tablespace", "CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA public;\nSET default_tablespace", 1
    )
    (user.home / "extended.sql").write_text(text)
    for words in (SHORT, ("--plan",)):
        told = user("run", "script", "one.sql", "--dump", "extended.sql", *words)
        assert told.code == 2 and "extension hstore" in told.stderr, told.stderr
    assert user.untouched()
    (user.home / "extended.sql").write_text(text.replace("hstore", "pg_stat_statements"))
    told = user("run", "script", "one.sql", "--dump", "extended.sql", *SHORT)
    assert told.code in (0, 3) and "without pg_stat_statements, which only collects statistics" in told.stderr, (
        told.stderr
    )


@pytest.mark.parametrize(
    "line",
    [
        "\\connect shop",
        "DROP DATABASE shop;",
        "\\i other.sql",
        "  alter role postgres PASSWORD 'x';",
        "\\! ls",
        "a; \\c shop",
        "select 1; drop database shop;",
        "select 'drop database shop' \\gexec",
    ],
)
@pytest.mark.parametrize("option", ["--dump", "--setup"])
def test_text_that_reaches_beyond_its_database_is_refused(user: User, option: str, line: str) -> None:
    (user.home / "far.sql").write_text(f"create table t (a int);\n{line}\n")
    told = user("run", "script", "one.sql", option, "far.sql", *SHORT)
    assert told.code == 2 and "line 2" in told.stderr and "outside" in told.stderr, told.stderr
    assert user.untouched()


def test_a_setup_file_that_fails_names_statement_and_reason_and_nothing_is_kept(user: User) -> None:
    (user.home / "schema.sql").write_text("create table item (id int, name text);\ninsert into itme values (1);\n")
    told = user("run", "script", "one.sql", "--setup", "schema.sql", *SHORT)
    assert told.code == 1 and "schema.sql" in told.stderr and '"itme" does not exist' in told.stderr
    assert loaded_nothing(user)


def test_setup_files_alone_make_data(user: User) -> None:
    (user.home / "schema.sql").write_text(
        "create table item (id int primary key, name text); create table sale (item int);\n"
    )
    (user.home / "rows.sql").write_text("insert into item select n, 'n' from generate_series(1, 1000) n;\n")
    words = ("--setup", "schema.sql", "--setup", "rows.sql", "--check", "select count(*) = 1000 from item")
    user.measured("run", "script", "one.sql", *words, *SHORT)
    assert user.records()[0]["checks"][0]["passed"]


def test_a_file_that_is_not_there_or_no_dump_is_refused_before_anything_starts(user: User) -> None:
    (user.home / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (user.home / "empty").mkdir()
    (user.home / "nothing").write_bytes(b"")
    for name, cause in (
        ("gone.dump", "no such file"),
        ("image.png", "binary"),
        ("empty", "empty"),
        ("nothing", "nothing"),
    ):
        told = user("run", "script", "one.sql", "--dump", name, *SHORT)
        assert told.code == 2 and cause in told.stderr and name in told.stderr, told.stderr
    assert user.untouched()


def test_what_cannot_be_together_is_refused(user: User, dumps: Path) -> None:
    dump = ("--dump", str(dumps / "shop.custom"))
    for words, cause in (
        (("script", "one.sql", *dump, "--template", "shop"), "cannot be combined"),
        (("script", "one.sql", "--template", "shop"), "running server"),
        (("tpcb-like", *dump), "loads its own data"),
        (("script", "one.sql", "--engine", "null", *dump), "cannot load dumps"),
    ):
        told = user("run", *words, *SHORT)
        assert told.code == 2 and cause in told.stderr, told.stderr
    assert user.untouched()


@pytest.mark.long
def test_a_lab_goes_on_from_its_snapshot_when_the_dump_is_gone_and_is_refused_without_either(
    user: User, dumps: Path
) -> None:
    dump = user.home / "shop.dump"
    dump.write_bytes((dumps / "shop.custom").read_bytes())
    (user.home / "lab.toml").write_text(
        """question = "More clients?"
[workload]
name = "script"
files = ["one.sql"]
[data]
dump = "shop.dump"
[load]
think_time = "5ms"
duration = "1s"
warmup = "0s"
[vary]
clients = [1, 2]
[measure]
repeats = 2
quiet = "0s"
"""
    )
    with user.begun("lab", "run", "lab.toml", "--results", "lab") as begun:
        begun.wait_for("trial 2 of 4")
        begun.end(9)
    shutil.copytree(user.home / "lab", user.home / "third")
    dump.write_bytes(b"changed")
    user.measured("lab", "resume", "lab")
    assert user("cleanup", "--data").code == 0
    dump.write_bytes((dumps / "shop.custom").read_bytes() + b" ")
    told = user("lab", "resume", "third")
    assert told.code == 2 and "was changed since" in told.stderr, told.stderr
    dump.unlink()
    told = user("lab", "resume", "third")
    assert told.code == 2 and "no such file" in told.stderr, told.stderr


@pytest.mark.long
def test_whatever_kills_it_the_dump_stays_and_nothing_of_ours_is_left(user: User, dumps: Path) -> None:
    """SIGKILL while it loads, restores and measures; then the same command succeeds."""
    dump = dumps / "shop.custom"
    before = dump.read_bytes()
    words = ("run", "script", "one.sql", "--dump", str(dump), "--warmup", "0s", "--no-observe", "--duration")
    for said, delay_s in (
        # while it loads, unless a load before was complete when its process was killed
        *(("shop.custom", 0.1 * step) for step in range(4)),
        *(("data: shop.custom", 0.1 * step) for step in range(4)),
        ("trial 1", 0.0),
        ("trial 1", 0.5),
    ):
        with user.begun(*words, "3s") as begun:
            begun.wait_for(said)
            time.sleep(delay_s)
            begun.end(signal.SIGKILL)
        assert eventually(user.nothing_runs)
        assert user("cleanup").code == 0
    assert dump.read_bytes() == before
    user.measured(*words, "0.5s", "--check", "select count(*) > 5000 from sale")
    assert user.records()[-1]["checks"][0]["passed"]
    assert user("cleanup", "--data").code == 0
    assert not [path for path in (user.home / "data").rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.long
def test_after_twenty_restores_with_changes_in_between_every_table_has_the_same_checksum(
    user: User, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    engine = engines.get("postgres")
    system, _ = engine.validated(System("postgres", "test", layout=Layout(str(user.home / "own"))), 2)
    data = own.identified(OwnData(dump=str(dumps / "shop.custom")), system, workloads.get("script"))
    setup = Setup(Cell("test", Load()), system, Choice("script", data=data))
    source = snapshot.source_ready(setup, Secrets(), Printer.silent())
    seen = set()
    for number in range(21):
        restore.restored(setup, source)
        if number % 5 == 0:
            with engines.running(system, Secrets(), 2) as session:
                sums = [session.query(SUMS.format(table))[0] for table in ("item", "sale", "dear")]
                seen.add(tuple(sums))
                session.query("update item set name = 'spoilt'; delete from sale; drop view dear")
    assert len(seen) == 1
