"""Refresh sets: the orders that each inserts and deletes (specification, clauses 2.5 to 2.7 and 4.2.4).

Set u stands for orders (u-1)·1500·sf + 1 … u·1500·sf in the order of the load. It deletes those orders' keys, and
inserts as many orders with others: of every 32 keys the load uses the first eight, sets 1 to 1000 insert the second
eight, and so on, so that after 4000 sets the keys are those of the load again. A set is used once on the same data.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbench import errors
from ironbench.errors import FailureError

SETS = 1000
"""Orders are divided into so many sets (crates/ironbench-data/src/tpch/mod.rs)."""
KEY_GROUPS, KEYS_OF_A_GROUP, KEYS_OF_ALL = 4, 8, 32
ORDERS = 1_500_000
"""At scale factor 1."""
COLUMNS = {
    "orders": "o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, "
    "o_shippriority, o_comment",
    "lineitem": "l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, "
    "l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment",
}
"""In the order of the rows."""
_CODE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import ironbench._core as core
for generator, table, path in json.load(sys.stdin):
    core.write_rows(json.dumps(generator).encode(), table, 1, path)
"""


@dataclass(frozen=True, slots=True)
class RefreshSet:
    """One pair of refresh functions: rows ready in files of PostgreSQL's COPY text format, and keys."""

    number: int
    orders: Path
    lines: Path
    inserted: tuple[int, ...]
    """Keys of the orders in the file, in its order; the lines of an order stand together, in the same order."""
    deleted: tuple[int, ...]


def keys(sf: float, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Keys of orders that set `number` (from 1) inserts, and that it deletes."""
    group, position = divmod(number - 1, SETS)
    total = int(ORDERS * sf)
    each = total // SETS
    past = total if position == SETS - 1 else each * (position + 1)
    plain = [_sparse(index) for index in range(each * position + 1, past + 1)]
    new, old = ((group + step) % KEY_GROUPS * KEYS_OF_A_GROUP for step in (1, 0))
    return tuple(key + new for key in plain), tuple(key + old for key in plain)


def prepared(sf: float, numbers: Sequence[int], engine: str, folder: Path) -> list[RefreshSet]:
    """The sets with their rows in `folder`, money and rates in the engine's own form. FailureError.

    A process of its own makes the rows: the text that they are cut from takes 300 MB, and is gone when this returns.
    """
    sets = []
    wanted = []
    for number in numbers:
        generator = {
            "rows": "tpch",
            "scale_factor": sf,
            "whole_numbers": engine == "sqlite",
            "refresh_set": number,
        }
        orders, lines = (folder / f"refresh-{number}.{table}" for table in ("orders", "lineitem"))
        wanted += [(generator, "orders", str(orders)), (generator, "lineitem", str(lines))]
        inserted, deleted = keys(sf, number)
        sets.append(RefreshSet(number, orders, lines, inserted, deleted))
    if wanted:
        _made(wanted)
    return sets


def _made(wanted: list[tuple[dict[str, object], str, str]]) -> None:
    packages = str(Path(errors.__file__).parents[1])
    command = [sys.executable, "-I", "-S", "-c", _CODE, packages]
    done = subprocess.run(command, input=json.dumps(wanted), capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise FailureError("refresh sets", f"their rows could not be made: {lines[-1]}")


def _sparse(index: int) -> int:
    """The key of the order of that position in the load, from 1: eight keys used, then 24 left out."""
    return index // KEYS_OF_A_GROUP * KEYS_OF_ALL + index % KEYS_OF_A_GROUP
