"""`ironbench lab new` writes lab files that can be planned immediately or after the user fills in placeholders."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_mysql import RawMysql
from raw_server import RawServer
from user import PAUSED, User

from ironbench import engines
from ironbench.engines.postgres import dsn as addresses
from ironbench.engines.postgres.engine import PostgresEngine
from ironbench.model.system import System
from ironbench.records.labs import LabDirectory

pytestmark = pytest.mark.live

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
ROOT = Path(__file__).parents[2]
AT_ONCE = ("setting", "storage", "driver", "headroom")
KINDS = [*AT_ONCE, "upgrade", "index", "query", "machines"]


@pytest.fixture(scope="module")
def theirs() -> Iterator[str]:
    """The address of a distribution's server."""
    if not (PROGRAMS / "postgres").exists():
        pytest.skip(f"no PostgreSQL in {PROGRAMS}")
    with RawServer("work_mem=9MB", programs=PROGRAMS) as server:
        yield f"postgresql://postgres@127.0.0.1:{server.port}/postgres"


def filled(user: User, text: str, dsn: str) -> str:
    """Replaces the placeholders as a user would, and creates the files that the text names."""
    for name in ("scripts.sql", "before.sql", "after.sql", "index.sql"):
        (user.home / name).write_text(f"SELECT 1; -- {name}\n")
    (user.home / "shop.sql").write_text("CREATE TABLE shop (id int);\n")
    places = {
        "FILL-IN.dump": "shop.sql",
        "FILL-IN.sql": "scripts.sql",
        "FILL-IN-index.sql": "index.sql",
        "FILL-IN-before.sql": "before.sql",
        "FILL-IN-after.sql": "after.sql",
        "FILL-IN-database": "template1",
        'dsn = "FILL-IN"': f'dsn = "{dsn.replace("/postgres", "/template1")}"',
        'bin = "FILL-IN"': f'bin = "{PROGRAMS}"',
    }
    for mark, content in places.items():
        text = text.replace(mark, content)
    assert not re.search("^[^#]*FILL-IN", text, re.MULTILINE)
    return text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", ["ours", "theirs"])
def test_every_kind_can_be_planned(user: User, request: pytest.FixtureRequest, kind: str, server: str) -> None:
    dsn = request.getfixturevalue("theirs")
    today = ("--today", "100") if kind == "headroom" else ()
    told = user("lab", "new", kind, *today, *(("--dsn", dsn) if server == "theirs" else ()))
    if (kind, server) == ("machines", "ours"):
        assert told.code == 2 and "--dsn is missing" in told.stderr
        return
    assert told.code == 0, told
    file = user.home / f"{kind}.toml"
    text = file.read_text()
    left = re.search("^[^#]*FILL-IN", text, re.MULTILINE) is not None
    assert left == (kind not in AT_ONCE and (kind, server) != ("upgrade", "ours"))
    assert ("15." in text) == (server == "theirs")
    file.write_text(filled(user, text, dsn))
    plan = user("lab", "plan", file.name)
    assert plan.code == 0, plan
    assert "skipped" not in plan.stdout and "too short for two checkpoints" not in plan.stdout


@pytest.mark.parametrize("kind", ["storage", "upgrade"])
def test_with_a_dump_and_scripts_nothing_is_left_to_fill_in(user: User, kind: str) -> None:
    (user.home / "shop.sql").write_text("CREATE TABLE shop (id int);\n")
    (user.home / "read.sql").write_text("SELECT count(*) FROM shop;\n")
    (user.home / "write.sql").write_text("INSERT INTO shop VALUES (1);\n")
    told = user("lab", "new", kind, "--dump", "shop.sql", "--script", "read.sql@9", "--script", "write.sql")
    assert told.code == 0, told
    text = (user.home / f"{kind}.toml").read_text()
    assert 'dump = "shop.sql"' in text and 'files = ["read.sql@9", "write.sql"]' in text and "FILL-IN" not in text
    plan = user("lab", "plan", f"{kind}.toml", "--json")
    assert plan.code == 0, plan


def test_the_storage_lab_measures_zero_latency_wal_and_device_models(user: User) -> None:
    assert user("lab", "new", "storage").code == 0
    text = (user.home / "storage.toml").read_text()
    levels = re.findall(r"^(?:# )?(\S.*?) = \{ (.*) \}", text[text.index("[vary.storage]") :], re.MULTILINE)
    named = dict(levels)
    assert named['"zero-latency WAL"'] == 'ideal = "log"'
    models = {name: re.findall(r'layout\.\w+ = "([\w-]+)', value) for name, value in named.items()}
    assert [models[name] for name in ("gp3", "io2", "NVMe")] == [
        ["aws-gp3"] * 2,
        ["aws-io2"] * 2,
        ["ssd-nvme-enterprise"] * 2,
    ]
    needs = re.findall(
        r"^(?:# )?(?:gp3|io2|NVMe) = .*# ([\d,]+) reads/s; refused if emulation achieves fewer than ([\d,]+)",
        text,
        re.MULTILINE,
    )
    reads, least = ([int(number.replace(",", "")) for number in column] for column in zip(*needs, strict=True))
    assert reads == sorted(reads) and all(0 < low < high for low, high in zip(least, reads, strict=True))


def test_an_upgrade_pins_the_programs_and_the_checksums_of_both_versions(user: User) -> None:
    assert user("lab", "new", "upgrade").code == 0
    lab = tomllib.loads((user.home / "upgrade.toml").read_text())
    places = [level["bin"] for level in lab["vary"]["version"].values()]
    assert len(set(places)) == 2
    assert lab["system"]["set"] == {"data_checksums": "on"}


@pytest.mark.skipif(not (PROGRAMS / "pg_config").exists(), reason=f"no pg_config in {PROGRAMS}")
def test_an_upgrade_from_a_distributions_build_to_the_built_in_one_warns_in_the_file_and_before_the_lab(
    user: User,
) -> None:
    told = user("lab", "new", "upgrade", "--other", str(PROGRAMS))
    assert told.code == 0
    assert re.search(
        r"^warning: .*15\.\d+ is built with TLS, ICU, JIT, lz4 and zstd, but 18\.\d+ is not", told.stderr, re.M
    )
    assert "# Warning: the versions are not the only difference" in (user.home / "upgrade.toml").read_text()
    plan = user("lab", "plan", "upgrade.toml", "--trust")
    assert plan.code == 0 and "is built with TLS, ICU, JIT, lz4 and zstd" in " ".join(plan.stdout.split())


def test_a_dump_that_is_not_there_is_refused(user: User) -> None:
    told = user("lab", "new", "storage", "--dump", "none.sql")
    assert told.code == 2 and "none.sql" in told.stderr and not list(user.home.glob("*.toml"))


@pytest.mark.parametrize("version", ["wheel:16", "wheel:18"])
def test_a_server_has_the_checksums_that_are_asked_for_whatever_its_default(user: User, version: str) -> None:
    data = user.home / "data"
    for wanted in ("on", "off", "on"):
        (user.home / "check.sql").write_text(f"SELECT 1 / (current_setting('data_checksums') = '{wanted}')::int;\n")
        options = (*PAUSED, "--duration", "0.3s", "--warmup", "0s", "--no-observe", "--data", f"{data}/")
        chosen = ("--set", f"bin={version}", "--set", f"data_checksums={wanted}")
        told = user("run", "script", "check.sql", *chosen, *options)
        assert told.code in (0, 3), told


def test_a_role_that_may_not_request_checkpoints_gets_that_line_as_a_comment_with_the_grant(
    user: User, theirs: str
) -> None:
    system, secrets = engines.get("postgres").validated(System("postgres", "boss", dsn=theirs), 1)
    with engines.running(system, secrets, 1) as boss:
        boss.query("create role modest login")
    assert user("lab", "new", "driver", "--dsn", theirs.replace("postgres@", "modest@")).code == 0
    text = (user.home / "driver.toml").read_text()
    assert re.search(
        r'^# checkpoint = "10s" .*; have an administrator run: GRANT pg_checkpoint TO modest', text, re.MULTILINE
    ), text
    assert "ironbench is itself the database client" in text


@pytest.mark.parametrize("server", ["ours", "theirs"])
def test_an_upgrade_can_be_asked_about_ones_own_data(user: User, theirs: str, server: str) -> None:
    assert user("lab", "new", "upgrade", *(("--dsn", theirs) if server == "theirs" else ())).code == 0
    text = (user.home / "upgrade.toml").read_text()
    head, own, rest = re.split(r"^# Your own data.*\n((?:#.*\n)+)", text, maxsplit=1, flags=re.MULTILINE)
    own = re.sub(r"^# ?", "", own, flags=re.MULTILINE)
    assert "dump = " in own and head.count("[workload]") == 1
    (user.home / "upgrade.toml").write_text(filled(user, head[: head.index("[workload]")] + own + rest, theirs))
    plan = user("lab", "plan", "upgrade.toml")
    assert plan.code == 0, plan


def test_a_setting_starts_from_its_present_value_and_every_suggestion_can_be_planned(user: User, theirs: str) -> None:
    assert user("lab", "new", "setting", "--dsn", theirs).code == 0
    text = (user.home / "setting.toml").read_text()
    assert "The current value is 9MB." in text and '# "9MB" = { dsn = ' in text
    head, *factors = re.split(
        r"(?=^\[vary|^# \[vary)", text.replace("# Other settings", "# other settings"), flags=re.MULTILINE
    )
    assert len(factors) > 2
    measure = text[text.index("[measure]") :]
    for number, factor in enumerate(factors):
        lines = [line.removeprefix("# ") for line in factor.splitlines() if re.match(r'(# )?(\[vary|")', line)]
        (user.home / f"{number}.toml").write_text(head + "\n".join([*lines, measure]))
        told = user("lab", "plan", f"{number}.toml")
        assert told.code == 0, told


def test_mariadb_accepts_every_value_of_every_suggested_setting(user: User) -> None:
    for knob in engines.get("mariadb").traits.knobs:
        file = f"{knob.name}.toml"
        assert user("lab", "new", "setting", "--engine", "mariadb", "--setting", knob.name, "-o", file).code == 0
        told = user("lab", "plan", file)
        assert told.code == 0, told


@pytest.mark.parametrize("kind", ["setting", "index"])
def test_a_database_of_theirs_is_the_template_and_gets_no_tables_of_ours(user: User, theirs: str, kind: str) -> None:
    boss = engines.get("postgres").start(*engines.get("postgres").validated(System("postgres", "x", dsn=theirs), 1), 1)
    boss.query("drop database if exists mall")
    boss.query("create database mall")
    boss.stop()
    assert user("lab", "new", kind, "--dsn", f"{theirs.rpartition(chr(47))[0]}/mall").code == 0
    text = (user.home / f"{kind}.toml").read_text()
    assert 'template = "mall"' in text and f'dsn = "{theirs}' in text and "igen-oltp" not in text
    (user.home / f"{kind}.toml").write_text(filled(user, text, theirs))
    plan = user("lab", "plan", f"{kind}.toml")
    assert plan.code == 0, plan


def test_what_is_there_is_not_overwritten(user: User) -> None:
    (user.home / "setting.toml").write_text("mine")
    told = user("lab", "new", "setting")
    assert told.code == 2, told
    assert "already exists" in told.stderr
    assert (user.home / "setting.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("seting",), "did you mean setting"),
        (("setting", "--engine", "duckdb"), "lacks"),
        (("setting", "--dsn", "postgresql://nobody@127.0.0.1:1/none"), "127.0.0.1"),
    ],
)
def test_what_cannot_be_written_for_is_refused_and_leaves_no_file(
    user: User, words: tuple[str, ...], cause: str
) -> None:
    told = user("lab", "new", *words)
    assert told.code in (1, 2), told
    assert cause in told.stderr
    assert not list(user.home.glob("*.toml"))


def test_a_password_of_the_dsn_is_not_written(user: User, theirs: str) -> None:
    told = user("lab", "new", "setting", "--dsn", theirs.replace("postgres@", "postgres:geheim-99@"))
    assert told.code == 0, told
    assert "geheim-99" not in (user.home / "setting.toml").read_text() + told.stderr


def test_a_session_setting_of_a_dsn_reaches_the_server(user: User, theirs: str) -> None:
    text = PostgresEngine().with_session_setting(theirs + "?options=-c%20jit%3Doff", "search_path", "a, b c")
    assert addresses.parse(text, {})[0].options["options"] == r"-c jit=off -c search_path=a,\ b\ c"
    wanted = PostgresEngine().with_session_setting(theirs, "work_mem", "64MB")
    (user.home / "check.sql").write_text("SELECT 1 / (current_setting('work_mem') = '64MB')::int;\n")
    options = (*PAUSED, "--duration", "0.3s", "--warmup", "0s", "--no-observe")
    assert user("run", "script", "check.sql", "--dsn", wanted, *options).code in (0, 3)
    assert user("run", "script", "check.sql", "--dsn", theirs, *options).code == 1


def test_levels_that_differ_in_a_session_setting_start_from_the_same_data(user: User, theirs: str) -> None:
    other = PostgresEngine().with_session_setting(theirs, "synchronous_commit", "off")
    (user.home / "levels.toml").write_text(f"""
question = "Does waiting for the log matter?"
workload.name = "tpcb-like"
load = {{ think_time = "5ms", duration = "0.5s", warmup = "0s" }}
[vary.commit]
on = {{ dsn = "{theirs}" }}
off = {{ dsn = "{other}" }}
[measure]
repeats = 1
quiet = "0s"
rates = "none"
""")
    told = user("lab", "run", "levels.toml")
    assert told.code in (0, 3), told
    (directory,) = (path.parent for path in user.results.glob("labs/*/plan.json"))
    found = {record.cell.name: record.conditions["data"] for record in LabDirectory(directory).records()}
    assert set(found) == {"commit=on", "commit=off"}
    assert all(text.startswith("loaded again") for text in found.values()), found


@pytest.mark.parametrize("verb", ["lab", pytest.param("run", marks=pytest.mark.long)])
def test_the_lines_of_the_guide_run(verb: str, user: User, theirs: str) -> None:
    page = "".join((ROOT / "docs" / "how" / f"{name}.md").read_text() for name in ("vary-anything", "connections"))
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shown = [line for kind, block in blocks if not kind for line in block.splitlines()]
    (user.home / "shop.dump").write_text("CREATE TABLE shop (id int);\n")
    (user.home / "orders.sql").write_text("SELECT count(*) FROM shop;\n")
    lines = [line for line in shown if line.startswith(f"ironbench {verb} ")]
    assert len(lines) >= (4 if verb == "lab" else 1)
    for line in lines:
        words = [theirs if word.startswith("postgresql://") else word for word in shlex.split(line)[1:]]
        told = user(*words)
        assert told.code in (0, 3), (line, told)  # flagged if other programs used its CPU time


def test_a_global_setting_of_a_running_mariadb_is_changed_for_its_trials_and_changed_back(
    user: User, raw_mysql: RawMysql, mysql_database: str
) -> None:
    (before,) = raw_mysql.query("SELECT @@global.sort_buffer_size")
    address = f"mysql://root@localhost/{mysql_database}?socket={raw_mysql.socket}&tls=disable"
    (user.home / "sort.sql").write_text("SELECT @@sort_buffer_size;\n")
    named = ("--script", "sort.sql", "--setting", "sort_buffer_size")
    told = user("lab", "new", "setting", "--dsn", address, *named)
    assert told.code == 0, told
    text = (user.home / "setting.toml").read_text()
    for other in ("innodb_flush_log_at_trx_commit", "join_buffer_size"):
        assert f"# [vary.{other}]" in text
    # The first needs a restart, and the second also changes innodb_io_capacity_max.
    assert "innodb_log_file_size" not in text and "innodb_io_capacity" not in text
    lab = tomllib.loads(text)
    (now, changed) = lab["vary"]["sort_buffer_size"].items()
    assert str(before[0]) == now[0] and now[1]["prepare"] == now[1]["cleanup"] == changed[1]["cleanup"]
    # The script writes nothing, so it needs no copy of a database.
    text = re.sub(r"\[data\]\n.*\n", "", text)
    text = re.sub(r'duration = ".*"', 'duration = "0.3s"\nwarmup = "0s"', text)
    text = text.replace("repeats = 6", 'quiet = "0s"\nrepeats = 1')
    (user.home / "setting.toml").write_text(text)
    told = user("lab", "run", "setting.toml")
    assert told.code in (0, 3), told
    (directory,) = (path.parent for path in user.results.glob("labs/*/plan.json"))
    store = LabDirectory(directory).store
    found = {
        record.cell.levels["sort_buffer_size"]: store.engine(record.engine)["settings"]["sort_buffer_size"]
        for record in LabDirectory(directory).records()
    }
    assert found == {str(before[0]): str(before[0]), changed[0]: str(16 << 20)}
    assert raw_mysql.query("SELECT @@global.sort_buffer_size") == [before]
