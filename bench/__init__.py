"""Measures ironbench itself, beside its peers, interleaved in one run. `make bench`, or `python -m bench NAME…`."""
