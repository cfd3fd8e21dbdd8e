"""What spoils a MariaDB (or MySQL) database. Every module here registers its probes with `EXAMINATION`.

Statements read variables, status and information_schema. Nothing is changed: each is one `select` or `show`.
"""

from __future__ import annotations

import re

from ironbench.engines import examination
from ironbench.engines.examination import Examination, Needed, Server
from ironbench.model.session import Session

AREAS = ("durability", "memory", "writing", "tables", "indexes", "sessions", "observation")
PROCESS = Needed("PROCESS", "GRANT PROCESS ON *.* TO {role}")
"""Without it the user sees its own sessions and transactions alone."""

_ROLE = "concat(quote(substring_index(current_user(), '@', 1)), '@', quote(substring_index(current_user(), '@', -1)))"


def _server(session: Session) -> Server:
    version, database, role = session.query(f"select version(), database(), {_ROLE}")[0]
    numbers = re.findall(r"\d+", version or "")[:3]
    grants = " ".join(row[0] or "" for row in session.query("show grants"))
    everything = re.search(r"GRANT (ALL PRIVILEGES|[^;]*\bPROCESS\b)[^;]* ON \*\.\*", grants, re.IGNORECASE)
    number = sum(int(part) * factor for part, factor in zip(numbers, (10000, 100, 1), strict=False))
    return Server(
        "MariaDB" if "MariaDB" in (version or "") else "MySQL",
        version or "",
        number,
        database or "",
        role or "",
        frozenset({PROCESS.name}) if everything else frozenset(),
        {},
        examination.memory_bytes(session),
    )


EXAMINATION = Examination(__name__, AREAS, _server)
probe = EXAMINATION.probe


def changed(name: str, value: str) -> str:
    return f"SET GLOBAL {name} = {value}, and {name} = {value} in the server's configuration"
