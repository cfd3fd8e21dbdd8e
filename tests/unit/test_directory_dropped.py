"""ironbench deletes its entries from a directory that limits search results, as servers do for ordinary users."""

from __future__ import annotations

import pytest

from ironbench import workloads
from ironbench.engines.administration import ENTRY_MARK
from ironbench.errors import FailureError
from ironbench.trial.load import entries

BASE, TOP = "dc=x", "ou=directory,dc=x"
MOST = 100
SIZE_LIMIT_EXCEEDED, NO_SUCH_OBJECT, HAS_OTHERS_BELOW = 4, 32, 66
DATASET = workloads.get("directory").dataset("slapd", workloads.get("directory").validated({"entries": "10"}))


def refusal(number: int) -> FailureError:
    error = FailureError("operation", f"result code {number}")
    error.number = number
    return error


class Directory:
    """A server's answers to an ordinary user (RFC 4511)."""

    engine, base = "slapd", BASE

    def __init__(self, *dns: str) -> None:
        self.dns = [BASE, *dns]
        self.mark = f"{ENTRY_MARK}data"

    def query(self, line: str) -> list[tuple[str | None, ...]]:
        verb, _, rest = line.partition(" ")
        dn, *words = rest.split("?")
        dn = f"{dn}{BASE}" if dn.endswith(",") else dn
        if dn not in self.dns:
            raise refusal(NO_SUCH_OBJECT)
        below = [one for one in self.dns if one.endswith(f",{dn}")]
        if verb == "delete":
            if below:
                raise refusal(HAS_OTHERS_BELOW)
            self.dns.remove(dn)
            return []
        assert verb == "search"
        found = [dn, *below] if words[1] == "sub" else [dn]
        if len(found) > MOST and "sizelimit=" not in line:
            raise refusal(SIZE_LIMIT_EXCEEDED)
        return [(one, self.mark) if words[0] == "description" else (one,) for one in found[:MOST]]


def test_entries_go_though_the_server_shows_a_part_of_them_at_a_time() -> None:
    people = [f"cn=a\\, b {number},ou=people,{TOP}" for number in range(3 * MOST)]
    directory = Directory(TOP, f"ou=people,{TOP}", *people, f"ou=work,{TOP}", "ou=theirs,dc=x")
    entries.drop(directory, DATASET)  # type: ignore[arg-type]
    assert directory.dns == [BASE, "ou=theirs,dc=x"]
    entries.drop(directory, DATASET)  # type: ignore[arg-type]


def test_entries_of_others_stay() -> None:
    directory = Directory(TOP, f"cn=a,{TOP}")
    directory.mark = "our people"
    with pytest.raises(FailureError, match="was not loaded by ironbench"):
        entries.drop(directory, DATASET)  # type: ignore[arg-type]
    assert len(directory.dns) == 3
