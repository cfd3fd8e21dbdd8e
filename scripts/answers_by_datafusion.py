"""Computes the answers of the 22 queries with DataFusion on Parquet files: a second engine for scale factors at which
PostgreSQL would take hours.

    pip install datafusion tpchgen-cli
    tpchgen-cli parquet --scale-factor 10 --output-dir P
    python scripts/answers_by_datafusion.py P A
    ironbench run tpch --engine duckdb --with sf=10 --with answers=B
    python scripts/pack_answers.py 10 A B
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ironbench.workloads.tpch import answers, parameters, texts
from ironbench.workloads.tpch.validation import into_folder

TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")
QUERIES = range(1, 23)


def main(files: str, folder: str) -> int:
    import datafusion

    context = datafusion.SessionContext()
    for table in TABLES:
        context.register_parquet(table, str(Path(files, f"{table}.parquet")))
    found = {}
    for query in QUERIES:
        began_s = time.monotonic()
        answer = context.sql(texts.text(query, "postgres", parameters.validation(query)))
        names = list(answer.schema().names)
        rows = [
            tuple(None if value is None else str(value) for value in row)
            for batch in answer.collect()
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]
        found[query] = answers.answer(names, rows)
        sys.stderr.write(f"{texts.name(query)}: {len(rows)} rows, {time.monotonic() - began_s:.1f} s\n")
    into_folder(Path(folder), found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
