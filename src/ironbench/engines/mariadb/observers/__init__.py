"""Observers of MariaDB: what InnoDB counts, and what the threads that serve clients are doing."""
