"""As whom a server of ours runs. Database servers refuse to run as root, and as a user without a name."""

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
    """How to become the user that the server runs as."""

    mechanism: str
    """For the record."""
    prefix: tuple[str, ...] = ()
    """Put before every command of the server's."""
    uid: int | None = None
    gid: int | None = None
    """Who must own the server's directories; None: whoever makes them."""

    def give(self, *paths: Path) -> None:
        """Makes the server's user the owner of directories that we have made for it."""
        if self.uid is not None and self.gid is not None:
            for path in paths:
                os.chown(path, self.uid, self.gid)

    def give_tree(self, root: Path) -> None:
        """The same for all below, when an earlier run gave it to another user. Only root can."""
        uid = os.geteuid() if self.uid is None else self.uid
        gid = os.getegid() if self.gid is None else self.gid
        if os.geteuid() != 0 or root.stat().st_uid == uid:
            return
        # The root last: by its owner it is known that all below it were given.
        for folder, _, files in os.walk(root, topdown=False):
            for path in (*(f"{folder}/{name}" for name in files), folder):
                os.chown(path, uid, gid, follow_symlinks=False)


NAMESPACE = "user namespace"
UNPRIVILEGED = "user nobody"
UNPRIVILEGED_READER = "user nobody, allowed into directories of root"


@functools.cache
def choose(program: str, title: str, forbidden: frozenset[str] = frozenset()) -> Identity:
    """The first way that `program` works by and that is not in `forbidden` (tests). FailureError when none does.

    `title`: the server's name in messages.
    """
    if os.geteuid() != 0:
        # initdb looks its user's name up, and a container may run us as a number alone. A server that needs no name
        # starts where there is no such namespace, too.
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
        "the server refuses to run as root, and no other identity works here: " + "; ".join(reasons),
        "run ironbench as an ordinary user, or allow user namespaces (docker: --security-opt seccomp=unconfined)",
    )


def _named_otherwise() -> list[Identity]:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return [_in_a_namespace()]
    return []


_USUAL = 1000
"""The first ordinary user of most systems (login.defs(5), UID_MIN)."""


def _in_a_namespace() -> Identity:
    """A user with a name, for the server looks it up. No owner and no permission changes: files stay ours, the server
    merely sees another number."""
    nobody = 65534  # owner of all that the namespace does not map (user_namespaces(7)), so not told from a stranger
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
    # Root's home is usually closed to others, and then so are an installation and data in it.
    reader = (*become, "--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    ways.append(Identity(UNPRIVILEGED_READER, reader, nobody.pw_uid, nobody.pw_gid))
    ways.append(Identity(UNPRIVILEGED, become, nobody.pw_uid, nobody.pw_gid))
    return ways


def _trial(identity: Identity, program: str) -> str | None:
    """None when the server's program runs that way, else why not."""
    try:
        done = run_program([*identity.prefix, program, "--version"])
    except FailureError as error:
        return error.cause
    return None if done.returncode == 0 else last_words(done.stderr, 1)
