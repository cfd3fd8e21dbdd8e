"""The blocking connection over TLS, through a proxy, because the wheel's server has no TLS."""

from __future__ import annotations

import ssl
import threading
from typing import Any

import pytest
from raw_server import PASSWORD, RawServer
from tls_proxy import CERTIFICATES, TlsProxy

from ironbench import _core
from ironbench.errors import FailureError, InputError

pytestmark = pytest.mark.live


def over_tls(server: RawServer, proxy: TlsProxy, **changes: Any) -> _core.Connection:
    return server.connect(**({"host": "localhost", "port": proxy.port} | changes))


@pytest.mark.parametrize("user", ["postgres", "md5_user", "scram_user"])
@pytest.mark.parametrize("sslmode", ["prefer", "require"])
def test_tls_is_used_when_the_server_has_it(
    raw_server: RawServer, tls_proxy: TlsProxy, sslmode: str, user: str
) -> None:
    connection = over_tls(raw_server, tls_proxy, sslmode=sslmode, user=user, password=PASSWORD)
    assert connection.tls
    assert tls_proxy.handshakes == 1
    assert connection.query("select current_user") == [(user,)]


def test_disable_leaves_tls_alone(raw_server: RawServer, tls_proxy: TlsProxy) -> None:
    assert not over_tls(raw_server, tls_proxy, sslmode="disable").tls
    assert tls_proxy.handshakes == 0


def test_prefer_goes_on_without_tls_where_the_server_has_none(raw_server: RawServer) -> None:
    connection = raw_server.connect(host="127.0.0.1", sslmode="prefer")
    assert not connection.tls
    assert connection.query("select 1") == [("1",)]


@pytest.mark.parametrize("sslmode", ["require", "verify-ca", "verify-full"])
def test_a_server_without_tls_is_refused_where_tls_is_demanded(raw_server: RawServer, sslmode: str) -> None:
    root = str(CERTIFICATES / "root.crt")
    with pytest.raises(InputError, match="does not support TLS") as caught:
        raw_server.connect(host="127.0.0.1", sslmode=sslmode, sslrootcert=root)
    assert "ssl = on" in caught.value.hint


def test_on_a_unix_socket_sslmode_means_nothing(raw_server: RawServer) -> None:
    assert not raw_server.connect(sslmode="verify-full", sslrootcert=str(CERTIFICATES / "root.crt")).tls


@pytest.mark.parametrize("sslmode", ["require", "verify-ca", "verify-full"])
def test_a_certificate_of_the_named_authority_is_trusted(
    raw_server: RawServer, tls_proxy: TlsProxy, sslmode: str
) -> None:
    root = str(CERTIFICATES / "root.crt")
    assert over_tls(raw_server, tls_proxy, sslmode=sslmode, sslrootcert=root).tls


@pytest.mark.parametrize("sslmode", ["require", "verify-ca", "verify-full"])
def test_a_certificate_of_another_authority_is_not_trusted(
    raw_server: RawServer, tls_proxy: TlsProxy, sslmode: str
) -> None:
    root = str(CERTIFICATES / "other_root.crt")
    with pytest.raises(InputError, match="the certificate is not trusted") as caught:
        over_tls(raw_server, tls_proxy, sslmode=sslmode, sslrootcert=root)
    assert root in caught.value.hint


def test_only_verify_full_minds_the_name(raw_server: RawServer, tls_proxy: TlsProxy) -> None:
    root = str(CERTIFICATES / "root.crt")
    assert over_tls(raw_server, tls_proxy, host="127.0.0.1", sslmode="verify-ca", sslrootcert=root).tls
    with pytest.raises(InputError, match="not valid for name") as caught:
        over_tls(raw_server, tls_proxy, host="127.0.0.1", sslmode="verify-full", sslrootcert=root)
    assert "verify-ca" in caught.value.hint


def test_a_self_signed_certificate_is_its_own_authority(raw_server: RawServer) -> None:
    own = str(CERTIFICATES / "self_signed.crt")
    with TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}", "self_signed") as proxy:
        assert over_tls(raw_server, proxy, sslmode="verify-full", sslrootcert=own).tls
        with pytest.raises(InputError, match="not valid for name"):
            over_tls(raw_server, proxy, host="127.0.0.1", sslmode="verify-full", sslrootcert=own)
        with pytest.raises(InputError, match="the certificate is not trusted"):
            over_tls(raw_server, proxy, sslmode="verify-full", sslrootcert=str(CERTIFICATES / "root.crt"))


@pytest.mark.parametrize("sslmode", ["prefer", "require"])
def test_a_certificate_of_version_1_encrypts_where_none_is_verified(raw_server: RawServer, sslmode: str) -> None:
    with TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}", "version_1") as proxy:
        assert over_tls(raw_server, proxy, sslmode=sslmode, user="scram_user", password=PASSWORD).tls
        with pytest.raises(InputError, match="version 1") as caught:
            over_tls(raw_server, proxy, sslmode="verify-ca", sslrootcert=str(CERTIFICATES / "root.crt"))
    assert "sslmode=require without sslrootcert" in caught.value.hint


def test_prefer_does_not_go_without_tls_in_silence_where_the_certificate_is_of_no_use(raw_server: RawServer) -> None:
    # A certificate of version 1 cannot be used over TLS 1.2.
    old = TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}", "version_1", newest=ssl.TLSVersion.TLSv1_2)
    with old as proxy, pytest.raises(InputError, match="version 1") as caught:
        over_tls(raw_server, proxy, sslmode="prefer")
    assert "sslmode=disable" in caught.value.hint


@pytest.mark.parametrize(
    ("file", "cause"), [("missing.crt", "cannot be read"), ("README.md", "contains no certificate")]
)
def test_a_file_of_roots_that_is_of_no_use_is_named(raw_server: RawServer, file: str, cause: str) -> None:
    root = str(CERTIFICATES / file)
    with pytest.raises(InputError, match=cause) as caught:
        raw_server.connect(host="localhost", sslmode="verify-full", sslrootcert=root)
    assert root in str(caught.value)


def test_copy_and_cancel_work_over_tls(raw_server: RawServer, tls_proxy: TlsProxy, database: str) -> None:
    connection = over_tls(raw_server, tls_proxy, sslmode="require", database=database)
    connection.query("create table t (a int, b text)")
    data = b"".join(b"%d\t%s\n" % (i, b"x" * 50) for i in range(200_000))
    assert connection.copy_in("copy t from stdin", data) == 200_000
    rows = connection.query("select a, b from t order by a")
    assert len(rows) == 200_000 and rows[-1] == ("199999", "x" * 50)
    timer = threading.Timer(0.2, connection.cancel)
    timer.start()
    with pytest.raises(FailureError, match="canceling statement"):
        connection.query("select pg_sleep(600)")
    timer.join()
    assert tls_proxy.handshakes == 2


def test_a_server_that_wants_a_client_certificate_gets_the_one_that_is_named(raw_server: RawServer) -> None:
    shown = {"sslcert": str(CERTIFICATES / "self_signed.crt"), "sslkey": str(CERTIFICATES / "self_signed.key")}
    with TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}", clients="self_signed") as proxy:
        assert over_tls(raw_server, proxy, sslmode="require", **shown).tls
        with pytest.raises((InputError, FailureError)):
            over_tls(raw_server, proxy, sslmode="require")


def test_direct_negotiation_begins_tls_with_the_first_byte(raw_server: RawServer) -> None:
    with TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}", direct=True) as proxy:
        assert over_tls(raw_server, proxy, sslmode="require", sslnegotiation="direct").tls
        assert proxy.handshakes == 1


def test_allow_goes_without_tls_where_the_server_takes_that(raw_server: RawServer, tls_proxy: TlsProxy) -> None:
    assert not over_tls(raw_server, tls_proxy, sslmode="allow").tls
    assert tls_proxy.handshakes == 0


@pytest.mark.parametrize(
    ("user", "method"), [("postgres", "none"), ("md5_user", "md5"), ("scram_user", "scram-sha-256")]
)
def test_a_method_that_require_auth_rules_out_is_not_answered(raw_server: RawServer, user: str, method: str) -> None:
    def entered(rule: str) -> bool:
        try:
            raw_server.connect(host="127.0.0.1", user=user, password=PASSWORD, require_auth=rule).query("select 1")
        except InputError as error:
            assert method in error.cause
            return False
        return True

    assert entered("") and entered(method) and entered("!password")
    assert not entered(f"!{method}") and not entered("password")


def test_channel_binding_is_required_of_the_server_where_the_user_requires_it(
    raw_server: RawServer, tls_proxy: TlsProxy
) -> None:
    for user in ("postgres", "md5_user", "scram_user"):
        with pytest.raises(InputError, match="channel binding"):
            over_tls(raw_server, tls_proxy, sslmode="require", user=user, password=PASSWORD, channel_binding="require")


def test_hostaddr_says_where_and_host_says_who(raw_server: RawServer, tls_proxy: TlsProxy) -> None:
    root = str(CERTIFICATES / "root.crt")
    changes = {"host": "localhost", "hostaddr": "127.0.0.1", "sslmode": "verify-full", "sslrootcert": root}
    assert over_tls(raw_server, tls_proxy, **changes).tls
