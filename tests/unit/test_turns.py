"""Slices: which labs use them, how a block is described, and that findings are still computed from blocks."""

from __future__ import annotations

import io
import signal
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import labfactory
import pytest

from ironbench.cli.lab import plan as planned
from ironbench.engines import ideal
from ironbench.errors import FailureError, InputError
from ironbench.host import processes, register
from ironbench.host.fingerprint import fingerprint
from ironbench.lab import declare, freeze
from ironbench.lab.schedule import NextTrial
from ironbench.lab.size import of_machine
from ironbench.lab.slices import slice_plan
from ironbench.lab.slices.turn import Slice
from ironbench.lab.slices.turns import InterleavedBench, written_between
from ironbench.model.finding import Noise
from ironbench.model.lab import Lab
from ironbench.model.note import note
from ironbench.model.record import NOT_WHOLE, SLICES, Status
from ironbench.model.system import Device, Layout, Partition, Trial
from ironbench.model.trial_notes import NO_NOTES
from ironbench.plan.budget import ASSUMED
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.work import work_name
from ironbench.report.sections import setup
from ironbench.study.findings import findings

LAB = """
question = "Does work_mem matter?"
[system]
engine = "{engine}"
{system}
[workload]
name = "{workload}"
[load]
clients = 2
{load}
[vary.memory]
small = {{ system.memory = "128MB" }}
large = {{ system.memory = "256MB" }}
[measure]
rates = "none"
method = "{method}"
{measure}
"""


@pytest.fixture
def lab_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))
    return tmp_path / "memory.toml"


def declared(path: Path, method: str = "slices", **parts: str) -> Lab:
    usual = {"engine": "postgres", "workload": "select-only", "system": "", "load": "", "measure": ""}
    path.write_text(LAB.format(method=method, **(usual | parts)))
    return declare.lab(path)[0]


@pytest.mark.parametrize("method", ["slices", "auto"])
def test_servers_of_our_own_in_a_closed_loop_take_turns(lab_file: Path, method: str) -> None:
    assert declared(lab_file, method).method.slice_s == slice_plan.USUAL_S
    assert declared(lab_file, method, measure='slice = "500ms"').method.slice_s == 0.5
    assert declared(lab_file, "trials").method.slice_s is None


GIVEN = """
question = "Which of them?"
[workload]
name = "{workload}"
[load]
clients = 2
[vary.one]
{levels}
[measure]
rates = "none"
method = "auto"
"""


def given_lab(path: Path, workload: str, *levels: str) -> Lab:
    path.write_text(GIVEN.format(workload=workload, levels="\n".join(levels)))
    return declare.lab(path)[0]


SERVER = "postgresql://bench@127.0.0.1:5433"


@pytest.mark.parametrize(
    ("workload", "levels"),
    [
        (
            "tpcb-like",
            (
                f'a = {{ system.dsn = "{SERVER}/shop" }}',
                f'b = {{ system.dsn = "{SERVER}/shop?options=-c%20work_mem%3D8MB" }}',
            ),
        ),
        ("tpcb-like", (f'a = {{ system.dsn = "{SERVER}/shop" }}', f'b = {{ system.dsn = "{SERVER}/store" }}')),
        (
            "tpcb-like",
            tuple(
                f'{name} = {{ system.dsn = "{SERVER}/shop", load.clients = {many} }}'
                for name, many in (("a", 2), ("b", 4))
            ),
        ),
    ],
)
def test_cells_of_one_running_server_take_turns_without_freezing(
    lab_file: Path, capsys: pytest.CaptureFixture[str], workload: str, levels: tuple[str, ...]
) -> None:
    lab = given_lab(lab_file, workload, *levels)
    assert (lab.method.slice_s, lab.method.why_trials) == (slice_plan.USUAL_S, "")
    assert not slice_plan.pauses_systems(lab)
    planned(lab_file)
    assert "the other systems are idle on the same server, which is not paused" in " ".join(
        capsys.readouterr().out.split()
    )


def test_systems_on_one_server_that_would_insert_the_same_keys_are_measured_by_trials(lab_file: Path) -> None:
    def why(mix: str) -> str:
        work = f'workload.with.mix = "{mix}"'
        cells = (
            f'{name} = {{ system.dsn = "{SERVER}/shop?options=-c%20work_mem%3D{size}", {work} }}'
            for name, size in (("a", "4MB"), ("b", "8MB"))
        )
        return given_lab(lab_file, "ycsb", *cells).method.why_trials

    assert why("a") == why("f") == ""
    assert "would insert the same keys" in why("d")
    assert "would insert the same keys" in why("e")


def test_a_server_whose_machine_is_to_be_watched_is_measured_by_trials(lab_file: Path) -> None:
    cells = (
        f'{name} = {{ system.dsn = "{SERVER}/{name}", system.server = "ssh://bench@db" }}' for name in ("shop", "store")
    )
    assert "the server's machine is sampled" in given_lab(lab_file, "tpcb-like", *cells).method.why_trials


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        (
            (f'a = {{ system.dsn = "{SERVER}/shop" }}', f'b = {{ system.dsn = "{SERVER[:-1]}4/shop" }}'),
            "would use CPU time during the slices of the other systems",
        ),
        (
            (f'a = {{ system.dsn = "{SERVER}/shop" }}', 'b = { system.memory = "64MB" }'),
            "would use CPU time during the slices",
        ),
        (
            (
                f'a = {{ system.dsn = "{SERVER}/shop" }}',
                f'b = {{ system.dsn = "{SERVER}/shop", workload.with.scale = 2 }}',
            ),
            "two configurations need different data in one database",
        ),
        (
            tuple(f'{name} = {{ system.dsn = "{SERVER}/shop?sslmode={name}" }}' for name in ("disable", "require")),
            "two configurations use one database with different users or TLS settings",
        ),
        (
            tuple(
                f'{name} = {{ system.dsn = "{SERVER}/shop?options=-c%20work_mem%3D{size}", load.cache = "hot" }}'
                for name, size in (("a", "4MB"), ("b", "8MB"))
            ),
            "of each configuration in the shared database",
        ),
    ],
)
def test_what_is_not_one_running_server_with_the_same_work_is_measured_by_trials(
    lab_file: Path, levels: tuple[str, ...], why: str
) -> None:
    assert why in given_lab(lab_file, "tpcb-like", *levels).method.why_trials


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"load": "rate = 100", "measure": 'metric = "response_time_p99_s"'}, "its schedule cannot be paused"),
        ({"load": 'cache = "cold"'}, "the start of a trial"),
        ({"load": "transactions = 100"}, "end when their work is done"),
        ({"load": 'warmup = "auto"'}, "a pilot trial"),
        ({"workload": "brokerage"}, "workload brokerage has background work"),
        ({"engine": "sqlite"}, "not a server that can be paused"),
        ({"measure": 'metric = "engine_cpu_s"'}, "engine_cpu_s comes from observers"),
        (
            {
                "workload": "tpcb-like",
                "measure": '[expect]\nclaims = ["large over small (wal_bytes_per_transaction): at most 0.9"]',
            },
            "wal_bytes_per_transaction comes from observers",
        ),
        ({"load": '[commands]\nprepare = "true"'}, "a command changes the machine"),
    ],
)
def test_what_turns_would_disturb_is_measured_by_trials_and_the_plan_says_why(
    lab_file: Path, capsys: pytest.CaptureFixture[str], parts: dict[str, str], why: str
) -> None:
    found = declared(lab_file, **parts)
    assert found.method.slice_s is None
    assert why in found.method.why_trials
    planned(lab_file)
    assert f"slices are not possible, because: {found.method.why_trials}" in " ".join(capsys.readouterr().out.split())


def test_too_little_memory_for_two_is_said_with_its_figure(lab_file: Path) -> None:
    half = fingerprint().memory_bytes * 2 // 3 >> 20
    found = declared(lab_file, system=f'[limits]\nmemory_total = "{half}MB"\n[system.set]')
    assert "2 systems running at the same time need about" in found.method.why_trials
    assert "of memory, but the machine has" in found.method.why_trials


def test_where_a_system_can_have_no_directory_of_its_own_it_is_measured_by_trials(lab_file: Path) -> None:
    data = lab_file.parent / "fast" / "pg"
    system = f'[layout]\ndata = "{data}"\n[system.set]'
    assert declared(lab_file, system=system).method.why_trials == ""
    somebodys = data.with_name("pg-side-2")
    somebodys.mkdir(parents=True)
    (somebodys / "letters").write_text("dear")
    why = declared(lab_file, system=system).method.why_trials
    assert "pg-side-2" in why and "contains files that ironbench did not create" in why


def test_a_slice_without_slices_is_a_mistake(lab_file: Path) -> None:
    with pytest.raises(InputError, match="applies only to the method `slices`"):
        declared(lab_file, "trials", measure='slice = "1s"')


def test_systems_side_by_side_have_a_directory_each(lab_file: Path) -> None:
    lab = declared(lab_file)
    places = [slice_plan.with_own_directories(lab, setup).system.layout.data for setup in lab.setups]
    assert places[0] == lab.setups[0].system.layout.data
    assert len(set(places)) == len(places)
    assert [setup.system.layout.data for setup in slice_plan.placed(lab)] == places


def test_a_resumed_lab_waits_for_what_a_killed_one_left_in_the_directory_of_each_system(
    lab_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(lab_file.parent))
    lab = declared(lab_file)
    gone, namespace = processes.ProcessId(1, "an earlier boot/1"), processes.pid_namespace()
    with ExitStack() as stack:
        left = [stack.enter_context(subprocess.Popen(["sleep", "60"])) for _ in lab.setups]
        for number, (setup, process) in enumerate(zip(slice_plan.placed(lab), left, strict=True)):
            server, place = processes.identify(process.pid), str(setup.system.layout.data)
            register.write(
                register.RegisterEntry(f"{number}", "postgres", gone, place, server=server, namespace=namespace)
            )
        try:
            freeze.end_orphans(lab)
            assert [process.poll() for process in left] == [-signal.SIGINT] * 2
            assert register.entries() == []
        finally:
            for process in left:
                process.kill()


def test_the_plan_counts_what_turns_take_and_a_directory_for_each(lab_file: Path) -> None:
    trials, turns = declared(lab_file, "trials"), declared(lab_file)
    assert turns.estimate_s > trials.estimate_s + 6 * 2 * 30 * slice_plan.START_UP_S
    assert turns.estimate_bytes > trials.estimate_bytes


def test_noise_by_slices_is_not_that_of_trials(lab_file: Path) -> None:
    setups = declared(lab_file).setups
    known = [
        Noise("m", work_name(setups[0].choice), "throughput", 10, 0.01, 0.01, "2026-11-25T00:00:00", method=SLICES)
    ]
    assert of_machine(setups, "throughput", known, "m") == ASSUMED
    assert of_machine(setups, "throughput", known, "m", SLICES).share == 0.01


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ({"slice_s": 1.0}, "They are under load one after another for 1 s each"),
        (
            {"why_trials": "its load goes on by the clock"},
            "The trials were not interleaved in slices: its load goes on by the clock.",
        ),
    ],
)
def test_the_report_says_how_blocks_were_measured_and_why(method: dict[str, Any], words: str) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]})
    plan = replace(plan, method=replace(plan.method, **method))
    study = labfactory.studied(plan, labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0)))
    (section,) = [one for one in setup.sections(study) if one.id == "plan"]
    assert words in section.lead


def test_two_records_of_a_block_that_did_not_take_turns_with_each_other_are_no_pair() -> None:
    study = labfactory.lab({"log": ["disk", "memory"]}, blocks=7)
    records = labfactory.trials(study, dict.fromkeys(("log=disk", "log=memory"), 1000.0))
    apart = [replace(one, method=SLICES, turns_since=f"block {one.block}") for one in records]
    assert findings(apart, study, 1, others=())[0].blocks == 7
    apart[0] = replace(apart[0], turns_since="another time")
    found = findings(apart, study, 1, others=())[0]
    assert found.blocks == 6
    assert [one.code for dropped in found.dropped for one in dropped.values["why"]] == ["block-not-in-turns"]


def test_who_watches_is_told_of_a_block_before_its_systems_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]})
    told: list[Any] = []
    live = SimpleNamespace(begin=lambda trial, title: told.append((trial.block, title)))
    each: Any = SimpleNamespace(lab=plan, resources=SimpleNamespace(live=live), known=NO_NOTES)
    directory: Any = SimpleNamespace(records=lambda: [])
    monkeypatch.setattr(InterleavedBench, "_measured", lambda *_: told.append("measured"))
    assert (
        InterleavedBench(each, directory).measure(
            NextTrial(replace(plan.trials[0], purpose="lab"), remaining_text="12 min left")
        )
        == []
    )
    title = f"block {plan.trials[0].block + 1}, 2 systems running at the same time, 12 min left"
    assert told == [(plan.trials[0].block, title), "measured"]


def test_a_system_that_does_not_start_fails_its_own_trial_and_those_of_the_others_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]})
    said = io.StringIO()
    printer = Printer(stderr=said)
    live = SimpleNamespace(begin=lambda *_: None)
    resources = SimpleNamespace(live=live, printer=printer, store=Store(tmp_path))
    each: Any = SimpleNamespace(lab=plan, resources=resources, known=NO_NOTES)
    directory: Any = SimpleNamespace(records=lambda: [])

    def started(turns: InterleavedBench, stack: ExitStack, trial: Trial, *_: object) -> Any:
        if trial.cell.name == "log=memory":
            raise FailureError("server", "its log lies nowhere")
        return SimpleNamespace(cell=trial.cell.name, record=None, stop=lambda: None)

    monkeypatch.setattr(InterleavedBench, "_side", started)
    records = InterleavedBench(each, directory).measure(NextTrial(replace(plan.trials[0], purpose="lab")))
    assert {one.cell.name: (one.status, one.causes) for one in records} == {
        "log=memory": (Status.FAILED, (note("error", error="server: its log lies nowhere"),)),
        "log=disk": (
            Status.FAILED,
            (note(NOT_WHOLE, system="log=memory", error="server: its log lies nowhere"),),
        ),
    }
    assert said.getvalue().splitlines() == [
        "error: server: its log lies nowhere",
        "  with the method `slices`, a block needs all of its systems: without log=memory, the other system of the "
        "block cannot be compared. The block is repeated if attempts remain",
    ]


def test_emulated_devices_and_what_is_kept_in_memory_are_each_systems_own() -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]})
    device = Device("free", (Partition("data", 1 << 30, "/base/devices/key/data"),))
    layout = Layout("/base/devices/key/data", None, ideal.directory("/base/devices/key/data", "log"), (device,))
    setups = [replace(one, system=replace(one.system, layout=layout, ideal=("log",))) for one in plan.setups]
    plan = replace(plan, setups=tuple(setups))
    first, second = (slice_plan.with_own_directories(plan, one).system.layout for one in plan.setups)
    assert first == layout
    assert second.data == "/base/devices/key-side-2/data"
    assert second.emulated == {"/base/devices/key-side-2/data"}
    assert second.log is not None and second.log != first.log


@pytest.mark.parametrize(("paid_s", "debt_s", "warned"), [(0.1, 0.0, False), (0.3, 0.0, True), (0.0, 0.6, True)])
def test_much_writing_between_turns_is_a_warning(paid_s: float, debt_s: float, warned: bool) -> None:
    kept = [Slice(0.0, 1.0, 100, 0, busy_s=2.0, start_up_s=0.1, drain_s=0.0, paid_s=paid_s / 5) for _ in range(5)]
    side: Any = SimpleNamespace(kept=kept, debt_s=debt_s, measured_s=5.0)
    assert [one.code for one in written_between(side)] == ["written-between-turns"] * warned
