"""SQLite: a library in a child process of each trial, its file in a directory of ours."""
