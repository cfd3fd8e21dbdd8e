import os
from pathlib import Path

import pytest

from ironbench.engines.mariadb import dsn as mysql
from ironbench.engines.postgres import dsn, user_files
from ironbench.errors import FailureError, InputError
from ironbench.model.secrets import Secrets

HOME = {"HOME": "/nonexistent", "USER": "me", "LOGNAME": "me"}


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann@db.example:6543/shop?sslmode=require",
        "postgres://ann@db.example:6543/shop?sslmode=require",
        "host=db.example port=6543 user=ann dbname=shop sslmode=require",
        "host = 'db.example' port=6543 user = ann dbname='shop' sslmode=require",
    ],
)
def test_both_forms_say_the_same(text: str) -> None:
    address, secrets = dsn.parse(text, HOME)
    assert address == dsn.PostgresAddress("db.example", 6543, "ann", "shop", "require")
    assert secrets.password is None


def test_a_password_goes_to_the_secrets_and_nowhere_else() -> None:
    address, secrets = dsn.parse("postgresql://ann:s3%40cret@h/shop", HOME)
    assert secrets.password == "s3@cret"
    assert "s3" not in address.text() + repr(address) + repr(secrets)


def test_the_address_reads_back_whatever_the_environment() -> None:
    address, _ = dsn.parse(r"host=/var/run/my\ dir user='o\'neil' dbname='a b/c' options='-c geqo=off'", HOME)
    assert address.host == "/var/run/my dir"
    assert address.user == "o'neil"
    assert dsn.parse(address.text(), {"PGHOST": "elsewhere", "PGSSLMODE": "disable"})[0] == address


def test_an_ipv6_address_stands_in_brackets() -> None:
    address, _ = dsn.parse("postgresql://ann@[::1]:5433/shop", HOME)
    assert (address.host, address.port) == ("::1", 5433)
    assert dsn.parse(address.text(), HOME)[0] == address


def test_a_socket_directory_is_a_host() -> None:
    assert dsn.parse("postgresql://%2Ftmp%2Fsock/shop", HOME | {"PGUSER": "x"})[0].host == "/tmp/sock"
    assert dsn.parse("postgresql:///shop?host=/tmp/sock", HOME | {"PGUSER": "x"})[0].host == "/tmp/sock"


def test_the_environment_gives_what_the_dsn_leaves_out() -> None:
    environ = HOME | {"PGHOST": "h", "PGPORT": "7", "PGUSER": "u", "PGPASSWORD": "p", "PGDATABASE": "d"}
    address, secrets = dsn.parse("dbname=other", environ)
    assert address == dsn.PostgresAddress("h", 7, "u", "other")
    assert secrets.password == "p"


@pytest.mark.parametrize("word", ["shop", "postgres", "postgresql"])
def test_a_lone_word_is_a_database(word: str) -> None:
    assert dsn.parse(word, HOME | {"PGUSER": "u"})[0].database == word


def test_the_database_is_called_like_the_user_when_nobody_says_otherwise() -> None:
    assert dsn.parse("user=ann", HOME)[0].database == "ann"


@pytest.mark.parametrize(
    ("text", "cause", "hint"),
    [
        ("hots=x", "contains an unknown parameter", "did you mean host?"),
        ("postgresql://h/d?sslmod=require", "contains an unknown parameter", "sslmode"),
        ("sslmode=requird", "unknown sslmode", "did you mean require?"),
        ("port=none", "the port is not", ""),
        ("port=70000", "the port is not", ""),
        ("host='a", "unclosed quote", ""),
        ("host=a b", "has no value", ""),
        ("mysql://h/d", "does not start with postgresql://", "postgresql://"),
        ("host=a,b port=1,2,3", "2 hosts but 3 ports", "one for each host"),
        ("host=a,b hostaddr=127.0.0.1", "several hosts cannot be combined with `hostaddr`", ""),
        ("service=prod", "the service is not in any service file", ".pg_service.conf"),
        ("sslcert=/x", "sslcert is not the path of an existing file", ""),
        ("gssencmode=require", "gssencmode=require", "prefer"),
        ("sslcrl=/x", "does not support sslcrl", ""),
        ("sslcertmode=require", "sslcertmode=require", "allow"),
        ("channel_binding=requird", "channel_binding=requird", "require"),
        ("require_auth=scram", "unknown method", "scram-sha-256"),
        ("require_auth=md5,!none", "with and without !", ""),
        ("sslnegotiation=direct", "needs TLS", "sslmode=require"),
        ("client_encoding=LATIN1", "client_encoding=LATIN1", "UTF8"),
        ("hostaddr=db.example", "not a numeric address", ""),
        ("postgresql://h/d?schema=public", "schema is a parameter of Prisma", "remove it"),
        ("postgresql://h/d?currentSchema=shop", "currentSchema is a parameter of JDBC", ""),
        ("jdbc:postgresql://h/d", "only other programs use jdbc:", "postgresql://"),
        ("postgresql+psycopg2://h/d", "only other programs use +psycopg2", "postgresql://"),
        ("sslrootcert=/nonexistent/ca.pem", "is not the path of an existing file", ""),
        ("postgresql://[::1/d", "not an IPv6 address", ""),
        ("postgresql://%ff@h/d", "not valid UTF-8", ""),
    ],
)
def test_a_mistake_is_named_with_a_way_out(text: str, cause: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        dsn.parse(text, HOME)
    assert caught.value.subject == "--dsn"
    assert cause in caught.value.cause
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://%2Ftmp%2Fa%3Ab/shop?user=ann",
        "postgresql:///shop?host=/tmp/a:b&user=a@b",
        "host=@ironbench user=ann",
        "postgresql://ann@h1:5433,h2,[::1]:7/shop?target_session_attrs=read-write",
        "host=h1,h2 port=5433 user=ann target_session_attrs=any",
        "host=db hostaddr=::1 user=ann sslmode=allow sslsni=0",
        "user=ann channel_binding=require require_auth='scram-sha-256, md5' sslmode=require sslnegotiation=direct",
        "user=ann client_encoding=UTF8 connect_timeout=3 gssencmode=disable sslcertmode=allow target_session_attrs=any",
        "postgresql://ann@h/a@b",
    ],
)
def test_what_libpq_takes_reads_back_as_the_same_address(text: str) -> None:
    address, _ = dsn.parse(text, HOME)
    assert dsn.parse(address.text(), HOME)[0] == address
    assert dsn.parse(address.text(), {"PGHOST": "elsewhere", "HOME": "/nonexistent"})[0] == address


@pytest.mark.parametrize(("text", "limit"), [("7", 7.0), ("1", 2.0), ("0", None), ("-1", None), ("", None)])
def test_a_time_limit_for_connecting_is_libpqs(text: str, limit: float | None) -> None:
    address, _ = dsn.parse(f"postgresql://h/d?connect_timeout={text}", HOME)
    assert address.connection(Secrets(None)).get("connect_timeout_s") == limit
    assert dsn.parse(address.text(), HOME)[0] == address
    assert dsn.parse("host=h", {**HOME, "PGCONNECT_TIMEOUT": "7"})[0].connect_timeout_s == 7
    for wrong in ("soon", "-", "5s"):
        with pytest.raises(InputError, match="connect_timeout"):
            dsn.parse(f"host=h connect_timeout={wrong}", HOME)


def test_hosts_have_their_own_port_or_share_one() -> None:
    address, _ = dsn.parse("postgresql://ann@h1:5433,h2,[::1]:7/shop", HOME)
    assert [(one.host, one.port, one.more) for one in address.places()] == [
        ("h1", 5433, ()),
        ("h2", 5432, ()),
        ("::1", 7, ()),
    ]
    shared, _ = dsn.parse("host=h1,h2 port=7 user=ann", HOME)
    assert [one.port for one in shared.places()] == [7, 7]


def test_a_service_gives_what_the_dsn_leaves_out_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "services"
    file.write_text("# comment\n[other]\nhost=no\n[prod]\nhost = db.example\nport=7\nuser=ann\n")
    environ = HOME | {"PGSERVICEFILE": str(file), "PGUSER": "late", "PGDATABASE": "shop"}
    address, _ = dsn.parse("service=prod port=8", environ)
    assert (address.host, address.port, address.user, address.database) == ("db.example", 8, "ann", "shop")
    assert dsn.parse("port=8", environ | {"PGSERVICE": "prod"})[0] == address
    with pytest.raises(InputError) as caught:
        dsn.parse("service=prd", environ)
    assert "prod" in caught.value.hint


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / ".postgresql"
    folder.mkdir()
    shown, key = folder / "postgresql.crt", folder / "postgresql.key"
    shown.write_text("certificate")
    environ = HOME | {"HOME": str(tmp_path)}
    with pytest.raises(InputError):
        dsn.parse("user=ann", environ)
    key.write_text("key")
    key.chmod(0o644)
    with pytest.raises(InputError) as caught:
        dsn.parse("user=ann", environ)
    assert "chmod 600" in caught.value.hint
    key.chmod(0o600)
    address, _ = dsn.parse("user=ann", environ)
    assert (address.sslcert, address.sslkey) == (str(shown), str(key))
    assert dsn.parse("user=ann sslcertmode=disable", environ)[0].sslcert is None


class FakeLine:
    """Answers as a server in recovery, or as a primary."""

    def __init__(self, recovering: bool) -> None:
        self.recovering = recovering

    def query(self, sql: str) -> list[tuple[str, str]]:
        return [("t", "on") if self.recovering else ("f", "off")]

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("any", "standby"),
        ("read-write", "primary"),
        ("primary", "primary"),
        ("read-only", "standby"),
        ("standby", "standby"),
        ("prefer-standby", "standby"),
    ],
)
def test_the_first_host_that_answers_and_fits_is_measured(wanted: str, chosen: str) -> None:
    def connects(place: dsn.PostgresAddress) -> FakeLine:
        if place.host == "dead":
            raise FailureError(place.host, "nobody answers")
        return FakeLine(place.host == "standby")

    address, _ = dsn.parse(f"host=dead,standby,primary user=ann target_session_attrs={wanted}", HOME)
    found = dsn.reached(address, connects)  # type: ignore[arg-type]
    assert (found.host, found.more) == (chosen, ())


def test_the_last_host_that_will_not_do_is_named() -> None:
    address, _ = dsn.parse("host=a,b user=ann target_session_attrs=standby", HOME)
    with pytest.raises(FailureError) as caught:
        dsn.reached(address, lambda _: FakeLine(False))  # type: ignore[arg-type, return-value]
    assert caught.value.subject.startswith("b:")


@pytest.fixture
def home(tmp_path):
    return HOME | {"HOME": str(tmp_path)}


def _password_file(tmp_path, text: str, mode: int = 0o600) -> None:
    path = tmp_path / ".pgpass"
    path.write_text(text)
    path.chmod(mode)


def test_the_first_line_of_the_password_file_that_fits_counts(tmp_path, home) -> None:
    _password_file(tmp_path, "# remark\nother:*:*:ann:no\nh:5432:*:ann:a\\:b\\\\c:d\n*:*:*:*:late\n")
    assert dsn.parse("host=h user=ann", home)[1].password == "a:b\\c:d"
    assert dsn.parse("host=h user=bob", home)[1].password == "late"


def test_a_socket_is_localhost_in_the_password_file(tmp_path, home) -> None:
    _password_file(tmp_path, "localhost:5432:shop:ann:p\n")
    assert dsn.parse("host=/tmp user=ann dbname=shop", home)[1].password == "p"


def test_a_password_that_is_given_wins_over_the_file(tmp_path, home) -> None:
    _password_file(tmp_path, "*:*:*:*:file\n")
    assert dsn.parse("host=h user=ann password=given", home)[1].password == "given"
    assert dsn.parse("host=h user=ann", home | {"PGPASSWORD": "variable"})[1].password == "variable"


def test_a_password_file_that_others_may_read_is_refused(tmp_path, home) -> None:
    _password_file(tmp_path, "*:*:*:*:p\n", 0o644)
    with pytest.raises(InputError) as caught:
        dsn.parse("host=h user=ann", home)
    assert "chmod 600" in caught.value.hint


def test_a_password_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert user_files.stored_password(tmp_path / "pipe", "h", 5432, "d", "u") is None


def test_an_address_of_mysql_is_a_uri_with_a_database() -> None:
    text = "mariadb://ann:s3%40cret@db.example:3307/shop?tls=verify-full"
    address, secrets = mysql.parse(text, HOME)
    assert address == mysql.MysqlAddress("ann", "shop", "db.example", 3307, tls="verify-full")
    assert secrets.password == "s3@cret" and "s3" not in address.text() + repr(secrets)
    assert mysql.parse(address.text(), {"MYSQL_PWD": "p"}) == (address, Secrets("p"))
    assert mysql.parse("mysql://a@[::1]/d?socket=/run/my%20sql.sock", HOME)[0].socket == "/run/my sql.sock"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("postgresql://a@h/d", "does not start with mysql://"),
        ("mysql://a@h", "no database name"),
        ("mysql://a@h:port/d", "the port is not"),
        ("mysql://a@h/d?sockt=/x", "unknown parameter sockt"),
        ("mysql://a@h/d?socket=x", "not an absolute path"),
        ("mysql://a@h/d?tls=always", "unknown value of tls: always"),
        ("mysql://a@h/d?tls_ca=/nowhere", "is not the path of an existing file"),
        ("mysql://a@h,i/d", "several hosts"),
        ("mysql://a@[::1/d", "not an IPv6 address"),
    ],
)
def test_a_wrong_address_of_mysql_is_refused(text: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        mysql.parse(text, HOME)


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        ("sslmode=verify-full&sslrootcert=system", {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "system"}),
        ("sslmode=verify-full", {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "system"}),
        ("sslmode=require", {"PGSSLMODE": "require"}),
        ("", {"PGSSLMODE": "prefer"}),
    ],
)
def test_programs_of_postgresql_trust_the_certificates_that_our_connections_do(words: str, variables: dict) -> None:
    """Without a named file, the programs would look for a certificate in the user's home directory and fail."""
    address, secrets = dsn.parse(f"postgresql://ann@db.example/shop?{words}", HOME)
    assert dsn.for_programs(address.connection(secrets)) == variables


def test_programs_of_postgresql_take_the_certificate_that_is_named(tmp_path) -> None:
    (tmp_path / "ca.pem").touch()
    text = f"postgresql://ann@db.example/shop?sslmode=verify-full&sslrootcert={tmp_path}/ca.pem"
    address, secrets = dsn.parse(text, HOME)
    assert dsn.for_programs(address.connection(secrets))["PGSSLROOTCERT"] == f"{tmp_path}/ca.pem"


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        ("postgres", "postgresql://h/d?target_session_attrs=u:S3cr3t@h/d"),
        ("postgres", "postgresql://h/d?channel_binding=requireu:S3cr3t"),
        ("postgres", "host=h service=s servicefile=/none:S3cr3t@h"),
        ("mariadb", "mysql://h/d?tls=u:S3cr3t"),
    ],
)
def test_a_value_in_which_a_second_address_may_have_been_pasted_is_not_quoted(engine: str, text: str) -> None:
    parse = mysql.parse if engine == "mariadb" else dsn.parse
    with pytest.raises(InputError) as refused:
        parse(text, HOME)
    assert "S3cr3t" not in f"{refused.value} {refused.value.hint}"
