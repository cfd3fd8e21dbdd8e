"""Columns to Parquet and back, through DuckDB (no pyarrow: 165 MB for what a database already does)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from ironbench.model.observation import Series

Columns = dict[str, "np.ndarray[Any, np.dtype[np.float64]]"]


def write(path: Path, columns: Mapping[str, bytes]) -> None:
    """`columns`: name → little-endian float64 values, all of one length."""
    _write_table(path, {name: np.frombuffer(data, dtype="<f8") for name, data in columns.items()})


def write_series(path: Path, series: Sequence[Series]) -> None:
    """Long form: one row per point, with `series`, `t_s` and `value`."""
    names = [np.full(len(one.t_s), one.name, dtype=object) for one in series]
    table = {
        "series": np.concatenate(names),
        "t_s": np.concatenate([np.asarray(one.t_s, dtype="f8") for one in series]),
        "value": np.concatenate([np.asarray(one.value, dtype="f8") for one in series]),
    }
    _write_table(path, table)


def read(path: Path) -> Columns:
    with duckdb.connect() as database:
        return database.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchnumpy()


def read_series(path: Path) -> dict[str, Columns]:
    table = read(path)
    names = table["series"]
    found = {}
    for name in dict.fromkeys(names.tolist()):
        chosen = names == name
        found[name] = {"t_s": table["t_s"][chosen], "value": table["value"][chosen]}
    return found


def _write_table(path: Path, table: dict[str, Any]) -> None:
    with duckdb.connect() as database:
        database.register("columns", table)
        try:
            database.execute(
                f"COPY columns TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet, COMPRESSION zstd)"
            )
        except duckdb.IOException as error:
            raise OSError(None, str(error)) from error
