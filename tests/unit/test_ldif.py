"""LDIF files of users: which entries they contain, and the line of an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.errors import InputError
from ironbench.workloads.directory import ldif

CASES = Path(__file__).parents[1] / "data" / "ldif"


@pytest.mark.parametrize("file", sorted(CASES.glob("*.ldif")), ids=lambda file: file.stem)
def test_files_that_ldapadd_takes_are_taken(file: Path) -> None:
    first = next(ldif.records(file))
    assert first.text == b"dn: ou=Users,dc=example,dc=com\nobjectClass: organizationalUnit\nou: Users\n\n"
    assert len(list(ldif.records(file))) == (2 if file.stem.startswith("folded") else 1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# c\n\ncn: a\n", 3),
        ("dn: a=b\nc: d\n\n\ndn: a=c\nno colon\n", 6),
        ("dn: a=b\nchangetype: sort\n", 2),
        ("dn: a=b\nchangetype: modify\nadd: c\nc: 1\nd: 2\n-\n", 5),
        ("dn: a=b\nchangetype: delete\nc: 1\n", 3),
        ("dn: a=b\ncontrol: 1.2.3\ncontrol: 1.2.840.113556.1.4.805 true\nchangetype: delete\n", 3),
        ("dn: a=b\nchangetype: modrdn\nnewrdn: a=c\n", 3),
        ("\ninclude: file:///none/there\n", 2),
        ("dn: a=b\nc: d\n e\nc:: ???\n", 4),
        ("dn: a=b\nc:< file:///none/there\n", 2),
    ],
)
def test_a_mistake_is_named_with_the_line_of_the_users_file(tmp_path: Path, text: str, line: int) -> None:
    for end in ("\n", "\r\n"):
        (file := tmp_path / "own.ldif").write_bytes(text.replace("\n", end).encode())
        with pytest.raises(InputError) as caught:
            list(ldif.records(file))
        assert caught.value.subject == f"{file}, line {line}"


def test_values_keep_their_bytes_and_what_only_servers_set_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "photo").write_bytes(b"\xff\xd8")
    text = "dn:: Y249w6Q=\nentryUUID: 1\ncn: a\n b\nsn: \xe9\nphoto:< file://{}\n"
    (file := tmp_path / "own.ldif").write_bytes(text.format(tmp_path / "photo").encode("latin-1"))
    (entry,) = ldif.records(file)
    assert entry.dn == "cn=\u00e4"
    assert entry.text == "dn: cn=\u00e4\ncn: ab\nsn:: 6Q==\nphoto:: /9g=\n\n".encode()


def test_an_entry_is_found_by_its_dn_however_it_is_written(tmp_path: Path) -> None:
    (file := tmp_path / "own.ldif").write_text("dn: a=b\nc: d\n\ndn: CN=a\\,b, DC=x\nc: d\n")
    assert (ldif.line_of(file, "cn=a\\,b,dc=x"), ldif.line_of(file, "cn=b")) == (f"{file}, line 4", "")
    assert ldif.parent("cn=a\\,b,dc=x") == "dc=x"


CHANGES = """dn: a=b
changetype: modify
replace: c
c:: 6Q==
-
delete: d
-

dn: a=b
changetype: modrdn
newrdn: a=c
deleteoldrdn: 1
newsuperior: o=x

dn: a=c,o=x
changetype: delete
"""


def test_changes_are_kept_as_they_are_written(tmp_path: Path) -> None:
    (file := tmp_path / "own.ldif").write_text(CHANGES)
    found = list(ldif.records(file))
    assert b"\n".join(one.text.rstrip(b"\n") + b"\n" for one in found).decode() == CHANGES
    assert [one.kind for one in found] == ["modify", "rename", "delete"]
    assert [one.renamed for one in found] == ["", "a=c,o=x", ""]
    assert ldif.line_of(file, "A=b", "rename") == f"{file}, line 9"


def test_controls_that_a_server_may_ignore_are_left_out(tmp_path: Path) -> None:
    controls = "control: 2.16.840.1.113730.3.4.2 false\ncontrol: 1.2.3: value\n"
    (file := tmp_path / "own.ldif").write_text(f"dn: a=b\n{controls}changetype: delete\n")
    assert [record.text for record in ldif.records(file)] == [b"dn: a=b\nchangetype: delete\n\n"]


@pytest.mark.parametrize("url", ["file:sub/more.ldif", "file://{folder}/sub/more.ldif", "FILE:{folder}/sub/more.ldif"])
def test_an_included_file_stands_where_it_is_included(tmp_path: Path, url: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.ldif").write_text("dn: a=2\nc: d\n\ninclude: file:last.ldif\n")
    (tmp_path / "sub" / "last.ldif").write_text("dn: a=3\nc: d\n")
    include = f"# c\ninclude: {url.format(folder=tmp_path)}"
    (file := tmp_path / "own.ldif").write_text(f"dn: a=1\nc: d\n\n{include}\ndn: a=4\nc: d\n")
    found = [(one.dn, one.file.name, one.line) for one in ldif.records(file)]
    assert found == [("a=1", "own.ldif", 1), ("a=2", "more.ldif", 1), ("a=3", "last.ldif", 1), ("a=4", "own.ldif", 6)]


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).write_text(f"include: file:{other}\n")
    with pytest.raises(InputError, match="includes itself") as caught:
        list(ldif.records(tmp_path / "a"))
    assert caught.value.subject == f"{tmp_path / 'b'}, line 1"
    for number in range(30):
        (tmp_path / str(number)).write_text(f"include: file:{number + 1}\n")
    with pytest.raises(InputError, match="more than 20 files"):
        list(ldif.records(tmp_path / "0"))
