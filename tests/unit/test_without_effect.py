"""An option that would change nothing is refused: two runs or cells that differ in it alone would be taken for two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ironbench import engines
from ironbench.drive import caches
from ironbench.engines.slapd import engine as slapd
from ironbench.errors import InputError
from ironbench.experiment import declare, new
from ironbench.experiment.build import _require_checkpoints
from ironbench.experiment.command import RunOptions, planned
from ironbench.model.system import Load, System


def refused(workload: str = "igen-oltp", engine: str = "null", **changes: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        planned(RunOptions(workload, engine=engine, seed=1, **changes))
    assert caught.value.cause and caught.value.hint
    return caught.value


@pytest.mark.parametrize("name", [*engines.names(), "odbc-other"])
def test_a_state_of_caches_is_for_engines_that_keep_data(name: str) -> None:
    caches.require(System(name, "x"), Load())
    if engines.get(name).can("data"):
        caches.require(System(name, "x"), Load(cache="warm"))
        return
    with pytest.raises(InputError, match=f"no caches of {name} into a state"):
        caches.require(System(name, "x"), Load(cache="warm"))


def test_a_run_on_an_engine_without_caches_of_ours_cannot_ask_for_a_state() -> None:
    assert refused(cache="warm").subject == "--cache warm"
    assert "drives itself" in refused("igen-cpu", "none", cache="warm").cause


def test_checkpoints_of_a_running_server_are_asked_for_only_where_that_is_possible() -> None:
    load = Load(checkpoint_s=10.0)
    for name in ("mariadb", "postgres"):
        _require_checkpoints(System(name, "x"), load)
    _require_checkpoints(System("postgres", "x", dsn="postgresql:///b"), load)
    with pytest.raises(InputError, match="no checkpoints on a running mariadb server") as caught:
        _require_checkpoints(System("mariadb", "x", dsn="mysql:///b"), load)
    assert caught.value.subject == "--checkpoint"


@pytest.mark.parametrize(
    ("name", "dsn", "chosen"),
    [("mariadb", "", True), ("mariadb", "mysql://b@h/b", False), ("postgres", "postgresql://b@h/b", True)],
)
def test_a_new_lab_file_chooses_checkpoints_only_where_a_plan_takes_them(name: str, dsn: str, chosen: bool) -> None:
    here = new.AtHand(engines.get(name), dsn, "", "1", {}, 2, 8 << 30)
    assert ("checkpoint = " in new.text("driver", here, "x.toml")) is chosen


def test_a_new_lab_file_says_why_it_has_few_clients() -> None:
    one, many = (
        new.text("driver", new.AtHand(engines.get(name), "", "", "1", {}, 2, 8 << 30), "x.toml")
        for name in ("sqlite", "postgres")
    )
    assert "clients = 1          # this engine has one writer at a time" in one
    assert "clients = 4          # two for each core here" in many


@pytest.mark.parametrize(
    ("engine", "changes", "subject", "hint"),
    [
        ("null", {"protocol": "simple"}, "--protocol simple", "leave it out"),
        ("sqlite", {"protocol": "simple"}, "--protocol simple", "leave it out"),
        ("mariadb", {"protocol": "extended"}, "--protocol extended", "it has: prepared, simple"),
        ("null", {"io": "epoll"}, "--io epoll", "leave it out"),
        ("sqlite", {"io": "io_uring"}, "--io io_uring", "leave it out"),
    ],
)
def test_a_way_to_send_statements_that_the_engine_lacks_is_refused(
    engine: str, changes: dict[str, Any], subject: str, hint: str, tmp_path: Path
) -> None:
    places = {} if engine == "null" else {"data": str(tmp_path / "d")}
    error = refused(
        "script" if engine == "sqlite" else "igen-oltp", engine, **_script(engine, tmp_path), **places, **changes
    )
    assert (error.subject, error.hint) == (subject, hint)


def _script(engine: str, folder: Path) -> dict[str, Any]:
    (folder / "one.sql").write_text("SELECT 1;\n")
    return {"files": (str(folder / "one.sql"),)} if engine == "sqlite" else {}


def test_a_cell_whose_engine_lacks_the_protocol_of_its_lab_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(
        'question = "?"\nworkload.name = "select-only"\nload.protocol = "extended"\n'
        f'layout.data = "{tmp_path / "d"}"\ndesign = "full"\n[vary]\nengine = ["postgres", "null"]\nclients = [1, 2]\n'
        "[measure]\nrepeats = 2\n"
    )
    skipped = {setup.cell.levels["engine"]: setup.skipped for setup in declare.lab(file)[0].setups}
    assert not skipped["postgres"] and "no such protocol" in skipped["null"]


def test_a_directory_server_refuses_parallelism_and_a_limit_that_holds_no_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(slapd.installation, "find", lambda _: None)
    with pytest.raises(InputError) as parallel:
        slapd.ENGINE.validated(System("slapd", "x", parallelism=2), 1)
    assert parallel.value.subject == "--parallelism"
    with pytest.raises(InputError, match="holds no engine"):
        slapd.ENGINE.validated(System("slapd", "x", memory_total_bytes=1 << 20), 1)
