"""Pages when the disk is full or the clock jumps."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import LAB, browser, stocked

from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.serve.results import Results


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """Results on a file system without free space."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0755", "none", str(disk)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        results = stocked(disk / "results")
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        yield results
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_on_a_full_disk_pages_are_shown_and_what_cannot_be_kept_is_refused(full: Path, tmp_path: Path) -> None:
    client = browser(full)
    for path in ("/", "/archive", "/queue", f"/lab/{LAB}", f"/lab/{LAB}/gate", "/history"):
        assert client.get(path).status_code == 200, path
    assert "nearly full" in client.get("/").text
    note = client.post(f"/lab/{LAB}/note/lab", data={"text": "x" * 5000})
    assert note.status_code in (500, 507) and "No space left" in note.text and str(tmp_path) not in note.text
    bundle = browser(stocked(tmp_path / "other")).get("/export", params={"pick": f"{LAB}/"}).content
    (full / "labs" / LAB).rename(full / "labs" / "moved")
    imported = client.post("/import", content=bundle)
    assert imported.status_code in (400, 507) and "MiB are free" in imported.text
    text = "question = 'x'\nworkload.name = 'select-only'\nsystem.engine = 'null'\nvary.clients = [1, 2]\n"
    queued = client.post("/queue", data={"name": "x", "text": text})
    assert queued.status_code in (500, 507) and "No space left" in queued.text
    assert "No lab is waiting" in client.get("/queue").text


def test_records_that_arrive_are_seen_when_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results(stocked(tmp_path / "results"))
    before = results.index().count("true")
    now = time.time
    monkeypatch.setattr("time.time", lambda: now() - 86_400)
    store = Store(tmp_path / "results", Printer.silent())
    gone = store.all()[0]
    trials = tmp_path / "results" / "trials"
    (trials / gone.id).rename(tmp_path / "away")
    assert results.index().count("true") == before - 1
    (tmp_path / "away").rename(trials / gone.id)
    assert results.index().count("true") == before
