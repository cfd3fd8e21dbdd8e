"""The worked cases of the guide "Why is it slower?": the profile names the function and the activity."""

from __future__ import annotations

import pytest
from user import User

from ironbench import _core
from ironbench.model.observer import CPU, LOCKS
from ironbench.records.labs import LabDirectory
from ironbench.study.explain import Explanation
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
duration = "2s"
warmup = "0.5s"
[vary.change]
@CHANGE@
[measure]
repeats = 6
quiet = "0s"
rates = "none"
profile = "all:499"
"""
ROWS = """
CREATE TABLE item (id int PRIMARY KEY, number int NOT NULL, words text NOT NULL) WITH (fillfactor = 50);
INSERT INTO item SELECT id, id, repeat('many words ' || id || ' ', 20) FROM generate_series(1, 20000) id;
"""
LONG_ROWS = """
CREATE TABLE item (id int PRIMARY KEY, number int NOT NULL, words text STORAGE PLAIN NOT NULL) WITH (fillfactor = 75);
INSERT INTO item SELECT id, id, (SELECT string_agg(to_char(id * g % 1000, 'FM000'), ' ') FROM generate_series(1, 450) g)
  FROM generate_series(1, 12000) id;
"""


def explained(user: User, script: str, change: str, **files: str) -> tuple[Explanation, ProfileComparison]:
    """Runs the lab; returns the explanation of the difference between its two configurations, and its profile."""
    for name, text in {"rows": ROWS, "work": f"\\set id random(1, :ids)\n{script}\n", **files}.items():
        (user.home / f"{name}.sql").write_text(text)
    (user.home / "why.toml").write_text(LAB.replace("@CHANGE@", change))
    told = user("lab", "run", "why.toml")
    assert told.code in (0, 3), told
    (plan,) = user.results.rglob("plan.json")
    directory = LabDirectory(plan.parent)
    study = lab_study(directory.lab(), directory.records(), directory.store)
    (found,) = study.explanations
    assert found.profile is not None
    return found, found.profile


def more(found: ProfileComparison) -> set[tuple[str, str]]:
    """Returns the areas and activities that take significantly more time in the second configuration."""
    return {(one.area, one.name) for one in found.activities if one.called and one.delta_s > 0}


def functions(found: ProfileComparison) -> set[str]:
    """Returns the functions that take more time, with their callers."""
    return {name for one in found.frames if one.delta_s > 0 for name in (one.name, *one.callers)}


def test_a_dropped_index_is_named_by_the_functions_that_read_the_table(user: User) -> None:
    change = "none = {}\ndropped = { data.setup = ['rows.sql', 'drop.sql'] }"
    drop = "ALTER TABLE item DROP CONSTRAINT item_pkey;"
    _, found = explained(user, "SELECT number FROM item WHERE id = :id;", change, drop=drop)
    assert ("engine:cpu", "table access") in more(found)
    assert {"heap_getnextslot", "heapgettup_pagemode", "SeqNext", "ExecSeqScan"} & functions(found)


def test_wal_compression_is_named_by_the_compression_functions_and_takes_cpu_time(user: User) -> None:
    # Checkpoints follow each other, so most updates write a full page image. Commits do not wait for WAL.
    settings = '[system.set]\nmax_wal_size = "32MB"\nsynchronous_commit = "off"'
    change = (
        f'off = {{ system.set.wal_compression = "off" }}\non = {{ system.set.wal_compression = "pglz" }}\n{settings}'
    )
    update = "UPDATE item SET number = number + 1 WHERE id = :id % 12000 + 1;"
    whole, found = explained(user, update, change, rows=LONG_ROWS)
    assert ("engine:cpu", "WAL compression") in more(found)
    assert found.main is not None and found.main.area == "engine:cpu"
    assert {"pglz_compress", "XLogCompressBackupBlock"} & {found.main.name, *found.main.callers}
    assert whole.waterfall is not None
    assert next(step for step in whole.waterfall.steps if step.part == CPU).low_s > 0


def test_a_row_that_all_transactions_update_is_named_by_the_wait_for_its_lock(user: User) -> None:
    change = "spread = {}\nhot = { workload.define.ids = 1 }"
    # Each transaction keeps its lock for some time after the update.
    script = "BEGIN;\nUPDATE item SET number = number + 1 WHERE id = :id;\n\\sleep 2 ms\nCOMMIT;"
    whole, found = explained(user, script, change)
    assert ("engine:blocked", "row and table locks") in more(found)
    assert found.main is not None and found.main.area == "engine:blocked"
    assert found.main.through in {"XactLockTableWait", "heap_acquire_tuplock"}
    assert whole.waterfall is not None
    assert max(whole.waterfall.steps, key=lambda step: step.delta_s).part == LOCKS
