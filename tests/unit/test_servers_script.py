"""`make test` gets servers for tests if it may, reports if it may not, and never fails because of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "servers"
MISSING = "not tested: MariaDB"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory that is the whole of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("timeout", "bash", "env"):
        (folder / name).symlink_to(shutil.which(name) or "")
    return folder


def stub(programs: Path, name: str, text: str) -> None:
    (programs / name).write_text(f"#!/bin/bash\n{text}\n")
    (programs / name).chmod(0o755)


def ran(programs: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    whole = {"PATH": str(programs), **environment}
    done = subprocess.run([SCRIPT], env=whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    return done


def test_nothing_is_done_where_the_server_is_there(programs: Path) -> None:
    stub(programs, "mariadbd", "exit 0")
    stub(programs, "slapd", "exit 0")
    stub(programs, "ldapsearch", "exit 0")
    stub(programs, "sshd", "exit 0")
    assert ran(programs).stdout + ran(programs).stderr == ""


def test_without_rights_the_way_to_get_it_is_named(programs: Path) -> None:
    stub(programs, "id", "echo 1000")
    stub(programs, "apt-get", f"touch {programs}/called")
    assert MISSING in (told := ran(programs)).stderr and "apt-get install mariadb-server-core" in told.stderr
    assert not (programs / "called").exists()


def test_where_apt_reaches_nothing_the_way_to_get_it_is_named(programs: Path) -> None:
    stub(programs, "id", "echo 0")
    stub(programs, "apt-get", f'echo "$*" >>{programs}/called; exit 100')
    assert MISSING in ran(programs).stderr
    assert "--no-download" not in (programs / "called").read_text(), "what was not fetched is not installed"


def test_root_has_it_fetched_and_then_installed(programs: Path) -> None:
    stub(programs, "id", "echo 0")
    stub(programs, "apt-get", f'echo "$*" >>{programs}/called')
    done = ran(programs)
    assert done.stderr == "", "and names the packages first"
    assert "mariadb-server-core (tests of MariaDB)" in done.stdout and "SERVERS=skip" in done.stdout
    called = (programs / "called").read_text().splitlines()
    for package in ("mariadb-server-core", "openssh-server"):
        fetch, install = (one for one in called if package in one)
        assert "--download-only" in fetch and "--no-download" in install


def test_root_may_leave_the_servers_out(programs: Path) -> None:
    stub(programs, "id", "echo 0")
    stub(programs, "apt-get", f"touch {programs}/called")
    done = ran(programs, SERVERS="skip")
    assert MISSING in done.stderr and done.stdout == ""
    assert not (programs / "called").exists()
