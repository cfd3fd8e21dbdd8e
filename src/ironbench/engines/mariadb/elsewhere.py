"""Where a running server is on its machine, which may be another one: asked of the server, and looked up there."""

from __future__ import annotations

import posixpath

from ironbench.engines.administration import Whereabouts
from ironbench.machine.tree import Tree
from ironbench.model.session import Session

_PROGRAMS = ("mariadbd", "mysqld")
_DIRECTORIES = """
    show global variables where variable_name in ('datadir', 'tmpdir', 'innodb_log_group_home_dir')
"""


def whereabouts(session: Session, machine: Tree) -> Whereabouts:
    """The only server there, or the one whose command line names the data directory."""
    known = {str(name): value or "" for name, value in session.query(_DIRECTORIES)}
    data = known.get("datadir", "").rstrip("/")
    roles = {
        "data": data,
        "log": posixpath.normpath(posixpath.join(data, known.get("innodb_log_group_home_dir", ""))),
        "temp": known.get("tmpdir", ""),
    }
    directories = {role: machine.resolved(path) for role, path in roles.items() if path}
    pids = [
        int(name.split("/")[2])
        for name in machine.glob("/proc/[0-9]*/comm")
        if machine.read(name) in _PROGRAMS and name.split("/")[2].isdigit()
    ]
    if len(pids) > 1:
        pids = [pid for pid in pids if data in (machine.read(f"/proc/{pid}/cmdline") or "")]
    if len(pids) != 1:
        return Whereabouts((), directories, "none of its programs is seen there" if not pids else "several are alike")
    return Whereabouts(tuple(pids), directories)
