"""Allowed settings of servers that ironbench starts, without querying a server."""

from pathlib import Path

import pytest

from ironbench import engines
from ironbench.engines import server_settings
from ironbench.errors import InputError
from ironbench.model.system import System


def test_a_cache_that_is_set_twice_too_small_or_beyond_the_machine_is_refused() -> None:
    def refused(given: int, declared: dict[str, str]) -> InputError:
        with pytest.raises(InputError) as caught:
            server_settings.require_memory(given, declared, "pool", 8 << 20, "it needs a pool of 8 MiB")
        return caught.value

    assert refused(64 << 20, {"pool": "1GB"}).hint == "remove one of the two"
    assert refused(1 << 20, {}).cause == "it needs a pool of 8 MiB"
    assert refused(1 << 60, {}).cause.startswith("this machine has ")
    server_settings.require_memory(8 << 20, {"other": "1"}, "pool", 8 << 20, "it needs a pool of 8 MiB")


def test_the_size_of_a_cache_that_is_set_in_units_of_the_server_is_not_known() -> None:
    assert server_settings.cache_bytes(None, {"pool": "16384"}, "pool", 128 << 20) is None
    assert server_settings.cache_bytes(None, {}, "pool", 128 << 20) == 128 << 20
    assert server_settings.cache_bytes(1 << 30, {}, "pool", 128 << 20) == 1 << 30


@pytest.mark.parametrize(("value", "refused"), [("27", True), ("28", False), ("", False), ("many", False)])
def test_connections_that_are_set_leave_room_for_the_clients_and_for_ironbench(value: str, refused: bool) -> None:
    declared = {"max_connections": value}
    if not refused:
        return server_settings.require_connections(8, declared)
    with pytest.raises(InputError, match="8 clients and ironbench's own connections need at least 28"):
        server_settings.require_connections(8, declared)
    return None


def test_a_setting_of_ironbench_s_own_is_refused_with_its_cause() -> None:
    with pytest.raises(InputError, match="reserved: the server listens on a private socket only"):
        server_settings.refuse_ours("port", "1", "the server listens on a private socket only")
    server_settings.refuse_ours("work_mem", "4MB", None)
    with pytest.raises(InputError, match="contains a line break"):
        server_settings.require_one_line("--set a=b", "b\nc")


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("postgres", "default_statistics_target"),
        ("mariadb", "innodb_stats_persistent_sample_pages"),
        ("mariadb", "innodb_fill_factor"),
        ("sqlite", "analysis_limit"),
    ],
)
def test_data_of_a_lab_are_loaded_under_the_settings_that_their_statistics_and_pages_come_from(
    engine: str, name: str
) -> None:
    """Otherwise a lab that varies one of them would compare the same data twice."""
    system = System(engine, "t", {name: "50", "not_of_the_files": "1"})
    plain = engines.get(engine).loading_system(system, Path("/nowhere"))
    assert plain.settings[name] == "50" and "not_of_the_files" not in plain.settings
