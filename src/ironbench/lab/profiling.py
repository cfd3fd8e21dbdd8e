"""Checks, before anything starts, that the stacks of a system can be sampled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.host.profiling import OWN_ONLY, restrictions
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.plan.profiles import FIELD


def require(request: ProfileRequest | None, setups: Iterable[Setup]) -> None:
    """Raises InputError if this machine does not permit the profile, or if a server runs on another machine."""
    if request is None:
        return
    subject = written(FIELD, request.text)
    if any(setup.system.server for setup in setups):
        cause = (
            f"ironbench samples only processes of this machine, but {written('system.server')} names another machine"
        )
        raise InputError(subject, cause, f"run ironbench on the server's machine, or remove {written(FIELD)}")
    for one in restrictions(request.kinds):
        if one.code != OWN_ONLY:
            raise InputError(subject, one.cause, one.fix)


def require_servers(request: ProfileRequest | None, setups: Iterable[Setup], secrets: Mapping[str, Secrets]) -> None:
    """Connects to the existing servers of these setups. Raises InputError if the processes of one are not visible on
    this machine, or must not be sampled. Raises FailureError if a server does not answer."""
    if request is None:
        return
    others = {setup.system.dsn: setup for setup in setups if setup.system.dsn is not None}
    own_only = [one for one in restrictions(request.kinds) if one.code == OWN_ONLY] if others else []
    for setup in others.values():
        with engines.running(setup.system, secrets.get(setup.origin, Secrets()), 1) as session:
            processes = session.processes()
        if not processes:
            cause = f"ironbench cannot see the processes of the server of {written('system.dsn')}"
            hint = f"run ironbench on the server's machine, outside containers, or remove {written(FIELD)}"
            raise InputError(written(FIELD, request.text), cause, hint)
        if own_only and any(_owner(pid) not in (None, os.geteuid()) for pid in processes):
            cause = f"the server of {written('system.dsn')} runs as another user, and {own_only[0].cause}"
            raise InputError(written(FIELD, request.text), cause, own_only[0].fix)


def _owner(pid: int) -> int | None:
    """Returns the user id of a process. Returns None if the process has ended."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except FileNotFoundError:
        return None
