"""Servers shared by the live tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from raw_server import RawServer
from tls_proxy import TlsProxy

_numbers = itertools.count()


@pytest.fixture(scope="session")
def raw_server() -> Iterator[RawServer]:
    """One throwaway server for the whole session; tests that kill servers start their own."""
    with RawServer() as server:
        yield server


@pytest.fixture
def database(raw_server: RawServer) -> Iterator[str]:
    """The name of a database of `raw_server` that is this test's alone."""
    name = f"test_{next(_numbers)}"
    session = raw_server.connect()
    session.query(f"CREATE DATABASE {name}")
    yield name
    session.query(f"DROP DATABASE {name} WITH (FORCE)")
    session.close()


@pytest.fixture
def tls_proxy(raw_server: RawServer) -> Iterator[TlsProxy]:
    """TLS in front of `raw_server`, with a certificate for `localhost` signed by tests/data/tls/root.crt."""
    with TlsProxy(f"{raw_server.host}/.s.PGSQL.{raw_server.port}") as proxy:
        yield proxy
