"""A load whose connections broke reports the server's message, since connections only notice that they ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ironbench.errors import FailureError
from ironbench.trial.load.rows import complained

WORDS = "PANIC: could not write to file: No space left on device"


@pytest.mark.parametrize(
    ("sqlstate", "words", "told"),
    [("57P02", WORDS, True), ("08006", WORDS, True), ("23505", WORDS, False), ("57P02", "", False)],
)
def test_what_the_server_wrote_when_connections_broke_is_in_the_error(sqlstate: str, words: str, told: bool) -> None:
    error = FailureError("PostgreSQL server", "the server ended the connection", "see its log")
    error.sqlstate = sqlstate
    session: Any = SimpleNamespace(last_words=lambda: words)
    found = complained(session, error)
    assert ("No space left on device" in found.cause) == told
    assert (found.sqlstate, found.hint) == (sqlstate, "see its log")
