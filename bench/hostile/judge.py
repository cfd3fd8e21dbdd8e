"""Runs ironbench against a hostile server in a separate process, and judges the result."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bench.hostile.behaviours import SECRET, Behaviour
from bench.hostile.peer import LDAP, MARKER, MYSQL, POSTGRES
from ironbench.host.scratch import FAILURE

LIMIT_S = 150.0
"""Five times the limit of a single query, plus the trial."""
MOST_BYTES = 1_000_000_000
SCRIPTS = {
    POSTGRES: f"""\\set n random(1, 9)
BEGIN;
SELECT 41 + :n AS answer \\gset
{MARKER.decode()}, generate_series(1, 3);
END;
""",
    MYSQL: f"""\\set n random(1, 9)
BEGIN;
SELECT 41 + :n AS answer \\gset
{MARKER.decode()};
COMMIT;
""",
}
_TRIAL = ("--clients", "2", "--duration", "2s", "--warmup", "0s", "--repeats", "1")


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a run."""

    code: int | None
    """Exit code; None if the run exceeded the limit."""
    seconds: float
    peak_bytes: int
    statuses: tuple[str, ...]
    cause: str
    """Cause in the first record, or the output on stderr."""
    faults: tuple[str, ...]
    """Violated requirements; empty if there are none."""


def address(protocol: str, host: str, port: int, secret: str, words: str) -> str:
    user = {POSTGRES: "postgres", MYSQL: "password_user", LDAP: "cn=ironbench,dc=example,dc=com"}[protocol]
    if "SCRAM" in words:
        user = "bench"
    database = {POSTGRES: "postgres", MYSQL: "d", LDAP: "dc=example,dc=com"}[protocol]
    scheme = {POSTGRES: "postgresql", MYSQL: "mysql", LDAP: "ldap"}[protocol]
    query = f"?{words}" if words else ""
    return f"{scheme}://{quote(user, safe='=,')}:{quote(secret, safe='')}@{host}:{port}/{database}{query}"


def run(
    behaviour: Behaviour, protocol: str, port: int, received: bytearray, secret: str = SECRET, host: str = ""
) -> Ended:
    """Runs ironbench against the server. `received`: bytes that the server received."""
    host = host or ("127.0.0.1" if behaviour.trusted else "0.0.0.0")
    dsn = address(protocol, host, port, secret, behaviour.words.get(protocol, ""))
    with tempfile.TemporaryDirectory(prefix="ironbench-hostile-") as folder:
        home = Path(folder)
        for name in ("runtime", "tmp"):
            (home / name).mkdir(mode=0o700)
        work = ["directory", "--with", "entries=300"]
        if protocol in SCRIPTS:
            (home / "script.sql").write_text(SCRIPTS[protocol])
            work = ["script", "script.sql", "--protocol", "simple"]
        code, seconds, peak, said = _process(["run", *work, "--dsn", dsn, *_TRIAL], home)
        results = home / "results"
        records = [json.loads(path.read_text()) for path in sorted(results.glob("trials/*/record.json"))]
        statuses = tuple(record["status"] for record in records)
        cause = next((record.get("cause") or "" for record in records), "") or said[-300:]
        faults = list(_faults(behaviour, code, peak, statuses, said))
        faults += [f"the password is in {name}" for name in _leaks(home, secret)]
        faults += [f"unforeseen: {_last_line(path)}" for path in home.glob(f"tmp/{FAILURE}*")]
        if secret in said:
            faults.append("the password was printed")
        if not behaviour.trusted and secret.encode() in received:
            faults.append("the password was sent to an unverified peer")
    return Ended(code, seconds, peak, statuses, cause, tuple(faults))


def _last_line(path: Path) -> str:
    return path.read_text().strip().rpartition("\n")[2]


def _process(words: Sequence[str], home: Path) -> tuple[int | None, float, int, str]:
    """Runs the process; returns exit code (None: killed), duration, peak memory and output."""
    import launch

    environment = os.environ | {
        "XDG_RUNTIME_DIR": str(home / "runtime"),
        "TMPDIR": str(home / "tmp"),
        "IRONBENCH_DATA": str(home / "data"),
        "IRONBENCH_RESULTS": str(home / "results"),
        "HOME": str(home),
    }
    began = time.monotonic()
    command = launch.Command(words, env=environment, cwd=home)
    ended, peaks = threading.Event(), [0]

    def watch() -> None:
        while not ended.wait(0.05):
            peaks.append(_peak(command.pid))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        stdout, stderr = command.communicate(LIMIT_S)
        code = command.wait()
    except subprocess.TimeoutExpired:
        command.kill()
        stdout, stderr, code = "", "", None
    finally:
        ended.set()
        watching.join()
        command.kill()
        command.close()
    return code, time.monotonic() - began, max(peaks), stdout + stderr


def _peak(pid: int) -> int:
    """Returns the peak memory of a process and its running descendants."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    own = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)
    return own * 1024 + sum(_peak(int(child)) for child in children)


def _faults(behaviour: Behaviour, code: int | None, peak: int, statuses: Sequence[str], said: str) -> Sequence[str]:
    faults = []
    if code is None:
        faults.append(f"still running after {LIMIT_S:.0f} s")
    elif code not in (0, 1, 2, 3):
        faults.append(f"exit code {code}")
    good = [status for status in statuses if status == "ok" or (status == "suspect" and not behaviour.unanswered)]
    if not behaviour.harmless and (code == 0 or good):
        faults.append(f"exit code {code}, trials: {', '.join(statuses) or 'none'}")
    if behaviour.name == "nothing wrong" and (code not in (0, 3) or not good):
        faults.append("a good server was refused")
    if peak > MOST_BYTES:
        faults.append(f"{peak >> 20} MiB of memory")
    if "Traceback" in said or "panicked" in said:
        faults.append("a traceback")
    if "\x1b" in said:
        faults.append("an escape sequence was printed")
    if len(said) > 100_000:
        faults.append(f"{len(said)} characters were printed")
    return faults


def _leaks(home: Path, secret: str) -> list[str]:
    forms = {secret.encode(), quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode()}
    return [
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and path.stat().st_size < 1 << 28 and any(form in path.read_bytes() for form in forms)
    ]
