"""The observers' statements run on a real server, and their metrics reflect what was done to it."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer

from ironbench.host.tree import Tree
from ironbench.model.observation import Sample, Source
from ironbench.trial import observe
from ironbench.trial.observe.disk import role_devices

pytestmark = pytest.mark.live


@dataclass
class Served:
    """The session members that observers use, on a throwaway server."""

    server: RawServer
    connection: Any
    engine: str = "postgres"

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        rows: list[tuple[str | None, ...]] = self.connection.query(sql)
        return rows

    def processes(self) -> list[int]:
        assert self.server.process is not None
        return [self.server.process.pid]

    def directories(self) -> dict[str, str]:
        return {"data": str(self.server.directory)}

    def __getattr__(self, name: str) -> Any:
        if name in ("on_socket", "delayed", "relay_counters"):  # only sessions with an added latency have these
            raise AttributeError(name)
        raise AssertionError(f"an observer asked for {name}")


def read(source: Source, connection: Any) -> bytes:
    """Reads a source as the core's sampling thread does."""
    if source.kind == "sql":
        rows = connection.query(source.target)
        return b"".join(b"\t".join((value or "\\N").encode() for value in row) + b"\n" for row in rows)
    tree = Tree()
    if "*" not in source.target:
        return (tree.read(source.target) or "").encode() + b"\n"
    found = [(path, tree.read(path)) for path in tree.glob(source.target)]
    return b"".join(f"==> {path}\n{text}\n".encode() for path, text in found if text is not None)


def test_what_was_done_to_a_server_is_observed(raw_server: RawServer, database: str) -> None:
    worker = raw_server.connect(database=database)
    observer = raw_server.connect(database=database)
    owner = raw_server.connect(database=database)
    sources = observe.sources(Served(raw_server, owner))
    samples: dict[str, list[Sample]] = {source.name: [] for source in sources}

    def sample(t_s: float) -> None:
        for source in sources:
            samples[source.name].append(Sample(t_s, read(source, observer)))

    worker.query("create table t (a int); select pg_stat_force_next_flush()")
    done = worker.query("select num_done from pg_stat_checkpointer")
    sample(0.0)
    start = time.monotonic()
    for _ in range(20):
        worker.query("insert into t select generate_series(1, 5000)")
    # Reading comes first: it sets hint bits, which after a checkpoint are logged as full-page images.
    worker.query("select count(*) from t")
    worker.query("checkpoint")
    worker.query("select pg_stat_force_next_flush()")
    worker.query("select 1")
    for _ in range(200):  # the checkpointer reports its counters shortly after it has answered
        if worker.query("select num_done from pg_stat_checkpointer") != done:
            break
        time.sleep(0.05)
    elapsed_s = time.monotonic() - start
    sample(elapsed_s)
    for connection in (worker, observer, owner):
        connection.close()

    metrics = observe.parse(samples, elapsed_s).metrics
    assert metrics["rows_changed_per_s"] * elapsed_s == pytest.approx(100_000, rel=0.01)
    assert metrics["engine_commits_per_s"] * elapsed_s >= 20
    assert metrics["wal_bytes_per_s"] * elapsed_s > 5e6
    assert metrics["checkpoints"] == 1
    assert 0 <= metrics["wal_since_checkpoint_bytes"] < 1e6
    assert metrics["backends_idle"] + metrics["backends_active"] == 1, "the worker: no observer, no owner"
    assert metrics["engine_cpu_s"] > 0
    assert metrics["engine_writes_per_s{object=wal}"] * elapsed_s >= 20


def test_every_source_for_this_machine_and_server_can_be_read(raw_server: RawServer, database: str) -> None:
    connection = raw_server.connect(database=database)
    for source in observe.sources(Served(raw_server, connection)):
        if source.name.startswith("pg_io"):
            continue  # a fresh server may not have done any I/O worth a row
        if source.name.startswith("pg_relations"):
            continue  # an empty database has no table, and so no vacuum
        nobody = source.name in ("pg_waits.activity", "pg_waits.backends", "pg_blocking.chains")
        assert read(source, connection).strip() or nobody, source
    connection.close()


def test_a_lock_is_seen_as_what_is_waited_for(raw_server: RawServer, database: str) -> None:
    holder, waiter, observer = (raw_server.connect(database=database) for _ in range(3))
    holder.query("create table t (a int); insert into t values (1)")
    holder.query("begin; update t set a = 2")
    blocked = threading.Thread(target=lambda: waiter.query("update t set a = 3"))
    blocked.start()
    source = observe.get("pg_waits").sources(Served(raw_server, observer), Tree())[0]
    try:
        samples = []
        for n in range(100):
            samples.append(Sample(n * 0.05, read(source, observer)))
            if all(event in samples[-1].raw for event in (b"Lock.transactionid", b"Client.ClientRead")):
                break
            time.sleep(0.05)
    finally:
        holder.query("commit")
        blocked.join()
    metrics = observe.get("pg_waits").parse({source.name: samples[-1:]}, 60.0).metrics
    assert metrics["wait_share{event=Lock.transactionid}"] == pytest.approx(0.5), "the other half is in a transaction"
    assert metrics["wait_share{event=Client.ClientRead}"] == pytest.approx(0.5), "and waits for its client"
    for connection in (holder, waiter, observer):
        connection.close()


def test_directories_are_led_to_a_device_or_to_none() -> None:
    found = role_devices({"data": str(Path.cwd()), "log": "/dev/shm"}, Tree())
    status = Path.cwd().stat()
    number = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    # otherwise its file system spans devices, or belongs to a container
    if Path(f"/sys/dev/block/{number}/stat").exists():
        assert found["data"] == number
    assert "log" not in found, "memory is no device"
