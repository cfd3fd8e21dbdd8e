"""Entries of a directory never change, because snapshots and checks of earlier versions depend on them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from ironbench import _core, workloads
from ironbench.errors import InputError
from ironbench.model.system import Choice
from ironbench.records.work import work_name
from ironbench.workloads.directory import entries, jobs

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
    [(entries.TEMPLATE, "ou=directory,dc=example,dc=com", "f91ab97608e80619"), (OWN, "dc=x", "f21ad5447648f8ba")],
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
    whole = _core.template_entries(entries.TEMPLATE, "t", "ou=directory,dc=x", 1, 2500)
    assert b"".join(pieces) == whole and whole.count(b"dn: ") == 2500


@pytest.mark.parametrize(
    "suffix",
    ["dn: DC=x, dc=y\ndc: x\n\n", "dn:: ZGM9eCxkYz15\ndc: x\n\n", "version: 1\n# c\ndn: dc=x\n ,dc=y\ndc: x\n\n"],
)
def test_an_export_of_a_directory_is_taken_without_the_entries_that_are_there_already(
    tmp_path: Path, suffix: str
) -> None:
    own = tmp_path / "own.ldif"
    person = "dn: cn=a,ou=directory,dc=x,dc=y\ncn: a\n\n"
    own.write_text(suffix + "dn: ou=directory,dc=x,dc=y\nou: directory\n\n" + person)
    dataset = entries.dataset({"entries": "1", "template": "", "ldif": str(own)})
    assert dataset.entries is not None
    _, *pieces = dataset.entries("dc=x,dc=y")
    assert b"".join(pieces).strip() == person.strip().encode()


def test_entries_up_to_the_first_change_are_loaded_and_the_rest_is_carried_out(tmp_path: Path) -> None:
    (own := tmp_path / "own.ldif").write_text(
        "dn: cn=a,dc=x\ncn: a\n\ndn: cn=a,dc=x\nchangetype: modrdn\nnewrdn: cn=b\ndeleteoldrdn: 1\n\n"
        "dn: cn=c,cn=b,dc=x\ncn: c\n\ndn: cn=c,cn=b,dc=x\nchangetype: delete\n"
    )
    dataset = entries.dataset({"entries": "1", "template": "", "ldif": str(own)})
    assert dataset.entries and dataset.changes and dataset.roots and dataset.stranger
    assert b"".join(dataset.entries("dc=x")).endswith(b"dn: cn=a,dc=x\ncn: a\n\n")
    assert [line for line in b"".join(dataset.changes("dc=x")).split(b"\n") if line.startswith(b"change")] == [
        b"changetype: modrdn",
        b"changetype: delete",
    ]
    assert (dataset.rows, dataset.roots("dc=x")) == (1, ("cn=a,dc=x", "cn=b,dc=x"))
    assert dataset.stranger("dc=x") is None
    own.write_text(own.read_text() + "\ndn: cn=z,dc=x\nchangetype: delete\n")
    assert dataset.stranger("dc=x") == (f"{own}, line 15", "cn=z,dc=x")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weights": "search=1"}, "weights=search=1: has no effect with the job `search`"),
        ({"job": "compare", "filter": "(cn=a)"}, "has no effect with the job `compare`"),
        ({"job": "add-delete", "id": "[1-2]"}, "has no effect with the job `add-delete`"),
        ({"job": "mixed", "weights": "search=1", "values": "2"}, "has no effect with the job `mixed`"),
        ({"id2": "[1-5]"}, "gets no transactions with `share=100`"),
    ],
)
def test_an_option_that_a_job_does_not_use_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        workloads.get("directory").validated({"entries": "10", **given})


@pytest.mark.parametrize("job", ["search", "modify", "bind", "auth", "login", "compare", "modify-dn", "prime", "mixed"])
def test_a_job_that_needs_people_does_not_run_on_entries_of_an_ldif(job: str) -> None:
    with pytest.raises(InputError, match="needs the people that ironbench generates") as caught:
        workloads.get("directory").validated({"job": job, "ldif": "own.ldif"})
    taken = "use the job `search`, `auth` or `modify`, which can use entries of an LDIF file"
    assert (caught.value.hint == taken) == (job in ("compare", "modify-dn", "prime"))


@pytest.mark.parametrize(
    "given",
    [
        {"job": "search", "filter": "(cn={id})"},
        {"job": "search", "scope": "base", "dn": "cn=p{id},ou=people,"},
        {"job": "modify", "dn": "cn=p{id},"},
        {"job": "bind", "dn": "cn=p{id},"},
        {"job": "login", "filter": "(cn=p[1-5])"},
        {"job": "add-delete"},
        {"job": "mixed", "filter": "(cn={id})", "weights": "search=1,add=1,modify-dn=1"},
    ],
)
def test_a_job_whose_entries_are_chosen_runs_on_those_of_an_ldif(given: dict[str, str]) -> None:
    workload = workloads.get("directory")
    (script, *_) = jobs.scripts(workload.validated({"ldif": "own.ldif", **given}))
    assert "ou=directory" not in script.text or given["job"] == "add-delete"
    if "dn" in given:
        assert " cn=p:id," in script.text


def test_a_template_without_what_a_job_looks_for_is_refused_with_the_line_to_add(tmp_path: Path) -> None:
    own = tmp_path / "template"
    own.write_text("uid: user.<number>\ncn: a\nsn: b\n")
    workload = workloads.get("directory")
    workload.validated({"job": "modify", "template": str(own)})
    with pytest.raises(InputError, match="lacks userPassword, which job bind needs") as caught:
        workload.validated({"job": "bind", "template": str(own)})
    assert caught.value.hint == "add the line userPassword: <password>"
    own.write_text("uid: p<number>\ncn: a\nsn: b\nuserPassword: x\n")
    with pytest.raises(InputError, match=re.escape("lacks uid: user.<number>")):
        workload.validated({"job": "bind", "template": str(own)})
    workload.validated({"job": "auth", "filter": "(uid=p{id})", "template": str(own)})


def test_a_filter_of_a_file_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    filters = tmp_path / "filters"
    filters.write_text("# ours\n(uid=user.[1-5])@3\n\n(cn=a\n")
    with pytest.raises(InputError, match=re.escape(f"{filters}:4")):
        workloads.get("directory").validated({"filters": str(filters)})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"job": "mixed", "weights": "search=²"}, "'search=²' has no weight from 0 to 1000"),
        ({"job": "mixed", "weights": "search=1001"}, "'search=1001' has no weight from 0 to 1000"),
        ({"filter": "(uid=user.[9-1])"}, "[9-1] is not a range of numbers"),
        ({"job": "auth", "filter": "(uid=user.[9:1])"}, "[9:1] is not a range of numbers"),
    ],
)
def test_a_weight_or_range_that_is_none_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        workloads.get("directory").validated(given)


@pytest.mark.parametrize("weight", ["²", "99999999999999999999"])
def test_a_weight_of_a_filter_that_is_none_is_named_with_its_line(tmp_path: Path, weight: str) -> None:
    filters = tmp_path / "filters"
    filters.write_text(f"(uid=user.[1-5])@{weight}\n")
    with pytest.raises(InputError, match=re.escape(f"{filters}:1")):
        workloads.get("directory").validated({"filters": str(filters)})


def test_clients_that_bind_as_people_and_do_more_bind_back() -> None:
    workload = workloads.get("directory")
    bind_back = {job for job in jobs.JOBS if workload.binds_back(workload.validated({"job": job}))}
    assert bind_back == {"auth", "login", "mixed"}
    for weights, wanted in (("bind=1", False), ("bind=1,search=0", False), ("search=1", False), ("bind=1,add=1", True)):
        assert workload.binds_back(workload.validated({"job": "mixed", "weights": weights})) == wanted


def test_a_report_names_a_directorys_work_by_the_options_that_differ_and_matter() -> None:
    def named(**given: str) -> str:
        return work_name(Choice("directory", workloads.get("directory").validated(given)))

    assert named() == "directory entries=100000 job=search"
    assert named(entries="20", scope="base", limit="5") == "directory entries=20 job=search limit=5 scope=base"
    assert named(job="mixed", weights="add=1") == "directory entries=100000 job=mixed weights=add=1"
    of_before = Choice("directory", workloads.get("directory").validated({}) | {"weights": "add=1"})
    assert work_name(of_before) == "directory entries=100000 job=search"


def test_a_line_of_a_template_that_is_none_is_named() -> None:
    with pytest.raises(InputError, match="mine:2") as caught:
        _core.template_entries("uid: <number>\ncn: <nonsense>\n", "mine", "", 1, 0)
    assert caught.value.hint == "see docs/databases/directory.md"


@pytest.mark.parametrize("given", [{"id": "[1-101]"}, {"id": "[0:50]"}, {"share": "80", "id2": "[90-110]"}])
def test_people_that_are_not_there_are_not_looked_for(given: dict[str, str]) -> None:
    workload = workloads.get("directory")
    with pytest.raises(InputError, match="exceeds the numbers of the people, 1 to 100"):
        workload.validated({"entries": "100", **given})
    for own in ({"filter": "(roomNumber={id})"}, {"ldif": "own.ldif", "filter": "(cn={id})"}):
        workload.validated({"entries": "100", **given, **own})
    workload.validated({"entries": "200", "id": "[1-101]", "id2": "[90-110]", "share": "80"} | {"job": "login"})
