"""The chart of verdicts names outcomes and changes as the tables beside it do."""

from __future__ import annotations

import json

from labfactory import lab, studied, trials

from ironbench.report.charts.effects import effects


def test_large_gains_are_multiples_and_open_comparisons_are_inconclusive() -> None:
    plan = lab({"log": ("disk", "memory", "ssd")}, blocks=4)
    throughput = dict(zip((setup.cell.name for setup in plan.setups), (1000.0, 3000.0, 900.0), strict=True))
    (chart,) = effects(studied(plan, trials(plan, throughput)))
    rows = chart.specification["datasets"]["effects"]
    assert [row["conclusion"] for row in rows] == ["inconclusive", "inconclusive"]
    gain, loss = (row["text"].partition(" · ")[0] for row in rows)
    assert gain.startswith(("2.", "3.")) and gain.endswith("x")
    assert loss.startswith("−") and loss.endswith("%")
    assert "cannot tell" not in json.dumps(chart.specification, default=str)
