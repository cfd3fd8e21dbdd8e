"""Finds the OpenLDAP programs and their version."""

from __future__ import annotations

import functools
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import InputError, written
from ironbench.host import trust
from ironbench.host.programs import last_words, run_program
from ironbench.paths import expanded

TITLE = "OpenLDAP"
OLDEST = (2, 4)
_SCHEMAS = ("/etc/ldap/schema", "/etc/openldap/schema")
"""Directories of the schemas. Debian uses the first one. Other distributions, and OpenLDAP itself, use the second one
below their prefix."""
_MODULES = ("lib/ldap", "lib/openldap", "lib64/openldap", "libexec/openldap")
_VERSION = r"OpenLDAP: slapd ((\d+)\.(\d+)\S*)"
"""Pattern of the output of `slapd -VV`. This output is a constant in the program file (Versionstr,
include/ldap_pvt.h)."""
_STAMP = re.compile(r"^[0-9a-f]+\.[0-9a-f]+ 0x[0-9a-f]+ ")
"""Pattern of the time and thread in front of a log message."""
_USUAL = ("slapd starting", "slapd stopped", "slapd shutdown", "daemon: shutdown", "@(#)", "\t")


@dataclass(frozen=True, slots=True)
class OpenldapInstallation:
    """An installation of OpenLDAP."""

    server: Path
    loader: Path
    """Path of `slapadd`, which is the same program as slapd under another name."""
    schemas: Path
    modules: Path | None
    """Directory of the modules, or None if the required modules are built in."""
    version: str
    """Full version, such as `2.5.13+dfsg-5`."""
    major: str
    """Major version, such as `2.5`."""


def find(directory: str | None = None) -> OpenldapInstallation:
    """Returns the installation in `directory`, or the one on PATH. Raises InputError and FailureError."""
    if directory is not None:
        folder = expanded(directory).absolute()
        subject, places = written("system.set", f"bin={directory}"), str(folder)
        hint = "give the path of the directory that contains slapd and slapadd"
    else:
        subject, places = TITLE, f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/libexec"
        hint = f"`apt install slapd`, or set its directory: {written('system.set', 'bin=/usr/sbin')}"
    server = shutil.which("slapd", path=places)
    if server is None:
        where = "on PATH" if directory is None else f"in {directory}"
        raise InputError(subject, f"there is no slapd {where}", hint)
    return _installation(Path(server), subject, trust.may_run(None if directory is None else Path(server).parent))


@functools.cache
def _installation(server: Path, subject: str, may_run: bool) -> OpenldapInstallation:
    words = _version(server) if may_run else trust.found_in(server, _VERSION.encode())
    found = re.search(_VERSION, words)
    if found is None and not may_run:
        raise trust.unknown_version(subject)
    if found is None:
        cause = f"is not {TITLE}: {last_words(words)}"
        raise InputError(subject, cause, f"start the server yourself, and connect with {written('system.dsn')}")
    if (int(found[2]), int(found[3])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        cause = f"{TITLE} {found[1]} is too old: ironbench starts {oldest} or later"
        raise InputError(subject, cause, "use a newer version")
    base = server.parent.parent
    schemas = [*(base / place.lstrip("/") for place in _SCHEMAS), *map(Path, _SCHEMAS)]
    schema = next((place for place in schemas if (place / "core.schema").is_file()), None)
    loader = next((place for place in (server.with_name("slapadd"), base / "sbin" / "slapadd") if place.exists()), None)
    if schema is None or loader is None:
        missing = "core.schema" if schema is None else "slapadd"
        raise InputError(subject, f"{missing} is not installed with {server}", "install the complete server package")
    modules = next((base / place for place in _MODULES if list((base / place).glob("back_mdb*.so*"))), None)
    return OpenldapInstallation(server, loader, schema, modules, found[1], f"{found[2]}.{found[3]}")


def _version(server: Path) -> str:
    done = run_program([str(server), "-VV"])
    return done.stderr + done.stdout


def complaint(text: str) -> str:
    """Returns why a server died: its last log messages, without routine messages."""
    lines = [_STAMP.sub("", line) for line in text.splitlines()]
    telling = [line for line in lines if line.strip() and not any(word in line for word in _USUAL)]
    return last_words("\n".join(telling)) if telling else ""
