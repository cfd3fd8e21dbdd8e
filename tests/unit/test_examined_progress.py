"""Reading and examining large files of the user shows progress."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ironbench import workloads
from ironbench.model.own_data import OwnData
from ironbench.model.system import System
from ironbench.printer import Printer
from ironbench.trial.load import own

Shown = list[tuple[float, str]]
_ROWS = "insert into item values " + ", ".join(f"({number}, 'text')" for number in range(200)) + ";\n"


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> dict[str, Shown]:
    """Returns the progress bars that a user would see: title of the bar → what it has shown."""
    seen: dict[str, Shown] = {}

    class Recording(Printer):
        @contextmanager
        def bar(self, what: str, total_s: float | None = None) -> Iterator[Callable[[float, str], None]]:
            shown: Shown = []
            if self._stderr is not None:
                seen[what] = shown
            yield lambda fraction, note: shown.append((fraction, note))

        @staticmethod
        def silent() -> Printer:
            printer = Recording()
            printer._stderr = None
            return printer

    monkeypatch.setattr(own, "Printer", Recording)
    return seen


def dump(folder: Path) -> Path:
    (file := folder / "shop.sql").write_text("create table item (id int, name text);\n" + _ROWS * 2500)
    assert file.stat().st_size > 6 << 20
    return file


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_progress_is_shown_while_a_large_dump_is_read_and_examined(
    engine: str, bars: dict[str, Shown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_LARGE_BYTES", 1 << 20)
    file = dump(tmp_path)
    own.identified(OwnData(dump=str(file)), System(engine, "test"), workloads.get("script"))
    ((title, shown),) = bars.items()
    fractions = [fraction for fraction, _ in shown]
    assert "shop.sql" in title and all(0 < fraction <= 1 for fraction in fractions)
    assert all(note.endswith("of shop.sql") for _, note in shown)
    # Once for its digest and once for each examination, always forward.
    runs = 1 + sum(later <= earlier for earlier, later in itertools.pairwise(fractions))
    assert runs >= 2 and len(fractions) >= 3 * runs - 2


def test_small_files_are_examined_without_a_progress_bar(bars: dict[str, Shown], tmp_path: Path) -> None:
    own.identified(OwnData(dump=str(dump(tmp_path))), System("postgres", "test"), workloads.get("script"))
    assert bars == {}
