"""Commands that change a global setting of an existing MariaDB server."""

from __future__ import annotations

import shlex

import pytest

from ironbench.engines.mariadb.dsn import MysqlAddress
from ironbench.engines.mariadb.existing_server import set_command


@pytest.mark.parametrize(
    ("tls", "options"),
    [
        ("disable", {"--skip-ssl"}),
        ("prefer", set()),
        ("require", {"--ssl"}),
        ("verify-ca", {"--ssl", "--ssl-verify-server-cert"}),
        ("verify-full", {"--ssl", "--ssl-verify-server-cert"}),
    ],
)
def test_a_command_encrypts_and_verifies_as_the_address_says(tls: str, options: set[str]) -> None:
    command = shlex.split(set_command(MysqlAddress("bench", "shop", "db.example", tls=tls), "sort_buffer_size", "2M"))
    assert {word for word in command if "ssl" in word} == options
    assert command[-1] == "SET GLOBAL sort_buffer_size = 2097152"
