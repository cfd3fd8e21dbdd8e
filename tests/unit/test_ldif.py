"""LDIF files that people bring: what is an entry in them, and which line a mistake is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.errors import InputError
from ironbench.workloads.directory import ldif

CASES = Path(__file__).parents[1] / "data" / "ldif"


@pytest.mark.parametrize("file", sorted(CASES.glob("*.ldif")), ids=lambda file: file.stem)
def test_files_that_ldapadd_takes_are_taken(file: Path) -> None:
    first = next(ldif.entries(file))
    assert first.text == b"dn: ou=Users,dc=example,dc=com\nobjectClass: organizationalUnit\nou: Users\n\n"
    assert len(list(ldif.entries(file))) == (2 if file.stem.startswith("folded") else 1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# c\n\ncn: a\n", 3),
        ("dn: a=b\nc: d\n\n\ndn: a=c\nno colon\n", 6),
        ("dn: a=b\nchangetype: modify\n", 2),
        ("dn: a=b\nc: d\n e\nc:: ???\n", 4),
        ("dn: a=b\nc:< file:///none/there\n", 2),
    ],
)
def test_a_mistake_is_named_with_the_line_of_the_users_file(tmp_path: Path, text: str, line: int) -> None:
    for end in ("\n", "\r\n"):
        (file := tmp_path / "own.ldif").write_bytes(text.replace("\n", end).encode())
        with pytest.raises(InputError) as caught:
            list(ldif.entries(file))
        assert caught.value.subject == f"{file}, line {line}"


def test_values_keep_their_bytes_and_what_only_servers_set_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "photo").write_bytes(b"\xff\xd8")
    text = "dn:: Y249w6Q=\nentryUUID: 1\ncn: a\n b\nsn: \xe9\nphoto:< file://{}\n"
    (file := tmp_path / "own.ldif").write_bytes(text.format(tmp_path / "photo").encode("latin-1"))
    (entry,) = ldif.entries(file)
    assert entry.dn == "cn=\u00e4"
    assert entry.text == "dn: cn=\u00e4\ncn: ab\nsn:: 6Q==\nphoto:: /9g=\n\n".encode()


def test_an_entry_is_found_by_its_dn_however_it_is_written(tmp_path: Path) -> None:
    (file := tmp_path / "own.ldif").write_text("dn: a=b\nc: d\n\ndn: CN=a\\,b, DC=x\nc: d\n")
    assert (ldif.line_of(file, "cn=a\\,b,dc=x"), ldif.line_of(file, "cn=b")) == (4, None)
    assert ldif.parent("cn=a\\,b,dc=x") == "dc=x"
