"""Limits by which a trial is judged (`records.judge`), with the codes of the warnings (docs/reference/statuses.md)."""

FAILED_FLAGGED = 0.001
"""Maximum fraction of transactions that may fail. If more fail, the trial is flagged (`transactions-failed`,
`failed-outside-window`). The fraction is computed over all transactions and for each script."""
FAILED_INVALID = 0.05
"""If a larger fraction of transactions failed, the trial is invalid."""
FAILED_LIMITS = (FAILED_FLAGGED, FAILED_INVALID)
"""Both limits. A fraction close to one of them is formatted with enough digits to show on which side it is."""

CLIENT_SATURATED = 0.90
"""Maximum CPU utilisation of a thread of the client or of the latency relay, as a fraction of its time. If a thread
exceeds it, the client or the relay, and not the server, may be the bottleneck (`client-saturated`,
`relay-saturated`)."""
RATE_KEPT = 0.98
"""Minimum fraction of the scheduled transactions that must complete (`rate-not-kept`).

At any time, some transactions are in progress. Transactions that are still waiting at the end therefore count as
completed, unless the longest wait is longer than the rest of the window.
"""
CUT_OFF = 0.01
"""Maximum fraction of the clients' time that may belong to long transactions that were still running at the end of the
window (`clients-cut-off`)."""
UNEVEN = 0.2
"""Maximum standard deviation of the transactions per client, as a fraction of their mean (`clients-uneven`)."""
UNEVEN_FROM = 100
"""Minimum number of transactions per client for `clients-uneven`. With fewer transactions, chance alone can exceed
`UNEVEN`."""
OWN_DELAY = 0.25
"""Maximum time for which replies may wait until the drive loop reads them, as a fraction of the service time
(`loop-delayed`)."""
REARMED = 0.01
"""Receive operations fail if all buffers are in use. This is the maximum number of such failures per transaction
(`loop-delayed`)."""
LATENCY_LATE_SHARE = 0.25
"""Maximum latency that the relay may add in excess of the declared round-trip time, as a fraction of the declared
round-trip time (`latency-late`)."""
OUR_SHARE = 0.15
"""Maximum fraction of the CPU time that client, observers, emulation and latency relay may use together
(`own-cpu-share`)."""
BUSY = 0.05
"""Maximum fraction of all cores' CPU time that other programs may use. If they use more, a trial is flagged
(`cpu-taken`, `not-quiet`), a slice is repeated, and `ironbench doctor` warns."""
BUSY_WITH_KERNEL = 0.20
"""Limit for `cpu-taken` in place of `BUSY` if the CPU time of kernel threads counts as that of other programs. This
limit is higher, because kernel threads also work for the database."""
FAITHFUL_LOAD = 0.5
"""Emulation is reliable up to this fraction of the maximum I/O rate that it reached on an idle CPU (`emulation-limit`).
During a trial, the database also needs the CPU, so emulation may not reach its maximum."""
FAITHFUL_LATENESS = 0.05
"""Maximum delay of emulated I/Os compared with the device model, as a fraction of their I/O time
(`emulation-limit`)."""
PROFILE_LOST = 0.01
"""Maximum fraction of samples that may be lost. A profile that lost more is not complete (`profile-lost`)."""
PROFILE_UNRESOLVED = 0.20
"""Maximum fraction of frames that may lack a symbol. A profile with more such frames is not readable
(`profile-unresolved`)."""
