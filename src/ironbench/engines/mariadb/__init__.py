"""MariaDB, either started by ironbench or existing, and MySQL as an existing server."""
