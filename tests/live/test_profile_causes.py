"""A worked case of the guide "Why is it slower?": the profile names the function and the activity."""

from __future__ import annotations

import pytest
from user import User

from ironbench import _core
from ironbench.records.labs import LabDirectory
from ironbench.study.labstudy import lab_study
from ironbench.study.profiled import ProfileComparison

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.alone,
    pytest.mark.skipif(bool(_core.available(("cpu", "wait"))), reason="this machine does not permit profiles"),
]

LAB = """
question = "Why is it slower?"
[data]
setup = ["rows.sql"]
[workload]
name = "script"
files = ["work.sql"]
[workload.define]
ids = 20000
[load]
clients = 4
duration = "3s"
warmup = "0.5s"
[vary.change]
@CHANGE@
[measure]
repeats = 4
quiet = "0s"
rates = "none"
profile = "all:499"
"""
ROWS = """
CREATE TABLE item (id int PRIMARY KEY, number int NOT NULL, words text NOT NULL) WITH (fillfactor = 50);
INSERT INTO item SELECT id, id, repeat('many words ' || id || ' ', 20) FROM generate_series(1, 20000) id;
"""


def compared(user: User, script: str, change: str, **more: str) -> ProfileComparison:
    """Runs the lab; returns the comparison of its two configurations."""
    (user.home / "rows.sql").write_text(ROWS)
    (user.home / "work.sql").write_text(f"\\set id random(1, :ids)\n{script}\n")
    for name, text in more.items():
        (user.home / f"{name}.sql").write_text(text)
    (user.home / "why.toml").write_text(LAB.replace("@CHANGE@", change))
    told = user("lab", "run", "why.toml")
    assert told.code in (0, 3), told
    (plan,) = user.results.rglob("plan.json")
    directory = LabDirectory(plan.parent)
    study = lab_study(directory.lab(), directory.records(), directory.store)
    (found,) = (one.profile for one in study.explanations if one.profile)
    return found


def more(found: ProfileComparison) -> set[tuple[str, str]]:
    """Returns the areas and activities that take significantly more time in the second configuration."""
    return {(one.area, one.name) for one in found.activities if one.called and one.delta_s > 0}


def functions(found: ProfileComparison) -> set[str]:
    """Returns the functions that take more time, with their callers."""
    return {name for one in found.frames if one.delta_s > 0 for name in (one.name, *one.callers)}


def test_a_dropped_index_is_named_by_the_functions_that_read_the_table(user: User) -> None:
    change = "none = {}\ndropped = { data.setup = ['rows.sql', 'drop.sql'] }"
    drop = "ALTER TABLE item DROP CONSTRAINT item_pkey;"
    found = compared(user, "SELECT number FROM item WHERE id = :id;", change, drop=drop)
    assert ("engine:cpu", "table access") in more(found)
    assert {"heap_getnextslot", "heapgettup_pagemode", "SeqNext", "ExecSeqScan"} & functions(found)
