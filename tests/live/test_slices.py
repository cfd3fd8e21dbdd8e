"""Interleaved systems are frozen except in their turns and have one record per block, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from patience import eventually
from user import User

from ironbench.host import processes, register
from ironbench.lab.slices.slice_plan import LENGTHS_S

pytestmark = pytest.mark.live

LAB = """
question = "Does work_mem matter?"
[system]
memory = "32MB"
[workload]
name = "{workload}"
[load]
clients = 2
duration = "{duration}"
warmup = "0.2s"
think_time = "3ms"
[vary.work_mem]
small = {{ system.set.work_mem = "4MB" }}
large = {{ system.set.work_mem = "8MB" }}
[measure]
repeats = {blocks}
quiet = "0s"
rates = "none"
method = "slices"
slice = "250ms"
"""


def written(user: User, workload: str, blocks: int, duration: str = "1500ms") -> Path:
    path = user.home / "turns.toml"
    path.write_text(LAB.format(workload=workload, blocks=blocks, duration=duration))
    return path


def records(user: User) -> list[dict[str, Any]]:
    """Returns all records except those of trials with observers, which follow the blocks (`test_slices_reasons`)."""
    found = [json.loads(path.read_text()) for path in sorted(user.results.glob("labs/*/trials/*/record.json"))]
    return [one for one in found if one["purpose"] != "observed"]


def servers(user: User) -> list[register.RegisterEntry]:
    found = [register.read(path) for path in user.register.glob("*.json")]
    return [one for one in found if one is not None and one.server is not None]


def test_each_system_of_a_block_has_one_record_of_its_slices_and_none_works_while_it_is_frozen(user: User) -> None:
    told = user("lab", "run", str(written(user, "tpcb-like", 2)))
    assert told.code in (0, 3), told
    found = records(user)
    assert [(one["cell"]["name"], one["block"]) for one in found] == [
        (f"work_mem={level}", block) for level in ("large", "small") for block in (0, 1)
    ]
    for one in found:
        metrics = one["metrics"]
        assert one["status"] in ("ok", "suspect"), one["causes"]  # its checks pass: every commit is accounted for
        assert (metrics["slices"], metrics["slice_length_s"]) == (6, 0.25)
        assert 0 < metrics["transactions"] == pytest.approx(metrics["throughput"] * one["elapsed_s"])
        assert (metrics["frozen_cpu_s"], metrics["frozen_io_bytes"]) == (0, 0)
        assert metrics["slice_checkpoints"] == 3
        assert metrics["slice_paid_s"] > 0  # at the end of its own turns …
        assert metrics["slice_debt_s"] > 0  # … and after the last one
        assert "the other systems are paused" in one["conditions"]["slices"]
    began = {(one["block"], one["turns_since"]) for one in found}
    assert len(began) == 2
    assert user.nothing_runs()
    assert user("lab", "resume", "turns.toml").code == told.code
    assert len(records(user)) == 4


@pytest.mark.long
def test_cells_of_one_running_server_take_turns_on_the_same_tables_and_their_checks_see_the_work_of_all(
    user: User, dsn: str
) -> None:
    text = LAB.format(workload="tpcb-like", blocks=2, duration="1500ms").replace('memory = "32MB"', f'dsn = "{dsn}"')
    levels = {level: f"{dsn} options='-c work_mem={level}'" for level in ("4MB", "8MB")}
    for old, level in zip(("small", "large"), levels, strict=True):
        text = text.replace(f'{{ system.set.work_mem = "{level}" }}', f'{{ system.dsn = "{levels[level]}" }}')
        assert f"{old} = {{ system.dsn" in text
    file = user.home / "given.toml"
    file.write_text(text)
    assert "are idle on the same server" in " ".join(user("lab", "plan", str(file)).stdout.split())
    told = user("lab", "run", str(file))
    assert told.code in (0, 3), told
    found = records(user)
    assert [one["attempt"] for one in found] == [1, 1, 1, 1]
    for one in found:
        assert one["status"] in ("ok", "suspect"), one["causes"]
        assert (one["metrics"]["slices"], one["metrics"]["slice_length_s"]) == (6, 0.25)
        assert "frozen_cpu_s" not in one["metrics"]
        assert "idle on the same server" in one["conditions"]["slices"]
    history = [check for one in found for check in one["checks"] if check["name"] == "history rows = commits"]
    assert len(history) == 4
    of_both = [sum(one["metrics"]["transactions"] for one in found if one["block"] == block) for block in (0, 1)]
    assert all(float(check["actual"]) >= of_both[one["block"]] for one, check in zip(found, history, strict=True))


@pytest.mark.long
def test_rated_cells_are_measured_by_trials_beside_slices_of_a_length_that_a_pilot_chose(
    user: User,
) -> None:
    file = written(user, "select-only", 2)
    changed = {
        'duration = "1500ms"': 'duration = "2500ms"',
        'rates = "none"': 'rates = ["50%"]',
        'think_time = "3ms"': 'cache = "hot"',
        'slice = "250ms"': "",
    }
    for old, new in changed.items():
        file.write_text(file.read_text().replace(old, new))
    with user.begun("lab", "run", str(file)) as run:
        told, _ = run.end(within_s=240.0)
    assert told.code in (0, 3), told
    found = records(user)
    own = [one for one in found if one["purpose"] == "lab"]
    by_slices = [one for one in own if one["turns_since"]]
    rated = [one for one in own if not one["turns_since"]]
    assert len(by_slices) == len(rated) == 4
    (length_s,) = {one["metrics"]["slice_length_s"] for one in by_slices}
    assert length_s in LENGTHS_S
    piloted = [
        one["block"] for one in by_slices if "a pilot trial chose the slice length" in one["conditions"]["slices"]
    ]
    assert piloted == [0, 0]
    assert all(one["conditions"]["cache"].startswith("hot") for one in own)
    assert all("rate" in one["conditions"] and one["cell"]["load"]["rate"] for one in rated)
    assert all(one["attempt"] == 1 and one["status"] in ("ok", "suspect") for one in own)
    assert len([one for one in found if one["purpose"] == "peak"]) == 3
    assert user.nothing_runs()


@pytest.mark.long
def test_timeouts_of_the_server_do_not_count_the_turns_of_others(user: User) -> None:
    file = written(user, "tpcb-like", 1, "2s")
    short = 'statement_timeout = "200ms", checkpoint_timeout = "30s", lock_timeout = "200ms", work_mem'
    file.write_text(
        file.read_text().replace("system.set.work_mem", f"system.set = {{ {short}").replace('MB" }', 'MB" } }')
    )
    told = user("lab", "run", str(file))
    assert told.code in (0, 3), told
    assert [(one["metrics"]["failed"], one["metrics"]["slices"]) for one in records(user)] == [(0, 8)] * 2


@pytest.mark.long
def test_systems_on_emulated_devices_take_turns_and_neither_they_nor_their_devices_work_while_frozen(
    user: User,
) -> None:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("emulated devices need root and FUSE")
    text = LAB.format(workload="tpcb-like", blocks=1, duration="2s").partition("[vary.work_mem]")
    devices = """
[devices]
disk = { model = "hdd-7200(cache=on)", capacity = "500MiB" }
flash = { model = "ssd-sata-2011(cache=on)", capacity = "500MiB" }
[vary.device]
disk = { layout.data = "disk", layout.log = "disk" }
flash = { layout.data = "flash", layout.log = "flash" }
again = { layout.data = "flash", layout.log = "flash", set = { work_mem = "8MB" } }
"""
    file = user.home / "devices.toml"
    file.write_text(text[0] + devices + "[measure]" + text[2].partition("[measure]")[2])
    told = user("lab", "run", str(file))
    assert told.code in (0, 3), told
    found = {one["cell"]["name"].partition("=")[2]: one for one in records(user)}
    assert set(found) == {"disk", "flash", "again"}
    for one in found.values():
        assert one["status"] in ("ok", "suspect"), one["causes"]
        assert one["metrics"]["frozen_io_bytes"] <= 64 << 10  # metadata that its file system writes by itself
        assert one["metrics"]["frozen_cpu_s"] < 0.01 * one["elapsed_s"]
        assert one["metrics"]["device_flush_latency_p99_s{role=log}"] > 0
        assert "emulated" in {warning["code"] for warning in one["warnings"]}
    slow, fast = (found[name]["metrics"]["device_flush_latency_p99_s{role=log}"] for name in ("disk", "flash"))
    assert slow > 3 * fast  # a device that accumulated burst credit would hide it
    assert user.nothing_runs()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_a_lab_while_systems_are_frozen_leaves_none_and_resume_repeats_the_block(
    user: User, number: int
) -> None:
    file = written(user, "select-only", 2, "4s")
    with user.begun("lab", "run", str(file)) as run:
        run.wait_for("block 1, 2 systems running")
        assert eventually(lambda: len(servers(user)) == 2)
        pids = [one.server for one in servers(user)]
        run.end(number)
    assert eventually(lambda: not any(one.alive() for one in pids if one is not None))
    assert eventually(user.nothing_runs)
    assert not any(one["status"] in ("ok", "suspect") for one in records(user))
    file.write_text(file.read_text())
    told = user("lab", "resume", "turns.toml")
    assert told.code in (0, 3), told
    good = [one for one in records(user) if one["status"] in ("ok", "suspect")]
    assert len(good) == 4
    assert len({(one["block"], one["turns_since"]) for one in good}) == 2


@pytest.mark.long
def test_a_block_that_lost_a_frozen_system_has_nothing_to_compare_and_is_measured_again(user: User) -> None:
    with user.begun("lab", "run", str(written(user, "select-only", 1, "5s"))) as run:
        run.wait_for("block 1, 2 systems running")
        victim = servers(user)[0].server
        assert victim is not None
        os.kill(victim.pid, signal.SIGKILL)
        told, _ = run.end(within_s=90.0)
    assert told.code in (0, 3), told
    found = records(user)
    lost = [one for one in found if one["attempt"] == 1]
    assert len(lost) == 2
    assert {one["status"] for one in lost} <= {"voided", "failed"}
    assert any(one["code"] == "block-not-whole" for lost_one in lost for one in lost_one["causes"])
    assert len([one for one in found if one["attempt"] == 2 and one["status"] in ("ok", "suspect")]) == 2
    assert not any(processes.identify(one.server.pid) for one in servers(user) if one.server)
