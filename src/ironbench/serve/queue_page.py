"""The queue: what waits and why, what runs, what ended; and a lab file edited with its plan beside it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from html import escape

from starlette.responses import HTMLResponse

from ironbench.errors import InputError, IronbenchError
from ironbench.host import scratch, trust
from ironbench.model.lab import Lab
from ironbench.serve.page import button, head, link, option, page, select
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import ENDED, RUNNING, STOPPED, WAITING, Entry, Wish, at_time, moment
from ironbench.serve.shelf import is_name
from ironbench.units import span
from ironbench.words import counted

FIRST = """question = "Does a larger cache get more done?"

[workload]
name = "select-only"

[load]
clients = 4
duration = "30s"

[vary]
memory = ["64MB", "256MB"]
"""


_STAMP = re.compile(r"-\d{8}T\d{6}-[0-9a-f]{4}$")
"""What makes the directory of a lab unique, after the name of its file."""


def show(queue: Queue) -> HTMLResponse:
    entries = queue.entries()
    waiting = [one for one in entries if one.state == WAITING]
    running = [one for one in entries if one.state == RUNNING]
    ended = sorted((one for one in entries if one.state in ENDED), key=lambda one: -one.ended_at)
    elsewhere = "" if queue.decides() else "<p class=problem>Another server begins the labs of this queue.</p>"
    over = _list([_ended(one, queue, entries) for one in ended], "Nothing has ended yet.")
    waits = _list([_waiting(one, queue, entries) for one in waiting], "Nothing waits.")
    body = (
        f'<main data-reload="/queue/state" data-state="{escape(state(queue))}">{elsewhere}'
        f"<p>{link('/queue/new', 'Put in a lab file')}</p>"
        f"<section><h2>Running</h2>{_list([_running(one, queue) for one in running], 'Nothing runs.')}</section>"
        f"<section><h2>Waiting</h2>{waits}</section>"
        f"<section><h2>Ended</h2>{over}</section>"
        "</main>"
    )
    lead = f"One lab at a time on this machine. The server's clock shows {moment(time.time())}."
    return page("Queue", [head("Queue", lead), body], at="/queue")


def state(queue: Queue) -> str:
    """Changes when the page would."""
    entries = queue.entries()
    return "\n".join(
        f"{one.id} {one.state} {one.order} {queue.waits_for(one, entries) if one.state == WAITING else one.why} "
        f"{queue.begun(one)}"
        for one in entries
    )


def _list(items: list[str], none: str) -> str:
    return f'<ul class="list">{"".join(f"<li>{item}</li>" for item in items)}</ul>' if items else f"<p>{none}</p>"


def _name(entry: Entry) -> str:
    what = f"{counted(entry.more, 'block')} more of {entry.lab}" if entry.more else entry.name
    what = f"resume {entry.lab}" if entry.resumes and not entry.more else what
    nightly = f", every night at {entry.nightly}" if entry.nightly else ""
    return f"{link(f'/queue/{entry.id}', what)}{escape(nightly)}"


def _running(entry: Entry, queue: Queue) -> str:
    begun = queue.begun(entry)
    watch = link(f"/lab/{entry.lab}", "Watch it") if begun else "Its plan is being made"
    what = "Its trial ends now; it can be resumed." if begun else "Nothing is measured yet; it is given up."
    stop = button("Stop", f"/queue/{entry.id}/stop", confirm=f"Stop this lab? {what}")
    since = span(max(0.0, time.time() - entry.begun_at))
    return (
        f'<span class="state running">running</span> {_name(entry)}<p class="lead">'
        f"{watch}. It has run for {escape(since)}.</p>{_actions(stop)}"
    )


def _waiting(entry: Entry, queue: Queue, entries: list[Entry]) -> str:
    why = queue.waits_for(entry, entries)
    said = f" {escape(entry.why)}." if entry.why else ""
    actions = [
        button("Earlier", f"/queue/{entry.id}/earlier"),
        button("Later", f"/queue/{entry.id}/later"),
        button("Cancel", f"/queue/{entry.id}/cancel"),
    ]
    return f'{_name(entry)}<p class="lead">Waits: {escape(why)}.{said}</p>{_actions(*actions)}'


def _ended(entry: Entry, queue: Queue, entries: list[Entry]) -> str:
    why = f": {entry.why}" if entry.why else ""
    report = link(f"/lab/{entry.lab}", "report") if queue.begun(entry) else ""
    actions = [button("Remove", f"/queue/{entry.id}/remove")]
    begun_at = max(one.begun_at for one in entries if one.lab == entry.lab)
    if entry.state == STOPPED and entry.begun_at == begun_at:
        actions.append(button("Resume", f"/lab/{entry.lab}/resume"))
    return (
        f'<span class="state {entry.state}">{entry.state}</span> {_name(entry)}<p class="lead">{moment(entry.ended_at)}'
        f"{escape(why)} {report}</p>{_actions(*actions)}"
    )


def _actions(*buttons: str) -> str:
    return f'<div class="actions">{"".join(buttons)}</div>'


def entry_page(queue: Queue, id: str) -> HTMLResponse:
    """Its lab file and what it said."""
    entry = queue.entry(id)
    why = queue.waits_for(entry, queue.entries()) if entry.state == WAITING else entry.why
    log = queue.log(entry) or "It has said nothing."
    clone = link("/queue/new", "Clone", clone=entry.id)
    body = (
        f'<main><p><span class="state {entry.state}">{entry.state}</span> {escape(why)}</p>'
        f'<div class="actions">{clone} '
        f"{link(f'/lab/{entry.lab}', 'its lab') if queue.begun(entry) else ''}</div>"
        f"<section><h2>Lab file</h2><pre>{escape(queue.text(entry))}</pre></section>"
        f"<section><h2>Log</h2><pre>{escape(log)}</pre></section></main>"
    )
    return page(entry.name, [head(entry.name, f"queue entry {entry.id}"), body], at="/queue")


def editor(queue: Queue, fields: Mapping[str, str], problem: str = "") -> HTMLResponse:
    """`fields`: what was typed so far; `clone`: the entry to begin from."""
    name, text = fields.get("name", ""), fields.get("text", "")
    if clone := fields.get("clone", ""):
        entry = queue.entry(clone)
        name, text = _STAMP.sub("", entry.name) if entry.resumes else entry.name, queue.text(entry)
    text = text or FIRST
    open_ones = [one for one in queue.entries() if one.state not in ENDED]
    choices = "".join(option(one.id, fields.get("after") == one.id, f"{one.name} ({one.id})") for one in open_ones)
    said = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    body = (
        f'<main>{said}<form method="post" action="/queue"><div class="actions"><label>name of the lab file'
        f'<input name="name" value="{escape(name or "lab")}" required pattern="[A-Za-z0-9_\\-]+" '
        'maxlength="80"></label>'
        f'<label>not before<input type="datetime-local" name="at" value="{escape(fields.get("at", ""))}"></label>'
        f'<label>every night at<input type="time" name="nightly" value="{escape(fields.get("nightly", ""))}"></label>'
        f"{select('after', 'no other', choices)}</div>"
        f'<div class="grid"><section><h2>Lab file</h2><textarea name="text" aria-label="Lab file" spellcheck="false" '
        f'data-plan="/queue/plan">{escape(text)}</textarea></section><section><h2>Plan</h2><div id="plan" '
        'aria-live="polite"><p class="lead">The plan is being made …</p></div></section></div>'
        '<div class="actions"><button class="main">Put it in the queue</button></div></form></main>'
    )
    lead = "The plan beside it starts nothing. Files that it names need whole paths. Times are the server's."
    return page("Put in a lab file", [head("Put in a lab file", lead), body], at="/queue")


def plan(name: str, text: str) -> str:
    """What the lab would do, or the mistakes. Runs no program that the text names."""
    try:
        with trust.reading_only():
            return f"<pre>{escape(planned(name, text))}</pre>"
    except IronbenchError as error:
        hint = f"\n{error.hint}" if error.hint else ""
        return f'<p class="problem">{escape(f"{error}{hint}")}</p>'


def planned(name: str, text: str, *, queued: bool = False) -> str:
    """InputError. `queued`: it is to be measured without a terminal."""
    from ironbench.lab import declare
    from ironbench.views.plans import lab as planning

    name = name if is_name(name) else "lab"
    with scratch.folder() as folder:
        path = folder / f"{name[:80]}.toml"
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            found = declare.planned(declare.read(path), machines_needed=False)
            if queued:
                refuse_person(found.lab)
            return planning.text(found).replace(f"{folder}/", "")
        except InputError as error:
            where = f"{folder}/"
            subject, cause = error.subject.replace(where, ""), error.cause.replace(where, "")
            raise InputError(subject, cause, error.hint.replace(where, "")) from None


def put(queue: Queue, fields: Mapping[str, str]) -> Entry:
    """InputError: it would not run. Machines of a cluster are looked for when it begins."""
    text = fields.get("text", "").replace("\r\n", "\n")
    wish = Wish(
        fields.get("name", "").strip(),
        text,
        at_time(fields.get("at", "")),
        fields.get("after", ""),
        fields.get("nightly", ""),
    )
    planned(wish.name, text, queued=True)
    return queue.put(wish)


def refuse_person(lab: Lab) -> None:
    """InputError: a person is to be asked, and a queued lab has no terminal."""
    for one in lab.every_command:
        if one.by_hand:
            cause = "waits for a person, and a queued lab has no terminal to ask on"
            raise InputError(f"commands of {one.of}", cause, "begin it in a terminal, or write a command")
