"""PostgreSQL: a server that ironbench starts from its own or other programs, or an existing server."""
