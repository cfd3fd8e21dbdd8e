"""Observers of MariaDB: InnoDB's counters, and the states of the threads that serve clients."""
