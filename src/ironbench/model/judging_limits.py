"""Limits by which a trial is judged (docs/reference/statuses.md). The limits for failed transactions are in
`model.record`."""

CLIENT_SATURATED = 0.90
"""Maximum CPU utilisation of a client thread, as a fraction of its time. Above it, the client rather than the server
may limit the throughput (`client-saturated`)."""
RATE_KEPT = 0.98
"""Minimum fraction of the scheduled transactions that must complete (`rate-not-kept`).

Transactions still waiting at the end count as completed if the longest wait is no longer than the rest of the window,
because some transactions are in progress at any instant.
"""
CUT_OFF = 0.01
"""Maximum fraction of the clients' time in long transactions that had not ended at the end of the window
(`clients-cut-off`)."""
OWN_DELAY = 0.25
"""Maximum time that replies wait for the drive loop, as a fraction of the service time (`loop-delayed`)."""
REARMED = 0.01
"""Maximum number of receive operations per transaction that found all buffers in use (`loop-delayed`)."""
LATENCY_LATE_SHARE = 0.25
"""Maximum latency that the relay may add beyond the declared round-trip time, as a fraction of that time
(`latency-late`)."""
OUR_SHARE = 0.15
"""Maximum fraction of the CPU time that client, observers, emulation and latency relay may use together
(`own-cpu-share`)."""
BUSY = 0.05
"""Fraction of all cores' CPU time above which other programs disturb a measurement. A trial is flagged above it
(`cpu-taken`, `not-quiet`), a slice is repeated, and `ironbench doctor` warns."""
BUSY_WITH_KERNEL = 0.20
"""Limit for `cpu-taken` that replaces `BUSY` if kernel threads are counted as other programs, because kernel threads
also work for the database."""
FAITHFUL_LOAD = 0.5
"""Fraction of the maximum I/O rate of an emulated device above which emulation is unreliable (`emulation-limit`). The
maximum was measured on an idle CPU, but a database also needs the CPU."""
PROFILE_LOST = 0.01
"""Fraction of lost samples above which a profile is incomplete (`profile-lost`)."""
PROFILE_UNRESOLVED = 0.20
"""Fraction of frames without a symbol above which a profile is hard to read (`profile-unresolved`)."""
