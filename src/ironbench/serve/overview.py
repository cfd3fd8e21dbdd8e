"""What runs, what waits, the latest answers, the machine's health and room on its disk."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from starlette.responses import HTMLResponse

from ironbench import units
from ironbench._core import BUILD_PROFILE
from ironbench.errors import IronbenchError
from ironbench.host import place, space
from ironbench.records import running_labs
from ironbench.report.numbers import moment
from ironbench.serve.answers import Answers
from ironbench.serve.archive import series_rows, steps
from ironbench.serve.page import fill, link, page
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import CANCELLED, FAILED, WAITING
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
    experiments = lookout.seen(at_once=True)
    body = (
        f'<main data-reload="/state" data-state="{escape(state(queue, experiments))}"><h1 class="unseen">Overview</h1>'
        f'<div class="grid">{_running(experiments)}{_waiting(queue)}{_ended(queue)}{_damaged(shelf)}'
        f"<section><h2>Latest answers</h2>{fill('/fragment/answers', 'Reading the latest labs …')}</section>"
        f"{_latest_runs(shelf)}{_space(shelf.results)}<section><h2>This machine</h2>"
        f"{fill('/fragment/doctor', 'Watching this machine for a second …')}</section></div>"
        "</main>"
    )
    return page("Overview", [body], at="/")


def state(queue: Queue, experiments: Sequence[Experiment]) -> str:
    """Changes when the page would; of what is measured, when it begins and when it ends."""
    return clean_lines("\n".join([*(f"{one.name} {one.process.pid}" for one in experiments), queue_state(queue)]))


def _running(experiments: Sequence[Experiment]) -> str:
    rows = []
    for one in experiments:
        name = link(f"/lab/{one.lab}", one.lab) if one.lab else escape(one.name)
        at = f'<p class="lead">{escape(one.state.title)}</p>' if one.state and one.state.title else ""
        rows.append(f'<li><span class="state running">running</span> {name}{at}</li>')
    shown = f'<ul class="list">{"".join(rows)}</ul>' if rows else "<p>Nothing runs.</p>"
    return f"<section><h2>Running</h2>{shown}</section>"


def _waiting(queue: Queue) -> str:
    entries = queue.entries()
    waiting = [one for one in entries if one.state == WAITING]
    rows = "".join(
        f'<li>{link(f"/queue/{one.id}", one.name)}<p class="lead">{escape(queue.waits_for(one, entries))}</p></li>'
        for one in waiting[:_LATEST]
    )
    more = f"<p>{link('/queue', f'{len(waiting) - _LATEST} more')}</p>" if len(waiting) > _LATEST else ""
    shown = f'<ul class="list">{rows}</ul>{more}' if rows else "<p>Nothing waits.</p>"
    return f"<section><h2>Waiting</h2>{shown}</section>"


def _ended(queue: Queue) -> str:
    """What the last day brought, what failed first."""
    since = time.time() - _DAY_S
    known = [one for one in queue.entries() if one.ended_at > since and one.state != CANCELLED]
    ended = sorted(known, key=lambda one: (one.state != FAILED, -one.ended_at))
    rows = "".join(
        f'<li><span class="state {one.state}">{one.state}</span> '
        f"{link(f'/lab/{one.lab}' if one.state != FAILED and queue.begun(one) else f'/queue/{one.id}', one.name)}"
        f'<p class="lead">{escape(": ".join(filter(None, (queue_moment(one.ended_at), one.why))))}</p></li>'
        for one in ended[:_MOST_ENDED]
    )
    more = f"<p>{link('/queue', f'{len(ended) - _MOST_ENDED} more')}</p>" if len(ended) > _MOST_ENDED else ""
    return f'<section><h2>Ended in the last 24 hours</h2><ul class="list">{rows}</ul>{more}</section>' if rows else ""


def _damaged(shelf: Shelf) -> str:
    """Records that could not be read when they were first seen: nothing else on these pages would miss them."""
    found = [(one.lab, count) for one in shelf.places() if (count := one.stock.unreadable())]
    rows = "".join(
        f"<li>{link(f'/lab/{lab}', f'lab {lab}') if lab else 'runs'}: {counted(count, 'record')}</li>"
        for lab, count in found[:_MOST_ENDED]
    )
    words = "They are left out everywhere; <code>ironbench list records</code> says why."
    section = f'<section><h2>Records that cannot be read</h2><p>{words}</p><ul class="list">{rows}</ul></section>'
    return section if rows else ""


def _latest_runs(shelf: Shelf) -> str:
    found = series_rows(shelf, _LATEST)
    rows = "".join(
        f'<li>{link(f"/series/{name}", rows[0].label or name)}<p class="lead">'
        f"{escape(rows[0].workload)}, {escape(counted(len(rows), 'trial'))}, "
        f"{escape(moment(rows[0].started_at))}</p></li>"
        for name, rows in found
    )
    empty = "<p>No runs yet: <code>ironbench run</code> makes some.</p>"
    return f"<section><h2>Latest runs</h2>{f'<ul class=list>{rows}</ul>' if rows else empty}</section>"


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
        rows.append(f"<li>{link(f'/lab/{name}', question)}<p>{escape(text)}</p></li>")
    links = [link("/findings", words, page=str(number)) for words, number in steps(page, last)] if page else []
    others = f'<nav class="pages" aria-label="Pages of labs">{"".join(links)}</nav>' if links else ""
    return f"<ul class=list>{''.join(rows)}</ul>{others}" if rows else "<p>No lab has begun yet.</p>"


def doctor(results: Path) -> str:
    """What spoils numbers on this machine, the worst first."""
    from ironbench.host.capability_tests import LiveAttempts
    from ironbench.host.doctor import examine
    from ironbench.host.host_view import Ourselves, watch_host
    from ironbench.host.tree import Tree

    host = watch_host(
        Tree(), (place.base(), results), LiveAttempts(), Ourselves(BUILD_PROFILE, frozenset({os.getpid()}))
    )
    own = running_labs.own_processes()
    host = replace(host, ourselves=replace(host.ourselves, pids=host.ourselves.pids | own))
    visible = [one for one in examine(host) if one.visible]
    shown = sorted((one for one in visible if one.severity != "ok"), key=lambda one: -one.severity.rank)
    rows = "".join(
        f'<li><span class="state {one.severity}">{one.severity}</span> <strong>{escape(one.name)}</strong>: '
        f"{escape(one.seen)}<p class=lead>{escape(one.meaning)}"
        f"{' Remedy: ' * bool(one.remedy)}{escape(one.remedy)}</p></li>"
        for one in shown
    )
    well = list(dict.fromkeys(one.name for one in visible if one.severity == "ok"))
    rest = f"<p class=lead>Well: {escape(some(well, 20))}.</p>" if well else ""
    shown_rows = f"<ul class=list>{rows}</ul>" if rows else "<p>Nothing found that spoils numbers.</p>"
    return without_place(shown_rows + rest, results)


def _space(results: Path) -> str:
    rows = []
    for name, path in (("results", results), ("data of databases", place.base())):
        there = os.statvfs(space.existing(path))
        free, size = there.f_bavail * there.f_frsize, there.f_blocks * there.f_frsize
        low = free < _ABOUT_FULL * size
        state = '<span class="state warning">nearly full</span> ' if low else ""
        rows.append(f"<li>{state}{escape(units.stored(free))} of {escape(units.stored(size))} free for {name}</li>")
    return f'<section><h2>Disk space</h2><ul class="list">{"".join(rows)}</ul></section>'
