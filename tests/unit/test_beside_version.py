"""A comparison of versions or engines starts with the differences other than the version."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import Shelf
from labfactory import lab, trials

from ironbench.report.answer import answer
from ironbench.report.page import Answer
from ironbench.study.labstudy import lab_study
from ironbench.study.versions import beside_version

OLD = {"system.engine": "postgres", "engine.version": "16.14"}
OLD |= {"engine.settings.data_checksums": "off", "engine.settings.effective_io_concurrency": "1"}
OLD |= {"engine.settings.default_toast_compression": "pglz", "engine.settings.wal_compression": "off"}
OLD |= {"engine.settings.server_version": "16.14", "engine.settings.jit": "off"}
NEW = {**OLD, "engine.version": "18.4", "engine.settings.server_version": "18.4"}
NEW |= {"engine.settings.data_checksums": "on", "engine.settings.effective_io_concurrency": "16"}
NEW |= {"engine.settings.io_method": "worker"}
LACKING = {"old": ["TLS", "lz4", "io_uring"], "new": ["TLS"]}


def test_builds_that_differ_besides_the_version_are_found_apart_from_defaults_of_the_versions() -> None:
    (found,) = beside_version([("new", "old")], {"old": OLD, "new": NEW}, LACKING)
    assert [(row.name, row.values) for row in found.rows] == [
        ("lacks", ("TLS, lz4", "TLS")),
        ("data_checksums", ("off", "on")),
    ]
    assert [(row.name, row.values) for row in found.defaults] == [
        ("io_method", ("not set", "worker")),
        ("effective_io_concurrency", ("1", "16")),
    ]


def test_a_setting_that_one_side_chose_is_no_default_of_the_version() -> None:
    chosen = {**NEW, "engine.changed.effective_io_concurrency": "configuration file"}
    (found,) = beside_version([("new", "old")], {"old": OLD, "new": chosen}, {})
    assert "effective_io_concurrency" in {row.name for row in found.rows}
    assert {row.name for row in found.defaults} == {"io_method"}


@pytest.mark.parametrize(
    "lacking",
    [{"old": ["io_uring"], "new": []}, {"old": [], "new": ["io_uring"]}],
    ids=["old record", "new build"],
)
def test_features_that_one_version_cannot_have_are_not_compared(lacking: dict[str, list[str]]) -> None:
    (found,) = beside_version([("new", "old")], {"old": OLD, "new": NEW}, lacking)
    assert "lacks" not in {row.name for row in found.rows}


@pytest.mark.parametrize(
    "lacking",
    [{"old": ["TLS"], "new": None}, {"old": None, "new": ["TLS"]}, {"old": ["TLS"]}, {"old": ["TLS"], "new": ["TLS"]}],
    ids=["new unknown", "old unknown", "new not recorded", "equal"],
)
def test_builds_are_said_to_differ_only_if_both_are_known(lacking: dict[str, list[str] | None]) -> None:
    (found,) = beside_version([("new", "old")], {"old": OLD, "new": NEW}, lacking)
    assert "lacks" not in {row.name for row in found.rows}


def test_a_build_with_every_feature_is_known_to_lack_none() -> None:
    (found,) = beside_version([("new", "old")], {"old": OLD, "new": NEW}, {"old": [], "new": ["TLS", "ICU"]})
    assert ("lacks", ("none", "TLS, ICU")) in [(row.name, row.values) for row in found.rows]


def test_servers_of_one_version_or_alike_in_all_else_have_nothing_beside_it() -> None:
    other = {**OLD, "engine.settings.data_checksums": "on"}
    assert beside_version([("b", "a")], {"a": OLD, "b": other}, {}) == ()
    assert beside_version([("b", "a")], {"a": OLD, "b": {**OLD, "engine.version": "16.15"}}, {}) == ()
    assert beside_version([("b", "a")], {"a": OLD}, {}) == ()


def test_settings_and_builds_of_two_engines_are_not_compared() -> None:
    other = {"system.engine": "mariadb", "engine.version": "11.8"}
    (found,) = beside_version([("b", "a")], {"a": OLD, "b": other}, {"a": ["TLS"], "b": []})
    assert found.other_engine and found.rows == found.defaults == ()


def test_a_comparison_of_two_engines_says_in_one_sentence_that_defaults_and_builds_differ() -> None:
    plan = lab({"engine": ("PostgreSQL", "MariaDB"), "clients": ("1", "8")})
    plan = replace(
        plan,
        setups=tuple(
            replace(one, system=replace(one.system, engine="mariadb", settings={}))
            if one.cell.levels["engine"] == "MariaDB"
            else one
            for one in plan.setups
        ),
        comparisons=tuple((f"engine=MariaDB clients={n}", f"engine=PostgreSQL clients={n}") for n in (1, 8)),
    )
    records = trials(plan, {setup.cell.name: 1000.0 for setup in plan.setups}, 0.02)
    found = answer(lab_study(plan, records, Shelf(records)))
    assert found.points[0].text == (
        "Engine, default settings and build differ (PostgreSQL → MariaDB), so the result compares whole systems."
    )
    assert "other facts also differ" not in " ".join(found.sentences)


class Versions(Shelf):
    known: bool = True
    """Whether the facts of the new build say which features it lacks."""

    def engine(self, key: str) -> dict[str, object]:
        facts = OLD if key == "e1" else NEW
        flat = {name.removeprefix("engine."): value for name, value in facts.items() if name.startswith("engine.")}
        settings = {name.removeprefix("settings."): v for name, v in flat.items() if name.startswith("settings.")}
        found: dict[str, object] = {"version": flat["version"], "settings": settings}
        return found | ({"lacks": LACKING["old" if key == "e1" else "new"]} if key == "e1" or self.known else {})


def versions(known: bool) -> Answer:
    plan = lab({"version": ("16", "18")})
    records = trials(plan, {"version=16": 1000.0, "version=18": 1300.0}, 0.02)
    records = [replace(one, engine="e2") if one.cell.name == "version=18" else one for one in records]
    shelf = Versions(records)
    shelf.known = known
    return answer(lab_study(plan, records, shelf))


def test_the_answer_names_it_before_every_other_point() -> None:
    found = versions(known=True)
    assert "faster" in found.decision.text
    beside, defaults = found.points[0].text, found.points[1].text
    assert "TLS, lz4 → TLS" in beside and "data_checksums (off → on)" in beside and "io_method" not in beside
    assert "io_method (absent → worker) and effective_io_concurrency (1 → 16)" in defaults


def test_the_answer_says_nothing_of_builds_if_one_is_unknown() -> None:
    text = " ".join(versions(known=False).sentences)
    assert "features left out" not in text and "data_checksums (off → on)" in text
