"""Pages of the queue: waiting, running and ended labs, and an editor for lab files that shows the plan."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import HTMLResponse

from ironbench.errors import InputError, IronbenchError
from ironbench.host import scratch, trust
from ironbench.lab import new
from ironbench.model.lab import Lab
from ironbench.serve.page import fragment, page
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import ENDED, RUNNING, STOPPED, WAITING, QueueEntry, QueueRequest, at_time, moment
from ironbench.serve.results import is_name
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


_STOPPED = "The current trial is aborted. The lab can be resumed."
_STAMP = re.compile(r"-\d{8}T\d{6}-[0-9a-f]{4}$")
"""Pattern of the unique suffix in the name of a lab's directory."""


def show(queue: Queue) -> HTMLResponse:
    entries = queue.entries()
    ended = sorted((one for one in entries if one.state in ENDED), key=lambda one: -one.ended_at)
    return page(
        "queue.html",
        "Queue",
        at="/queue",
        now=moment(time.time()),
        state=state(queue),
        elsewhere=not queue.starts_labs(),
        running=[_running(one, queue) for one in entries if one.state == RUNNING],
        waiting=[_waiting(one, queue, entries) for one in entries if one.state == WAITING],
        ended=[_ended(one, queue, entries) for one in ended],
    )


def state(queue: Queue) -> str:
    """Returns a text that changes whenever an open page should be reloaded."""
    entries = queue.entries()
    return "\n".join(
        f"{one.id} {one.state} {one.order} {queue.page_wait_reason(one, entries) if one.state == WAITING else one.why} "
        f"{queue.begun(one)}"
        for one in entries
    )


def _listed(entry: QueueEntry, begun: bool, words: str, actions: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Returns the fields of an entry for the template of a list. `actions`: the buttons of the entry, each with its
    label, its URL and the question that the user must confirm."""
    what = f"{counted(entry.more, 'more block')} of {entry.lab}" if entry.more else entry.name
    what = f"resume {entry.lab}" if entry.resumes and not entry.more else what
    return {
        "id": entry.id,
        "what": what,
        "nightly": f", every night at {entry.nightly}" if entry.nightly else "",
        "state": entry.state,
        "lab": entry.lab,
        "begun": begun,
        "words": words,
        "actions": actions,
    }


def _running(entry: QueueEntry, queue: Queue) -> dict[str, Any]:
    begun = queue.begun(entry)
    what = _STOPPED if begun else "No trial has started yet, so the lab is discarded."
    stop = ("Stop", f"/queue/{entry.id}/stop", f"Stop this lab? {what}")
    return _listed(entry, begun, f"Running for {span(max(0.0, time.time() - entry.begun_at))}.", [stop])


def _waiting(entry: QueueEntry, queue: Queue, entries: list[QueueEntry]) -> dict[str, Any]:
    said = f" {entry.why}." if entry.why else ""
    changes = (("Move up", "earlier"), ("Move down", "later"), ("Cancel", "cancel"))
    actions = [(label, f"/queue/{entry.id}/{change}", "") for label, change in changes]
    return _listed(entry, False, f"Waiting: {queue.page_wait_reason(entry, entries)}.{said}", actions)


def _ended(entry: QueueEntry, queue: Queue, entries: list[QueueEntry]) -> dict[str, Any]:
    words = ": ".join(filter(None, (moment(entry.ended_at), entry.why)))
    actions = [("Remove", f"/queue/{entry.id}/remove", "")]
    begun_at = max(one.begun_at for one in entries if one.lab == entry.lab)
    if entry.state == STOPPED and entry.begun_at == begun_at:
        actions.append(("Resume", f"/lab/{entry.lab}/resume", ""))
    return _listed(entry, queue.begun(entry), words, actions)


def entry_page(queue: Queue, id: str) -> HTMLResponse:
    """Shows the lab file and the log of an entry."""
    entry = queue.entry(id)
    return page(
        "queue_entry.html",
        entry.name,
        at="/queue",
        entry=entry,
        why=queue.page_wait_reason(entry, queue.entries()) if entry.state == WAITING else entry.why,
        begun=queue.begun(entry),
        text=queue.text(entry),
        log=queue.log(entry) or "No output yet.",
    )


def editor(queue: Queue, fields: Mapping[str, str], problem: str = "") -> HTMLResponse:
    """Shows the editor. `fields`: the input so far, in which `clone` is the id of an entry to copy."""
    name, text = fields.get("name", ""), fields.get("text", "")
    if clone := fields.get("clone", ""):
        entry = queue.entry(clone)
        name, text = _STAMP.sub("", entry.name) if entry.resumes else entry.name, queue.text(entry)
    shown = text or FIRST
    open_ones = [one for one in queue.entries() if one.state not in ENDED]
    return page(
        "queue_new.html",
        "Queue a lab file",
        at="/queue",
        problem=problem,
        name=name,
        text=shown,
        fill_in=new.placeholders(shown),
        not_before=fields.get("at", ""),
        nightly=fields.get("nightly", ""),
        entries=[(one.id, f"{one.name} ({one.id})") for one in open_ones],
        after=fields.get("after", ""),
    )


def plan(name: str, text: str) -> str:
    """Renders the plan of a lab file, or the errors in the file. Runs no programs."""
    try:
        with trust.reading_only(installed_run=False):
            return fragment("plan.html", plan=planned(name, text), problem="")
    except IronbenchError as error:
        hint = f"\n{error.hint}" if error.hint else ""
        return fragment("plan.html", problem=f"{error}{hint}")


def planned(name: str, text: str, *, queued: bool = False) -> str:
    """Returns the plan as text. Raises InputError if the lab file is invalid. `queued`: whether the lab will run in the
    queue, without a terminal."""
    from ironbench.lab import declare
    from ironbench.lab.dry_run import lab as planning

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


def put(queue: Queue, fields: Mapping[str, str]) -> QueueEntry:
    """Adds a lab file to the queue. Raises InputError if the lab cannot run. The machines of a cluster are checked only
    when the lab starts."""
    text = fields.get("text", "").replace("\r\n", "\n")
    request = QueueRequest(
        fields.get("name", "").strip(),
        text,
        at_time(fields.get("at", "")),
        fields.get("after", ""),
        fields.get("nightly", ""),
    )
    planned(request.name, text, queued=True)
    return queue.put(request)


def refuse_person(lab: Lab) -> None:
    """Raises InputError if the lab requires a person to act, because a queued lab has no terminal."""
    for one in lab.every_command:
        if one.by_hand:
            cause = "wait for a person, but a queued lab has no terminal"
            raise InputError(
                f"commands of {one.of}", cause, "run the lab in a terminal, or replace the manual step by a command"
            )
