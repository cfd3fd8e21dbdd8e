"""Loads a dump that contains only numbers into MariaDB, with ironbench and with the client `mariadb`.

Such a dump is a single statement with many rows, and the time to load it must be proportional to its size. Targets: at
most 1.5 times the time of the client, and at least 20 MB per second of ironbench's own CPU time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.figures import at_least, at_most, report
from bench.pairs import interleaved, ratio
from bench.series import DATA
from ironbench import engines
from ironbench.model.system import System
from tests.live.raw_mysql import RawMysql
from tests.live.raw_server import free_port

ROWS = (60_000, 600_000)
PAIRS = 7


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-dump-", dir=DATA) as folder:
        server = RawMysql(Path(folder), free_port())
        try:
            for rows in ROWS:
                _compared(server, _dump(Path(folder), rows), rows)
        finally:
            server.stop()


def _dump(folder: Path, rows: int) -> Path:
    values = ",\n".join(f"({n},{n})" for n in range(rows))
    (file := folder / f"{rows}.sql").write_text(f"CREATE TABLE t (a int, b int);\nINSERT INTO t VALUES\n{values};\n")
    return file


def _compared(server: RawMysql, file: Path, rows: int) -> None:
    engine = engines.get("mariadb")
    system, secrets = engine.validated(
        System("mariadb", "bench", dsn=f"mysql://root@localhost/d?socket={server.socket}"), 1
    )
    client = ["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "d"]

    own_s: list[float] = []

    def ours() -> None:
        began_s = time.process_time()
        with engines.running(system, secrets, 1) as session:
            engine.data_import.examined(system, file)
            engine.data_import.restored(session, file, 1, lambda *_: None)
        own_s.append(time.process_time() - began_s)

    def theirs() -> None:
        with file.open("rb") as text:
            subprocess.run(client, stdin=text, check=True)

    def timed(load: Callable[[], None]) -> Callable[[], float]:
        def once() -> float:
            server.query("drop table if exists d.t")
            os.utime(file)  # a new file time makes ironbench examine the file again
            began_s = time.perf_counter()
            load()
            took_s = time.perf_counter() - began_s
            assert server.query("select count(*) from d.t") == [(str(rows),)]
            return took_s

        return once

    of_ours, of_client = interleaved(PAIRS, timed(ours), timed(theirs))
    size_mb = file.stat().st_size / 1e6
    report(f"{rows:,} rows, {size_mb:.1f} MB: ironbench, MB/s", size_mb / statistics.median(of_ours))
    own = size_mb / statistics.median(own_s)
    report(f"{rows:,} rows: of ironbench's own processor time, MB/s", own, at_least(20) if size_mb > 5 else "")
    report(f"{rows:,} rows: mariadb, MB/s", size_mb / statistics.median(of_client))
    report(f"{rows:,} rows: time of ironbench / of mariadb", ratio(of_ours, of_client), at_most(1.5))
