"""Statements of docs/workloads/scripts.md about pgbench and ironbench, checked against both programs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import launch
import pytest
from raw_server import RawServer, binary

pytestmark = pytest.mark.live


@dataclass
class Side:
    """The output of one program."""

    code: int
    stderr: str
    metrics: dict[str, float] = field(default_factory=dict)
    cause: str = ""

    @property
    def debug(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if line.startswith("debug(")]


class Programs:
    def __init__(self, server: RawServer, directory: Path) -> None:
        self.server = server
        self.directory = directory

    def file(self, name: str, text: str | bytes) -> str:
        path = self.directory / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def pgbench(self, *words: str) -> Side:
        host, port = self.place
        place = ["-h", host, "-p", str(port), "-U", "postgres", "postgres"]
        done = subprocess.run(
            [binary("pgbench"), "-n", *words, *place],
            capture_output=True,
            timeout=60,
            env={**os.environ, "LC_ALL": "C"},
        )
        return Side(done.returncode, done.stderr.decode(errors="replace"))

    def ironbench(self, *words: str, stdin: str = "") -> Side:
        command = ["run", "script", *words, "--warmup", "0s", "--no-observe", "--json"]
        command += ["--dsn", self.dsn, "--results", str(self.directory / "results")]
        done = launch.run(command, stdin=stdin)
        trials = json.loads(done.stdout)["trials"] if done.stdout else []
        return Side(
            done.returncode,
            done.stderr,
            trials[0]["metrics"] if trials else {},
            trials[0]["cause"] if trials else "",
        )

    @property
    def place(self) -> tuple[str, int]:
        """Directory of the socket and port that both programs connect to."""
        return self.server.host, self.server.port

    @property
    def dsn(self) -> str:
        host, port = self.place
        return f"host={host} port={port} user=postgres dbname=postgres"

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        session = self.server.connect()
        try:
            return [tuple(row) for row in session.query(sql)]
        finally:
            session.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    with RawServer() as server:
        yield Programs(server, tmp_path_factory.mktemp("scripts"))


RANDOM = r"""
\set a debug(random(1, 1000000))
\set b debug(random_gaussian(1, 1000000, 3.0))
\set c debug(random_exponential(1, 1000000, 3.0))
\set d debug(random_zipfian(1, 1000000, 1.2))
\set e debug(hash(:a) + 0)
\set f debug(permute(:a, 1000000))
\set g debug(:random_seed)
SELECT 1;
"""


@pytest.mark.parametrize("define", [[], ["-Ddefault_seed=7"]])
def test_the_seed_of_one_trial_is_pgbenchs_random_seed(both: Programs, define: list[str]) -> None:
    file = both.file("random.sql", RANDOM)
    theirs = both.pgbench("-c1", "-t20", "--random-seed=20260", "-f", file, *define)
    ours = both.ironbench(file, "--transactions", "20", "--seed", "20260", *define)
    assert len(theirs.debug) == 140
    assert ours.debug == theirs.debug


def test_several_scripts_come_in_pgbenchs_order(both: Programs) -> None:
    files = [both.file(f"{name}.sql", f"\\set x debug({name} + 0 * random(1, 2))\nSELECT 1;\n") for name in ("1", "2")]
    weighted = [f"{files[0]}@3", f"{files[1]}@2"]
    theirs = both.pgbench("-c1", "-t50", "--random-seed=9", "-f", weighted[0], "-f", weighted[1])
    ours = both.ironbench(*weighted, "--transactions", "50", "--seed", "9")
    assert {line.rpartition(" ")[2] for line in theirs.debug} == {"1", "2"}
    assert ours.debug == theirs.debug


@pytest.mark.parametrize("threads", ["1", "2"])
def test_several_clients_draw_as_pgbenchs_with_a_thread_each(both: Programs, threads: str) -> None:
    log = [both.file(f"log{n}.sql", f"\\set x random(1, 1000000)\nINSERT INTO drawn VALUES ({n}, :client_id, :x);\n")
           for n in (1, 2)]  # fmt: skip
    found = []
    for program in ("pgbench", "ironbench"):
        both.rows("DROP TABLE IF EXISTS drawn")
        both.rows("CREATE TABLE drawn (script int, client int, x int, number serial)")
        if program == "pgbench":
            done = both.pgbench("-c3", "-j3", "-t10", "--random-seed=77", "-f", log[0], "-f", log[1])
        else:
            done = both.ironbench(
                *log, "--clients", "3", "--threads", threads, "--transactions", "10", "--seed", "77",
                "--protocol", "simple",
            )  # fmt: skip
        assert done.code in (0, 3), done.stderr
        found.append(both.rows("SELECT client, script, x FROM drawn ORDER BY client, number"))
    assert len(found[0]) == 30
    assert found[1] == found[0]


def test_trials_of_a_sweep_draw_numbers_of_their_own(both: Programs) -> None:
    file = both.file("seed.sql", "\\set x debug(:random_seed)\nSELECT 1;\n")
    told = both.ironbench(file, "--transactions", "1", "--seed", "5", "--repeats", "3").debug
    assert len(set(told)) == 3
    assert not any(line.endswith(" 5") for line in told)


def test_the_default_protocol_is_that_of_pgbench(both: Programs) -> None:
    text = "SELECT count(*) AS n FROM pg_prepared_statements \\gset\n\\set x debug(:n)\n"
    file = both.file("protocol.sql", text)
    assert both.pgbench("-t1", "-f", file).debug == ["debug(script=0,command=2): int 0"]
    assert both.ironbench(file, "--transactions", "1").debug == ["debug(script=0,command=2): int 0"]
    assert both.ironbench(file, "--transactions", "1", "--protocol", "prepared").debug[0].endswith("int 1")


RETRIED = r"""
\set tries :tries + 1
\set x debug(random(1, 1000000))
\set y debug(:tries)
SELECT nextval('attempt') AS attempt \gset
\if :attempt = 1
  DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$;
\endif
"""


def test_a_repeated_transaction_starts_with_its_first_variables_here_and_not_in_pgbench(both: Programs) -> None:
    file = both.file("retried.sql", RETRIED)
    both.rows("CREATE SEQUENCE attempt")
    theirs = both.pgbench("-t1", "--max-tries=2", "--random-seed=3", "-Dtries=0", "-f", file)
    both.rows("ALTER SEQUENCE attempt RESTART")
    ours = both.ironbench(
        file, "--transactions", "1", "--max-tries", "2", "--seed", "3", "-Dtries=0", "--protocol", "simple"
    )
    drawn, counted = theirs.debug[0::2], theirs.debug[1::2]
    assert (drawn[0], len(set(drawn)), counted) == (
        ours.debug[0],
        1,
        [f"debug(script=0,command=3): int {n}" for n in (1, 2)],
    )
    assert ours.debug[0::2] == drawn
    assert ours.debug[1::2] == [counted[0], counted[0]]


def test_copy_to_stdout_works_here_and_ends_pgbench(both: Programs) -> None:
    file = both.file("copy.sql", "COPY (SELECT generate_series(1, 1000)) TO STDOUT;\nSELECT 1;\n")
    theirs = both.pgbench("-t1", "-f", file)
    assert theirs.code == 2 and "COPY is not supported" in theirs.stderr
    for protocol in ("simple", "prepared"):
        ours = both.ironbench(file, "--transactions", "3", "--protocol", protocol)
        assert ours.code in (0, 3) and ours.metrics["transactions"] == 3  # 3: flagged on a busy machine


def test_copy_from_stdin_fails_in_both(both: Programs) -> None:
    both.rows("CREATE TABLE copied (x int)")
    file = both.file("copy_in.sql", "COPY copied FROM STDIN;\n")
    assert both.pgbench("-t1", "-f", file).code == 2
    assert both.ironbench(file, "--transactions", "1").code == 1


def failing(both: Programs, table: str) -> str:
    """Returns a script whose transactions all fail for client 0 and are committed for the others."""
    both.rows(f"CREATE TABLE {table} (client int)")
    text = f"\\if :client_id = 0\nSELECT 1 / 0;\n\\endif\n\\sleep 100 ms\nINSERT INTO {table} VALUES (:client_id);\n"
    return both.file(f"{table}.sql", text)


def test_an_error_of_the_first_second_ends_the_run_and_in_pgbench_its_client(both: Programs) -> None:
    file = failing(both, "served")
    theirs = both.pgbench("-c2", "-t8", "-f", file)
    assert theirs.code == 2 and "client 0 script 0 aborted" in theirs.stderr
    assert both.rows("SELECT count(*) FROM served") == [("8",)], "client 1 went on"
    both.rows("TRUNCATE served")
    ours = both.ironbench(file, "--transactions", "8", "--clients", "2")
    assert ours.code == 1 and "division by zero (SQLSTATE 22012); in: SELECT 1 / 0" in ours.cause
    ((count,),) = both.rows("SELECT count(*) FROM served")
    assert count is not None and int(count) < 8, "client 1 was ended with the run"


def test_errors_that_do_not_end_the_run_fail_one_transaction_each(both: Programs) -> None:
    file = failing(both, "went_on")
    ours = both.ironbench(file, "--transactions", "8", "--clients", "2", "--on-error", "continue")
    assert (ours.code, ours.metrics["failed"], ours.metrics["transactions"]) == (1, 8, 8)
    assert both.rows("SELECT count(*) FROM went_on") == [("8",)]
    late = both.file("late.sql", "\\sleep 1100 ms\nSELECT 1 / 0;\n")
    assert both.pgbench("-t2", "-f", late).code == 2
    assert both.ironbench(late, "--transactions", "2").metrics["failed"] == 2


def test_a_test_whether_a_variable_is_defined_is_false_in_both(both: Programs) -> None:
    text = "\\set defined 1\nSELECT :{?defined}::text || ':{?x}' || :{?x}::text AS t \\gset\n"
    text += "SELECT 1 / (':t' = 'false' || chr(58) || '{?x}false')::int;\n"
    file = both.file("defined.sql", text)
    assert both.pgbench("-t1", "-f", file).code == 0
    ours = both.ironbench(file, "--transactions", "1", "--protocol", "simple")
    assert ours.code == 0 and ours.metrics["transactions"] == 1


def test_a_script_that_is_not_utf8_is_refused_and_pgbench_sends_its_bytes(both: Programs) -> None:
    file = both.file("latin1.sql", "SELECT 'caf\xe9';\n".encode("latin-1"))
    theirs = both.pgbench("-t1", "-f", file)
    assert theirs.code == 2 and "invalid byte sequence" in theirs.stderr
    ours = both.ironbench(file, "--transactions", "1")
    assert ours.code == 2 and "is not UTF-8" in ours.stderr


@pytest.mark.parametrize(
    "lazy",
    [
        "\\set x debug(case when true then 1 else 1 / 0 end)", "\\set x debug(false and :never = 1)",
        "\\set x debug(true or 1 / 0 = 1)",
        "\\if false\n\\set x 1 / 0\n\\set x :never\nSELECT * FROM nowhere;\n\\endif",
        "\\if true\n\\elif 1 / 0\n\\elif :never\n\\else\n\\sleep :never\n\\endif",
        "\\set x debug(case when 1 = 1 then 2 when :never then 1 / 0 end)", "\\set x debug(null and :never)",
    ],
)  # fmt: skip
def test_what_need_not_be_computed_is_not_computed_in_either(both: Programs, lazy: str) -> None:
    file = both.file("lazy.sql", f"{lazy}\nSELECT 1;\n")
    theirs, ours = both.pgbench("-t1", "-f", file), both.ironbench(file, "--transactions", "1")
    assert theirs.code == 0, theirs.stderr
    assert ours.code == 0, ours.stderr
    assert ours.debug == theirs.debug


def test_more_variables_than_pgbench_takes_are_sent(both: Programs) -> None:
    file = both.file("many.sql", "\\set i 1\nSELECT least(" + ", ".join([":i"] * 300) + ");\n")
    assert both.pgbench("-t1", "-Mprepared", "-f", file).code == 1
    assert both.ironbench(file, "--transactions", "1").code == 0


def test_columns_of_gset_need_no_name_of_a_variable(both: Programs) -> None:
    file = both.file("columns.sql", 'SELECT 1 AS "bad name!", 2 AS good \\gset\n\\set x debug(:good)\n')
    assert both.pgbench("-t1", "-f", file).code == 2
    assert both.ironbench(file, "--transactions", "1").debug == ["debug(script=0,command=2): int 2"]


def test_a_script_comes_from_standard_input(both: Programs) -> None:
    done = both.ironbench("-", "--transactions", "2", "--repeats", "2", stdin="\\set x debug(6 * 7)\nSELECT :x;\n")
    assert done.code == 0
    assert [line.rpartition(" ")[2] for line in done.debug] == ["42"] * 4


def test_an_undefined_variable_is_a_warning_before_the_run(both: Programs) -> None:
    file = both.file("typo.sql", "\\set amount random(1, 5)\nSELECT :amuont;\n")
    done = both.ironbench(file, "--transactions", "1", "--protocol", "prepared")
    lines = done.stderr.splitlines()
    caution = f"warning: {file}:2: the variable :amuont is never defined and is sent as null; did you mean amount?"
    assert caution in lines
    assert lines.index(caution) < next(n for n, line in enumerate(lines) if line.startswith("1 trial"))
    simple = both.ironbench(file, "--transactions", "1")
    assert "never defined and stays in the statement as written" in simple.stderr
    sound = both.file(
        "sound.sql", "\\set amount 1\nSELECT 2 AS b \\gset g_\nSELECT :amount, :g_b, :client_id, ':text';\n"
    )
    assert "warning:" not in both.ironbench(sound, "--transactions", "1").stderr


def test_the_plan_and_the_run_of_a_lab_show_the_warnings_that_a_run_shows(both: Programs) -> None:
    script = both.file("typo.sql", "\\set amount 1\nSELECT :amuont;\n")
    lab = both.file(
        "typo.toml",
        'question = "Does one client do as much as two?"\n[system]\nengine = "null"\n'
        '[workload]\nname = "script"\nfiles = ["typo.sql"]\n[load]\nduration = "100ms"\nwarmup = "0s"\n'
        '[vary]\nclients = [1, 2]\n[measure]\nrepeats = 2\nquiet = "0s"\n',
    )
    caution = f"{script}:2: the variable :amuont is never defined"
    said = {}
    for verb in ("plan", "run"):
        done = launch.run(["lab", verb, lab], cwd=both.directory)
        assert done.returncode in (0, 3), done.stderr
        said[verb] = " ".join((done.stdout + done.stderr).split())
        once = "  - " if verb == "plan" else "warning: "
        assert (done.stdout + done.stderr).count(f"{once}{caution}") == 1, "of all cells once"
    assert f"warning: {caution}" in said["run"]
    assert "[script-caution, 4 of 4 trials]" in said["run"], "what was said before stands with the numbers"
    assert said["run"].index(caution) < said["run"].index("2 configurations")


def test_a_run_of_scripts_says_which_database_it_uses(both: Programs) -> None:
    file = both.file("one.sql", "SELECT 1;\n")
    said = both.ironbench(file, "--transactions", "1").stderr
    assert f"the scripts run in database postgres on {both.server.host}:{both.server.port}, as user postgres" in said
    data = str(both.directory / "data")
    command = ["run", "script", file, "--transactions", "1", "--warmup", "0s", "--engine", "sqlite"]
    done = launch.run([*command, "--data", data, "--results", str(both.directory / "results")])
    assert f"the scripts run in ironbench's own database in {data}; --dsn names your database" in done.stderr


def test_tries_without_limit_need_a_duration_as_in_pgbench(both: Programs) -> None:
    file = both.file("one.sql", "SELECT 1;\n")
    assert both.pgbench("-t1", "--max-tries=0", "-f", file).code == 1
    refused = both.ironbench(file, "--transactions", "1", "--max-tries", "0")
    assert refused.code == 2 and "--max-tries: 0 means no limit" in refused.stderr
    assert both.ironbench(file, "--duration", "200ms", "--max-tries", "0").code in (0, 3)


ONE_ENDS_ITSELF = """\\if :client_id = 2
SELECT pg_terminate_backend(pg_backend_pid());
\\endif
SELECT 1;
"""


def test_a_client_that_loses_its_connection_ends_and_the_others_do_as_much_as_pgbenchs(both: Programs) -> None:
    file = both.file("ends-itself.sql", ONE_ENDS_ITSELF)
    both.rows("SELECT pg_stat_reset()")
    theirs = both.pgbench("-c4", "-t50", "-f", file)
    load = ["--clients", "4", "--transactions", "50", "--on-error", "continue"]
    ours = both.ironbench(file, *load)
    assert (theirs.code, ours.code) == (2, 3), ours.stderr
    assert "client 2 script 0 aborted" in theirs.stderr
    assert (ours.metrics["transactions"], ours.metrics["clients_lost"]) == (150, 1)
    again = both.ironbench(file, *load, "--reconnect-on-loss")
    assert again.metrics["connections_lost"] == 50 and "clients_lost" not in again.metrics
