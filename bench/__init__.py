"""Benchmarks of ironbench itself, interleaved with other tools. Run `make bench`, or `python -m bench NAME…`."""
