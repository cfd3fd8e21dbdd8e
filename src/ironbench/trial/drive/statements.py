"""The SQL statements of a workload's scripts with typical values: the values that client 0 would send first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ironbench.errors import IronbenchError
from ironbench.model.inside import ScriptCommand
from ironbench.workloads.base import ScriptSource

_PARAMETER = re.compile(r"\$\d+")
_LEFT = re.compile(r"(?<![:\w]):[A-Za-z_]\w*")
"""Pattern of a variable that has no value, because the value comes from the server's answer."""


def statements(
    scripts: Sequence[ScriptSource], variables: Mapping[str, str], protocol: str, seed: int
) -> tuple[ScriptCommand, ...]:
    from ironbench import _core

    given = list(variables.items())
    try:
        texts = _core.compile_scripts([(one.name, one.text, one.weight) for one in scripts], given, protocol)
    except IronbenchError:
        return ()
    found = []
    for script, of_script in zip(scripts, texts, strict=True):
        sent = _statements_sent(script, given, seed)
        place = 0
        for number, text in enumerate(of_script, 1):
            shape = _shape(text)
            at = next((at for at in range(place, len(sent)) if shape.fullmatch(sent[at])), None)
            typical = "" if at is None else sent[at]
            place = place if at is None else at + 1
            if at is None and not _PARAMETER.search(text):
                typical = text
            typical = "" if _LEFT.search(_bare(typical)) else typical
            found.append(ScriptCommand(script.name, number, text, typical, sent=at is not None or not sent))
    return tuple(found)


def _statements_sent(script: ScriptSource, variables: Sequence[tuple[str, str]], seed: int) -> list[str]:
    """Returns the statements that one execution of the script sends, in order. Returns an empty list if they depend on
    the server's answers."""
    from ironbench import _core

    try:
        return _core.rehearse_script(script.name, script.text, variables, seed)
    except IronbenchError:
        return []


def _shape(text: str) -> re.Pattern[str]:
    return re.compile(".*?".join(re.escape(part) for part in _PARAMETER.split(text)), re.DOTALL)


def _bare(sql: str) -> str:
    """Returns the SQL text without quoted strings."""
    return re.sub(r"'(?:[^']|'')*'", "''", sql)
