"""ODBC: any database that has a driver, reached through pyodbc in child processes."""
