"""ODBC: any database with a driver, accessed through pyodbc in child processes."""
