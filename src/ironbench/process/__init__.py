"""Processes and directories of ours: telling them apart, watching over them, and what must be cleaned up after them."""
