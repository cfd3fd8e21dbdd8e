"""A gate that uses slices explains a slowdown: each configuration has one observed trial, which no verdict uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from user import User

pytestmark = pytest.mark.live

TABLE = (
    "create table item (id int primary key, code int); insert into item select n, n from generate_series(1, 20000) n;"
)
INDEX = "create index on item (code);"
LAB = """question = "Is the schema without the index slower?"
[system]
memory = "32MB"
[workload]
name = "script"
files = ["read.sql"]
[load]
clients = 2
duration = "1250ms"
warmup = "0.1s"
[vary.schema]
old = {{ data.setup = ["old.sql"] }}
new = {{ data.setup = ["new.sql"] }}
[measure]
repeats = {blocks}
quiet = "0s"
rates = "none"
method = "slices"
slice = "250ms"
"""


def records(lab: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(lab.glob("trials/*/record.json"))]


@pytest.mark.long
@pytest.mark.parametrize("blocks", [1, 6])
def test_a_gate_by_slices_names_the_plan_and_the_statement_that_a_dropped_index_changed(
    user: User, blocks: int
) -> None:
    (user.home / "old.sql").write_text(f"{TABLE}\n{INDEX}\nanalyze;\n")
    (user.home / "new.sql").write_text(f"{TABLE}\nanalyze;\n")
    (user.home / "read.sql").write_text("\\set c random(1, 20000)\nselect id from item where code = :c;\n")
    (user.home / "schema.toml").write_text(LAB.format(blocks=blocks))
    with user.begun("lab", "run", "schema.toml", "--results", "lab", "--gate", "--json") as run:
        told, _ = run.end(within_s=300.0)
    assert told.code == 4, told.stderr
    (check,) = told.document["checks"]
    assert (check["outcome"], len(check["ratios"])) == ("cannot tell" if blocks < 6 else "slower", blocks)
    plan, *statements = check["causes"]
    assert plan["cause"] == "other plan"
    assert any(step.startswith("Seq Scan on item") for step in plan["more"])
    assert any("Index" in step for step in plan["less"])
    assert bool(statements) is (blocks >= 6), "times of one trial explain no slowdown that is not shown"
    for statement in statements:
        assert (statement["cause"], statement["source"]) == ("slower statement", "clients")
        assert statement["after_s"] > 2 * statement["before_s"]

    found = records(user.home / "lab")
    in_blocks, observed = ([one for one in found if one["purpose"] == purpose] for purpose in ("lab", "observed"))
    assert (len(in_blocks), len(observed)) == (2 * blocks, 2) and len(found) == 2 * blocks + 2
    assert {one["cell"]["name"] for one in observed} == {"schema=old", "schema=new"}
    assert all(one["statements"] and one["cell"]["load"]["report_per_statement"] for one in observed)
    assert not any(one["statements"] or one["cell"]["load"]["report_per_statement"] for one in in_blocks)

    assert user("gate", "lab", "-o", "gate.md", "-o", "gate.xml", "-o", "gate.txt").code == 4
    for name in ("gate.md", "gate.xml", "gate.txt"):
        page = " ".join((user.home / name).read_text().split())
        assert "Seq Scan on item instead of" in page and "select id from item" in page, page
    failure = ElementTree.parse(user.home / "gate.xml").getroot().find("testcase/failure")
    assert failure is not None and "Seq Scan on item" in str(failure.text)
    assert user("lab", "resume", "lab").code in (0, 3) and len(records(user.home / "lab")) == len(found)
    explained = user("explain", "schema=old", "schema=new", "--results", "lab", "--format", "json").document
    assert explained["explanation"]["observed"] and explained["explanation"]["plans"]
    assert user.nothing_runs()
