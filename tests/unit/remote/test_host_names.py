"""Machine names: the case of a Host in ~/.ssh/config matters, that of a known host does not."""

from __future__ import annotations

from typing import Any

import asyncssh
import pytest

from ironbench.errors import InputError
from ironbench.host.remote import address
from ironbench.host.remote.address import SshAddress
from ironbench.host.remote.link import Link


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("ssh://bench@DB1", "DB1"),
        ("ssh://DB1:2222/", "DB1"),
        ("ssh://bench@[FE80::1]:22", "FE80::1"),
        ("ssh://bench@db.example", "db.example"),
    ],
)
def test_a_host_is_kept_as_it_was_written(text: str, host: str) -> None:
    known = address.parse(text)
    assert known.host == host
    assert address.parse(known.text()) == known


@pytest.mark.parametrize(("written", "asked"), [("DB1", [("DB1", ""), ("DB1", "db1")]), ("db1", [("db1", "")])])
def test_a_key_is_looked_for_under_the_name_in_small_letters_too(
    written: str, asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names belong to the same machine; another name may lead to another machine."""
    names: list[tuple[str, str]] = []

    async def connect(host: str, host_key_alias: str = "", **_: Any) -> Any:
        names.append((host, host_key_alias))
        raise asyncssh.HostKeyNotVerifiable("Host key is not trusted")

    monkeypatch.setattr(asyncssh, "connect", connect)
    with pytest.raises(InputError, match="the host key "):
        Link(SshAddress(written)).connect()
    assert names == asked
