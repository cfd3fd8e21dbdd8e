"""PostgreSQL: a server of our own from the programs that came with ironbench, or one that runs already."""

from __future__ import annotations

from ironbench.engines.postgres.engine import PostgresEngine

ENGINE = PostgresEngine()
