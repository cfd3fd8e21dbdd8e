"""MariaDB, started by ironbench or existing; also MySQL as an existing server."""
