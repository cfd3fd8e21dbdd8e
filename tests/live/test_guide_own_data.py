"""The commands of docs/how/your-own-data.md and data-on-a-server.md run, except for durations and addresses."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from own_data import dumped, shop
from raw_server import RawServer
from user import PAUSED, User, blocks

pytestmark = [pytest.mark.live, pytest.mark.long]
PAGE = "how/your-own-data"
SERVER = "how/data-on-a-server"
SHORT = (*PAUSED, "--duration", "0.5s", "--warmup", "0s")


def test_the_page_leads_from_a_dump_to_a_report(place: Path) -> None:
    user = User(place)
    (script,), (lab,) = blocks(PAGE, "sql"), blocks(PAGE, "toml")
    (user.home / "orders.sql").write_text(script)
    (user.home / "index.sql").write_text("CREATE INDEX ON sale (item);\n")
    (user.home / "index.toml").write_text(lab.replace('"30s"', '"0.5s"\nwarmup = "0s"') + "[measure]\nrepeats = 1\n")
    lines = [line for block in (*blocks(PAGE, "sh"), *blocks(SERVER, "sh")) for line in block.splitlines()]
    assert len(lines) == 8
    with RawServer() as server:
        shop(server)
        dumped(server, user.home / "shop.dump", "directory")
        for line in lines:
            words = shlex.split(line, comments=True)[1:]
            address = f"postgresql://postgres@/postgres?host={server.host}&port={server.port}"
            words = [address if word.startswith("postgresql://") else word for word in words]
            told = user(*words, *(SHORT if words[0] == "run" else ()))
            assert told.code in (0, 3), f"{line}: {told.stderr}"
        boss = server.connect()
        assert not boss.query("select from pg_database where datname like 'ironbench%'")
        boss.close()
    assert (user.home / "index.html").stat().st_size > 10_000
