"""Loading of TPC-H-derived tables: complete on every engine, resumed after an interruption, never used partially."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from factories import require_installed

from ironbench import engines
from ironbench.errors import FailureError, InputError
from ironbench.host import processes
from ironbench.model.session import Session
from ironbench.model.system import Layout, System
from ironbench.printer import Printer
from ironbench.trial.load import Loaded, pieces, prepare
from ironbench.workloads import tpch_tables

pytestmark = pytest.mark.live

ENGINES = engines.able(("data", "queries"))
ROWS = {
    "lineitem": 60_175,
    "orders": 15_000,
    "partsupp": 8_000,
    "part": 2_000,
    "customer": 1_500,
    "supplier": 100,
    "nation": 25,
    "region": 5,
}
"""Row counts of the reference data at scale factor 0.01."""
SUMS = (
    *("215218976047", "1802759573", "1598371", "1992-01-04", "1998-12-25", "7", "40093000", "196390"),
    *("yellow white puff orange rosy", "11331746", "40079419"),
)
"""Sums over the same data: see `sums`."""


@contextmanager
def running(engine: str, data: Path, clients: int = 4) -> Iterator[Session]:
    require_installed(engine)
    settings = {"fsync": "off"} if engine == "postgres" else {}
    system, secrets = engines.get(engine).validated(System(engine, "t", settings, Layout(str(data / engine))), clients)
    with engines.running(system, secrets, clients) as session:
        yield session


def load(session: Session, printer: Printer | None = None, **options: str) -> Loaded:
    dataset = tpch_tables.dataset(session.engine, {"sf": "0.01"} | options)
    return prepare.fill(session, dataset, 2, printer or Printer(io.StringIO(), io.StringIO()))


def counts(session: Session) -> dict[str, int]:
    return {table: int(session.query(f"select count(*) from {table}")[0][0] or 0) for table in ROWS}


@pytest.fixture(
    params=[pytest.param(one, marks=pytest.mark.long if one in ("mariadb", "postgres") else ()) for one in ENGINES]
)
def session(request: pytest.FixtureRequest, place: Path) -> Iterator[Session]:
    with running(request.param, place) as session:
        yield session


def test_every_engine_holds_the_same_rows_once_with_exact_money_and_uses_them_again(session: Session) -> None:
    loaded = load(session)
    assert counts(session) == ROWS
    assert loaded.rows == sum(ROWS.values())
    assert set(loaded.phases) == {"schema", "rows", "keys", "references", "analyze"}
    assert sums(session) == SUMS
    require_exact_money(session)
    assert load(session).reused


def require_exact_money(session: Session) -> None:
    # Sum of price less discount over all lines of the reference data at scale factor 0.01.
    whole = session.engine == "sqlite"
    one, price = (
        ("100", "l_extendedprice * (100 - l_discount)") if whole else ("1", "l_extendedprice * (1 - l_discount)")
    )
    total = session.query(f"select sum({price}), min({one}) from lineitem")[0][0] or ""
    per_line = session.query(
        "select l_extendedprice, l_discount, l_tax, l_quantity, l_shipdate from lineitem "
        "where l_orderkey = 1 and l_linenumber = 1"
    )[0]
    if whole:
        assert per_line == ("2471035", "4", "2", "17", "1996-03-13")
        assert total.isdigit()
    else:
        assert per_line == ("24710.35", "0.04", "0.02", "17.00", "1996-03-13")
        assert len(total.split(".")[1]) == 4


def sums(session: Session) -> tuple[str, ...]:
    """Returns a sum over every table; money in cents."""
    factor = 1 if session.engine == "sqlite" else 100
    found = session.query(
        f"select sum(l_extendedprice) * {factor}, sum(l_orderkey), sum(length(l_comment)), min(l_shipdate), "
        f"max(l_receiptdate), count(distinct l_shipmode), (select sum(s_acctbal) * {factor} from supplier), "
        "(select sum(length(c_name || c_address || c_phone || c_comment)) from customer), "
        "(select max(p_name) from part), (select sum(o_custkey) from orders), "
        "(select sum(ps_availqty) from partsupp) from lineitem"
    )[0]
    return tuple((value or "").removesuffix(".00") for value in found)


@pytest.mark.long
def test_a_load_that_was_killed_goes_on_where_it_stopped(session: Session) -> None:
    with pytest.raises(FailureError, match="SIGKILL"):
        load(session, Killing(), sf="0.1")
    held = sum(counts(session).values())
    there = sum(piece["past"] - piece["first"] for piece in pieces.LoadedPieces(session, "tpch").rows())
    assert there > 0
    loaded = load(session, sf="0.1")
    assert loaded.resumed and not loaded.metrics().get("load_rows_per_s")
    now = counts(session)
    assert sum(now.values()) == loaded.rows > held
    assert now["orders"] == 150_000 and now["partsupp"] == 80_000
    assert session.query("select count(distinct l_orderkey) from lineitem") == [("150000",)]
    assert load(session, sf="0.1").reused
    assert not pieces.LoadedPieces(session, "tpch").known()


@pytest.mark.long
@pytest.mark.parametrize(
    "session",
    [pytest.param(engine, marks=() if engine == "sqlite" else pytest.mark.long) for engine in ENGINES],
    indirect=True,
)
def test_a_load_is_begun_anew_for_another_scale_factor(session: Session) -> None:
    with pytest.raises(FailureError):
        load(session, Killing(), sf="0.04")
    assert not load(session).resumed
    assert counts(session) == ROWS


@pytest.mark.long
def test_a_data_directory_of_another_scale_factor_is_loaded_anew_only_where_it_is_ours(place: Path) -> None:
    with running("postgres", place) as session:
        load(session)
        dataset = tpch_tables.dataset("postgres", {"sf": "0.02"})
        with pytest.raises(InputError, match=r"contains tpch .* sf=0\.01"):
            prepare.fill(session, dataset, 2, Printer(io.StringIO(), io.StringIO()), own_server=False)
        assert counts(session) == ROWS
        assert load(session, sf="0.02").rows > sum(ROWS.values())


class Killing(Printer):
    """Kills the process that makes the rows as soon as the first pieces exist."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), io.StringIO())
        self._done = threading.Event()

    @contextmanager
    def bar(self, what: str, total_s: float | None = None) -> Iterator[object]:
        def show(fraction: float, note: str) -> None:
            if fraction > 0.4 and not self._done.is_set():
                self._done.set()
                for pid in processes.children(os.getpid()):
                    if b"ironbench.host.job" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.1)

        yield show
