"""An option without effect is refused, because two runs that differ only in it would look different."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ironbench import engines, workloads
from ironbench.engines.slapd import engine as slapd
from ironbench.errors import InputError
from ironbench.lab import declare, new, server_control
from ironbench.lab.build import _require_checkpoints
from ironbench.lab.run_plan import planned
from ironbench.model.system import Cell, Choice, Load, Setup, System
from ironbench.plan import design, run_file
from ironbench.trial.drive import caches


def refused(workload: str = "igen-oltp", engine: str = "null", **changes: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        planned(run_file.read(workload, engine=engine, seed=1, **changes))
    assert caught.value.cause and caught.value.hint
    return caught.value


@pytest.mark.parametrize("name", [*engines.names(), "odbc-other"])
def test_a_state_of_caches_is_for_engines_that_keep_data(name: str) -> None:
    caches.require(System(name, "x"), Load())
    if engines.get(name).can("data"):
        caches.require(System(name, "x"), Load(cache="warm"))
        return
    with pytest.raises(InputError, match=f"cannot prepare the caches of {name}"):
        caches.require(System(name, "x"), Load(cache="warm"))


def test_a_run_on_an_engine_without_caches_of_ours_cannot_ask_for_a_state() -> None:
    assert refused(cache="warm").subject == "--cache warm"
    assert "controls its own load" in refused("igen-cpu", "none", cache="warm").cause


def test_checkpoints_of_a_running_server_are_asked_for_only_where_that_is_possible() -> None:
    load = Load(checkpoint_s=10.0)
    for name in ("mariadb", "postgres"):
        _require_checkpoints(System(name, "x"), load)
    _require_checkpoints(System("postgres", "x", dsn="postgresql:///b"), load)
    with pytest.raises(InputError, match="checkpoints on an existing mariadb server") as caught:
        _require_checkpoints(System("mariadb", "x", dsn="mysql:///b"), load)
    assert caught.value.subject == "--checkpoint"


@pytest.mark.parametrize(
    ("name", "dsn", "chosen"),
    [("mariadb", "", True), ("mariadb", "mysql://b@h/b", False), ("postgres", "postgresql://b@h/b", True)],
)
def test_a_new_lab_file_chooses_checkpoints_only_where_a_plan_takes_them(name: str, dsn: str, chosen: bool) -> None:
    here = new.LabContext(engines.get(name), dsn, "", "1", {}, 2, 8 << 30)
    assert ("checkpoint = " in new.text("driver", here, "x.toml")) is chosen


def test_a_new_lab_file_says_why_it_has_few_clients() -> None:
    one, many = (
        new.text("driver", new.LabContext(engines.get(name), "", "", "1", {}, 2, 8 << 30), "x.toml")
        for name in ("sqlite", "postgres")
    )
    assert "clients = 1          # this engine has at most one writer at a time" in one
    assert "clients = 4          # two per core of this machine" in many


@pytest.mark.parametrize(
    ("engine", "changes", "subject", "hint"),
    [
        ("null", {"protocol": "simple"}, "--protocol simple", "remove --protocol"),
        ("sqlite", {"protocol": "simple"}, "--protocol simple", "remove --protocol"),
        ("mariadb", {"protocol": "extended"}, "--protocol extended", "use one of: prepared, simple"),
        ("null", {"io": "epoll"}, "--io epoll", "remove --io"),
        ("sqlite", {"io": "io_uring"}, "--io io_uring", "remove --io"),
    ],
)
def test_a_way_to_send_statements_that_the_engine_lacks_is_refused(
    engine: str, changes: dict[str, Any], subject: str, hint: str, tmp_path: Path
) -> None:
    places = {} if engine == "null" else {"data": str(tmp_path / "d")}
    error = refused(
        "script" if engine == "sqlite" else "igen-oltp", engine, **_script(engine, tmp_path), **places, **changes
    )
    assert (error.subject, error.hint) == (subject, hint)


def _script(engine: str, folder: Path) -> dict[str, Any]:
    (folder / "one.sql").write_text("SELECT 1;\n")
    return {"files": (str(folder / "one.sql"),)} if engine == "sqlite" else {}


def test_a_cell_whose_engine_lacks_the_protocol_of_its_lab_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(
        'question = "?"\nworkload.name = "select-only"\nload.protocol = "extended"\n'
        f'layout.data = "{tmp_path / "d"}"\ndesign = "full"\n[vary]\nengine = ["postgres", "null"]\nclients = [1, 2]\n'
        "[measure]\nrepeats = 2\n"
    )
    skipped = {setup.cell.levels["engine"]: setup.skipped for setup in declare.lab(file)[0].setups}
    assert not skipped["postgres"] and "no such protocol" in skipped["null"]


def test_a_directory_server_refuses_parallelism_and_a_limit_that_holds_no_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(slapd.installation, "find", lambda _: None)
    with pytest.raises(InputError) as parallel:
        slapd.ENGINE.validated(System("slapd", "x", parallelism=2), 1)
    assert parallel.value.subject == "--parallelism"
    with pytest.raises(InputError, match="is too small for any engine"):
        slapd.ENGINE.validated(System("slapd", "x", memory_total_bytes=1 << 20), 1)


@pytest.mark.parametrize(
    ("workload", "options", "subject"),
    [
        ("tpch", {"streams": "4"}, "streams=4"),
        ("tpch", {"streams": "4", "test": "stream"}, "streams=4"),
        ("storage", {"mix": "70", "tests": "sync+scan"}, "mix=70"),
        ("storage", {"sustain": "10"}, "sustain=10"),
        (
            "directory",
            {"job": "search", "filter": "(cn={id})", "ldif": "a.ldif", "template": "b.txt"},
            "template=b.txt",
        ),
        ("access-log", {"loaded": "no", "entries": "20"}, "entries=20"),
        ("access-log", {"loaded": "no", "template": "b.txt"}, "template=b.txt"),
        ("access-log", {"loaded": "no", "ldif": "a.ldif"}, "ldif=a.ldif"),
        ("access-log", {"ldif": "a.ldif", "template": "b.txt"}, "template=b.txt"),
    ],
)
def test_an_option_that_another_one_leaves_without_meaning_is_refused(
    workload: str, options: dict[str, str], subject: str
) -> None:
    with pytest.raises(InputError) as caught:
        workloads.get(workload).validated(options)
    assert caught.value.subject == f"--with {subject}" and caught.value.hint


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        ("tpch", {"streams": "4", "test": "both"}),
        ("storage", {"mix": "70", "tests": "sync+peak", "sustain": "60"}),
        ("storage", {"sustain": "10", "tests": "sync+sustained"}),
        ("access-log", {"entries": "20", "loaded": "yes"}),
        ("access-log", {"entries": "100000", "loaded": "no"}),
    ],
)
def test_options_that_mean_something_together_are_taken(workload: str, options: dict[str, str]) -> None:
    assert workloads.get(workload).validated(options).items() >= options.items()


def test_a_record_of_one_stream_is_read_whatever_its_number_of_streams_says() -> None:
    assert workloads.get("tpch").streams({"test": "power", "streams": "4"}) is None


@pytest.mark.parametrize(("workload", "engine"), [("populate", "null"), ("igen-cpu", "none")])
def test_variables_for_scripts_that_a_workload_has_not_are_refused(workload: str, engine: str) -> None:
    error = refused(workload, engine, define=("x=1",))
    assert error.subject == "-D x" and "no scripts" in error.cause


def test_driving_threads_of_work_that_drives_itself_are_refused() -> None:
    assert refused("igen-cpu", "none", clients="4", threads=2).subject == "--threads"


def test_what_is_refused_to_work_that_drives_itself_is_named_as_it_was_written() -> None:
    for changes, subject in (
        ({"warmup": "auto"}, "--warmup auto"),
        ({"clients": "ramp:1-2/4s"}, "--clients"),
        ({"rate": "ramp:1-2/4s"}, "--rate"),
    ):
        assert refused("igen-cpu", "none", **changes).subject == subject


def _log(folder: Path) -> str:
    """Returns an operation at the start of a minute and one at its end."""
    lines = [
        f"Nov 26 10:00:{second:02} h slapd[1]: conn=1 op={number} {text}"
        for second, number, text in (
            (0, 0, 'SRCH base="dc=example,dc=com" scope=2 deref=0 filter="(a=b)"'),
            (0, 0, "SEARCH RESULT tag=101 err=0 nentries=0 text="),
            (59, 1, 'SRCH base="dc=example,dc=com" scope=2 deref=0 filter="(a=b)"'),
            (59, 1, "SEARCH RESULT tag=101 err=0 nentries=0 text="),
        )
    ]
    (folder / "access.log").write_text("\n".join(lines) + "\n")
    return str(folder / "access.log")


def test_the_beginning_of_a_log_is_not_replayed_as_a_warmup(tmp_path: Path) -> None:
    log = workloads.get("access-log")
    choice = Choice("access-log", log.validated({"log": _log(tmp_path)}))
    system = System("slapd", "x")
    log.accepts(system, Load(duration_s=60.0), choice)
    for load, subject in ((Load(warmup_s=5.0), "--warmup"), (Load(warmup_s=5.0, warmup_auto=True), "--warmup auto")):
        with pytest.raises(InputError, match="beginning of the log") as caught:
            log.accepts(system, load, choice)
        assert caught.value.subject == subject


def test_a_budget_leaves_the_length_of_work_that_has_one_of_its_own(tmp_path: Path) -> None:
    """A log is replayed completely, and passes of storage are as long as without a budget."""
    plan, _ = planned(run_file.read("storage", data=str(tmp_path), options=("size=16MiB", "seconds=0.5"), budget="2m"))
    own_s = workloads.get("storage").usual_duration_s(plan.choice.options)
    assert own_s == 20.0 and {trial.cell.load.duration_s for trial in plan.trials} == {own_s}
    assert len(plan.trials) == 6
    file = tmp_path / "lab.toml"
    file.write_text(
        'question = "?"\nworkload.name = "storage"\nworkload.with = { size = "16MiB", seconds = 0.5 }\n'
        f'layout.data = "{tmp_path}"\n[vary]\nworkload.with.io = ["io_uring", "threads"]\n[measure]\nbudget = "1h"\n'
        'metric = "storage_iops{profile=kdm-rnd4k-q1t1-read}"\n'
    )
    lab = declare.lab(file)[0]
    assert {setup.cell.load.duration_s for setup in lab.setups} == {own_s} and lab.method.blocks > 6


@pytest.mark.parametrize(
    ("workload", "changes", "cause", "hint"),
    [
        (
            "igen-oltp",
            {"transactions": 5},
            "needs trials with a known duration",
            "--duration instead of --transactions",
        ),
        ("populate", {}, "end when their work is done", "use --repeats instead of --budget"),
        ("igen-oltp", {"rate": "ramp:1-2/4s"}, "cannot be combined with a load curve", "use --repeats instead"),
    ],
)
def test_a_budget_for_trials_of_no_known_time_is_refused_by_what_was_asked(
    workload: str, changes: dict[str, Any], cause: str, hint: str
) -> None:
    error = refused(workload, budget="10m", **changes)
    assert (error.subject, cause in error.cause, hint in error.hint) == ("--budget", True, True)


@pytest.mark.parametrize(
    ("ideal", "changes", "subject"),
    [
        ("data", {"memory_total": "2GB"}, "--memory-total"),
        ("data", {"cache": "cold"}, "--cache"),
        ("client,data", {"set": ("shared_buffers=1GB",)}, "--set shared_buffers"),
        ("data", {"set": ("Shared_Buffers=1GB",)}, "--set Shared_Buffers"),
        ("client", {"client_cpus": "0"}, "--client-cpus"),
        ("client", {"think_time": "1ms"}, "--think-time"),
        ("log", {"log": "{folder}/l"}, "--log"),
        ("temp", {"temp": "{folder}/t"}, "--temp"),
    ],
)
def test_an_option_that_an_ideal_part_decides_is_refused(
    ideal: str, changes: dict[str, Any], subject: str, tmp_path: Path
) -> None:
    changes = {
        name: value.format(folder=tmp_path) if isinstance(value, str) else value for name, value in changes.items()
    }
    error = refused("select-only", "postgres", data=str(tmp_path / "d"), ideal=ideal, **changes)
    part = ideal.rpartition(",")[2]
    assert (error.subject, error.cause) == (
        subject,
        f"cannot be combined with --ideal {part}, which determines this value",
    )


def test_what_a_record_says_of_ideal_data_can_be_asked_for_again(tmp_path: Path) -> None:
    asked = run_file.read("select-only", engine="postgres", data=str(tmp_path / "d"), ideal="data", cache="hot")
    assert planned(asked)[0].trials[0].cell.load.cache == "hot"


def test_a_machine_that_may_be_changed_for_nothing_is_refused() -> None:
    system = System("postgres", "x", dsn="postgresql://h/b", server="ssh://h", control=True)
    idle = Setup(Cell("one", Load()), system, Choice("select-only"))
    held = replace(idle, system=replace(system, server_cpus=(0,)))
    cold = replace(idle, cell=Cell("two", Load(cache="cold")), system=replace(system, restart="x.service"))
    server_control.require_use([])
    server_control.require_use([idle, held])
    server_control.require_use([cold])
    with pytest.raises(InputError, match="the lab changes nothing") as caught:
        server_control.require_use([idle])
    assert caught.value.subject == "--control ssh"


def test_a_machine_that_is_neither_watched_nor_changed_is_not_named() -> None:
    there: dict[str, Any] = {"dsn": "postgresql://h/b", "server": "ssh://h"}
    own: dict[str, Any] = {"workload": "select-only", "engine": "postgres", "observe": False, **there}
    assert refused("select-only", "postgres", observe=False, **there).subject == "--server"
    planned(run_file.read(**own | {"observe": True}))
    planned(run_file.read(**own, control="ssh", server_cpus="0"))


@pytest.mark.parametrize(("layout", "unused"), [("{}", "fast"), ('{ log = "fast" }', "")])
def test_a_device_that_holds_nothing_in_any_cell_is_refused(layout: str, unused: str, tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(
        'question = "?"\nworkload.name = "igen-oltp"\nsystem.engine = "null"\n'
        f'devices.fast = "ssd-nvme-2014"\n[vary.where]\nhere = {{}}\nthere = {{ layout = {layout}, clients = 2 }}\n'
    )
    declared = declare.read(file)
    cells = design.cells(declared)
    if not unused:
        declare._refuse_unused_devices(declared, cells)
        return
    with pytest.raises(InputError, match="no configuration of the lab uses this device") as caught:
        declare.planned(declared)
    assert caught.value.subject == f"{file}, devices.{unused}"
