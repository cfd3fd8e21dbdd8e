"""MariaDB, started by ironbench or running already; MySQL too when it runs already."""
