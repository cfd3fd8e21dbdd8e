"""Compares searches in a directory server with `ldclt` of 389 Directory Server, with 8 connections over TCP, and
generating and loading entries with loading a ready file.

Both clients search for one random person with an equality filter and request all attributes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import at_least, at_most, report
from bench.pairs import interleaved, ratio
from bench.peers import Rate, matched_group, ours
from ironbench import workloads
from ironbench.engines.slapd import dsn, home, installation, settings
from ironbench.model.system import Choice, Load
from tests.live.directory_server import BASE, DirectoryServer, load, started
from tests.live.raw_server import free_port

PAIRS = 10
SECONDS = 10
"""Duration of a sample of `ldclt`."""
CLIENTS = 8
ENTRIES = 100_000
LEAST = 10_000
"""`ldclt` pads numbers with zeros; from this number on they have all their digits."""
LOAD_PAIRS = 6
LOADED = 50_000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        _loading(Path(folder))
        with _server(Path(folder)) as server:
            _searches(server)


@contextmanager
def _server(folder: Path) -> Iterator[DirectoryServer]:
    port = free_port()
    with started(folder, listen=f"ldap://127.0.0.1:{port}") as session:
        load(session, ENTRIES)
        yield DirectoryServer(session, port, 0)


def _searches(server: DirectoryServer) -> None:
    workload = workloads.get("directory")
    options = workload.validated({"entries": str(ENTRIES), "id": f"[{LEAST}-{ENTRIES - 1}]", "scope": "sub"})
    scripts = workload.scripts("slapd", Choice("directory", options))
    address, secrets = dsn.parse(server.dsn(), {})
    target = {"kind": "ldap", "connection": address.connection(secrets), "io": "auto"}
    asked = Load(clients=CLIENTS, threads=1, duration_s=SECONDS)
    variables = workload.variables(options)
    mine, theirs = interleaved(PAIRS, lambda: ours(target, scripts, variables, asked)[0], lambda: _ldclt(server))
    cpu = ratio([x.cpu_per_transaction_s for x in mine], [x.cpu_per_transaction_s for x in theirs])
    report("client CPU per search / ldclt, 8 connections", cpu, at_most(0.4, "upper end ≤ 0.40"))
    rate = ratio([x.per_second for x in mine], [x.per_second for x in theirs])
    report("searches/s / ldclt, 8 connections", rate, at_least(1.0))


def _ldclt(server: DirectoryServer) -> Rate:
    """Runs ldclt. The CPU time includes the start of the process, which opens 8 connections."""
    command = [
        *("ldclt", "-h", "127.0.0.1", "-p", str(server.port), "-b", f"ou=directory,{BASE}", "-s", "subtree"),
        *("-f", "(uid=user.XXXXX)", "-e", "esearch,random", f"-r{LEAST}", f"-R{ENTRIES - 1}"),
        *("-n", str(CLIENTS), "-N", "1", "-W", "0"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    done = int(matched_group(r"Global average rate:.*total: *(\d+)", out))
    if process.returncode or "Global no error occurs" not in out:
        raise RuntimeError(f"ldclt failed: {out}")
    per_second = float(matched_group(r"Global average rate:[^(]*\(\s*([\d.]+)/sec\)", out))
    return Rate(per_second, (used.ru_utime + used.ru_stime) / done, CLIENTS / per_second)


def _loading(folder: Path) -> None:
    """Compares generating and loading entries with ironbench with loading a ready file."""
    workload, programs = workloads.get("directory"), installation.find()
    dataset = workload.dataset("slapd", workload.validated({"entries": str(LOADED)}))
    assert dataset is not None and dataset.entries is not None
    pieces, ready = dataset.entries, folder / "ready.ldif"
    ready.write_bytes(home.SUFFIX + b"".join(pieces(BASE)))

    def mine() -> float:
        begin = time.perf_counter()
        home.load_offline(home.SlapdHome(folder), programs, settings.DEFAULTS | _indexes(), pieces(BASE))
        return LOADED / (time.perf_counter() - begin)

    def theirs() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as files:
            options = folder / "ready.conf"
            text = settings.as_file(settings.DEFAULTS | _indexes(), programs, Path(files), "none")
            home.write_private(options, text)
            begin = time.perf_counter()
            command = [str(programs.loader), "-q", "-f", str(options), "-b", BASE, "-l", str(ready)]
            subprocess.run(command, check=True, capture_output=True)
            return LOADED / (time.perf_counter() - begin)

    a, b = interleaved(LOAD_PAIRS, mine, theirs)
    report("entries loaded / slapadd -q of a ready file", ratio(a, b), at_least(0.95, "lower end ≥ 0.95"))


def _indexes() -> dict[str, str]:
    return {f"{settings.INDEX}{name}": kinds for name, kinds in settings.INDEXES.items()}


if __name__ == "__main__":
    main()
