"""Copies of data are either complete or absent."""

from pathlib import Path

import pytest

from ironbench.errors import FailureError
from ironbench.host import copies


def test_a_copy_gets_its_name_when_all_of_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots" / "one"
    (tmp_path / "snapshots" / "one.new").mkdir(parents=True)
    (tmp_path / "snapshots" / "one.new" / "left by a killed one").touch()
    with copies.atomic_directory(folder) as aside:
        (aside / "data").write_text("rows")
        assert not folder.exists()
    assert [path.name for path in folder.iterdir()] == ["data"]
    assert not aside.exists()


@pytest.mark.parametrize("error", [FailureError("data", "cannot be copied"), KeyboardInterrupt()])
def test_nothing_of_a_copy_that_failed_is_left(error: BaseException, tmp_path: Path) -> None:
    def broken() -> None:
        with copies.atomic_directory(tmp_path / "one") as aside:
            (aside / "data").write_text("rows")
            raise error

    with pytest.raises(type(error)):
        broken()
    assert not list(tmp_path.iterdir())
