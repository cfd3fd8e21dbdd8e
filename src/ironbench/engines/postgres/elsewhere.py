"""Where a running server is on its machine, which may be another one: asked of the server, and looked up there."""

from __future__ import annotations

from itertools import pairwise

from ironbench.engines.administration import Whereabouts
from ironbench.engines.postgres.given import DATA, TEMP, first_word, is_program
from ironbench.machine.tree import Tree
from ironbench.model.session import Session

_BACKEND = "select pg_backend_pid()"
_PARENT = 3
"""Place of the parent in /proc/<pid>/stat (proc_pid_stat(5))."""
_ELSEWHERE = "its processes have other numbers there: it runs in a container"


def whereabouts(session: Session, machine: Tree) -> Whereabouts:
    """By the process of our own connection, whose parent is the server's first one."""
    pid = int(session.query(_BACKEND)[0][0] or 0)
    stat = machine.read(f"/proc/{pid}/stat") or ""
    if not is_program(stat.partition("(")[2].rpartition(")")[0]):
        return Whereabouts(unseen=_ELSEWHERE)
    first = int(stat.rpartition(")")[2].split()[_PARENT - 2])
    data = first_word(session.query, DATA) or _of_command(machine.read(f"/proc/{first}/cmdline") or "")
    if not data:
        return Whereabouts((first,))
    roles = {"data": data, "log": machine.resolved(f"{data}/pg_wal")}
    if temp := first_word(session.query, TEMP):
        roles["temp"] = temp
    return Whereabouts((first,), {role: machine.resolved(path) for role, path in roles.items()})


def _of_command(line: str) -> str:
    """The directory of a server's command line: any user may read that."""
    words = line.split("\0")
    for before, word in pairwise(words):
        if before == "-D":
            return word
    return next((word[2:] for word in words if word.startswith("-D") and len(word) > 2), "")
