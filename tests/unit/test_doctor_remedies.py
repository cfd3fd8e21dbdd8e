"""Following the fixes of `doctor --dsn` literally does no harm."""

from __future__ import annotations

import pytest

from ironbench.engines.examination import ExaminedServer, connections_reading
from ironbench.engines.postgres.probes.checkpoints import checkpoints
from ironbench.engines.postgres.probes.memory import shared_buffers
from ironbench.engines.postgres.probes.observation import statements
from ironbench.model.diagnosis import CheckResult

SERVER = ExaminedServer("PostgreSQL", "15.8", 150008, "shop", "bench", memory_bytes=16 << 30)


@pytest.mark.parametrize(
    ("libraries", "remedy"),
    [
        ("", "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'; and restart the server"),
        (
            'timescaledb, "of ours"',
            "ALTER SYSTEM SET shared_preload_libraries = 'timescaledb', 'of ours', 'pg_stat_statements'; and restart",
        ),
        (None, "append it to shared_preload_libraries, and restart the server"),
    ],
)
def test_a_library_is_loaded_beside_those_that_are_loaded_now(libraries: str | None, remedy: str) -> None:
    reading = statements([("f", "f", "t", libraries)], SERVER)
    assert isinstance(reading, CheckResult)
    assert reading.remedy.startswith(remedy) and reading.remedy.endswith("then CREATE EXTENSION pg_stat_statements")


@pytest.mark.parametrize(
    ("cache", "data", "remedy"),
    [(64 << 20, 90e6, "128MB"), (64 << 20, 1 << 30, "1280MB"), (128 << 20, 9e9, "4096MB"), (12 << 30, 99e9, "4096MB")],
)
def test_no_cache_is_asked_for_that_is_larger_than_the_data_need(cache: int, data: float, remedy: str) -> None:
    reading = shared_buffers([(str(cache), str(data))], SERVER)
    assert isinstance(reading, CheckResult)
    assert f"shared_buffers = '{remedy}'" in reading.remedy


@pytest.mark.parametrize(("log_per_s", "asked"), [("6.8e5", True), ("5.6e7", False), (None, False)])
def test_max_wal_size_is_blamed_for_no_checkpoints_that_somebody_asked_for(log_per_s: str | None, asked: bool) -> None:
    reading = checkpoints([("0", "96", "1000", "1GB", log_per_s, "565e6")], SERVER)
    assert isinstance(reading, CheckResult)
    assert reading.remedy.startswith("find the cause" if asked else "raise max_wal_size")


@pytest.mark.parametrize(("used", "severity"), [(79, "ok"), (80, "warning"), (94, "warning"), (95, "severe")])
def test_few_connections_that_are_left_are_a_warning_before_there_are_none(used: int, severity: str) -> None:
    assert connections_reading(used, 100, "a pooler").severity == severity
