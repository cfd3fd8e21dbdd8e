"""Settings that can lose committed data are named in records, plans, comparisons and screens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from labfactory import lab, said, studied, trials

from ironbench import engines
from ironbench.engines.durability import Hazard, losses
from ironbench.model.lab import Lab
from ironbench.model.note import Note
from ironbench.model.record import CAN_LOSE_DATA, SUSPICIOUS, Record
from ironbench.records import described, judge
from ironbench.report import wording
from ironbench.report.wording.storage import EVENTS, LOSSES
from ironbench.study import screen as screening

SAFE = {
    "postgres": {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"},
    "mariadb": {
        "innodb_flush_log_at_trx_commit": "1",
        "innodb_doublewrite": "ON",
        "sync_binlog": "0",
        "log_bin": "OFF",
    },
    "sqlite": {"synchronous": "2", "journal_mode": "wal"},
    "slapd": {"dbnosync": "off", "olcDbNoSync": "FALSE", "olcDbEnvFlags": "writemap"},
}


@pytest.mark.parametrize(
    ("engine", "setting", "value"),
    [
        ("postgres", "synchronous_commit", "off"),
        ("postgres", "FSYNC", "false"),
        ("postgres", "full_page_writes", "0"),
        ("mariadb", "innodb_flush_log_at_trx_commit", "2"),
        ("mariadb", "innodb_flush_log_at_trx_commit", "0"),
        ("mariadb", "innodb_doublewrite", "OFF"),
        ("mariadb", "log_bin", "ON"),
        ("sqlite", "synchronous", "1"),
        ("sqlite", "synchronous", "off"),
        ("sqlite", "journal_mode", "memory"),
        ("slapd", "olcDbNoSync", "TRUE"),
    ],
)
def test_a_value_that_can_lose_data_is_found_and_safe_values_are_not(engine: str, setting: str, value: str) -> None:
    one = engines.get(engine)
    assert judge.durability(one, SAFE[engine]) == ()
    named = {name: held for name, held in SAFE[engine].items() if name.lower() != setting.lower()}
    (warning,) = judge.durability(one, {**named, setting: value})
    assert warning.code == CAN_LOSE_DATA and warning.code not in SUSPICIOUS


def test_every_hazard_of_an_engine_has_words() -> None:
    hazards = [one for name in engines.names() for one in engines.get(name).traits.hazards]
    assert len(hazards) > 10
    assert {one.event for one in hazards} == EVENTS.keys() and {one.loss for one in hazards} == LOSSES.keys()


def test_a_setting_that_needs_another_one_counts_only_with_it() -> None:
    hazards = [Hazard("sync", ("0",), "crash", "database", needs="log")]
    assert not losses(hazards, {"sync": "0"}) and not losses(hazards, {"sync": "0", "log": "OFF"})
    assert [one.setting for one in losses(hazards, {"sync": "0", "log": "ON"})] == ["sync"]


COMMIT = {"synchronous_commit": ("on", "off")}
OFF = "synchronous_commit=off"
LOST = Note(CAN_LOSE_DATA, {"text": "synchronous_commit=off can lose data (a crash may lose the last commits)"})


def measured(plan: Lab, off: float) -> list[Record]:
    found = trials(plan, {"synchronous_commit=on": 1000.0, OFF: off}, 0.02)
    return [replace(one, warnings=(LOST,)) if one.cell.name == OFF else one for one in found]


@pytest.mark.parametrize("off", [1500.0, 1000.0, 700.0])
def test_a_comparison_names_the_data_that_only_one_side_can_lose(off: float) -> None:
    plan = lab(COMMIT)
    study = studied(plan, measured(plan, off))
    assert [finding.losses for finding in study.findings] == [(LOST,)]
    assert LOST.values["text"] in said(study)
    assert not studied(plan, trials(plan, {"synchronous_commit=on": 1000.0, OFF: off}, 0.02)).findings[0].losses


def test_a_plan_warns_of_declared_settings_that_can_lose_data() -> None:
    setups = {setup.cell.name: setup.system for setup in lab(COMMIT).setups}
    assert wording.texts(described.losses(setups[OFF])) == [LOST.values["text"]]
    assert described.losses(setups["synchronous_commit=on"]) == []


def test_a_screen_names_the_data_that_the_better_level_can_lose() -> None:
    plan = lab({**COMMIT, "work_mem": ("4MB", "64MB")})
    assert wording.texts(screening._losses(plan, "synchronous_commit", "off")) == [LOST.values["text"]]
    assert screening._losses(plan, "synchronous_commit", "on") == ()
    assert screening._losses(plan, "work_mem", "64MB") == ()
