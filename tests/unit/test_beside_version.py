"""A comparison of versions or engines leads with what differs besides the version."""

from __future__ import annotations

from dataclasses import replace

from factories import Shelf
from labfactory import lab, trials

from ironbench.analyse.labstudy import lab_study
from ironbench.analyse.versions import beside_version
from ironbench.report.answer import answer

OLD = {"system.engine": "postgres", "engine.version": "16.14", "engine.lacks": "TLS, lz4"}
OLD |= {"engine.settings.data_checksums": "off", "engine.settings.effective_io_concurrency": "1"}
OLD |= {"engine.settings.server_version": "16.14", "engine.settings.jit": "off"}
NEW = {"system.engine": "postgres", "engine.version": "18.4", "engine.lacks": "TLS"}
NEW |= {"engine.settings.data_checksums": "on", "engine.settings.effective_io_concurrency": "16"}
NEW |= {"engine.settings.server_version": "18.4", "engine.settings.jit": "off", "engine.settings.io_method": "worker"}


def test_builds_and_defaults_that_differ_besides_the_version_are_found() -> None:
    (found,) = beside_version([("new", "old")], {"old": OLD, "new": NEW})
    assert {row.name: row.values for row in found.rows} == {
        "lacks": ("TLS, lz4", "TLS"),
        "data_checksums": ("off", "on"),
        "io_method": ("not set", "worker"),
        "effective_io_concurrency": ("1", "16"),
    }
    assert found.rows[0].name == "lacks"


def test_servers_of_one_version_or_alike_in_all_else_have_nothing_beside_it() -> None:
    other = {**OLD, "engine.settings.data_checksums": "on"}
    assert beside_version([("b", "a")], {"a": OLD, "b": other}) == ()
    assert beside_version([("b", "a")], {"a": OLD, "b": {**OLD, "engine.version": "16.15"}}) == ()
    assert beside_version([("b", "a")], {"a": OLD}) == ()


def test_another_engine_counts_as_another_version() -> None:
    (found,) = beside_version([("b", "a")], {"a": OLD, "b": {"system.engine": "mariadb", "engine.version": "11.8"}})
    assert "data_checksums" in {row.name for row in found.rows}


class Versions(Shelf):
    def engine(self, key: str) -> dict[str, object]:
        facts = OLD if key == "e1" else NEW
        flat = {name.removeprefix("engine."): value for name, value in facts.items() if name.startswith("engine.")}
        settings = {name.removeprefix("settings."): v for name, v in flat.items() if name.startswith("settings.")}
        return {"version": flat["version"], "lacks": flat["lacks"].split(", "), "settings": settings}


def test_the_answer_names_it_before_every_other_point() -> None:
    plan = lab({"version": ("16", "18")})
    records = trials(plan, {"version=16": 1000.0, "version=18": 1300.0}, 0.02)
    records = [replace(one, engine="e2") if one.cell.name == "version=18" else one for one in records]
    found = answer(lab_study(plan, records, Versions(records)))
    assert "faster" in found.decision.text
    text = found.points[0].text
    assert "TLS, lz4 → TLS" in text and "data_checksums (off → on)" in text and "io_method (absent → worker)" in text
