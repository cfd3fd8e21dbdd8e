"""Identifies the same SQL command in the scripts of two systems. The script files may be different versions of one
script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")


class CommandKey(NamedTuple):
    """A command of a script, identified independently of its line."""

    script: str
    """Name of the script file without directories."""
    text: str
    nth: int
    """Several commands of a script may have the same text. This is the 1-based position of the command among them."""

    def __str__(self) -> str:
        return "\t".join(map(str, self))


def keyed(commands: Iterable[tuple[str, str, _T]]) -> dict[CommandKey, _T]:
    """Returns the value of each command by the command's key. `commands`: script, text and value of each command, in
    the order of the scripts."""
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for script, text, known in commands:
        name = file_name(script)
        seen[name, text] += 1
        found[CommandKey(name, text, seen[name, text])] = known
    return found


def file_name(script: str) -> str:
    """Returns the script's file name without directories."""
    return script.rpartition("/")[2]


def aligned(own: Sequence[CommandKey], first: Sequence[CommandKey]) -> dict[CommandKey, CommandKey]:
    """For each command of one system, returns the key of the same command in the first system.

    Two commands are the same if they have the same text, and their scripts have the same name or are versions of one
    script. If the first system lacks a command, the returned key consists of the command's own text and the name of the
    first system's script.
    """
    versions = _versions(own, first)
    return {key: key._replace(script=versions.get(key.script, key.script)) for key in own}


def with_replacements(own: Sequence[CommandKey], first: Sequence[CommandKey]) -> dict[CommandKey, CommandKey]:
    """Returns keys as `aligned` does. In addition, commands with a changed text are matched by their position.

    If both systems have an equal number of unmatched commands between the same two shared commands, these commands are
    matched one by one. Needs all commands of both systems, in the order of the scripts.
    """
    same, there = aligned(own, first), set(first)
    shared = {key: other for key, other in same.items() if other in there}
    gaps = _gaps(first, {other: other for other in shared.values()})
    replaced: dict[CommandKey, CommandKey] = {}
    for (_, before, after), keys in _gaps(own, shared).items():
        others = gaps.get((same[keys[0]].script, before, after), [])
        if len(others) == len(keys):
            replaced |= zip(keys, others, strict=True)
    return same | replaced


def _versions(own: Sequence[CommandKey], first: Sequence[CommandKey]) -> dict[str, str]:
    """Returns, for each script that only this system has, the most similar script that only the first system has.

    Similarity is the number of command texts in common. In a tie, the script declared first is used.
    """
    mine, theirs = (list(dict.fromkeys(key.script for key in side)) for side in (own, first))
    left = [script for script in theirs if script not in mine]
    versions = {}
    for script in (script for script in mine if script not in theirs):
        if left:
            texts = _texts(own, script)
            versions[script] = max(left, key=lambda other: (texts & _texts(first, other)).total())
            left.remove(versions[script])
    return versions


def _texts(keys: Sequence[CommandKey], script: str) -> Counter[str]:
    return Counter(key.text for key in keys if key.script == script)


_Place = tuple[str, CommandKey | None, CommandKey | None]
"""Position of a gap: the script, the shared command before the gap, and the shared command after it. At the start or
the end of the script, the command is None."""


def _gaps(keys: Sequence[CommandKey], shared: Mapping[CommandKey, CommandKey]) -> dict[_Place, list[CommandKey]]:
    """Finds the commands that the other system lacks. Consecutive commands form one gap. Returns the commands of each
    gap by its position."""
    gaps: dict[_Place, list[CommandKey]] = {}
    for script in dict.fromkeys(key.script for key in keys):
        before: CommandKey | None = None
        gap: list[CommandKey] = []
        for key in (*(key for key in keys if key.script == script), None):
            if key is not None and key not in shared:
                gap.append(key)
                continue
            after = None if key is None else shared[key]
            if gap:
                gaps[script, before, after] = gap
            before, gap = after, []
    return gaps
