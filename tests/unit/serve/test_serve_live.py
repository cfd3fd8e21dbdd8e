"""A running lab shows its trial each second, its answer after each record and its report at the end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

import msgspec
import pytest
from anyio.to_thread import current_default_thread_limiter
from served import LAB, begun, browser

from ironbench.host import durable
from ironbench.host.tree import Tree
from ironbench.model.system import Cell, Load, Trial
from ironbench.records.labs import LabDirectory
from ironbench.serve import lab_page, machine_now, running
from ironbench.serve.lab_page import Events
from ironbench.serve.machine_now import MachineMeter
from ironbench.serve.progress_page import LabProgress, ProgressCache
from ironbench.serve.results import Results
from ironbench.trial.drive.live import IN_TURN, PREPARING, LiveFile, place, read

TRIAL = Trial(Cell("log=disk", Load(8, duration_s=30.0)), 1)

CHART = "so-far-narrowing"
"""Id of the chart for a running lab."""


class Progress:
    """Substitute for the core's progress."""

    phase, elapsed_s, transactions, errors = "run", 2.5, 900, 3

    def seconds(self, after: int) -> list[tuple[float, int, int, float, float, int]]:
        return [(1.0, 400, 1, 0.002, 0.001, 170), (1.0, 0, 2, float("nan"), float("nan"), 0)][after:]


def test_a_trial_is_seen_while_it_runs_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    live, file = LiveFile(tmp_path, "series"), place(tmp_path, "series")
    live.begin(TRIAL, "trial 2 of 20, 10 min left: log=disk, block 2")
    state = read(file)
    assert state is not None and (state.phase, state.cell, state.block) == (PREPARING, "log=disk", 1)
    live.update(Progress())  # type: ignore[arg-type]
    state = read(file)
    assert state is not None and state.phase == "run" and state.failed == 3
    assert state.seconds == ((1.0, 400, 1, 0.002, 0.001, 170), (1.0, 0, 2, None, None, 0))
    live.close()
    assert list(tmp_path.iterdir()) == []


def test_a_block_by_slices_is_seen_as_a_whole_and_not_as_the_trial_before_it(tmp_path: Path) -> None:
    live, file = LiveFile(tmp_path, "series"), place(tmp_path, "series")
    live.begin(TRIAL, "trial 1 of 20")
    live.update(Progress())  # type: ignore[arg-type]
    live.begin(TRIAL, "block 2, 3 systems side by side")
    state = read(file)
    assert state is not None and (state.phase, state.seconds, state.transactions) == (PREPARING, (), 0)
    live._written_s = 0.0
    live.turned(12.0)
    state = read(file)
    assert state is not None and (state.title, state.phase) == ("block 2, 3 systems side by side", IN_TURN)
    assert (state.elapsed_s, state.duration_s, state.seconds) == (12.0, 30.0, ())
    live.close()


def test_at_most_one_state_a_second_is_written(tmp_path: Path) -> None:
    live = LiveFile(tmp_path, "series")
    live.begin(TRIAL, "")
    live.update(Progress())  # type: ignore[arg-type]
    before = place(tmp_path, "series").stat().st_mtime_ns
    for _ in range(50):
        live.update(Progress())  # type: ignore[arg-type]
    assert place(tmp_path, "series").stat().st_mtime_ns == before
    live.close()


def test_a_place_that_cannot_be_written_shows_nothing_and_ends_nothing(tmp_path: Path) -> None:
    live = LiveFile(tmp_path / "nowhere", "series")
    live.begin(TRIAL, "")
    live.update(Progress())  # type: ignore[arg-type]
    live.close()
    assert read(place(tmp_path / "nowhere", "series")) is None


def test_half_a_state_is_none(tmp_path: Path) -> None:
    (tmp_path / ".x.live").write_bytes(b'{"pid": 1, "at"')
    assert read(tmp_path / ".x.live") is None


def test_what_a_killed_process_left_is_removed_with_the_rest(tmp_path: Path) -> None:
    (tmp_path / ".x.live").write_bytes(b"{}")
    assert durable.remove_abandoned(tmp_path) == [tmp_path / ".x.live"]
    live = LiveFile(tmp_path, "x")
    live.begin(TRIAL, "")
    assert durable.remove_abandoned(tmp_path) == []
    live.close()


HOLDS = """
import sys, time
from pathlib import Path
from ironbench.trial.drive.live import LiveFile
from ironbench.model.system import Cell, Load, Trial
from ironbench.records.labs import LabDirectory
directory = LabDirectory(Path(sys.argv[1]))
with directory.locked():
    live = LiveFile(directory.path, "s")
    live.begin(Trial(Cell("log=disk", Load(8, duration_s=30.0)), 1), "trial 2 of 20")
    print("holds", flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        live.close()
"""


@contextmanager
def measuring(lab: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that measures the lab."""
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(lab)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "holds\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that measures the lab, half of which is done."""
    with measuring(begun(tmp_path, share=0.5).path) as process:
        yield process


def test_a_lab_begun_in_a_terminal_is_live_until_it_ends_and_a_report_then(
    tmp_path: Path, measured: subprocess.Popen[str]
) -> None:
    client = browser(tmp_path)
    page = client.get(f"/lab/{LAB}").text
    assert f'data-live="/lab/{LAB}/events"' in page and f"running as process {measured.pid}" in page
    assert "How to reproduce" not in page
    assert "How to reproduce" in client.get(f"/lab/{LAB}?report=1").text
    assert "running" in client.get("/").text
    client.post(f"/lab/{LAB}/stop")
    measured.wait(20)
    assert "How to reproduce" in client.get(f"/lab/{LAB}").text


def test_a_lab_may_have_any_name_that_a_directory_has(tmp_path: Path) -> None:
    lab, client = begun(tmp_path, share=0.5).path.rename(tmp_path / "labs" / "a#1?"), browser(tmp_path)
    address = "/lab/a%231%3F"
    with measuring(lab) as process:
        page = client.get(address).text
        assert f'data-live="{address}/events"' in page and f'data-record="{address}/record/' in page
        stopped = client.post(f"{address}/stop", follow_redirects=False)
        assert stopped.headers["location"] == address
        process.wait(20)
    assert f'action="{address}/resume" class' in client.get(address).text
    noted = client.post(f"{address}/note/lab", data={"text": "seen"}, follow_redirects=False)
    assert noted.headers["location"] == address and (lab / "notes" / "lab.md").read_text() == "seen\n"


def test_the_overview_changes_when_a_lab_begins_in_a_terminal_and_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ASKED_S", 0.0)
    lab, client = begun(tmp_path, share=0.5).path, browser(tmp_path)

    def state() -> str:
        text = client.get("/state").text
        assert f'data-reload="/state" data-state="{escape(text)}"' in client.get("/").text, "it would reload for ever"
        return text

    before = state()
    with measuring(lab) as process:
        during = state()
        assert f"{LAB} {process.pid}" in during
    assert before != during != state()


def test_pages_are_told_of_the_trial_the_answer_and_the_end(tmp_path: Path, measured: subprocess.Popen[str]) -> None:
    results, known = Results(tmp_path), ProgressCache()
    known.of(results.lab(LAB))  # by the page
    events = Events(results, known, MachineMeter())

    async def told() -> list[bytes]:
        stream: AsyncIterator[bytes] = events.of(LAB)
        first = [await anext(stream), await anext(stream)]
        measured.kill()
        measured.wait()
        return [*first, *[one async for one in stream]]

    found = asyncio.run(told())
    names = [one.partition(b"\n")[0].removeprefix(b"event: ").decode() for one in found]
    assert names[:2] == ["parts", "state"] and names[-1] == "over"
    parts = msgspec.json.decode(found[0].partition(b"data: ")[2])
    assert "WAL in memory" in parts["parts"]["answer"]
    assert CHART.replace("-narrowing", "") in next(iter(parts["charts"]))
    assert parts["parts"]["strip"].count("data-say") == 10
    assert msgspec.json.decode(found[1].partition(b"data: ")[2])["trial"]["title"] == "trial 2 of 20"


def test_pages_are_told_of_the_trial_while_the_answer_is_made(
    tmp_path: Path, measured: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    may = threading.Event()

    class Slow(ProgressCache):
        def of(self, directory: LabDirectory, at_once: bool = True) -> tuple[tuple[int, int], LabProgress]:
            may.wait(60)
            return super().of(directory, at_once)

    monkeypatch.setattr(lab_page, "_HEARTBEAT_S", 0)
    events = Events(Results(tmp_path), Slow(), MachineMeter())

    async def told() -> list[str]:
        stream: AsyncIterator[bytes] = events.of(LAB)
        names = []
        while "parts" not in names and len(names) < 100:
            event = await anext(stream)
            names.append(event.partition(b"\n")[0].removeprefix(b"event: ").decode())
            if len(names) == 2:
                may.set()
        return names

    found = asyncio.run(told())
    assert found[:2] == ["state", "state"] and found[-1] == "parts"


def test_what_a_page_that_was_left_still_waits_for_is_not_made(tmp_path: Path, measured: subprocess.Popen[str]) -> None:
    made: list[LabDirectory] = []

    class Counting(ProgressCache):
        def of(self, directory: LabDirectory, at_once: bool = True) -> tuple[tuple[int, int], LabProgress]:
            made.append(directory)
            return super().of(directory, at_once)

    async def left() -> None:
        limiter = current_default_thread_limiter()
        limiter.total_tokens = 1
        async with limiter:  # another page is being made
            stream = Events(Results(tmp_path), Counting(), MachineMeter()).of(LAB)
            await asyncio.wait_for(anext(stream), 30)
            await stream.aclose()  # type: ignore[attr-defined]
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)

    asyncio.run(left())
    assert made == []


def test_the_interval_is_drawn_after_each_block_from_the_third(tmp_path: Path) -> None:
    directory = begun(tmp_path)
    _, progress = ProgressCache().of(directory)
    chart = next(iter(progress.charts.values()))
    steps = chart["datasets"]["steps"]
    assert [step["blocks"] for step in steps] == list(range(3, 11))
    widths = [step["high"] / step["low"] for step in steps]
    assert widths[-1] < widths[0]
    assert "still needed" in progress.parts["needs"]


def test_what_a_block_that_is_measured_now_still_lacks_is_no_mistake(tmp_path: Path) -> None:
    directory = begun(tmp_path, share=0.55)  # ten blocks; the sixth has one of its two trials
    assert len(directory.records()) % 2 == 1
    _, progress = ProgressCache().of(directory)
    words = " ".join(progress.parts.values())
    assert "was not measured" not in words and "lab resume" not in words
    assert f"{len(directory.records())} trials of {len(directory.lab().trials)} measured" in words


def test_there_is_no_verdict_before_the_first_interim_analysis(tmp_path: Path) -> None:
    directory = begun(tmp_path / "before", share=0.7)  # seven of the ten blocks before the only interim analysis
    needs = ProgressCache().of(directory)[1].parts["needs"]
    assert ">faster" in needs and "the interim analysis after block 10" in needs and "nothing: decided" not in needs
    assert "nothing: decided" in ProgressCache().of(begun(tmp_path / "after"))[1].parts["needs"]


def test_a_lab_without_a_record_says_so(tmp_path: Path) -> None:
    _, progress = ProgressCache().of(begun(tmp_path, share=0.0))
    assert "No trial" in progress.parts["answer"]
    assert progress.parts["strip"].count("not run yet") == 20


def test_nobody_holds_a_lock_that_is_only_there(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert running.holder(lock, running.locks()) is None
    lock.write_text("1\n")
    assert running.holder(lock, running.locks()) is None


def test_differences_of_counters_become_shares_and_rates(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()

    def now(idle: int, sectors: int) -> None:
        (tmp_path / "proc" / "stat").write_text(f"cpu  {200 - idle} 0 0 {idle} 0 0 0 0 0 0\n")
        lines = [f" 8 0 sda 1 0 {sectors} 1 1 0 0 1 0 {sectors} 1", f" 8 1 sda1 1 0 {sectors} 1 1 0 0 1 0 {sectors} 1"]
        (tmp_path / "proc" / "diskstats").write_text("\n".join(lines))

    meter = MachineMeter(Tree(tmp_path))
    now(100, 0)
    assert meter.now(0.0) == {}
    (tmp_path / "proc" / "stat").write_text("cpu  250 0 0 150 0 0 0 0 0 0\n")
    now_lines = [" 8 0 sda 1 0 2000 1 1 0 0 1 0 500 1", " 8 1 sda1 1 0 2000 1 1 0 0 1 0 500 1"]
    (tmp_path / "proc" / "diskstats").write_text("\n".join(now_lines))
    shown = meter.now(1.0)
    assert shown["busy"] == pytest.approx(150 / 200)
    assert shown["devices"] == [{"name": "sda", "read": 2000 * 512, "written": 0.0, "busy": 0.5}]
    assert meter.now(1.5) is shown  # many pages cost as much as one


def test_time_passes_between_looks() -> None:
    meter = MachineMeter()
    meter.now()
    time.sleep(1.0)
    assert 0.0 <= meter.now()["busy"] <= 1.0


@pytest.mark.parametrize(
    ("name", "disk", "part"),
    [
        ("sda1", "sda", True),
        ("sda", "sda", False),
        ("sdaa", "sda", False),
        ("nvme0n1p2", "nvme0n1", True),
        ("nvme0n10", "nvme0n1", False),
        ("md12", "md1", False),
        ("md1p2", "md1", True),
    ],
)
def test_a_partition_is_told_from_another_disk_by_the_names_of_the_kernel(name: str, disk: str, part: bool) -> None:
    assert machine_now._is_part(name, disk) is part


def test_an_open_page_has_a_lab_computed_seldom_and_a_new_one_at_once(tmp_path: Path) -> None:
    directory, known = begun(tmp_path, share=0.5), ProgressCache()
    first = known.of(directory)
    gone = next((directory.path / "trials").iterdir())
    gone.rename(tmp_path / "gone")
    assert known.of(directory, at_once=False) is first
    assert known.of(directory) is not first


def test_an_open_page_is_told_what_is_known_until_the_lab_has_changed(tmp_path: Path) -> None:
    directory, known = begun(tmp_path, share=0.5), ProgressCache()
    assert known.cached(directory) is None
    made = known.of(directory)
    assert known.cached(directory) == made
    known._next_s[LAB] = 0.0
    assert known.cached(directory) == made, "nothing has changed"
    (directory.path / "trials" / ".aside").mkdir()
    assert known.cached(directory) is None
