"""SQLite: a library in a child process for each trial. The database file is in a directory of ironbench."""
