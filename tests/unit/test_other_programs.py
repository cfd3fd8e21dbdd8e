"""Options and words of pgbench, sysbench and HammerDB on our command line are answered with our own."""

import shlex
import sys

import pytest
import typer.main

from ironbench import cli, workloads
from ironbench.cli.other_programs import programs

TPCC_OPTIONS = "known: affinity, batch, delivery, pacing, procedures, references, warehouses"
ANSWERS = {
    "run tpcb-like -c 8": "-c is an option of pgbench; instead, use --clients 8",
    "run tpcb-like -c8": "-c is an option of pgbench; instead, use --clients 8",
    "run tpcb-like -T 60 -c 8 -j 2 -M prepared -P 1": "-T, -c, -j, -M are options of pgbench; instead, use "
    "--duration 60s --clients 8 --threads 2 --protocol prepared",
    "run tpcb-like -S": "-S is an option of pgbench; instead, use ironbench run select-only",
    "run tpcb-like -rN": "-N is an option of pgbench; instead, use ironbench run simple-update",
    "run -f a.sql@3 -c 2": "-f, -c are options of pgbench; instead, use ironbench run script a.sql@3 --clients 2",
    "run tpcb-like --time=60": "--time is an option of pgbench and sysbench; instead, use --duration 60s",
    "run tpcb-like --threads=8 --time=60 --report-interval=1": "--threads, --time, --report-interval are options of "
    "sysbench; instead, use --clients 8 --duration 60s --progress 1",
    "run sysbench --table_size=1000 --skip-trx --threads=8": "--table_size, --skip-trx, --threads are options of "
    "sysbench; instead, use --with table_size=1000 --with skip_trx=on --clients 8",
    "run tpcb-like --db_ps_mode disable": "--db_ps_mode is an option of sysbench; instead, use --protocol simple",
    "run tpcb-like -i -c": "-i, -c are options of pgbench; instead, use --clients N; -i: not needed "
    "(ironbench loads the data before the first trial)",
    "run tpcb-like -i": "-i is an option of pgbench; not needed (ironbench loads the data before the first trial)",
    "run oltp_read_only --tables=10 --threads=8 run": "--tables, --threads are options of sysbench; instead, use "
    "ironbench run sysbench --with test=oltp_read_only --with tables=10 --clients 8",
    "run oltp_read_only --clients 8": "write sysbench --with test=oltp_read_only",
    "-c 8 -T 60": "-c, -T are options of pgbench; instead, use ironbench run tpcb-like --clients 8 --duration 60s",
    "run oltp_read_write.lua --clients 8": "write sysbench --with test=oltp_read_write",
    "run sysbench oltp_insert": "oltp_insert is a test of sysbench; instead, use --with test=oltp_insert",
    "run sysbench prepare": "prepare is a command of sysbench; not needed (ironbench loads the data before the first "
    "trial, and reuses tables that sysbench has prepared)",
    "run sysbench --test=oltp_insert": "--test is an option of sysbench; instead, use --with test=oltp_insert",
    "run sysbench --with oltp_insert": "oltp_insert is a test of sysbench; instead, use --with test=oltp_insert",
    "run sysbench --with time=5": "time is an option of sysbench; instead, use --duration 5s",
    "run sysbench --events=1000": "--events is an option of sysbench; instead, use --transactions 1000; In ironbench, "
    "N is the number of transactions per client. In sysbench, N is the total for all threads.",
    "run sysbench --mysql-socket=/run/m.sock --mysql-user=sb --mysql-db=sbtest": "--mysql-socket, --mysql-user, "
    "--mysql-db are options of sysbench; instead, use --dsn 'mysql://sb@/sbtest?socket=/run/m.sock'",
    "run sysbench --mysql-ssl=on --mysql-port=3307 --mysql-host=db": "--mysql-ssl, --mysql-port, --mysql-host are "
    "options of sysbench; instead, use --dsn 'mysql://USER@db:3307/DATABASE?tls=require'",
    "run sysbench --mysql-host=db --mysql-ssl=on": "--mysql-host, --mysql-ssl are options of sysbench; instead, use "
    "--dsn 'mysql://USER@db/DATABASE?tls=require'",
    "run sysbench --mysql-host=db --mysql-ssl=off": "--mysql-host, --mysql-ssl are options of sysbench; instead, use "
    "--dsn mysql://USER@db/DATABASE",
    "run sysbench --mysql-ssl=on": "--mysql-ssl is an option of sysbench; instead, use --dsn "
    "'mysql://USER@HOST/DATABASE?tls=require'",
    "run sysbench --mysql-ssl --mysql-socket=/run/m.sock": "--mysql-ssl, --mysql-socket are options of sysbench; "
    "instead, use --dsn 'mysql://USER@/DATABASE?socket=/run/m.sock&tls=require'",
    "run sysbench --mysql_host=db --mysql_user=PORT": "--mysql_host, --mysql_user are options of sysbench; instead, "
    "use --dsn mysql://PORT@db/DATABASE",
    f"run sysbench --mysql-host={'long.' * 20}example": "--mysql-host is an option of sysbench; instead, use --dsn "
    f"mysql://USER@{'long.' * 20}example/DATABASE",
    "run select-only --host db": "--host is an option of pgbench; instead, use --dsn postgresql://USER@db/DATABASE",
    "run fileio": "fileio is a command of sysbench; `ironbench run storage` measures files without a database",
    "run TPROC-C": "write tpcc",
    "run hammerdb": "write tpcc",
    "run tpcc vuset vu 4": "vuset vu is a command of HammerDB; instead, use --clients 4",
    "run tpcc --vu=4": "vu is an option of HammerDB; instead, use --clients 4",
    "run tpcc --warehouse 2": "use --with warehouses=2",
    "run tpcc --with pg_count_ware=2": "pg_count_ware is an option of HammerDB; instead, use --with warehouses=2",
    "run tpcc --with rampup=2": "rampup is an option of HammerDB; instead, use --warmup 2m",
    "run tpcc --with scale=10": TPCC_OPTIONS,
    "run tpcc --with tables=3": TPCC_OPTIONS,
    "run tpcc --with table_size=3": TPCC_OPTIONS,
    "run tpcc --with fillfactor=90": TPCC_OPTIONS,
    "run tpcc --with test=oltp_insert": TPCC_OPTIONS,
    "run tpcb-like --with count_ware=2": "known: fillfactor, scale",
    "run tpcb-like --count_ware 2": "count_ware is an option of HammerDB; instead, use ironbench run tpcc --with "
    "warehouses=2",
    "run tpcc oltp_insert": "oltp_insert is a test of sysbench; instead, use ironbench run sysbench --with "
    "test=oltp_insert",
    "run tpcc --with oltp_insert": "oltp_insert is a test of sysbench; instead, use ironbench run sysbench --with "
    "test=oltp_insert",
    "run tpcb-like pg_count_ware 2": "pg_count_ware is an option of HammerDB; instead, use ironbench run tpcc --with "
    "warehouses=2",
    "run tpcb-like vuset vu 4": "vuset vu is a command of HammerDB; instead, use --clients 4",
    "run tpcc dbset bm TPC-H": "dbset bm is a command of HammerDB; instead, use ironbench run tpch",
    "run tpcb-like --with bm=TPC-H": "bm is an option of HammerDB; instead, use ironbench run tpch",
    "dbset bm TPC-C": "dbset bm is a command of HammerDB; instead, use ironbench run tpcc",
    "dbset bm TPC-H": "dbset bm is a command of HammerDB; instead, use ironbench run tpch",
    "run tpcc --engine pg": "write --engine postgres",
    "run tpcc --engine mysql": "write --engine mariadb",
    "vuset vu 4": "vuset vu is a command of HammerDB; instead, use ironbench run tpcc --clients 4",
    "diset tpcc pg_count_ware 4": "pg_count_ware is an option of HammerDB; instead, use ironbench run tpcc --with "
    "warehouses=4",
    "buildschema": "buildschema is a command of HammerDB; not needed (ironbench loads the data before the first trial)",
    "oltp_read_only --threads=4 run": "oltp_read_only is a test of sysbench; instead, use ironbench run sysbench "
    "--with test=oltp_read_only",
    "hammerdb": "write ironbench run tpcc",
    "run tpcc --with colour=red": TPCC_OPTIONS,
    "run tpcb-like -h": "see `ironbench run --help`",
    "run tpcb-like -z": "see `ironbench run --help`",
    "run tpcb-like -- -c 8 --time": "",
    "lab plan x -c 8": "see `ironbench lab plan --help`",
}


def said(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["ironbench", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("words", ANSWERS)
def test_an_option_of_another_program_is_answered_with_ours(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    err = said(words.split(), monkeypatch, capsys)
    if ANSWERS[words]:
        assert err.splitlines()[1] == f"  hint: {ANSWERS[words]}"
    else:
        assert "option of" not in err.replace("unknown option of", "")


def test_a_password_in_an_option_of_another_program_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    err = said(["run", "tpcb-like", "--mysql-password=s3cret-word", "--mysql-host=db"], monkeypatch, capsys)
    assert "--dsn mysql://" in err and "s3cret-word" not in err


def test_a_value_of_any_form_stays_one_short_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    err = said(["run", "tpcb-like", "-c", "8; rm -r x" + "y" * 10_000], monkeypatch, capsys)
    assert len(err) < 300 and "--clients '8; rm -r x" in err


def test_our_words_for_every_option_exist() -> None:
    command = typer.main.get_command(cli.program({"run"})).commands["run"]
    ours = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    for program in programs():
        for option in program.options:
            first, *others = shlex.split(option.words("7")) or [""]
            if first.startswith("-"):
                assert first in ours, option
                assert bool(others) != getattr(ours[first], "is_flag", False), option
            if first == "--with":
                assert others[0].partition("=")[0] in [one.name for one in workloads.get(program.workload).options], (
                    option
                )
            if first not in ("", "7") and not first.startswith("-"):
                assert first in workloads.names(), option
            assert first or option.remark, option


def test_the_tests_of_a_program_are_those_of_its_workload() -> None:
    for program in programs():
        choices = [one.choices for one in workloads.get(program.workload).options if one.name == "test"]
        assert [program.tests] == (choices or [()])


def test_each_option_has_one_meaning_per_program() -> None:
    for program in programs():
        names = [name for option in program.options for name in option.names]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(("words", "warned"), [("--threads 8", True), ("--threads 8 --clients 1,8", False)])
def test_more_threads_than_clients_are_a_warning_that_names_the_other_option(
    words: str, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ironbench", "run", "select-only", "--engine", "null", "--plan", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert ("--threads 8: 1 client cannot use more threads" in capsys.readouterr().err) == warned
