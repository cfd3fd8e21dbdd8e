"""`--profile` with `--server`: the stacks of a server come from perf on its machine, and perf ends whatever happens."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from patience import eventually
from raw_server import RawServer
from ssh_server import LACKING, SshServer
from user import User, visitor

from ironbench import _core
from ironbench.model.profile import CLIENT, CPU, ENGINE
from ironbench.records.profiles import read_profile

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(bool(LACKING), reason=LACKING),
    pytest.mark.skipif(shutil.which("perf") is None, reason="no perf: apt-get install linux-perf gets it"),
    pytest.mark.xdist_group("ssh-profile"),
]
RUN = ("run", "select-only", "--with", "scale=1", "--duration", "3s", "--warmup", "0s", "--clients", "2", "--json")


@pytest.fixture(scope="module", autouse=True)
def permitted() -> None:
    """Skips the tests if this machine does not permit profiles."""
    tried = subprocess.run(
        ("perf", "record", "-q", "-a", "-e", "cpu-clock", "-o", "/dev/null", "--", "true"), capture_output=True
    )
    if tried.returncode or _core.available(("cpu",)):
        pytest.skip("this machine does not permit profiles")


@pytest.fixture
def user(tmp_path: Path, ssh: SshServer) -> User:
    return visitor(tmp_path / "user", ssh.home)


def there(raw_server: RawServer, database: str, ssh: SshServer) -> tuple[str, ...]:
    return ("--dsn", f"postgresql://postgres@127.0.0.1:{raw_server.port}/{database}", "--server", ssh.address)


def left() -> list[str]:
    """Returns what remains of a recording on the server's machine, which is this machine. All tests with recordings
    are in this module, whose tests run one after the other."""
    folders = [str(one) for one in Path(tempfile.gettempdir()).glob("ironbench-profile-*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"ironbench-profile-" in words and words.startswith(b"perf"):
            folders.append(words.decode())
    return folders


def test_the_profile_of_a_server_elsewhere_has_its_functions_and_those_of_the_client(
    user: User, ssh: SshServer, raw_server: RawServer, database: str
) -> None:
    user.measured(*RUN, "--profile", "cpu:299", *there(raw_server, database, ssh))
    record = user.records()[-1]
    (file,) = user.results.glob(f"trials/{record['id']}/profile.parquet")
    stacks = read_profile(file)
    engine = [one for one in stacks if one.role == ENGINE]
    assert {one.kind for one in stacks} == {CPU} and {one.role for one in stacks} == {ENGINE, CLIENT}
    names = {name for one in engine for name in one.frames}
    assert "PostgresMain" in names and any(name.endswith("_[k]") for name in names)
    # perf unwinds complete stacks, so most samples contain the function that all backends run.
    whole = sum(one.samples for one in engine)
    assert sum(one.samples for one in engine if "PostgresMain" in one.frames) > whole / 2
    server_s = sum(one.seconds for one in engine)
    assert 0.1 < server_s <= 1.5 * record["elapsed_s"] * 2
    assert not [one for one in record["warnings"] if one["code"] == "profile-unseen"]
    # perf is a program of ironbench on the server's machine. Its CPU time is not part of the sampler's here.
    assert (
        0 < record["metrics"]["profile_server_cpu_s"] < record["metrics"]["watch_cpu_cores"] * record["elapsed_s"] + 1
    )
    assert record["metrics"]["profile_cpu_s"] < 0.5
    assert not left()


def test_waits_of_a_server_elsewhere_are_refused_before_anything_starts(
    user: User, ssh: SshServer, raw_server: RawServer, database: str
) -> None:
    told = user(*RUN, "--profile", "all", *there(raw_server, database, ssh))
    assert told.code == 2 and not ssh.sessions() and user.untouched()


def test_perf_ends_if_ironbench_is_killed_in_a_trial(
    user: User, ssh: SshServer, raw_server: RawServer, database: str
) -> None:
    words = [word if word != "3s" else "60s" for word in RUN]
    with user.begun(*words, "--profile", "cpu", *there(raw_server, database, ssh)) as begun:
        assert eventually(lambda: len(left()) >= 2)
        begun.process.send_signal(signal.SIGKILL)
        assert eventually(lambda: not left())
