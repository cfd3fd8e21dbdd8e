-- In SQLite, a transaction that starts with a read cannot write any more after another transaction has written.
BEGIN IMMEDIATE;
