"""Unusable options are refused before anything is started, with their name and a suggestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ironbench import workloads
from ironbench.cli.run import execute
from ironbench.errors import InputError
from ironbench.fields.run import RunFile
from ironbench.host import space
from ironbench.lab import declare
from ironbench.lab.benches import most_connections
from ironbench.lab.run_plan import planned
from ironbench.plan import run_file
from ironbench.records import Store

PLAIN = {"workload": "igen-oltp", "engine": "null", "warmup": "5s", "seed": 1}


def plain(**changes: Any) -> RunFile:
    return run_file.read(**PLAIN | changes)


def refused(**changes: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        planned(plain(**changes))
    assert caught.value.subject and caught.value.cause
    return caught.value


@pytest.mark.parametrize(
    ("changes", "subject", "hint"),
    [
        ({"workload": "igen-olpt"}, "workload igen-olpt", "did you mean igen-oltp"),
        ({"engine": "postgre"}, "engine postgre", "did you mean postgres?"),
        ({"options": ("scael=2",)}, "--with scael", "did you mean scale?"),
        ({"options": ("weight=lihgt",)}, "--with weight=lihgt", "did you mean light?"),
        ({"protocol": "preparde"}, "--protocol", "did you mean prepared?"),
        ({"arrivals": "fixd"}, "--arrivals", "did you mean fixed?"),
        ({"io": "epol"}, "--io", "did you mean epoll?"),
        ({"engine": "postgres", "set": ("shared_bufers=2",)}, "--set shared_bufers=2", "shared_buffers"),
        ({"engine": "sqlite", "set": ("synchronus=off",)}, "--set synchronus", "synchronous"),
    ],
)
def test_an_unknown_name_is_refused_and_the_nearest_suggested(
    changes: dict[str, Any], subject: str, hint: str, tmp_path: Path
) -> None:
    where = {"data": str(tmp_path / "d")} if changes.get("engine") in ("postgres", "sqlite") else {}
    error = refused(**changes, **where)
    assert subject in error.subject
    assert hint in error.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "subject", "cause"),
    [
        ({"duration": "0s"}, "--duration", "out of range"),
        ({"duration": "soon"}, "--duration", "not a duration"),
        ({"duration": "1s", "transactions": 5}, "--transactions", "combined with --duration"),
        ({"transactions": 0}, "--transactions", "out of range"),
        ({"clients": "0"}, "--clients", "0 is out of range"),
        ({"engine": "sqlite", "memory_total": "10MiB"}, "--memory-total 10MiB", "is too small for any engine"),
        ({"clients": "100000"}, "--clients", "100,000 is out of range"),
        ({"clients": "1,2,2"}, "--clients", "listed twice"),
        ({"clients": "many"}, "--clients", "not a whole number"),
        ({"rate": 0.0}, "--rate", "out of range"),
        ({"rate": float("nan")}, "--rate", "out of range"),
        ({"rate": 10.0, "think_time": "1ms"}, "--think-time", "combined with --rate"),
        ({"max_tries": -1}, "--max-tries", "out of range"),
        ({"data": "hdd"}, "--data", "has no slash, so it names a device"),
        ({"options": ("scale",)}, "--with", "not KEY=VALUE"),
        ({"options": ("scale=0",)}, "--with scale=0", "out of range"),
        ({"client_cpus": "4096"}, "--client-cpus", "not available"),
        ({"workload": "script"}, "script", "a script file is missing"),
        ({"workload": "script", "files": ("nowhere/x.sql",)}, "nowhere/x.sql", "no such file"),
        ({"workload": "script", "files": ("x.sql@often",)}, 'script "x.sql@often"', '"often" is not a weight'),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: dict[str, Any], subject: str, cause: str) -> None:
    error = refused(**changes)
    assert error.subject == subject
    assert cause in error.cause
    assert error.hint


def test_a_script_that_does_not_compile_is_shown_with_line_column_and_caret(tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("\\set x 1\n\\set n random(1, 100\nSELECT :n;\n")
    error = refused(workload="script", files=(str(script),))
    assert f"{script}:2:21" in str(error)
    line, caret = str(error).splitlines()[-2:]
    assert line.strip() == r"\set n random(1, 100"
    assert caret.index("^") == line.index("100") + 3


def test_a_plan_says_what_was_in_its_scripts(tmp_path: Path) -> None:
    file = tmp_path / "my.sql"
    file.write_text("SELECT 1;\n")
    asked = plain(workload="script", files=(f"{file}@3",))
    plan, _ = planned(asked)
    [digest] = plan.choice.digests
    file.write_text("SELECT 2;\n")
    assert planned(asked)[0].choice.digests != (digest,)
    with pytest.raises(InputError, match="was changed since these trials were planned"):
        workloads.get("script").scripts("null", plan.choice)
    file.write_text("SELECT 1;\n")
    assert workloads.get("script").scripts("null", plan.choice)[0].weight == 3


def test_a_directory_of_a_stranger_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    for engine in ("postgres", "sqlite"):
        assert "thesis.txt" in refused(engine=engine, data=str(tmp_path)).cause
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_data_that_cannot_fit_are_refused_before_a_directory_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "free_bytes", lambda _path: 20_000_000)
    for engine in ("postgres", "sqlite"):
        error = refused(engine=engine, data=str(tmp_path / "d"), options=("scale=100",))
        assert "20.0\u202fMB are free" in error.cause
        assert error.hint
    assert list(tmp_path.iterdir()) == []


def test_data_that_may_be_there_already_need_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ironbench.json").write_text('{"made_by": "ironbench"}')
    monkeypatch.setattr(space, "free_bytes", lambda _path: 0)
    plan, _ = planned(plain(engine="sqlite", data=str(tmp_path), options=("scale=100",)))
    assert plan.choice.options["scale"] == "100"


@pytest.mark.parametrize("results", ["file", "file/below", "/proc/ironbench"])
def test_a_results_directory_that_cannot_be_written_is_refused(tmp_path: Path, results: str) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.raises(InputError) as caught:
        Store(tmp_path / results).validate()
    assert "--results" in caught.value.subject
    assert caught.value.hint


def test_a_results_directory_that_can_be_written_is_not_made_before_there_are_results(tmp_path: Path) -> None:
    Store(tmp_path / "a" / "b").validate()
    assert list(tmp_path.iterdir()) == []


def test_the_password_of_a_dsn_is_in_no_plan() -> None:
    plan, secrets = planned(plain(engine="postgres", dsn="postgresql://u:hidden@localhost:1/d", workload="select-only"))
    assert "hidden" not in repr(plan) and "hidden" not in repr(secrets)
    assert secrets.password == "hidden"


def test_a_search_is_planned_over_its_range() -> None:
    plan, _ = planned(plain(clients="auto:2-64", threads=4, limit=("response_time_p99_s=20ms",)))
    assert plan.search is not None
    assert (plan.search.of, plan.search.low, plan.search.high) == ("clients", 2, 64)
    assert plan.search.limits[0].most == pytest.approx(0.02)
    assert most_connections(plan) == 64
    assert [trial.cell.load.threads for trial in plan.trials] == [2, 4]
    assert most_connections(planned(plain(clients="auto"))[0]) == 128


def test_a_server_of_ours_takes_the_connections_of_whoever_works_beside_the_clients(tmp_path: Path) -> None:
    own = {"engine": "postgres", "data": str(tmp_path / "d"), "clients": "64"}
    assert most_connections(planned(plain(workload="select-only", **own))[0]) == 64
    # If clients reconnect, the server may not have ended their last connections yet.
    assert most_connections(planned(plain(workload="select-only", reconnect=1, **own))[0]) == 128
    # A brokerage also needs connections for its market and for maintenance.
    assert most_connections(planned(plain(workload="brokerage", **own))[0]) == 129


def test_a_rate_is_searched_with_one_number_of_clients() -> None:
    plan, _ = planned(plain(clients="8", rate="auto:100-5000", limit=("response_time_p99_s=20ms",)))
    assert [trial.cell.load.rate for trial in plan.trials] == [100.0, 5000.0]
    assert {trial.cell.load.clients for trial in plan.trials} == {8}


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        ({"clients": "auto:8-2"}, "--clients"),
        ({"clients": "auto:x"}, "--clients"),
        ({"clients": "auto:1-100000"}, "--clients"),
        ({"clients": "auto", "rate": 100.0}, "--rate"),
        ({"clients": "auto", "rate": "auto:1-10"}, "--rate"),
        ({"clients": "1,2", "rate": "auto:1-10"}, "--clients"),
        ({"rate": "auto"}, "--rate"),
        ({"clients": "auto", "limit": ("response_time_p99_s",)}, "--limit"),
        ({"clients": "auto", "limit": ("response_time_p99=1s",)}, "metric 'response_time_p99'"),
        ({"clients": "auto", "limit": ("response_time_p99_s=fast",)}, "--limit response_time_p99_s"),
        ({"clients": "auto", "limit": ("throughput=10",)}, "--limit throughput"),
        ({"clients": "4", "limit": ("response_time_p99_s=1s",)}, "--limit"),
    ],
)
def test_a_search_that_cannot_be_is_refused(changes: dict[str, Any], subject: str) -> None:
    assert refused(**changes).subject == subject


def test_checkpoints_are_for_postgresql_and_set_once(tmp_path: Path) -> None:
    assert "has no setting for the checkpoint interval" in refused(checkpoint="10s", engine="null").cause
    twice = refused(checkpoint="10s", engine="postgres", set=("checkpoint_timeout=60s",), data=str(tmp_path / "d"))
    assert "checkpoint_timeout" in twice.cause
    assert "is not a duration" in refused(checkpoint="soon", engine="postgres").cause


def test_the_time_between_checkpoints_is_part_of_the_load(tmp_path: Path) -> None:
    plan, _ = planned(plain(engine="postgres", checkpoint="2m", data=str(tmp_path / "d")))
    assert plan.trials[0].cell.load.checkpoint_s == 120.0
    assert "checkpoint_timeout" not in plan.system.settings


def test_a_run_may_have_ideal_parts_and_a_limit_on_parallelism(tmp_path: Path) -> None:
    own = {"engine": "postgres", "data": str(tmp_path / "d"), "clients": "8", "parallelism": 2}
    plan, _ = planned(plain(**own, ideal="client,log"))
    assert (plan.system.parallelism, plan.system.ideal) == (2, ("log", "client"))
    assert plan.system.layout.log is not None and plan.system.layout.log.startswith("/dev/shm")
    assert refused(ideal="lgo").subject == "--ideal"


def test_a_run_reads_its_options_as_a_lab_reads_its_fields(tmp_path: Path) -> None:
    own = {"engine": "postgres", "data": str(tmp_path / "d"), "label": "x", "clients": "4", "threads": 2}
    options = plain(**own, duration="7s", warmup="auto", io="epoll", cache="warm")
    file = tmp_path / "lab.toml"
    file.write_text(
        'question = "?"\n[system]\nengine = "postgres"\nlabel = "x"\n[workload]\nname = "igen-oltp"\n'
        f'[layout]\ndata = "{tmp_path / "d"}"\n[load]\nthreads = 2\n'
        'duration = "7s"\nwarmup = "auto"\nio = "epoll"\ncache = "warm"\n'
        "[vary]\nclients = [4, 8]\n[measure]\nseed = 1\n"
    )
    plan, _ = planned(options)
    setup = declare.lab(file)[0].setups[0]
    assert (plan.system, plan.choice) == (setup.system, setup.choice)
    assert plan.trials[0].cell.load == setup.cell.load


@pytest.mark.parametrize(
    ("options", "fields", "of_a_run", "of_a_lab"),
    [
        ({"duration": "1s", "transactions": 5}, 'duration = "1s"\ntransactions = 5', "--duration", "load.duration"),
        ({"rate": 5.0, "think_time": "1ms"}, 'rate = 5\nthink_time = "1ms"', "--rate", "load.rate"),
    ],
)
def test_a_message_names_the_option_or_the_field_that_the_user_wrote(
    options: dict[str, Any], fields: str, of_a_run: str, of_a_lab: str, tmp_path: Path
) -> None:
    file = tmp_path / "lab.toml"
    start = (
        'question = "?"\n[system]\nengine = "null"\n[workload]\nname = "igen-oltp"\n[vary]\nclients = [1, 2]\n[load]\n'
    )
    file.write_text(start + fields + "\n")
    assert refused(**options).cause == f"cannot be combined with {of_a_run}"
    with pytest.raises(InputError) as caught:
        declare.lab(file)
    assert caught.value.cause == f"cannot be combined with {of_a_lab}"


@pytest.mark.parametrize(
    ("warmup", "words"), [("0s", "about 200 ms of measuring"), ("1s", "about 1.2 s of warm-up and measuring")]
)
def test_what_takes_no_time_is_not_announced(
    warmup: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(plain(duration="0.2s", warmup=warmup, results=str(tmp_path)))
    assert f"1 trial, {words}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "changes"), [("--set", {"set": ("work_mem=1MB",)}), ("--memory", {"memory": "1GB"})]
)
def test_what_would_configure_a_running_server_is_refused_with_both_ways_out(
    option: str, changes: dict[str, Any]
) -> None:
    error = refused(engine="postgres", dsn="host=h user=u dbname=d", **changes)
    assert error.subject == option
    ways = f"remove {option}, or remove --dsn so that ironbench starts its own server"
    assert error.hint.endswith(ways)
    by_dsn = "with --dsn (…?options=-c%20NAME%3DVALUE), or change it with a `prepare` command"
    assert (by_dsn in error.hint) == (option == "--set")


def test_the_time_of_a_number_of_transactions_is_not_claimed_to_be_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for warmup, words in (("0s", "1 trial, duration unknown"), ("1s", "1 trial, about 1 s of warm-up, plus")):
        asked = plain(transactions=3, warmup=warmup, data="", results=str(tmp_path))
        execute(asked)
        assert words in capsys.readouterr().err
