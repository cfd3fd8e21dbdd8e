"""Mutated logs of servers and mutated captures, and their readers."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

from fuzz.splice import spliced

from ironbench import workloads
from ironbench.workloads.capture import contents, logs, tape

LOGS = Path(__file__).parents[1] / "data" / "pglog"
PREFIX = "%m [%p] "
_GENERAL = b"""mariadbd, Version: 10.11.6-MariaDB-log (Debian). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
261130 20:14:11\t     5 Connect\troot@localhost on d using Socket
\t\t     5 Query\tinsert into item values (1, 'it''s; \\\\' 1')
\t\t     5 Query\tupdate item
set name = 'x' where id < 10
261130 20:14:12\t     6 Prepare\tselect name from item where id = ?
\t\t     6 Execute\tselect name from item where id = 7
\t\t     6 Query\tcreate user u identified by 'S3cr3tW0rd'
2026-11-30T20:14:12.123456Z\t     5 Init DB\tshop
\t\t     5 Quit\t
"""
_SLOW = b"""# Time: 261130 20:14:11
# User@Host: root[root] @ localhost []
# Thread_id: 5  Schema: d  QC_hit: No
# Query_time: 0.000123  Lock_time: 0.000010  Rows_sent: 1  Rows_examined: 1
# Rows_affected: 0  Bytes_sent: 62
use d;
SET timestamp=1796069651;
select name from item where id = 7;
# Time: 2026-11-30T20:14:12.123456Z
# User@Host: root[root] @ localhost []  Id:     6
# Query_time: 0.5  Lock_time: 0.0  Rows_sent: 0  Rows_examined: 0
SET timestamp=1796069652;
insert into item values (2, 'a;
b');
"""
_WORDS = (
    b"BEGIN",
    b"COMMIT",
    b"select 1",
    b"insert into t values (1, 'a')",
    b"$1",
    b"?",
    b"E'\\x00'",
    b"$$",
    b"/*",
    b"*/",
    b"--",
    b"''",
    b'""',
    b"\\",
    b"LOG:  ",
    b"ERROR:  ",
    b"DETAIL:  parameters: $1 = '1', $2 = NULL",
    b"duration: 1.0 ms",
    b"execute <unnamed>: ",
    b"statement: ",
    b"\n\t",
    b"\n",
    b'","',
    b",,",
    b'{"timestamp":"',
    b'"message":"',
    b"\\u0000",
    b"\t\t     5 Query\t",
    b"\t     6 Execute\t",
    b"\t     6 Prepare\t",
    b"Close stmt",
    b"# Time: ",
    b"# User@Host: ",
    b"# Query_time: 1e9  Lock_time: 0  Rows_sent: 99999999999999999999\n",
    b"SET timestamp=99999999999999999999;\n",
    b"use x;\n",
    b"identified by 'S3cr3tW0rd'",
    b"2026-11-28 17:51:00.426 UTC [",
    b"9999-99-99",
    b"\x1f\x8b",
    b"\xff",
)
_STDERR = re.compile(rb"\d{4}-\d\d-\d\d [\d:.]+ \w+ \[")


@dataclass(frozen=True, slots=True)
class CaptureTarget:
    """Reads mutated logs, or mutated captures. The number of an input determines its content."""

    name: str
    corpus: tuple[bytes, ...]
    scratch: Path
    floor_s: float = 2.0

    def allowed_s(self, data: str | bytes) -> float:
        return max(self.floor_s, len(data) / 1e6)

    def input(self, number: int) -> bytes:
        dice = random.Random(f"{self.name}/{number}")
        if self.name == "capture-log" or dice.random() < 0.3:
            return spliced(self.corpus, _WORDS, dice)
        data = bytearray(dice.choice(self.corpus))
        for _ in range(dice.choice((1, 1, 2, 8))):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        return bytes(data)

    def read(self, data: str | bytes) -> None:
        """Raises IronbenchError if the input is refused."""
        assert isinstance(data, bytes)
        made = self.scratch / "x.capture"
        made.unlink(missing_ok=True)
        if self.name == "capture-log":
            log = self.scratch / "x.log"
            log.write_bytes(data)
            prefix = PREFIX if _STDERR.match(data) else ""
            logs.capture([str(log)], str(made), prefix, mask=len(data) % 2 == 0)
        else:
            made.write_bytes(data)
        found = contents.contents(str(made))
        if found.facts.replayable:
            options = workloads.get("capture").validated({"file": str(made), "sessions": "2"})
            tape.chosen(options)
            tape.tape(options)


def capture_targets(scratch: Path) -> dict[str, CaptureTarget]:
    texts = tuple(b"\n".join(_lines(path)) for path in sorted(LOGS.glob("all-statements.*")))
    found = CaptureTarget("capture-log", (*texts, _GENERAL, _SLOW), scratch)
    return {target.name: target for target in (found, CaptureTarget("capture-file", _captures(scratch), scratch))}


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:80]


def _captures(scratch: Path) -> tuple[bytes, ...]:
    made = []
    for name in ("all-statements.csv", "slow"):
        log, capture = scratch / name, scratch / f"{name}.capture"
        log.write_bytes(_SLOW if name == "slow" else (LOGS / name).read_bytes())
        if not capture.exists():
            logs.capture([str(log)], str(capture))
        made.append(capture.read_bytes())
    return tuple(made)
