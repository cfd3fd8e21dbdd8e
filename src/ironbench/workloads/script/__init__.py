"""The `script` workload: the user's own pgbench scripts on the user's own database."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ironbench import units
from ironbench.catalogue.typed import text_of
from ironbench.errors import InputError, written
from ironbench.model.system import Choice, System
from ironbench.workloads.base import PGBENCH_PROTOCOL, ScriptSource, Workload

_LARGEST = 1 << 26
"""Maximum size of a script in bytes."""
_COMMENTS = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_HINT = "give the path of a text file that contains a pgbench script"


class Script(Workload):
    name = "script"
    doc = (
        "Runs your pgbench scripts, each as FILE or FILE@WEIGHT, on your database. ironbench "
        "loads no data and does not check results."
    )
    needs = ("scripts",)
    foreign = True
    usual_protocol = PGBENCH_PROTOCOL

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        """Returns the scripts in the files named on the command line.

        Raises InputError if no file is named, or if a file is named twice, cannot be read or has changed since the
        trials were planned. Also raises it if a weight is not a number.
        """
        if not choice.scripts:
            raise InputError(
                "script", "a script file is missing", "for example: ironbench run script my.sql@3 other.sql"
            )
        sources = [_source(text) for text in choice.scripts]
        _refuse_repeated(sources)
        for source, now, then in zip(sources, _digests(sources), choice.digests, strict=False):
            if now != then:
                raise InputError(
                    source.name,
                    "was changed since these trials were planned",
                    "restore the file, or start a new run or lab",
                )
        return sources

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        return False

    def where(self, system: System) -> str:
        if system.dsn is not None and "://" not in system.dsn:
            return f"the scripts run in the database named by {written('system.dsn')}"
        if system.dsn is not None:
            place = urlsplit(system.dsn)
            host = unquote(place.hostname or "")
            at = f"{host}:{place.port}" if place.port else host
            user = f", as user {unquote(place.username)}" if place.username else ""
            return f"the scripts run in database {unquote(place.path.lstrip('/'))} on {at}{user}"
        if system.layout.data is None:
            return ""
        return (
            f"the scripts run in ironbench's own database in {system.layout.data}; "
            f"{written('system.dsn')} names your database"
        )

    def identified(self, choice: Choice, engine: str) -> Choice:
        return replace(choice, digests=_digests(self.scripts("", replace(choice, digests=()))))


def _refuse_repeated(sources: Sequence[ScriptSource]) -> None:
    """Raises InputError if a script is named twice. The metrics of a script are stored under its name, so those of one
    would overwrite those of the other."""
    weights: dict[str, list[int]] = {}
    for source in sources:
        weights.setdefault(source.name, []).append(source.weight)
    for name, each in weights.items():
        if len(each) > 1:
            raise InputError(name, "is listed twice", f"list it once, with the sum of its weights: {name}@{sum(each)}")


def _digests(sources: Iterable[ScriptSource]) -> tuple[str, ...]:
    return tuple(hashlib.sha256(source.text.encode()).hexdigest()[:16] for source in sources)


def _source(text: str) -> ScriptSource:
    from ironbench import _core

    name, weight = _core.split_weight(text)
    name = "-" if name == "/dev/stdin" else name
    path = Path(name)
    if name == "-":
        script = _standard_input()
    elif path.is_fifo():
        script = _from_pipe(path)
    else:
        script = text_of(path, name, _missing_file_hint(path), _LARGEST)
    if not _COMMENTS.sub("", script).strip():
        cause = "contains only comments" if script.strip() else "is empty"
        subject = "standard input (-)" if name == "-" else name
        raise InputError(subject, cause, "add an SQL command, for example SELECT 1;")
    return ScriptSource(name, script, weight)


@cache
def _standard_input() -> str:
    """Reads standard input only once, because the script is needed for validation, digest and each trial."""
    if sys.stdin is None:
        raise InputError("-", "standard input is closed", _HINT)
    try:
        return sys.stdin.buffer.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("-", f"standard input cannot be read: {error}", _HINT) from None


@cache
def _from_pipe(path: Path) -> str:
    """Reads the output of a named pipe or of the shell's `<(command)` only once, as with standard input."""
    try:
        with path.open("rb") as pipe:
            data = pipe.read(_LARGEST + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read: {error}", _HINT) from None
    if len(data) > _LARGEST:
        raise InputError(str(path), f"is larger than {units.memory(_LARGEST)}", _HINT)
    return text


def _missing_file_hint(path: Path) -> str:
    """Suggests the nearest file name in the same directory if the file does not exist."""
    import difflib

    there = path.exists() or not path.parent.is_dir()
    close = [] if there else difflib.get_close_matches(path.name, [file.name for file in path.parent.glob("*.sql")], 1)
    return f"did you mean {path.parent / close[0]}?" if close else _HINT


WORKLOAD = Script()
