"""A server's directories belong to its user, whatever happened in an earlier run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ironbench.engines.identity import Identity


def test_a_tree_that_was_given_in_part_is_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "files"
    (root / "base" / "1").mkdir(parents=True)
    (root / "base" / "1" / "112").touch()
    (root / "PG_VERSION").touch()
    given: list[Path] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, *_, **__: given.append(Path(path)))
    Identity("another user", uid=os.getuid() + 1, gid=os.getgid() + 1).give_tree(root)
    assert set(given) == {root, *root.rglob("*")}
    assert given[-1] == root, "its owner says that all of it was given"
