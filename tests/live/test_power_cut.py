"""The power is cut while a server writes: committed data survive, unless settings allow their loss."""

import contextlib
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import own_server as pg
import pytest
from emulated import needs_devices
from factories import require_installed

from ironbench import engines
from ironbench.devices import arrange
from ironbench.devices.mounting import Mounted
from ironbench.errors import IronbenchError
from ironbench.host import register
from ironbench.model.system import Device, Partition

pytestmark = [
    pytest.mark.live,
    pytest.mark.alone,
    pytest.mark.long,
    needs_devices,
    pytest.mark.usefixtures("own_register"),
]
ROWS = 20_000
BEFORE_S = 3.0


@dataclass(frozen=True)
class Make:
    """Differences between the tested servers."""

    small: dict[str, str]
    """Settings with a small cache, so that pages are written all the time."""
    numbers: str
    kill: signal.Signals
    """Signal after which the server writes nothing more."""


MAKES = {
    "postgres": Make(
        {"shared_buffers": "16MB", "max_wal_size": "1GB"}, f"generate_series(1, {ROWS}) n", signal.SIGQUIT
    ),
    "mariadb": Make({"innodb_buffer_pool_size": "16M"}, f"(select seq n from seq_1_to_{ROWS}) s", signal.SIGKILL),
}


@dataclass
class After:
    """State after the power was restored."""

    at_stake: int
    confirmed: int = 0
    missing: list[int] = field(default_factory=list)
    trouble: str = ""
    """Reason why the database could not be read completely."""

    @property
    def whole(self) -> bool:
        return not self.missing and not self.trouble


def cut_while_writing(
    point: Path,
    how: str,
    seed: int,
    into_checkpoint_s: float | None = None,
    engine: str = "postgres",
    checkpoints: bool = True,
    **settings: str,
) -> After:
    """A client inserts and updates, with checkpoints in between; then the power is cut, optionally during a
    checkpoint."""
    device = Device("hdd-7200", (Partition("data", 1 << 30, str(point)),), "ext4", arrange.RAM)
    one = Mounted(device, seed, cuttable=True)
    try:
        system = pg.system(point, engine, settings=MAKES[engine].small | settings)
        session = pg.start(system)
        session.query("CREATE TABLE t (id bigint PRIMARY KEY, pad text)")
        session.query(f"INSERT INTO t SELECT -n, repeat('x', 200) FROM {MAKES[engine].numbers}")
        session.query(checkpoint(engine))
        one.set_model_timing(on=True)
        confirmed, at_stake = written_until_cut(session, one, how, seed, into_checkpoint_s, checkpoints)
        one.restore_power()
        return examined(system, confirmed, at_stake)
    finally:
        one.stop()


def checkpoint(engine: str) -> str:
    return engines.get(engine).traits.dialect.checkpoint()


def written_until_cut(
    session, one: Mounted, how: str, seed: int, into_checkpoint_s: float | None, checkpoints: bool
) -> tuple[list[int], int]:
    confirmed: list[int] = []
    over, begun = threading.Event(), threading.Event()

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
                if checkpoints and number % 20 == 0:
                    begun.set()
                    session.query(checkpoint(session.engine))

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(BEFORE_S)
    if into_checkpoint_s is not None:
        begun.clear()
        assert begun.wait(30)
        time.sleep(into_checkpoint_s)
    at_stake = one.cut(how, seed)
    for entry in register.entries():
        if entry.kind == session.engine and entry.server:
            entry.server.signal(MAKES[session.engine].kill)
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


@pytest.fixture(params=MAKES)
def engine(request: pytest.FixtureRequest) -> str:
    require_installed(request.param)
    return request.param


@pytest.mark.parametrize("how", ["lose", "subset", "torn"])
def test_every_confirmed_row_survives_a_power_cut(tmp_path: Path, engine: str, how: str) -> None:
    after = cut_while_writing(tmp_path / "d", how, 1, engine=engine)
    assert after.confirmed > 10
    assert after.whole, after


@pytest.mark.parametrize(
    ("engine", "setting", "value"),
    [
        ("postgres", "fsync", "off"),
        ("mariadb", "innodb_flush_log_at_trx_commit", "2"),
        ("mariadb", "innodb_flush_log_at_trx_commit", "0"),
    ],
)
def test_without_flushing_the_loss_is_found(tmp_path: Path, engine: str, setting: str, value: str) -> None:
    require_installed(engine)
    # There are no checkpoints in between, because a checkpoint would also flush the log. A log that is flushed once a
    # second is complete if the cut comes right after a flush.
    tries = (
        cut_while_writing(tmp_path / f"d{seed}", "lose", seed, engine=engine, checkpoints=False, **{setting: value})
        for seed in range(1, 6)
    )
    assert any(not after.whole for after in tries)


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("postgres", {"full_page_writes": "off", "checkpoint_timeout": "30s", "bgwriter_delay": "10ms"}),
        ("mariadb", {"innodb_doublewrite": "OFF"}),
    ],
)
def test_without_copies_of_whole_pages_torn_ones_are_found(tmp_path: Path, engine: str, settings) -> None:
    require_installed(engine)
    # Pages are torn while a checkpoint writes them, in its first tenths of a second.
    tries = (
        cut_while_writing(tmp_path / f"d{seed}", "torn", seed, seed * 25e-3, engine=engine, **settings)
        for seed in range(1, 9)
    )
    assert any(not after.whole for after in tries)
