"""Parses the common parts of server DSNs. Error messages show how to write the DSN."""

from __future__ import annotations

import getpass
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import unquote

from ironbench.errors import InputError, nearest, written
from ironbench.model.secrets import Secrets

TLS = ("disable", "prefer", "require", "verify-ca", "verify-full")
"""Levels of encryption and server authentication, from the weakest to the strongest."""
ESCAPES = "in user names and passwords, write / as %2F, ? as %3F, @ as %40, : as %3A"


def wrong(cause: str, hint: str = "") -> InputError:
    return InputError(written("system.dsn"), cause, hint)


def host_and_port(place: str, usual_port: int) -> tuple[str, str]:
    """Splits host and port at the colon. An IPv6 address is in brackets. Raises InputError."""
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise wrong("the host is not an IPv6 address in brackets", f"write [::1]:{usual_port}")
        return host, rest[1:]
    if "," in place:
        raise wrong("contains several hosts", "give only the host to measure")
    host, _, port = place.partition(":")
    return host, port


def port_of(text: str, usual: int, hint: str) -> int:
    """Parses a port. Raises InputError with a hint, because a password with a colon may look like a port."""
    if not text:
        return usual
    if not re.fullmatch("[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise wrong("the port is not a number from 1 to 65535", hint)
    return int(text)


def own_name(hint: str) -> str:
    """Returns the name of the user of this process. This user is the default user of a DSN. Raises InputError with the
    hint if the user has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise wrong("no user name, and the operating system user has no name", hint) from None


def parameters(query: str, known: Collection[str]) -> dict[str, str]:
    """Parses `name=value&…` after the question mark. Raises InputError."""
    given: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        # The text after the ? may be part of a password if an @ follows. In this case, the name of the parameter is not
        # shown.
        shown, hint = ("", f"; {ESCAPES}") if "@" in query else (f" {name}", "")
        if not equals:
            raise wrong(f"parameter{shown} has no value", f"write ?name=value{hint}")
        if name not in known:
            raise wrong(f"unknown parameter{shown}", f"{nearest(name, list(known))}{hint}")
        given[name] = decoded(value)
    return given


def one_of(known: Sequence[str], name: str, word: str) -> str:
    """Returns the value of a parameter. Raises InputError if the value is not one of the known values."""
    if word not in known:
        shown = f": {word}" if harmless(word) else ""
        raise wrong(f"unknown value of {name}{shown}", nearest(word, list(known)))
    return word


def harmless(value: str) -> bool:
    """Returns whether a value may be shown in a message. A value with a colon or an @ may contain
    `user:password@host`."""
    return not set(value) & set(":@")


def certificate(name: str, path: str | None) -> str | None:
    """Returns the absolute path of the file in a parameter. Raises InputError if there is no such file."""
    if path is None:
        return None
    if not is_file(path):
        raise wrong(f"{name} is not the path of an existing file", "write the full path of the file")
    return str(Path(path).absolute())


def is_file(path: str) -> bool:
    """Returns whether a path names a file. Returns False for text that cannot be a path."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def secret(text: str) -> str:
    """Decodes a password, and registers both its forms as secrets so that no message shows them. Raises InputError."""
    Secrets(text)
    value = decoded(text)
    Secrets(value)
    return value


def decoded(text: str) -> str:
    """Decodes %-escapes. Raises InputError."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise wrong("a percent escape is not valid UTF-8", "escape the bytes of UTF-8, for example %C3%A9") from None
