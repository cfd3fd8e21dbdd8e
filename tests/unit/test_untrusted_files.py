"""A lab file or bundle of a stranger: reading it runs nothing, and resuming it needs the user's explicit consent."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import launch
import pytest
from factories import arrive
from labfactory import lab
from served import browser
from test_bundle import begun

from ironbench.engines.postgres import installation
from ironbench.errors import FailureError, InputError
from ironbench.host import trust
from ironbench.host.programs import run_program
from ironbench.lab import imported
from ironbench.model.commands import Commands
from ironbench.records.export import export
from ironbench.serve import queue_page

WITH_PROGRAMS = """
question = "Which version is faster?"
[workload]
name = "select-only"
[load]
duration = "1s"
[measure]
repeats = 1
[vary]
bin = ["wheel:18", "{programs}"]
"""


def programs(folder: Path, version: str = "postgres (PostgreSQL) 17.2") -> Path:
    """Creates programs that leave a file behind when they run. Returns their folder."""
    folder.mkdir()
    for name in ("postgres", "initdb", "pg_controldata", "pg_resetwal", "pg_config"):
        path = folder / name
        path.write_text(f"#!/bin/sh\n# {version}\ntouch {folder}/ran\necho '{version}'\n")
        path.chmod(0o755)
    return folder


def test_a_plan_runs_no_program_that_the_lab_file_names(tmp_path: Path) -> None:
    found = programs(tmp_path / "bin")
    file = tmp_path / "upgrade.toml"
    file.write_text(WITH_PROGRAMS.format(programs=found))
    done = launch.run(["lab", "plan", file], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (found / "ran").exists()
    assert str(found) in done.stdout
    assert "--trust" in done.stdout


def test_a_trusted_plan_asks_the_programs_that_the_lab_file_names(tmp_path: Path) -> None:
    found = programs(tmp_path / "bin")
    file = tmp_path / "upgrade.toml"
    file.write_text(WITH_PROGRAMS.format(programs=found))
    launch.run(["lab", "plan", file, "--trust"], cwd=tmp_path)
    assert (found / "ran").exists()


def test_the_lab_editor_runs_no_program_that_the_text_names(tmp_path: Path) -> None:
    found = programs(tmp_path / "bin")
    shown = queue_page.plan("upgrade", WITH_PROGRAMS.format(programs=found))
    assert not (found / "ran").exists()
    assert str(found) in shown


def test_a_version_that_no_file_contains_is_not_learned_by_running_the_program(tmp_path: Path) -> None:
    found = programs(tmp_path / "bin", "no version")
    with trust.reading_only(), pytest.raises(InputError) as refused:
        installation.find(str(found))
    assert "--trust" in refused.value.hint
    assert not (found / "ran").exists()


def test_a_program_is_withheld_through_a_link_and_behind_another_program(tmp_path: Path) -> None:
    found = programs(tmp_path / "bin")
    (tmp_path / "link").symlink_to(found)
    with trust.reading_only():
        assert not trust.may_run(tmp_path / "link")
        for words in ([str(found / "postgres")], ["env", str(tmp_path / "link" / "postgres")]):
            with pytest.raises(FailureError):
                run_program(words)
    assert not (found / "ran").exists()
    run_program([str(found / "postgres")])
    assert (found / "ran").exists()


def test_programs_that_only_an_administrator_installs_run() -> None:
    with trust.reading_only():
        assert trust.may_run(Path("/usr/sbin"))
        assert not trust.withheld_directories()


def taken_in(tmp_path: Path) -> Path:
    here = begun(tmp_path / "here")
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    return arrive(tmp_path / "lab.ibr", tmp_path / "there").directory


def test_an_imported_lab_is_not_resumed_without_trust(tmp_path: Path) -> None:
    directory = taken_in(tmp_path)
    done = launch.run(["lab", "resume", directory], cwd=tmp_path)
    assert done.returncode == 2
    assert "--trust" in done.stderr
    trusted = launch.run(["lab", "resume", directory, "--trust"], cwd=tmp_path)
    assert "was imported" not in trusted.stderr


def test_a_lab_of_this_machine_needs_no_trust(tmp_path: Path) -> None:
    here = begun(tmp_path / "here")
    imported.require_trust(here, here.lab())


def test_a_stage_that_is_imported_into_a_lab_of_this_machine_makes_it_untrusted(tmp_path: Path) -> None:
    here, there = begun(tmp_path / "here"), begun(tmp_path / "there")
    os.link(here.path / "plan.json", tmp_path / "plan.json")
    (tmp_path / "plan.json").replace(there.path / "plan.json")
    here.declare(replace(here.lab().method.stages[0], number=2), here.lab().trials)
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    assert not there.imported()
    arrive(tmp_path / "lab.ibr", there.path)
    assert there.imported()


def test_every_action_that_a_lab_file_chose_is_named_before_it_is_trusted() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    first = plan.setups[0]
    system = replace(
        first.system,
        dsn="postgresql://db.example/shop",
        settings={"bin": "/stranger/bin"},
        server="ssh://db.example",
        restart="sudo restart-it",
        commands=(Commands(prepare="curl stranger", cleanup="rm something"),),
    )
    named = " ".join(imported.would_do(replace(plan, setups=(replace(first, system=system), *plan.setups[1:]))))
    for word in ("db.example/shop", "/stranger/bin", "ssh://db.example", "restart-it", "curl stranger", "rm something"):
        assert word in named


def test_the_browser_resumes_no_imported_lab(tmp_path: Path) -> None:
    results = tmp_path / "results"
    here = begun(tmp_path / "here")
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    directory = arrive(tmp_path / "lab.ibr", results / "labs" / "stranger").directory
    client = browser(results)
    assert client.post(f"/lab/{directory.name}/resume").status_code == 404
    assert not list((results / "queue").glob("*.json"))
