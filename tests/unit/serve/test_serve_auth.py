"""Access requires the token, a host name of the server, and a page of the same site."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from served import POLICY, TOKEN, US
from starlette.testclient import TestClient

from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.serve.app import application
from ironbench.serve.auth import AccessPolicy, access_policy, tokens_of
from ironbench.serve.results import Results
from ironbench.serve.server import _listening


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return TestClient(application(Results(tmp_path), POLICY, Printer.silent()), base_url=US, follow_redirects=False)


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "\x00", "ü"])
def test_a_missing_or_wrong_token_shows_nothing(client: TestClient, token: str) -> None:
    for answer in (
        client.get("/", params={"token": token}),
        client.get("/archive", headers={"cookie": f"{POLICY.cookie}=no"}),
        client.get("/", headers={"authorization": "Bearer no"}),
        client.post("/import", headers={"origin": US}),
    ):
        assert answer.status_code == 401
        assert "ironbench serve" in answer.text and "<html" not in answer.text


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: TestClient) -> None:
    answer = client.get("/archive", params={"token": TOKEN, "q": "a b"})
    assert answer.status_code == 303 and answer.headers["location"] == "/archive?q=a+b"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert client.get("/archive").status_code == 200
    # A user who opens the printed address again already has the cookie.
    again = client.get("/archive", params={"token": TOKEN})
    assert again.status_code == 303 and again.headers["location"] == "/archive"


@pytest.mark.parametrize("other", ['prefs={"a":1}', "a b=c", "x", 'y="', f"{POLICY.cookie}=of-another-server", ""])
def test_a_cookie_of_another_program_locks_nobody_out(client: TestClient, other: str) -> None:
    for cookies in (f"{other}; {POLICY.cookie}={TOKEN}", f"{POLICY.cookie}={TOKEN}; {other}"):
        assert client.get("/", headers={"cookie": cookies}).status_code == 200
    assert client.get("/", headers={"cookie": f"{other}; {POLICY.cookie}-1={TOKEN}"}).status_code == 401


def test_the_address_after_the_token_stays_on_this_server(client: TestClient) -> None:
    for path in ("//evil.example/", "/\\evil.example", "///evil.example"):
        client.cookies.clear()
        answer = client.get(US + path, params={"token": TOKEN})
        assert answer.headers["location"].startswith("/") and not answer.headers["location"].startswith(("//", "/\\"))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7373", "127.0.0.1.evil.example", "192.168.1.2", "", "x"]
)
def test_a_name_that_is_not_ours_is_refused_even_with_the_token(client: TestClient, host: str) -> None:
    answer = client.get("/", params={"token": TOKEN}, headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:7373", "localhost:7373", "[::1]:7373", "LOCALHOST"])
def test_names_of_this_machine_are_ours(host: str) -> None:
    assert POLICY.names_this_host(host)


def test_an_address_of_another_machine_and_a_taken_port_are_refused_with_what_helps() -> None:
    with pytest.raises(InputError) as caught:
        _listening(AccessPolicy("192.0.2.1", 0, TOKEN))  # documentation address (RFC 5737)
    assert caught.value.hint == "choose an address of this machine"
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError) as caught:
        _listening(AccessPolicy("127.0.0.1", taken.getsockname()[1], TOKEN))
    assert "another port" in caught.value.hint


def test_others_reach_a_server_that_listens_for_them_by_address_but_not_by_a_strangers_name() -> None:
    wide = AccessPolicy("0.0.0.0", 7373, TOKEN)
    assert wide.names_this_host("192.168.1.2:7373") and not wide.names_this_host("evil.example:7373")


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://127.0.0.1:9999", "https://127.0.0.1:7373"]
)
def test_a_page_of_another_site_changes_nothing(client: TestClient, origin: str | None) -> None:
    client.cookies.set(POLICY.cookie, TOKEN)
    answer = client.post("/note/x", data={"text": "x"}, headers={"origin": origin} if origin else {})
    assert answer.status_code == 403


def test_a_program_that_shows_the_token_itself_needs_no_page(client: TestClient) -> None:
    answer = client.post("/note/x", data={"text": "x"}, headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 404


def test_every_answer_forbids_inline_scripts_frames_and_other_places(client: TestClient) -> None:
    client.cookies.set(POLICY.cookie, TOKEN)
    for path in ("/", "/nothing", "/static/serve.js"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        script = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert "unsafe-inline" not in script and "http" not in policy
    assert client.get("/").headers["cache-control"] == "no-store"


def test_a_body_of_more_than_a_mebibyte_is_refused(client: TestClient) -> None:
    client.cookies.set(POLICY.cookie, TOKEN)
    answer = client.post("/cost", data={"systems": "x" * (10 << 20)}, headers={"origin": US})
    assert answer.status_code == 413


def test_an_address_that_others_reach_needs_a_token_of_ones_own_or_tls(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="other machines can reach this address, so the server needs your own token or TLS"
    ):
        access_policy("0.0.0.0:7373", "", "", "")
    file = tmp_path / "token"
    file.write_text("short\n")
    with pytest.raises(InputError, match="not a token of at least 16"):
        access_policy("0.0.0.0:7373", str(file), "", "")
    file.write_text(f"{TOKEN}\n")
    assert access_policy("0.0.0.0:7373", str(file), "", "").token == TOKEN
    assert access_policy("0.0.0.0:7373", "", "", "", TOKEN).token == TOKEN
    with pytest.raises(InputError, match="only one of the two is set"):
        access_policy("0.0.0.0:7373", "", str(file), "")
    assert access_policy("0.0.0.0:7373", "", str(file), str(file)).scheme == "https"


def test_each_server_without_a_chosen_token_has_one_of_its_own() -> None:
    one, other = (access_policy("127.0.0.1:0", "", "", "") for _ in range(2))
    assert len(one.token) >= 32 and one.token != other.token


@pytest.mark.parametrize("listen", ["nothing:80", "127.0.0.1:x", "127.0.0.1:70000", "1.2.3.4.5:80"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(InputError, match="is no"):
        access_policy(listen, "", "", "")


@pytest.mark.parametrize(
    ("listen", "address", "port"),
    [
        ("localhost:80", "127.0.0.1", 80),
        ("[::1]:80", "::1", 80),
        ("::1", "::1", 7373),
        ("127.0.0.1", "127.0.0.1", 7373),
    ],
)
def test_addresses_are_read_as_they_are_written(listen: str, address: str, port: int) -> None:
    found = access_policy(listen, "", "", "")
    assert (found.address, found.port) == (address, port)


def test_neither_many_fields_nor_half_an_address_as_origin_is_let_in() -> None:
    assert not list(tokens_of("", "&".join(f"a{field}=1" for field in range(200)), "", "cookie"))
    assert not AccessPolicy("127.0.0.1", 1, "token").is_same_origin("http://[", "127.0.0.1:1")
