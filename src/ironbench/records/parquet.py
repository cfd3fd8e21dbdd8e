"""Writes and reads columns as Parquet through DuckDB, because pyarrow would add 165 MB to an installation."""

from __future__ import annotations

import functools
import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from ironbench.model.observation import Series

Columns = dict[str, "np.ndarray[Any, np.dtype[np.float64]]"]
_SERIES = ("series", "t_s", "value")


def write(path: Path, columns: Mapping[str, bytes]) -> None:
    """Writes columns. `columns` maps the name of each column to its values (little-endian float64). The columns have
    the same length."""
    write_table(path, {name: np.frombuffer(data, dtype="<f8") for name, data in columns.items()})


def write_series(path: Path, series: Sequence[Series]) -> None:
    """Writes series in long form: one row per point, with the columns `series`, `t_s` and `value`."""
    names = [np.full(len(one.t_s), one.name, dtype=object) for one in series]
    table = {
        "series": np.concatenate(names),
        "t_s": np.concatenate([np.asarray(one.t_s, dtype="f8") for one in series]),
        "value": np.concatenate([np.asarray(one.value, dtype="f8") for one in series]),
    }
    write_table(path, table)


def read(path: Path) -> Columns:
    """Reads all columns as numbers. Raises ValueError if the file is not a Parquet file or contains other values."""
    return {name: _numbers(name, column) for name, column in read_table(path).items()}


def read_series(path: Path) -> dict[str, Columns]:
    """Reads a file that `write_series` wrote. Returns the columns of each series by the series' name. Raises
    ValueError."""
    table = read_table(path)
    if tuple(table) != _SERIES:
        raise ValueError(f"has the columns {', '.join(table)[:200]} instead of {', '.join(_SERIES)}")
    names, t_s, value = table["series"], _numbers("t_s", table["t_s"]), _numbers("value", table["value"])
    if isinstance(names, np.ma.MaskedArray) or not all(isinstance(name, str) for name in dict.fromkeys(names.tolist())):
        raise ValueError("has series without a name")
    by_series = {}
    for name in dict.fromkeys(names.tolist()):
        chosen = names == name
        by_series[name] = {"t_s": t_s[chosen], "value": value[chosen]}
    return by_series


def values(path: Path) -> int:
    """Returns the number of values in a file (rows times columns), from the file's metadata. Raises ValueError."""
    with _cursor() as database:
        try:
            rows = database.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [_name(path)]).fetchone()
            columns = database.execute("SELECT count(type) FROM parquet_schema(?)", [_name(path)]).fetchone()
        except duckdb.Error as error:
            raise ValueError(_first_line(error)) from error
    return int(rows[0] or 0) * int(columns[0]) if rows and columns else 0


def read_table(path: Path) -> dict[str, Any]:
    """Reads all columns by name, as arrays. Raises ValueError if the file is not a Parquet file."""
    with _cursor() as database:
        try:
            return database.execute("SELECT * FROM read_parquet(?)", [_name(path)]).fetchnumpy()
        except duckdb.Error as error:
            raise ValueError(_first_line(error)) from error


def _cursor() -> duckdb.DuckDBPyConnection:
    """Returns a cursor of a database that all files share. Creating a database takes ten times as long as reading or
    writing the files of a trial."""
    return _database().cursor()


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _name(path: Path) -> str:
    """Escapes a path for DuckDB's readers, which treat stars and brackets as a pattern."""
    return glob.escape(str(path))


def _numbers(name: str, column: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    if isinstance(column, np.ma.MaskedArray) and column.dtype.kind == "f" and name != "t_s":
        # DuckDB writes NaN as NULL. NaN is valid: for example, a second without transactions has no response time.
        column = column.filled(np.nan)
    if isinstance(column, np.ma.MaskedArray) or not isinstance(column, np.ndarray) or column.dtype.kind not in "fiu":
        raise ValueError(f"column {name[:100]} does not contain only numbers")
    return column.astype("f8", copy=False)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def write_table(path: Path, table: dict[str, Any]) -> None:
    """Writes columns. `table` maps the name of each column to an array. The arrays have the same length. Raises
    OSError."""
    with _cursor() as database:
        database.register("columns", table)
        try:
            database.execute(
                f"COPY columns TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet, COMPRESSION zstd)"
            )
        except duckdb.IOException as error:
            raise OSError(None, str(error)) from error
