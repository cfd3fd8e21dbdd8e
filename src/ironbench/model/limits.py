"""Limits by which a trial is judged, besides those of failed transactions (`model.record`): docs/guide/statuses.md."""

CLIENT_SATURATED = 0.90
"""Share of one thread's time above which the client, not the server, may set the pace."""
RATE_KEPT = 0.98
"""Share of the transactions due that must be done. Those that wait at the end count as done if the longest wait is no
longer than the rest of the window: some are being served at any instant."""
CUT_OFF = 0.01
"""Share of the clients' time spent on transactions that had not ended at the end of the window and ran for long."""
OWN_DELAY = 0.25
"""Share of the service time that replies wait for the drive loop."""
REARMED = 0.01
"""Receives that found all buffers in use, for each transaction."""
OUR_SHARE = 0.15
"""Share of the CPU time used by client, observers and emulation together."""
BUSY = 0.05
"""Share of all cores' CPU time from which other programs disturb a measurement, as `ironbench doctor` warns."""
