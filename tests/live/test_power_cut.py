"""The power goes while PostgreSQL writes: what it confirmed is there afterwards, unless it was told not to care."""

import contextlib
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import own_server as pg
import pytest
from emulated import needs_devices

from ironbench.devices import arrange
from ironbench.devices.mounting import Mounted
from ironbench.errors import IronbenchError
from ironbench.model.system import Device, Partition
from ironbench.process import register

pytestmark = [pytest.mark.live, pytest.mark.alone, pytest.mark.long, needs_devices]
ROWS = 20_000
BEFORE_S = 3.0


@dataclass
class After:
    """What was found when the power was back."""

    at_stake: int
    confirmed: int = 0
    missing: list[int] = field(default_factory=list)
    trouble: str = ""
    """Why the database could not be read whole."""

    @property
    def whole(self) -> bool:
        return not self.missing and not self.trouble


@pytest.fixture(autouse=True)
def own_register(monkeypatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))


def cut_while_writing(
    point: Path, how: str, seed: int, into_checkpoint_s: float | None = None, **settings: str
) -> After:
    """A client inserts and updates, with checkpoints in between; then the power goes, so long into one if told."""
    device = Device("hdd-7200", (Partition("data", 1 << 30, str(point)),), "ext4", arrange.RAM)
    one = Mounted(device, seed, cuttable=True)
    try:
        system = pg.system(point, settings={"shared_buffers": "16MB", "max_wal_size": "1GB"} | settings)
        session = pg.start(system)
        session.query("CREATE TABLE t (id bigint PRIMARY KEY, pad text)")
        session.query(f"INSERT INTO t SELECT -n, repeat('x', 200) FROM generate_series(1, {ROWS}) n; CHECKPOINT")
        one.set_model_timing(on=True)
        confirmed, at_stake = written_until_cut(session, one, how, seed, into_checkpoint_s)
        one.restore_power()
        return examined(system, confirmed, at_stake)
    finally:
        one.stop()


def written_until_cut(
    session, one: Mounted, how: str, seed: int, into_checkpoint_s: float | None
) -> tuple[list[int], int]:
    confirmed: list[int] = []
    over, checkpoint = threading.Event(), threading.Event()

    def write() -> None:
        number = 0
        with contextlib.suppress(IronbenchError):
            while not over.is_set():
                number += 1
                changed = -(number * 7919 % ROWS + 1)
                session.query(
                    f"BEGIN; INSERT INTO t VALUES ({number}, repeat('y', 200)); "
                    f"UPDATE t SET pad = repeat('z', 200) WHERE id = {changed}; COMMIT"
                )
                confirmed.append(number)
                if number % 20 == 0:
                    checkpoint.set()
                    session.query("CHECKPOINT")

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(BEFORE_S)
    if into_checkpoint_s is not None:
        checkpoint.clear()
        assert checkpoint.wait(30)
        time.sleep(into_checkpoint_s)
    at_stake = one.cut(how, seed)
    for entry in register.entries():
        if entry.kind == "postgres" and entry.server:
            entry.server.signal(signal.SIGQUIT)
    over.set()
    writer.join()
    with contextlib.suppress(IronbenchError):
        session.stop()
    return confirmed, at_stake


def examined(system, confirmed: list[int], at_stake: int) -> After:
    after = After(at_stake, len(confirmed))
    try:
        session = pg.start(system)
    except IronbenchError as error:
        after.trouble = str(error)
        return after
    try:
        found = {int(row[0]) for row in session.query("SELECT id FROM t WHERE id > 0")}
        after.missing = [number for number in confirmed if number not in found]
        old = int(session.query("SELECT count(*) FROM t WHERE id < 0 AND length(pad) = 200")[0][0])
        if old != ROWS:
            after.trouble = f"{old} of {ROWS} old rows are left"
    except IronbenchError as error:
        after.trouble = str(error)
    finally:
        with contextlib.suppress(IronbenchError):
            session.stop()
    return after


@pytest.mark.parametrize("how", ["lose", "subset", "torn"])
def test_every_confirmed_row_survives_a_power_cut(tmp_path: Path, how: str) -> None:
    after = cut_while_writing(tmp_path / "d", how, 1)
    assert after.confirmed > 10
    assert after.whole, after


def test_without_fsync_the_loss_is_found(tmp_path: Path) -> None:
    after = cut_while_writing(tmp_path / "d", "lose", 1, fsync="off")
    assert after.at_stake > 0
    assert not after.whole


def test_without_full_page_writes_torn_pages_are_found(tmp_path: Path) -> None:
    settings = {"full_page_writes": "off", "checkpoint_timeout": "30s", "bgwriter_delay": "10ms"}
    # Pages are torn while a checkpoint writes them: somewhere in its first tenths of a second.
    tries = (cut_while_writing(tmp_path / f"d{seed}", "torn", seed, seed * 25e-3, **settings) for seed in range(1, 9))
    assert any(not after.whole for after in tries)
