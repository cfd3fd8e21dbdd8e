"""The queue starts one lab at a time, in order, at the scheduled times, and survives any end of its server."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from factories import record
from hypothesis import given
from hypothesis import strategies as st
from patience import eventually
from queued import NOON, Clock, Labs, put, states
from served import LAB, browser, stocked

from ironbench.errors import FailureError, InputError
from ironbench.host import measurement_locks
from ironbench.host.detached import Detached, failure_of, report_failure, status_of
from ironbench.host.processes import ProcessId
from ironbench.lab import schedule
from ironbench.model.note import text_note
from ironbench.model.record import Status
from ironbench.records import Store
from ironbench.records.labs import PLAN, LabDirectory
from ironbench.serve import queue as serve_queue
from ironbench.serve import queue_page
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import CANCELLED, DONE, FAILED, RUNNING, STOPPED, WAITING, QueueEntry, next_at


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(measurement_locks.QUEUED, raising=False)


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Labs]:
    found = Labs(tmp_path)
    with contextlib.closing(found):
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, labs: Labs, clock: Clock) -> Iterator[Queue]:
    with contextlib.closing(Queue(tmp_path, clock, labs.begin)) as found:
        yield found


def test_labs_begin_one_after_another_in_their_order(queue: Queue, labs: Labs) -> None:
    put(queue, "one")
    put(queue, "two")
    queue.tick()
    queue.tick()
    assert states(queue) == [("one", RUNNING), ("two", WAITING)]
    assert "labs run one at a time" in queue.wait_reason(queue.entries()[1], queue.entries())
    labs.end(0)
    queue.tick()
    assert states(queue) == [("one", DONE), ("two", RUNNING)]


def test_the_order_can_be_changed_and_what_waits_be_cancelled(queue: Queue, labs: Labs) -> None:
    one, two, three = (put(queue, name) for name in ("one", "two", "three"))
    queue.move(three.id, -1)
    assert [name for name, _ in states(queue)] == ["one", "three", "two"]
    queue.move(one.id, 1)
    queue.move(two.id, 1)
    queue.cancel(three.id)
    assert states(queue) == [("three", CANCELLED), ("one", WAITING), ("two", WAITING)]
    queue.tick()
    assert [one.name for one in labs.begun] == ["one"]
    queue.cancel(one.id)
    assert dict(states(queue))["one"] == RUNNING


def test_a_lab_begins_at_its_time_or_after_another_one(queue: Queue, labs: Labs, clock: Clock) -> None:
    late = put(queue, "late", not_before=NOON + 3600)
    put(queue, "next", after=late.id)
    queue.tick()
    assert not labs.begun
    assert "starts at" in queue.wait_reason(late, queue.entries())
    assert "starts after late" in queue.wait_reason(queue.entries()[1], queue.entries())
    clock.now += 3601
    queue.tick()
    labs.end(1)
    queue.tick()
    assert states(queue) == [("late", FAILED), ("next", RUNNING)]


def test_what_waits_for_its_time_lets_others_pass(queue: Queue, labs: Labs) -> None:
    put(queue, "late", not_before=NOON + 3600)
    put(queue, "now")
    queue.tick()
    assert [one.name for one in labs.begun] == ["now"]


def test_a_nightly_lab_is_put_in_again_once_a_night_whatever_the_clock_does(
    queue: Queue, labs: Labs, clock: Clock
) -> None:
    put(queue, "night", nightly="22:00")
    clock.now = datetime(2026, 11, 25, 22, 0, 1).timestamp()
    queue.tick()
    waiting = [one for one in queue.entries() if one.state == WAITING]
    assert [one.not_before for one in waiting] == [datetime(2026, 11, 26, 22, 0).timestamp()]
    labs.end(0)
    clock.now -= 3600  # the clock is set back: it does not start again
    queue.tick()
    assert len(labs.begun) == 1
    # the machine was off for days: it starts once, not once per day
    clock.now = datetime(2026, 12, 1, 8, 0).timestamp()
    queue.tick()
    labs.end(0)
    queue.tick()
    assert len(labs.begun) == 2
    assert [one.not_before for one in queue.entries() if one.state == WAITING] == [
        datetime(2026, 12, 1, 22, 0).timestamp()
    ]


@given(now=st.floats(1.6e9, 2.5e9), hour=st.integers(0, 23), minute=st.integers(0, 59))
def test_the_next_night_is_later_than_now_and_within_a_day(now: float, hour: int, minute: int) -> None:
    found = next_at(f"{hour:02}:{minute:02}", now)
    assert 0 < found - now <= 25 * 3600


def test_a_restarted_server_finds_the_lab_that_goes_on_and_how_it_ended(
    queue: Queue, labs: Labs, clock: Clock, tmp_path: Path
) -> None:
    put(queue, "one")
    queue.tick()
    queue.close()  # as after SIGKILL, when the kernel releases its lock
    with contextlib.closing(Queue(tmp_path, clock, labs.begin)) as other:
        other.tick()
        assert states(other) == [("one", RUNNING)] and len(labs.begun) == 1
        labs.end(3)
        other.tick()
        assert states(other) == [("one", DONE)] and other.entries()[0].why == "some trials are flagged"


def test_a_killed_lab_goes_on_but_not_for_ever(queue: Queue, labs: Labs) -> None:
    put(queue, "one")
    for tries in (1, 2, 3):
        queue.tick()
        assert queue.entries()[0].tries == tries
        labs.end(None)
    queue.tick()
    assert states(queue) == [("one", FAILED)] and "killed 3 times" in queue.entries()[0].why


@pytest.mark.long
def test_blocks_are_added_once_however_often_the_lab_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []

    class Killed:
        """A lab that ends immediately."""

        shell = ProcessId(0, "")

        def __init__(self, words: list[str], *_: object) -> None:
            begun.append(words[words.index("lab") + 1 :])

        def reap(self) -> bool:
            return True

    monkeypatch.setattr(serve_queue, "Detached", Killed)
    directory = LabDirectory(stocked(tmp_path) / "labs" / LAB)
    with contextlib.closing(Queue(tmp_path)) as queue:
        queue.resume(LAB, 6)
        queue.tick()
        queue.tick()
        schedule.add_round(directory, 6)
        queue.tick()
    resumed = ["resume", str(directory.path.absolute())]
    assert begun == [[*resumed, "--more", "6"], [*resumed, "--more", "6"], resumed]


def test_why_a_lab_failed_is_told_without_where_the_results_lie(queue: Queue, labs: Labs, tmp_path: Path) -> None:
    entry = put(queue, "one")
    queue.tick()
    folder = tmp_path / "queue" / entry.id
    folder.mkdir(exist_ok=True)
    (folder / "log").write_text(f"error: lab {tmp_path}/labs/x: has ended\n")
    error = FailureError(f"lab {tmp_path}/labs/x", "was measured on another machine", "go there")
    report_failure(error, {"IRONBENCH_FAILURE_FILE": str(folder / "failure.json")})
    labs.end(1)
    queue.tick()
    (ended,) = queue.entries()
    assert ended.why == f"lab {tmp_path.name}/labs/x: was measured on another machine (go there)"
    assert str(tmp_path) not in queue.log(ended)


def test_a_lab_whose_last_trial_failed_names_its_cause(queue: Queue, labs: Labs, tmp_path: Path) -> None:
    entry = put(queue, "one")
    queue.tick()
    failed = record(status=Status.FAILED, causes=(text_note("the server did not start"),))
    Store(tmp_path / "labs" / entry.lab).keep(failed)
    labs.end(1)
    queue.tick()
    assert "the server did not start" in queue.entries()[0].why


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"subject": "x"}'])
def test_without_a_readable_error_the_exit_code_is_named(
    content: bytes | None, queue: Queue, labs: Labs, tmp_path: Path
) -> None:
    entry = put(queue, "one")
    queue.tick()
    (tmp_path / "queue" / entry.id).mkdir(exist_ok=True)
    if content is not None:
        (tmp_path / "queue" / entry.id / "failure.json").write_bytes(content)
    labs.end(2)
    queue.tick()
    assert queue.entries()[0].why == "exit code 2"


def test_a_detached_ironbench_leaves_the_error_that_ended_it(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ironbench.start", "show", "nothing-of-that-name"]
    (tmp_path / "failure.json").write_text("of an earlier start")
    Detached(words, tmp_path / "log", tmp_path / "status", {"IRONBENCH_RESULTS": str(tmp_path / "results")})
    assert eventually(lambda: status_of(tmp_path / "status") is not None, 20.0)
    error = failure_of(tmp_path / "status")
    assert error is not None and error.subject == "nothing-of-that-name"


def test_a_stopped_lab_stays_stopped(queue: Queue, labs: Labs) -> None:
    for name in ("one", "two"):
        entry = put(queue, name)
        queue.tick()
        if name == "one":
            plan = queue.results / "labs" / entry.lab / PLAN
            plan.parent.mkdir(parents=True)
            plan.touch()
        labs.end(130)
        queue.tick()
    queue.tick()
    assert states(queue) == [("one", STOPPED), ("two", CANCELLED)]
    assert "before the first trial" in queue.entries()[1].why


def test_of_two_servers_one_decides_and_the_other_takes_over(
    queue: Queue, labs: Labs, clock: Clock, tmp_path: Path
) -> None:
    put(queue, "one")
    queue.tick()
    with contextlib.closing(Queue(tmp_path, clock, labs.begin)) as other:
        other.tick()
        assert not other.starts_labs() and len(labs.begun) == 1
        put(other, "two")
        queue.close()
        labs.end(0)
        other.tick()
        assert other.starts_labs() and states(other) == [("one", DONE), ("two", RUNNING)]


def test_what_one_server_begins_another_that_changes_the_order_does_not_put_back(
    queue: Queue, labs: Labs, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(queue, "one")
    two = put(queue, "two")
    with contextlib.closing(Queue(tmp_path, clock, labs.begin)) as other:
        keep, deciding = other._write, threading.Thread(target=queue.tick)

        def meanwhile(entry: QueueEntry) -> None:
            if deciding.ident is None:
                deciding.start()
                deciding.join(0.5)
            keep(entry)

        monkeypatch.setattr(other, "_write", meanwhile)
        other.move(two.id, -1)
        deciding.join()
    assert states(queue) == [("two", RUNNING), ("one", WAITING)] and len(labs.begun) == 1


def test_nothing_begins_while_something_else_is_measured_on_this_machine(
    tmp_path: Path, queue: Queue, labs: Labs, clock: Clock
) -> None:
    put(queue, "one")
    heard: list[str] = []
    with measurement_locks.shared(heard.append):
        queue.tick()
        assert not labs.begun and not heard
    elsewhere = Queue(tmp_path, clock, labs.begin, others=lambda: "shop is measured, and started outside this queue")
    assert "started outside this queue" in elsewhere.wait_reason(queue.entries()[0], queue.entries())
    queue.tick()
    assert len(labs.begun) == 1
    with measurement_locks.shared(heard.append):
        assert "queued lab" in heard[0]


def test_the_lab_holds_the_machine_when_its_server_is_gone(queue: Queue, labs: Labs) -> None:
    put(queue, "one")
    queue.tick()
    queue.close()
    assert measurement_locks.alone() is None
    labs.end(0)
    lock = measurement_locks.alone()
    assert lock is not None
    os.close(lock)


def test_what_a_terminal_begins_beside_a_queued_lab_keeps_the_next_lab_waiting() -> None:
    heard: list[str] = []
    lock = measurement_locks.alone()
    assert lock is not None
    with measurement_locks.shared(heard.append):
        assert "queued lab" in heard[0]
        os.close(lock)  # that lab has ended
        assert measurement_locks.alone() is None
    lock = measurement_locks.alone()
    assert lock is not None
    os.close(lock)


def test_damaged_entries_are_left_out_and_unknown_ones_refused(queue: Queue, tmp_path: Path) -> None:
    put(queue, "one")
    (tmp_path / "queue" / "broken.json").write_bytes(b"{")
    one = queue.entries()[0]
    (tmp_path / "queue" / "borrowed.json").write_bytes((tmp_path / "queue" / f"{one.id}.json").read_bytes())
    assert states(queue) == [("one", WAITING)]
    for change in (queue.cancel, queue.entry, queue.remove):
        with pytest.raises(InputError, match="does not exist"):
            change("nothing")
    for name in ("", "../x", "a/b", ".x", "x y", "x" * 300):
        with pytest.raises(InputError):
            put(queue, name)
    with pytest.raises(InputError, match="time of day"):
        put(queue, "one", nightly="25:00")


def test_a_detached_program_notes_its_status_and_what_it_said(tmp_path: Path) -> None:
    began = Detached(["/bin/sh", "-c", "echo $WORD; exit 4"], tmp_path / "log", tmp_path / "status", {"WORD": "said"})
    assert eventually(lambda: status_of(tmp_path / "status") is not None, 20.0)
    assert status_of(tmp_path / "status") == 4 and (tmp_path / "log").read_text() == "said\n"
    assert eventually(lambda: began.reap() or not began.shell.alive(), 20.0)


def test_pages_put_labs_in_show_why_they_wait_and_refuse_mistakes(tmp_path: Path) -> None:
    client = browser(stocked(tmp_path / "results"))
    text = (
        "question = 'Do two clients get more done?'\n[workload]\nname = 'select-only'\n[system]\nengine = 'null'\n"
        "[load]\nduration = '1s'\n[vary]\nclients = [1, 2]\n"
    )
    assert "2 configurations" in client.post("/queue/plan", data={"name": "x", "text": text}).text
    wrong = client.post("/queue", data={"name": "x", "text": text.replace("null", "nul")})
    assert wrong.status_code == 422 and "nul" in wrong.text and str(tmp_path) not in wrong.text
    page = client.post("/queue", data={"name": "x", "text": text, "at": "2099-01-01T22:00"})
    assert page.status_code == 200 and "starts at 2099-01-01 22:00" in page.text
    entry = Queue(tmp_path / "results").entries()[0]
    assert "Do two clients" in client.get(f"/queue/{entry.id}").text
    assert "Do two clients" in client.get("/queue/new", params={"clone": entry.id}).text
    assert "cancelled" in client.post(f"/queue/{entry.id}/cancel").text
    assert client.post(f"/queue/{entry.id}/nothing").status_code == 404
    assert "No lab has ended yet" in client.post(f"/queue/{entry.id}/remove").text
    for number in ("5", "1001", "0000061000", "six"):
        refused = client.post(f"/lab/{LAB}/resume", data={"more": number})
        assert refused.status_code == 404 and "is not a number from 6 to 1,000" in refused.text
    resumed = client.post(f"/lab/{LAB}/resume", data={"more": "6"})
    assert "6 more blocks of" in resumed.text
    assert client.post(f"/lab/{LAB}/resume").status_code == 404


@pytest.mark.parametrize(
    "at", ["2099-01-01T22:00+02:00", "2099-01-01T22:00Z", "9999-12-31T23:59-23:59", "0001-01-01T00:00+23:59", "soon"]
)
def test_a_time_that_is_not_one_of_the_servers_clock_is_refused_and_the_queue_is_shown(at: str, tmp_path: Path) -> None:
    client = browser(stocked(tmp_path / "results"))
    text = "question = 'x'\n[workload]\nname = 'select-only'\n[system]\nengine = 'null'\n[vary]\nclients = [1, 2]\n"
    refused = client.post("/queue", data={"name": "x", "text": text, "at": at})
    assert refused.status_code == 422 and "2026-11-25T22:00" in refused.text
    assert client.get("/queue").status_code == 200 and not Queue(tmp_path / "results").entries()


def test_files_of_a_queue_are_read_again_only_after_it_has_changed(
    tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(queue, "one")
    time.sleep(0.06)  # a new change may fall within the resolution of the file system's clock
    before = queue.entries()
    monkeypatch.setattr(queue, "_entries", lambda: pytest.fail("nothing has changed"))
    assert queue.entries() == before
    monkeypatch.undo()
    with contextlib.closing(Queue(tmp_path)) as other:
        other.cancel(before[0].id)
    assert states(queue) == [("one", CANCELLED)]


def test_a_lab_that_asks_a_person_is_refused_by_the_queue_and_its_plan_is_shown(queue: Queue) -> None:
    text = queue_page.FIRST + '\n[commands]\nprepare = "ask: plug in the new drive"\ncleanup = "ask: take it out"\n'
    assert queue_page.planned("lab", text)
    with pytest.raises(InputError, match="a queued lab has no terminal"):
        queue_page.put(queue, {"name": "lab", "text": text})
    assert queue.entries() == []
