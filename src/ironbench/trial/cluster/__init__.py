"""Drives a trial from several processes or machines. Ray starts the workers, but has no part in transactions."""
