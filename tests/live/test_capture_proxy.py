"""A capture by a proxy between real clients and a real server, and its replay."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_data import dumped, shop
from patience import eventually
from proxied import proxied, recorded
from raw_server import PASSWORD, RawServer
from tls_proxy import CERTIFICATES, TlsProxy
from user import User

from ironbench.errors import FailureError, InputError

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture-proxy")]

BLOCK = """\\set i random(1, 1000)
begin;
select name, price from item where id = :i;
insert into sale (item) values (:i) returning id \\gset
update sale set at = now() where id = :id;
end;
"""
ALONE = "\\set i random(1, 1000)\nselect count(*) from sale where item = :i;\n"
PIPELINE = """\\set i random(1, 1000)
\\startpipeline
select name from item where id = :i;
insert into sale (item) values (:i);
\\endpipeline
"""
TRANSACTIONS = 30
"""Number of transactions of each client of each script."""


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with RawServer() as server:
        shop(server)
        yield server


def test_a_captured_run_is_replayed_with_the_same_statements_rows_and_keys(user: User) -> None:
    scripts = {"block": BLOCK, "alone": ALONE, "pipeline": PIPELINE}
    for name, text in scripts.items():
        (user.home / f"{name}.sql").write_text(text)
    with RawServer() as server:
        shop(server)
        dumped(server, user.home / "shop.dump")
        with proxied(user, server) as proxy:
            runs = (("block", "prepared"), ("block", "simple"), ("alone", "extended"), ("pipeline", "extended"))
            for name, protocol in runs:
                proxy.pgbench(user.home / f"{name}.sql", "-c", "2", "-t", str(TRANSACTIONS), "-M", protocol)
            assert "division by zero" in proxy.psql("select 1 / 0;").stderr
            proxy.end()
    each = 2 * TRANSACTIONS
    calls = dict(recorded(user, "template, count(*) over (partition by template)"))
    assert calls["insert into sale(item) values (?) returning id"] == 2 * each
    assert calls["insert into sale(item) values (?)"] == calls["select name from item where id = ?"] == each
    (counts,) = recorded(user, "count(distinct transaction), count(error), count(*) - count(duration_us)")
    assert counts == (4 * each + 1, 1, 0)
    dump = ("--dump", str(user.home / "shop.dump"), "--check", f"select count(*) = {5000 + 3 * each} from sale")
    user.measured("run", "capture", "--with", "file=shop.capture", "--with", "mode=fast", "--no-observe", *dump)
    (record,) = user.records()
    assert [one["passed"] for one in record["checks"]] == [True]
    metrics = record["metrics"]
    replayed: dict[str, int] = {}
    for one in record["statements"]:
        replayed[one["text"]] = replayed.get(one["text"], 0) + one["count"]
    assert replayed == calls
    assert metrics["failed"] == metrics["errors"] == metrics["replay_missing_keys"] == 0
    assert metrics["replayed_failures"] == 1 and metrics["replayed_keys"] == 2 * each
    assert metrics["replay_divergence{of=mix}"] == metrics["replay_divergence{of=rows}"] == 0


def test_parameters_of_both_formats_names_and_errors_are_recorded(user: User, server: RawServer) -> None:
    with proxied(user, server) as proxy:
        connection = proxy.connect(database="shop", options=[("application_name", "till")])
        assert proxy.psql("select $1::int + 1, $2 \\bind 41 'it''s' \\g").stdout == "42|it's\n"
        connection.query("select 1")
        connection.query("set application_name = 'kiosk'")
        with pytest.raises(FailureError):
            connection.query("select 1 / 0")
        connection.close()
        proxy.end()
    found = recorded(user, "text, parameters, row_count, error, user_name, database_name, application_name")
    assert ("select 1 / 0", None, 0, "22012", "postgres", "shop", "kiosk") in found
    assert {one[6] for one in found} == {"psql", "till", "kiosk"}
    assert [one[1:3] for one in found if one[0].startswith("select $1::int")] == [(["41", "it's"], 1)]


@pytest.mark.parametrize("name", ["cleartext_user", "md5_user", "scram_user"])
def test_clients_log_in_through_the_proxy(user: User, server: RawServer, name: str) -> None:
    with proxied(user, server) as proxy:
        assert proxy.connect(user=name, password=PASSWORD).query("select current_user") == [(name,)]
        with pytest.raises(InputError):
            proxy.connect(user=name, password="wrong password")
        told = proxy.end()
    assert PASSWORD not in told.stderr
    for path in user.home.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes() and b"wrong password" not in path.read_bytes()


def test_a_cancel_request_reaches_the_server(user: User, server: RawServer) -> None:
    with proxied(user, server) as proxy:
        connection = proxy.connect(database="shop")
        canceller = threading.Timer(0.3, connection.cancel)
        canceller.start()
        with pytest.raises(FailureError) as caught:
            connection.query("select pg_sleep(60)")
        canceller.join()
        assert caught.value.sqlstate == "57014"
        connection.close()
        proxy.end()
    assert recorded(user, "error", "text like '%pg_sleep%'") == [("57014",)]


def test_copies_pass_in_both_directions(user: User, server: RawServer) -> None:
    with proxied(user, server) as proxy:
        connection = proxy.connect(database="shop")
        connection.query("create temporary table copied (n int)")
        connection.copy_in("copy copied from stdin", b"".join(b"%d\n" % number for number in range(50_000)))
        connection.close()
        listed = proxy.psql("copy (select generate_series(1, 50000)) to stdout;").stdout
        assert len(listed.splitlines()) == 50_000
        proxy.end()
    assert recorded(user, "row_count, obstacle, left_out", "command = 'copy'") == [(50_000, "copy", "copy")] * 2


def test_masked_captures_and_what_is_stored_meanwhile_contain_no_literal(user: User, server: RawServer) -> None:
    with proxied(user, server, "--mask") as proxy:
        connection = proxy.connect(database="shop")
        proxy.psql("select 'very secret' || $1 \\bind 'hidden value' \\g")
        connection.query("alter role shopkeeper password 'hunter2'")
        partial = user.home / "shop.capture.partial"
        assert eventually(partial.exists, 20.0)
        time.sleep(0.5)
        for path in (partial, Path(f"{partial}.wal")):
            stored = path.read_bytes() if path.exists() else b""
            assert not any(secret in stored for secret in (b"very secret", b"hidden value", b"hunter2"))
        connection.close()
        proxy.end()
    stored = (user.home / "shop.capture").read_bytes()
    assert recorded(user, "count(*)") != [(0,)]
    everything = str(recorded(user, "*"))
    for secret in ("very secret", "hidden value", "hunter2"):
        assert secret not in everything and secret.encode() not in stored


def test_over_a_unix_socket_only_the_own_user_may_connect(user: User, server: RawServer) -> None:
    path = user.home / ".s.PGSQL.6432"
    with proxied(user, server, listen=str(path)) as proxy:
        assert path.stat().st_mode & 0o777 == 0o600
        assert proxy.connect(database="shop").query("select 1") == [("1",)]
        proxy.end()
    assert not path.exists()


def test_a_server_that_trusts_the_proxys_user_is_not_opened_to_every_local_user(user: User, server: RawServer) -> None:
    dsn = f"postgresql:///shop?host={server.host}&port={server.port}"
    with proxied(user, server, "--to", dsn) as proxy:
        with pytest.raises(InputError, match="every local user"):
            proxy.connect(database="shop")
        assert proxy.connect(user="scram_user", password=PASSWORD).query("select 1") == [("1",)]
        proxy.end()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--listen", "0.0.0.0:0"), "--listen"),
        (("--listen", "192.0.2.1:6432"), "--listen"),
        (("--listen", "6432"), "--listen"),
        (("--listen", "127.0.0.1:0", "--tls-cert", "a.crt"), "--tls-key"),
        (("--listen", "127.0.0.1:0", "--tls-cert", "a.crt", "--tls-key", "a.key"), "--tls-cert"),
    ],
)
def test_an_unusable_option_is_refused_before_anything_listens(user: User, words: tuple[str, ...], option: str) -> None:
    told = user("capture", *words, "--to", "postgresql://127.0.0.1/shop", "-o", "shop.capture")
    assert told.code == 2
    assert option in told.stderr and "hint:" in told.stderr
    assert not list(user.home.glob("shop.capture*"))


def test_clients_may_use_tls_and_the_server_another(user: User, server: RawServer) -> None:
    socket = f"{server.host}/.s.PGSQL.{server.port}"
    certificate = (str(CERTIFICATES / "server.crt"), str(CERTIFICATES / "server.key"))
    with TlsProxy(socket) as beyond:
        dsn = f"postgresql://localhost:{beyond.port}/shop?sslmode=require"
        words = ("--to", dsn, "--tls-cert", certificate[0], "--tls-key", certificate[1])
        with proxied(user, server, *words) as proxy:
            secure = proxy.connect(sslmode="require", database="shop")
            assert secure.tls and secure.query("select 1") == [("1",)]
            plain = proxy.connect(sslmode="disable", database="shop", user="scram_user", password=PASSWORD)
            assert not plain.tls and plain.query("select repeat('x', 1000000)")[0][0] == "x" * 1_000_000
            assert secure.query(f"select length('{'y' * 300_000}')") == [("300000",)]
            proxy.end()
        assert beyond.handshakes >= 2
    assert recorded(user, "count(*)", "error is null") == [(3,)]
