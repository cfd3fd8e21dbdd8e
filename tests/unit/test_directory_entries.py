"""Entries of a directory: the same for ever, since snapshots and checks of earlier versions rest on them."""

from __future__ import annotations

import hashlib

import pytest

from ironbench import _core, workloads
from ironbench.errors import InputError
from ironbench.workloads.directory import entries, template

OWN = """\
uid: u<number>
givenName: <first>
sn: <last>
cn: {givenName} {sn:2}
<presence:30>title: <list:Dr:x,Prof>
d: <random:digits:9>
n: <random:numeric:5:70>
g: <guid>
a: <random:alpha:30> {title}
"""


@pytest.mark.parametrize(
    ("text", "parent", "digest"),
    [(template.DEFAULT, "ou=directory,dc=example,dc=com", "f91ab97608e80619"), (OWN, "dc=x", "f21ad5447648f8ba")],
)
def test_entries_are_those_of_every_version_before(text: str, parent: str, digest: str) -> None:
    assert entries.VERSION == 1, "another version has other entries: note their digests"
    made = _core.template_entries(text, "t", parent, 1, 300)
    assert hashlib.sha256(made).hexdigest()[:16] == digest


def test_pieces_of_a_dataset_are_its_entries_whatever_their_number() -> None:
    dataset = entries.dataset({"entries": "2500", "template": "", "ldif": ""})
    assert dataset.entries is not None
    head, *pieces = dataset.entries("dc=x")
    assert b"dn: ou=directory,dc=x\n" in head and b"dn: ou=work,ou=directory,dc=x\n" in head
    whole = _core.template_entries(template.DEFAULT, "t", "ou=directory,dc=x", 1, 2500)
    assert b"".join(pieces) == whole and whole.count(b"dn: ") == 2500


def test_a_line_of_a_template_that_is_none_is_named() -> None:
    with pytest.raises(InputError, match="mine:2") as caught:
        _core.template_entries("uid: <number>\ncn: <nonsense>\n", "mine", "", 1, 0)
    assert caught.value.hint == "see docs/guide/directory.md"


@pytest.mark.parametrize("given", [{"id": "[1-101]"}, {"id": "[0:50]"}, {"share": "80", "id2": "[90-110]"}])
def test_people_that_are_not_there_are_not_looked_for(given: dict[str, str]) -> None:
    workload = workloads.get("directory")
    with pytest.raises(InputError, match="goes beyond the numbers of the people, 1 to 100"):
        workload.validated({"entries": "100", **given})
    for own in ({"filter": "(roomNumber={id})"}, {"ldif": "own.ldif"}):
        workload.validated({"entries": "100", **given, **own})
    workload.validated({"entries": "200", "id": "[1-101]", "id2": "[90-110]", "share": "80"} | {"job": "login"})
