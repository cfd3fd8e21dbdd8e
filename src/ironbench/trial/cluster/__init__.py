"""Drives a trial from several processes or machines. Ray starts the workers, and takes no part in transactions."""
