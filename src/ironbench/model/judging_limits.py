"""Limits by which a trial is judged, except for failed transactions (`model.record`): docs/reference/statuses.md."""

CLIENT_SATURATED = 0.90
"""Fraction of one thread's time above which the client, not the server, may limit the throughput."""
RATE_KEPT = 0.98
"""Fraction of the scheduled transactions that must complete. Transactions still waiting at the end count as done if the
longest wait is no longer than the rest of the window, because some transactions are in progress at any instant."""
CUT_OFF = 0.01
"""Fraction of the clients' time spent on long transactions that had not ended at the end of the window."""
OWN_DELAY = 0.25
"""Fraction of the service time that replies wait for the drive loop."""
REARMED = 0.01
"""Number of receive operations per transaction that found all buffers in use."""
LATENCY_LATE_SHARE = 0.25
"""Fraction of the declared round-trip time by which the relay may exceed it."""
OUR_SHARE = 0.15
"""Fraction of the CPU time used by client, observers, emulation and latency relay together."""
BUSY = 0.05
"""Fraction of all cores' CPU time above which other programs disturb a measurement, as `ironbench doctor` warns."""
