"""What a killed or failed ironbench leaves, and directories that used to be refused without reason."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import launch
import pytest
from factories import DISK, sweep

from ironbench import engines
from ironbench.cli import verdict
from ironbench.errors import FailureError, InputError
from ironbench.host import data_dirs, processes, register, scratch, shared_memory, space
from ironbench.lab import build
from ironbench.model.system import Choice, Load, System
from ironbench.records import Store


def test_records_that_are_gone_at_the_end_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept = [store.keep(one) for one in sweep(DISK, 3000, 5, clients=(1, 4), repeats=2)]
    verdict.require_kept(store, kept)
    shutil.rmtree(store.path(kept[0].id))
    with pytest.raises(FailureError) as failed:
        verdict.require_kept(store, kept)
    assert kept[0].id in failed.value.cause
    assert f"1 of {len(kept)}" in failed.value.cause


def test_a_run_whose_results_are_removed_on_the_way_fails(tmp_path: Path) -> None:
    results = tmp_path / "results"
    words = ["run", "select-only", "--engine", "null", "--clients", "1,2", "--duration", "1s"]
    command = launch.Command([*words, "--results", str(results)], cwd=tmp_path)
    removed = threading.Event()

    def remove() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not removed.is_set():
            if list(results.glob("trials/*/record.json")):
                os.rename(results, tmp_path / "elsewhere")  # noqa: PTH104 - as a mount that goes away: at once
                removed.set()
            time.sleep(0.05)

    thread = threading.Thread(target=remove)
    thread.start()
    try:
        _, stderr = command.communicate(120)
    finally:
        command.kill()
        command.close()
        thread.join()
    assert removed.is_set()
    assert command.wait() == 1, stderr
    assert str(results) in stderr


def test_cleanup_removes_descriptions_of_failures_of_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own, link, other = (tmp_path / f"{scratch.FAILURE}{name}.txt" for name in ("own", "link", "other"))
    own.write_text("details")
    other.write_text("details")
    link.symlink_to(other)
    os.chown(other, 12345, -1) if os.geteuid() == 0 else other.unlink()
    assert scratch.remove_failures() == [own]
    assert link.is_symlink()


def test_a_link_to_a_place_that_does_not_exist_yet_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "far" / "away")
    assert space.followed(link / "below") == tmp_path / "far" / "away" / "below"
    assert space.existing(link) == tmp_path
    claimed = data_dirs.claim(str(link), "data")
    assert claimed.is_dir() and link.is_dir()
    assert Store(link).directory == link
    assert space.followed(tmp_path / "plain") == tmp_path / "plain"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_file_system_without_a_size_takes_what_memory_is_free(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "ramfs", "none", str(tmp_path)], check=True)
    try:
        assert space.free_bytes(tmp_path) > 1 << 20
        space.require(tmp_path, 1 << 20, "a small table")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize(("engine", "clients", "refused"), [("sqlite", 100, True), ("sqlite", 10, False)])
def test_too_few_open_files_are_named_before_the_start(
    engine: str, clients: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (130, 130))
    system, load = System(engine, "system"), Load(clients=clients)
    if not refused:
        build._require_files(system, Choice("select-only"), load)
        return
    with pytest.raises(InputError) as failed:
        build._require_files(system, Choice("select-only"), load)
    needed = clients * engines.get(engine).traits.files_per_client + build._OWN_FILES
    assert str(needed) in failed.value.cause and "130" in failed.value.cause


def test_the_need_for_open_files_is_that_of_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (400, 400))
    build._require_files(System("postgres", "system"), Choice("select-only"), Load(clients=600, workers=3))


def test_without_proc_the_mount_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path)
    with pytest.raises(FailureError) as failed:
        processes.this_process()
    assert failed.value.subject == "/proc"


def test_new_shared_memory_of_a_server_that_restarted_its_processes_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    entry = register.new("postgres", str(tmp_path), shared_prefix="PostgreSQL.", shared_mark=1)
    entry = register.with_server(entry, processes.this_process(), None)
    mapped = [("/dev/shm/PostgreSQL.1",), ("/dev/shm/PostgreSQL.2",), ()]
    monkeypatch.setattr(shared_memory, "of", lambda *_: mapped.pop(0))
    for noted in ("/dev/shm/PostgreSQL.1", "/dev/shm/PostgreSQL.2", "/dev/shm/PostgreSQL.2"):
        entry = register.with_shared_memory(entry)
        assert entry.shared == (noted,)
        assert register.read(register.path_of(entry)) == entry
    register.forget(replace(entry))
