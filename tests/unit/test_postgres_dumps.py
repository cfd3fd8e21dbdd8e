"""Types of files that PostgreSQL's programs may restore, as plans and messages name them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ironbench.engines.existing_server import refuse_configuring
from ironbench.engines.postgres.data_import import PostgresDataImport, _left_out
from ironbench.engines.postgres.dumps import PgDump
from ironbench.engines.postgres.restore_programs import _hint
from ironbench.errors import InputError
from ironbench.model.system import System

SERVER = System("postgres", "theirs", dsn="postgresql://bench@db.example/postgres")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("root:x:0:0:root:/root:/bin/sh\n", "SQL file, not written by pg_dump, without an end mark"),
        ("-- Dumped from database version 15.8\n", "plain dump of version 15.8, without an end mark"),
        (
            "--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 15.8\n\n"
            "--\n-- PostgreSQL database dump complete\n--\n",
            "plain dump of version 15.8",
        ),
    ],
)
def test_text_is_a_dump_where_its_head_says_so(tmp_path: Path, text: str, kind: str) -> None:
    (file := tmp_path / "file.sql").write_text(text)
    assert PostgresDataImport().examined(SERVER, file).kind == kind


def test_what_the_server_cannot_parse_is_perhaps_no_sql_of_its_own() -> None:
    assert "check that the file is SQL for PostgreSQL" in _hint("42601")
    assert "is SQL" not in _hint("42P07")


NEWER = PgDump(Path("shop.dump"), "custom", 18, "18.1", ("postgis",), (), 9)


def test_a_dump_for_a_running_server_that_is_older_or_lacks_an_extension_has_no_programs_as_its_way_out() -> None:
    for given in (False, True):
        with pytest.raises(InputError, match="which is older") as older:
            PostgresDataImport._refuse_newer(NEWER, 15, given)
        with pytest.raises(InputError, match="requires the extension postgis") as lacking:
            _left_out(NEWER, (), (), given)
        assert ("bin=DIR" in older.value.hint, "bin=DIR" in lacking.value.hint) == (not given, not given)
    assert "remove --dsn" in older.value.hint


def test_cpus_of_a_running_server_are_refused_with_the_consent_that_gives_them() -> None:
    for server, lacks in (
        ("ssh://root@db", "add --control ssh"),
        (None, "add --server ssh://user@host and --control ssh"),
    ):
        with pytest.raises(InputError, match="does not configure existing servers") as caught:
            refuse_configuring(replace(SERVER, server=server, server_cpus=(0,)))
        assert lacks in caught.value.hint
    refuse_configuring(replace(SERVER, server="ssh://root@db", server_cpus=(0,), control=True))


def test_what_a_running_server_is_not_given_is_named_as_the_user_wrote_it() -> None:
    for system, option in (
        (replace(SERVER, parallelism=2), "--parallelism"),
        (replace(SERVER, ideal=("client", "log")), "--ideal"),
    ):
        with pytest.raises(InputError, match="does not configure existing servers") as caught:
            refuse_configuring(system)
        assert caught.value.subject == option and f"remove {option}," in caught.value.hint
    refuse_configuring(replace(SERVER, ideal=("client",)))
