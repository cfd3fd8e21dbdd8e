"""Addresses of remote machines: `ssh://user@host:port`, as in OpenSSH (ssh(1))."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from ironbench.errors import InputError, written
from ironbench.model.secrets import Secrets

FIELD = "system.server"
_FORM = "write ssh://user@host or ssh://user@host:port; host may be a Host of ~/.ssh/config"


@dataclass(frozen=True, slots=True)
class SshAddress:
    """Address of a remote machine. Missing parts are taken from `~/.ssh/config`."""

    host: str
    """Host exactly as the user wrote it, because `Host` in `~/.ssh/config` is case-sensitive."""
    user: str = ""
    port: int | None = None

    def text(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"ssh://{user}{host}" + (f":{self.port}" if self.port is not None else "")


def parse(text: str) -> SshAddress:
    """Parses an address. Raises InputError, with a message that leaves out the parts of the text that may be a
    password."""
    subject = written(FIELD)
    try:
        parts = urlsplit(text)
        host, port, user, password = parts.hostname, parts.port, parts.username, parts.password
    except ValueError:
        raise InputError(subject, "the host or port is invalid", _FORM) from None
    if password is not None:
        Secrets(password), Secrets(unquote(password))
        cause = "contains a password, but ironbench logs in with a key"
        raise InputError(subject, cause, "remove the password; `ssh-add` loads a key into the agent")
    if parts.scheme != "ssh" or not host:
        raise InputError(subject, "is not the address of a machine", _FORM)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InputError(subject, "contains more than the address of a machine", _FORM)
    if host.startswith("-") or (user or "").startswith("-"):
        raise InputError(subject, "a name begins with a dash", _FORM)
    return SshAddress(_as_written(parts.netloc), unquote(user or ""), port)


def _as_written(place: str) -> str:
    """Returns the host in `user@host:port` exactly as written. urllib would convert it to lower case."""
    host = place.rpartition("@")[2]
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
