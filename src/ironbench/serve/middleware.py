"""Middleware around all pages: checks access, limits sizes, and adds security headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from ironbench.errors import IronbenchError
from ironbench.printer import Printer
from ironbench.serve.auth import AccessPolicy, tokens_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 20
"""Maximum size of a form in bytes."""
LARGE_BYTES = 4 << 30
"""Maximum size of an imported file in bytes."""
LARGE = "/import"
_VEGA_EVAL = "'unsafe-eval'"
"""Source in the content security policy that lets Vega compile the expressions of charts
(https://vega.github.io/vega/docs/api/parser/). Inline scripts remain forbidden."""
_HEADERS = {
    "content-security-policy": f"default-src 'none'; script-src 'self' {_VEGA_EVAL}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: browsers would then send `null` as the origin of forms (Fetch standard, "append a request
    # Origin header"), and the check of the origin would refuse them.
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class TooLargeError(Exception):
    """The body of a request exceeds its limit."""


class RequestGuard:
    """ASGI middleware that checks each request before it reaches the application, and adds headers to each response."""

    def __init__(self, app: Application, policy: AccessPolicy, printer: Printer) -> None:
        self._app, self._policy, self._printer = app, policy, printer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal:
            await answer(send, *refusal)
            return
        started = False

        async def marked(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": [*_encoded(_HEADERS), *_private(message["headers"])]}
            await send(message)

        most = LARGE_BYTES if scope["path"] == LARGE else MOST_BYTES
        try:
            await self._app(scope, _limited(receive, most), marked)
        except Exception as error:
            # An error in a page must not end the server. The terminal shows the error.
            said = str(error) if isinstance(error, IronbenchError) else repr(error)
            self._printer.say(f"page {scope['path']!r} failed: {said}")
            if not started:
                await answer(marked, 500, "This page failed. The server's terminal shows the error.")

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, dict[str, str]] | None:
        """Returns status, text and headers of the response that refuses or redirects a request. Returns None if the
        request may pass."""
        policy, method, host = self._policy, scope["method"], headers.get("host", "")
        if not policy.names_this_host(host):
            return 421, "This server does not accept that host name. Open the address that it printed.", {}
        query = scope["query_string"].decode("latin-1")
        shown = tokens_of(headers.get("cookie", ""), query, headers.get("authorization", ""), policy.cookie)
        found = {where for where, token in shown if policy.token_matches(token)}
        if not found:
            return 401, "The token is missing or wrong. Open the address that `ironbench serve` printed.", {}
        if "header" in found:
            return None
        if method not in ("GET", "HEAD"):
            if not policy.is_same_origin(headers.get("origin", ""), host):
                return 403, "Only pages of this server may make changes.", {}
            if "cookie" not in found:
                return 401, "First open the address that `ironbench serve` printed.", {}
            return None
        if "address" in found:
            rest = [(name, value) for name, value in parse_qsl(query) if name != "token"]
            # The redirect removes the token from the address bar, the browser history and copied links.
            target = "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(rest)}" if rest else "")
            flags = "; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000" + "; Secure" * bool(policy.certificate)
            cookie = f"{policy.cookie}={policy.token}{flags}"
            return 303, "", {"location": _ascii(target), "set-cookie": cookie}
        return None


async def answer(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    """Sends a response in plain text."""
    body = text.encode()
    fields = {**_HEADERS, "content-type": "text/plain; charset=utf-8", "content-length": str(len(body))}
    fields |= {"cache-control": "no-store", **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": _encoded(fields)})
    await send({"type": "http.response.body", "body": body})


def _limited(receive: Receive, most: int) -> Receive:
    taken = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > most:
            raise TooLargeError(f"The limit is {most >> 20} MiB.")
        return message

    return limited


def _private(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers of a response. Adds a header that forbids caching, unless there is a `cache-control` header
    already."""
    if any(name.lower() == b"cache-control" for name, _ in headers):
        return headers
    return [*headers, (b"cache-control", b"no-store")]


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _ascii(target: str) -> str:
    return quote(target, safe="/?=&%+-_.~:,")
