"""DuckDB: a library in one child process that all connections share."""
