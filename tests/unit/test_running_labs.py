"""Running labs are found in any directory, but only while their processes live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from labfactory import lab

from ironbench.host import processes, register
from ironbench.records import running_labs
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.serve import running
from ironbench.serve.results import Results


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "runtime"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    return path


def begun(place: Path) -> LabDirectory:
    directory = LabDirectory(place)
    directory.begin(FrozenPlan(lab({"log": ("disk", "memory")}), "m1", {}, {}))
    return directory


def test_a_lab_is_listed_while_its_directory_is_locked(tmp_path: Path) -> None:
    directory = begun(tmp_path / "anywhere")
    assert running_labs.all_running() == []
    with directory.locked():
        (one,) = running_labs.all_running()
        assert (one.directory, one.process.pid) == ((tmp_path / "anywhere").resolve(), os.getpid())
    assert running_labs.all_running() == []


def test_what_a_killed_lab_left_is_not_listed_and_is_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = processes.identify(ended.pid)
    assert process is not None
    folder = register.directory() / "labs"
    folder.mkdir(mode=0o700)
    content = {"directory": "/srv/gone", "process": asdict(process), "namespace": processes.pid_namespace()}
    (folder / "gone.json").write_text(json.dumps(content))
    assert [str(one.directory) for one in running_labs.all_running()] == ["/srv/gone"]
    ended.kill()
    ended.communicate()
    assert running_labs.all_running() == []
    assert not folder.exists()


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"namespace": 1}', '{"directory": 5, "process": [], "namespace": ""}']
)
def test_a_damaged_file_lists_nothing_and_hides_no_other(text: str, tmp_path: Path) -> None:
    with begun(tmp_path / "lab").locked():
        (register.directory() / "labs" / "0.json").write_text(text)
        assert len(running_labs.all_running()) == 1


def test_pages_show_a_lab_that_runs_in_another_directory_once(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    with begun(tmp_path / "elsewhere").locked(), begun(tmp_path / "results" / "labs" / "within").locked():
        found = running.experiments(results)
    assert sorted((one.lab, one.elsewhere) for one in found) == [("", "elsewhere"), ("within", "")]
    assert all(one.process.pid == os.getpid() for one in found)


def test_without_a_runtime_directory_a_lab_runs_unlisted(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runtime / "ironbench").write_text("no directory")
    with begun(tmp_path / "lab").locked():
        assert running_labs.all_running() == [] and running_labs.own_processes() == frozenset()


def test_the_processes_of_a_running_lab_are_its_own_and_no_disturbance(tmp_path: Path) -> None:
    below = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert below.pid not in running_labs.own_processes()
        with begun(tmp_path / "lab").locked():
            assert {below.pid, os.getpid()} <= running_labs.own_processes()
    finally:
        below.kill()
        below.communicate()


def test_a_lab_remembers_whether_it_was_run_as_a_gate(tmp_path: Path) -> None:
    directory = begun(tmp_path / "lab")
    assert not directory.frozen().gate
    gated = LabDirectory(tmp_path / "gated")
    gated.begin(replace(directory.frozen(), gate=True))
    assert gated.frozen().gate
    # Plans of earlier versions do not have the field.
    plan = json.loads((tmp_path / "lab" / "plan.json").read_text())
    del plan["gate"]
    (tmp_path / "lab" / "plan.json").write_text(json.dumps(plan))
    assert not directory.frozen().gate
