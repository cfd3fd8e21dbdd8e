"""Limits by which a trial is judged (docs/reference/statuses.md). The limits for failed transactions are in
`model.record`."""

CLIENT_SATURATED = 0.90
"""Maximum CPU utilisation of a client thread, as a fraction of its time. If a thread exceeds it, the client and not the
server may be the bottleneck (`client-saturated`)."""
RATE_KEPT = 0.98
"""Minimum fraction of the scheduled transactions that must complete (`rate-not-kept`).

Transactions that are still waiting at the end count as completed if the longest wait is not longer than the rest of the
window, because some transactions are in progress at any time.
"""
CUT_OFF = 0.01
"""Maximum fraction of the clients' time that is spent in long transactions that have not ended at the end of the window
(`clients-cut-off`)."""
OWN_DELAY = 0.25
"""Maximum time that replies wait for the drive loop, as a fraction of the service time (`loop-delayed`)."""
REARMED = 0.01
"""Maximum number of receive operations per transaction that fail because all buffers are in use (`loop-delayed`)."""
LATENCY_LATE_SHARE = 0.25
"""Maximum latency that the relay may add beyond the declared round-trip time, as a fraction of that time
(`latency-late`)."""
OUR_SHARE = 0.15
"""Maximum fraction of the CPU time that client, observers, emulation and latency relay may use together
(`own-cpu-share`)."""
BUSY = 0.05
"""Maximum fraction of all cores' CPU time that other programs may use. If they use more, a trial is flagged
(`cpu-taken`, `not-quiet`), a slice is repeated, and `ironbench doctor` warns."""
BUSY_WITH_KERNEL = 0.20
"""Limit for `cpu-taken` that replaces `BUSY` if kernel threads are counted as other programs, because kernel threads
also work for the database."""
FAITHFUL_LOAD = 0.5
"""Fraction of the maximum emulated I/O rate up to which emulation is reliable (`emulation-limit`). The maximum was
measured on an idle CPU, but during a trial, the database also needs the CPU."""
PROFILE_LOST = 0.01
"""Maximum fraction of lost samples for a profile to count as complete (`profile-lost`)."""
PROFILE_UNRESOLVED = 0.20
"""Maximum fraction of frames without a symbol for a profile to be readable (`profile-unresolved`)."""
