"""Checks, before anything starts, that the stacks of a system can be sampled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.host.profiling import OWN_ONLY, restrictions
from ironbench.host.remote import address, link, perf, tree
from ironbench.host.remote.link import Link
from ironbench.model.profile import CPU, WAIT
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Setup
from ironbench.plan.profiles import FIELD


def require(request: ProfileRequest | None, setups: Iterable[Setup]) -> None:
    """Raises InputError if this machine does not permit the profile, or if waits of a server on another machine are
    requested."""
    if request is None:
        return
    subject = written(FIELD, request.text)
    if WAIT in request.kinds and any(setup.system.server for setup in setups):
        cause = (
            f"waits are recorded only on the machine of ironbench, but {written('system.server')} names another machine"
        )
        raise InputError(subject, cause, f"write {written(FIELD, CPU)}, or run ironbench on the server's machine")
    for one in restrictions(request.kinds):
        if one.code != OWN_ONLY:
            raise InputError(subject, one.cause, one.fix)


def require_servers(request: ProfileRequest | None, setups: Iterable[Setup], secrets: Mapping[str, Secrets]) -> None:
    """Connects to the existing servers of these setups, and to their machines if these are watched over ssh. Raises
    InputError if the processes of one are not visible, or must not be sampled. Raises FailureError if a server or a
    machine does not answer."""
    if request is None:
        return
    others = {(setup.system.dsn, setup.system.server): setup for setup in setups if setup.system.dsn is not None}
    own_only = [one for one in restrictions(request.kinds) if one.code == OWN_ONLY] if others else []
    for setup in others.values():
        with engines.running(setup.system, secrets.get(setup.origin, Secrets()), 1) as session:
            if setup.system.server:
                _require_there(request, session, link.connection_to(address.parse(setup.system.server)))
                continue
            processes = session.processes()
        if not processes:
            cause = f"ironbench cannot see the processes of the server of {written('system.dsn')}"
            hint = f"run ironbench on the server's machine, outside containers, or remove {written(FIELD)}"
            raise InputError(written(FIELD, request.text), cause, hint)
        if own_only and any(_owner(pid) not in (None, os.geteuid()) for pid in processes):
            cause = f"the server of {written('system.dsn')} runs as another user, and {own_only[0].cause}"
            raise InputError(written(FIELD, request.text), cause, own_only[0].fix)


def _require_there(request: ProfileRequest, session: Session, there: Link) -> None:
    """Raises InputError if the server's processes on a remote machine are not visible there, or must not be sampled."""
    place = engines.get(session.engine).administration.locate(session, tree.fetched(there))
    if not place.processes:
        cause = f"ironbench cannot see the server's processes on {there.address.text()}: {place.unseen}"
        hint = f"set {written('system.server')} to the machine of the server's processes, or remove {written(FIELD)}"
        raise InputError(written(FIELD, request.text), cause, hint)
    perf.require(there, place.processes[0], request.text)


def _owner(pid: int) -> int | None:
    """Returns the user id of a process. Returns None if the process has ended."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except FileNotFoundError:
        return None
