"""What runs, what waits, the latest answers, the machine's health and room on its disk."""

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
from ironbench.records import running_labs
from ironbench.records.index import Listed
from ironbench.report.numbers import moment
from ironbench.serve.answers import Answers
from ironbench.serve.archive import series_rows, steps
from ironbench.serve.page import fragment, page
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import CANCELLED, FAILED, WAITING, QueueEntry
from ironbench.serve.queue_entry import moment as queue_moment
from ironbench.serve.queue_page import state as queue_state
from ironbench.serve.running import Experiment, Lookout
from ironbench.serve.shelf import Shelf, without_place
from ironbench.words import clean_lines, counted, some

_LATEST = 5
_MOST_ENDED = 10
_ON_A_PAGE = 20
"""Labs, with their answers: the first time each takes about a tenth of a second."""
_DAY_S = 24 * 3600.0
_ABOUT_FULL = 0.05
"""Share of a file system below which its room is a warning."""


def overview(shelf: Shelf, queue: Queue, lookout: Lookout) -> HTMLResponse:
    experiments, entries = lookout.seen(at_once=True), queue.entries()
    waiting = [one for one in entries if one.state == WAITING]
    since = time.time() - _DAY_S
    known = [one for one in entries if one.ended_at > since and one.state != CANCELLED]
    ended = sorted(known, key=lambda one: (one.state != FAILED, -one.ended_at))  # what failed comes first
    # Records that could not be read when they were first seen: nothing else on these pages would miss them.
    damaged = [(one.lab, counted(count, "record")) for one in shelf.places() if (count := one.stock.unreadable())]
    return page(
        "overview.html",
        "Overview",
        at="/",
        state=state(queue, experiments),
        experiments=experiments,
        waiting=[(one, queue.waits_for(one, entries)) for one in waiting[:_LATEST]],
        more_waiting=max(0, len(waiting) - _LATEST),
        ended=[_ended(queue, one) for one in ended[:_MOST_ENDED]],
        more_ended=max(0, len(ended) - _MOST_ENDED),
        damaged=damaged[:_MOST_ENDED],
        runs=[_run(name, rows) for name, rows in series_rows(shelf, _LATEST)],
        space=[
            _space(name, path) for name, path in (("results", shelf.results), ("data of databases", data_dirs.base()))
        ],
    )


def state(queue: Queue, experiments: Sequence[Experiment]) -> str:
    """Changes when the page would; of what is measured, when it begins and when it ends."""
    return clean_lines("\n".join([*(f"{one.name} {one.process.pid}" for one in experiments), queue_state(queue)]))


def _ended(queue: Queue, one: QueueEntry) -> tuple[QueueEntry, str, str]:
    """With the address that tells most, when it ended, and why."""
    address = f"/lab/{one.lab}" if one.state != FAILED and queue.begun(one) else f"/queue/{one.id}"
    return one, address, ": ".join(filter(None, (queue_moment(one.ended_at), one.why)))


def _run(series: str, rows: Sequence[Listed]) -> tuple[str, str, str]:
    first = rows[0]
    words = f"{first.workload}, {counted(len(rows), 'trial')}, {moment(first.started_at)}"
    return series, first.label or series, words


def answers(shelf: Shelf, known: Answers, page: int = 0) -> str:
    """The decisions of the labs that were measured last; or a page of all."""
    labs = known.newest(shelf)
    last = max(1, -(-len(labs) // _ON_A_PAGE))
    page = min(page, last)
    first = (page - 1) * _ON_A_PAGE
    rows = []
    for name in labs[first : first + _ON_A_PAGE] if page else labs[:_LATEST]:
        try:
            answer = known.of(shelf, name)
        except IronbenchError as error:
            text, question = f"cannot be read: {error.cause}", name
        else:
            text, question = answer.decision, answer.question
        rows.append((name, question, text))
    others = list(steps(page, last)) if page else []
    return fragment("answers.html", rows=rows, steps=others)


def doctor(results: Path) -> str:
    """What spoils numbers on this machine, the worst first."""
    from ironbench.host.capability_tests import LocalCapabilityTests
    from ironbench.host.doctor import examine
    from ironbench.host.host_view import OwnProcesses, watch_host
    from ironbench.host.tree import Tree

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
    """What is free, of how much, and whether that is little."""
    there = os.statvfs(space.existing(path))
    free, size = there.f_bavail * there.f_frsize, there.f_blocks * there.f_frsize
    return name, units.stored(free), units.stored(size), free < _ABOUT_FULL * size
