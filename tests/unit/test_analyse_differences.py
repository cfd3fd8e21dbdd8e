"""Differences: all of them if there are few, otherwise the important ones and a count of the rest."""

from ironbench.study.differences import Difference, differences, most_relevant

POSTGRES = {f"engine.settings.s{n}": "on" for n in range(300)} | {"engine.version": "18.4"}
SQLITE = {f"engine.settings.p{n}": "0" for n in range(60)} | {"engine.version": "3.54"}
OURS = {"system.settings.work_mem": "64MB", "system.layout.log": "/fast", "machine.cpu.cores": "2"}


def names(rows: tuple[Difference, ...]) -> set[str]:
    return {f"{row.group}.{row.name}" for row in rows}


def test_between_unlike_engines_only_what_the_user_chose_versions_and_the_machine_are_told() -> None:
    a = {"system.engine": "postgres", **POSTGRES, **OURS, "load.duration_s": "30"}
    b = {"system.engine": "sqlite", **SQLITE, "machine.cpu.cores": "4", "load.duration_s": "10"}
    told, rest = most_relevant(differences([a, b]))
    assert names(told) == {"system.engine", "engine.version", "load.duration_s", *OURS}
    assert len(rest) == 360


def test_between_like_engines_a_few_differences_are_told_whole() -> None:
    told, rest = most_relevant(
        differences([POSTGRES, {**POSTGRES, "engine.settings.s7": "off", "machine.numa_nodes": "2"}])
    )
    assert names(told) == {"engine.settings.s7", "machine.numa_nodes"}
    assert rest == ()


def test_between_versions_of_an_engine_the_many_settings_are_counted() -> None:
    told, rest = most_relevant(differences([{**POSTGRES, **OURS}, {"engine.version": "16.1"}]))
    assert names(told) == {"engine.version", *OURS}
    assert len(rest) == 300


def test_nothing_is_told_twice_or_lost() -> None:
    rows = differences([{**POSTGRES, **OURS}, SQLITE])
    told, rest = most_relevant(rows)
    assert sorted(names(told) | names(rest)) == sorted(names(rows))
    assert len(told) + len(rest) == len(rows)


def test_a_setting_that_the_role_may_not_see_is_never_called_not_set() -> None:
    name = "engine.settings.shared_preload_libraries"
    hidden = {"engine.settings_seen": "those that every role may see"}
    seen = {"engine.settings_seen": "all", name: "pg_stat_statements"}
    (row,) = [row for row in differences([hidden, seen]) if row.name == "settings.shared_preload_libraries"]
    assert row.values == ("not visible", "pg_stat_statements")
    (row,) = differences([{"engine.settings_seen": "all"}, seen])
    assert row.values == ("not set", "pg_stat_statements")
