"""Chooses the operating system user for a server that ironbench starts. Database servers refuse to run as root or as a
user without a name."""

from __future__ import annotations

import functools
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.host.programs import last_words, run_program


@dataclass(frozen=True, slots=True)
class Identity:
    """How to start processes as the server's user."""

    mechanism: str
    """Name of the mechanism, for the record."""
    prefix: tuple[str, ...] = ()
    """Prefix for each command of the server."""
    uid: int | None = None
    gid: int | None = None
    """Group that owns the server's directories. If None, the directories have the group of the user who creates
    them."""

    def give(self, *paths: Path) -> None:
        """Makes the server's user the owner of directories that ironbench created for the server."""
        if self.uid is not None and self.gid is not None:
            for path in paths:
                os.chown(path, self.uid, self.gid)

    def give_tree(self, root: Path) -> None:
        """Makes the server's user the owner of a whole directory tree. An earlier run may have given the tree to a
        different user. Has an effect only as root."""
        uid = os.geteuid() if self.uid is None else self.uid
        gid = os.getegid() if self.gid is None else self.gid
        if os.geteuid() != 0 or root.stat().st_uid == uid:
            return
        # The root directory is changed last. If it has the right owner, everything below it also has.
        for folder, _, files in os.walk(root, topdown=False):
            for path in (*(f"{folder}/{name}" for name in files), folder):
                os.chown(path, uid, gid, follow_symlinks=False)


NAMESPACE = "user namespace"
UNPRIVILEGED = "user nobody"
UNPRIVILEGED_READER = "user nobody, allowed into directories of root"


@functools.cache
def choose(program: str, title: str, forbidden: frozenset[str] = frozenset()) -> Identity:
    """Returns the first identity with which `program` runs. Raises FailureError if `program` runs with none of them.

    `title`: name of the server in messages. `forbidden`: mechanisms to skip, for tests.
    """
    if os.geteuid() != 0:
        # initdb looks up the name of its user, but in a container, ironbench may run with a uid that has no name. The
        # server then runs in a user namespace. If that is not possible, servers that need no name still start.
        return next((way for way in _named_otherwise() if _trial(way, program) is None), Identity("own user"))
    reasons = []
    for candidate in _ways_for_root():
        if candidate.mechanism in forbidden:
            continue
        reason = _trial(candidate, program)
        if reason is None:
            return candidate
        reasons.append(f"{candidate.mechanism}: {reason}")
    raise FailureError(
        f"{title} as root",
        "the server refuses to run as root, and ironbench cannot run it as another user: " + "; ".join(reasons),
        "run ironbench as an ordinary user, or allow user namespaces (docker: --security-opt seccomp=unconfined)",
    )


def _named_otherwise() -> list[Identity]:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return [_in_a_namespace()]
    return []


_USUAL = 1000
"""Uid of the first ordinary user on most systems (login.defs(5), UID_MIN)."""


def _in_a_namespace() -> Identity:
    """Returns an identity that maps the current user to a uid with a name, because the server looks up its name. Only
    the server sees the new uid. The owners and permissions of files do not change."""
    # The server must not run as `nobody`. In a user namespace, all files of users that are not mapped belong to
    # `nobody` (user_namespaces(7)), so the server would take these files for its own.
    nobody = 65534
    known = [user.pw_uid for user in pwd.getpwall() if user.pw_uid not in (0, nobody)]
    uid = known[0] if known and _USUAL not in known else _USUAL
    return Identity(NAMESPACE, ("unshare", "--user", f"--map-user={uid}", f"--map-group={uid}"))


def _ways_for_root() -> list[Identity]:
    ways = [_in_a_namespace()]
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return ways
    become = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
    # An installation or data in root's home directory is usually not accessible to other users. This identity can read
    # them nevertheless.
    reader = (*become, "--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    ways.append(Identity(UNPRIVILEGED_READER, reader, nobody.pw_uid, nobody.pw_gid))
    ways.append(Identity(UNPRIVILEGED, become, nobody.pw_uid, nobody.pw_gid))
    return ways


def _trial(identity: Identity, program: str) -> str | None:
    """Runs the program once with this identity. Returns None if it runs. Otherwise, returns why it failed."""
    try:
        done = run_program([*identity.prefix, program, "--version"])
    except FailureError as error:
        return error.cause
    return None if done.returncode == 0 else last_words(done.stderr, 1)
