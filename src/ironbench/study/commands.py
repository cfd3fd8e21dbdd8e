"""Identifies the same SQL command in the scripts of two systems, whose script files may be versions of one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")


class CommandKey(NamedTuple):
    """A command of a script, independent of its line."""

    script: str
    """File name without directories."""
    text: str
    nth: int
    """From 1, among the script's commands with this text."""

    def __str__(self) -> str:
        return "\t".join(map(str, self))


def keyed(commands: Iterable[tuple[str, str, _T]]) -> dict[CommandKey, _T]:
    """`commands`: script, text and whatever is known of each command, in the order written."""
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for script, text, known in commands:
        name = file_name(script)
        seen[name, text] += 1
        found[CommandKey(name, text, seen[name, text])] = known
    return found


def file_name(script: str) -> str:
    """The script's name without directories."""
    return script.rpartition("/")[2]


def aligned(own: Sequence[CommandKey], first: Sequence[CommandKey]) -> dict[CommandKey, CommandKey]:
    """Maps each key of one system to the key of the same command in the first system.

    The same command has the same text, and its script has the same name or is another version of the first system's
    script. A command that the first system lacks keeps its text and gets the name of that script.
    """
    versions = _versions(own, first)
    return {key: key._replace(script=versions.get(key.script, key.script)) for key in own}


def with_replacements(own: Sequence[CommandKey], first: Sequence[CommandKey]) -> dict[CommandKey, CommandKey]:
    """As `aligned`, and commands whose text was changed are the same by their place.

    Between two commands that both systems have, as many others in one as in the other replace those one by one. Needs
    all commands of both, in the order written.
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
    """Maps each script that only this system has to the script that only the first has with most texts in common; among
    equals, to the one declared first."""
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
"""Script, and the shared commands before and after a gap; None at the script's ends."""


def _gaps(keys: Sequence[CommandKey], shared: Mapping[CommandKey, CommandKey]) -> dict[_Place, list[CommandKey]]:
    """Runs of commands that the other system lacks, by their place."""
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
