"""Programs that make, verify and restore a backup, and the options that they are not given."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ironbench.engines.maintenance import BackupRequest
from ironbench.engines.mariadb import backups
from ironbench.engines.mariadb import installation as mariadb
from ironbench.engines.postgres import dumps, installation
from ironbench.engines.postgres.dumps import Tools
from ironbench.engines.postgres.maintenance import PostgresMaintaining
from ironbench.errors import InputError
from ironbench.model.system import System

MAINTAINING = PostgresMaintaining()


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def server(sslmode: str) -> System:
    return System("postgres", "theirs", dsn=f"postgresql://bench@db.example/shop?sslmode={sslmode}")


def test_a_backup_over_tls_is_made_by_programs_that_do_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Tools(installation.find().bin, "18.4"), Tools(tmp_path / "bin", "15.18")
    program(theirs.bin / "pg_basebackup", "pg_basebackup (PostgreSQL) 15.18")
    for installed, sslmode, version in (
        ([ours, theirs], "verify-full", "15.18"),
        ([ours, theirs], "prefer", installation.find().version),
    ):
        monkeypatch.setattr(dumps, "_installed", lambda installed=installed: installed)
        dumps.tools.cache_clear()
        assert MAINTAINING.tool(server(sslmode)) == f"pg_basebackup {version}"
    monkeypatch.setattr(dumps, "_installed", lambda: [ours])
    dumps.tools.cache_clear()
    with pytest.raises(InputError, match="supports TLS") as caught:
        MAINTAINING.require_backup(server("require"), {})
    assert caught.value.subject == "pg_basebackup" and "postgresql-client" in caught.value.hint
    dumps.tools.cache_clear()


@pytest.mark.parametrize(("version", "by"), [("15.18", "sizes only"), ("18.4", "pg_verifybackup")])
def test_a_tar_is_verified_by_size_where_the_program_reads_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, by: str
) -> None:
    program(tmp_path / "bin" / "pg_verifybackup", f"pg_verifybackup (PostgreSQL) {version}")
    monkeypatch.setattr(dumps, "tools", lambda sslmode: Tools(tmp_path / "bin", version))
    (folder := tmp_path / "backup").mkdir()
    (tmp_path / "PG_VERSION").write_text("15\n")
    with tarfile.open(folder / "base.tar", "w") as tar:
        tar.add(tmp_path / "PG_VERSION", "PG_VERSION")
    (folder / "backup_manifest").write_text(json.dumps({"Files": [{"Path": "PG_VERSION", "Size": 3}]}))
    check = MAINTAINING.verified(server("prefer"), folder)
    assert check.passed and f"({by})" in check.name


def test_a_server_with_tablespaces_has_no_backup_but_one_that_is_discarded(tmp_path: Path) -> None:
    target = {"host": "db", "port": 5432, "user": "bench", "sslmode": "prefer", "sslrootcert": None}
    session: Any = SimpleNamespace(query=lambda sql: [("fast",)], target=lambda: {"connection": target})
    for form in ("plain", "tar"):
        with pytest.raises(InputError, match=r"tablespaces \(fast\)") as caught:
            MAINTAINING.backup(server("prefer"), session, BackupRequest(tmp_path, form))
        assert caught.value.subject == f"--with format={form}" and caught.value.hint == "use --with format=discard"
    words = MAINTAINING.backup(server("prefer"), session, BackupRequest(tmp_path, "discard"))._words
    assert words[-2:] == ["--target", "blackhole"]


def test_a_restore_takes_the_programs_of_the_directory_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = mariadb.MariadbInstallation(tmp_path / "bin" / "mariadbd", (), "11.4.1-MariaDB", "11.4")
    other = mariadb.MariadbInstallation(tmp_path / "sbin" / "mariadbd", (), "10.11.2-MariaDB", "10.11")
    copier = program(tmp_path / "bin" / "mariadb-backup", "")
    monkeypatch.setattr(mariadb, "find", lambda directory=None: named if directory else other)
    system = System("mariadb", "ours", settings={"bin": str(tmp_path / "bin")})
    prepare, _ = backups.tool(system).unpack(system, tmp_path / "backup", tmp_path / "data")
    assert prepare._words[0] == str(copier)
    assert "11.4" in (tmp_path / "data" / "files" / "ironbench.json").read_text()
