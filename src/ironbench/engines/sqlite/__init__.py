"""SQLite: a library in a child process for each trial; the database file is in a directory of ironbench."""
