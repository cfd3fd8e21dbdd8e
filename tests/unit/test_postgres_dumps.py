"""What a file is that PostgreSQL's own programs may restore, as plans and messages name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.engines.postgres.data_import import PostgresDataImport, _way_out
from ironbench.model.system import System

SERVER = System("postgres", "theirs", dsn="postgresql://bench@db.example/postgres")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("root:x:0:0:root:/root:/bin/sh\n", "SQL text, not written by pg_dump"),
        ("-- Dumped from database version 15.8\ncreate table t (a int);\n", "plain dump of version 15.8"),
    ],
)
def test_text_is_a_dump_where_its_head_says_so(tmp_path: Path, text: str, kind: str) -> None:
    (file := tmp_path / "file.sql").write_text(text)
    assert PostgresDataImport().examined(SERVER, file).kind == kind


def test_what_the_server_cannot_parse_is_perhaps_no_sql_of_its_own() -> None:
    assert "is it SQL for PostgreSQL?" in _way_out('syntax error at or near "root"')
    assert "is it SQL" not in _way_out('relation "t" already exists')
