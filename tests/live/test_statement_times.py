"""Times of the single commands in a user's script: their percentiles, in the record and in the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from user import User

pytestmark = pytest.mark.live
SCRIPT = """\\set slow random(1, 10)
select pg_sleep(case when :slow = 1 then 0.03 else 0.001 end);
select 1;
"""


@pytest.mark.long
def test_a_command_that_is_slow_at_times_has_percentiles_of_its_own_over_all_trials(place: Path, dsn: str) -> None:
    user = User(place)
    (user.home / "one.sql").write_text(SCRIPT)
    words = ("--clients", "4", "--duration", "1s", "--warmup", "0.3s", "--repeats", "2", "-r", "--no-observe")
    user.measured("run", "script", "one.sql", "--dsn", dsn, *words)
    for record in user.records():
        slow, quick = record["statements"]
        assert slow["count"] > 299 and slow["p50_s"] < 0.03 <= slow["p99_s"], slow
        assert 0 < quick["p50_s"] <= quick["p95_s"] <= quick["p99_s"] and quick["p50_s"] < slow["p50_s"]
    report = user("report", "--format", "md")
    assert "| median | 95th percentile | 99th percentile |" in report.stdout, report.stdout + report.stderr
    few = user("run", "script", "one.sql", "--dsn", dsn, "--transactions", "3", "-r", "--no-observe")
    assert few.code in (0, 3), few.stderr
    assert "p99_s" not in user.records()[-1]["statements"][0] or user.records()[-1]["statements"][0]["p99_s"] is None
