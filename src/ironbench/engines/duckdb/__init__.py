"""DuckDB: a library in a child process that all connections share."""
