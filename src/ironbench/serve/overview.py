"""The overview page: running and queued experiments, latest answers, disk space, and the doctor's findings."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from starlette.responses import HTMLResponse

from ironbench import units
from ironbench._core import BUILD_PROFILE
from ironbench.errors import IronbenchError
from ironbench.host import data_dirs, space
from ironbench.host.tree import Tree
from ironbench.records import running_labs
from ironbench.records.index import Listed
from ironbench.report.numbers import moment
from ironbench.serve.answers import AnswerCache
from ironbench.serve.archive import steps
from ironbench.serve.page import fragment, page
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import CANCELLED, FAILED, WAITING, QueueEntry
from ironbench.serve.queue_entry import moment as queue_moment
from ironbench.serve.queue_page import state as queue_state
from ironbench.serve.results import Results, without_place
from ironbench.serve.running import Experiment, RunningCache
from ironbench.words import clean_lines, counted, some

_LATEST = 5
_MOST_ENDED = 10
_ON_A_PAGE = 20
"""Number of labs per page of answers. Computing an answer for the first time takes about 0.1 s."""
_DAY_S = 24 * 3600.0
_LOW_SPACE_SHARE = 0.05
"""Free fraction of a file system below which the page shows a warning."""


def overview(results: Results, queue: Queue, running: RunningCache) -> HTMLResponse:
    experiments, entries = running.seen(at_once=True), queue.entries()
    waiting = [one for one in entries if one.state == WAITING]
    since = time.time() - _DAY_S
    known = [one for one in entries if one.ended_at > since and one.state != CANCELLED]
    ended = sorted(known, key=lambda one: (one.state != FAILED, -one.ended_at))  # failures first
    runs = [_run(newest, trials) for newest, trials in results.newest_series(_LATEST)]
    # Damaged records are counted here, because no other page shows them.
    damaged = [(lab, counted(count, "record")) for lab, count in sorted(results.index().unreadable().items())]
    return page(
        "overview.html",
        "Overview",
        at="/",
        state=state(queue, experiments),
        experiments=experiments,
        waiting=[(one, queue.page_wait_reason(one, entries)) for one in waiting[:_LATEST]],
        more_waiting=max(0, len(waiting) - _LATEST),
        ended=[_ended(queue, one) for one in ended[:_MOST_ENDED]],
        more_ended=max(0, len(ended) - _MOST_ENDED),
        damaged=damaged[:_MOST_ENDED],
        runs=runs,
        empty=not (runs or experiments or entries or results.labs()),
        space=[_space("results", results.directory), _space("data of databases", data_dirs.base())],
    )


def state(queue: Queue, experiments: Sequence[Experiment]) -> str:
    """Returns a text that changes whenever an open page should be reloaded."""
    return clean_lines("\n".join([*(f"{one.name} {one.process.pid}" for one in experiments), queue_state(queue)]))


def _ended(queue: Queue, one: QueueEntry) -> tuple[QueueEntry, str, str]:
    """Returns the entry, the URL of its lab or log, and a line with the time and reason of its end."""
    address = f"/lab/{one.lab}" if one.state != FAILED and queue.begun(one) else f"/queue/{one.id}"
    return one, address, ": ".join(filter(None, (queue_moment(one.ended_at), one.why)))


def _run(newest: Listed, trials: int) -> tuple[str, str, str]:
    """Returns the series and the name of a run, and a line about it."""
    words = f"{newest.workload}, {counted(trials, 'trial')}, {moment(newest.started_at)}"
    return newest.series, newest.label or newest.series, words


def answers(results: Results, known: AnswerCache, page: int = 0) -> str:
    """Renders the answers of labs, with the most recently measured lab first. `page`: page of the list of all labs. If
    it is 0, only the newest labs are rendered."""
    labs = known.newest(results)
    last = max(1, -(-len(labs) // _ON_A_PAGE))
    page = min(page, last)
    first = (page - 1) * _ON_A_PAGE
    rows = []
    for name in labs[first : first + _ON_A_PAGE] if page else labs[:_LATEST]:
        try:
            answer = known.of(results, name)
        except IronbenchError as error:
            text, question = f"cannot be read: {error.cause}", name
        else:
            text, question = answer.decision, answer.question
        rows.append((name, question, text))
    others = list(steps(page, last)) if page else []
    return fragment("answers.html", rows=rows, steps=others)


def doctor(results: Path) -> str:
    """Renders the doctor's findings about this machine, with the worst first. Takes a second."""
    from ironbench.host.capability_tests import LocalCapabilityTests
    from ironbench.host.doctor import examine
    from ironbench.host.host_view import OwnProcesses, watch_host

    host = watch_host(
        Tree(),
        (data_dirs.base(), results),
        LocalCapabilityTests(),
        OwnProcesses(BUILD_PROFILE, frozenset({os.getpid()})),
    )
    own = running_labs.own_processes()
    host = replace(host, ourselves=replace(host.ourselves, pids=host.ourselves.pids | own))
    visible = [one for one in examine(host) if one.visible]
    shown = sorted((one for one in visible if one.severity != "ok"), key=lambda one: -one.severity.rank)
    found = [
        {
            "severity": str(one.severity),
            "name": one.name,
            **{field: without_place(getattr(one, field), results) for field in ("seen", "meaning", "remedy")},
        }
        for one in shown
    ]
    well = list(dict.fromkeys(one.name for one in visible if one.severity == "ok"))
    return fragment("doctor.html", found=found, well=some(well, 20) if well else "")


def _space(name: str, path: Path) -> tuple[str, str, str, bool]:
    """Returns the name, the free and the total space of a file system, and whether the file system is nearly full."""
    there = os.statvfs(space.existing(path))
    free, size = there.f_bavail * there.f_frsize, there.f_blocks * there.f_frsize
    return name, units.stored(free), units.stored(size), free < _LOW_SPACE_SHARE * size
